"""The laws of suspension: a call waits, its siblings go on, and a decision means what it says."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Attachment,
    Block,
    CallStatus,
    Decision,
    HandledCall,
    RejectedCall,
    ResumeMode,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.context import CancellationToken
from lutum_py.errors import (
    CommitError,
    InvalidValueError,
    LifecycleError,
    ResumeError,
    ToolDefinitionError,
    UnresolvedSuspension,
)
from tests.cases import over
from tests.round_tools import (
    CHARGE,
    Receipt,
    Shop,
    Till,
    add,
    adds,
    approval,
    check_transcript,
    close,
    done,
    gated,
    opened,
)
from tests.sample_tools import input_of

PAY = ("p", "pay", {"amount": 20, "to": ["ann"]})
USE = ResumeMode.USE_DECISION_AS_TOOL_RESULT
PASS = ResumeMode.PASS_DECISION_TO_TOOL


@pytest.mark.parametrize("mode", ["x", None, ["replay_tool_call"]])
def test_a_mode_that_there_is_not_is_told_with_those_there_are(mode: Any) -> None:
    """A ticket with an unknown mode is refused; the text names the ticket and every mode."""
    with pytest.raises(InvalidValueError) as caught:
        SuspendTicket(id="t1", resume_mode=mode)
    text = str(caught.value)
    assert text.startswith("SuspendTicket 't1': `resume_mode` is ")
    assert all(repr(each.value) in text for each in ResumeMode)


def waiting(*calls: Any, ticket: SuspendTicket | None = None, **fields: Any) -> ToolRoundPlan[Any]:
    """A plan whose gate suspended every call of `add`, `pay`, `ask` and `shout`."""
    return opened(*calls).apply_hooks_sync(gated(ticket or SuspendTicket(id="s", **fields)))


def test_a_gate_suspends_a_call_and_its_siblings_go_on() -> None:
    """A suspended call waits with its ticket, while the others can be run."""
    plan = opened(*adds(2), PAY).apply_hooks_sync(gated(SuspendTicket(id="s"), Shop.pay))
    assert [result.result for result in done(plan.pending)] == ["0", "1"]
    (waiting,) = plan.suspended
    assert waiting.call.status is CallStatus.SUSPENDED
    assert (waiting.ticket.id, waiting.was_started) == ("s", False)
    assert waiting.digest == waiting.call.digest
    close(plan)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Add \x1b[2K?", r"Add \x1b[2K?"),
        ("", 'add {"a":1,"b":0}?'),
        (None, 'add {"a":1,"b":0}?'),
    ],
)
def test_a_question_is_safe_to_print_and_never_empty(message: str | None, shown: str) -> None:
    """It is the ticket's message, and without one the tool with what would run."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(
        gated(SuspendTicket(message=message), Shop.add)
    )
    assert plan.suspended[0].question == shown
    close(plan)


def test_a_commit_is_refused_while_a_call_is_suspended() -> None:
    """Nothing is committed before every suspended call is decided; nothing is lost by trying."""
    session = Session()
    plan = opened(*adds(1), PAY).apply_hooks_sync(gated(SuspendTicket(), Shop.pay))
    results = done(plan.pending)
    with pytest.raises(CommitError, match=r"'p' of tool 'pay' is suspended.*resume") as caught:
        plan.commit(session, results)
    assert caught.value.faults == (UnresolvedSuspension("p", "pay"),)
    assert len(session.transcript) == 0
    plan.resume(Decision(call_id="p", action="cancel"))
    plan.commit(session, results)
    check_transcript(session.transcript)


def test_replay_makes_the_call_pending_again() -> None:
    """A replayed call is pending again, in its place, with the input that was approved."""
    plan = waiting(*adds(3))
    for call_id in ("c2", "c0"):
        outcome = plan.resume(approval(plan, call_id, reason="fine"))
        assert isinstance(outcome, AnyToolCall)
        assert outcome.status is CallStatus.RESUMING
        assert outcome.resume is None
        assert (outcome.suspension_id, outcome.suspension_reason) == ("s", "approve")
    assert [call.id for call in plan.pending] == ["c0", "c2"]
    assert [each.call.id for each in plan.suspended] == ["c1"]
    assert [result.result for result in done(plan.pending)] == ["0", "2"]
    close(plan)


