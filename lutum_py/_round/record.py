"""Take in the outcomes of calls while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
is here, so that this one cannot be run as well.
"""

from __future__ import annotations

from typing import Any

from .._call.base_call import BaseCall
from .._call.history import settled_by, state_in, time_after
from .._call.lifecycle import CallStatus
from .._call.outcomes import AwaitingCall, NotEnded, SuspendedCall, issue_in
from .._hooks.registered_hook import RegisteredHook
from .._text.json import shorten
from .._text.on_demand import ONCE
from .._transcript.result import ToolResult
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    LifecycleError,
    MisuseError,
    UnresolvedSuspension,
)
from .ending import (
    ResultLike,
    as_results,
    asking_fault,
    check_as_left,
    check_shown,
    mismatches,
)
from .inner import ask
from .sorted_calls import SortedCalls


def record(calls: SortedCalls, outcome: ResultLike | NotEnded) -> None:
    """Take in one outcome; see `ToolRoundPlan.record`."""
    if isinstance(outcome, SuspendedCall):
        suspend(calls, outcome)
        return
    if isinstance(outcome, AwaitingCall):
        asked = ask(calls, outcome)
        if asked is outcome:
            return
        outcome = asked  # it asked for too much
    ((result,), _) = as_results([outcome])
    with ONCE:
        call = calls._any(result.id)
        tries: Any = calls._state._round.tries and calls._tries_of([result])
        if calls._state._round.inner:
            check_shown(calls, result.id, tries=tries)
        if faults := _faults(calls, result, call):
            raise CommitError(faults)
        assert call is not None
        if RegisteredHook.any_after:
            check_as_left(call, result)
        if tries:
            calls._take_tries(tries.values())
        calls._move(result.id)  # first: an interrupt may come anywhere
        # The result may come from another process, or from `call.retry()`: what ends the call there
        # has to end it here, and a second end needs the step `retried` between. That of a call that
        # cannot be used takes the place of its rejection.
        history = call._history
        is_over = history[-1].stage.is_end
        if is_over and settled_by(history).verdict != result.status and issue_in(history) is None:
            call._check_newest("ended")  # `retried` alone would be written
            call._append("retried")  # it is the result of another try
            is_over = False
        if not is_over:
            call._append("ended", verdict=result.status, detail=result)
        call._append("recorded", verdict=result.status, detail=result)


def _faults(calls: SortedCalls, result: ToolResult, call: BaseCall | None) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    id, name = result.id, result.name
    state = None
    if call is not None:
        history = call._history
        state = "suspended" if history[-1].stage.name == "suspended" else state_in(history)
    if state == "awaiting" and call is not None:
        return [asking_fault(call)]
    if state == "finished":
        return [DuplicateResult(id, name)]
    if state == "suspended":
        return [UnresolvedSuspension(id, name)]
    # The rejection of an unusable call can be replaced, but not if another call asked for it: that
    # one may have seen it by now.
    is_seen = state == "unusable" and call is not None and call._asked_by is not None
    if call is None or is_seen or state in ("handled", "rejected"):
        waiting = tuple(each.id for each in (*calls.pending, *calls.in_doubt))
        return [ExtraResult(id, name, waiting, state is not None)]
    return mismatches(result, call.metadata)


def suspend(calls: SortedCalls, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    if not isinstance(outcome, SuspendedCall):
        raise MisuseError(
            f"plan.suspend takes a call that suspended itself, not {shorten(outcome)}. Give any "
            "other outcome to `plan.record(outcome)`."
        )
    given = outcome.call
    with ONCE:
        call = calls._open_call(given, "cannot be suspended")
        status = given.status
        if status is not CallStatus.SUSPENDED:
            raise LifecycleError(
                f"Call {call.id!r} is {status}, so it does not wait for a decision any more. Give "
                "the plan what `call.suspend(ticket)` or `execute` returned last."
            )
        if call._stage is not given._stage:
            call._check_newest()
        wait = settled_by((call if call._stage.name == "suspended" else given)._history)
        calls._move(call.id)
        if calls._state._round.tries:
            calls._take_try(given)
        # It was run elsewhere, and waits here for the same.
        if call._stage.name != "suspended" and given._current is not call._current:
            if call._stage.may_start:
                call._append("started")
            at = time_after(call._history[-1], wait.at)
            said, digest = wait.verdict, call.digest
            call._append(
                "suspended", at=at, by=wait.by, verdict=said, digest=digest, detail=wait.detail
            )
        call._append("recorded", verdict="suspended")
