"""The laws of the ready-made sinks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.context import (
    ActivityDelta,
    ActivitySnapshot,
    ObserverText,
    ToolCallProgressState,
    ToolEvent,
)
from lutum_py.errors import InvalidValueError
from lutum_py.sinks import AsyncSink, ListSink, LoggerSink, ThrottledSink
from tests.cases import over

SECONDS = 10.0

OTHERS: list[ToolEvent] = [
    ActivitySnapshot("c1", "note", "half way"),
    ActivitySnapshot("c1", "tool-call-progress", "not a report"),
    ActivityDelta("c1", "tool-call-progress", [{"op": "remove", "path": "/"}]),
    ObserverText("c1", "index", "cold"),
]


def report(status: str = "running", call_id: str = "c1", **figures: Any) -> ActivitySnapshot:
    """Make the event of one report of progress."""
    content = ToolCallProgressState(call_id, "index", status, **figures).model_dump()
    return ActivitySnapshot(call_id, "tool-call-progress", content)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def drain(sink: AsyncSink) -> list[ToolEvent]:
    """Consume a sink to its end."""
    return [event async for event in sink]


def note(number: int) -> ActivitySnapshot:
    """Make an event that can be told from others."""
    return ActivitySnapshot("c1", "note", number)


# --- ListSink, LoggerSink


def test_a_list_sink_keeps_everything_in_order() -> None:
    """What goes in is there, in order, and dumps as the wire has it."""
    sink = ListSink()
    for event in OTHERS:
        sink(event)
    assert sink.events == OTHERS
    assert sink.dump() == [event.model_dump() for event in OTHERS]


def test_a_logger_sink_writes_one_record_an_event(caplog: pytest.LogCaptureFixture) -> None:
    """Each event is a record with its kind, its call and its wire shape."""
    sink = LoggerSink()
    with caplog.at_level(logging.INFO, "lutum.progress"):
        sink(note(1))
        sink(ObserverText("c2", "index", "cold"))
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("lutum.progress", "INFO"),
        ("lutum.progress.observer", "INFO"),
    ]
    first, second = (vars(record) for record in caplog.records)
    assert (first["event_type"], first["tool_call_id"]) == ("activity_snapshot", "c1")
    assert (second["event_type"], second["tool_call_id"]) == ("observer_text", "c2")
    assert first["event"] == note(1).model_dump()
    assert second["event"] == {"message_id": "c2", "source": "index", "content": "cold"}
    assert caplog.records[0].getMessage().startswith("activity_snapshot of call c1: {'message_id'")


def test_a_logger_sink_costs_nothing_below_its_level(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is dumped for a record that nobody will see."""

    class Undumpable(ObserverText):
        def model_dump(self) -> dict[str, Any]:
            raise AssertionError("dumped for nobody")

    sink = LoggerSink(logging.getLogger("lutum.other"), logging.DEBUG)
    with caplog.at_level(logging.INFO, "lutum.other"):
        sink(Undumpable("c1", "index", "x"))
    assert caplog.records == []


def test_a_long_event_is_cut_in_the_log_line_only(caplog: pytest.LogCaptureFixture) -> None:
    """The line is bounded; the attribute has all of it."""
    with caplog.at_level(logging.INFO, "lutum.progress"):
        LoggerSink()(ObserverText("c1", "index", "x" * 10_000))
    record = vars(caplog.records[0])
    assert len(caplog.records[0].getMessage()) < 500
    assert len(record["event"]["content"]) == 10_000


# --- ThrottledSink


def passed(clock: Clock, *steps: tuple[float, ToolEvent]) -> list[bool]:
    """Say for each event, sent at its time, whether it passed."""
    inner = ListSink()
    sink = ThrottledSink(inner, clock=clock)
    seen: list[bool] = []
    for clock.now, event in steps:
        before = len(inner.events)
        sink(event)
        seen.append(len(inner.events) > before)
    return seen


@over(
    "first, second, after, passes",
    [
        ({"progress": 0.5}, {"progress": 0.509}, 0.099, False),
        ({"progress": 0.5}, {"progress": 0.509}, 0.1, True),
        ({"progress": 0.5}, {"progress": 0.51}, 0, True),
        ({"progress": 0.05}, {"progress": 0.06}, 0, True),
        ({"progress": 0.5}, {"progress": 0.49}, 0, True),
        ({"progress": 0.995}, {"progress": 1}, 0, True),
        ({"progress": 1}, {"progress": 1}, 0, True),
        ({}, {}, 0, False),
        ({}, {"progress": 0}, 0, True),
        ({"progress": 0}, {}, 0, True),
        ({"message": "a"}, {"message": "a"}, 0, False),
        ({"message": "a"}, {"message": "b"}, 0, True),
        ({"message": "a"}, {}, 0, True),
        ({"status": "pending"}, {"status": "running"}, 0, True),
        ({"loaded": 1}, {"loaded": 2}, 0, False),
    ],
)
def test_a_report_passes_when_it_tells_something(
    first: dict[str, Any], second: dict[str, Any], after: float, passes: bool
) -> None:
    """The second report passes by time, by a move, by 1, by message or by status, or not at all."""
    assert passed(Clock(), (0, report(**first)), (after, report(**second))) == [True, passes]


@given(st.lists(st.sampled_from(["done", "failed", "cancelled"]), min_size=1, max_size=5))
def test_final_reports_always_pass(statuses: list[str]) -> None:
    """The end of a call is never held back."""
    steps = [(0.0, report(status, progress=0.5)) for status in statuses]
    assert passed(Clock(), (0, report(progress=0.5)), *steps) == [True] * (len(statuses) + 1)


def test_other_events_always_pass() -> None:
    """Only progress is throttled."""
    assert passed(Clock(), *[(0.0, event) for event in OTHERS * 2]) == [True] * 8


