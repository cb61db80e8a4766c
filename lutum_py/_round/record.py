"""Take in what calls came to while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
stands here, so that this one cannot be run as well.
"""

from __future__ import annotations

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.line import new_step, newer_than
from .._call.outcomes import SuspendedCall
from .._text.once import ONCE
from .._transcript.result import ToolResult
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    LifecycleError,
    UnresolvedSuspension,
)
from .commit import ResultLike, as_results, mismatches
from .sorted_calls import SortedCalls, list_of, unread_steps


def record(calls: SortedCalls, outcome: ResultLike | SuspendedCall) -> None:
    """Take in one outcome; see `ToolRoundPlan.record`."""
    if isinstance(outcome, SuspendedCall):
        suspend(calls, outcome)
        return
    ((result,), _) = as_results([outcome])
    with ONCE:
        call = calls._call(result.id)
        if faults := _faults(calls, result, call):
            raise CommitError(faults)
        calls._move(result.id)  # first: an interrupt may come anywhere
        if call is None:
            _replace_rejection(calls, result)
            return
        if not call._stage.is_end:
            call._check_newest()
            call._end(result.status, result)
        call._append("recorded", said=result.status, detail=result)


def _replace_rejection(calls: SortedCalls, result: ToolResult) -> None:
    """Keep the result of a call that could not be used, in the place of its rejection."""
    issue = calls._issue(result.id)
    assert issue is not None
    state = calls._state
    line = unread_steps(state._at, "reading", issue.result)
    last = line[-1]
    step = ("recorded", last.stage, newer_than(last), None, None, result.status, None, None, result)
    state._unread = {**state._unread, result.id: (*line, new_step(step))}


def suspend(calls: SortedCalls, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    given = outcome.call
    with ONCE:
        call = calls._call(given.id)
        if call is None or given.metadata != call.metadata or list_of(call) not in _OPEN:
            raise LifecycleError(
                f"Call {given.id!r} cannot be suspended: it is not pending in this plan. "
                f"Pending: {[each.id for each in calls.pending]}."
            )
        status = given.status
        if status is not CallStatus.SUSPENDED:
            raise LifecycleError(
                f"Call {call.id!r} is {status}, so it does not wait for a decision any more. Give "
                "the plan what `call.suspend(ticket)` or `execute` returned last."
            )
        if call._stage is not given._stage:
            call._check_newest()
        calls._move(call.id)
        if given._told is not call._told:
            _wait_as(call, given)
        call._append("recorded", said="suspended")


_OPEN = ("pending", "in_doubt")


def _wait_as(call: AnyToolCall, given: AnyToolCall) -> None:
    """Let a call wait as the same one does that was run elsewhere."""
    step = next(step for step in reversed(given._line) if step.kind == "suspended")
    if call._stage.may_begin:
        call._append("begun")
    call._append("suspended", by=step.by, said=step.said, digest=call.digest, detail=step.detail)


def _faults(calls: SortedCalls, result: ToolResult, call: AnyToolCall | None) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    if call is not None:
        where = list_of(call)
        if where == "finished":
            return [DuplicateResult(result.id, result.name)]
        if where in _OPEN and call.status is not CallStatus.SUSPENDED:
            return mismatches(result, call.metadata)
        if where in _OPEN or where == "suspended":
            return [UnresolvedSuspension(result.id, result.name)]
        return [_extra(calls, result, is_settled=True)]
    if result.id in calls._state._unread:
        return [DuplicateResult(result.id, result.name)]
    issue = calls._issue(result.id)
    if issue is not None:
        return mismatches(result, issue.metadata)
    return [_extra(calls, result, is_settled=False)]


def _extra(calls: SortedCalls, result: ToolResult, *, is_settled: bool) -> ExtraResult:
    waiting = tuple(each.id for each in (*calls.pending, *calls.in_doubt))
    return ExtraResult(result.id, result.name, waiting, is_settled)
