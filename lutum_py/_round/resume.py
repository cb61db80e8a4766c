"""Take in a decision about a call that waits: check all, then change the plan."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from .._call.approval import Approval
from .._call.call import HookOutcome
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall, RejectedCall, SuspendedCall
from .._context.suspension import Decision, ResumeMode
from .._schema.field_issues import field_issues
from .._schema.schema_check import schema_faults
from .._text.json import compact_json, shorten
from .._text.once import ONCE
from .._transcript.result import make_result
from ..errors import MisuseError, ResumeError, ToolOutputError
from .sorted_calls import SortedCalls, by_id, moving

__all__ = ["check_decision", "check_fits", "find", "resume", "take_in", "was_taken_in"]


def resume(calls: SortedCalls, decision: Decision) -> HookOutcome | None:
    """Answer one suspended call of a plan; see `ToolRoundPlan.resume`."""
    check_decision(decision)
    if was_taken_in(calls, decision):
        return None
    waiting = find(calls, decision)
    if decision.edit is not None:
        raise ResumeError(
            f"Decision {decision.decision_id!r} edits the arguments of call {waiting.call.id!r} of "
            f"tool `{waiting.call.name}`, and an edit goes through hooks. Write `await "
            "plan.amend(decision, hooks)`, or `plan.amend_sync(decision, hooks)`."
        )
    check_fits(waiting, decision)
    outcome = (
        _cancel(waiting, decision) if decision.action == "cancel" else _go_on(waiting, decision)
    )
    take_in(calls, waiting, decision, outcome)
    return outcome


def check_decision(decision: object) -> None:
    """Make sure that it is a decision at all.

    Raises:
        MisuseError: It is not.
    """
    if not isinstance(decision, Decision):
        raise MisuseError(
            f"{shorten(decision)} is no decision. Make one with `waiting.approve()`, "
            "`waiting.cancel(reason)` or `waiting.edit(changes)`."
        )


def was_taken_in(calls: SortedCalls, decision: Decision) -> bool:
    """Tell whether a decision was delivered before."""
    return (decision.call_id, decision.decision_id) in by_id(calls).resumed


def take_in(
    calls: SortedCalls, waiting: SuspendedCall, decision: Decision, outcome: HookOutcome
) -> None:
    """Keep a decision, and put what became of the call where it belongs."""
    call_id = waiting.call.id
    if waiting.was_started:  # remembered, however the call goes on
        calls._state._started |= {call_id}
    with ONCE:
        moved = moving(calls)
        moved.waiting.pop(call_id, None)
        moved.resumed[decision.call_id, decision.decision_id] = decision
        if isinstance(outcome, RejectedCall):
            calls.change(rejected=(*calls.rejected, outcome))
        elif isinstance(outcome, HandledCall):
            calls.change(handled=(*calls.handled, outcome))
        elif isinstance(outcome, SuspendedCall):
            moved.waiting[call_id] = outcome
        else:
            moved.open[call_id] = outcome


def find(calls: SortedCalls, decision: Decision) -> SuspendedCall:
    """Find the call that a decision is about; it still waits."""
    waiting = by_id(calls).waiting.get(decision.call_id)
    if waiting is None:
        raise ResumeError(
            f"Decision {decision.decision_id!r} is for call {decision.call_id!r}, which is not "
            f"suspended in this plan. Suspended: {[each.call.id for each in calls.suspended]}. "
            "Pass a decision for one of these."
        )
    if waiting.call.status is CallStatus.SUSPENDED:
        return waiting
    raise ResumeError(
        f"Decision {decision.decision_id!r} comes too late: call {waiting.call.id!r} of tool "
        f"`{waiting.call.name}` was decided on in another plan of this round. Go on with that "
        "plan."
    )


def check_fits(waiting: SuspendedCall, decision: Decision) -> None:
    """Make sure that a decision is about the call as it is, and answers what was asked.

    Raises:
        ResumeError: It does not.
    """
    _check_digest(waiting, decision)
    _check_result(waiting, decision)
    if decision.action == "resume":
        _check_response(waiting, decision)


def _check_digest(waiting: SuspendedCall, decision: Decision) -> None:
    call = waiting.call
    if decision.digest is None and decision.action == "resume":
        raise ResumeError(
            f"Decision {decision.decision_id!r} to resume call {call.id!r} of tool `{call.name}` "
            "carries no digest, so nobody knows which arguments were approved. Make it with "
            "`waiting.approve()`, or pass `digest=` as it was shown."
        )
    if decision.digest is not None and decision.digest != waiting.digest:
        raise ResumeError(
            f"Decision {decision.decision_id!r} was made on another version of call {call.id!r} of "
            f"tool `{call.name}`: it carries digest {shorten(decision.digest)}, the call has "
            f"{waiting.digest!r}. Show the call as it is now, and ask again."
        )
    if call.digest != waiting.digest:
        raise ResumeError(
            f"The input of call {call.id!r} of tool `{call.name}` was changed while it was "
            "suspended, so no decision on it can count here. Go on with the plan in which it was "
            "amended, or abort the round."
        )


def _check_result(waiting: SuspendedCall, decision: Decision) -> None:
    """Refuse what no saved plan could hold, whatever the decision is used for."""
    try:
        json.dumps(decision.result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResumeError(
            f"The result of decision {decision.decision_id!r} for call {waiting.call.id!r} is not "
            f"JSON data ({error}). Pass plain data."
        ) from None


def _cancel(waiting: SuspendedCall, decision: Decision) -> RejectedCall:
    call = waiting.call
    call.move_to(CallStatus.CANCELLED)
    reason = decision.reason or "the call was not approved."
    return RejectedCall(call.metadata, call, reason, "decision", decision.decider)


def _check_response(waiting: SuspendedCall, decision: Decision) -> None:
    call, ticket = waiting.call, waiting.ticket
    if ticket.response_schema is None:
        return
    faults = schema_faults(
        f"the response schema of suspension {ticket.id!r}",
        ticket.response_schema,
        decision.result,
    )
    if faults:
        raise ResumeError(
            f"The result of decision {decision.decision_id!r} for call {call.id!r} of tool "
            f"`{call.name}` does not fit the response schema: {'; '.join(faults)}. Ask again, and "
            "pass what fits, as in `waiting.approve(result=...)`."
        )


def _go_on(waiting: SuspendedCall, decision: Decision) -> HookOutcome:
    call, ticket = waiting.call, waiting.ticket
    mode = ticket.resume_mode
    approval = Approval(
        decision, ticket=ticket, digest=waiting.digest, is_of_tool=waiting.was_started
    )
    if mode is not ResumeMode.USE_DECISION_AS_TOOL_RESULT:
        call.go_on(approval)
        return call
    output, text = _as_output(waiting, decision)
    call.go_on(approval)
    call.move_to(CallStatus.SUCCEEDED)
    result = make_result(call.metadata, text, "success")
    handled: HandledCall[Any, Any] = call.spec.handled_type(
        call.metadata, call.input, output, result, decision.decider
    )
    return handled


def _as_output(waiting: SuspendedCall, decision: Decision) -> tuple[Any, str]:
    """Read the decision's result as the tool's output, and encode it as one."""
    call = waiting.call
    declared = call.spec.output
    try:
        output = declared.validate_json(compact_json(decision.result))
        return output, declared.encode(call.name, output)
    except (ValidationError, ToolOutputError) as error:
        fields = error.fields if isinstance(error, ToolOutputError) else field_issues(error)
        issues = "; ".join(str(issue) for issue in fields)
        raise ResumeError(
            f"The result of decision {decision.decision_id!r} for call {call.id!r} does not fit "
            f"the output type of tool `{call.name}`: {issues}. Ask again."
        ) from None
