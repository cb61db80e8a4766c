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
    ModelSettings,
    ModelTracing,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext
from openai import AsyncOpenAI
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from ...models.said import MODEL
from .work import HELLO, SMALL, TURNS, fresh_tool, named_tools, search

DISTRIBUTION = "openai-agents"
BESIDE = ("openai",)
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
    """Ask for the same calls in turn after turn, then answer.

    The package has a `ScriptedModel` for tests. It keeps a deep copy of the history of every turn,
    which would be charged to the loop, so this implements the interface of models instead.
    """

    def __init__(self, text: str, turns: int, calls: int = 1) -> None:
        self.text = text
        self.turns = turns
        self.calls = calls
        self.turn = 0
        self.given: list[Any] = []

    async def get_response(
        self, system_instructions: str | None, input: str | list[Any], *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Give the next turn."""
        self.given = [input] if isinstance(input, str) else input
        return ModelResponse(output=self._items(), usage=Usage(requests=1), response_id=None)

    def _items(self) -> list[Any]:
        if self.turn < self.turns:
            first = self.turn * self.calls
            self.turn += 1
            return [_request(self.text, first + number) for number in range(self.calls)]
        text = ResponseOutputText(annotations=[], text="done", type="output_text")
        return [
            ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
        ]

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Is not asked for."""
        raise AssertionError("nothing is streamed")


async def _run(model: _Model) -> list[Any]:
    """Run an agent without traces, and give what its model was given at last."""
    agent = Agent(name="searcher", model=model, tools=[_search])
    # By default a run ends after ten turns.
    config = RunConfig(tracing_disabled=True)
    await Runner.run(agent, "go", max_turns=model.turns + 1, run_config=config)
    return model.given


def loop(text: str, turns: int) -> int:
    """Run an agent."""
    return len(asyncio.run(_run(_Model(text, turns))))


def at_once(text: str, calls: int, times: int) -> list[str]:
    """Run an agent, which runs the calls of a turn at once by itself."""

    async def main() -> list[Any]:
        given: list[Any] = []
        for _ in range(times):
            given = await _run(_Model(text, 1, calls))
        return given

    items = asyncio.run(main())
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


def _chat(url: str) -> OpenAIChatCompletionsModel:
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    return OpenAIChatCompletionsModel(MODEL, openai_client=client)


# For Anthropic the package goes through LiteLLM or AnyLLM, which are libraries of their own.
MODELS = {"chat": _chat}

_PLAIN: dict[str, Any] = {
    "system_instructions": None,
    "model_settings": ModelSettings(include_usage=True),
    "output_schema": None,
    "handoffs": [],
    "tracing": ModelTracing.DISABLED,
    "previous_response_id": None,
    "conversation_id": None,
    "prompt": None,
}
"""What else a run gives a model."""


async def stream(model: Model) -> tuple[int, str]:
    """Read the events, of which the last has the response."""
    pieces, response = 0, None
    async for event in model.stream_response(input=HELLO, tools=[], **_PLAIN):
        if event.type == "response.output_text.delta":
            pieces += 1
        elif event.type == "response.completed":
            response = event.response
    return pieces, "" if response is None else response.output_text


def history() -> list[Any]:
    """Make the items that a run would have made."""
    items: list[Any] = [{"role": "user", "content": "go"}]
    for turn in range(TURNS):
        request = _request(SMALL, turn)
        items.append(request.model_dump(exclude_unset=True))
        items.append(ItemHelpers.tool_call_output_item(request, 3))
    items.append({"role": "assistant", "content": "done"})
    items.append({"role": "user", "content": "go on"})
    return items


SAVED = None  # the items are plain data, which `json` loads alone


async def send(model: Model, history: list[Any]) -> str:
    """Send one request without a run."""
    response = await model.get_response(input=history, tools=[], **_PLAIN)
    return ItemHelpers.extract_last_content(response.output[-1])


async def offer(model: Model) -> str:
    """Send them without a run."""
    tools: list[Any] = [function_tool(name_override=name)(each) for name, each in named_tools()]
    response = await model.get_response(input=HELLO, tools=tools, **_PLAIN)
    return ItemHelpers.extract_last_content(response.output[-1])