def test_a_decision_may_stand_for_the_result() -> None:
    """Under `use_decision_as_tool_result` the tool is not run: the decision is its output."""
    plan = waiting(PAY, resume_mode=USE)
    outcome = plan.resume(approval(plan, "p", result={"paid": 20}))
    assert isinstance(outcome, HandledCall)
    assert (outcome.output, outcome.result.result) == (Receipt(paid=20), '{"paid":20}')
    assert (plan.pending, plan.handled) == ((), (outcome,))
    assert [result.result for result in plan.resolve().results] == ['{"paid":20}']


def test_a_file_in_a_decision_goes_to_the_model_as_a_file() -> None:
    """A result that a person gives is told like one of the tool, also after the plan was loaded."""
    cat = Attachment.from_bytes(b"cat", "image/png")

    @tool_fn
    def photo() -> Attachment:
        raise AssertionError("never run: a person answers")

    class Camera(Toolset):
        photo_ = tool(photo)

    hooks = Camera.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(resume_mode=USE)))
    plan = opened(("c1", "photo", {}), toolset=Camera).apply_hooks_sync(hooks)
    sent = {"media_type": "image", "mime_type": "image/png", "url": cat.url, "size": 3}
    plan.resume(plan.suspended[0].approve(result=sent))
    (result,) = Camera.load_plan(plan.dump_json()).resolve().results
    assert (result.model_text, result.attachments) == ("[image (image/png)]", (cat,))


def test_a_decision_may_be_passed_to_the_tool() -> None:
    """Under `pass_decision_to_tool` the tool reads from its context what was asked and answered."""
    plan = waiting(("a", "ask", {"question": "?"}), resume_mode=PASS, action="answer")
    ticket = plan.suspended[0].ticket
    decision = approval(plan, "a", result={"colour": "red"})
    call = plan.resume(decision)
    assert isinstance(call, AnyToolCall)
    context = ToolContext.for_call(call)
    assert context.resume is decision is call.resume
    assert context.ticket is ticket is call.ticket
    assert context.with_cancellation(CancellationToken()).ticket is ticket
    assert (context.suspension_id, context.suspension_reason) == ("s", "answer")
    assert call.call_sync(context=context).model_text == '{"colour": "red"}'
    close(plan)


def test_a_replayed_tool_is_told_of_the_decision_on_its_own_question() -> None:
    """What a gate asked is no answer to a tool that asks by itself, which sees its own."""
    plan = waiting(("a", "ask", {"question": "?"}))
    decision = approval(plan, "a")
    call = plan.resume(decision)
    assert isinstance(call, AnyToolCall)
    context = ToolContext.for_call(call)
    assert (call.approval, context.resume, context.ticket) == (decision, None, None)
    call.start()
    own = call.suspend(SuspendTicket(id="own"))
    plan.record(own)
    plan.resume(own.approve(by="ann"))
    told = ToolContext.for_call(call).resume
    assert (told and told.by, ToolContext.for_call(call).ticket) == ("ann", own.ticket)
    close(plan)


@pytest.mark.parametrize("reason", ["too expensive", None])
def test_a_cancelled_call_is_never_run(reason: str | None) -> None:
    """A cancelled call gets a result that the model can read, and cannot be run any more."""
    plan = waiting(PAY)
    outcome = plan.resume(Decision(call_id="p", action="cancel", reason=reason))
    assert isinstance(outcome, RejectedCall)
    assert (outcome.source, outcome.call.status) == ("decision", CallStatus.CANCELLED)
    with pytest.raises(LifecycleError):
        outcome.call.complete(Receipt(paid=0))
    (result,) = plan.resolve().results
    assert result.status == "cancelled"
    assert result.model_text == f"Cancelled: {reason or 'the call was not approved.'}"
    assert result.rejection_reason is None


@over("result", [False, 0, "", [], {}, 0.0])
@over("mode", [USE, PASS])
def test_falsy_decisions_are_values(result: Any, mode: ResumeMode) -> None:
    """False, zero and nothing at all in a container are answers like any other."""

    @tool_fn
    def anything(context: ToolContext) -> Any:
        """Give what was decided."""
        assert context.resume is not None
        return context.resume.result

    class Loose(Toolset):
        anything_ = tool(anything)

    hooks = Loose.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(resume_mode=mode)))
    plan = opened(("x", "anything", ""), toolset=Loose).apply_hooks_sync(hooks)
    outcome = plan.resume(approval(plan, "x", result=result))
    if isinstance(outcome, AnyToolCall):
        answer = outcome.call_sync(context=ToolContext.for_call(outcome))
        (committed,) = plan.resolve([answer]).results
    else:
        (committed,) = plan.resolve().results
    assert committed.output == result
    assert type(committed.output) is type(result)


