"""langchain-core: `@tool` and `ainvoke` for one call, a loop by hand around both and a model.

The models of the providers are distributions of their own, made by the same people.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.output_parsers.openai_tools import parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ...models.said import MODEL
from .work import HELLO, SMALL, TURNS, fresh_tool, named_tools, search

DISTRIBUTION = "langchain-core"
BESIDE = ("langchain-openai", "langchain-anthropic", "openai", "anthropic")
IMPORT = "from langchain_core.tools import tool"

# Traces are off unless the environment turns them on.
os.environ["LANGSMITH_TRACING"] = "false"

# `parse_docstring` gives the model the descriptions of the parameters, as the others do by default.
_search = tool(parse_docstring=True)(search)


def declare(times: int) -> None:
    """Make the tool and its model."""
    for _ in range(times):
        tool(parse_docstring=True)(fresh_tool())


def define(times: int) -> None:
    """Make the tool, and the schema that a chat model is given."""
    for _ in range(times):
        convert_to_openai_tool(tool(parse_docstring=True)(fresh_tool()))


def _raw(text: str, turn: int) -> dict[str, Any]:
    return {"id": f"c{turn}", "function": {"name": "search", "arguments": text}}


def call(text: str, times: int) -> str:
    """Parse the provider's call, invoke the tool with it, and read the message that it gives."""
    raw = _raw(text, 0)

    async def main() -> str:
        answer = ""
        for _ in range(times):
            called: Any = parse_tool_call(raw)
            message = await _search.ainvoke(called)
            answer = message.content
        return answer

    return asyncio.run(main())


class _Model(BaseChatModel):
    """Ask for the same calls in turn after turn, then answer.

    The fake models of the package only answer synchronously, so that each turn would be sent to a
    thread. This one is asynchronous, as the models of the providers are.
    """

    text: str
    turns: int
    calls: int = 1
    turn: int = 0
    given: Sequence[BaseMessage] = ()

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.given = messages
        if self.turn < self.turns:
            first = self.turn * self.calls
            # What the integrations do with an answer of their provider.
            raw = [_raw(self.text, first + number) for number in range(self.calls)]
            self.turn += 1
            message = AIMessage(content="", tool_calls=[parse_tool_call(each) for each in raw])
        else:
            message = AIMessage(content="done")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("nothing is synchronous")

    @property
    def _llm_type(self) -> str:
        return "fake"


async def _in_order(requests: list[Any]) -> list[Any]:
    return [await _search.ainvoke(request) for request in requests]


async def _all_at_once(requests: list[Any]) -> list[Any]:
    return await asyncio.gather(*[_search.ainvoke(request) for request in requests])


async def _run(
    model: _Model, answer_all: Callable[[list[Any]], Awaitable[list[Any]]]
) -> Sequence[BaseMessage]:
    """Go through a conversation, and give what the model was given at last.

    langchain-core has no loop of its own, so its user writes this.
    """
    # What `bind_tools` of the integrations does.
    bound = model.bind(tools=[convert_to_openai_tool(_search)])
    messages: list[BaseMessage] = [HumanMessage("go")]
    while True:
        answer = await bound.ainvoke(messages)
        if not answer.tool_calls:
            return model.given
        messages.append(answer)
        messages += await answer_all(answer.tool_calls)


def loop(text: str, turns: int) -> int:
    """Run the calls one after the other."""
    return len(asyncio.run(_run(_Model(text=text, turns=turns), _in_order)))


def at_once(text: str, calls: int, times: int) -> list[str]:
    """Run the calls of a turn by `gather`."""

    async def main() -> Sequence[BaseMessage]:
        given: Sequence[BaseMessage] = ()
        for _ in range(times):
            given = await _run(_Model(text=text, turns=1, calls=calls), _all_at_once)
        return given

    return [message.text for message in asyncio.run(main()) if isinstance(message, ToolMessage)]


def _chat(url: str) -> ChatOpenAI:
    return ChatOpenAI(
        model=MODEL, base_url=f"{url}/v1", api_key=SecretStr("none"), stream_usage=True
    )


def _anthropic(url: str) -> ChatAnthropic:
    return ChatAnthropic(model=MODEL, base_url=url, api_key=SecretStr("none"))


MODELS = {"chat": _chat, "Anthropic": _anthropic}


async def stream(model: BaseChatModel) -> tuple[int, str]:
    """Add the chunks up, which is how the documentation makes the message of them."""
    pieces = 0
    whole: AIMessageChunk | None = None
    async for chunk in model.astream(HELLO):
        pieces += bool(chunk.text)
        whole = chunk if whole is None else whole + chunk
    return pieces, "" if whole is None else whole.text


def history() -> list[BaseMessage]:
    """Make the messages that the loop would have made."""
    messages: list[BaseMessage] = [HumanMessage("go")]
    for turn in range(TURNS):
        calls: Any = [parse_tool_call(_raw(SMALL, turn))]
        messages.append(AIMessage(content="", tool_calls=calls))
        messages.append(ToolMessage("3", tool_call_id=f"c{turn}", name="search"))
    return [*messages, AIMessage("done"), HumanMessage("go on")]


def _saved(messages: list[BaseMessage]) -> str:
    return json.dumps(messages_to_dict(messages))


def _loaded(text: str) -> list[BaseMessage]:
    return messages_from_dict(json.loads(text))


SAVED = (_saved, _loaded)


async def send(model: BaseChatModel, history: list[BaseMessage]) -> str:
    """Invoke the model."""
    return (await model.ainvoke(history)).text


async def offer(model: BaseChatModel) -> str:
    """Bind them to the model, and invoke that."""
    tools = [tool(name, parse_docstring=True)(each) for name, each in named_tools()]
    answer = await model.bind_tools(tools).ainvoke(HELLO)
    return answer.text
