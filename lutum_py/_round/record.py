"""Take in what calls came to while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
stands here, so that this one cannot be run as well.
"""

from __future__ import annotations

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.outcomes import SuspendedCall
from .._text.once import ONCE
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
from .sorted_calls import Recorded, SortedCalls, by_id, moving

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
    recorded = by_id(calls)
    call = recorded.open.get(result.id)
    if faults := _faults(calls, recorded, result, call):
        raise CommitError(faults)
    if call is not None and not call.status.is_terminal:
        call.end(_ENDS[result.status])
    with ONCE:
        recorded = moving(calls)
        if call is not None:
            recorded.ended[call.id] = call
        recorded.finished[result.id] = result  # from here on it is no open call, wherever it stands
        recorded.open.pop(result.id, None)


def suspend(calls: SortedCalls, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    metadata, status = outcome.call.metadata, outcome.call.status
    call = by_id(calls).open.get(metadata.id)
    if call is None or call.metadata != metadata:
        raise LifecycleError(
            f"Call {outcome.call.id!r} cannot be suspended: it is not pending in this plan. "
            f"Pending: {[each.id for each in calls.pending]}."
        )
    if status is not CallStatus.SUSPENDED:
        raise LifecycleError(
            f"Call {call.id!r} is {status}, so it does not wait for a decision any more. Give "
            "the plan what `call.suspend(ticket)` or `execute` returned last."
        )
    with ONCE:
        recorded = moving(calls)
        recorded.open.pop(call.id, None)
        recorded.doubted.discard(call.id)
        recorded.waiting[call.id] = outcome


def doubt(calls: SortedCalls, call: AnyToolCall) -> None:
    """Take in that a pending call was begun elsewhere, and that nothing more is known of it."""
    call._status = CallStatus.RUNNING
    with ONCE:
        moving(calls).doubted.add(call.id)


def _faults(
    calls: SortedCalls, recorded: Recorded, result: ToolResult, call: AnyToolCall | None
) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    if result.id in recorded.finished:
        return [DuplicateResult(result.id, result.name)]
    if call is not None:
        if call.status is CallStatus.SUSPENDED:
            return [UnresolvedSuspension(result.id, result.name)]
        return mismatches(result, call.metadata)
    for issue in calls.recoverable_tool_call_issues:
        if issue.metadata.id == result.id:
            return mismatches(result, issue.metadata)
    if result.id in recorded.waiting:
        return [UnresolvedSuspension(result.id, result.name)]
    settled = {each.metadata.id for each in calls.handled}
    settled |= {each.metadata.id for each in calls.rejected}
    waiting = tuple(each.id for each in (*calls.pending, *calls.in_doubt))
    return [ExtraResult(result.id, result.name, waiting, result.id in settled)]
