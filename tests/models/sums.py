"""The tools of these tests."""

from __future__ import annotations

from typing import Any

from lutum_py import (
    HookSet,
    Reject,
    RunNormally,
    ToolDecision,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)


@tool_fn
async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@tool_fn
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


class Sums(Toolset):
    add = tool(add)
    shout = tool(shout)


def make_hooks() -> HookSet[Sums]:
    """Refuse to add a thirteen."""
    hooks = Sums.HookSet()

    @hooks.on(Sums.add)
    def no_thirteen(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, int]:
        return Reject("thirteen is not welcome") if input.a == 13 else RunNormally(input)

    return hooks
