"""The laws of one history under races, of a call that requests others and of these."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise, product
from typing import Any, Final

from lutum_py import Block, Session, ToolContext, Toolset, tool, tool_fn
from lutum_py.errors import LutumError, RoundClosedError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.private import ask
from tests.races import NOW, SEAMS, Race, Racing, watched


@tool_fn
def pay(cents: int) -> str:
    """Pay."""
    NOW[0].paid.append(cents)
    NOW[0].reach("tool")
    return f"paid {cents}"


@tool_fn
def asks(cents: int, ctx: ToolContext) -> list[str]:
    """Request two payments."""
    NOW[0].reach("tool")
    if ctx.inner is None:
        ctx.request_calls([("pay", {"cents": cents}), ("pay", {"cents": cents + 1})])
    return [f"{each.id} {each.status}" for each in ctx.inner.results]


class Desk(Toolset):
    pay = tool(pay, needs_approval=True)
    asks = tool(asks)


def let_pass(call: Any) -> Any:
    """Hooks that have nothing against it."""
    return call


class World(Race):
    """One round of one call, which requests two others."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.paid: list[int] = []
        turn = ScriptedModel.tool_calls(("c1", "asks", {"cents": 5}))
        outcome: Any = Desk.read_turn(turn)
        plan = self.plan = outcome.round.plan()
        self.twin = plan.apply_hooks_sync(Desk.HookSet())
        (self.call,) = plan.pending
        self.session = Session()
        self.results: Any = None
        self.text: str | None = None
        self.raised: LutumError | None = None
        self.asking: Any = execute_sync(self.call)
        for step in STEPS[: STEPS.index(at)]:
            getattr(self, f"to_{step}")()
        self.look()
        for each in plan._state.all_calls():
            each.entries = Racing(each.entries)

    # From each place to the next one.

    def to_asked(self) -> None:
        self.plan.record(self.asking)

    def to_unreviewed(self) -> None:
        self.plan.apply_hooks_sync(let_pass)

    def to_waiting(self) -> None:
        for waiting in self.plan.suspended:
            self.plan.resume(waiting.approve())

    def to_decided(self) -> None:
        self.step()

    def to_running(self) -> None:
        self.plan.pending[0].start()

    def step(self) -> None:
        for call in self.plan.pending:
            self.plan.record(execute_sync(call))

    def inner(self) -> Any:
        """The first call within."""
        found = [each for each in self.plan._state.all_calls() if each.id == "c1/1"]
        return found[0].call

    def look(self) -> Any:
        """Read every view of both plans: they show the same, and all that was requested."""
        seen = []
        for plan in (self.plan, self.twin):
            rows = {row.id: (row.state, row.steps) for row in plan.calls}
            lists = {
                name: [each.id for each in getattr(plan, name)]
                for name in ("pending", "in_doubt", "awaiting", "unreviewed", "finished")
            }
            lists["suspended"] = [each.call.id for each in plan.suspended]
            lists["rejected"] = [each.metadata.id for each in plan.rejected]
            found = sorted((id, name) for name, ids in lists.items() for id in ids)
            assert found == sorted((id, state) for id, (state, _) in rows.items())
            for call in plan._state.all_calls():
                for each in call.requested_calls():
                    assert each.id in rows, "what was requested is in no view"
            seen.append((rows, lists, plan.is_settled))
        assert seen[0] == seen[1]
        return seen[0]

    def check(self) -> None:
        """The histories tell what happened."""
        self.look()
        for call in self.plan._state.all_calls():
            kinds = [step.kind for step in call.history]
            between = [k for k in kinds if k in ("started", "retried", "decided", "requested")]
            assert all(a != b or a != "started" for a, b in pairwise(between)), call.id
            ends = [kind for kind in kinds if kind in ("ended", "retried")]
            assert all(a != b or a != "ended" for a, b in pairwise(ends)), call.id
        starts = [step for step in self.plan.steps if step.kind == "started" and step.tool == "pay"]
        assert len(self.paid) <= len(starts)
        is_closed = self.plan._state.closed_by is not None
        if isinstance(self.raised, LutumError) and not isinstance(self.raised, RoundClosedError):
            assert not is_closed or self.results is not None or self.text is not None, (
                f"the round is lost: {self.raised}"
            )
        if self.results:
            (result,) = self.results
            if "not executed" in str(result.model_text).lower():
                assert not self.paid or "c1/" in result.model_text
        if self.text is not None:
            loaded = Desk.load_plan(self.text)
            kept = {row.id: [s.kind for s in row.steps] for row in loaded.calls}
            for row in self.plan.calls:
                assert row.id in kept, "what was requested is not saved"
                here = [step.kind for step in row.steps].count("started")
                assert kept[row.id].count("started") == here, f"{row.id} would run twice"
            loaded.discard()
        with suppress(LutumError):
            self.plan.discard()
        for call in self.plan._state.all_calls():
            assert not call.stage.is_open or call.history[-1].kind == "retried"

    # Moves.

    def end(self, how: str, *given: Any) -> None:
        try:
            self.results = getattr(self.plan, how)(*given).results
        except LutumError as error:
            self.raised = error
            raise

    def discard(self) -> None:
        try:
            self.plan.discard()
            self.results = self.results or ()
        except LutumError as error:
            self.raised = error
            raise

    def dump(self) -> None:
        try:
            self.text = self.plan.dump_json()
        except LutumError as error:
            self.raised = error
            raise

    def block(self) -> None:
        hooks: Any = Desk.HookSet()
        hooks.gate()(lambda metadata, input: Block("closed"))
        self.twin.apply_hooks_sync(hooks)


