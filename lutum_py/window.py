"""What a model sees of a long conversation: cuts, caches, bounds of results, and deferred tools.

Example:
    >>> from lutum_py import Session
    >>> from lutum_py.window import View
    >>> session = Session()
    >>> session.push_user("Hello")
    >>> len(View().of(session))
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand

if TYPE_CHECKING:
    from ._view.view import Cut as Cut
    from ._view.view import View as View
else:
    __getattr__, __dir__ = on_demand(globals(), {"_view.view": ("Cut", "View")})
    __all__ = list(exported(__dir__()))
