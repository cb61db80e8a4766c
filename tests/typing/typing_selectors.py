"""What checkers know of the selector class of a toolset: they take each for `AnySelector`."""

from __future__ import annotations

from typing import assert_type

from lutum_py import AnySelector, Toolset, tool, tool_fn


@tool_fn
def ping(host: str) -> str:
    """Ping a host."""
    return host


class Net(Toolset):
    ping = tool(ping)


assert_type(Net.Selector.all(), tuple[AnySelector, ...])
assert_type(Net.Selector.try_from_name("ping"), AnySelector | None)
assert_type(Net.Selector.from_name("ping"), AnySelector)
Net.Selector.from_name(3)  # error
