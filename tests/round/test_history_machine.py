"""One history per call under any order of public moves: all views agree, and nothing is done twice.

Three calls: one with an input that can be changed, one that needs an approval, and one that
requests others, two deep. What must hold is worked out from the steps of the rows, and from what
the machine itself did and what the tools themselves saw. So it also finds a history that loses a
step, or that has one too many: the last tests plant such faults.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lutum_py import (
    Block,
    Complete,
    Reject,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError, LutumError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallStep
from tests.private import CallRecord, RoundState, ToolRoundPlan, move
from tests.profiles import scaled

RAN: list[tuple[str, int]] = []
"""Each run: the id of the call, and how often it had been started."""
MEANWHILE: list[Callable[[], object]] = []
"""What happens while a tool runs."""
NOW: list[Machine] = []


def ran(id: str) -> str:
    (machine,) = NOW
    starts = sum(step.kind == "started" for step in machine.all[id].steps)
    RAN.append((id, starts))
    while MEANWHILE:
        MEANWHILE.pop()()
    return f"{id} run {starts}"


@tool_fn
def fill(items: list[str], ctx: ToolContext) -> str:
    """Fill a bag, and put one thing more into it."""
    items.append("of the tool")
    return ran(ctx.call_id)


@tool_fn
def pay(cents: int, ctx: ToolContext) -> str:
    """Pay an amount."""
    return ran(ctx.call_id)


@tool_fn
def asks(depth: int, ctx: ToolContext) -> str:
    """Request two calls, one of which may request others."""
    if ctx.inner is None:
        deeper: Any = ("fill", {"items": ["z"]}) if depth == 1 else ("asks", {"depth": depth - 1})
        ctx.request_calls([("pay", {"cents": depth}), deeper])
    (results,) = ctx.inner.rounds
    assert len(results) == 2
    return ran(ctx.call_id)


class Desk(Toolset):
    fill = tool(fill)
    pay = tool(pay, needs_approval=True)
    asks = tool(asks)


CALLS: Final = (
    ("c1", "fill", {"items": ["a"]}),
    ("c2", "pay", {"cents": 500}),
    ("c3", "asks", {"depth": 2}),
)
TICKET: Final = SuspendTicket(message="Sure?")
ENDED: Final = "ended"
TABLE: Final[dict[str, dict[str, str]]] = {
    "unreviewed": {"reviewed": "new", "changed": "unreviewed"},
    "new": {"reviewed": "new", "changed": "new", "suspended": "waits", "started": "running"},
    "running": {
        "suspended": "waits",
        "requested": "awaiting",
        "abandoned": "doubt",
        "retried": "new",
    },
    "doubt": {"suspended": "waits", "retried": "new"},
    "waits": {"decided": "resuming", "recorded": "waits"},
    "awaiting": {"started": "running"},
    ENDED: {"reviewed": ENDED, "recorded": ENDED, "retried": "new"},
    "elsewhere": {},
}
TABLE["resuming"] = {key: "resuming" if to == "new" else to for key, to in TABLE["new"].items()}
ANSWERED: Final = ("finished", "handled", "rejected", "unusable")


class Told:
    """What the steps of one row say, read by nothing else."""

    def __init__(self, steps: tuple[CallStep, ...]) -> None:
        self.stage = "unreviewed" if steps[0].by else "new"
        self.settled: CallStep | None = None
        self.is_recorded = self.is_left = False
        self.asked: tuple[str, ...] = ()
        self.arguments = steps[0].arguments
        for step in steps[1:]:
            if step.kind == ENDED:
                assert self.stage not in (ENDED, "elsewhere"), step
                self.stage = ENDED
            elif step.kind == "moved":
                self.stage = "elsewhere"
            elif step.kind != "late":
                assert step.kind in TABLE[self.stage], (self.stage, step)
                assert (step.phase == "after") is (
                    self.stage == ENDED and step.kind == "reviewed"
                ), step
                self.stage = TABLE[self.stage][step.kind]
            if step.kind in (ENDED, "suspended"):
                self.settled, self.is_recorded = step, False
            if step.kind == "requested":
                self.asked = tuple(str(step.reason).split(", "))
            if step.kind == "changed":
                self.arguments = step.arguments
            self.is_recorded |= step.kind == "recorded"
            self.is_left |= step.kind == "abandoned"
            self.is_left &= step.kind not in ("started", "decided", "retried")
        at = [step.at for step in steps]
        assert at == sorted(at)

    def state(self, of: Callable[[str], str]) -> str:
        if self.stage == "awaiting":
            return "pending" if all(of(id) in ANSWERED for id in self.asked) else "awaiting"
        if self.stage == "unreviewed":
            return "unreviewed"
        if self.stage in (ENDED, "waits"):
            assert self.settled is not None
            if self.settled.phase is not None:
                handled = "handled" if self.settled.verdict == "success" else "rejected"
                return handled if self.stage == ENDED else "suspended"
            if self.is_recorded:
                return "finished" if self.stage == ENDED else "suspended"
        return "in_doubt" if self.is_left else "pending"


ACTS: Final[dict[str, Callable[[Any], Any]]] = {
    "start": lambda call: call.start(),
    "call": lambda call: execute_sync(call) if call.name == "asks" else call.call_sync(),
    "execute": execute_sync,
    "complete": lambda call: call.complete("by hand"),
    "fail": lambda call: call.fail("no"),
    "reject": lambda call: call.reject("no"),
    "suspend": lambda call: call.suspend(TICKET),
    "give up": lambda call: call.indeterminate("lost"),
    "retry": lambda call: call.retry(),
}
HOOKS: Final[dict[str, Callable[[Any], Any]]] = {
    "none": lambda hooks: None,
    "rewrite": lambda hooks: hooks.on(Desk.fill)(
        lambda metadata, input: RunNormally(fill.Input(items=["h"]))
    ),
    "in place": lambda hooks: hooks.on(Desk.fill)(in_place),
    "complete": lambda hooks: hooks.on(Desk.fill)(lambda metadata, input: Complete("3")),
    "reject": lambda hooks: hooks.on(Desk.pay)(lambda metadata, input: Reject("no")),
    "block": lambda hooks: hooks.gate(Desk.fill)(lambda metadata, input: Block("closed")),
    "hold": lambda hooks: hooks.gate(Desk.fill)(lambda metadata, input: Suspend(TICKET)),
}


def in_place(metadata: Any, input: Any) -> Any:
    input.items.append("h")
    return RunNormally(input)


class Machine(RuleBasedStateMachine):
    """The plans of one round, each of which shows the same."""

    def __init__(self) -> None:
        super().__init__()
        NOW[:] = [self]
        RAN.clear()
        MEANWHILE.clear()
        outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(*CALLS))
        self.plan: Any = outcome.round.plan()
        self.twin: Any = self.plan.apply_hooks_sync(Desk.HookSet())
        self.outcomes: dict[str, Any] = {}
        self.decided: set[tuple[str, str]] = set()
        self.kept: dict[str, tuple[CallStep, ...]] = {}
        self.first = dict[str, int]()  # the starts that happened before the plan was loaded

    @property
    def all(self) -> dict[str, Any]:
        """The calls, by id."""
        return {call.id: call.call for call in self.plan._state.decoded}

    def teardown(self) -> None:
        end = len(RAN) % 3
        if end == 0:
            self.plan.discard()
        elif end == 1:
            (*_, last) = self.plan.abort(Session(), "enough").results
            starts = [step.kind for step in self.plan.calls[2].steps].count("started")
            assert last.status != "cancelled" or not starts
        else:
            self.plan.dump_json() if not self.untold() else self.plan.discard()
        self.all_views_agree()
        for row in self.plan.calls:
            with pytest.raises(LifecycleError):
                self.all[row.id].start()

    def pick(self, data: st.DataObject, *states: str) -> Any:
        """A call in one of these states, or any; None if there is none."""
        ids = [row.id for row in self.plan.calls if not states or row.state in states]
        return self.all[data.draw(st.sampled_from(ids), label="call")] if ids else None

    def move(self, act: Callable[[], Any], *, entries: int = 1) -> Any:
        """Do one thing; what is refused has written nothing but that it came too late."""
        before = {id: len(call._record.entries) for id, call in self.all.items()}
        made: Any = None
        try:
            made = act()
        except LutumError as error:
            made = error
        for id, number in before.items():
            history = self.all[id]._record.entries
            added = [history[at] for at in range(number, len(history))]
            added = [entry for entry in added if not is_found_change(entry)]
            assert len(added) <= entries, (id, added)
            if isinstance(made, LutumError) and entries == 1:
                assert {each[0] for entry in added for each in entry[-1]} <= {"late"}, (made, id)
        return made

    # Moves.

    @rule(data=st.data(), name=st.sampled_from([*HOOKS, "function", "function rejects"]))
    def ask_hooks(self, data: st.DataObject, name: str) -> None:
        self.apply_hooks(data, name)

    def apply_hooks(self, data: st.DataObject, name: str) -> None:
        plan = data.draw(st.sampled_from([self.plan, self.twin]))
        hooks: Any = Desk.HookSet()
        if name == "function":
            hooks = lambda call: call  # noqa: E731
        elif name == "function rejects":
            hooks = lambda call: call.reject("no")  # noqa: E731
        else:
            HOOKS[name](hooks)
        made = self.move(lambda: plan.apply_hooks_sync(hooks))
        assert not isinstance(made, LutumError), made

    @rule(data=st.data(), how=st.sampled_from(sorted(ACTS)))
    def act(self, data: st.DataObject, how: str) -> None:
        call = self.pick(data)
        entries = 2 if how in ("call", "execute") else 1  # a start, and an end
        made = self.move(lambda: ACTS[how](call), entries=entries)
        if not isinstance(made, LutumError) and how not in ("start", "retry"):
            self.outcomes[call.id] = made
        elif how == "retry" and made is call:
            self.outcomes.pop(call.id, None)

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """Do what is to be done next about a call, as a loop does."""
        if self.plan.unreviewed:
            self.apply_hooks(data, "none")
            return
        call = self.pick(data, "pending")
        if call is not None and call.status in ("new", "resuming"):
            made = self.move(lambda: execute_sync(call), entries=2)
            if not isinstance(made, LutumError):
                self.move(lambda: self.twin.record(made))

    @rule(data=st.data(), then=st.sampled_from(["retry", "restart", "fail", "suspend", "give up"]))
    def run_late(self, data: st.DataObject, then: str) -> None:
        """A run that is over by something that was done meanwhile ends nothing any more."""
        call = self.pick(data, "pending")
        if call is None or call.name == "asks":
            return

        def between() -> None:
            if then in ("retry", "restart"):
                call.retry()
            if then == "restart":
                call.start()
            if then == "fail":
                self.outcomes[call.id] = call.fail("no")
            if then == "suspend":
                self.outcomes[call.id] = call.suspend(TICKET)
            if then == "give up":
                self.outcomes[call.id] = call.indeterminate("lost")

        MEANWHILE[:] = [between]
        made = self.move(lambda: self.late_error(call), entries=5)
        MEANWHILE.clear()
        if made is not None and "is over" in str(made):
            assert call.steps[-1].kind == "late"
            if then in ("retry", "restart"):
                self.outcomes.pop(call.id, None)

    def late_error(self, call: Any) -> LutumError | None:
        try:
            call.call_sync()
        except LutumError as error:
            return error
        raise AssertionError("the outcome of a run that is over was taken in")

    @precondition(lambda self: self.outcomes)
    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.outcomes)))
        plan = data.draw(st.sampled_from([self.plan, self.twin]))
        self.move(lambda: plan.record(self.outcomes[id]))

    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        call = self.pick(data, "pending")
        if call is None or call.name == "asks":
            return
        made = self.move(lambda: self.twin.detach(call.id, owner="worker"))
        if not isinstance(made, LutumError):
            self.outcomes[call.id] = made.call_sync()

    @rule(data=st.data(), way=st.sampled_from(["approve", "approve", "cancel", "edit"]))
    def decide(self, data: st.DataObject, way: str) -> None:
        if not self.plan.suspended:
            return
        waiting = data.draw(st.sampled_from(self.plan.suspended))
        decision = getattr(waiting, way)(*([{}] if way == "edit" else []))
        made = self.move(lambda: self.twin.amend_sync(decision, Desk.HookSet()))
        if isinstance(made, LutumError):
            assert waiting.call.status != "suspended"
            return
        self.decided.add((waiting.call.id, decision.decision_id))
        steps = waiting.call.steps
        assert self.plan.amend_sync(decision, Desk.HookSet()) is None
        assert waiting.call.steps == steps

    @rule(data=st.data(), how=st.sampled_from(["assign", "in place", "unfit"]))
    def change(self, data: st.DataObject, how: str) -> None:
        call = self.pick(data)
        if call.name != "fill":
            return
        if how == "assign":
            self.move(lambda: setattr(call, "input", fill.Input(items=["own"])))
        elif how == "in place":
            call.input.items.append("b")
        else:
            call.input.items.append(5)
            made = self.move(call.start)
            assert isinstance(made, LutumError) or call.approval is not None  # that was a copy

    @rule(data=st.data())
    def show(self, data: st.DataObject) -> None:
        hooks: Any = Desk.HookSet()
        hooks.after(Desk.fill)(lambda call, result: None)
        self.move(lambda: self.plan.apply_after_hooks_sync(hooks))

    @rule(data=st.data())
    def copy_and_send(self, data: st.DataObject) -> None:
        """There is one object of a call, and what was pickled can be read alone."""
        call = self.pick(data)
        assert copy.copy(call) is call is copy.deepcopy(call)
        back = pickle.loads(pickle.dumps(call))
        assert back.steps == call.steps
        with pytest.raises(LifecycleError):
            back.start()

    def untold(self) -> bool:
        rows = [row for row in self.plan.calls if row.state in ("pending", "in_doubt")]
        return any(Told(row.steps).stage in (ENDED, "waits") for row in rows)

    @rule()
    def save_and_load(self) -> None:
        """Go on with what was loaded."""
        for outcome in self.outcomes.values():
            with suppress(LutumError):
                self.plan.record(outcome)
        if self.untold():
            return
        # What was changed in place is a step of the text.
        text = self.plan.dump_json()
        rows, seen = self.plan.calls, self.plan
        self.plan = Desk.load_plan(text)
        self.twin = ToolRoundPlan(self.plan._state)
        for old, new in zip(rows, self.plan.calls, strict=True):
            told = [step for step in old.steps if step.kind != "moved"]
            more = [step.kind for step in new.steps[len(told) :]]
            assert list(new.steps[: len(told)]) == told
            assert more == ["abandoned"] * (Told(tuple(told)).stage == "running")
            assert new.state == ("in_doubt" if more else old.state)
            assert new.arguments == old.arguments
        assert (self.plan.edits, self.plan.resumed) == (seen.edits, seen.resumed)
        self.kept = {row.id: row.steps for row in self.plan.calls}
        self.outcomes.clear()

    # What holds after each.

    @invariant()
    def all_views_agree(self) -> None:
        views = [self.view(plan) for plan in (self.plan, self.twin)]
        assert views[0] == views[1]

    def view(self, plan: Any) -> Any:
        rows = {row.id: row for row in plan.calls}
        told = {id: Told(row.steps) for id, row in rows.items()}

        def state(id: str) -> str:
            return told[id].state(state)

        is_open = plan._state.closed_by is None
        lists = {
            "pending": [call.id for call in plan.pending],
            "in_doubt": [call.id for call in plan.in_doubt],
            "awaiting": [call.id for call in plan.awaiting],
            "unreviewed": [call.id for call in plan.unreviewed],
            "suspended": [each.call.id for each in plan.suspended],
            "finished": [result.id for result in plan.finished],
            "handled": [each.metadata.id for each in plan.handled],
            "rejected": [each.metadata.id for each in plan.rejected],
        }
        for id, row in rows.items():
            if told[id].stage != "elsewhere":
                assert row.state == state(id), id
            assert [name for name, ids in lists.items() if id in ids] == [row.state], id
            assert row.arguments == told[id].arguments, id
            assert (row.result is not None) is (row.state in ANSWERED), id
            kept = self.kept.get(id, ())
            assert row.steps[: len(kept)] == kept, "a history shrank"
            self.kept[id] = row.steps
            assert self.all[id].steps == row.steps
            assert [each.id for each in row.ancestors] == [each.id for each in plan.ancestors(id)]
            for inner in told[id].asked:
                assert [each.id for each in rows[inner].ancestors][-1] == id
            kinds = [step.kind for step in row.steps]
            moves = [k for k in kinds if k in ("started", "retried", "decided", "requested")]
            assert all(a != b or a != "started" for a, b in pairwise(moves)), id
            # Each run has a start of its own, and ends nothing but what that started.
            runs = [number for of, number in RAN if of == id]
            assert len({*runs}) == len(runs), id
            assert all(number <= kinds.count("started") for number in runs), id
            for at, step in enumerate(self.all[id]._record.history):
                if step.kind == "ended" and isinstance(step.detail, ToolResult):
                    said = str(step.detail.output).rpartition(" run ")
                    before = [each.kind for each in self.all[id]._record.history[:at]]
                    starts = before.count("started")
                    assert said[0] == "" or int(said[2]) == starts, "a result of another run"
        if is_open:
            order = plan.order()
            assert {*order} == {id for id in rows if told[id].stage != ENDED}
        every = [step for row in rows.values() for step in row.steps]
        assert sorted(map(str, plan.steps)) == sorted(map(str, every))
        decided = {(s.call_id, s.id) for s in every if s.kind == "decided"}
        assert {*plan.resumed} == decided >= self.decided, "a decision is lost"
        waits = ("pending", "in_doubt", "suspended", "awaiting", "unreviewed")
        assert plan.is_settled is not any(row.state in waits for row in rows.values())
        dumped = [row.model_dump() for row in rows.values()]
        return dumped, lists, plan.steps, plan.decisions, plan.edits, plan.resumed, repr(plan)


def is_found_change(entry: Any) -> bool:
    """Whether an entry says alone what your own code did to an input in place."""
    *_, moves = entry
    return [each[0] for each in moves] == ["changed"] and moves[0][3] is None


TestOneHistory = Machine.TestCase
TestOneHistory.settings = settings(max_examples=scaled(80), stateful_step_count=25)


# It would find these.


def drop_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision does what it says, and is not kept."""
    append = CallRecord.append_all

    def forgetful(self: Any, moves: Any, *given: Any) -> Any:
        number = append(self, moves, *given)
        if number is not None and moves[0][0] == "decided" and self.review is None:
            *led_to, _ = self.entries[number]
            self.entries[number] = (*led_to, moves[1:] or (move("reviewed", phase="gate"),))
            self._flat = None
        return number

    monkeypatch.setattr(CallRecord, "append_all", forgetful)


