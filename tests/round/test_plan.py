"""The laws of a plan: it sorts the calls of a round, and every step of deciding leaves it whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Block,
    CallStatus,
    Complete,
    HandledCall,
    Reject,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
)
from lutum_py.errors import HookError, LifecycleError, RoundClosedError
from tests.round_tools import (
    Receipt,
    Shop,
    add,
    adds,
    check_transcript,
    close,
    done,
    forged,
    opened,
)
from tests.sample_tools import input_of


def ids(entries: Any) -> list[str]:
    return [getattr(entry, "id", None) or entry.metadata.id for entry in entries]


def deciding() -> Any:
    """Hooks that complete c0, reject c1, block c2, suspend c3 and leave the rest."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        answers = {"c0": Complete(40), "c1": Reject("not this one")}
        return answers.get(metadata.id, RunNormally(input))

    @hooks.gate(Shop.add)
    def gate(metadata: ToolMetadata, input: Any) -> Any:
        return {"c2": Block("never"), "c3": Suspend(SuspendTicket(id="s"))}.get(metadata.id)

    return hooks


def test_a_plan_without_hooks_leaves_every_call_pending() -> None:
    """Without hooks every usable call is the caller's to run, in the order of the turn."""
    tool_round = opened(*adds(3), ("u", "nope", "{}"))
    plan = tool_round.plan()
    assert plan.pending == tool_round.tool_calls
    assert (plan.handled, plan.rejected, plan.suspended, plan.decisions) == ((), (), (), ())
    assert plan.blocked is None
    assert plan.recoverable_tool_call_issues == tool_round.recoverable_tool_call_issues
    close(tool_round)


@pytest.mark.parametrize("sync", [True, False])
def test_hooks_sort_the_calls(sync: bool) -> None:
    """Each call goes where the decision about it says, and both twins decide alike."""
    tool_round = opened(*adds(6))
    hooks = deciding()
    plan = (
        tool_round.apply_hooks_sync(hooks) if sync else asyncio.run(tool_round.apply_hooks(hooks))
    )
    assert ids(plan.pending) == ["c4", "c5"]
    assert ids(plan.handled) == ["c0"]
    assert ids(plan.rejected) == ["c1", "c2"]
    assert [rejected.source for rejected in plan.rejected] == ["hook", "gate"]
    assert ids(each.call for each in plan.suspended) == ["c3"]
    assert plan.blocked == "never"
    kinds = [(record.call_id, record.decision) for record in plan.decisions]
    assert kinds == [
        ("c0", "complete"),
        ("c1", "reject"),
        *((call_id, "run_normally") for call_id in ("c2", "c3", "c4", "c5")),
        ("c2", "block"),
        ("c3", "suspend"),
    ]
    assert repr(plan) == "<plan of Shop: 2 pending, 1 handled, 2 rejected, 1 suspended>"
    close(plan)


def test_a_second_pass_touches_only_what_is_pending() -> None:
    """Hooks applied again see the pending calls alone, and their decisions are added."""
    seen: list[str] = []
    more = Shop.HookSet()

    @more.on(Shop.add)
    def again(metadata: ToolMetadata, input: Any) -> Any:
        seen.append(metadata.id)
        return Complete(50) if metadata.id == "c4" else RunNormally(input)

    first = opened(*adds(6)).apply_hooks_sync(deciding())
    before = first.decisions
    second = first.apply_hooks_sync(more)
    assert seen == ["c4", "c5"]
    assert ids(second.handled) == ["c0", "c4"]
    assert ids(second.pending) == ["c5"]
    assert (ids(first.pending), ids(first.handled)) == (["c5"], ["c0", "c4"])
    assert second.decisions[: len(before)] == before
    assert len(second.decisions) == len(before) + 2
    assert second.blocked == "never"
    close(second)


def test_hooks_pass_by_what_was_answered() -> None:
    """A call that was run, and waits for the commit only, is not decided about any more."""
    plan = opened(*adds(2)).plan()
    result = plan.pending[0].call_sync()
    hooks = Shop.HookSet()
    hooks.gate(Shop.add)(lambda metadata, input: Suspend(SuspendTicket()))
    again = plan.apply_hooks_sync(hooks)
    assert (ids(again.pending), ids(each.call for each in again.suspended)) == (["c0"], ["c1"])
    again.abort(Session(), "stop", [result])


def test_the_first_block_is_kept() -> None:
    """`plan.blocked` is the reason of the first call that a gate blocked, and the plan commits."""
    hooks = Shop.HookSet()
    hooks.gate(Shop.add)(lambda metadata, input: Block(f"no {metadata.id}"))
    plan = opened(*adds(2)).apply_hooks_sync(hooks)
    assert plan.blocked == "no c0"
    session = Session()
    committed = plan.commit(session)
    assert [result.rejection_reason for result in committed.results] == ["no c0", "no c1"]
    check_transcript(session.transcript)