def test_a_result_has_to_fit_the_response_schema() -> None:
    """A decision whose result does not fit the ticket's schema is refused, and can be made anew."""
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "note": {"type": "string"}},
        "required": ["ok"],
    }
    plan = waiting(PAY, response_schema=schema, resume_mode=PASS)
    decision = approval(plan, "p", result={"ok": "yes", "note": 3}, decision_id="d")
    with pytest.raises(ResumeError) as caught:
        plan.resume(decision)
    assert "'p' of tool `pay`" in str(caught.value)
    assert [each.call.id for each in plan.suspended] == ["p"]
    assert plan.suspended[0].call.status is CallStatus.SUSPENDED
    assert plan.resume(approval(plan, "p", result={"ok": False}, decision_id="d")) is not None
    close(plan)


def test_a_broken_response_schema_is_the_developers_error() -> None:
    """A ticket with a schema that is none is told as such, and changes nothing."""
    plan = waiting(PAY, response_schema={"type": "nonsense"})
    with pytest.raises(ToolDefinitionError, match="response schema of suspension 's'"):
        plan.resume(approval(plan, "p"))
    plan.resume(Decision(call_id="p", action="cancel"))
    close(plan)


def endless() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


@over(
    "result, message",
    [
        (None, r"does not fit the output type of tool `pay`: .*\(got None\)"),
        ({}, "`paid`: this field is required"),
        ({"paid": "much"}, r"`paid`: .*integer.*\(got 'much'\)"),
        (object(), "is not JSON data"),
        (float("nan"), "is not JSON data"),
        (endless(), "is not JSON data"),
    ],
)
def test_a_decision_as_result_has_to_fit_the_output(result: Any, message: str) -> None:
    """What stands for a tool's output is validated as one; what does not fit changes nothing."""
    plan = waiting(PAY, resume_mode=USE)
    with pytest.raises(ResumeError, match=message):
        plan.resume(approval(plan, "p", result=result))
    assert plan.suspended[0].call.status is CallStatus.SUSPENDED
    assert plan.resume(approval(plan, "p", result={"paid": 1})) is plan.handled[0]
    close(plan)


@over("action", ["resume", "cancel"])
@over("mode", ResumeMode)
@over("result", [object(), float("nan"), 10**5_000])
def test_a_result_that_could_not_be_saved_is_refused(
    action: Any, mode: ResumeMode, result: Any
) -> None:
    """Whatever a decision is used for, its result is JSON data, or nothing changes."""
    plan = waiting(PAY, resume_mode=mode)
    digest = plan.suspended[0].digest
    with pytest.raises(ResumeError):
        plan.resume(Decision(call_id="p", action=action, result=result, digest=digest))
    assert plan.suspended[0].call.status is CallStatus.SUSPENDED
    close(plan)


def test_an_output_that_cannot_be_encoded_changes_nothing() -> None:
    """A result that the output type takes but cannot encode is refused before anything moves."""

    @tool_fn
    def number() -> float:
        """Give a number."""
        return 1.0

    class Numbers(Toolset):
        number_ = tool(number)

    hooks = Numbers.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(SuspendTicket(resume_mode=USE)))
    plan = opened(("n", "number", ""), toolset=Numbers).apply_hooks_sync(hooks)
    call = plan.suspended[0].call
    encode = call.spec.output.encode
    with pytest.raises(ResumeError):
        plan.resume(approval(plan, "n", result="NaN of sorts"))
    assert (call.status, encode("number", 1.5)) == (CallStatus.SUSPENDED, "1.5")
    close(plan)


def test_a_decision_counts_once() -> None:
    """A decision that is delivered twice does nothing the second time, whatever came between."""
    plan = waiting(*adds(2))
    decision = approval(plan, "c0", decision_id="d1")
    assert plan.resume(decision) is plan.pending[0]
    assert plan.resume(decision) is None
    assert plan.resume(Decision(call_id="c0", action="cancel", decision_id="d1")) is None
    assert plan.resume(approval(plan, "c1", decision_id="d1")) is not None
    call = plan.pending[0]
    call.start()
    plan.suspend(call.suspend(SuspendTicket()))
    assert plan.resume(decision) is None
    assert [each.call.id for each in plan.suspended] == ["c0"]
    close(plan)


def test_a_stale_decision_is_refused() -> None:
    """A second decision on a call that was decided, or is of no call, names what is suspended."""
    plan = waiting(*adds(2))
    plan.resume(approval(plan, "c0"))
    for stale in (
        approval(plan, "c0"),
        Decision(call_id="c0", action="cancel"),
        approval(plan, "zz"),
    ):
        with pytest.raises(ResumeError, match=r"not suspended in this plan.*\['c1'\]"):
            plan.resume(stale)
    assert [call.id for call in plan.pending] == ["c0"]
    plan.resume(approval(plan, "c1"))
    with pytest.raises(ResumeError, match=r"decided on already. No call .* waits for a decision"):
        plan.resume(Decision(call_id="c0", action="cancel"))
    close(plan)


