"""Rows of calls: which ones a plan has, and what they say about a plan or a claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from time import time
from typing import Any, Final, TypeVar

from .._call.call import AnyToolCall
from .._call.history import Step, as_it_left, iso_time, move_of, state_in, steps_of_kind
from .._call.lifecycle import StepKind
from .._call.outcomes import SuspendedCall
from .._round.plan import ToolRoundPlan
from .._round.plan_json import saved_history
from .._round.step_json import dump_step, load_history
from .._transcript.result import ToolResult, dump_result
from .._transcript.saved import Saved, dump_saved
from ..errors import PlanError, StaleError
from ._claim_order import ClaimOrder
from ._database import Rows
from ._rows import SavedCall, State
from ._values import Claim

P = TypeVar("P", bound=ToolRoundPlan[Any])


def rows_of(
    plan: ToolRoundPlan[Any],
    id: str,
    number: int,
    old: Iterable[SavedCall],
    now: int,
    order: ClaimOrder,
) -> list[SavedCall]:
    """Return the row of each open call of a plan; a row that says the same keeps its claim.

    Args:
        plan: The plan.
        id: The conversation.
        number: The number of the round.
        old: The rows that the round has until now.
        now: The clock of the database.
        order: How its calls are given out.
    """
    before = {row.place: row for row in old}
    places = places_of(plan)
    waiting = {each.call.id: each for each in plan.suspended}
    found: list[SavedCall] = []
    for call in _open_calls(plan):
        place, state = places[call.id], _state_of(call)
        row = before.get(place)
        body = _body(plan, places, call, waiting.get(call.id), order, row)
        # The token of the old row stays: whoever has claimed this call goes on, while somebody
        # saves the plan because of another one. What was done by then is in the plan.
        if (
            row is None
            or row.state != state
            or _says(row.parsed_body.data) != _says(json.loads(body))
        ):
            token = 0 if row is None else row.token + 1  # an earlier claim is of another call
            started = token + 1 if state == "started" else 0
            until = None if state in _HELD else now
            row = SavedCall(id, place, number, state, started or token, started, None, until, body)
        found.append(row._replace(body=body))
    return found


def _open_calls(plan: ToolRoundPlan[Any]) -> list[AnyToolCall]:
    waiting = (each.call for each in plan.suspended)
    return [*plan.pending, *plan.in_doubt, *plan.awaiting, *plan.unreviewed, *waiting]


def places_of(plan: ToolRoundPlan[Any]) -> dict[str, int]:
    """Return the places of all calls by their ids; a call keeps its place as long as its round."""
    return {call.id: place for place, call in enumerate(plan._all())}


def _state_of(call: AnyToolCall) -> State:
    return _STATES.get(as_it_left(call._history)[-1].stage.name, "ready")


_STATES: Final[Mapping[str, State]] = {
    "suspended": "waiting",
    "running": "started",
    "in_doubt": "started",
    "awaiting": "awaiting",
    "unreviewed": "unreviewed",
}
_HELD: Final = ("waiting", "awaiting", "unreviewed")
"""The states in which nobody may claim a call."""


def _says(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a row says about its call, without what was done since."""
    # The first three grow with what is done, though the call is the same. `ancestors` has less if
    # the plan was loaded without its conversation.
    grows = ("after", "steps", "line", "ancestors")
    return {name: value for name, value in said.items() if name not in grows}


