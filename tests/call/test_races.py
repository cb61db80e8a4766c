"""The laws of one history under races: each move comes in the middle of each other one."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise, product
from threading import Barrier, Thread
from typing import Any, Final

import pytest

from lutum_py import (
    Block,
    NeedsTools,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import LutumError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.private import finish, move
from tests.races import NOW, SEAMS, Race, Racing, watched


@tool_fn
def pay(cents: int, tags: list[str] | None = None) -> str:
    """Pay; the receipt has the number of the run."""
    (world,) = NOW
    world.runs.append(sum(step.kind == "started" for step in world.call._record.history))
    world.reach("tool")
    return f"run {world.runs[-1]}"


class Bank(Toolset):
    pay = tool(pay)


class World(Race):
    """One round of one call, whose tool counts its runs."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.runs: list[int] = []
        outcome = Bank.read_turn(
            ScriptedModel.tool_calls(("c1", "pay", {"cents": 5, "tags": ["a"]}))
        )
        assert isinstance(outcome, NeedsTools)
        plan = outcome.round.plan()
        self.call: Any = plan.pending[0]
        if at == "in doubt":
            self.call.start()
            plan = Bank.load_plan(plan.dump_json())
            (self.call,) = plan.in_doubt
        if at == "running":
            self.call.start()
        if at in ("suspended", "resuming"):
            plan.suspend(self.call.suspend(SuspendTicket(message="Pay?")))
        if at == "gated":
            self.gate(plan, Suspend(SuspendTicket(message="Pay?")))
        if at == "resuming":
            plan.resume(plan.suspended[0].approve())
        if at in ("failed", "recorded"):
            result = self.call.fail("no") if at == "failed" else self.call.call_sync()
            if at == "recorded":
                plan.record(result)
        self.plan, self.twin = plan, plan.apply_hooks_sync(Bank.HookSet())
        self.before = len(self.runs)
        self.transcript = Transcript()
        self.results: Any = None
        self.text: str | None = None
        self.detached = False
        self.look()  # what was read before is kept, and must not be shown later
        self.call._record.entries = Racing(self.call._record.entries)

    def look(self) -> list[Any]:
        """Read every view of both plans: they show the same."""
        seen = []
        for plan in (self.plan, self.twin):
            rows = [(row.id, row.state, row.arguments, row.steps) for row in plan.calls]
            lists = {
                "pending": [each.id for each in plan.pending],
                "in_doubt": [each.id for each in plan.in_doubt],
                "suspended": [each.call.id for each in plan.suspended],
                "finished": [each.id for each in plan.finished],
                "handled": [each.metadata.id for each in plan.handled],
                "rejected": [each.metadata.id for each in plan.rejected],
            }
            assert [name for name, ids in lists.items() if ids] == [state for _, state, *_ in rows]
            assert [step for *_, steps in rows for step in steps] == list(plan.steps)
            seen.append((rows, lists, plan.decisions, plan.edits, plan.resumed, plan.is_settled))
        assert seen[0] == seen[1]
        return seen

    def gate(self, plan: Any, answer: Any) -> None:
        hooks: Any = Bank.HookSet()
        hooks.gate()(lambda metadata, input: answer)
        plan.apply_hooks_sync(hooks)

    def elsewhere(self) -> Any:
        """The same call, as another reading of it gave."""
        text = '{"cents":5,"tags":["a"]}'
        metadata = self.call.metadata
        return Bank.parse_tool_call(
            ToolMetadata(id="c1", name="pay", arguments=metadata.arguments or text)
        )

    def decide(self, how: str, **given: Any) -> None:
        decision = getattr(self.plan.suspended[0], how)(*given.values())
        self.plan.amend_sync(decision, Bank.HookSet())

    def rewrite(self) -> None:
        hooks: Any = Bank.HookSet()
        hooks.on(Bank.pay)(lambda metadata, input: RunNormally(pay.Input(cents=7, tags=["h"])))
        self.twin.apply_hooks_sync(hooks)

    def show(self) -> None:
        hooks: Any = Bank.HookSet()
        hooks.after(Bank.pay)(lambda call, result: None)
        self.plan.apply_after_hooks_sync(hooks, [self.elsewhere().complete("by hand")])

    def touch(self) -> None:
        (self.call.input.tags or []).append("b")

    def run_checked(self) -> None:
        """Start the call after all checks were made, before whatever happened since."""
        number = self.call._record.append_all((move("started"),))
        self.runs.append(sum(step.kind == "started" for step in self.call._record.history))
        finish(self.call._record, f"run {self.runs[-1]}", number)

    def detach(self) -> None:
        self.detached = True
        result = self.plan.detach("c1").call_sync()
        self.plan.record(result)

    def given(self) -> list[Any]:
        return [] if self.plan.is_settled else [self.elsewhere().complete("by hand")]

    def end(self, committed: Any) -> None:
        self.results = committed.results

    def dump(self) -> None:
        self.text = self.plan.dump_json()

    def check(self) -> None:
        """The history tells what happened."""
        steps = self.call._record.history
        kinds = [step.kind for step in steps]
        ran = self.runs[self.before :]
        # A tool runs only for a start that is on record, and each start is one run at most.
        assert len({*self.runs}) == len(self.runs), "two runs of one start"
        assert all(0 < run <= kinds.count("started") for run in self.runs)
        # Between two starts the call was tried again, or waited and was let go on.
        between = [kind for kind in kinds if kind in ("started", "retried", "decided")]
        assert all(a != b or a != "started" for a, b in pairwise(between))
        # It ends once in each try, and a question is decided once.
        ends = [kind for kind in kinds if kind in ("ended", "retried")]
        assert all(a != b or a != "ended" for a, b in pairwise(ends))
        asked = [kind for kind in kinds if kind in ("suspended", "decided")]
        assert all(a != b for a, b in pairwise(asked))
        # A result ends the run that made it, and what a run came to is told, late or not.
        told: set[int] = set()
        for at, step in enumerate(steps):
            if step.kind in ("ended", "late") and isinstance(step.detail, ToolResult):
                said = str(step.detail.output)
                if said.startswith("run "):
                    told.add(int(said[4:]))
                    if step.kind == "ended":
                        assert int(said[4:]) == kinds[:at].count("started")
        assert self.detached or {*ran} <= told, "an outcome is lost"
        # What a person refused, or a gate, does not start after that.
        for at, step in enumerate(steps):
            if step.kind == "ended" and step.phase in ("decision", "gate"):
                assert "started" not in kinds[at:]
            if step.kind == "decided" and step.verdict == "cancel":
                assert kinds[at + 1] == "ended"
        # What goes on elsewhere does not go on here.
        if "moved" in kinds:
            assert {*kinds[kinds.index("moved") + 1 :]} <= {"late"}
        # A result that says "not executed" is of a call that was not.
        if self.results is not None and "Not executed" in self.results[0].model_text:
            assert "started" not in kinds
        # The views say the same, as the history does.
        assert self.look()[0][0][0][3] == self.call.steps
        # What was saved knows of each run, so it is not run there as well.
        if self.text is not None:
            loaded = Bank.load_plan(self.text)
            (row,) = loaded.calls
            saved = [step.kind for step in row.steps]
            assert saved.count("started") == kinds.count("started")
            assert "moved" not in saved
            loaded.discard()
        with suppress(LutumError):
            self.plan.discard()
        # A retry that was checked before the end, and written after it, starts nothing any more.
        assert not self.call._record.stage.is_open or kinds[-1] == "retried"
        with pytest.raises(LutumError):
            self.call.start()


