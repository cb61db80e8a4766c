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
from ._transcript.request import Cache as Cache
from ._transcript.request import DeferredTools as DeferredTools
from ._transcript.result_cap import MemoryResults as MemoryResults
from ._transcript.result_cap import ResultCap as ResultCap
from ._transcript.result_cap import ResultStore as ResultStore

if TYPE_CHECKING:
    from ._toolsets.stock_tools import result_reader as result_reader
    from ._toolsets.stock_tools import search_tools as search_tools
    from ._toolsets.stock_tools import tool_search as tool_search
    from ._view.view import Cut as Cut
    from ._view.view import View as View
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {
            "_toolsets.stock_tools": ("result_reader", "search_tools", "tool_search"),
            "_view.view": ("Cut", "View"),
        },
    )
    __all__ = list(exported(__dir__()))