# `{"id": "c1", "tool": "pay", "digest": "sha256:…", "after": 2, "steps": []}`, and for a call that
# waits also its ticket and arguments, masked: an inbox reads rows alone, and needs neither the
# tools nor to parse a plan of megabytes.
def _body(
    plan: ToolRoundPlan[Any],
    places: Mapping[str, int],
    call: AnyToolCall,
    waiting: SuspendedCall | None,
    order: ClaimOrder,
    before: SavedCall | None,
) -> str:
    body: dict[str, Any] = {"id": call.id, "tool": call.name, "digest": call.digest}
    body |= order.row_data(call)
    if call._asked_by is not None:
        body["requested_by"] = places[call._asked_by]
    if any(steps_of_kind(call._history, "requested")):
        body["requested"] = True
    if waiting is not None:
        known = None if before is None else before.parsed_body.data.get("ancestors")
        if within := known or [asdict(each) for each in plan.ancestors(call.id)]:
            body["ancestors"] = within
        body["proposed"] = call.spec.shown_text(call.metadata.arguments)
        body["arguments"] = waiting.arguments
        body["ticket"] = waiting.ticket.to_dict()
        steps = [step for step in call.steps if step.kind != "moved"]
        shown = [step.model_dump().items() for step in steps]
        body["line"] = [{name: said for name, said in step if said is not None} for step in shown]
    body["after"], body["steps"] = len(saved_history(call)), []
    return dump_saved(body, PlanError, "The plan")


# What was done since the plan was saved: steps after those of its text.


def with_steps(row: SavedCall, *steps: dict[str, Any]) -> str:
    """Return the body of a row with more steps."""
    known = row.parsed_body
    done = [*(each.data for each in known.each("steps")), *steps]
    return dump_saved({**known.data, "steps": done}, PlanError, "The result")


def is_in(row: SavedCall, step: dict[str, Any]) -> bool:
    """Whether a row has a step already, at whichever time."""
    steps = [each.data for each in row.parsed_body.each("steps")]
    return any({**each, "at": None} == {**step, "at": None} for each in steps)


def step_data(kind: StepKind, **fields: Any) -> dict[str, Any]:
    """Make one step, as the body of a row keeps it."""
    return {"kind": kind, "at": iso_time(time()), **fields}


def with_result(
    row: SavedCall, result: ToolResult, at: float, shown: Iterable[Step] = ()
) -> SavedCall:
    """Return the row of a call that has its result.

    Args:
        row: The row.
        result: The result.
        at: When it came.
        shown: What after-hooks did since.
    """
    recorded = step_data("recorded", verdict=result.status, result=dump_result(result))
    body = with_steps(ended(row, result, at), *map(dump_step, shown), recorded)
    return row._replace(state="done", until=None, body=body)


def ended(row: SavedCall, result: ToolResult, at: float, until: int | None = None) -> SavedCall:
    """Return the row of a call whose result after-hooks are still to see; the first result stays.

    Args:
        row: The row.
        result: The result.
        at: When it came.
        until: When it may be claimed, to show it.
    """
    if row.state == "ended":
        return row._replace(until=until)
    kept = {} if until is None else {"result": dump_result(result)}
    step = step_data("ended", at=iso_time(at), verdict=result.status, **kept)
    return row._replace(state="ended", until=until, body=with_steps(row, step))


def apply_row(call: AnyToolCall, row: SavedCall, *, is_left: bool = True) -> None:
    """Let the history of a call go on with what its row says was done since the plan was saved.

    Raises:
        PlanError: The row cannot follow the plan.
    """
    saved = Saved(row.parsed_body.data, f"call {row.place}", PlanError)
    # The row says how long the history was when the plan was saved, and what was done since:
    # "after": 2, "steps": [started, ended, recorded]. A plan that has been brought up before knows
    # the first of these steps already, so only those after them are put in. That a run was left is
    # written by whoever saves, loads or begins next, so it is in one of the two, or in both.
    since, fresh = saved.get("after", int), list(saved.each("steps"))
    for kind in [step.kind for step in call._history[since:]] or ["abandoned"]:
        if fresh and fresh[0].data.get("kind") == kind:
            fresh = fresh[1:]
        elif kind != "abandoned":
            raise _unfit(row, call, "something else was done to the call by now")
    for each in load_history(fresh, call.metadata, behind=call._history):
        call._append_all((move_of(each),))
    if is_left and call._stage.name == "running":
        call._append("abandoned")


