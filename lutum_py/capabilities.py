"""What calls touch of the world, by what their tools declare to do to it.

Example:
    >>> from lutum_py.capabilities import Touch
    >>> read = Touch("orders", "a17", mutating=False)
    >>> read.meets(Touch("orders", "a17", mutating=True)), read.meets(read)
    (True, False)
"""

from __future__ import annotations

from ._schema.touch import Touch

__all__ = ["Touch"]