def test_a_decision_on_another_version_is_refused() -> None:
    """A decision that carries another digest than the call has is refused; its own is taken."""
    plan, other = waiting(PAY), waiting(("p", "pay", {"amount": 21}))
    digest = other.suspended[0].digest
    assert digest != plan.suspended[0].digest
    for forged in (other.suspended[0].approve(), other.suspended[0].cancel("no")):
        with pytest.raises(ResumeError, match=rf"another version of call 'p'.*'{digest}'"):
            plan.resume(forged)
    assert plan.resume(plan.suspended[0].approve()) is plan.pending[0]
    close(plan, other)


def test_the_other_plan_of_a_round_knows_of_a_decision() -> None:
    """Two plans that share a suspended call cannot decide about it differently."""
    plan = waiting(*adds(2))
    twin = plan.apply_hooks_sync(Shop.HookSet())
    plan.resume(approval(plan, "c0"))
    with pytest.raises(ResumeError):
        twin.resume(Decision(call_id="c0", action="cancel"))
    assert plan.pending[0].status is CallStatus.RESUMING
    close(plan)


def test_an_input_is_frozen_while_it_waits_and_after() -> None:
    """Nobody sets the input of a call that waits for a decision, or that was approved."""
    plan = waiting(PAY)
    call = plan.suspended[0].call
    for _ in range(2):
        with pytest.raises(LifecycleError):
            call.input = {"amount": 9}
        assert input_of(call).amount == 20
        plan.resume(approval(plan, "p", decision_id="d"))
    close(plan)


def test_nothing_done_to_an_input_that_waits_reaches_the_call() -> None:
    """What is shown of a call that waits is nobody's to change."""
    hooks = Till.HookSet()
    hooks.gate(Till.charge)(lambda metadata, input: Suspend(SuspendTicket()))
    plan = opened(CHARGE, toolset=Till).apply_hooks_sync(hooks)
    input_of(plan.suspended[0].call).slip.amount = 2000
    assert input_of(plan.suspended[0].call).slip.amount == 20
    plan.resume(approval(plan, "p"))
    assert input_of(plan.pending[0]).slip.amount == 20
    session = Session()
    plan.abort(session, "tampered")
    check_transcript(session.transcript)


def test_an_approved_input_changed_in_place_does_not_run() -> None:
    """An approved call runs with what was approved, whatever is done to an input that is shown."""
    hooks = Till.HookSet()
    hooks.gate(Till.charge)(lambda metadata, input: Suspend(SuspendTicket()))
    plan = opened(CHARGE, toolset=Till).apply_hooks_sync(hooks)
    call = plan.resume(approval(plan, "p"))
    assert isinstance(call, AnyToolCall)
    input_of(call).slip.amount = 1000
    assert call.call_sync().output == 20
    close(plan)


def test_a_call_may_be_suspended_again() -> None:
    """A resumed call may suspend itself again, under another ticket, and be decided again."""
    plan = waiting(*adds(1))
    call = plan.resume(approval(plan, "c0"))
    assert isinstance(call, AnyToolCall)
    call.start()
    plan.suspend(call.suspend(SuspendTicket(id="retried", resume_mode=USE)))
    assert plan.suspended[0].was_started
    decision = replace(approval(plan, "c0", result=5), ticket="retried")
    with pytest.raises(ResumeError, match="names no ticket, and call 'c0' of"):
        plan.resume(replace(decision, ticket=None))
    assert plan.resume(decision) is plan.handled[0]
    assert [result.result for result in plan.resolve().results] == ["5"]


