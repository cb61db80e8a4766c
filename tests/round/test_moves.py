"""The laws of a call that waited: it is decided once, started once and answered once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final

import pytest

from lutum_py import Session, SuspendTicket, ToolRoundPlan
from lutum_py.errors import CommitError, LifecycleError, ResumeError, RoundClosedError
from tests.cases import over
from tests.round_tools import Shop, add, adds, close, forged, gated, is_closed, opened


class Moves:
    """One round with one call that waits, and all that a program may do next."""

    def __init__(self) -> None:
        self.plan: ToolRoundPlan[Any] = opened(*adds(1)).apply_hooks_sync(
            gated(SuspendTicket(), Shop.add)
        )
        (self.waiting,) = self.plan.suspended
        self.session = Session()

    def edit(self) -> None:
        self.plan.amend_sync(self.waiting.edit({"a": 5}), Shop.HookSet())

    def run(self) -> None:
        self.plan.record(self.waiting.call.call_sync())


MOVES: Final[dict[str, Callable[[Moves], object]]] = {
    "approve": lambda on: on.plan.resume(on.waiting.approve()),
    "cancel": lambda on: on.plan.resume(on.waiting.cancel("no")),
    "amend": Moves.edit,
    "run": Moves.run,
    "record": lambda on: on.plan.record(forged(on.waiting.call.metadata)),
    "suspend": lambda on: on.plan.suspend(on.waiting),
    "commit": lambda on: on.plan.commit(on.session),
    "abort": lambda on: on.plan.abort(on.session, "enough"),
    "dump": lambda on: on.plan.dump_json(),
    "discard": lambda on: on.plan.discard(),
}
DECIDES: Final = {"approve": "pending", "amend": "pending", "cancel": "rejected"}
CLOSES: Final = ("abort", "dump", "discard")


def after(place: str, move: str) -> str | type[Exception]:
    """Where a move leaves the call, or the error with which it is refused."""
    if place == "closed":
        return RoundClosedError
    if move in CLOSES:
        return "closed"
    if move in DECIDES:
        return DECIDES[move] if place == "suspended" else ResumeError
    if move == "commit":
        return CommitError if place in ("suspended", "pending") else "closed"
    if move in ("run", "record") and place == "pending":
        return "finished"
    return CommitError if move == "record" else LifecycleError


def places(on: Moves) -> list[str]:
    """Where the call stands; a closed round says no more of it."""
    if is_closed(on.plan):
        return ["closed"]
    names = ("pending", "in_doubt", "suspended", "finished", "handled", "rejected")
    return [name for name in names if getattr(on.plan, name)]


@over("first, second", list(product(MOVES, repeat=2)))
def test_a_call_that_waited_is_decided_and_answered_once(first: str, second: str) -> None:
    """Of any two moves the second is refused where it would decide, begin or answer again."""
    on = Moves()
    place = "suspended"
    for move in (first, second):
        expected = after(place, move)
        if isinstance(expected, str):
            MOVES[move](on)
            place = expected
        elif not (place == "closed" and move == "run"):  # a call knows of no round
            with pytest.raises(expected):
                MOVES[move](on)
        assert places(on) == [place]
    edited = first == "amend" or (second == "amend" and first not in ("approve", "cancel"))
    if place in ("pending", "finished", "rejected"):
        assert on.waiting.call.input == add.Input(a=5 if edited else 0, b=0)
        assert len(on.plan.edits) == edited
    close(on.plan)
