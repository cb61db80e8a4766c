"""openai-agents: `FunctionTool.on_invoke_tool` for one call, `Runner.run` for the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents import (
    Agent,
    ItemHelpers,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from .work import fresh_tool, search

__all__ = ["DISTRIBUTION", "IMPORT", "call", "declare", "define", "loop"]

DISTRIBUTION = "openai-agents"
IMPORT = "from agents import Agent, function_tool"

# Traces are collected by default, for an exporter that would send them. Both of the documented
# switches are used: this one, and the one of a run's own configuration below.
set_tracing_disabled(True)

_search = function_tool(search)


def declare(times: int) -> None:
    """Make the tool; the schema, strict by default, comes with it."""
    for _ in range(times):
        function_tool(fresh_tool())


def define(times: int) -> None:
    """Make the tool, and read its schema."""
    for _ in range(times):
        _ = function_tool(fresh_tool()).params_json_schema


def call(text: str, times: int) -> str:
    """Invoke the tool, and make the item that the model is given.

    A run does more for each call (guardrails, approvals, spans). A context belongs to one call, so
    each has its own.
    """
    request = _request(text, 0)

    async def main() -> str:
        answer = ""
        for _ in range(times):
            context: ToolContext[None] = ToolContext(
                None, tool_name="search", tool_call_id="c0", tool_arguments=text
            )
            output = await _search.on_invoke_tool(context, text)
            answer = str(ItemHelpers.tool_call_output_item(request, output)["output"])
        return answer

    return asyncio.run(main())


def _request(text: str, turn: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        arguments=text, call_id=f"c{turn}", name="search", type="function_call"
    )


class _Model(Model):
    """Ask for the same call again and again, then answer.

    The package has a `ScriptedModel` for tests. It keeps a deep copy of the history of every turn,
    which would be charged to the loop, so this implements the interface of models instead.
    """

    def __init__(self, text: str, turns: int) -> None:
        self.text = text
        self.turns = turns
        self.turn = 0
        self.given = 0

    async def get_response(
        self, system_instructions: str | None, input: str | list[Any], *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Give the next turn."""
        self.given = len(input)
        return ModelResponse(output=[self._item()], usage=Usage(requests=1), response_id=None)

    def _item(self) -> ResponseFunctionToolCall | ResponseOutputMessage:
        if self.turn < self.turns:
            self.turn += 1
            return _request(self.text, self.turn)
        text = ResponseOutputText(annotations=[], text="done", type="output_text")
        return ResponseOutputMessage(
            id="m1", content=[text], role="assistant", status="completed", type="message"
        )

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Is not asked for."""
        raise AssertionError("nothing is streamed")


def loop(text: str, turns: int) -> int:
    """Run an agent without traces."""
    model = _Model(text, turns)
    agent = Agent(name="searcher", model=model, tools=[_search])
    # By default a run ends after ten turns.
    config = RunConfig(tracing_disabled=True)
    asyncio.run(Runner.run(agent, "go", max_turns=turns + 1, run_config=config))
    return model.given
