"""lutum_py itself, measured like the others."""

from __future__ import annotations

import asyncio

from lutum_py import ToolMetadata, tool_fn

from .. import ours
from .work import fresh_tool

__all__ = ["DISTRIBUTION", "IMPORT", "call", "declare", "define", "loop"]

DISTRIBUTION = "lutum-py"
IMPORT = "from lutum_py import Toolset, tool, tool_fn"


def declare(times: int) -> None:
    """Make the tool; its schema waits until it is asked for."""
    for _ in range(times):
        tool_fn(fresh_tool())


def define(times: int) -> None:
    """Make the tool, and ask for its schema."""
    for _ in range(times):
        _ = tool_fn(fresh_tool()).definition.input_schema


def call(text: str, times: int) -> str:
    """Parse the call, run it, and read its result."""
    metadata = ToolMetadata(id="c1", name="search", arguments=text)

    async def main() -> str:
        parse = ours.Tools.parse_tool_call
        answer = ""
        for _ in range(times):
            answer = (await parse(metadata).call()).result
        return answer

    return asyncio.run(main())


def loop(text: str, turns: int) -> int:
    """Go through a conversation with session, builder, hooks and commit."""
    # The last of the items is the answer, which the model was not given.
    return len(ours.conversation(text, turns).transcript) - 1
