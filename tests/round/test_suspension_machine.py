"""However calls are suspended, decided, saved and run, none is lost, crossed or too early."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Decision,
    ResumeMode,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
)
from lutum_py._call.lifecycle import TRANSITIONS
from lutum_py.errors import (
    CommitError,
    LifecycleError,
    MissingResult,
    PlanError,
    ResumeError,
    UnresolvedSuspension,
)
from tests.profiles import scaled
from tests.round_tools import Shop, check_transcript, close, opened

NEW, RUNNING, SUSPENDED, RESUMING, SUCCEEDED, FAILED, CANCELLED = CallStatus
REPLAY, USE, PASS = ResumeMode
modes = st.sampled_from([None, *ResumeMode])
answers = st.sampled_from(["", "yes", "0", "äöü"])


class Expected:
    """What is known of one call, beside the plan that is put to the test."""

    def __init__(self, mode: ResumeMode | None) -> None:
        self.mode = mode
        self.status = NEW if mode is None else SUSPENDED
        self.place = "pending" if mode is None else "suspended"
        self.told: str | None = None
        self.result: ToolResult | None = None
        self.final: tuple[str, str] | None = None

    @property
    def can_run(self) -> bool:
        return self.place == "pending" and self.status in (NEW, RESUMING)


class Suspensions(RuleBasedStateMachine):
    """One plan at a time, and what is to become of each of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.plan: ToolRoundPlan[Any] | None = None
        self.key: bytes | None = None
        self.calls: dict[str, Expected] = {}
        self.delivered: list[Decision] = []
        self.count = 0

    def teardown(self) -> None:
        if self.plan is not None:
            close(self.plan)

    @property
    def open(self) -> ToolRoundPlan[Any]:
        assert self.plan is not None
        return self.plan

    def call(self, call_id: str) -> AnyToolCall:
        plan = self.open
        return next(
            call
            for call in (*plan.pending, *(each.call for each in plan.suspended))
            if call.id == call_id
        )

    def ids(self, place: str) -> list[str]:
        return [call_id for call_id, known in self.calls.items() if known.place == place]

    @precondition(lambda self: self.plan is None)
    @rule(modes=st.lists(modes, min_size=1, max_size=5), key=st.sampled_from([None, b"k"]))
    def begin(self, modes: list[ResumeMode | None], key: bytes | None) -> None:
        self.calls, self.delivered, self.key = {}, [], key
        for mode in modes:
            self.count += 1
            self.calls[f"c{self.count}"] = Expected(mode)

        def gate(metadata: ToolMetadata, input: Any) -> Suspend | None:
            mode = self.calls[metadata.id].mode
            return None if mode is None else Suspend(SuspendTicket(resume_mode=mode))

        hooks = Shop.HookSet()
        hooks.gate(Shop.ask)(gate)
        calls = [(call_id, "ask", {"question": call_id}) for call_id in self.calls]
        self.plan = opened(*calls).apply_hooks_sync(hooks)

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(data=st.data(), answer=answers, with_digest=st.booleans())
    def go_on(self, data: st.DataObject, answer: str, with_digest: bool) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        known, call = self.calls[call_id], self.call(call_id)
        decision = Decision(
            call_id=call_id,
            action="resume",
            result=answer,
            digest=call.digest if with_digest else None,
        )
        outcome = self.open.resume(decision)
        self.delivered.append(decision)
        if known.mode is USE:
            known.status, known.place = SUCCEEDED, "handled"
            known.final = ("success", answer)
        else:
            assert outcome is call
            known.status, known.place = RESUMING, "pending"
            known.told = answer if known.mode is PASS else None

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        decision = Decision(call_id=call_id, action="cancel", reason=f"not {call_id}")
        self.open.resume(decision)
        self.delivered.append(decision)
        known = self.calls[call_id]
        known.status, known.place = CANCELLED, "rejected"
        known.final = ("cancelled", f"Cancelled: not {call_id}")

    @precondition(lambda self: self.plan is not None and self.delivered)
    @rule(data=st.data())
    def deliver_twice(self, data: st.DataObject) -> None:
        assert self.open.resume(data.draw(st.sampled_from(self.delivered))) is None

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data(), action=st.sampled_from(["resume", "cancel"]))
    def deliver_too_late(self, data: st.DataObject, action: Any) -> None:
        late = [call_id for call_id, known in self.calls.items() if known.place != "suspended"]
        call_id = data.draw(st.sampled_from([*late, "of another round"]))
        with pytest.raises(ResumeError, match="not suspended"):
            self.open.resume(Decision(call_id=call_id, action=action, result="late"))

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(data=st.data())
    def deliver_unfit(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        unfit = self.calls[call_id].mode is USE and data.draw(st.booleans())
        fields: dict[str, Any] = {"result": 7} if unfit else {"result": "x", "digest": "sha256:0"}
        with pytest.raises(ResumeError, match=r"does not fit|another version"):
            self.open.resume(Decision(call_id=call_id, action="resume", **fields))

    @precondition(
        lambda self: self.plan is not None and any(k.can_run for k in self.calls.values())
    )
    @rule(data=st.data())
    def run(self, data: st.DataObject) -> None:
        ready = [call_id for call_id, known in self.calls.items() if known.can_run]
        call_id = data.draw(st.sampled_from(ready))
        known, call = self.calls[call_id], self.call(call_id)
        known.result = call.call_sync(context=ToolContext.for_call(call))
        known.status = SUCCEEDED
        known.final = ("success", json.dumps(known.told))

    @precondition(
        lambda self: self.plan is not None and any(k.can_run for k in self.calls.values())
    )
    @rule(data=st.data(), mode=st.sampled_from([*ResumeMode]))
    def suspend_itself(self, data: st.DataObject, mode: ResumeMode) -> None:
        ready = [call_id for call_id, known in self.calls.items() if known.can_run]
        call_id = data.draw(st.sampled_from(ready))
        call = self.call(call_id)
        call.move_to(RUNNING)
        self.open.suspend(call.suspend(SuspendTicket(resume_mode=mode)))
        known = self.calls[call_id]
        known.mode, known.status, known.place = mode, SUSPENDED, "suspended"

    @precondition(lambda self: self.plan is not None)
    @rule(block=st.booleans(), mode=st.sampled_from([*ResumeMode]))
    def ask_the_gates(self, block: bool, mode: ResumeMode) -> None:
        hooks = Shop.HookSet()
        gated = Block("closed") if block else Suspend(SuspendTicket(resume_mode=mode))
        hooks.gate(Shop.ask)(lambda metadata, input: gated)
        self.plan = self.open.apply_hooks_sync(hooks)
        for known in self.calls.values():
            if not known.can_run:
                continue
            if block:
                known.status, known.place = CANCELLED, "rejected"
                known.final = ("rejected", "__lutum_rejected__: closed")
            elif known.status is NEW:
                known.mode, known.status, known.place = mode, SUSPENDED, "suspended"

    @precondition(lambda self: self.plan is not None)
    @rule()
    def save_and_load(self) -> None:
        text = self.open.dump_json(key=self.key)
        with pytest.raises(PlanError):
            Shop.load_plan(text.replace("question", "Question"), key=self.key)
        self.plan = Shop.load_plan(text, key=self.key)

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data())
    def move_illegally(self, data: st.DataObject) -> None:
        movable = [k for k, known in self.calls.items() if known.place in ("pending", "suspended")]
        if not movable:
            return
        call = self.call(data.draw(st.sampled_from(movable)))
        status = call.status
        for target in set(CallStatus) - TRANSITIONS[status] - {status}:
            with pytest.raises(LifecycleError):
                call.move_to(target)
        assert call.status is status

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        results = [known.result for known in self.calls.values() if known.result is not None]
        results = data.draw(st.permutations(results))
        faults = {
            UnresolvedSuspension(call_id, "ask")
            if known.place == "suspended"
            else MissingResult(call_id, "ask")
            for call_id, known in self.calls.items()
            if known.final is None
        }
        before = len(self.session.transcript)
        if faults:
            with pytest.raises(CommitError) as caught:
                self.open.commit(self.session, results)
            assert set(caught.value.faults) == faults
            assert len(self.session.transcript) == before
            return
        committed = self.open.commit(self.session, results)
        self.plan = None
        expected = [known.final for known in self.calls.values()]
        assert [(result.status, result.model_text) for result in committed.results] == expected
        assert [result.id for result in committed.results] == list(self.calls)

    @precondition(lambda self: self.plan is not None)
    @rule()
    def abort(self) -> None:
        results = [known.result for known in self.calls.values() if known.result is not None]
        committed = self.open.abort(self.session, "enough", results)
        self.plan = None
        for result, known in zip(committed.results, self.calls.values(), strict=True):
            if known.final is None:
                assert result.status in ("cancelled", "indeterminate")
            else:
                assert (result.status, result.model_text) == known.final

    @invariant()
    def the_plan_is_as_expected(self) -> None:
        if self.plan is None:
            return
        plan = self.plan
        places = {
            "pending": [call.id for call in plan.pending],
            "suspended": sorted(each.call.id for each in plan.remaining()),
            "handled": sorted(each.metadata.id for each in plan.handled),
            "rejected": sorted(each.metadata.id for each in plan.rejected),
        }
        assert places == {
            "pending": self.ids("pending"),
            "suspended": sorted(self.ids("suspended")),
            "handled": sorted(self.ids("handled")),
            "rejected": sorted(self.ids("rejected")),
        }
        statuses = {call.id: call.status for call in plan.pending}
        statuses |= {each.call.id: each.call.status for each in plan.suspended}
        statuses |= {each.metadata.id: each.call.status for each in plan.rejected}
        assert statuses == {
            call_id: known.status
            for call_id, known in self.calls.items()
            if known.place != "handled"
        }

    @invariant()
    def the_transcript_is_valid(self) -> None:
        check_transcript(self.session.transcript)


TestSuspensions = Suspensions.TestCase
TestSuspensions.settings = settings(max_examples=scaled(80), stateful_step_count=25)
