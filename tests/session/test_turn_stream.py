"""The laws of a streamed turn: its events, then its outcome; a broken stream adds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest

from lutum_py import AssistantTurn, Session, TurnRequest, Usage
from lutum_py.errors import (
    DialectError,
    DuplicateToolCallIdError,
    LifecycleError,
    MisuseError,
)
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from lutum_py.testing import ScriptedModel
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem
from tests.round_tools import Shop, adds, answer, check_transcript, done, needs, turn

Outcome = Any


class Broken:
    """A model that gives these events, and knows when its stream was closed."""

    def __init__(self, *events: StreamEvent) -> None:
        self.events: Sequence[StreamEvent] = events
        self.closed = 0
        self.kept: Any = None

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        raise NotImplementedError

    def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        self.kept = made = self.pieces()
        return made

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        self.kept = made = self.pieces_sync()
        return made

    async def pieces(self) -> AsyncIterator[StreamEvent]:
        try:
            for event in self.events:
                yield event
        finally:
            self.closed += 1

    def pieces_sync(self) -> Iterator[StreamEvent]:
        try:
            yield from self.events
        finally:
            self.closed += 1


def read_sync(building: Any, take: int | None = None) -> tuple[list[StreamEvent], Any]:
    stream = building.stream_sync()
    events = []
    for event in stream:
        events.append(event)
        if len(events) == take:
            break
    return events, stream


def read_async(building: Any, take: int | None = None) -> tuple[list[StreamEvent], Any]:
    async def main() -> tuple[list[StreamEvent], Any]:
        stream = building.stream()
        events = []
        iterating = stream.__aiter__()
        async for event in iterating:
            events.append(event)
            if len(events) == take:
                break
        await iterating.aclose()
        return events, stream

    return asyncio.run(main())


READ: list[Callable[..., tuple[list[StreamEvent], Any]]] = [read_sync, read_async]
COLLECT: list[Callable[[Any], Outcome]] = [
    lambda building: building.stream_sync().collect(),
    lambda building: asyncio.run(building.stream().collect()),
]
both = pytest.mark.parametrize("read", READ, ids=["sync", "async"])
both_collect = pytest.mark.parametrize("collect", COLLECT, ids=["sync", "async"])


def asked() -> Session:
    session = Session()
    session.push_user("Go")
    return session


@both
def test_a_stream_gives_events_and_then_the_outcome(read: Any) -> None:
    """An answer comes piece by piece, and is in the transcript at the end."""
    session = asked()
    session.push_ephemeral_user("aside")
    said = AssistantTurn(
        items=[
            ReasoningItem("Hm"),
            ReasoningItem(""),
            ServerToolItem("search", {}),
            TextItem("Hi"),
            RefusalItem("no"),
        ],
        usage=Usage(input_tokens=1),
    )
    events, stream = read(session.text_turn(ScriptedModel([said])))
    assert events == [
        ReasoningDelta("Hm"),
        TextDelta("Hi"),
        RefusalDelta("no"),
        UsageReported(Usage(input_tokens=1)),
        TurnFinished(said),
    ]
    assert answer(stream.outcome) == "Hi"
    assert session.transcript[-1] is said
    assert list(session._request_items()) == list(session.transcript)


@both
def test_a_stream_with_calls_gives_a_round(read: Any) -> None:
    """The calls of a streamed turn come in parts, and make the round that `collect` would give."""
    session = asked()
    calls = (*adds(1), ("e", "shout", ""), ("o", "add", "7"), ("s", "shout", "\ud800x"))
    model = ScriptedModel([turn(*calls, text="So")])
    events, stream = read(session.text_turn(model).tools(Shop))
    metadata = stream.outcome.round.turn.tool_calls
    assert events == [
        TextDelta("So"),
        CallStarted(0, "c0", "add"),
        ArgumentsDelta(0, '{"a":0,', {"a": 0}),
        ArgumentsDelta(0, '"b":0}', {"a": 0, "b": 0}),
        CallCompleted(0, metadata[0]),
        CallStarted(1, "e", "shout"),
        CallCompleted(1, metadata[1]),
        CallStarted(2, "o", "add"),
        ArgumentsDelta(2, "7", 7),
        CallCompleted(2, metadata[2]),
        CallStarted(3, "s", "shout"),
        ArgumentsDelta(3, "\ufffd", {}),
        ArgumentsDelta(3, "x", {}),
        CallCompleted(3, metadata[3]),
        TurnFinished(stream.outcome.round.turn),
    ]
    assert len(session.transcript) == 1
    tool_round = needs(stream.outcome)
    tool_round.commit(session, done(tool_round.tool_calls))
    check_transcript(session.transcript)


@both_collect
def test_a_stream_can_be_collected(collect: Any) -> None:
    """`collect` on a stream takes it to its end and gives the outcome."""
    session = asked()
    assert answer(collect(session.text_turn(ScriptedModel([ScriptedModel.text("x")])))) == "x"
    assert len(session.transcript) == 2


def test_collecting_twice_gives_the_same_outcome() -> None:
    """A stream that is at its end gives its outcome again, and asks nobody."""
    model = ScriptedModel([ScriptedModel.text("x")] * 2)

    async def main() -> None:
        stream = asked().text_turn(model).stream()
        assert await stream.collect() is await stream.collect()

    asyncio.run(main())
    stream = asked().text_turn(model).stream_sync()
    assert stream.collect() is stream.collect()
    assert len(model.requests) == 2


@both
def test_there_is_no_outcome_before_the_end(read: Any) -> None:
    """A stream that was left early has no outcome, adds nothing, and closes the model's stream."""
    session = asked()
    model = Broken(TextDelta("a"), TextDelta("b"), TurnFinished(ScriptedModel.text("ab")))
    events, stream = read(session.text_turn(model), 1)
    assert events == [TextDelta("a")]
    with pytest.raises(LifecycleError, match=r"If it was left, .* build another turn"):
        _ = stream.outcome
    assert len(session.transcript) == 1
    assert model.closed == 1


