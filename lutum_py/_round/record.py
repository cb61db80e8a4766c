"""Take in what calls came to while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
stands here, so that this one cannot be run as well.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any, Final, TypeVar

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
from .sorted_calls import SortedCalls

__all__ = ["Ledger", "doubt", "record", "suspend"]

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
    ledger = calls._ledger or Ledger(calls)
    call = ledger.open_call(result.id)
    if faults := _faults(calls, ledger, result, call):
        raise CommitError(faults)
    if call is not None and not call.status.is_terminal:
        call.end(_ENDS[result.status])
    ledger.enter(calls, result, call)


# A round may have thousands of calls, and each result that comes in would have them all sorted
# anew. So the results stand here until somebody asks how the calls are sorted: their slots in the
# plan are empty until then. The lock is for threads that run calls of one plan.
class Ledger:
    """Hold the results that were recorded since the calls of a plan were sorted otherwise.

    Args:
        calls: The calls of the plan as they are sorted.
    """

    __slots__ = ("_answered", "_before", "_lock", "_open", "_recorded")

    def __init__(self, calls: SortedCalls) -> None:
        self._before = (calls.pending, calls.in_doubt, calls.finished, calls._ended)
        self._open = {call.id: call for call in (*calls.pending, *calls.in_doubt)}
        self._answered = {result.id for result in calls.finished}
        self._recorded: dict[str, tuple[ToolResult, AnyToolCall | None]] = {}
        self._lock = Lock()

    def open_call(self, id: str) -> AnyToolCall | None:
        """Give a call that is pending or in doubt."""
        return None if id in self._recorded else self._open.get(id)

    def is_answered(self, id: str) -> bool:
        """Tell whether the plan has a result of a call."""
        return id in self._recorded or id in self._answered

    def enter(self, calls: SortedCalls, result: ToolResult, call: AnyToolCall | None) -> None:
        """Keep a result, which answers an open call or one that could not be used."""
        with self._lock:
            self._recorded[result.id] = (result, call)
            object.__setattr__(calls, "_ledger", self)
            for slot in _EMPTIED:
                with suppress(AttributeError):
                    slot.__delete__(calls)

    def sort(self, calls: SortedCalls) -> None:
        """Fill the slots that recording has emptied."""
        with self._lock:
            pending, in_doubt, finished, ended = self._before
            recorded = self._recorded
            values = (
                tuple(call for call in pending if call.id not in recorded),
                tuple(call for call in in_doubt if call.id not in recorded),
                _in_order(calls, (*finished, *(result for result, _ in recorded.values()))),
                {**ended, **{id: call for id, (_, call) in recorded.items() if call is not None}},
            )
            for slot, value in zip(_EMPTIED, values, strict=True):
                slot.__set__(calls, value)


_EMPTIED: Final[tuple[Any, ...]] = tuple(
    vars(SortedCalls)[name] for name in ("pending", "in_doubt", "finished", "_ended")
)

_Identified = TypeVar("_Identified", AnyToolCall, ToolResult)


def _in_order(calls: SortedCalls, each: tuple[_Identified, ...]) -> tuple[_Identified, ...]:
    """Put calls or results in the order of the turn."""
    place = {asked.id: index for index, asked in enumerate(calls._state.turn.tool_calls)}
    return tuple(sorted(each, key=lambda one: place[one.id]))


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
    calls.change(in_doubt=_in_order(calls, (*calls.in_doubt, call)))


def _take_out(calls: SortedCalls, call: AnyToolCall) -> None:
    calls.change(
        pending=tuple(each for each in calls.pending if each is not call),
        in_doubt=tuple(each for each in calls.in_doubt if each is not call),
    )


def _faults(
    calls: SortedCalls, ledger: Ledger, result: ToolResult, call: AnyToolCall | None
) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    if ledger.is_answered(result.id):
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