def hooks_with_gate(answer: Any) -> Any:
    hooks = Shop.HookSet()
    seen: list[Any] = []

    @hooks.on(Shop.add)
    def hook(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        seen.append(("hook", metadata.id))
        return RunNormally(input)

    @hooks.gate(Shop.add)
    def gate(metadata: ToolMetadata, input: Any, decision: Decision | None) -> Any:
        seen.append(("gate", metadata.id, decision and decision.decision_id))
        return answer

    @hooks.before(Shop.add)
    def before(metadata: ToolMetadata, input: Any) -> None:
        seen.append(("before", metadata.id))

    return hooks, seen


def test_a_resumed_call_passes_its_gate_again() -> None:
    """Hooks applied again ask the gates of an approved call, and its Suspend counts as answered."""
    hooks, seen = hooks_with_gate(Suspend(SuspendTicket()))
    plan = opened(*adds(1)).apply_hooks_sync(hooks)
    assert seen == [("hook", "c0"), ("gate", "c0", None)]
    plan.resume(approval(plan, "c0", decision_id="d"))
    seen.clear()
    again = plan.apply_hooks_sync(hooks)
    assert seen == [("gate", "c0", "d"), ("before", "c0")]
    assert [call.status for call in again.pending] == [CallStatus.RESUMING]
    assert again.suspended == ()
    assert [record.decision for record in again.decisions] == ["run_normally", "suspend", "suspend"]
    assert [result.result for result in again.resolve(done(again.pending)).results] == ["0"]


def test_a_block_wins_over_an_approval() -> None:
    """A gate that blocks stops an approved call, and the plan says that the run should end."""
    plan = waiting(*adds(1))
    plan.resume(approval(plan, "c0"))
    hooks, _ = hooks_with_gate(Block("frozen account"))
    again = asyncio.run(plan.apply_hooks(hooks))
    assert (again.pending, again.blocked) == ((), "frozen account")
    (result,) = again.resolve().results
    assert result.rejection_reason == "frozen account"


def test_resume_asks_nobody() -> None:
    """`plan.resume` runs no hooks, no gates and no tool."""
    hooks, seen = hooks_with_gate(Suspend(SuspendTicket()))
    plan = opened(*adds(1)).apply_hooks_sync(hooks)
    seen.clear()
    plan.resume(approval(plan, "c0"))
    assert seen == []
    close(plan)


def test_the_approver_sees_the_final_arguments() -> None:
    """A gate sees what the rewriting hooks made, and the approval is bound to that."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(lambda metadata, input: RunNormally(add.Input(a=input.a + 40, b=2)))
    seen: list[int] = []

    @hooks.gate(Shop.add)
    def gate(metadata: ToolMetadata, input: Any) -> Suspend:
        seen.append(input.a)
        return Suspend(SuspendTicket())

    plan = opened(("c", "add", {"a": 0})).apply_hooks_sync(hooks)
    digest = plan.suspended[0].digest
    plan.resume(approval(plan, "c"))
    again = plan.apply_hooks_sync(hooks)
    assert seen == [40, 40]
    assert again.pending[0].digest == digest
    (result,) = again.resolve(done(again.pending)).results
    assert (result.result, result.arguments) == ("42", '{"a":0}')


def test_tickets_and_decisions_are_checked_where_they_are_made() -> None:
    """A ticket of an unknown mode and a decision of an unknown action cannot be made."""
    with pytest.raises(InvalidValueError):
        SuspendTicket(resume_mode="sometimes")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError):
        Decision(call_id="c", action="approve")  # type: ignore[arg-type]
    made = SuspendTicket(resume_mode="pass_decision_to_tool")  # type: ignore[arg-type]
    assert made.resume_mode is PASS


def test_tickets_and_decisions_are_values() -> None:
    """Tickets and decisions have ids of their own, compare by content, hash and pickle."""
    one, two = SuspendTicket(parameters={"a": []}), SuspendTicket()
    assert one.id != two.id
    decision = Decision(call_id="c", action="resume", result=[1])
    assert decision.decision_id != Decision(call_id="c", action="resume").decision_id
    assert {one, decision, pickle.loads(pickle.dumps(one))} == {one, decision}


def test_a_ticket_as_plain_data() -> None:
    """A ticket's plain form leaves out what is not set."""
    assert SuspendTicket(id="s").to_dict() == {
        "id": "s",
        "action": "approve",
        "resume_mode": "replay_tool_call",
    }
    full = SuspendTicket(
        id="s", action="ask", message="Well?", parameters={"a": 1}, response_schema={}
    )
    assert full.to_dict() == {
        "id": "s",
        "action": "ask",
        "message": "Well?",
        "parameters": {"a": 1},
        "response_schema": {},
        "resume_mode": "replay_tool_call",
    }


def test_a_waiting_call_of_a_loaded_plan_may_be_given_up() -> None:
    """No plan is told of `call.reject`, and the lists say all the same that nobody is asked."""
    plan = Shop.load_plan(waiting(("c1", "add", {"a": 1})).dump_json())
    (asked,) = plan.suspended
    asked.call.reject("too late")
    assert (plan.suspended, plan.pending) == ((), (asked.call,))
    plan.discard()
