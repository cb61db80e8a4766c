"""The law of late outcomes: what a run comes to ends that run, and never a later one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Complete,
    NeedsTools,
    Reject,
    Reply,
    Session,
    SuspendTicket,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError, LifecycleError, MisuseError, OutcomeUnknown, ToolError
from lutum_py.execution import execute, execute_sync, outcomes_of, run, run_sync
from lutum_py.testing import ScriptedModel
from tests.cases import over
from tests.private import pipeline

ends: list[asyncio.Event] = []
how: list[str] = []
within: list[Callable[[], object]] = []

WAYS: dict[str, Callable[[ToolContext], Any]] = {}


def way(function: Callable[[ToolContext], Any]) -> Callable[[ToolContext], Any]:
    WAYS[function.__name__] = function
    return function


@way
def success(ctx: ToolContext) -> str:
    return "paid"


@way
def error(ctx: ToolContext) -> str:
    raise ToolError("no money")


@way
def raised(ctx: ToolContext) -> str:
    raise ValueError("no money")


@way
def reply(ctx: ToolContext) -> Any:
    return Reply(None, message="no money", status="error")


@way
def wrong_output(ctx: ToolContext) -> Any:
    return 5


@way
def indeterminate(ctx: ToolContext) -> str:
    raise OutcomeUnknown("Perhaps it paid.")


@way
def suspended(ctx: ToolContext) -> str:
    ctx.suspend(SuspendTicket(message="Pay?"))


@tool_fn
async def pay(ctx: ToolContext) -> str:
    """Pay, once it is let go on."""
    end, which = asyncio.Event(), how[len(ends)]
    ends.append(end)
    await end.wait()
    paid: str = WAYS[which](ctx)
    return paid


@tool_fn
def note(ctx: ToolContext) -> str:
    """Note something, and do something else meanwhile."""
    if within:
        within.pop()()
    return "noted"


class Desk(Toolset):
    pay = tool(pay)
    note = tool(note)


def opened(name: str) -> ToolRoundPlan[Any]:
    """The plan of a turn with one call."""
    outcome = Desk.read_turn(ScriptedModel.tool_calls(("c1", name, {})))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


def told(call: AnyToolCall) -> Sequence[tuple[str, str | None]]:
    return [(each.kind, each.verdict) for each in call.steps][1:]


def let_come_to(*ways: str) -> None:
    """Say what the next runs of `pay` come to."""
    ends.clear()
    how[:] = ways


LATE = {"raised": "error", "reply": "error", "wrong_output": "error"}


@over("first", list(WAYS))
async def test_what_an_earlier_run_comes_to_does_not_end_a_later_one(first: str) -> None:
    """It is refused and kept as `late`, and the later run ends with its own."""
    let_come_to(first, "success")
    plan = opened("pay")
    (call,) = plan.pending
    earlier = asyncio.create_task(execute(call))
    await asyncio.sleep(0.01)
    later = asyncio.create_task(execute(call.retry()))
    await asyncio.sleep(0.01)
    ends[0].set()
    with pytest.raises(LifecycleError, match="as `late`"):
        await earlier
    assert call.status == "running"
    assert told(call)[-1] == ("late", LATE.get(first, first))
    ends[1].set()
    outcome = await later
    plan.record(outcome)
    assert [each.output for each in plan.finished] == ["paid"]
    loaded = Desk.load_plan(plan.dump_json())
    assert loaded.finished == plan.finished
    assert [each.kind for each in loaded.steps] == [each.kind for each in plan.steps]
    loaded.discard()


ENDS: dict[str, Callable[[ToolRoundPlan[Any]], object]] = {
    "abort": lambda plan: plan.abort(Session(), "It is late."),
    "discard": lambda plan: plan.discard(),
    "dump": lambda plan: plan.dump_json(),
    "commit": lambda plan: plan.commit(
        Session(), [call.indeterminate("Gone.") for call in plan.pending]
    ),
}


@over("end", list(ENDS))
@over("is_cancelled", [False, True])
async def test_what_a_tool_did_in_a_round_that_ended_is_not_forgotten(
    end: str, is_cancelled: bool
) -> None:
    """The run is refused, or its cancellation goes on; the result is in the history as `late`."""
    let_come_to("success")
    plan = opened("pay")
    (call,) = plan.pending
    task = asyncio.create_task(run(plan))
    await asyncio.sleep(0.01)
    ENDS[end](plan)
    ends[0].set()
    if is_cancelled:
        task.cancel()
    refused = asyncio.CancelledError if is_cancelled else LifecycleError
    with pytest.raises(refused) as caught:
        await task
    assert told(call)[-1] == ("late", "success")
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"


async def test_a_cancelled_run_of_one_call_whose_round_ended_stays_cancelled() -> None:
    """Whoever waits for the task is not told of a call that is over in place of that."""
    let_come_to("success")
    plan = opened("pay")
    task = asyncio.create_task(execute(plan.pending[0]))
    await asyncio.sleep(0.01)
    plan.discard()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert len(outcomes_of(caught.value)) == 1


def test_a_call_that_is_tried_again_by_its_own_tool_ends_once() -> None:
    """Sync runs are named as well."""
    plan = opened("note")
    (call,) = plan.pending
    within.append(lambda: execute_sync(call.retry()))
    with pytest.raises(LifecycleError, match="as `late`"):
        execute_sync(call)
    assert told(call)[-2:] == [("ended", "success"), ("late", "success")]
    plan.discard()


def test_calls_that_an_earlier_run_requested_are_not_taken_in() -> None:
    """The later run would not know of them, and its tool would find what it never asked for."""
    from tests.inner_tools import Desk as Asking
    from tests.inner_tools import asks
    from tests.inner_tools import opened as opened_asking

    plan = opened_asking(asks([("note", {"text": "a"})]), toolset=Asking)
    (call,) = plan.pending
    asked = execute_sync(call)
    call.retry().start()
    with pytest.raises(LifecycleError, match="as `late`"):
        plan.record(asked)
    assert told(call)[-1] == ("late", "requested")
    assert [each.id for each in plan.pending] == ["c1"]
    assert not plan.unreviewed
    loaded = Asking.load_plan(plan.dump_json())
    assert loaded.in_doubt
    loaded.discard()


# After-hooks of a run.


@over("is_sync", [False, True])
def test_a_run_asks_after_hooks_about_each_result(is_sync: bool) -> None:
    """Those of the turn, of hooks and from before as well: each once, with what it made of it."""
    hooks = Desk.HookSet()
    seen: list[str] = []

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> Complete[Any]:
        seen.append(f"{result.id} {result.output}")
        return Complete("***")

    @hooks.gate(Desk.pay)
    def pays(metadata: Any, input: Any) -> Any:
        return Complete("free")

    turn = ScriptedModel.tool_calls(("c1", "note", {}), ("c2", "pay", {}), ("c3", "note", {}))
    outcome = Desk.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    plan = outcome.round.apply_hooks_sync(hooks)
    plan.record(plan.pending[0].call_sync())
    for _ in range(2):
        _run(plan, is_sync=is_sync, hooks=hooks)
    assert seen == ["c1 noted", "c2 free", "c3 noted"]
    assert [each.output for each in plan.commit(Session()).results] == ["***"] * 3


def _run(plan: ToolRoundPlan[Any], *, is_sync: bool, hooks: Any) -> None:
    if is_sync:
        run_sync(plan, hooks=hooks)
    else:
        asyncio.run(run(plan, hooks=hooks))


@over("is_sync", [False, True])
def test_a_result_whose_after_hook_raises_is_in_the_plan(is_sync: bool) -> None:
    """Nothing is lost, and the next run asks the hook again, not the tool."""
    hooks = Desk.HookSet()
    faults = [ValueError("No database.")]

    @hooks.after()
    def shown(call: AnyToolCall, result: ToolResult) -> Reject | None:
        if faults:
            raise faults.pop()
        return Reject("hidden")

    plan = opened("note").apply_hooks_sync(hooks)
    with pytest.raises(HookError) as caught:
        _run(plan, is_sync=is_sync, hooks=hooks)
    assert len(outcomes_of(caught.value)) == 1
    assert [each.output for each in plan.finished] == ["noted"]
    _run(plan, is_sync=is_sync, hooks=hooks)
    assert [each.status for each in plan.finished] == ["rejected"]
    plan.commit(Session())


class Slow:
    """A hook set whose after-hook waits until it is let go on, once."""

    def __init__(self) -> None:
        self.is_asked, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.seen: list[Any] = []
        self.hooks = Desk.HookSet()
        self.hooks.after()(self.shown)

    async def shown(self, call: AnyToolCall, result: ToolResult) -> Complete[Any]:
        self.seen.append(result.output)
        self.is_asked.set()
        await self.may_go_on.wait()
        return Complete(f"{result.output}, seen")


@over("stage", ["new", "running", "ended"])
async def test_what_after_hooks_say_about_an_earlier_try_is_not_said_about_a_later_one(
    stage: str,
) -> None:
    """Nor is its result that of the later one, which is shown to the hooks by itself."""
    let_come_to("success", "success")
    slow = Slow()
    plan = opened("pay").apply_hooks_sync(slow.hooks)
    (call,) = plan.pending
    task = asyncio.create_task(run(plan, hooks=slow.hooks))
    await asyncio.sleep(0.01)
    ends[0].set()
    await slow.is_asked.wait()
    call.retry()
    if stage != "new":
        call.start()
    if stage == "ended":
        result = call.complete("again")
    slow.may_go_on.set()
    await task
    assert not plan.finished
    assert [each for each in call.steps if each.phase == "after"] == []
    if stage == "new":
        call.start()
    if stage != "ended":
        result = call.complete("again")
    with pytest.raises(MisuseError, match="has not seen the result"):
        plan.commit(Session(), [result])
    results = await plan.apply_after_hooks(slow.hooks, [result])
    assert slow.seen == ["paid", "again"]
    assert [each.output for each in plan.commit(Session(), results).results] == ["again, seen"]


async def test_what_after_hooks_say_about_a_result_is_one_entry() -> None:
    """Nobody can come between two of them."""
    slow = Slow()
    slow.may_go_on.set()

    @slow.hooks.after(Desk.note)
    def other(call: AnyToolCall, result: ToolResult) -> None:
        """See it, too."""

    plan = opened("note").apply_hooks_sync(slow.hooks)
    (call,) = plan.pending
    (result,) = await plan.apply_after_hooks(slow.hooks, [call.call_sync()])
    last = call._record.entries[3][4]
    assert [str(each[3]).split(".")[-1] for each in last] == ["shown", "other"]
    plan.record(result)
    plan.commit(Session())


def test_what_comes_late_while_after_hooks_are_noted_takes_nothing_from_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call has grown, and its try is the same."""
    hooks = Desk.HookSet()
    hooks.after()(lambda call, result: Reject("hidden"))
    plan = opened("note").apply_hooks_sync(hooks)
    (call,) = plan.pending
    result = call.call_sync()
    began = pipeline._tried
    asked: list[Any] = []

    def growing(call: Any) -> int:
        asked.append(call)
        if len(asked) == 2:  # when the verdict is written
            call.append("late", verdict="success")
        return began(call)

    monkeypatch.setattr(pipeline, "_tried", growing)
    results = plan.apply_after_hooks_sync(hooks, [result])
    assert [each.kind for each in call.steps][-2:] == ["late", "reviewed"]
    assert [each.status for each in plan.commit(Session(), results).results] == ["rejected"]
