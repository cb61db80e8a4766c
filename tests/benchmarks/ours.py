"""The same work by the library, through its public API only."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

from pydantic_core import to_json

from lutum_py import (
    AssistantTurn,
    Finished,
    HookSet,
    NeedsTools,
    RunNormally,
    Session,
    ToolMetadata,
    Toolset,
    Transcript,
    TurnRequest,
    tool,
    tool_fn,
)
from lutum_py.dialects import openai_chat
from lutum_py.execution import execute_all

from ..models.said import Payload, Said
from .floors import Place
from .wire import ARGUMENTS, Wire

__all__ = [
    "Batch",
    "call_async",
    "call_sync",
    "check",
    "conversation",
    "declare",
    "decode",
    "events",
    "hooks_of",
    "lines",
    "load",
    "loop",
    "many_tools",
    "read",
    "render",
    "round_async",
    "round_sync",
    "saved",
    "wire_round",
]


@tool_fn
async def search(
    query: str, max_results: int = 5, site: str | None = None, exact: bool = False
) -> int:
    """Search the web."""
    return max_results


@tool_fn
def search_sync(
    query: str, max_results: int = 5, site: str | None = None, exact: bool = False
) -> int:
    """Search the web."""
    return max_results


@tool_fn
async def find(
    queries: list[str], near: Place, limits: dict[str, int] | None = None, exact: bool = False
) -> int:
    """Search around a place."""
    return len(queries)


class Tools(Toolset):
    """The tools that are measured."""

    search = tool(search)
    search_sync = tool(search_sync)
    find = tool(find)


hooks = Tools.HookSet()


@hooks.on(Tools.search)
@hooks.on(Tools.search_sync)
@hooks.on(Tools.find)
def pass_on(metadata: ToolMetadata, input: object) -> RunNormally[object]:
    """Let every call pass."""
    return RunNormally(input)


async_hooks = Tools.HookSet()


@async_hooks.on(Tools.search)
@async_hooks.on(Tools.find)
async def pass_on_later(metadata: ToolMetadata, input: object) -> RunNormally[object]:
    """Let every call pass."""
    return RunNormally(input)


def hooks_of(count: int, *, later: bool = False) -> HookSet[Tools]:
    """Make a hook set in which each tool has so many hooks, which let every call pass."""
    made = Tools.HookSet()
    for _ in range(count):
        for selector in (Tools.search, Tools.find):
            made.on(selector)(pass_on_later if later else pass_on)
    return made


def declare(times: int) -> None:
    """Declare a tool of four parameters with a Google docstring, and ask for its schema."""
    for _ in range(times):

        def web_search(
            query: str, max_results: int = 5, site: str | None = None, exact: bool = False
        ) -> int:
            """Search the web.

            Args:
                query: What to search for.
                max_results: An upper bound on hits.
                site: Where to search.
                exact: Whether to take the query literally.
            """
            return max_results

        _ = tool_fn(web_search).definition.input_schema


_numbers = count()


def many_tools(times: int) -> None:
    """Declare 500 tools of four parameters, and make the body of the first request with them."""
    for _ in range(times):
        made: list[Any] = []
        for number in range(500):

            def web_search(
                query: str, max_results: int = number, site: str | None = None, exact: bool = False
            ) -> int:
                """Search the web.

                Args:
                    query: What to search for.
                    max_results: An upper bound on hits.
                    site: Where to search.
                    exact: Whether to take words as they are.
                """
                return max_results

            made.append(tool_fn(name=f"tool_{next(_numbers)}")(web_search))
        definitions = Toolset.of("Many", *made).definitions()
        to_json(openai_chat.encode_request(TurnRequest(items=(), tools=definitions)))


def decode(text: str, times: int) -> None:
    """Decode the arguments to a call object."""
    metadata = ToolMetadata(id="c1", name="search", arguments=text)
    parse = Tools.parse_tool_call
    for _ in range(times):
        parse(metadata)


def call_async(text: str, times: int, *, name: str = "search") -> None:
    """Decode, run, and make the result."""
    metadata = ToolMetadata(id="c1", name=name, arguments=text)

    async def main() -> None:
        parse = Tools.parse_tool_call
        for _ in range(times):
            await parse(metadata).call()

    asyncio.run(main())


def call_sync(text: str, times: int) -> None:
    """Decode, run a plain function, and make the result."""
    metadata = ToolMetadata(id="c1", name="search_sync", arguments=text)
    parse = Tools.parse_tool_call
    for _ in range(times):
        parse(metadata).call_sync()


def _turn_of(texts: list[str], name: str) -> AssistantTurn:
    return AssistantTurn(
        tool_calls=[
            ToolMetadata(id=f"c{index}", name=name, arguments=text)
            for index, text in enumerate(texts)
        ]
    )


def round_async(
    texts: list[str], times: int, *, name: str = "search", hooks: HookSet[Tools] = hooks
) -> None:
    """Read a round, hook it, run it at once, and commit it."""
    turn = _turn_of(texts, name)

    async def main() -> None:
        for _ in range(times):
            outcome = Tools.read_turn(turn)
            assert isinstance(outcome, NeedsTools)
            plan = await outcome.round.apply_hooks(hooks)
            plan.commit(Transcript(), await asyncio.gather(*[c.call() for c in plan.pending]))

    asyncio.run(main())


def round_sync(texts: list[str], times: int) -> None:
    """Read a round, hook it, run it in sequence, and commit it."""
    turn = _turn_of(texts, "search_sync")
    for _ in range(times):
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        plan = outcome.round.apply_hooks_sync(hooks)
        plan.commit(Transcript(), [call.call_sync() for call in plan.pending])


class _Model:
    """Ask for the same call again and again, then answer."""

    def __init__(self, text: str, turns: int, name: str) -> None:
        self.text = text
        self.name = name
        self.turns = turns
        self.turn = 0

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Give the next turn."""
        turn = self.turn
        self.turn += 1
        if turn == self.turns:
            return AssistantTurn(text="done")
        call = ToolMetadata(id=f"c{turn}", name=self.name, arguments=self.text)
        return AssistantTurn(tool_calls=(call,))