def catch_up(plan: P, rows: list[SavedCall]) -> P:
    """Let a plan know what was done since it was saved, and its calls refuse to run.

    Raises:
        PlanError: The rows are not those of the plan.
    """
    try:
        calls = calls_at(plan)
        # Each seal holds for one row, so a row that was taken out, or put back from yesterday, has
        # a good one. Only against the plan does that show.
        if calls.keys() != {row.place for row in rows}:
            raise PlanError(
                f"The rows of the calls {sorted(row.place for row in rows)} are not those of the "
                f"plan's open calls {sorted(calls)}: somebody else added or removed some. Put the "
                "database back as it was, or give the round up."
            )
        apply_rows(calls, rows)
    except BaseException:
        plan.discard()
        raise
    return plan


def calls_at(plan: ToolRoundPlan[Any]) -> dict[int, AnyToolCall]:
    """Return the open calls of a plan by their places."""
    places = places_of(plan)
    return {places[call.id]: call for call in _open_calls(plan)}


def apply_rows(calls: Mapping[int, AnyToolCall], rows: Sequence[SavedCall]) -> None:
    """Let calls go on as their rows say, and refuse to run.

    Args:
        calls: The open calls of a plan, by their places.
        rows: The rows, in the order of places.

    Raises:
        PlanError: A row cannot follow the plan.
    """
    # Backwards: a call comes before those that it requested, and goes on only once these have their
    # results.
    for row in reversed(rows):
        call = calls.get(row.place)
        if call is None:
            raise _not_open(row)
        _check(row, call)
        apply_row(call, row)
        call._hold()


def _check(row: SavedCall, call: AnyToolCall) -> None:
    state = _state_of(call)
    if row.state != state and (row.state in _HELD or state in _HELD):
        raise _unfit(row, call, f"it is {row.state}, the call is {call.status}")
    if state == "started" and row.state == "ready":
        raise _unfit(row, call, "it is ready, the call was started")
    if row.parsed_body.data.get("digest") != call.digest:
        raise _unfit(row, call, "it is of other arguments")


def _unfit(row: SavedCall, call: AnyToolCall, why: str) -> PlanError:
    return PlanError(
        f"The row of call {call.id!r} of tool `{call.name}` in conversation {row.conversation!r} "
        f"does not fit the plan: {why}. Put the database back as it was, or give the round up."
    )


def claimed(plan: ToolRoundPlan[Any], row: SavedCall, rows: Sequence[SavedCall]) -> AnyToolCall:
    """Find the call that a row allows to run; the plan, as it was saved, is given up.

    Args:
        plan: The plan.
        row: The row.
        rows: The same with those that it goes on from, in the order of places.

    Raises:
        PlanError: The plan does not allow it to run.
    """
    plan._state._close("discarded")
    calls = calls_at(plan)
    apply_rows(calls, rows)
    call = calls[row.place]
    if state_in(call._history) not in ("pending", "in_doubt"):
        raise _not_open(row)
    return call


def _not_open(row: SavedCall) -> PlanError:
    return PlanError(
        f"The row of call {row.place} in conversation {row.conversation!r} says that it may be "
        "run, and the plan does not. Put the database back as it was, or give the round up."
    )


def row_of_claim(rows: Rows, claim: Claim) -> SavedCall:
    """Read the row of a claim, and make sure that this is the last one of it.

    Raises:
        StaleError: It is not, the call has its result, or the round is over.
        StoreError: Somebody else wrote the row.
    """
    row = SavedCall.at(rows, claim.id, claim._row.place)
    if row is not None:
        row.check(rows)
    if row is None or row.round != claim._row.round:
        raise _stale(claim, None)
    if row.token != claim.token or row.state not in ("ready", "started", "ended"):
        raise _stale(claim, row)
    return row


def _stale(claim: Claim, row: SavedCall | None) -> StaleError:
    if row is None:
        what = "is not open any more: its round is over, or was saved again"
    elif row.state == "done":
        what = "has its result already"
    elif row.owner is None:
        what = "was given back, decided on or saved again"
    else:
        what = f"was claimed again since, by {row.owner}, after its lease ran out"
    return StaleError(
        f"Call {claim.call.id!r} of tool `{claim.call.name}` in conversation {claim.id!r} "
        f"{what}. Drop this claim. What its tool did, if it was started, `store.finish` keeps in "
        "the steps of the call, as `late`, unless the call waits by now or the round is over."
    )
