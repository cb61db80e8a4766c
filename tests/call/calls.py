"""Tools, and calls of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lutum_py import (
    ToolCall,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from tests.declared import call_of


class Sum(BaseModel):
    total: int


@tool_fn
def add(a: int, b: int = 1) -> Sum:
    """Add."""
    return Sum(total=a + b)


class FindArgs(ToolInput[list[str]]):
    words: list[str]


class Inner(Toolset):
    add = tool(add)
    find = tool(FindArgs)


class Outer(Toolset):
    left = toolset(Inner, prefix="left_")
    right = toolset(Inner, prefix="right_")


def added(a: int = 1, **more: Any) -> ToolCall[Any, Sum]:
    call: ToolCall[Any, Sum] = call_of(add, {"a": a, **more})
    return call
