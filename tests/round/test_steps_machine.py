"""However plans of one round are asked, run, saved and loaded, all views agree."""

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
    "running": {"suspended": "waits", "abandoned": "doubt"},
    "doubt": {"suspended": "waits"},
    "waits": {"decided": "resuming", "recorded": "waits"},
    ENDED: {"reviewed": ENDED, "recorded": ENDED},
}
STATUS = {"new": "new", "resuming": "resuming", "waits": "suspended"}
STATUS |= {"running": "running", "doubt": "running"}
STATUS_OF = {"success": "succeeded", "error": "failed", "indeterminate": "failed"}
STATUS_OF |= {"rejected": "cancelled", "cancelled": "cancelled"}


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
            if step.kind in ("started", "decided"):  # whoever approved it knew of the doubt
                self.is_left = False
            if step.kind == "changed":
                self.arguments = step.arguments
        at = [str(step.at) for step in steps]
        assert at == sorted(at)
        if self.stage == ENDED:
            assert settled is not None
            self.status = STATUS_OF[str(settled.verdict)]
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


class OneStory(RuleBasedStateMachine):
    """The open plans of one round."""

    def __init__(self) -> None:
        super().__init__()
        calls = [(id, "fill", {"items": [id]}) for id in IDS[:2]]
        self.plans: list[ToolRoundPlan[Any]] = [desk(*calls, ("u", "nope", {})).plan()]
        self.made_of: dict[ToolRoundPlan[Any], ToolRoundPlan[Any]] = {}
        self.results: dict[str, Any] = {}

    def teardown(self) -> None:
        close(self.plans[0])

    def plan(self, data: st.DataObject) -> ToolRoundPlan[Any]:
        return data.draw(st.sampled_from(self.plans[-4:]), label="plan")

    def calls(self, plan: ToolRoundPlan[Any]) -> dict[str, Any]:
        waits = [each.call for each in plan.suspended]
        found = (*plan.pending, *plan.in_doubt, *waits)
        return {call.id: call for call in found}

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
        rows = {row.id: (row.state, row.arguments) for row in plan.calls}
        assert rows == {id: told[:2] for id, told in before.items()}

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
            with suppress(HookError):
                self.hook(plan, made)

    def told(self, plan: ToolRoundPlan[Any]) -> dict[str, Any]:
        return {row.id: (row.state, row.arguments, row.steps) for row in plan.calls}

    @rule(
        data=st.data(),
        how=st.sampled_from(sorted(ACTS)),
    )
    def do(self, data: st.DataObject, how: str) -> None:
        """Do something with a call: the table allows it, and no newer plan goes on with it."""
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
        except LifecycleError as error:
            assert call.steps == before
            is_older = "Go on with the newer plan" in str(error)
            assert not may or is_older or how == "indeterminate"
            return
        assert may
        assert Told(call.steps).started - Told(before).started == (how in ("start", "call"))
        if how != "start":
            self.results[call.id] = given

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
        assert (steps[-1].kind, steps[:-1]) == ("recorded", before[id][2])

    @rule(data=st.data())
    def record_unread(self, data: st.DataObject) -> None:
        plan = self.plan(data)
        metadata = plan.recoverable_tool_call_issues[0].metadata
        if plan.calls[-1].state == "finished":
            with pytest.raises(CommitError):
                plan.record(forged(metadata))
        else:
            plan.record(forged(metadata))

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
        try:
            plan.amend_sync(decision, made)
        except LifecycleError:
            with pytest.raises(LifecycleError, match="Go on with the newer plan"):
                suspended.call.reject("no")
            assert self.told(plan) == before
            return
        assert plan.amend_sync(decision, made) is None
        assert any(each.id == decision.decision_id for each in plan.steps)
        asked = [(each.call.id, each.digest) for each in plan.suspended]
        if (suspended.call.id, suspended.digest) in asked:  # it asks the very same once more
            return
        with pytest.raises((ResumeError, LifecycleError)):
            plan.amend_sync(suspended.approve(by="bob", reason="too late"), made)

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        _, call = self.call(data)
        if call is None:
            return
        before = call.steps
        try:
            made = call.retry()
        except LifecycleError:
            assert call.steps == before
            return
        kinds = [step.kind for step in made.steps]
        assert kinds[-1] == "retried"
        assert not {"started", "abandoned", "ended", "recorded"} & set(kinds)
        assert (made.digest, made.idempotency_key) == (call.digest, call.idempotency_key)
        assert call.steps == before

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
        made = plan.apply_hooks_sync(hooks)
        self.plans.append(made)
        self.made_of[made] = plan

    def dumped(self, plan: ToolRoundPlan[Any]) -> str | None:
        """The text of a plan, whose round is closed by it."""
        before: list[ToolRoundPlan[Any]] = [plan]
        while before[-1] in self.made_of:
            before.append(self.made_of[before[-1]])
        if any(each not in before for each in self.plans):
            # Another plan, which this one is not made of, may go on with a call in its own way.
            with suppress(LifecycleError, PlanError):
                return plan.dump_json()
            return None
        open_rows = [row for row in plan.calls if row.state in ("pending", "in_doubt")]
        if any(Told(row.steps).stage in (ENDED, "waits") for row in open_rows):
            with pytest.raises(PlanError, match=r"`plan\.record\(outcome\)`"):
                plan.dump_json()
            return None
        return plan.dump_json()

    @rule(data=st.data())
    def save_and_load(self, data: st.DataObject) -> None:
        """Go on with what was loaded."""
        plan = self.plan(data)
        before, edits, resumed = self.told(plan), plan.edits, plan.resumed
        inputs = {id: (call.input, call.digest) for id, call in self.calls(plan).items()}
        text = self.dumped(plan)
        if text is None:
            return
        loaded = Desk.load_plan(text)
        self.plans = [loaded]
        self.results.clear()
        after = self.told(loaded)
        for id, (state, arguments, steps) in before.items():
            is_running = Told(steps).stage == "running"
            assert after[id][0] == ("in_doubt" if is_running else state)
            assert after[id][1] == arguments
            assert after[id][2][: len(steps)] == steps
            assert [step.kind for step in after[id][2][len(steps) :]] == ["abandoned"] * is_running
        assert (loaded.edits, loaded.resumed) == (edits, resumed)
        found = self.calls(loaded)
        assert {id: (call.input, call.digest) for id, call in found.items()} == inputs

    @invariant()
    def all_views_agree(self) -> None:
        for plan in self.plans[-4:]:
            self.check(plan)

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
        for decision in plan.decisions:
            matching = [
                step
                for step in plan.steps
                if (step.call_id, step.by, step.phase, step.verdict)
                == (decision.call_id, decision.hook, decision.phase, decision.decision)
            ]
            assert matching
        edited = [s for s in plan.steps if s.kind == "decided" and s.verdict == "edit"]
        assert {edit.call_id for edit in plan.edits} == {step.call_id for step in edited}
        for edit in plan.edits:
            assert edit.final is not None
        answered = [step.id for step in plan.steps if step.kind == "decided" and step.id]
        assert sorted(id for _, id in plan.resumed) == sorted(answered)
        assert plan.is_settled is not bool(lists["pending"] or plan.in_doubt or plan.suspended)


TestOneStory = OneStory.TestCase
TestOneStory.settings = settings(max_examples=scaled(80), stateful_step_count=20)