MOVES: Final[dict[str, Callable[[World], object]]] = {
    "call": lambda w: w.call.call_sync(),
    "start": lambda w: w.call.start(),
    "execute": lambda w: execute_sync(w.call),
    "run, checked before": World.run_checked,
    "complete": lambda w: w.call.complete("by hand"),
    "fail": lambda w: w.call.fail("no"),
    "reject": lambda w: w.call.reject("no"),
    "give up": lambda w: w.call.indeterminate("lost"),
    "suspend": lambda w: w.call.suspend(SuspendTicket(message="Sure?")),
    "retry": lambda w: w.call.retry(),
    "assign": lambda w: setattr(w.call, "input", {"cents": 6}),
    "touch": World.touch,
    "hooks": lambda w: w.twin.apply_hooks_sync(Bank.HookSet()),
    "rewrite": World.rewrite,
    "block": lambda w: w.gate(w.twin, Block("closed")),
    "hold": lambda w: w.gate(w.plan, Suspend(SuspendTicket(message="Hold?"))),
    "show": World.show,
    "record": lambda w: w.plan.record(w.elsewhere().complete("by hand")),
    "wait": lambda w: w.plan.suspend(w.elsewhere().suspend(SuspendTicket(message="There?"))),
    "approve": lambda w: w.decide("approve"),
    "cancel": lambda w: w.decide("cancel"),
    "edit": lambda w: w.decide("edit", changes={"cents": 8}),
    "detach": World.detach,
    "commit": lambda w: w.end(w.plan.commit(w.transcript, w.given())),
    "resolve": lambda w: w.end(w.twin.resolve(w.given())),
    "abort": lambda w: w.end(w.plan.abort(w.transcript, "enough")),
    "discard": lambda w: w.plan.discard(),
    "dump": World.dump,
}
AT: Final = (
    "new",
    "running",
    "in doubt",
    "suspended",
    "gated",
    "resuming",
    "failed",
    "recorded",
)


