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

from ._text.on_demand import on_demand
from ._transcript.cache import Cache
from ._transcript.request import DeferredTools
from ._transcript.result_cap import MemoryResults, ResultCap, ResultStore

if TYPE_CHECKING:
    from ._declare.stock_tools import result_reader, search_tools, tool_search
    from ._view.cut import Cut
    from ._view.view import View
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_declare.stock_tools": ("result_reader", "search_tools", "tool_search"),
            "_view.view": ("View",),
            "_view.cut": ("Cut",),
        },
    )

__all__ = [
    "Cache",
    "Cut",
    "DeferredTools",
    "MemoryResults",
    "ResultCap",
    "ResultStore",
    "View",
    "result_reader",
    "search_tools",
    "tool_search",
]
