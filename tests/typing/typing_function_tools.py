"""What checkers know of function tools where the function says little."""

from __future__ import annotations

from typing import Any

from lutum_py import Toolset, tool, tool_fn


@tool_fn
def loose(key: str, limit: int = 5) -> Any:
    """Give anything."""
    return key * limit


class Tools(Toolset):
    loose = tool(loose)


hooks = Tools.HookSet()


@hooks.on_args(Tools.loose)
def blank(key: str, limit: int = 5) -> None:
    """A function that gives anything is a tool of its parameters still."""
