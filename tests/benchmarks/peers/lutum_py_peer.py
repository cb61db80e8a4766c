"""lutum_py itself, measured like the others."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai

from lutum_py import (
    AssistantTurn,
    Finished,
    Message,
    NeedsTools,
    Session,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    TurnRequest,
    tool_fn,
)
from lutum_py.execution import run
from lutum_py.models import Anthropic, OpenAIChat
from lutum_py.streaming import TextDelta, TurnFinished

from ...models.said import MODEL
from .. import ours
from .work import HELLO, SMALL, TURNS, fresh_tool, named_tools

DISTRIBUTION = "lutum-py"
BESIDE = ("openai", "anthropic")
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


class _Model:
    """Ask for many calls, then answer."""

    def __init__(self, text: str, calls: int) -> None:
        self.text = text
        self.calls = calls
        self.given: TurnRequest | None = None

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Give the next turn."""
        first, self.given = self.given is None, request
        if not first:
            return AssistantTurn(text="done")
        return AssistantTurn(
            tool_calls=[
                ToolMetadata(id=f"c{number}", name="search", arguments=self.text)
                for number in range(self.calls)
            ]
        )


async def _round(text: str, calls: int) -> TurnRequest | None:
    model, session = _Model(text, calls), Session()
    session.push_user("go")
    while True:
        match await session.text_turn(model).tools(ours.Tools).collect():
            case NeedsTools(round):
                plan = await round.apply_hooks(ours.hooks)
                await run(plan)
                plan.commit(session)
            case Finished():
                return model.given


def at_once(text: str, calls: int, times: int) -> list[str]:
    """Run the plan of a round, with hooks, deadlines and an outcome for each call."""

    async def main() -> TurnRequest | None:
        given = None
        for _ in range(times):
            given = await _round(text, calls)
        return given

    given = asyncio.run(main())
    assert given is not None
    return [item.model_text for item in given.items if isinstance(item, ToolResult)]


def _chat(url: str) -> OpenAIChat:
    return OpenAIChat(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none"), MODEL)


def _anthropic(url: str) -> Anthropic:
    return Anthropic(anthropic.AsyncAnthropic(base_url=url, api_key="none"), MODEL)


MODELS = {"chat": _chat, "Anthropic": _anthropic}


async def stream(model: Any) -> tuple[int, str]:
    """Read the events, of which the last has the turn."""
    pieces, text = 0, ""
    async for event in model.stream(TurnRequest(items=[Message("user", HELLO)])):
        match event:
            case TextDelta():
                pieces += 1
            case TurnFinished(turn):
                text = turn.text or ""
    return pieces, text


def history() -> Session:
    """Go through the conversation; what a request says of an item is kept beside it."""
    session = ours.conversation(SMALL, TURNS)
    session.push_user("go on")
    return session


def _saved(session: Session) -> str:
    return session.transcript.dump_json()


def _loaded(text: str) -> Session:
    return Session(Transcript.load_json(text))


SAVED = (_saved, _loaded)


async def send(model: Any, history: Session) -> str:
    """Send one request without a builder."""
    turn: AssistantTurn = await model.respond(TurnRequest(items=history._request_items()))
    return turn.text or ""


async def offer(model: Any) -> str:
    """Send the definitions of a toolset that is made of them."""
    made = [tool_fn(name=name)(function) for name, function in named_tools()]
    definitions = Toolset.of("Many", *made).definitions()
    request = TurnRequest(items=[Message("user", HELLO)], tools=definitions)
    turn: AssistantTurn = await model.respond(request)
    return turn.text or ""
