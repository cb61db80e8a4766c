"""Tools that a model searches for, as each checker has to see them."""

from __future__ import annotations

from typing import Any, assert_type

from lutum_py import AnyToolCall, FnSelector, Selector, Session, Toolset, tool, tool_fn, toolset
from lutum_py.tools import search_tools, tool_search


@tool_fn
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


class Sums(Toolset):
    add = tool(add, deferred=True)


class Tools(Toolset):
    search_tools = tool(tool_search())
    sums = toolset(Sums, deferred=True)


assert_type(Tools.search_tools, FnSelector[[str], list[str]])
assert_type(search_tools(Tools, "sum"), tuple[Selector[Any, Any], ...])

run = Tools.Handlers()


@run.on(Tools.search_tools)
async def by_meaning(query: str) -> list[str]:
    """A search of one's own takes the words and gives names."""
    return [query]


def read(session: Session, call: AnyToolCall) -> None:
    assert_type(Tools.loaded_tools(session), tuple[Selector[Any, Any], ...])
    assert_type(Tools.loaded_tools(session.transcript), tuple[Selector[Any, Any], ...])
    if (search := Tools.search_tools.match(call)) is not None:
        assert_type(search.invoke_sync(), list[str])
    if (sum_ := Tools.sums.add.match(call)) is not None:
        assert_type(sum_.invoke_sync(), int)


@run.on(Tools.sums.add)  # error
def gives_names(a: int, b: int = 1) -> list[str]:
    return [str(a + b)]
