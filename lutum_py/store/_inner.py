"""Calls within calls in a store: what a call leaves behind, and when it may be claimed again.

A call that requested others has a row in state `awaiting`; the row of each of these is `unreviewed`
or, once hooks let it pass, `ready`. The last one that gets its result makes the first `ready`
again.

What was done since a plan was saved is in rows. A call that comes back goes on from the results
within it, and a plan that says so has to have these. So when it leaves its tool once more, the rows
of all within it go into the plan:

    c1 awaiting, c1/1 done, c1/2 ready      c1/2 ends: c1 ready
    c1 started, c1/1 done, c1/2 done        c1 requests: c1 awaiting, c1/3 unreviewed, and no row of
    the others
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from .._call.call import AnyToolCall, Hooks
from .._call.drivers import HookGenerator
from .._call.history import Step
from .._call.outcomes import NotEnded, SuspendedCall
from .._round.events import CallEvent, tell_asked, tell_row
from .._round.inner import ask, decide_asked, settle_within, show_to
from .._round.plan import ToolRoundPlan
from .._round.rows import row_at
from .._transcript.result import ToolResult
from ._calls import apply_row, apply_rows, calls_at, places_of
from ._database import Rows
from ._rows import SavedCall

R = TypeVar("R")


class Drive(Protocol):
    """Run a generator that calls hooks to its end."""

    def __call__(self, generator: HookGenerator[R], /) -> R: ...


def leave(
    plan: ToolRoundPlan[Any],
    outcome: NotEnded,
    rows: Iterable[SavedCall],
    hooks: Hooks | None,
    drive: Drive,
) -> tuple[list[str] | None, tuple[NotEnded | ToolResult, list[CallEvent]]]:
    """Let a call leave its tool, to wait for a decision or for calls that it requests.

    Args:
        plan: The plan as it was saved.
        outcome: The outcome of the call.
        rows: All rows of the round, each of which fits its seal, in the order of places.
        hooks: The hooks that decide about what it requests; None leaves that `unreviewed`.
        drive: Runs the generator that calls them.

    Returns:
        The ids of the calls whose rows change, its own first; and the same outcome with what
        happened. Of a call that requests too much: None, and its result; nothing changed.
    """
    events: list[CallEvent] = []
    call = plan._call(outcome.call.id)
    assert call is not None
    places = places_of(plan)
    # Only the rows of this call and of those within it change the plan. What other workers do at
    # the same time stays in their rows, and the plan need not be read again by them.
    within = {places[each.id] for each in call._asked_for()}
    calls = calls_at(plan)
    apply_rows(calls, [row for row in rows if row.place in within])
    for row in rows:
        if row.place == places[call.id]:
            apply_row(call, row, is_left=False)
    if isinstance(outcome, SuspendedCall):
        plan.record(outcome)
    else:
        asked = ask(plan, outcome)
        if isinstance(asked, ToolResult):
            return None, (asked, events)
        tell_row(events.append, "requested", row_at(plan, call))
        tell_asked(plan, events.append, call)
        if hooks is not None:
            drive(decide_asked(plan, hooks, events.append, by=call))
    ids = [call.id, *(each.id for each in call._asked_for())]
    return ids, (outcome, events)


def decide_within(
    plan: ToolRoundPlan[Any], hooks: Hooks, drive: Drive
) -> tuple[list[str] | None, list[CallEvent] | None]:
    """Decide about what was requested, and let after-hooks see what people decided within.

    Returns:
        The ids of the calls whose rows change, and what happened; None if nothing changed.
    """
    events: list[CallEvent] = []
    inner = plan._state._round.inner
    before = {id: len(each._history) for id, each in inner.items()}
    asked = [call.id for call in plan.unreviewed]
    drive(settle_within(plan, hooks, events.append))
    if all(len(each._history) == before[id] for id, each in inner.items()):
        return None, None
    return asked, events


def shown(
    call: AnyToolCall, result: ToolResult, hooks: Hooks, drive: Drive
) -> tuple[ToolResult, tuple[Step, ...]]:
    """Show after-hooks the result of a call within another; give it as they left it."""
    ended = call._copy_for(None)
    if ended._stage.may_end:  # it was run elsewhere, or answered by hand
        ended._append("ended", verdict=result.status, detail=result)
    before = len(ended._history)
    result = drive(show_to(ended, result, hooks))
    return result, ended._history[before:]


def reopen_asking_call(rows: Rows, row: SavedCall) -> None:
    """Let a call that requested others be claimed once the last of them has ended.

    Args:
        rows: The transaction, in which the conversation is locked.
        row: The row of the call that ended.

    Raises:
        StoreError: The row of the call that requested it was edited.
    """
    if (by := row.requested_by) is None:
        return
    # In the transaction that writes the last result, so that two calls which end at once cannot
    # both see the other one open, and leave the awaiting call waiting forever.
    still = SavedCall.still_open(rows, row.conversation)
    if any(each.requested_by == by for each in still):
        return
    for asking in still:
        if asking.place == by and asking.state == "awaiting":
            asking.check(rows)
            asking._replace(state="ready", until=rows.now()).write(rows)
