"""Take in what calls came to while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
stands here, so that this one cannot be run as well.
"""

from __future__ import annotations

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.outcomes import SuspendedCall
from .._transcript.result import ResultStatus, ToolResult
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    LifecycleError,
    UnresolvedSuspension,
)
from .commit import ResultLike, as_results, mismatches
from .sorted_calls import Recorded, SortedCalls, in_order

__all__ = ["doubt", "record", "suspend"]

_ENDS: dict[ResultStatus, CallStatus] = {
    "success": CallStatus.SUCCEEDED,
    "error": CallStatus.FAILED,
    "indeterminate": CallStatus.FAILED,
    "rejected": CallStatus.CANCELLED,
    "cancelled": CallStatus.CANCELLED,
}


def record(calls: SortedCalls, outcome: ResultLike | SuspendedCall) -> None:
    """Take in one outcome; see `ToolRoundPlan.record`."""
    if isinstance(outcome, SuspendedCall):
        suspend(calls, outcome)
        return
    ((result,), _) = as_results([outcome])
    recorded = calls._recorded or Recorded(calls)
    call = recorded.open_call(result.id)
    if faults := _faults(calls, recorded, result, call):
        raise CommitError(faults)
    if call is not None and not call.status.is_terminal:
        call.end(_ENDS[result.status])
    recorded.enter(calls, result, call)


def suspend(calls: SortedCalls, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    metadata, status = outcome.call.metadata, outcome.call.status
    own = (*calls.pending, *calls.in_doubt)
    call = next((each for each in own if each.metadata == metadata), None)
    if call is not None and status is not CallStatus.SUSPENDED:
        raise LifecycleError(
            f"Call {call.id!r} is {status}, so it does not wait for a decision any more. Give "
            "the plan what `call.suspend(ticket)` or `execute` returned last."
        )
    if call is None:
        raise LifecycleError(
            f"Call {outcome.call.id!r} cannot be suspended: it is not pending in this plan. "
            f"Pending: {[each.id for each in calls.pending]}."
        )
    _take_out(calls, call)
    calls.change(suspended=(*calls.suspended, outcome))


def doubt(calls: SortedCalls, call: AnyToolCall) -> None:
    """Take in that a pending call was begun elsewhere, and that nothing more is known of it."""
    if call in calls.in_doubt:
        return
    call._status = CallStatus.RUNNING
    _take_out(calls, call)
    calls.change(in_doubt=in_order(calls, (*calls.in_doubt, call)))


def _take_out(calls: SortedCalls, call: AnyToolCall) -> None:
    calls.change(
        pending=tuple(each for each in calls.pending if each is not call),
        in_doubt=tuple(each for each in calls.in_doubt if each is not call),
    )


def _faults(
    calls: SortedCalls, recorded: Recorded, result: ToolResult, call: AnyToolCall | None
) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    if recorded.is_answered(result.id):
        return [DuplicateResult(result.id, result.name)]
    if call is not None:
        if call.status is CallStatus.SUSPENDED:
            return [UnresolvedSuspension(result.id, result.name)]
        return mismatches(result, call.metadata)
    for issue in calls.recoverable_tool_call_issues:
        if issue.metadata.id == result.id:
            return mismatches(result, issue.metadata)
    if any(each.call.id == result.id for each in calls.suspended):
        return [UnresolvedSuspension(result.id, result.name)]
    settled = {each.metadata.id for each in calls.handled}
    settled |= {each.metadata.id for each in calls.rejected}
    waiting = tuple(each.id for each in (*calls.pending, *calls.in_doubt))
    return [ExtraResult(result.id, result.name, waiting, result.id in settled)]
