"""The laws of one history under races: a move is forced between the check and the write of another.

There is one place where a history is written, `dict.setdefault`. A dict that runs another move
there, once, gives every order that two threads can have, without a thread and without luck.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise, product
from typing import Any, Final

import pytest

from lutum_py import (
    Block,
    NeedsTools,
    SuspendedCall,
    SuspendTicket,
    ToolMetadata,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import LutumError
from lutum_py.testing import ScriptedModel
from tests.cases import over


class Racing(dict[int, Any]):
    """A history that lets another move come between the check and the write of the next one."""

    between: Callable[[], object] | None = None

    def setdefault(self, number: int, entry: Any = None) -> Any:
        other, self.between = self.between, None
        if other is not None:
            with suppress(LutumError):
                other()
        return super().setdefault(number, entry)


class World:
    """One round of one call, whose tool counts its runs."""

    def __init__(self, at: str) -> None:
        self.runs = 0

        @tool_fn
        def pay(cents: int) -> str:
            """Pay."""
            self.runs += 1
            return f"paid {cents}"

        class Bank(Toolset):
            pay_ = tool(pay)

        self.toolset: Any = Bank
        turn = ScriptedModel.tool_calls(("c1", "pay", {"cents": 5}))
        outcome = Bank.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        self.round = outcome.round
        self.plan = self.round.plan()
        (self.call,) = self.plan.pending
        self.transcript = Transcript()
        self.results: Any = None
        if at == "running":
            self.call.start()
        if at in ("suspended", "resuming"):
            waiting = self.call.suspend(SuspendTicket(message="Pay?"))
            self.plan.suspend(waiting)
        if at == "resuming":
            self.plan.resume(self.plan.suspended[0].approve())
        if at == "ended":
            self.plan.record(self.call.call_sync())
        self.call._entries = Racing(self.call._entries)

    def elsewhere(self) -> Any:
        """A result of the call that was made from another reading of it."""
        metadata = ToolMetadata(id="c1", name="pay", arguments='{"cents":5}')
        return self.toolset.parse_tool_call(metadata).complete("paid elsewhere")

    def decide(self, how: str) -> None:
        waiting: SuspendedCall = self.plan.suspended[0]
        decision = getattr(waiting, how)()
        self.plan.resume(decision)

    def blocked(self) -> None:
        hooks = self.toolset.HookSet()
        hooks.gate()(lambda metadata, input: Block("closed"))
        self.plan.apply_hooks_sync(hooks)

    def ended(self, committed: Any) -> None:
        self.results = committed.results


MOVES: Final[dict[str, Callable[[World], object]]] = {
    "call": lambda w: w.call.call_sync(),
    "complete": lambda w: w.call.complete("by hand"),
    "fail": lambda w: w.call.fail("no"),
    "reject": lambda w: w.call.reject("no"),
    "suspend": lambda w: w.call.suspend(SuspendTicket(message="Sure?")),
    "retry": lambda w: w.call.retry(),
    "assign": lambda w: setattr(w.call, "input", {"cents": 6}),
    "hooks": lambda w: w.plan.apply_hooks_sync(w.toolset.HookSet()),
    "block": World.blocked,
    "record": lambda w: w.plan.record(w.elsewhere()),
    "approve": lambda w: w.decide("approve"),
    "cancel": lambda w: w.decide("cancel"),
    "detach": lambda w: w.plan.detach("c1").call_sync(),
    "commit": lambda w: w.ended(w.plan.commit(w.transcript, [w.elsewhere()])),
    "abort": lambda w: w.ended(w.plan.abort(w.transcript, "enough")),
    "discard": lambda w: w.round.discard(),
    "dump": lambda w: w.plan.dump_json(),
}
AT: Final = ("new", "running", "suspended", "resuming", "ended")


@over("at, first, second", list(product(AT, MOVES, MOVES)))
def test_of_two_moves_at_once_the_history_tells_what_happened(
    at: str, first: str, second: str
) -> None:
    """The second move comes between the check and the write of the first: one of them wins."""
    world = World(at)
    before = world.runs
    racing: Any = world.call._entries
    racing.between = lambda: MOVES[second](world)
    with suppress(LutumError, IndexError):
        MOVES[first](world)
    racing.between = None
    kinds = [step.kind for step in world.call.steps]
    starts = kinds.count("started")
    # A tool runs only for a start that is on record, and each start is one run at most.
    assert world.runs - before <= starts
    # Between two starts the call was tried again, or waited and was let go on.
    between = [kind for kind in kinds if kind in ("started", "retried", "decided")]
    assert all(a != b or a != "started" for a, b in pairwise(between))
    # It ends once in each try.
    ends = [kind for kind in kinds if kind in ("ended", "retried")]
    assert all(a != b or a != "ended" for a, b in pairwise(ends))
    # A result that says "not executed" is of a call that was not.
    if world.results is not None and world.runs:
        assert world.results[0].status != "cancelled"
    # What a person refused, or a gate, did not run after that.
    if {first, second} == {"cancel", "call"} or {first, second} == {"block", "call"}:
        refused = any(
            step.phase in ("decision", "gate") and step.kind == "ended" for step in world.call.steps
        )
        assert not (refused and world.runs > before)
    with suppress(LutumError):
        world.round.discard()


def test_the_race_is_found_if_a_write_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a write that takes the next number whatever came between, a call starts twice."""
    world = World("new")

    class Careless(Racing):
        def setdefault(self, number: int, entry: Any = None) -> Any:
            other, self.between = self.between, None
            if other is not None:
                other()
            self[len(self)] = entry
            return entry

    racing = Careless(world.call._entries)
    world.call._entries = racing
    racing.between = world.call.call_sync
    with suppress(LutumError):
        world.call.call_sync()
    assert world.runs == 2
    world.round.discard()