def race(at: str, first: str, second: str, seam: str, times: int) -> bool:
    """Let a second move come at a place of the first one; whether it has such a place."""
    world = World(at)
    world.seam, world.times = seam, times
    world.between = lambda: MOVES[second](world)
    with suppress(LutumError, IndexError):
        MOVES[first](world)
    is_reached, world.between = world.between is None, None
    if is_reached or times == 0:
        world.check()
    else:
        with suppress(LutumError):
            world.plan.discard()
    return is_reached


@over("at", AT)
@over("seam", SEAMS)
def test_of_two_moves_at_once_the_history_tells_what_happened(at: str, seam: str) -> None:
    """The second move comes in the middle of the first: one of them wins."""
    failed: list[str] = []
    with watched():
        for first, times in product(MOVES, (1, 2)):
            for second in MOVES:
                try:
                    if not race(at, first, second, seam, times):
                        break
                except Exception as error:  # noqa: BLE001 - all are told
                    failed.append(f"{first}, {second} ({times}): {error!r}"[:200])
    assert failed == []


def test_moves_of_two_threads_leave_one_history() -> None:
    """Nobody says when the threads take turns, 2,000 times."""
    pick = random.Random(1)
    failed: list[str] = []

    def run(world: World, move: str, ready: Barrier) -> None:
        ready.wait()
        try:
            MOVES[move](world)
        except (LutumError, IndexError):
            pass
        except Exception as error:  # noqa: BLE001 - all are told
            failed.append(f"{move}: {error!r}"[:200])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(2_000):
            world, ready = World(pick.choice(AT)), Barrier(2)
            world.call._record.entries = {**world.call._record.entries}
            first, second = pick.choice([*MOVES]), pick.choice([*MOVES])
            threads = [Thread(target=run, args=(world, each, ready)) for each in (first, second)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            try:
                world.check()
            except Exception as error:  # noqa: BLE001 - all are told
                failed.append(f"{first}, {second}: {error!r}"[:200])
    finally:
        sys.setswitchinterval(before)
    assert failed == []


def test_the_race_is_found_if_a_write_checks_nothing() -> None:
    """With a write that takes the next number whatever came between, a call starts twice."""

    class Careless(Racing):
        def setdefault(self, number: int, entry: Any = None) -> Any:
            world.reach("write")
            self[len(self)] = entry
            return entry

    world = World("new")
    world.call._record.entries = Careless(world.call._record.entries)
    world.seam, world.times, world.between = "write", 1, world.call.call_sync
    with suppress(LutumError):
        world.call.call_sync()
    assert len(world.runs) == 2
    with pytest.raises(AssertionError):
        world.check()
    with suppress(LutumError):
        world.plan.discard()
