"""langchain-core: `@tool` and `ainvoke` for one call, a loop by hand around both and a model."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers.openai_tools import parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from .work import fresh_tool, search

__all__ = ["DISTRIBUTION", "IMPORT", "call", "declare", "define", "loop"]

DISTRIBUTION = "langchain-core"
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
    """Ask for the same call again and again, then answer.

    The fake models of the package only answer synchronously, so that each turn would be sent to a
    thread. This one is asynchronous, as the models of the providers are.
    """

    text: str
    turns: int
    turn: int = 0
    given: int = 0

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.given = len(messages)
        if self.turn < self.turns:
            # What the integrations do with an answer of their provider.
            calls = [parse_tool_call(_raw(self.text, self.turn))]
            self.turn += 1
            message = AIMessage(content="", tool_calls=calls)
        else:
            message = AIMessage(content="done")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("nothing is synchronous")

    @property
    def _llm_type(self) -> str:
        return "fake"


def loop(text: str, turns: int) -> int:
    """Go through a conversation: langchain-core has no loop of its own, so its user writes this."""
    model = _Model(text=text, turns=turns)

    async def main() -> None:
        # What `bind_tools` of the integrations does.
        bound = model.bind(tools=[convert_to_openai_tool(_search)])
        messages: list[BaseMessage] = [HumanMessage("go")]
        while True:
            answer = await bound.ainvoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                return
            for request in answer.tool_calls:
                messages.append(await _search.ainvoke(request))

    asyncio.run(main())
    return model.given
