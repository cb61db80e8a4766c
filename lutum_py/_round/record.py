"""Take in the outcomes of calls while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
is here, so that this one cannot be run as well.
"""

from __future__ import annotations

from .._call.base_call import CallRecord
from .._call.call import AwaitingCall, Hooks, NotEnded, SuspendedCall
from .._call.drivers import HookGenerator
from .._call.history import CallStatus, History, Move, move
from .._hooks.registered_hook import HookPlaces, RegisteredHook
from .._text.json import shorten
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
    is_refusal,
    mismatches,
    show_results,
)
from .events import OnEvent, notify
from .inner import ask, decide_asked, was_taken
from .sorted_calls import RoundState


def record(state: RoundState, outcome: ResultLike | NotEnded, run: int | None = None) -> bool:
    """Take in one outcome; see `ToolRoundPlan.record`.

    Args:
        state: The state of the round.
        outcome: The outcome.
        run: The number of the run that it is of, if that is known.

    Returns:
        Whether it is still that of the call; not if the call was started again since.
    """
    if isinstance(outcome, SuspendedCall):
        suspend(state, outcome)
        return True
    if isinstance(outcome, AwaitingCall):
        asked = ask(state, outcome)
        if asked is outcome:
            return True
        outcome = asked  # it asked for too much
    ((result,), _) = as_results([outcome])
    while True:
        call = state.find(result.id)
        since = 0 if call is None else len(call.entries)
        if call is not None and run is not None and call.last[1] != run:
            return False
        if state.call_round.inner:
            check_shown(state, result.id)
        told = None if call is None else call.history.recorded
        if is_refusal(result, call) or (told is not None and told.detail == result):
            return True  # it is here already
        if faults := _faults(state, result, call):
            raise CommitError(faults)
        assert call is not None
        history = call.history
        if RegisteredHook.any_after:
            check_as_left(call, result)
        moves = [move("recorded", verdict=result.status, detail=result)]
        # The result may come from another process: what ends the call there ends it here. That of a
        # call that cannot be used takes the place of its rejection.
        if not history.stage.is_end:
            ended = move("ended", verdict=result.status, detail=result)
            moves[:0] = [*call.changes_unstarted(), ended]
        elif _status_of(history) != result.status and history.issue is None:
            raise CommitError([DuplicateResult(result.id, result.name)])
        if call.append_all(tuple(moves), since) is not None:
            return True


def settle(
    state: RoundState,
    outcome: ResultLike | NotEnded,
    hooks: Hooks,
    on_event: OnEvent | None = None,
) -> HookGenerator[ToolResult | NotEnded]:
    """Show an outcome to after-hooks, take it in, and review what was requested."""
    if isinstance(outcome, AwaitingCall):
        return (yield from _settle_asked(state, outcome, hooks, on_event))
    results, waits = as_results([outcome])
    settled: ToolResult | NotEnded = [*results, *waits][0]
    for result in results:  # so that a hook sees a call that has ended
        call = state.find(result.id)
        if faults := _faults(state, result, call):
            raise CommitError(faults)
        if call is not None and call.stage.may_end:
            call.append("ended", verdict=result.status, detail=result)
    hook_set: object = hooks
    if isinstance(hook_set, HookPlaces):
        (settled,) = yield from show_results(state, hooks, [settled])
    record(state, settled)
    return settled


def _settle_asked(
    state: RoundState, outcome: AwaitingCall, hooks: Hooks, on_event: OnEvent | None
) -> HookGenerator[ToolResult | NotEnded]:
    call = state.find_decoded(outcome.call.id)
    if call is None or not was_taken(call, outcome):  # else a hook raised, and this is repeated
        record(state, outcome)
        call = state.find_decoded(outcome.call.id)
        assert call is not None
        if (end := call.history.end) is not None:  # it asked for too much
            result: ToolResult = end.detail
            return result
        if on_event is not None:
            notify(state, on_event, "requested", call)
    yield from decide_asked(state, hooks, on_event, by=call)
    return outcome


def _status_of(history: History) -> str | None:
    """Return the status of the result that a call ended with, as after-hooks left it."""
    for step in reversed(history.this_try):
        if step.phase == "after" and step.verdict == "replaced":
            replaced: ToolResult = step.detail[1]
            return replaced.status
    return history.settled_by.verdict


def _faults(state: RoundState, result: ToolResult, call: CallRecord | None) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    id, name = result.id, result.name
    listed = None
    if call is not None:
        history = call.history
        listed = "suspended" if history.stage.name == "suspended" else history.state
    if listed == "awaiting" and call is not None:
        return [asking_fault(call)]
    if listed == "finished":
        return [DuplicateResult(id, name)]
    if listed == "suspended":
        return [UnresolvedSuspension(id, name)]
    # The rejection of an unusable call can be replaced, but not if another call asked for it: that
    # one may have seen it by now.
    is_seen = listed == "unusable" and call is not None and call.requested_by is not None
    if call is None or is_seen or listed in ("handled", "rejected"):
        waiting = tuple(each.id for each in (*state.lists.pending, *state.lists.in_doubt))
        return [ExtraResult(id, name, waiting, listed is not None)]
    return mismatches(result, call.metadata, call)


def suspend(state: RoundState, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    if not isinstance(outcome, SuspendedCall):
        raise MisuseError(
            f"plan.suspend takes a call that suspended itself, not {shorten(outcome)}. Give any "
            "other outcome to `plan.record(outcome)`."
        )
    given = outcome.call._record
    while True:
        call = state.open_call(given, "cannot be suspended")
        since = len(call.entries)
        status = given.status
        if status is not CallStatus.SUSPENDED:
            raise LifecycleError(
                f"Call {call.id!r} is {status}, so it does not wait for a decision any more. Give "
                "the plan what `call.suspend(ticket)` or `execute` returned last."
            )
        moves: list[Move] = [move("recorded", verdict="suspended")]
        if call.stage.name != "suspended":  # it was run elsewhere, and waits here for the same
            wait = given.history.settled_by
            moves.insert(0, wait._replace(digest=call.digest).as_move)
            if call.stage.may_start:
                moves.insert(0, move("started"))
        elif call.history.recorded is not None:
            return
        if call.append_all(tuple(moves), since) is not None:
            return
