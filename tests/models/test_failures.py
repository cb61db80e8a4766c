"""Whatever goes wrong between here and the provider is told, and leaves the session as it was."""

from __future__ import annotations

import asyncio
import gc
import json
from functools import wraps
from operator import attrgetter
from typing import Any

import pytest

from lutum_py import Finished, Session
from lutum_py.errors import DialectError
from lutum_py.streaming import TextDelta

from .loopback import EVENTS, PAGE, Loopback, Reply, sse
from .said import MODEL, Said
from .sums import Sums
from .wires import WIRES, Wire, in_each, outcome_of

CALLS = Said(text="Let me see.", calls=(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2})))
ANSWER = Said(text="Here I am again.")
STREAMED = pytest.mark.parametrize("mode", ["stream", "stream_sync"])
WHOLE = pytest.mark.parametrize("mode", ["collect", "collect_sync"])
SDKS = {"openai", "anthropic", "google", "httpx", "httpx2"}


async def fail_then_go_on(
    wire: Wire, mode: str, server: Loopback, reply: Reply, expected: type[Exception]
) -> Exception:
    """Ask once and get the error, ask again and get the answer; nothing of the first try stays."""
    session = Session()
    session.push_user("Are you there?")
    session.push_ephemeral_user("Be quick.")
    before = session.transcript.dump_json()
    server.replies.extend([reply, wire.reply(ANSWER, mode), wire.reply(ANSWER, mode)])
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL)).tools(Sums)
        with pytest.raises(expected) as caught:
            await outcome_of(turn, mode)
        assert session.transcript.dump_json() == before
        outcome = await outcome_of(turn, mode)
        assert isinstance(outcome, Finished)
        assert outcome.result.text == ANSWER.text
        await outcome_of(turn, mode)
    sent = ["Be quick." in json.dumps(received.body) for received in server.received]
    assert sent == [True, True, False]
    assert server.refusals == []
    return caught.value


def is_told(error: Exception) -> bool:
    """Whether an error is ours or of the SDK, its HTTP client included."""
    return isinstance(error, DialectError) or type(error).__module__.split(".")[0] in SDKS


@in_each("status", [400, 429, 500])
async def test_an_error_of_the_provider_is_the_sdks_own(
    wire: Wire, mode: str, server: Loopback, status: int
) -> None:
    """A status of failure raises the SDK's error; what was ephemeral is in the next request."""
    said = {"type": "failed", "message": "it did not work", "code": status, "status": "FAILED"}
    reply = Reply(text=json.dumps({"type": "error", "error": said}), status=status)
    error: Any = await fail_then_go_on(wire, mode, server, reply, wire.status_error)
    assert status in (getattr(error, "status_code", None), getattr(error, "code", None))
    assert "it did not work" in str(error)


async def test_a_page_with_status_200_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """An HTML page where JSON is expected is an error that shows the page, or says what lacks."""
    reply = Reply(text=PAGE, content_type="text/html")
    await fail_then_go_on(wire, mode, server, reply, DialectError)


@WHOLE
async def test_json_that_breaks_off_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """Half of a response is an error."""
    reply = Reply(text=json.dumps(wire.whole(ANSWER))[:-9])
    await fail_then_go_on(wire, mode, server, reply, DialectError)


@WHOLE
@in_each("text", ["{}", "[]", "null", '"yes"', '{"error": {"message": "no"}}'])
async def test_json_that_is_no_response_is_no_turn(
    wire: Wire, mode: str, server: Loopback, text: str
) -> None:
    """Another JSON than that of a response is an error."""
    assert is_told(await fail_then_go_on(wire, mode, server, Reply(text=text), Exception))


