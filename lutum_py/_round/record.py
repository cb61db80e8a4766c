"""Take in what calls came to while the plan is open, so that the plan is the one thing to keep.

A result may be made anywhere: by the call here, by a call of the same metadata on another machine,
by hand. It is matched by id, name and raw arguments alone, as at the commit, and ends the call that
stands here, so that this one cannot be run as well.

What another copy of the plan came to is taken in whole: a plan that was saved may have been loaded
twice, and its calls run in two processes. Where nothing but one of them went on with a call, its
line begins with the other's, and nothing is in doubt about which to keep. Where both did, the two
lines tell of two different things that were done, and no rule can choose. It is the same in
whichever order copies are merged: the longest line of a call is the longest of any two.
"""

from __future__ import annotations

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.line import END_OF, Step, new_step, newer_than
from .._call.outcomes import SuspendedCall
from .._text.once import ONCE
from .._transcript.result import ToolResult
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    LifecycleError,
    MisuseError,
    PlanError,
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
        if call._stage.is_end and call._stage is not END_OF[result.status]:
            call._append("again")  # it is the result of another try
        if not call._stage.is_end:
            call._check_newest()
            call._end(result.status, detail=result)
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


# What another copy came to.


def merge(calls: SortedCalls, other: SortedCalls) -> None:
    """Take in another copy of a plan; see `ToolRoundPlan.merge`."""
    if not isinstance(other, SortedCalls):
        raise MisuseError.of_field("plan.merge", "other", "a plan", other)
    if other._state is calls._state:
        raise MisuseError(
            "These are plans of one round, so both show what became of each call already. Merge a "
            "plan that another process loaded and saved."
        )
    calls._state._check_open()
    other._state._check_open()
    with ONCE:
        if other._state.turn != calls._state.turn or other.toolset is not calls.toolset:
            raise PlanError(
                "The plans are of different rounds, so neither can take in the other. Merge copies "
                "of one plan: those that were loaded from what one `plan.dump_json()` gave."
            )
        pairs = [(own, other._call(own.id)) for own in calls._calls]
        faults = [
            _differ(own, given)
            for own, given in pairs
            if given is None or not _follow(_said(own._line), _said(given._line))
        ]
        unread = calls._state._unread
        faults += [
            f"call {id!r} has two results"
            for id, line in other._state._unread.items()
            if id in unread and not _follow(_said(unread[id]), _said(line))
        ]
        if faults:
            raise PlanError(
                "The plans went on with the same call in two ways: " + "; ".join(faults) + ". "
                "Find out which of them happened, and go on with that plan."
            )
        longer = [(a, b) for a, b in pairs if b is not None and len(b._line) > len(a._line)]
        for own, _ in longer:
            own._check_newest()
        for own, given in longer:
            calls._move(own.id)
            own._become(given._told)
        for id, line in other._state._unread.items():
            if len(line) > len(unread.get(id, ())):
                calls._state._unread = {**calls._state._unread, id: line}
                calls._move(id)
        calls.change(
            _askings=(*calls._askings, *(a for a in other._askings if a not in calls._askings)),
            _owes_after=calls._owes_after or other._owes_after,
        )
        for hooks in other._hook_sets:
            calls.note_hooks(hooks)
        other._state._close("merged")


def _said(line: tuple[Step, ...]) -> list[tuple[object, ...]]:
    """Give what a line says, without what belongs to one process."""
    said: list[tuple[object, ...]] = []
    for step in line:
        detail = None if step.kind == "asked" and step.phase != "after" else step.detail
        if step.kind in ("proposed", "changed") or step.kind == "ended":
            detail = None  # written down for the first time it is needed, or told by `recorded`
        said.append((*step[:1], step.at, *step[3:8], detail))
    return said


def _follow(one: list[tuple[object, ...]], two: list[tuple[object, ...]]) -> bool:
    """Whether one line begins the other."""
    return all(mine == theirs for mine, theirs in zip(one, two, strict=False))


def _differ(own: AnyToolCall, given: AnyToolCall | None) -> str:
    """Name a call and the steps in which its two lines part."""
    assert given is not None
    pairs = zip(_said(own._line), _said(given._line), strict=False)
    place = next(place for place, (mine, theirs) in enumerate(pairs) if mine != theirs)
    mine, theirs = own.steps[place], given.steps[place]
    return (
        f"call {own.id!r} of tool `{own.name}` was {mine.kind} at {mine.at} here, and "
        f"{theirs.kind} at {theirs.at} there"
    )