def test_a_plain_function_decides() -> None:
    """A function of a call is accepted wherever a hook set is."""

    def decide(call: AnyToolCall) -> Any:
        if call.id == "c0":
            return call.handled(7)
        if call.id == "c1":
            return call.reject("no")
        if call.id == "c2":
            return call.suspend(SuspendTicket())
        call.input = add.Input(a=9)
        return call

    tool_round = opened(*adds(4))
    plan = tool_round.apply_hooks_sync(decide)
    assert (ids(plan.handled), ids(plan.rejected)) == (["c0"], ["c1"])
    assert ids(each.call for each in plan.suspended) == ["c2"]
    assert [input_of(call).a for call in plan.pending] == [9]
    assert [call.status for call in tool_round.tool_calls] == [
        CallStatus.SUCCEEDED,
        CallStatus.CANCELLED,
        CallStatus.SUSPENDED,
        CallStatus.NEW,
    ]
    close(plan)


@pytest.mark.parametrize("phase", ["on", "gate", "before"])
def test_a_hook_that_raises_leaves_the_round_as_it_was(phase: str) -> None:
    """A failing hook is a HookError that names it, and the round can be used again."""
    hooks = Shop.HookSet()
    failing = True

    def sometimes(metadata: ToolMetadata, input: Any) -> Any:
        if failing and metadata.id == "c1":
            raise ValueError("boom")
        return RunNormally(input) if phase == "on" else None

    getattr(hooks, phase)(Shop.add)(sometimes)
    tool_round = opened(*adds(3))
    with pytest.raises(
        HookError, check=lambda error: (error.tool, error.call_id) == ("add", "c1")
    ) as caught:
        tool_round.apply_hooks_sync(hooks)
    assert isinstance(caught.value.__cause__, ValueError)
    assert [call.status for call in tool_round.tool_calls] == [CallStatus.NEW] * 3
    failing = False
    assert len(tool_round.apply_hooks_sync(hooks).pending) == 3
    close(tool_round)


def test_a_before_hook_runs_once_for_each_call() -> None:
    """A before-hook runs once for a call; only where a hook of its pass raised does it again."""
    hooks = Shop.HookSet()
    ran: list[str] = []
    failing = True

    @hooks.before(Shop.add)
    def count(metadata: ToolMetadata, input: Any) -> None:
        if failing and metadata.id == "c1":
            raise ValueError("boom")
        ran.append(metadata.id)

    tool_round = opened(*adds(3))
    with pytest.raises(HookError):
        tool_round.apply_hooks_sync(hooks)
    failing = False
    plan = tool_round.apply_hooks_sync(hooks)
    plan.apply_hooks_sync(hooks)
    assert ran == ["c0", *("c0", "c1", "c2")]
    close(tool_round)


def test_an_async_hook_is_refused_by_the_sync_twin() -> None:
    """A sync twin that meets an async hook is a TypeError that names it; nothing changed."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    async def slow(metadata: ToolMetadata, input: Any) -> Any:
        return RunNormally(input)

    @hooks.after(Shop.add)
    async def late(call: Any, result: ToolResult) -> None: ...

    tool_round = opened(*adds(1))
    with pytest.raises(TypeError, match="slow"):
        tool_round.apply_hooks_sync(hooks)
    plan = asyncio.run(tool_round.apply_hooks(hooks))
    with pytest.raises(TypeError, match="late"):
        plan.apply_after_hooks_sync(hooks, done(plan.pending))
    close(plan)


def replacing() -> Any:
    hooks = Shop.HookSet()

    @hooks.after(Shop.add)
    def stamp(call: AnyToolCall, result: ToolResult) -> ToolResult | None:
        assert call.status is CallStatus.SUCCEEDED
        if call.id == "c2":
            return None
        return forged(call.metadata, f"{result.result}00")

    return hooks


@pytest.mark.parametrize("sync", [True, False])
def test_after_hooks_see_run_and_handled_calls(sync: bool) -> None:
    """After-hooks may replace the result of a call that was run, and of one that was handled."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(
        lambda metadata, input: Complete(5) if metadata.id == "c0" else RunNormally(input)
    )
    plan = opened(*adds(3), ("u", "nope", "{}")).apply_hooks_sync(hooks)
    issue = forged(plan.recoverable_tool_call_issues[0].metadata, "1")
    given = [*done(plan.pending), issue]
    after = replacing()
    if sync:
        results = plan.apply_after_hooks_sync(after, given)
    else:
        results = asyncio.run(plan.apply_after_hooks(after, given))
    assert [result.result for result in results] == ["100", "2", "1"]
    assert results[2] is issue
    assert [(each.output, each.input.a) for each in plan.handled] == [(500, 0)]
    assert [r.result for r in plan.resolve(results).results] == ["500", "100", "2", "1"]


