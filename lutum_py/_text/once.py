"""A lock for what is made when it is first asked for, and of which all threads must have the same.

It is held while a value takes its place, and while one is made by our own code alone. What runs the
code of others, such as the evaluation of their annotations, is made without it, and the first that
is made takes the place: who waits here may hold the lock of an import that such code waits for.
"""

from __future__ import annotations

from _thread import RLock
from typing import Final

# One lock for all, held for a few instructions. Locks of their own would have an order in which
# they must be taken, and threads that take two in different orders wait for each other for ever.
ONCE: Final = RLock()
