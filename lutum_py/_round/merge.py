"""Take in what another copy of a plan came to: of each call the longer line.

A plan that was saved may have been loaded twice, and its calls run in two processes. Where nothing
but one of them went on with a call, its line begins with the other's, and nothing is in doubt about
which to keep. Where both did, the two lines tell of two different things that were done, and no
rule can choose. It is the same in whichever order copies are merged: the longest line of a call is
the longest of any two.
"""

from __future__ import annotations

from .._call.call import AnyToolCall
from .._call.line import Step
from .._text.once import ONCE
from ..errors import MisuseError, PlanError
from .sorted_calls import SortedCalls


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
        for own, given in pairs:
            if given is not None and len(given._line) > len(own._line):
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