def accept_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome of a run that is over ends the next one."""
    append = CallRecord.append_all

    def accepting(self: Any, moves: Any, since: int | None = None, run: object = None) -> Any:
        return append(self, moves, since)

    monkeypatch.setattr(CallRecord, "append_all", accepting)


def forget_inner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists count as long as the histories of the turn's own calls are no longer."""
    read: Any = RoundState.lists.fget  # type: ignore[attr-defined]
    kept: dict[RoundState, tuple[int, Any]] = {}

    def kept_lists(self: RoundState) -> Any:
        length = sum(len(call.entries) for call in self.calls)
        if kept.get(self, (0,))[0] != length:
            kept[self] = (length, read(self))
        return kept[self][1]

    monkeypatch.setattr(RoundState, "lists", property(kept_lists))


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (drop_decided, "a decision is lost|'waits'"),
        (accept_late, "the outcome of a run that is over was taken in|a result of another run"),
        (forget_inner, "c3/"),
    ],
)
def test_the_machine_finds_a_planted_fault(
    plant: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With such a fault in the library it fails, and says what is wrong."""
    plant(monkeypatch)
    tries = settings(
        max_examples=400,
        stateful_step_count=30,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=[*HealthCheck],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError, match=found):
        run_state_machine_as_test(Machine, settings=tries)