STEPS: Final = ("asked", "unreviewed", "waiting", "decided", "running")
MOVES: Final[dict[str, Callable[[World], object]]] = {
    "request": lambda w: w.plan.record(w.asking),
    "request, checked before": lambda w: ask(w.plan._state, w.asking),
    "hooks": World.to_unreviewed,
    "block": World.block,
    "approve": lambda w: w.plan.resume(w.plan.suspended[0].approve()),
    "cancel": lambda w: w.plan.resume(w.plan.suspended[-1].cancel("no")),
    "step": World.step,
    "run one": lambda w: w.plan.record(execute_sync(w.plan.pending[-1])),
    "run and drop": lambda w: execute_sync(w.plan.pending[0]),
    "fail one": lambda w: w.plan.record(w.inner().fail("no")),
    "reject one": lambda w: w.inner().reject("no"),
    "retry one": lambda w: w.inner().retry(),
    "fail": lambda w: w.call.fail("no"),
    "reject": lambda w: w.call.reject("no"),
    "retry": lambda w: w.call.retry(),
    "give up": lambda w: w.call.indeterminate("lost"),
    "commit": lambda w: w.end("commit", w.session, [w.call.fail("no")]),
    "resolve": lambda w: w.end("resolve"),
    "abort": lambda w: w.end("abort", w.session, "enough"),
    "discard": World.discard,
    "dump": World.dump,
}


def race(at: str, first: str, second: str, seam: str, times: int) -> bool:
    """Let a second move come at a place of the first one; whether it has such a place."""
    world = World(at)
    world.seam, world.times = seam, times
    world.between = lambda: MOVES[second](world)
    with suppress(LutumError, IndexError):
        MOVES[first](world)
    is_reached, world.between = world.between is None, None
    if is_reached:
        world.check()
    else:
        with suppress(LutumError):
            world.plan.discard()
    return is_reached


@over("at", STEPS)
@over("seam", SEAMS)
def test_of_two_moves_at_once_the_histories_tell_what_happened(at: str, seam: str) -> None:
    """The second move comes in the middle of the first: nothing is lost, or run twice."""
    failed: list[str] = []
    with watched():
        for first, times in product(MOVES, (1, 2, 3)):
            for second in MOVES:
                try:
                    if not race(at, first, second, seam, times):
                        break
                except Exception as error:  # noqa: BLE001 - all are told
                    failed.append(f"{first}, {second} ({times}): {error!r}"[:200])
    assert failed == []
