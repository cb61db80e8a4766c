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

from ._declare.result_reader import result_reader
from ._declare.tool_search import search_tools, tool_search
from ._transcript.cache import Cache
from ._transcript.deferred import DeferredTools
from ._transcript.result_cap import MemoryResults, ResultCap, ResultStore
from ._view.cut import Cut
from ._view.view import View

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