def test_after_hooks_leave_what_they_do_not_replace() -> None:
    """A handled call whose result no hook replaces stays the very same."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(lambda metadata, input: Complete(5))
    plan = opened(*adds(1)).apply_hooks_sync(hooks)
    before = plan.handled
    assert plan.apply_after_hooks_sync(Shop.HookSet()) == []
    assert plan.handled[0] is before[0]
    close(plan)


def test_a_failing_after_hook_changes_nothing() -> None:
    """An after-hook that raises, or answers another call, is a HookError; the plan stays."""
    hooks = Shop.HookSet()
    hooks.on(Shop.add)(lambda metadata, input: Complete(5))
    other = Shop.HookSet()
    stray = forged(ToolMetadata(id="x", name="add", arguments="{}"))
    other.after(Shop.add)(lambda call, result: stray if call.id == "c1" else forged(call.metadata))
    plan = opened(*adds(2)).apply_hooks_sync(hooks)
    before = plan.handled
    with pytest.raises(HookError):
        plan.apply_after_hooks_sync(other)
    assert plan.handled is before
    close(plan)


def test_a_plan_takes_in_a_call_that_suspended_itself() -> None:
    """`plan.suspend` moves a pending call to the suspended ones, and the others go on."""
    plan = opened(*adds(2)).plan()
    waiting = plan.pending[0].suspend(SuspendTicket())
    plan.suspend(waiting)
    assert (ids(plan.pending), plan.suspended) == (["c1"], (waiting,))
    with pytest.raises(LifecycleError):
        plan.suspend(waiting)
    close(plan)


def test_only_the_call_itself_can_be_suspended() -> None:
    """A suspended call of another round, under the same id, is not taken in."""
    plan, other = opened(*adds(1)).plan(), opened(("c0", "add", {"a": 99})).plan()
    waiting = other.pending[0].suspend(SuspendTicket())
    with pytest.raises(LifecycleError):
        plan.suspend(waiting)
    close(plan, other)


def test_a_suspension_that_is_over_is_not_taken_in() -> None:
    """An outcome whose call has gone on in the meantime is refused."""
    plan = opened(*adds(1)).plan()
    waiting = plan.pending[0].suspend(SuspendTicket())
    waiting.call.reject("no")
    with pytest.raises(LifecycleError):
        plan.suspend(waiting)
    close(plan)


def test_the_handled_output_keeps_its_type() -> None:
    """A handled call has the output that the hook gave, and its encoded form beside it."""
    hooks = Shop.HookSet()
    hooks.on(Shop.pay)(lambda metadata, input: Complete(Receipt(paid=input.amount)))
    plan = opened(("p", "pay", {"amount": 3})).apply_hooks_sync(hooks)
    handled: HandledCall[Any, Any] = plan.handled[0]
    assert (handled.output, handled.result.result) == (Receipt(paid=3), '{"paid":3}')
    close(plan)


@pytest.mark.parametrize(
    "use", [lambda plan: plan.commit(Session()), lambda plan: plan.apply_hooks_sync(Shop.HookSet())]
)
def test_a_closed_round_opens_no_plan_that_works(use: Callable[[Any], object]) -> None:
    """A plan made from a round after its end is as closed as the round."""
    tool_round = opened(*adds(1))
    tool_round.discard()
    plan: ToolRoundPlan[Any] = tool_round.plan()
    with pytest.raises(RoundClosedError):
        use(plan)
    assert repr(plan).endswith("discarded>")


@pytest.mark.parametrize("as_function", [False, True])
def test_a_call_that_is_begun_meanwhile_is_not_asked_about(as_function: bool) -> None:
    """While the hook of one call is awaited another may be started: then the pass names it."""
    asked_about: list[str] = []
    open_round = opened(*adds(2))
    plan = open_round.plan()

    async def begin_other(id: str) -> None:
        asked_about.append(id)
        await asyncio.sleep(0)
        plan.pending[1].call_sync()

    async def function(call: AnyToolCall) -> AnyToolCall:
        await begin_other(call.id)
        return call

    async def hook(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        await begin_other(metadata.id)
        return RunNormally(input)

    hooks: Any = function
    if not as_function:
        hooks = Shop.HookSet()
        hooks.on(Shop.add)(hook)
    with pytest.raises(LifecycleError, match="was started while hooks reviewed it"):
        asyncio.run(plan.apply_hooks(hooks))
    assert asked_about == ["c0"]
    assert [[step.kind for step in row.steps][1] for row in plan.calls] == ["reviewed", "started"]
    assert ids(plan.pending) == ["c0", "c1"]
    open_round.discard()
