"""The laws of the sink that draws bars in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rich", reason="rich is not installed: pip install -e '.[rich]'")

from rich.console import Console
from rich.progress import Progress

from lutum_py import SuspendTicket, ToolRoundPlan, execution
from lutum_py.context import ToolEvent
from lutum_py.errors import MissingExtraError
from lutum_py.sinks import RichProgressSink
from lutum_py.typing import CallEvent

from .instructions import instructions
from .round_tools import approval, gated, opened
from .test_sinks import OTHERS, report

DISPLAYS: list[Progress] = []


@pytest.fixture(autouse=True)
def displays_are_seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what rich draws for the sinks that are made."""

    class Seen(Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options)
            DISPLAYS.append(self)

    monkeypatch.setattr("rich.progress.Progress", Seen)
    yield
    DISPLAYS.clear()


def bars() -> list[Any]:
    """The bars of the sink that was made last."""
    return DISPLAYS[-1].tasks


def shown(*events: ToolEvent) -> tuple[str, list[Any]]:
    """Give the screen and the bars after these events."""
    screen = StringIO()
    with RichProgressSink(Console(file=screen, width=120)) as sink:
        for event in events:
            sink(event)
    return screen.getvalue(), bars()


def test_each_call_has_one_bar() -> None:
    """Reports of one call move one bar, and other events move none."""
    screen, found = shown(
        report(progress=0.25, message="[bold]start"),
        report(call_id="c2", loaded=3, total=4),
        *OTHERS,
        report(progress=0.5, message="[bold]more"),
    )
    assert [(bar.description, bar.completed, bar.total) for bar in found] == [
        ("index: [bold]more", 0.5, 1.0),
        ("index", 3, 4),
    ]
    assert "index: [bold]more" in screen
    assert "75%" in screen


def test_a_call_without_figures_pulses() -> None:
    """Where nobody knows how much is left, the bar has no total."""
    _, found = shown(report())
    assert (found[0].total, found[0].completed) == (None, 0)


@pytest.mark.parametrize(
    ("figures", "total"), [({"loaded": 4, "total": 4}, 4), ({"progress": 0.9}, 1), ({}, 1)]
)
def test_a_call_that_is_done_fills_its_bar(figures: dict[str, Any], total: float) -> None:
    """A finished call shows a full bar, whatever it reported last."""
    _, found = shown(report(), report("done", **figures))
    assert (found[0].completed, found[0].total) == (total, total)
    assert found[0].description == "index [done]"
    assert found[0].stop_time is not None


def test_a_call_that_failed_keeps_its_bar_where_it_was() -> None:
    """A failure is named and does not look finished; a later report has a bar of its own."""
    _, found = shown(report(progress=0.5), report("failed", message="no space"), report())
    assert (found[0].completed, found[0].total) == (0.5, 1.0)
    assert found[0].description == "index [failed]: no space"
    assert len(found) == 2


def test_counting_takes_each_call_the_same_time() -> None:
    """However many calls there are, no call makes the display look through all of them."""

    def showing(count: int) -> int:
        calls: list[Any] = [SimpleNamespace(id=str(at), name="add") for at in range(count)]
        sink = RichProgressSink(Console(file=StringIO()), calls=calls)

        def show_next() -> None:
            with sink.around(calls.pop()):
                pass

        taken = instructions(show_next)
        assert bars()[0].description == f"calls: 2 done, 0 running, {count - 2} waiting"
        return taken

    assert showing(1000) <= showing(10) * 1.01


def test_a_transient_display_leaves_nothing() -> None:
    """The bars are shown while it runs, on the console that was given."""
    sink = RichProgressSink(Console(file=StringIO()), transient=True)
    sink(report(progress=0.5))
    sink.close()
    assert bars()[0].completed == 0.5


def test_without_rich_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtraError, match=r'pip install "lutum-py\[rich\]"'):
        RichProgressSink()


def plan_of(count: int) -> ToolRoundPlan[Any]:
    return opened(*((f"c{n}", "add", {"a": n}) for n in range(count))).plan()


def test_bars_count_the_calls_of_a_plan() -> None:
    """Calls are waiting before they are started, running, then done; the last bars stay."""
    screen, plan = StringIO(), plan_of(10)
    with RichProgressSink(Console(file=screen, width=120), calls=plan.pending) as sink:
        seen: list[str] = []

        def on_event(event: CallEvent) -> None:
            sink(event)
            seen.append(bars()[0].description)

        execution.run_sync(plan, on_event=on_event)
    assert seen[0] == "calls: 0 done, 1 running, 9 waiting"
    assert seen[-1] == "calls: 10 done, 0 running, 0 waiting"
    assert screen.getvalue().count("add [success]") == 8
    plan.discard()


async def test_bars_go_around_calls_without_a_plan() -> None:
    """`around` shows calls that are run by `execute_all`; one that raises has failed."""
    screen, plan = StringIO(), plan_of(2)
    with RichProgressSink(Console(file=screen, width=120)) as sink:
        await execution.execute_all(plan.pending, around=sink.around)
        with pytest.raises(KeyError), sink.around(plan.pending[0]):
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
    with RichProgressSink(Console(file=screen, width=120)) as sink:
        with sink.around(plan.pending[0]) as take:
            take(plan.pending[0].suspend(ticket))
        assert "1 waiting" in bars()[0].description
    assert "add [suspended]" in screen.getvalue()
    plan.discard()
    gate = opened(("c1", "add", {"a": 1}))
    with RichProgressSink(Console(file=screen, width=120)) as sink:
        asked = gate.apply_hooks_sync(gated(ticket), on_event=sink)
        assert bars()[0].description == "calls: 0 done, 0 running, 1 waiting"
        asked.resume(approval(asked, "c1"), on_event=sink)
        assert bars()[0].description == "calls: 0 done, 0 running, 1 waiting"
    asked.discard()
