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
from .._call.line import END_OF, Step, moment, newer_than
from .._call.outcomes import AskingCall, NotEnded, SuspendedCall
from .._text.on_demand import ONCE
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
from .ending import ResultLike, as_results, asking_fault, check_shown, mismatches
from .inner import ask, take_inner
from .sorted_calls import SortedCalls, issue_in, state_in


def record(calls: SortedCalls, outcome: ResultLike | NotEnded) -> None:
    """Take in one outcome; see `ToolRoundPlan.record`."""
    if isinstance(outcome, SuspendedCall):
        suspend(calls, outcome)
        return
    if isinstance(outcome, AskingCall):
        asked = ask(calls, outcome)
        if asked is outcome:
            return
        outcome = asked  # it asked for too much
    ((result,), _) = as_results([outcome])
    with ONCE:
        call = calls._call(result.id)
        if calls._state._inner:
            check_shown(calls, result.id)
        if faults := _faults(calls, result, call):
            raise CommitError(faults)
        calls._move(result.id)  # first: an interrupt may come anywhere
        if call is None:  # it takes the place of the rejection
            state, line = calls._state, calls._line_of(result.id)
            at, said = newer_than(line[-1]), result.status
            told = Step("recorded", line[-1].stage, at, said=said, detail=result)
            state._unread = {**state._unread, result.id: (*line, told)}
            return
        # The result may come from another process, or from `call.again()`: what ends the call there
        # has to end it here, and a second end needs the step `again` between.
        if call._stage.is_end and call._stage is not END_OF[result.status]:
            call._append("again")  # it is the result of another try
        if not call._stage.is_end:
            call._append("ended", said=result.status, detail=result)
        call._append("recorded", said=result.status, detail=result)


def _faults(calls: SortedCalls, result: ToolResult, call: AnyToolCall | None) -> list[CommitFault]:
    """Say why a result cannot be taken in."""
    id, name = result.id, result.name
    line = calls._state._unread.get(id, ()) if call is None else call._line
    asked = call or issue_in(line)
    where = None
    if line:
        where = "suspended" if line[-1].stage.name == "suspended" else state_in(line)
    if where == "asking" and call is not None:
        return [asking_fault(call)]
    if where == "finished":
        return [DuplicateResult(id, name)]
    if where == "suspended":
        return [UnresolvedSuspension(id, name)]
    if asked is None or where in ("handled", "rejected"):
        waiting = tuple(each.id for each in (*calls.pending, *calls.in_doubt))
        return [ExtraResult(id, name, waiting, where is not None)]
    return mismatches(result, asked.metadata)


def suspend(calls: SortedCalls, outcome: SuspendedCall) -> None:
    """Let an open call of a plan wait; see `ToolRoundPlan.suspend`."""
    given = outcome.call
    with ONCE:
        call = calls._call(given.id)
        if call is None or given.metadata != call.metadata or state_in(call._line) not in _OPEN:
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
        asked = dict.fromkeys((*calls._state._calls_of_all(), *other._state._calls_of_all()))
        lines = [(each, calls._line_of(each.id), other._line_of(each.id)) for each in asked]
        faults = [
            f"call {each.id!r} of tool `{each.name}` was {mine.kind} at {moment(mine.at)} here, "
            f"and {theirs.kind} at {moment(theirs.at)} there"
            for each, own, given in lines
            for mine, theirs in _parting(own, given)
        ]
        if faults:
            raise PlanError(
                "The plans went on with the same call in two ways: " + "; ".join(faults) + ". "
                "Find out which of them happened, and go on with that plan."
            )
        longer = {each.id: given for each, own, given in lines if len(given) > len(own)}
        for own in filter(None, map(calls._call, longer)):
            own._check_newest()
        for id, line in longer.items():
            call, copy = calls._call(id), other._call(id)
            calls._move(id)
            if call is not None and copy is not None:
                call._become(copy._told)
            elif id not in other._state._inner:
                calls._state._unread = {**calls._state._unread, id: line}
        if other._state._inner:
            take_inner(calls, other)
        calls.change(
            _askings=(*calls._askings, *(a for a in other._askings if a not in calls._askings)),
            _owes_after=calls._owes_after or other._owes_after,
        )
        for hooks in other._state._hook_sets:
            calls.note_hooks(hooks)
        other._state._close("merged")


# Here `proposed asked begun`, there `proposed asked begun ended recorded`: one begins the other,
# and the longer one counts. Here `… begun ended`, there `… begun ended` at another moment: the tool
# ran twice, and which result is true only a person can say.
def _parting(own: tuple[Step, ...], given: tuple[Step, ...]) -> list[tuple[Step, Step]]:
    """Give the steps in which two lines part; none where one begins the other."""
    return [two for two in zip(own, given, strict=False) if _said(two[0]) != _said(two[1])][:1]


def _said(step: Step) -> list[object]:
    """Give what a step says, without what belongs to one process."""
    # Arguments are written down when they are first needed, a result is told by `recorded`, and
    # what asked names its time of asking.
    is_own = step.kind in ("proposed", "changed", "ended", "asks")
    is_own = is_own or (step.kind == "asked" and step.phase != "after")
    return [step.kind, step.at, *step[3:8], None if is_own else step.detail]
