"""However calls are suspended, decided, saved and run, none is lost, crossed or too early."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
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
    RunNormally,
    Session,
    Suspend,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
)
from lutum_py.errors import (
    CommitError,
    DuplicateResult,
    HookError,
    LifecycleError,
    MissingResult,
    PlanError,
    ResumeError,
    UnresolvedSuspension,
)
from tests.profiles import scaled
from tests.round_tools import Shop, ask, check_transcript, close, forged, opened

NEW, RUNNING, SUSPENDED, RESUMING, SUCCEEDED, FAILED, CANCELLED = CallStatus
REPLAY, USE, PASS = ResumeMode
modes = st.sampled_from([None, *ResumeMode])
answers = st.sampled_from(["", "yes", "0", "äöü"])


MOVES: dict[CallStatus, Callable[[Any], object]] = {
    RUNNING: lambda call: call.start(),
    SUSPENDED: lambda call: call.suspend(SuspendTicket()),
    SUCCEEDED: lambda call: call.complete("1"),
    FAILED: lambda call: call.fail("no"),
    CANCELLED: lambda call: call.reject("no"),
}


def fail(metadata: object, input: object) -> None:
    raise ZeroDivisionError


class Expected:
    """What is known of one call, beside the plan that is put to the test."""

    def __init__(self, question: str, mode: ResumeMode | None) -> None:
        self.mode = mode
        self.proposed = self.question = question
        self.is_edited = False
        self.status = NEW if mode is None else SUSPENDED
        self.place = "pending" if mode is None else "suspended"
        self.asker = "gate"
        self.answers: dict[str, str | None] = {}
        self.result: ToolResult | None = None
        self.final: tuple[str, str] | None = None

    @property
    def told(self) -> str | None:
        """What the tool reads: the answer to its own question, or else the gate's."""
        answers = [self.answers.get("tool"), self.answers.get("gate")]
        return next((each for each in answers if each is not None), None)

    def ask(self, asker: str, mode: ResumeMode) -> None:
        self.asker, self.mode = asker, mode
        self.status, self.place = SUSPENDED, "suspended"
        self.answers.pop(asker, None)

    def edit(self, question: str) -> None:
        """Another question is asked: what was answered about the old one does not count."""
        if question != self.question:
            self.answers.clear()
        self.question, self.is_edited = question, True

    @property
    def said(self) -> tuple[str, str] | None:
        """The status and text that the model reads in the end."""
        if self.final is None or self.final[0] in ("rejected", "cancelled"):
            return self.final
        return (self.final[0], self.line + self.final[1])

    @property
    def line(self) -> str:
        if self.question == self.proposed:
            return ""
        return f'[The arguments of this call were edited: question = "{self.question}"]\n'

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
            for call in (*plan.pending, *plan.in_doubt, *(each.call for each in plan.suspended))
            if call.id == call_id
        )

    def waiting(self, call_id: str) -> SuspendedCall:
        return next(each for each in self.open.suspended if each.call.id == call_id)

    def ids(self, place: str) -> list[str]:
        return [call_id for call_id, known in self.calls.items() if known.place == place]

    @precondition(lambda self: self.plan is None)
    @rule(modes=st.lists(modes, min_size=1, max_size=5), key=st.sampled_from([None, b"k"]))
    def begin(self, modes: list[ResumeMode | None], key: bytes | None) -> None:
        self.calls, self.delivered, self.key = {}, [], key
        for mode in modes:
            self.count += 1
            self.calls[f"c{self.count}"] = Expected(f"c{self.count}", mode)

        def gate(metadata: ToolMetadata, input: Any) -> Suspend | None:
            mode = self.calls[metadata.id].mode
            return None if mode is None else Suspend(SuspendTicket(resume_mode=mode))

        hooks = Shop.HookSet()
        hooks.gate(Shop.ask)(gate)
        calls = [(call_id, "ask", {"question": call_id}) for call_id in self.calls]
        self.plan = opened(*calls).apply_hooks_sync(hooks)

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(data=st.data(), answer=answers)
    def go_on(self, data: st.DataObject, answer: str) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        known, call = self.calls[call_id], self.call(call_id)
        result = None if known.mode is REPLAY else answer
        decision = self.waiting(call_id).approve(result=result, by="ann")
        outcome = self.open.resume(decision)
        self.delivered.append(decision)
        if known.mode is USE:
            known.status, known.place = SUCCEEDED, "handled"
            known.final = ("success", answer)
        else:
            assert outcome is call
            known.status, known.place = RESUMING, "pending"
            known.answers[known.asker] = answer if known.mode is PASS else None

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        decision = self.waiting(call_id).cancel(f"not {call_id}")
        self.open.resume(decision)
        self.delivered.append(decision)
        known = self.calls[call_id]
        known.status, known.place = CANCELLED, "rejected"
        known.final = ("cancelled", f"Cancelled: not {call_id}")

    @precondition(lambda self: self.plan is not None and self.ids("suspended"))
    @rule(
        data=st.data(),
        question=st.sampled_from(["one?", "two?", None]),
        answer=answers,
        mode=modes,
        hook=st.sampled_from(["none", "block", "rewrite", "raise"]),
    )
    def amend(
        self,
        data: st.DataObject,
        question: str | None,
        answer: str,
        mode: ResumeMode | None,
        hook: str,
    ) -> None:
        call_id = data.draw(st.sampled_from(self.ids("suspended")))
        known, call = self.calls[call_id], self.call(call_id)
        question = call_id if question is None else question
        hooks = Shop.HookSet()
        if hook == "rewrite":
            hooks.on(Shop.ask)(lambda m, input: RunNormally(ask.Input(question="hook?")))
        if hook == "raise":
            hooks.before(Shop.ask)(fail)
        if hook == "block":
            hooks.gate(Shop.ask)(lambda metadata, input: Block("closed"))
        if mode is not None:
            hooks.gate(Shop.ask)(lambda m, input: Suspend(SuspendTicket(resume_mode=mode)))
        result = None if known.mode is REPLAY else answer
        decision = self.waiting(call_id).edit({"question": question}, result=result)
        if known.mode is USE:
            with pytest.raises(ResumeError, match="the tool is not run"):
                self.open.amend_sync(decision, hooks)
            return
        asks_again = hook == "rewrite"
        # What a gate was answered holds while the arguments stay what they are.
        is_answered = "gate" in known.answers and question == known.question
        is_asked = known.asker == "tool" and not is_answered
        is_gated = mode is not None and (asks_again or is_asked)
        if hook == "raise" and not is_gated:
            with pytest.raises(HookError, match="ZeroDivisionError"):
                self.open.amend_sync(decision, hooks)
            return
        self.open.amend_sync(decision, hooks)
        self.delivered.append(decision)
        known.edit(question)
        known.answers[known.asker] = answer if known.mode is PASS else None
        if asks_again:
            known.edit("hook?")
        if hook == "block":
            known.status, known.place = CANCELLED, "rejected"
            known.final = ("rejected", "Rejected: closed")
            return
        if is_gated:
            assert mode is not None
            known.ask("gate", mode)
        elif not asks_again:
            known.status, known.place = RESUMING, "pending"
        assert self.call(call_id) is call

    @precondition(lambda self: self.plan is not None and self.delivered)
    @rule(data=st.data())
    def deliver_twice(self, data: st.DataObject) -> None:
        decision = data.draw(st.sampled_from(self.delivered))
        assert self.open.resume(decision) is None
        assert self.open.amend_sync(decision, Shop.HookSet()) is None

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
        digest = data.draw(st.sampled_from(["sha256:0", None]))
        decision = replace(self.waiting(call_id).approve(result="x"), digest=digest)
        if unfit:
            decision = self.waiting(call_id).approve(result=7)
        with pytest.raises(ResumeError, match=r"does not fit|another version|carries no digest"):
            self.open.resume(decision)

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
        call.start()
        self.open.suspend(call.suspend(SuspendTicket(resume_mode=mode)))
        self.calls[call_id].ask("tool", mode)

    @precondition(
        lambda self: self.plan is not None and any(k.can_run for k in self.calls.values())
    )
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """A call is started, and nobody hears of it any more."""
        ready = [call_id for call_id, known in self.calls.items() if known.can_run]
        call_id = data.draw(st.sampled_from(ready))
        self.call(call_id).start()
        self.calls[call_id].status = RUNNING

    @precondition(lambda self: self.plan is not None and self.unrecorded())
    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        call_id = data.draw(st.sampled_from(self.unrecorded()))
        known, call = self.calls[call_id], self.call(call_id)
        if known.result is None:
            known.result = call.indeterminate("lost")
            known.final = ("indeterminate", "Outcome unknown: lost")
        self.open.record(known.result)
        ended = {"success": SUCCEEDED, "indeterminate": FAILED}[known.result.status]
        known.status, known.place = ended, "finished"
        assert call.status is ended
        before = call.steps
        self.open.record(known.result)
        assert call.steps == before
        with pytest.raises(CommitError) as caught:
            self.open.record(forged(call.metadata, '"another"'))
        assert caught.value.faults == (DuplicateResult(call_id, "ask"),)

    def unrecorded(self) -> list[str]:
        return [
            call_id
            for call_id, known in self.calls.items()
            if known.place in ("pending", "in_doubt")
            and (known.result is not None or known.status is RUNNING)
        ]

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data())
    def run_twice(self, data: st.DataObject) -> None:
        started = [k for k, known in self.calls.items() if known.place in ("pending", "in_doubt")]
        started = [call_id for call_id in started if not self.calls[call_id].can_run]
        if not started:
            return
        call = self.call(data.draw(st.sampled_from(started)))
        status = call.status
        with pytest.raises(LifecycleError):
            call.call_sync(context=ToolContext.for_call(call))
        assert call.status is status

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
                known.final = ("rejected", "Rejected: closed")
            elif "gate" not in known.answers:
                known.ask("gate", mode)

    @precondition(lambda self: self.plan is not None)
    @rule()
    def save_and_load(self) -> None:
        if any(k.place == "pending" and k.result is not None for k in self.calls.values()):
            with pytest.raises(PlanError, match=r"`plan\.record\(outcome\)`"):
                self.open.dump_json(key=self.key)
            return
        text = self.open.dump_json(key=self.key)
        with pytest.raises(PlanError):
            Shop.load_plan(text.replace("question", "Question"), key=self.key)
        self.plan = Shop.load_plan(text, key=self.key)
        for known in self.calls.values():
            if known.place == "pending" and known.status is RUNNING:
                known.place = "in_doubt"

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data())
    def move_illegally(self, data: st.DataObject) -> None:
        movable = [k for k, known in self.calls.items() if known.place in ("pending", "suspended")]
        if not movable:
            return
        call = self.call(data.draw(st.sampled_from(movable)))
        status = call.status
        for target, move in MOVES.items():
            if target not in status.leads_to:
                with pytest.raises(LifecycleError):
                    move(call)
        assert call.status is status

    @precondition(lambda self: self.plan is not None)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        results = data.draw(st.permutations(self.given()))
        faults = {
            UnresolvedSuspension(call_id, "ask")
            if known.place == "suspended"
            else MissingResult(call_id, "ask", known.place == "in_doubt")
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
        expected = [known.said for known in self.calls.values()]
        assert [(result.status, result.model_text) for result in committed.results] == expected
        assert [result.id for result in committed.results] == list(self.calls)

    @precondition(lambda self: self.plan is not None)
    @rule()
    def abort(self) -> None:
        committed = self.open.abort(self.session, "enough", self.given())
        self.plan = None
        for result, known in zip(committed.results, self.calls.values(), strict=True):
            if known.status is RUNNING:
                assert result.status == "indeterminate"
            elif known.final is None:
                assert result.status in ("cancelled", "indeterminate")
            else:
                assert (result.status, result.model_text) == known.said
            if result.status not in ("rejected", "cancelled"):
                assert result.model_text.startswith(known.line)

    def given(self) -> list[ToolResult]:
        """The results that the plan has not been told of."""
        known = self.calls.values()
        return [k.result for k in known if k.result is not None and k.place != "finished"]

    @invariant()
    def the_plan_is_as_expected(self) -> None:
        if self.plan is None:
            return
        plan = self.plan
        places = {
            "pending": [call.id for call in plan.pending],
            "in_doubt": sorted(call.id for call in plan.in_doubt),
            "finished": [result.id for result in plan.finished],
            "suspended": sorted(each.call.id for each in plan.suspended),
            "handled": sorted(each.metadata.id for each in plan.handled),
            "rejected": sorted(each.metadata.id for each in plan.rejected),
        }
        assert places == {
            "pending": self.ids("pending"),
            "in_doubt": sorted(self.ids("in_doubt")),
            "finished": self.ids("finished"),
            "suspended": sorted(self.ids("suspended")),
            "handled": sorted(self.ids("handled")),
            "rejected": sorted(self.ids("rejected")),
        }
        assert {edit.call_id: edit.final["question"] for edit in plan.edits} == {
            call_id: known.question for call_id, known in self.calls.items() if known.is_edited
        }
        assert plan.is_settled is all(
            known.final and known.place not in ("pending", "in_doubt")
            for known in self.calls.values()
        )
        statuses = {call.id: call.status for call in (*plan.pending, *plan.in_doubt)}
        statuses |= {each.call.id: each.call.status for each in plan.suspended}
        statuses |= {each.metadata.id: each.call.status for each in plan.rejected}
        assert statuses == {
            call_id: known.status
            for call_id, known in self.calls.items()
            if known.place not in ("handled", "finished")
        }

    @invariant()
    def the_transcript_is_valid(self) -> None:
        check_transcript(self.session.transcript)


TestSuspensions = Suspensions.TestCase
TestSuspensions.settings = settings(max_examples=scaled(80), stateful_step_count=25)
