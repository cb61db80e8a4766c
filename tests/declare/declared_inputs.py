"""Models that are tools."""

from __future__ import annotations

from lutum_py import ToolInput, tool_input


@tool_input
class Decorated(ToolInput[int]):
    a: int
