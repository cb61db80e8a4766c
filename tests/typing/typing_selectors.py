"""What checkers know of the selector class of a toolset: they take each for a `Selector` of any input."""

from __future__ import annotations

from typing import Any, assert_type

from lutum_py import Selector, Toolset, tool, tool_fn


@tool_fn
def ping(host: str) -> str:
    """Ping a host."""
    return host


class Net(Toolset):
    ping = tool(ping)


assert_type(Net.Selector.all(), tuple[Selector[Any, Any], ...])
assert_type(Net.Selector.try_from_name("ping"), Selector[Any, Any] | None)
assert_type(Net.Selector.from_name("ping"), Selector[Any, Any])
Net.Selector.from_name(3)  # error