def test_the_models_stream_is_closed_at_once() -> None:
    """A reader that leaves early closes the model's stream then and there, not some time later."""
    model = Broken(TextDelta("a"), TextDelta("b"))

    async def main() -> int:
        iterating = asked().text_turn(model).stream().__aiter__()
        assert await anext(iterating) == TextDelta("a")
        await iterating.aclose()
        return model.closed

    assert asyncio.run(main()) == 1


@both
def test_a_stream_is_read_once(read: Any) -> None:
    """A stream that was started cannot be started again: the model is asked once."""
    model = ScriptedModel([ScriptedModel.text("x")])
    _, stream = read(asked().text_turn(model), 1)
    with pytest.raises(LifecycleError):
        asyncio.run(stream.collect()) if read is read_async else stream.collect()
    assert len(model.requests) == 1


@both_collect
def test_a_stream_that_ends_too_soon_is_an_error(collect: Any) -> None:
    """A stream without a finished turn is the provider's error, and nothing is added."""
    session = asked()
    session.push_ephemeral_user("aside")
    with pytest.raises(DialectError, check=lambda error: error.where == "end") as caught:
        collect(session.text_turn(Broken(TextDelta("Hal"))))
    assert caught.value.where == "end"
    assert len(session.transcript) == 1
    assert len(session._request_items()) == 2


@both
def test_nothing_is_read_past_the_finished_turn(read: Any) -> None:
    """The finished turn ends the stream: what a model sends after it is not added."""
    session = asked()
    last = TurnFinished(ScriptedModel.text("one"))
    model = Broken(last, TextDelta("late"), TurnFinished(ScriptedModel.text("two")))
    events, stream = read(session.text_turn(model))
    assert events == [last]
    assert answer(stream.outcome) == "one"
    assert len(session.transcript) == 2
    assert model.closed == 1


@both_collect
def test_a_streamed_turn_is_checked_like_any_other(collect: Any) -> None:
    """Two calls under one id are refused in a stream too, and nothing is added."""
    session = asked()
    model = Broken(TurnFinished(turn(*adds(1), *adds(1))))
    with pytest.raises(DuplicateToolCallIdError):
        collect(session.text_turn(model).tools(Shop))
    assert (len(session.transcript), model.closed) == (1, 1)


class Plain:
    """A model whose streams are iterators without `close`."""

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        raise NotImplementedError

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        return iter([TurnFinished(ScriptedModel.text("x"))])

    def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        return Once()


class Once:
    def __aiter__(self) -> Once:
        return self

    async def __anext__(self) -> StreamEvent:
        return TurnFinished(ScriptedModel.text("x"))


@both_collect
def test_any_iterator_is_a_stream(collect: Any) -> None:
    """A model's stream need not be a generator."""
    assert answer(collect(asked().text_turn(Plain()))) == "x"


class Mute:
    async def respond(self, request: TurnRequest) -> AssistantTurn:
        raise NotImplementedError


@both_collect
def test_a_model_that_cannot_stream_is_told(collect: Any) -> None:
    """Streaming from a model that cannot is a TypeError that names the method."""
    with pytest.raises(TypeError, match=r"Mute has no `stream\w*`.*\.collect\(\)"):
        collect(asked().text_turn(Mute()))


class AsksAsync:
    async def respond(self, request: TurnRequest) -> AssistantTurn:
        raise NotImplementedError

    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("a")


class AsksSync:
    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        raise NotImplementedError

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        yield TextDelta("a")


def test_a_model_that_streams_in_the_other_way_is_told_how() -> None:
    """Sync code is shown an ending that this very model has, and so is async code."""
    with pytest.raises(
        MisuseError,
        match=r"AsksAsync has no `stream_sync`, so `.stream_sync\(\)` cannot ask it. Use "
        r"`await .collect\(\)`, or a model with `def stream_sync\(self, request\)`",
    ):
        asked().text_turn(AsksAsync()).stream_sync().collect()
    with pytest.raises(
        MisuseError, match=r"Use `.collect_sync\(\)`, or a model with `async def stream\(self"
    ):
        asyncio.run(asked().text_turn(AsksSync()).stream().collect())


class Returns:
    async def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        return Plain().stream(request)

    def stream_sync(self, request: TurnRequest) -> None:
        """Forget to give anything."""


@both_collect
def test_a_model_whose_stream_is_no_iterator_is_told_what_to_write(collect: Any) -> None:
    """An `async def` that returns its events, or a method that returns nothing, gives none."""
    session = asked()
    with pytest.raises(
        MisuseError,
        match=r"`stream\w*` of Returns gave (None|<coroutine).* Make it an? (async )?generator: "
        r"`(async )?def stream\w*\(self, request\)` with a `yield` of each event\.",
    ):
        collect(session.text_turn(Returns()))  # type: ignore[arg-type]
    assert len(session.transcript) == 1


@both_collect
def test_a_stream_ends_with_a_turn_or_is_told(collect: Any) -> None:
    """A `TurnFinished` of anything else is an error that says what a model gives."""
    session = asked()
    ended: Any = TurnFinished({"choices": []})  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"answered with .*choices.*`decode\(response\)`"):
        collect(session.text_turn(Broken(ended)))
    assert len(session.transcript) == 1
