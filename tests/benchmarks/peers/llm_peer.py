"""llm: `execute_tool_calls` for one call, `chain` with an `AsyncModel` for the loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from llm import AsyncModel, Tool, ToolCall

from .work import fresh_tool, search

__all__ = ["DISTRIBUTION", "IMPORT", "call", "declare", "define", "loop"]

DISTRIBUTION = "llm"
IMPORT = "import llm"

_search = Tool.function(search)


def declare(times: int) -> None:
    """Make the tool; the schema, without the descriptions of the parameters, comes with it."""
    for _ in range(times):
        Tool.function(fresh_tool())


def define(times: int) -> None:
    """Make the tool, and read its schema."""
    for _ in range(times):
        _ = Tool.function(fresh_tool()).input_schema


class _Model(AsyncModel):
    """Ask for the same call again and again, then answer."""

    model_id = "fake"
    supports_tools = True

    def __init__(self, text: str, turns: int) -> None:
        self.text = text
        self.turns = turns
        self.turn = 0
        self.given = 0

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any
    ) -> AsyncIterator[str]:
        """Give the next turn."""
        self.given = len(prompt.messages)
        if self.turn < self.turns:
            response.add_tool_call(_request(self.text, self.turn))
            self.turn += 1
            yield ""
        else:
            yield "done"


def _request(text: str, turn: int) -> ToolCall:
    # What the plugins of the providers do. llm itself validates no arguments: it calls the function
    # with whatever the model sent, so this row does less work than the floor.
    return ToolCall(name="search", arguments=json.loads(text), tool_call_id=f"c{turn}")


def call(text: str, times: int) -> str:
    """Load the arguments, and let a response run the call with its tools."""

    async def main() -> str:
        response = _Model(text, 0).prompt("go", tools=[_search])
        answer = ""
        for _ in range(times):
            results = await response.execute_tool_calls(tool_calls_list=[_request(text, 0)])
            answer = results[0].output
        return answer

    return asyncio.run(main())


def loop(text: str, turns: int) -> int:
    """Run a chain; nothing is logged to a database unless it is asked for."""
    model = _Model(text, turns)

    async def main() -> None:
        await model.chain("go", tools=[_search], stream=False).text()

    asyncio.run(main())
    return model.given
