"""llm: `execute_tool_calls` for one call, `chain` with an `AsyncModel` for the loop.

The models of OpenAI come with it, those of Anthropic with a plugin of the same author.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import llm
from llm import AsyncModel, Tool, ToolCall
from llm.default_plugins.openai_models import AsyncChat
from llm.parts import Message, ToolCallPart, ToolResultPart
from llm_anthropic import AsyncClaudeMessages

from ...models.said import MODEL
from .work import HELLO, SMALL, TURNS, fresh_tool, named_tools, search

DISTRIBUTION = "llm"
BESIDE = ("llm-anthropic", "openai", "anthropic")
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
    """Ask for the same calls in turn after turn, then answer."""

    model_id = "fake"
    supports_tools = True

    def __init__(self, text: str, turns: int, calls: int = 1) -> None:
        self.text = text
        self.turns = turns
        self.calls = calls
        self.turn = 0
        self.given: list[Message] = []

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any
    ) -> AsyncIterator[str]:
        """Give the next turn."""
        self.given = prompt.messages
        if self.turn < self.turns:
            first = self.turn * self.calls
            for number in range(self.calls):
                response.add_tool_call(_request(self.text, first + number))
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


async def _run(model: _Model) -> list[Message]:
    """Run a chain, and give what the model was given at last.

    Nothing is logged to a database unless it is asked for.
    """
    await model.chain("go", tools=[_search], stream=False).text()
    return model.given


def loop(text: str, turns: int) -> int:
    """Run a chain."""
    return len(asyncio.run(_run(_Model(text, turns))))


def at_once(text: str, calls: int, times: int) -> list[str]:
    """Run a chain, which runs the calls of a turn at once by itself."""

    async def main() -> list[Message]:
        given: list[Message] = []
        for _ in range(times):
            given = await _run(_Model(text, 1, calls))
        return given

    parts = [part for message in asyncio.run(main()) for part in message.parts]
    return [part.output for part in parts if isinstance(part, ToolResultPart)]


# Both make a client for each request.


def _chat(url: str) -> AsyncChat:
    return AsyncChat(MODEL, key="none", api_base=f"{url}/v1", supports_tools=True)


def _anthropic(url: str) -> AsyncClaudeMessages:
    model = AsyncClaudeMessages(MODEL, base_url=url)
    model.key = "none"
    return model


MODELS = {"chat": _chat, "Anthropic": _anthropic}


async def stream(model: Any) -> tuple[int, str]:
    """Read the events; the response puts the text together."""
    response = model.prompt(HELLO)
    pieces = 0
    async for event in response.astream_events():
        pieces += event.type == "text"
    return pieces, await response.text()


def history() -> list[Message]:
    """Make the messages that a chain would have made."""
    messages = [llm.user("go")]
    for turn in range(TURNS):
        call = ToolCallPart("search", json.loads(SMALL), tool_call_id=f"c{turn}")
        messages.append(llm.assistant(call))
        messages.append(llm.tool_message(ToolResultPart("search", "3", tool_call_id=f"c{turn}")))
    return [*messages, llm.assistant("done"), llm.user("go on")]


SAVED = None  # conversations are kept as rows of a database


async def send(model: Any, history: list[Message]) -> str:
    """Prompt with messages."""
    text: str = await model.prompt(messages=history, stream=False).text()
    return text


async def offer(model: Any) -> str:
    """Prompt with tools."""
    tools = [Tool.function(function, name=name) for name, function in named_tools()]
    text: str = await model.prompt(HELLO, tools=tools, stream=False).text()
    return text