def conversation(text: str, turns: int, name: str = "search") -> Session:
    """Go through a conversation: session, builder, hooks, commit."""

    async def main() -> Session:
        session = Session()
        session.push_user("go")
        model = _Model(text, turns, name)
        while True:
            match await session.text_turn(model).tools(Tools).collect():
                case NeedsTools(round):
                    plan = await round.apply_hooks(hooks)
                    plan.commit(session, [await call.call() for call in plan.pending])
                case Finished():
                    return session

    return asyncio.run(main())


def loop(text: str, turns: int, *, name: str = "search") -> None:
    """Go through a conversation, and let it go."""
    conversation(text, turns, name)


def read(wire: Wire, response: Payload, times: int) -> None:
    """Decode a response."""
    for _ in range(times):
        wire.dialect.decode(response)


def wire_round(wire: Wire, response: Payload, times: int) -> None:
    """Decode a response, hook its calls, run them at once, and commit them."""

    async def main() -> None:
        for _ in range(times):
            outcome = Tools.read_turn(wire.dialect.decode(response))
            assert isinstance(outcome, NeedsTools)
            plan = await outcome.round.apply_hooks(async_hooks)
            plan.commit(Transcript(), await asyncio.gather(*[c.call() for c in plan.pending]))

    asyncio.run(main())


def events(wire: Wire, stream: list[str], times: int) -> None:
    """Read the events of a stream, and the turn in the end."""
    for _ in range(times):
        decoder = wire.dialect.StreamDecoder()
        for event in stream:
            decoder.feed(event)
        decoder.finish()


def lines(wire: Wire, stream: list[bytes], times: int) -> None:
    """Read the raw lines of a stream, and the turn in the end."""
    for _ in range(times):
        decoder = wire.dialect.StreamDecoder()
        for line in stream:
            decoder.feed_line(line)
        decoder.finish()


def render(wire: Wire, request: TurnRequest, times: int) -> None:
    """Make the body of a request."""
    for _ in range(times):
        wire.dialect.encode_request(request)


def saved(wire: Wire, turns: int) -> str:
    """Save a conversation of turns with a text and a call, and of their results."""
    transcript = Transcript()
    for number in range(turns):
        said = Said(text="Let me look.", calls=((f"c{number}", "search", ARGUMENTS),))
        response: Payload = json.loads(json.dumps(wire.whole(said)))
        outcome = Tools.read_turn(wire.dialect.decode(response))
        assert isinstance(outcome, NeedsTools)
        outcome.round.commit(transcript, [outcome.round.expect_one().complete(3)])
    return transcript.dump_json()


def load(text: str, times: int) -> None:
    """Load a saved conversation."""
    for _ in range(times):
        Transcript.load_json(text)


def check(wire: Wire, body: Payload, times: int) -> None:
    """Look for what a provider would refuse in the body of a request."""
    for _ in range(times):
        wire.dialect.check(body)


class Batch:
    """Decoded calls that are run once.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self.metadata = [
            ToolMetadata(id=f"c{index}", name="search", arguments='{"query":"hello"}')
            for index in range(size)
        ]
        self.calls: list[Any] = []

    def decode(self) -> None:
        """Make the calls anew."""
        self.calls = [Tools.parse_tool_call(each) for each in self.metadata]

    def gather(self, times: int) -> None:
        """Run them by `asyncio.gather`: no deadline, no token, and one failure is all of them."""

        async def main() -> None:
            await asyncio.gather(*[call.call() for call in self.calls])

        asyncio.run(main())

    def execute(self, times: int) -> None:
        """Run them by `execute_all`."""
        asyncio.run(execute_all(self.calls))
