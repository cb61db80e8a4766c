"""The laws of the ready-made sinks."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator
from io import StringIO
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lutum_py import SuspendTicket, ToolRoundPlan, execution
from lutum_py._context.progress import ToolCallProgressState
from lutum_py._round.events import CallEvent
from lutum_py.errors import MissingExtraError
from lutum_py.sinks import (
    ActivityDelta,
    ActivitySnapshot,
    AsyncSink,
    ListSink,
    LoggerSink,
    ObserverText,
    RichProgressSink,
    ThrottledSink,
    ToolEvent,
)

from .round_tools import approval, gated, opened

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


@pytest.mark.parametrize(
    ("first", "second", "after", "passes"),
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
    """A queue without room is refused."""
    with pytest.raises(ValueError, match=r"^`limit` is 0\. Give at least 1, or None"):
        AsyncSink(limit=0)


# --- RichProgressSink

bars_of = attrgetter("_progress.tasks")


def shown(*events: ToolEvent) -> tuple[str, list[Any]]:
    """Give the screen and the bars after these events."""
    screen = StringIO()
    with RichProgressSink(Console(file=screen, width=120)) as sink:
        for event in events:
            sink(event)
    return screen.getvalue(), bars_of(sink)


def test_each_call_has_one_bar() -> None:
    """Reports of one call move one bar, and other events move none."""
    screen, bars = shown(
        report(progress=0.25, message="[bold]start"),
        report(call_id="c2", loaded=3, total=4),
        *OTHERS,
        report(progress=0.5, message="[bold]more"),
    )
    assert [(bar.description, bar.completed, bar.total) for bar in bars] == [
        ("index: [bold]more", 0.5, 1.0),
        ("index", 3, 4),
    ]
    assert "index: [bold]more" in screen
    assert "75%" in screen


def test_a_call_without_figures_pulses() -> None:
    """Where nobody knows how much is left, the bar has no total."""
    _, bars = shown(report())
    assert (bars[0].total, bars[0].completed) == (None, 0)


@pytest.mark.parametrize(
    ("figures", "total"), [({"loaded": 4, "total": 4}, 4), ({"progress": 0.9}, 1), ({}, 1)]
)
def test_a_call_that_is_done_fills_its_bar(figures: dict[str, Any], total: float) -> None:
    """A finished call shows a full bar, whatever it reported last."""
    _, bars = shown(report(), report("done", **figures))
    assert (bars[0].completed, bars[0].total) == (total, total)
    assert bars[0].description == "index [done]"
    assert bars[0].stop_time is not None


def test_a_call_that_failed_keeps_its_bar_where_it_was() -> None:
    """A failure is named and does not look finished; a later report has a bar of its own."""
    _, bars = shown(report(progress=0.5), report("failed", message="no space"), report())
    assert (bars[0].completed, bars[0].total) == (0.5, 1.0)
    assert bars[0].description == "index [failed]: no space"
    assert len(bars) == 2


class LookedUp(dict[str, str]):
    """What may be looked up and not looked through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("All calls are looked through.")

    keys = values = items = __iter__  # type: ignore[assignment]


def test_counting_takes_each_call_the_same_time() -> None:
    """However many calls there are, no call makes the display look through all of them."""
    calls: list[Any] = [SimpleNamespace(id=str(at), name="add") for at in range(9)]
    sink = RichProgressSink(Console(file=StringIO()), calls=calls)
    sink._states = LookedUp(sink._states)
    for call in calls:
        with sink.around(call):
            pass
    assert "9 done" in bars_of(sink)[0].description


def test_a_transient_display_leaves_nothing() -> None:
    """The bars are shown while it runs, on the console that was given."""
    sink = RichProgressSink(Console(file=StringIO()), transient=True)
    sink(report(progress=0.5))
    sink.close()
    assert bars_of(sink)[0].completed == 0.5


def test_without_rich_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtraError, match=r'pip install "lutum-py\[rich\]"'):
        RichProgressSink()


def plan_of(count: int) -> ToolRoundPlan[Any]:
    return opened(*((f"c{n}", "add", {"a": n}) for n in range(count))).plan()


def test_bars_count_the_calls_of_a_plan() -> None:
    """Calls are waiting before they are begun, running, then done; the last bars stay."""
    screen, plan = StringIO(), plan_of(10)
    with RichProgressSink(Console(file=screen, width=120), calls=plan.pending) as bars:
        seen: list[str] = []

        def on_event(event: CallEvent) -> None:
            bars(event)
            seen.append(bars._progress.tasks[0].description)

        execution.run_sync(plan, on_event=on_event)
    assert seen[0] == "calls: 0 done, 1 running, 9 waiting"
    assert seen[-1] == "calls: 10 done, 0 running, 0 waiting"
    assert screen.getvalue().count("add [success]") == 8
    plan.discard()


async def test_bars_go_around_calls_without_a_plan() -> None:
    """`around` shows calls that are run by `execute_all`; one that raises has failed."""
    screen, plan = StringIO(), plan_of(2)
    with RichProgressSink(Console(file=screen, width=120)) as bars:
        await execution.execute_all(plan.pending, around=bars.around)
        with pytest.raises(KeyError), bars.around(plan.pending[0]):
            raise KeyError
    assert "calls: 2 done, 0 running, 0 waiting" in screen.getvalue()
    assert "add [failed]" in screen.getvalue()
    plan.discard()


def test_a_call_that_waits_for_a_decision_is_waiting() -> None:
    """A suspended call counts as waiting, also where its run was never shown, and so does one that
    goes on.
    """
    ticket = SuspendTicket(id="t1", action="approve")
    screen, plan = StringIO(), opened(("c1", "add", {"a": 1})).plan()
    with RichProgressSink(Console(file=screen, width=120)) as bars:
        with bars.around(plan.pending[0]) as take:
            take(plan.pending[0].suspend(ticket))
        assert "1 waiting" in bars._progress.tasks[0].description
    assert "add [suspended]" in screen.getvalue()
    plan.discard()
    gate = opened(("c1", "add", {"a": 1}))
    with RichProgressSink(Console(file=screen, width=120)) as bars:
        asked = gate.apply_hooks_sync(gated(ticket), on_event=bars)
        assert bars._progress.tasks[0].description == "calls: 0 done, 0 running, 1 waiting"
        asked.resume(approval(asked, "c1"), on_event=bars)
        assert bars._progress.tasks[0].description == "calls: 0 done, 0 running, 1 waiting"
    asked.discard()
