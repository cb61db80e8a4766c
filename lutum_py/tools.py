"""Ready-made tools, and the bound on what a model reads of results.

Example:
    >>> from lutum_py import Toolset, tool
    >>> from lutum_py.tools import MemoryResults, ResultCap, result_reader
    >>> store = MemoryResults()
    >>> class App(Toolset, result_cap=ResultCap(20_000, store)):
    ...     read_more = tool(result_reader(store), result_cap=None)
    >>> [selector.name for selector in App]
    ['read_more']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text.on_demand import exported, on_demand
from ._transcript.result_cap import MemoryResults as MemoryResults
from ._transcript.result_cap import ResultCap as ResultCap
from ._transcript.result_cap import ResultStore as ResultStore

if TYPE_CHECKING:
    from ._toolsets.stock_tools import ToolSearch as ToolSearch
    from ._toolsets.stock_tools import result_reader as result_reader
    from ._toolsets.stock_tools import search_tools as search_tools
    from ._toolsets.stock_tools import tool_search as tool_search
else:
    __getattr__, __dir__ = on_demand(
        globals(),
        {"_toolsets.stock_tools": ("ToolSearch", "result_reader", "search_tools", "tool_search")},
    )
    __all__ = list(exported(__dir__()))
