"""However the calls of a round are asked, run, tried again, saved and loaded, all views agree."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lutum_py import (
    CallStatus,
    Complete,
    Reject,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolRoundPlan,
)
from lutum_py.errors import (
    CommitError,
    HookError,
    LifecycleError,
    LutumError,
    PlanError,
    ResumeError,
)
from lutum_py.typing import CallStep
from tests.profiles import scaled
from tests.round.one_story import (
    MEANWHILE,
    Desk,
    blocked,
    desk,
    fill,
    history,
    hooks,
    let_pass,
    rewritten,
    waiting,
)
from tests.round_tools import close, forged

IDS = ("c0", "c1", "u")
HOOKS: dict[str, Callable[[], Any]] = {
    "pass": let_pass,
    "gate passes": lambda: hooks(gate=lambda m, i: None),
    "rewrite": lambda: rewritten("r"),
    "block": blocked,
    "suspend": waiting,
    "complete": lambda: hooks(on=lambda m, i: Complete(3)),
    "reject": lambda: hooks(on=lambda m, i: Reject("no")),
    "before": lambda: hooks(before=lambda m, i: None),
    "function": lambda: lambda call: call,
    "function suspends": lambda: lambda call: call.suspend(SuspendTicket(id="f")),
}

ACTS: dict[str, Callable[[Any], Any]] = {
    "start": lambda call: call.start(),
    "call": lambda call: call.call_sync(),
    "complete": lambda call: call.complete(1),
    "fail": lambda call: call.fail("no"),
    "reject": lambda call: call.reject("no"),
    "suspend": lambda call: call.suspend(SuspendTicket(id="own")),
    "indeterminate": lambda call: call.indeterminate("lost"),
}
SAYS: dict[str, Callable[[Any], Any]] = {
    "let pass": RunNormally,
    "rewrite": lambda input: RunNormally(fill.Input(items=["h"])),
    "complete": lambda input: Complete(3),
    "reject": lambda input: Reject("no"),
    "gate": RunNormally,
}

# The model: the table of the steps by stages, as the documentation draws it.
ENDED = "ended"
TABLE = {
    "new": {"reviewed": "new", "changed": "new", "suspended": "waits", "started": "running"},
    "resuming": {
        "reviewed": "resuming",
        "changed": "resuming",
        "suspended": "waits",
        "started": "running",
    },
    "running": {"suspended": "waits", "abandoned": "doubt", "retried": "new"},
    "doubt": {"suspended": "waits", "retried": "new"},
    "waits": {"decided": "resuming", "recorded": "waits"},
    ENDED: {"reviewed": ENDED, "recorded": ENDED, "retried": "new"},
}
for _stage, _row in TABLE.items():
    _row["late"] = _stage
STATUS = {"new": "new", "resuming": "resuming", "waits": "suspended"}
STATUS |= {"running": "running", "doubt": "running"}
STATUS_OF = {"success": "succeeded", "error": "failed", "indeterminate": "failed"}
STATUS_OF |= {"rejected": "cancelled", "cancelled": "cancelled"}


_GIVEN_UP = ("rejected", "cancelled")


class Told:
    """What the steps of one call say by the table, read by nothing else."""

    def __init__(self, steps: tuple[CallStep, ...]) -> None:
        first, *others = steps
        assert first.kind == "proposed"
        self.stage, self.status, self.state = "new", "new", "pending"
        self.started = 0
        self.arguments = first.arguments
        self.is_left = self.is_recorded = False
        settled: CallStep | None = None
        for step in others:
            if step.kind == "retried":  # not what was refused, or answered by a hook or person
                is_done = self.stage != ENDED or (settled is not None and settled.phase is None)
                assert is_done, history(steps)
                assert self.stage != ENDED or settled is None or settled.verdict not in _GIVEN_UP
            if step.kind == ENDED:
                assert self.stage != ENDED, history(steps)
                assert self.stage != "waits" or step.verdict in ("rejected", "cancelled"), history(
                    steps
                )
                self.stage = ENDED
            else:
                assert step.kind in TABLE[self.stage], history(steps)
                assert self.stage != ENDED or step.kind != "reviewed" or step.phase == "after"
                self.stage = TABLE[self.stage][step.kind]
            if step.kind in (ENDED, "suspended"):
                settled, self.is_recorded = step, False
            if step.kind == "recorded":
                assert not self.is_recorded, history(steps)
                self.is_recorded = True
            self.started += step.kind == "started"
            self.is_left |= step.kind == "abandoned"
            if step.kind in ("started", "decided", "retried"):  # whoever did it knew of the doubt
                self.is_left = False
            if step.kind == "changed":
                self.arguments = step.arguments
        at = [str(step.at) for step in steps]
        assert at == sorted(at)
        self.may_retry = self.stage not in (ENDED, "waits")
        if self.stage == ENDED:
            assert settled is not None
            self.status = STATUS_OF[str(settled.verdict)]
            self.may_retry = settled.phase is None and settled.verdict not in _GIVEN_UP
        else:
            self.status = STATUS[self.stage]
        self.state = self._state(settled)

    def _state(self, settled: CallStep | None) -> str:
        if self.stage in (ENDED, "waits"):
            assert settled is not None
            if settled.phase == "decode":
                return "finished" if self.is_recorded else "unusable"
            if settled.phase is not None:
                ended = "handled" if settled.verdict == "success" else "rejected"
                return ended if self.stage == ENDED else "suspended"
            if self.is_recorded:
                return "finished" if self.stage == ENDED else "suspended"
        return "in_doubt" if self.is_left else "pending"


_WITH_RESULTS = ("finished", "handled", "rejected", "unusable")


class OneStory(RuleBasedStateMachine):
    """The plans of one round, each of which shows the same."""

    def __init__(self) -> None:
        super().__init__()
        calls = [(id, "fill", {"items": [id]}) for id in IDS[:2]]
        self.plans: list[ToolRoundPlan[Any]] = [desk(*calls, ("u", "nope", {})).plan()]
        self.known: dict[str, Any] = {}
        self.results: dict[str, Any] = {}

    def teardown(self) -> None:
        close(self.plans[0])
        self.all_views_agree()
        for row in self.plans[0].calls:
            assert Told(row.steps).stage == ENDED

    @property
    def open(self) -> list[ToolRoundPlan[Any]]:
        """The oldest plan, and some newer ones."""
        return [self.plans[0], *self.plans[1:][-2:]]

    def plan(self, data: st.DataObject) -> ToolRoundPlan[Any]:
        return data.draw(st.sampled_from(self.open), label="plan")

    def calls(self, plan: ToolRoundPlan[Any]) -> dict[str, Any]:
        """The calls that were listed once: each is one object, wherever it stands."""
        waits = [each.call for each in plan.suspended]
        for call in (*plan.pending, *plan.in_doubt, *waits):
            assert self.known.setdefault(call.id, call) is call
        return self.known

    def call(self, data: st.DataObject) -> tuple[ToolRoundPlan[Any], Any]:
        plan = self.plan(data)
        calls = self.calls(plan)
        if not calls:
            return plan, None
        return plan, calls[data.draw(st.sampled_from(sorted(calls)), label="call")]

    @rule(data=st.data(), asked=st.sampled_from(sorted(HOOKS)))
    def apply_hooks(self, data: st.DataObject, asked: str) -> None:
        plan = self.plan(data)
        before = self.told(plan)
        self.hook(plan, HOOKS[asked]())
        for id, (state, arguments, steps) in self.told(plan).items():
            assert steps[: len(before[id][2])] == before[id][2]
            if Told(before[id][2]).stage not in ("new", "resuming"):
                assert (state, arguments, steps) == before[id]

    @rule(
        data=st.data(),
        where=st.sampled_from(["on", "gate", "before", "function"]),
        how=st.sampled_from([*sorted(ACTS), "assign", "record", "decide", "ask hooks"]),
        says=st.sampled_from(sorted(SAYS)),
    )
    def apply_hooks_that_act(self, data: st.DataObject, where: str, how: str, says: str) -> None:
        """A hook does something with a call of the round while it is asked about one."""
        plan, call = self.call(data)
        other = self.plan(data)
        inner = data.draw(st.sampled_from(sorted(HOOKS)), label="asked within")

        def act() -> None:
            with suppress(LutumError):
                if how == "assign":
                    call.input = fill.Input(items=["own"])
                elif how == "ask hooks":
                    self.hook(other, HOOKS[inner]())
                elif how == "record":
                    for result in self.results.values():
                        other.record(result)
                elif how == "decide":
                    for each in other.suspended:
                        other.resume(each.approve(by="hook"))
                else:
                    given = ACTS[how](call)
                    self.results |= {} if how == "start" else {call.id: given}

        def on(metadata: Any, input: Any) -> Any:
            act()
            return SAYS[says](input)

        def function(draft: Any) -> Any:
            act()
            return draft if says in ("let pass", "gate") else draft.reject("no")

        def gate(metadata: Any, input: Any) -> Any:
            act()
            return Suspend(SuspendTicket(id="g")) if says == "gate" else None

        def before(metadata: Any, input: Any) -> None:
            act()

        named: dict[str, Any] = {"on": on, "gate": gate, "before": before}
        if call is not None:
            made = function if where == "function" else hooks(**{where: named[where]})
            with suppress(HookError, LifecycleError):
                self.hook(plan, made)

    def told(self, plan: ToolRoundPlan[Any]) -> dict[str, Any]:
        return {row.id: (row.state, row.arguments, row.steps) for row in plan.calls}

    @rule(
        data=st.data(),
        how=st.sampled_from(sorted(ACTS)),
    )
    def do(self, data: st.DataObject, how: str) -> None:
        """Do something with a call, if the table allows it."""
        _, call = self.call(data)
        if call is None:
            return
        before = call.steps
        stage = Told(before).stage
        may = {
            "start": stage in ("new", "resuming"),
            "call": stage in ("new", "resuming"),
            "suspend": stage in ("new", "resuming", "running", "doubt"),
            "reject": stage != ENDED,
        }.get(how, stage not in (ENDED, "waits"))
        try:
            given = ACTS[how](call)
        except LifecycleError:
            assert call.steps == before
            assert not may or how == "indeterminate"
            return
        assert may
        assert Told(call.steps).started - Told(before).started == (how in ("start", "call"))
        if how != "start":
            self.results[call.id] = given

    @rule(data=st.data(), how=st.sampled_from(["retry", "complete", "fail", "suspend"]))
    def run_late(self, data: st.DataObject, how: str) -> None:
        """A run that is over by something that was done meanwhile changes nothing any more."""
        _, call = self.call(data)
        if call is None or Told(call.steps).stage not in ("new", "resuming"):
            return
        MEANWHILE[:] = [call.retry if how == "retry" else lambda: ACTS[how](call)]
        with pytest.raises(LifecycleError, match="is over"):
            call.call_sync()
        assert call.steps[-1].kind == "late"
        wanted = {"retry": "new", "complete": "succeeded", "fail": "failed"}
        assert call.status == wanted.get(how, "suspended")
        self.results.pop(call.id, None)

    @precondition(lambda self: self.results)
    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        plan = self.plan(data)
        id = data.draw(st.sampled_from(sorted(self.results)))
        before = self.told(plan)
        try:
            plan.record(self.results[id])
        except (CommitError, LifecycleError):
            assert self.told(plan) == before
            return
        state, _, steps = self.told(plan)[id]
        assert state in ("finished", "suspended")
        assert steps[: len(before[id][2])] == before[id][2]
        assert [each.kind for each in steps if each.kind != "late"][-1] == "recorded"

    @rule(data=st.data())
    def record_unread(self, data: st.DataObject) -> None:
        plan = self.plan(data)
        metadata = plan.recoverable_tool_call_issues[0].metadata
        before = self.told(plan)
        is_known = plan.calls[-1].state == "finished"
        plan.record(forged(metadata))
        assert (self.told(plan) == before) is is_known

    @rule(data=st.data(), way=st.sampled_from(["approve", "cancel", "edit", "edit, and change"]))
    def decide(self, data: st.DataObject, way: str) -> None:
        plan = self.plan(data)
        if not plan.suspended:
            return
        suspended = data.draw(st.sampled_from(plan.suspended))
        before = self.told(plan)
        if way in ("approve", "cancel"):
            decision = getattr(suspended, way)(by="ann")
        else:
            decision = suspended.edit({"items": ["e"]}, by="ann")
        made = rewritten("x") if "change" in way else waiting()
        plan.amend_sync(decision, made)
        id = suspended.call.id
        assert [step.kind for step in self.told(plan)[id][2]][len(before[id][2])] == "decided"
        assert plan.amend_sync(decision, made) is None
        assert any(each.id == decision.decision_id for each in plan.steps)
        asked = [(each.call.id, each.digest) for each in plan.suspended]
        if (suspended.call.id, suspended.digest) in asked:  # it asks the very same once more
            return
        with pytest.raises(ResumeError):
            plan.amend_sync(suspended.approve(by="bob", reason="too late"), made)

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        _, call = self.call(data)
        if call is None:
            return
        before, digest, told = call.steps, call.digest, Told(call.steps)
        try:
            assert call.retry() is call
        except LifecycleError:
            assert call.steps == before
            assert not told.may_retry
            return
        assert told.may_retry
        is_written = told.stage not in ("new", "resuming")
        assert [step.kind for step in call.steps[len(before) :]] == ["retried"] * is_written
        assert (call.digest, call.status.is_terminal) == (digest, False)
        if is_written:
            self.results.pop(call.id, None)

    @rule(data=st.data())
    def assign(self, data: st.DataObject) -> None:
        _, call = self.call(data)
        if call is None:
            return
        before = call.steps
        try:
            call.input = fill.Input(items=["own"])
        except LifecycleError:
            assert call.steps == before
            return
        if call.steps != before:  # the same once more is no change
            assert call.steps[:-1] == before
            assert call.steps[-1].arguments == {"items": ["own"]}
        assert call.input == fill.Input(items=["own"])

    def hook(self, plan: ToolRoundPlan[Any], hooks: Any) -> None:
        self.plans.append(plan.apply_hooks_sync(hooks))

    def is_untold(self, plan: ToolRoundPlan[Any]) -> bool:
        """Whether a call ended, or waits, and the plan was not told."""
        open_rows = [row for row in plan.calls if row.state in ("pending", "in_doubt")]
        return any(Told(row.steps).stage in (ENDED, "waits") for row in open_rows)

    @rule(data=st.data())
    def save_and_load(self, data: st.DataObject) -> None:
        """Go on with what was loaded."""
        plan = self.plan(data)
        if self.is_untold(plan):
            with pytest.raises(PlanError, match=r"`plan\.record\(outcome\)`"):
                plan.dump_json()
            for result in self.results.values():
                with suppress(CommitError, LifecycleError):
                    plan.record(result)
            if self.is_untold(plan):
                return
        before, edits, resumed = self.told(plan), plan.edits, plan.resumed
        inputs = {id: (each.input, each.digest) for id, each in self.calls(plan).items()}
        text = plan.dump_json()
        assert {row.id: row.state for row in plan.calls} == {
            id: state for id, (state, _, _) in before.items()
        }
        for call in self.known.values():
            with pytest.raises(LifecycleError):
                call.start()
        loaded = Desk.load_plan(text)
        self.plans = [loaded]
        self.results.clear()
        self.known = {}
        after = self.told(loaded)
        for id, (state, arguments, steps) in before.items():
            is_running = Told(steps).stage == "running"
            assert after[id][0] == ("in_doubt" if is_running else state)
            assert after[id][1] == arguments
            assert after[id][2][: len(steps)] == steps
            assert [step.kind for step in after[id][2][len(steps) :]] == ["abandoned"] * is_running
        assert (loaded.edits, loaded.resumed) == (edits, resumed)
        found = self.calls(loaded)
        assert {id: inputs[id] for id in found} == {
            id: (each.input, each.digest) for id, each in found.items()
        }

    @invariant()
    def all_views_agree(self) -> None:
        told = [
            (self.told(plan), plan.steps, plan.decisions, plan.edits, plan.resumed, repr(plan))
            for plan in self.open
        ]
        assert all(each == told[0] for each in told)
        self.check(self.plans[-1])

    def check(self, plan: ToolRoundPlan[Any]) -> None:
        told = {row.id: Told(row.steps) for row in plan.calls}
        assert tuple(told) == IDS
        assert {row.id: row.state for row in plan.calls} == {
            id: each.state for id, each in told.items()
        }
        lists = {
            "pending": [call.id for call in plan.pending],
            "in_doubt": [call.id for call in plan.in_doubt],
            "suspended": sorted(each.call.id for each in plan.suspended),
            "finished": [result.id for result in plan.finished],
            "handled": sorted(each.metadata.id for each in plan.handled),
            "rejected": sorted(each.metadata.id for each in plan.rejected),
        }
        assert lists == {name: [id for id in IDS if told[id].state == name] for name in lists}
        by_row = {row.id: row for row in plan.calls}
        for id, row in by_row.items():
            assert (row.result is not None) == (row.state in _WITH_RESULTS), id
        for id, call in self.calls(plan).items():
            assert call.steps == by_row[id].steps
            assert call.status is CallStatus(told[id].status)
            assert {"items": call.input.items} == by_row[id].arguments == told[id].arguments
            assert call.digest
        for each in plan.rejected:
            assert each.call.status is CallStatus(told[each.metadata.id].status)
        for waits in plan.suspended:
            assert waits.arguments == told[waits.call.id].arguments
            last = [s for s in by_row[waits.call.id].steps if s.kind == "suspended"][-1]
            assert (waits.digest, waits.ticket.id, waits.by) == (last.digest, last.id, last.by)
            assert waits.digest == waits.call.digest
        every = {step for row in plan.calls for step in row.steps}
        assert set(plan.steps) == every
        assert [
            (each.call_id, each.hook, each.phase, each.decision) for each in plan.decisions
        ] == [
            (step.call_id, step.by, step.phase, step.verdict)
            for step in plan.steps
            if step.kind == "reviewed" and step.verdict and step.phase in ("execution", "gate")
        ]
        edited = [s for s in plan.steps if s.kind == "decided" and s.verdict == "edit"]
        assert {edit.call_id for edit in plan.edits} == {step.call_id for step in edited}
        for edit in plan.edits:
            assert edit.final is not None
        answered = [step.id for step in plan.steps if step.kind == "decided" and step.id]
        assert sorted(id for _, id in plan.resumed) == sorted(answered)
        assert plan.is_settled is not bool(lists["pending"] or plan.in_doubt or plan.suspended)


TestOneStory = OneStory.TestCase
TestOneStory.settings = settings(max_examples=scaled(80), stateful_step_count=20)