def test_the_measure_is_the_last_that_passed() -> None:
    """Small moves add up until they pass, in value and in time."""
    values = [0.5, 0.504, 0.508, 0.512, 0.516]
    by_value = [(0.0, report(progress=value)) for value in values]
    assert passed(Clock(), *by_value) == [True, False, False, True, False]
    by_time = [(now, report()) for now in (0, 0.04, 0.08, 0.12, 0.16, 0.22)]
    assert passed(Clock(), *by_time) == [True, False, False, True, False, True]


def test_calls_are_throttled_apart() -> None:
    """One call's reports do not hold back another's."""
    steps = [(0.0, report(call_id=name)) for name in ("c1", "c2", "c1", "c2")]
    assert passed(Clock(), *steps) == [True, True, False, False]


def test_a_finished_call_starts_anew() -> None:
    """Nothing is remembered of a call after its final report."""
    steps = [(0.0, report()), (0.0, report("done")), (0.0, report())]
    assert passed(Clock(), *steps) == [True, True, True]


def test_memory_is_bounded() -> None:
    """Of calls that never end, the one that has been still for longest is forgotten."""
    steps = [(0.0, report(call_id=str(number))) for number in range(1025)]
    last = [(0.0, report(call_id="1")), (0.0, report(call_id="0"))]
    assert passed(Clock(), *steps, *last)[-2:] == [False, True]


def test_interval_and_step_may_be_chosen() -> None:
    """The thresholds are those that were given."""
    inner, clock = ListSink(), Clock()
    sink = ThrottledSink(inner, interval=5, step=0.5, clock=clock)
    for clock.now, value in ((0, 0.0), (4, 0.4), (4, 0.5), (9, 0.6)):
        sink(report(progress=value))
    assert [event.model_dump()["content"]["progress"] for event in inner.events] == [0.0, 0.5, 0.6]


# --- AsyncSink


@given(st.integers(0, 20), st.none() | st.integers(1, 25))
def test_a_consumer_gets_the_newest_in_order(sent: int, limit: int | None) -> None:
    """What fits the queue arrives in order; what does not is counted."""
    with AsyncSink(limit) as sink:
        for number in range(sent):
            sink(note(number))
    kept = sent if limit is None else min(sent, limit)
    assert asyncio.run(drain(sink)) == [note(number) for number in range(sent - kept, sent)]
    assert sink.dropped == sent - kept


def test_a_consumer_waits_for_tools_in_threads() -> None:
    """Events of several threads arrive, those of one thread in its order."""

    def work(sink: AsyncSink, name: str) -> None:
        for number in range(50):
            sink(ActivitySnapshot(name, "note", number))

    async def main() -> list[ToolEvent]:
        sink = AsyncSink()
        consumer = asyncio.create_task(drain(sink))
        await asyncio.sleep(0)
        await asyncio.gather(*(asyncio.to_thread(work, sink, name) for name in "abc"))
        sink.close()
        sink.close()
        return await asyncio.wait_for(consumer, SECONDS)

    events = asyncio.run(main())
    for name in "abc":
        mine = [event.model_dump()["content"] for event in events if event.message_id == name]
        assert mine == list(range(50))


def test_closing_from_a_thread_ends_the_consumer() -> None:
    """A consumer that waits is let go."""

    async def main() -> list[ToolEvent]:
        sink = AsyncSink()
        consumer = asyncio.create_task(drain(sink))
        await asyncio.sleep(0)
        threading.Thread(target=sink.close).start()
        return await asyncio.wait_for(consumer, SECONDS)

    assert asyncio.run(main()) == []


def test_nothing_is_taken_after_the_end() -> None:
    """An event that comes after `close` is counted and not delivered."""
    sink = AsyncSink()
    sink.close()
    sink(note(1))
    assert (asyncio.run(drain(sink)), sink.dropped) == ([], 1)


def test_a_second_consumer_is_refused() -> None:
    """Two consumers would share the events between them, so the second is told."""

    async def main() -> list[ToolEvent]:
        sink = AsyncSink()
        consumer = asyncio.create_task(drain(sink))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="Another consumer waits"):
            await anext(sink)
        sink(note(1))
        sink.close()
        return await asyncio.wait_for(consumer, SECONDS)

    assert asyncio.run(main()) == [note(1)]


def test_a_consumer_may_leave_and_come_back() -> None:
    """A consumer that is cancelled loses no event, even in the moment of its arrival."""

    async def main() -> list[ToolEvent]:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        sink = AsyncSink()
        for early in (True, False):
            consumer = asyncio.create_task(drain(sink))
            await asyncio.sleep(0)
            if not early:
                sink(note(1))
            consumer.cancel()
            await asyncio.wait([consumer])
            assert consumer.cancelled()
        await asyncio.sleep(0)
        assert complaints == []
        sink.close()
        return await drain(sink)

    assert asyncio.run(main()) == [note(1)]


def test_a_consumer_whose_loop_is_gone_does_not_break_the_tool() -> None:
    """An event for a dead consumer waits for the next one."""
    sink = AsyncSink()

    async def wait_by_hand() -> Coroutine[Any, Any, ToolEvent]:
        waiting = sink.__anext__()
        waiting.send(None)
        return waiting

    waiting = asyncio.run(wait_by_hand())
    sink(note(1))
    waiting.close()
    sink.close()
    assert asyncio.run(drain(sink)) == [note(1)]


def test_a_bound_is_positive() -> None:
    """A queue without room is refused, and one with room for what is no number."""
    wrong: Any
    for wrong in (0, "10", 1.5):
        with pytest.raises(InvalidValueError):
            AsyncSink(limit=wrong)
