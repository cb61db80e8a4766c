"""Many conversations at once against a stand-in for a provider: `python -m tests.benchmarks.load`.

A server in a process of its own streams recorded answers on the loopback. The same conversations go
through each SDK and through plain `httpx2`, which the SDKs are built on, with this library and
without it; only the processor's time of the client counts. What the library adds to what the
transport takes is its share. Needs the SDKs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx

from lutum_py import AssistantTurn, Finished, Message, Session, TurnRequest
from lutum_py.dialects import sse
from lutum_py.streaming import StreamEvent

from ..models import wires as sdks
from ..models.said import MODEL
from .standin import standing_in, written
from .wire import WIRES, Dialect, Wire, recorded_streams

REQUEST: Final = TurnRequest(items=[Message("user", "Hello")])


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is about.

    Attributes:
        wire: The dialect.
        url: Where the server is.
        conversations: How many go on at once.
        turns: How many answers each of them gets.
    """

    wire: Wire
    url: str
    conversations: int
    turns: int

    @property
    def path(self) -> str:
        """The path of a request without an SDK."""
        return PATHS[self.wire.dialect.NAME]


PATHS: Final = {
    "openai_chat": "/chat/completions",
    "openai_responses": "/responses",
    "anthropic_messages": "/messages",
    "gemini_generate_content": ":streamGenerateContent",
}


class PlainModel:
    """A model by httpx and a `StreamDecoder`, as one writes it without an SDK."""

    def __init__(self, client: httpx.AsyncClient, setting: Setting) -> None:
        self.client = client
        self.url = f"{setting.url}/v1{setting.path}"
        self.dialect: Dialect = setting.wire.dialect

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Be a model; it is only asked for streams."""
        raise NotImplementedError

    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Send a request, and give the events of the answer."""
        body = self.dialect.encode_request(request)
        decoder: Any = self.dialect.StreamDecoder()
        async with self.client.stream("POST", self.url, json=body) as response:
            async for event in sse.aevents(response.aiter_bytes()):
                for each in decoder.feed(event):
                    yield each
        for each in decoder.close():
            yield each


async def talk(model: Any, setting: Setting) -> None:
    """Have one conversation: sessions, streamed turns, a transcript that grows."""
    session = Session()
    for _ in range(setting.turns):
        session.push_user("Hello")
        outcome = await session.text_turn(model).stream().collect()
        assert isinstance(outcome, Finished)


async def at_once(one: Callable[[], Awaitable[None]], setting: Setting) -> float:
    """Have all conversations at once; gives the processor's time."""
    gc.collect()
    start = time.process_time()
    await asyncio.gather(*[one() for _ in range(setting.conversations)])
    return time.process_time() - start


async def by_httpx(setting: Setting) -> tuple[float, float]:
    """Measure plain httpx: alone, where each event is parsed, and with the library."""
    limits = httpx.Limits(max_connections=setting.conversations)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        model = PlainModel(client, setting)
        body = setting.wire.dialect.encode_request(REQUEST)

        async def alone() -> None:
            for _ in range(setting.turns):
                async with client.stream("POST", model.url, json=body) as response:
                    async for line in response.aiter_lines():
                        if line.startswith("data:") and line != "data: [DONE]":
                            json.loads(line[5:])

        await talk(model, setting)
        await alone()
        return (
            await at_once(alone, setting),
            await at_once(lambda: talk(model, setting), setting),
        )


async def by_sdk(setting: Setting) -> tuple[float, float]:
    """Measure the SDK: alone, with the very arguments that the library gives it, and with it."""
    sdk = next(each for each in sdks.WIRES if each.dialect is setting.wire.dialect)
    async with sdk.client(setting.url, "stream") as client:
        model: Any = sdk.model(client, MODEL)
        arguments = model._stream_arguments(model._prepare(REQUEST))

        async def alone() -> None:
            for _ in range(setting.turns):
                async for _ in await model._async.streamed(**arguments):
                    pass

        await talk(model, setting)
        await alone()
        return (
            await at_once(alone, setting),
            await at_once(lambda: talk(model, setting), setting),
        )


def answers_of(wire: Wire) -> list[list[str]]:
    """Give the recorded answers that are text only; where there are none, one that is made up."""
    found: list[list[str]] = []
    for stream in recorded_streams(wire.dialect.NAME):
        decoder = wire.dialect.StreamDecoder()
        for event in stream:
            decoder.feed(event)
        if not decoder.finish().tool_calls:
            found.append(stream)
    return found or [wire.stream(60)]


def memory(conversations: int, turns: int) -> tuple[float, float, float]:
    """Measure what conversations hold.

    Returns:
        The bytes of one before its first turn, the bytes of a turn, and of its JSON.
    """
    answers = [(wire, stream) for wire in WIRES for stream in answers_of(wire)]
    sessions: list[Session] = []
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(conversations):
            session = Session()
            session.push_user("Hello")
            sessions.append(session)
        started, _ = tracemalloc.get_traced_memory()
        given = cycle(answers)
        for session in sessions:
            for _ in range(turns):
                wire, stream = next(given)
                decoder = wire.dialect.StreamDecoder()
                for event in stream:
                    decoder.feed(event)
                session.transcript.append_turn(decoder.finish())
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = sum(len(session.transcript.dump_json()) for session in sessions)
    every = conversations * turns
    return (started - before) / conversations, (after - started) / every, size / every


async def measure(url: str, conversations: int, turns: int) -> dict[str, Any]:
    """Measure every dialect both ways, and print."""
    figures: dict[str, Any] = {}
    for wire in WIRES:
        setting = Setting(wire, url, conversations, turns)
        for way, run in (("httpx2", by_httpx), ("SDK", by_sdk)):
            alone, together = await run(setting)
            answers = conversations * turns
            share = 1 - alone / together
            print(
                f"{wire.name:10} {way:6} {alone / answers * 1e3:8.2f} ms "
                f"{together / answers * 1e3:8.2f} ms {share:7.0%}",
                flush=True,
            )
            figures[f"{wire.name}, {way}"] = {
                "alone": alone / answers,
                "together": together / answers,
                "share": share,
            }
    return figures


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.load", description=__doc__)
    parser.add_argument("--conversations", type=int, default=500, help="how many go on at once")
    parser.add_argument("--turns", type=int, default=2, help="how many answers each of them gets")
    parser.add_argument("--seconds", type=float, default=300, help="give up after this time")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    answers = {wire.dialect.NAME: answers_of(wire) for wire in WIRES}
    sent = {
        PATHS[name]: [[written(event) for event in stream] for stream in streams]
        for name, streams in answers.items()
    }
    for name, streams in answers.items():
        print(
            f"{name}: {len(streams)} answers of {sum(map(len, streams)) / len(streams):.0f} events"
        )
    with standing_in(sent) as url:
        print(f"{options.conversations} conversations at once, a turn: alone, with lutum_py, share")
        work = measure(url, options.conversations, options.turns)
        figures = asyncio.run(asyncio.wait_for(work, options.seconds))
    empty, turn, size = memory(1000, 10)
    print(f"memory: {empty:.0f} bytes a conversation, {turn:.0f} a turn, whose JSON has {size:.0f}")
    if options.json:
        held = {"conversation": empty, "turn": turn, "json": size}
        told = {"conversations": options.conversations, "rows": figures, "memory": held}
        options.json.write_text(json.dumps(told, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