async def test_a_field_of_the_wrong_kind_is_no_turn(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """A response with a number where another kind belongs is an error that says where."""
    candidates = [{"content": {"parts": [{"text": 7}]}}]
    odd = {"choices": 7, "output": 7, "content": 7, "candidates": candidates, "status": "completed"}
    reply = Reply(text=json.dumps(odd))
    if mode.startswith("stream"):
        events: dict[str, dict[str, Any]] = {
            "openai_chat": {"choices": 7},
            "openai_responses": {"type": "response.completed", "response": odd},
            "anthropic_messages": {"type": "message_start", "message": odd},
            "gemini_generate_content": {"candidates": candidates},
        }
        reply = wire.stream([events[wire.name]], whole=False)
    error = await fail_then_go_on(wire, mode, server, reply, DialectError)
    assert isinstance(error, DialectError)
    assert error.where
    assert (error.turn is None) == (mode in ("collect", "collect_sync"))


@STREAMED
async def test_a_stream_that_ends_early_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """Wherever a stream stops before its end, there is an error and no turn."""
    events = wire.events(CALLS)
    last = {"openai_chat": 2}.get(wire.name, 1)
    for length in range(len(events) - last + 1):
        reply = wire.stream(events[:length], whole=False)
        server.received.clear()
        error = await fail_then_go_on(wire, mode, server, reply, DialectError)
        assert isinstance(error, DialectError)
        assert error.where


@STREAMED
async def test_a_connection_that_breaks_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """A connection that breaks inside a stream is an error."""
    reply = wire.stream(wire.events(CALLS)[:3], missing=99, whole=False)
    assert is_told(await fail_then_go_on(wire, mode, server, reply, Exception))


@STREAMED
async def test_an_event_that_is_no_json_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """An event with broken JSON is an error that says which event it was, and what came before."""
    whole = wire.stream(wire.events(CALLS)[:2], whole=False)
    name = "event: content_block_delta\n" if wire.name == "anthropic_messages" else ""
    reply = Reply(text=f'{whole.text}{name}data: {{"type": "cont\n\n', content_type=EVENTS)
    error = await fail_then_go_on(wire, mode, server, reply, DialectError)
    assert isinstance(error, DialectError)
    # The SDK of Anthropic keeps the ping before it to itself.
    assert error.where in ("event 1", "event 2")
    assert error.turn is not None


@STREAMED
async def test_a_stream_that_ends_within_a_character_is_no_turn(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """Bytes that are no text are an error of the dialect, with what came before."""
    whole = wire.stream(wire.events(CALLS)[:2], whole=False)
    raw = f'{whole.text}event: content_block_delta\ndata: {{"type": "\N{GRINNING FACE}'.encode()
    reply = Reply(text="", raw=raw[:-1], content_type=EVENTS)
    error = await fail_then_go_on(wire, mode, server, reply, DialectError)
    assert isinstance(error, DialectError)
    assert error.turn is not None


@STREAMED
async def test_an_error_event_is_no_turn(wire: Wire, mode: str, server: Loopback) -> None:
    """An error that the provider reports inside a stream is raised, with its words."""
    failed = {"message": "overloaded", "code": 503, "status": "UNAVAILABLE"}
    event: dict[str, Any] = {"error": failed}
    if wire.name != "gemini_generate_content":
        event |= {"type": "error", "message": "overloaded"}
    named = wire.name == "anthropic_messages"
    text = wire.stream(wire.events(CALLS)[:3], whole=False).text + sse([event], named=named)
    reply = Reply(text=text, content_type=EVENTS)
    error = await fail_then_go_on(wire, mode, server, reply, Exception)
    assert is_told(error)
    assert "overloaded" in str(error)


@STREAMED
async def test_an_event_of_an_unknown_type_is_passed_over(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """What is new on the wire does not break a turn."""
    events = wire.events(ANSWER)
    events.insert(1, {"type": "sparkle", "sequence_number": 99, "sparkles": 3})
    server.replies.append(wire.stream(events))
    session = Session()
    session.push_user("Hello")
    async with wire.client(server.url, mode) as client:
        outcome = await outcome_of(session.text_turn(wire.model(client, MODEL)), mode)
    assert outcome.result.text == ANSWER.text


@STREAMED
async def test_a_reader_that_stops_early_closes_the_connection(
    wire: Wire, mode: str, server: Loopback
) -> None:
    """Who leaves a stream in the middle leaves no connection open, and no turn behind."""
    events = wire.events(ANSWER)[:-1]
    started = wire.stream(events, whole=False)
    server.replies.append(Reply(text=started.text, content_type=EVENTS, endless=": wait\n\n" * 99))
    session = Session()
    session.push_user("Hello")
    async with wire.client(server.url, mode) as client:
        stream: Any = getattr(session.text_turn(wire.model(client, MODEL)), mode)()
        if mode == "stream":
            reader = aiter(stream)
            while not isinstance(await anext(reader), TextDelta):
                pass
            await reader.aclose()
        else:
            sync_reader = iter(stream)
            while not isinstance(next(sync_reader), TextDelta):
                pass
            sync_reader.close()
        assert await is_left(server)
    assert len(session.transcript) == 1


async def is_left(server: Loopback) -> bool:
    """Wait until the client has gone; google-genai leaves that to the garbage collector."""
    for _ in range(200):
        gc.collect()
        if await asyncio.to_thread(server.left.wait, 0.1):
            return True
    return False


def test_the_server_refuses_what_a_provider_refuses() -> None:
    """What breaks the rules of a dialect, or the types of its SDK, is found by these tests."""
    for wire in WIRES:
        assert wire.judge(BROKEN[wire.name]) != []


BROKEN: dict[str, dict[str, Any]] = {
    "openai_chat": {"model": MODEL, "messages": [{"role": "user", "content": 7}]},
    "openai_responses": {"model": MODEL, "input": [{"role": "user", "content": 7}]},
    "anthropic_messages": {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]},
    "gemini_generate_content": {"contents": [{"role": "user", "parts": [{"txt": "Hello"}]}]},
}


METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "openai_chat": ("chat.completions", ("create",)),
    "openai_responses": ("responses", ("create",)),
    "anthropic_messages": ("messages", ("create",)),
    "gemini_generate_content": ("models", ("generate_content", "generate_content_stream")),
}
"""What the models call of each client."""


async def test_an_error_that_is_none_of_reading_goes_on_as_it_is(
    wire: Wire, mode: str, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `ValueError` out of the SDK that is about no text comes out itself."""
    own = ValueError("no such region")

    def fail(*_: Any, **__: Any) -> Any:
        raise own

    session = Session()
    session.push_user("Are you there?")
    where, names = METHODS[wire.name]
    async with wire.client(server.url, mode) as client:
        holder = attrgetter(where)(client)
        for name in names:
            monkeypatch.setattr(holder, name, wraps(getattr(holder, name))(fail))
        with pytest.raises(ValueError, match="no such region") as caught:
            await outcome_of(session.text_turn(wire.model(client, MODEL)), mode)
    assert caught.value is own
