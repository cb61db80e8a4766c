"""The law of what was started: no run reports such a call as "not executed"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from lutum_py import (
    AnyToolCall,
    Session,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.context import CancellationToken
from lutum_py.errors import LifecycleError, OutcomeUnknown, RoundClosedError
from lutum_py.execution import (
    Outcome,
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
    run,
    run_sync,
)
from lutum_py.testing import ScriptedModel
from lutum_py.typing import CallRun
from tests.execution.running import settled

PAID: list[int] = []
READS = ToolCapabilities(effects=[ToolEffect("read_file")])
ACCESSES = ToolCapabilities(effects=[ToolEffect("write_file", "path")])


@tool_fn
def pay(cents: int) -> str:
    """Pay an amount."""
    PAID.append(cents)
    return "paid"


@tool_fn(capabilities=READS)
def settle(cents: int, ctx: ToolContext) -> str:
    """Pay by another tool; by itself it changes nothing."""
    if ctx.inner is None:
        ctx.request_calls([("pay", {"cents": cents})])
    return "settled"


@tool_fn
def pay_twice(cents: int, ctx: ToolContext) -> str:
    """Pay half, and ask about the other half."""
    PAID.append(cents)
    if ctx.resume is None:
        ctx.suspend(SuspendTicket(message="The other half, too?"))
    return "paid"


@tool_fn
def breaks(cents: int) -> str:
    """Pay, and break."""
    PAID.append(cents)
    raise ConnectionError


@tool_fn
async def hang(cents: int) -> None:
    """Never end."""
    await asyncio.Event().wait()


class Till(Toolset):
    hang = tool(hang)
    pay = tool(pay)
    settle = tool(settle)
    pay_twice = tool(pay_twice)
    breaks = tool(breaks)


OPENED: list[Any] = []


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    """End the rounds that a test leaves open."""
    yield
    for each in OPENED:
        with suppress(RoundClosedError):
            each.discard()
    OPENED.clear()


def opened(name: str) -> ToolRoundPlan[Any]:
    read: Any = Till.read_turn(ScriptedModel.tool_calls(("c1", name, {"cents": 5})))
    round_ = read.round
    OPENED.append(round_)
    plan: ToolRoundPlan[Any] = round_.plan()
    return plan


def ran(plan: ToolRoundPlan[Any]) -> Outcome:
    (call,) = plan.pending
    outcome = execute_sync(call)
    plan.record(outcome)
    return outcome


def back_from_within(name: str = "settle") -> tuple[ToolRoundPlan[Any], AnyToolCall]:
    """A call whose payment within it was made."""
    plan = opened(name)
    ran(plan)
    plan = plan.apply_hooks_sync(lambda call: call)
    ran(plan)
    (call,) = plan.pending
    return plan, call


def approved() -> tuple[ToolRoundPlan[Any], AnyToolCall]:
    """A call that paid before it asked a person."""
    plan = opened("pay_twice")
    waiting = ran(plan)
    assert isinstance(waiting, SuspendedCall)
    plan.resume(waiting.approve())
    (call,) = plan.pending
    return plan, call


def tried_again() -> tuple[ToolRoundPlan[Any], AnyToolCall]:
    """Another try of a call that paid, and broke."""
    plan = opened("breaks")
    (call,) = plan.pending
    execute_sync(call)
    return plan, call.retry()


def tried_twice() -> tuple[ToolRoundPlan[Any], AnyToolCall]:
    """A third try, after one that was never begun."""
    plan, call = tried_again()
    return plan, call.retry()


STARTED: list[Callable[[], tuple[ToolRoundPlan[Any], AnyToolCall]]] = [
    back_from_within,
    approved,
    tried_again,
    tried_twice,
]


def stopped(call: AnyToolCall) -> ToolContext:
    token = CancellationToken()
    token.cancel("the user left.")
    return ToolContext.for_call(call, cancellation=token)


@contextmanager
def interrupting(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
    raise KeyboardInterrupt
    yield lambda _: None


def raised_by(function: Callable[[], object]) -> tuple[Outcome, ...]:
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)) as caught:
        function()
    return outcomes_of(caught.value)


async def cancelled_before(call: AnyToolCall) -> list[Outcome]:
    """Of a batch that is cancelled before it is the turn of its second call."""
    (other,) = opened("hang").pending
    batch = asyncio.create_task(execute_all([other, call], limit=1))
    await settled()
    batch.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await batch
    return list(outcomes_of(caught.value))[1:]


CALLS: dict[str, Callable[[AnyToolCall], Any]] = {
    "token": lambda call: [asyncio.run(execute(call, stopped(call)))],
    "token, sync": lambda call: [execute_sync(call, stopped(call))],
    "tokens": lambda call: asyncio.run(execute_all([call], context=stopped)),
    "around, sync": lambda call: raised_by(lambda: execute_all_sync([call], around=interrupting)),
    "cancelled": lambda call: asyncio.run(cancelled_before(call)),
    "around": lambda call: raised_by(lambda: asyncio.run(execute_all([call], around=interrupting))),
}


def check(call: AnyToolCall, outcome: object) -> None:
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"
    assert "not executed" not in outcome.model_text.lower()
    if call.name == "settle":
        assert outcome.model_text.endswith(" Within it, c1/1 of tool pay: success.")


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize("started", STARTED)
def test_a_call_that_was_started_is_never_reported_as_not_executed(
    started: Callable[[], tuple[ToolRoundPlan[Any], AnyToolCall]], way: str
) -> None:
    """Wherever a run stops before it goes on, its outcome is unknown: it may have paid."""
    _, call = started()
    before = len(PAID)
    (outcome,) = CALLS[way](call)
    check(call, outcome)
    assert len(PAID) == before


@pytest.mark.parametrize("way", CALLS)
def test_a_call_that_was_not_started_is_reported_as_not_executed(way: str) -> None:
    """Its history has no beginning, and that is what the model reads."""
    (call,) = opened("pay").pending
    (outcome,) = CALLS[way](call)
    assert outcome.status == "cancelled"
    assert "not executed" in outcome.model_text
    assert [step.kind for step in call.steps if step.kind == "started"] == []


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("started", [back_from_within, approved])
def test_a_run_of_a_plan_that_is_stopped_records_what_was_started(
    started: Callable[[], tuple[ToolRoundPlan[Any], AnyToolCall]], is_async: bool
) -> None:
    """A token that keeps a call from going on makes its outcome unknown in the plan, too."""
    plan, call = started()
    if is_async:
        asyncio.run(run(plan, context=stopped, hooks=lambda call: call))
    else:
        run_sync(plan, context=stopped, hooks=lambda call: call)
    (result,) = plan.commit(Session()).results
    check(call, result)


async def cancelled_in_on_start(plan: ToolRoundPlan[Any]) -> tuple[Outcome, ...]:
    task = asyncio.create_task(run(plan, on_start=lambda _: asyncio.Event().wait()))
    await settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return outcomes_of(caught.value)


PLANS: list[Callable[[ToolRoundPlan[Any]], tuple[Outcome, ...]]] = [
    lambda plan: raised_by(lambda: asyncio.run(run(plan, around=interrupting))),
    lambda plan: raised_by(lambda: run_sync(plan, around=interrupting)),
    lambda plan: asyncio.run(cancelled_in_on_start(plan)),
]


@pytest.mark.parametrize("way", PLANS)
def test_a_run_of_a_plan_that_is_interrupted_reports_what_was_started(
    way: Callable[[ToolRoundPlan[Any]], tuple[Outcome, ...]],
) -> None:
    """What stays pending is reported as started, and can still go on."""
    plan, call = back_from_within()
    (outcome,) = way(plan)
    check(call, outcome)
    asyncio.run(run(plan))
    (result,) = plan.commit(Session()).results
    assert result.output == "settled"


def test_a_call_after_a_doubt_is_reported_as_started() -> None:
    """A call that paid before it asked, and now comes after a doubt, has an unknown outcome."""

    @tool_fn(capabilities=ACCESSES)
    def paying(path: str, asks: bool, ctx: ToolContext) -> str:
        """Pay, and ask."""
        if asks and ctx.resume is None:
            ctx.suspend(SuspendTicket(message="?"))
        raise OutcomeUnknown("nobody answered")

    class Tills(Toolset):
        paying_ = tool(paying)

    turn = ScriptedModel.tool_calls(
        ("c1", "paying", {"path": "till", "asks": False}),
        ("c2", "paying", {"path": "till", "asks": True}),
    )
    plan: Any = Tills.read_turn(turn).round.plan()  # type: ignore[union-attr]
    _, second = plan.pending
    waiting = execute_sync(second)
    plan.record(waiting)
    plan.resume(waiting.approve())  # type: ignore[union-attr]
    asyncio.run(run(plan, in_order=True))
    first, result = plan.commit(Session()).results
    assert first.status == "indeterminate"
    assert (result.status, result.code) == ("indeterminate", "after_doubt")
    assert "not started" not in result.model_text


def test_what_only_reads_is_in_doubt_where_it_requested_others() -> None:
    """A tool that changes nothing by itself may have had a payment made, and is cut off."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        token.cancel("enough.")
        yield lambda _: None

    token = CancellationToken()
    _, call = back_from_within()
    context = ToolContext.for_call(call, cancellation=token)
    outcome = asyncio.run(execute(call, context, around=around))
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"


def test_a_try_of_a_call_that_paid_may_be_left_in_doubt() -> None:
    """What an earlier try did is not known to be nothing."""
    _, call = tried_again()
    assert call.indeterminate("nobody looked").status == "indeterminate"
    fresh = opened("pay").pending[0].retry()
    with pytest.raises(LifecycleError, match="was not started"):
        fresh.indeterminate("nobody looked")


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_stopped_run_takes_nothing_from_whoever_has_the_call(is_closed: bool) -> None:
    """A call that somebody else began, or whose round is over, is not ended by a stopped run."""
    plan = opened("pay")
    (call,) = plan.pending
    run_later = execute(call, stopped(call))
    token = CancellationToken()
    context = ToolContext.for_call(call, cancellation=token)

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        token.cancel("enough.")
        if is_closed:
            plan.discard()
        else:
            call.start()
        yield lambda _: None

    run_later.close()
    with pytest.raises(LifecycleError):
        execute_sync(call, context, around=around)
    assert call.status == ("cancelled" if is_closed else "running")
    since = ["ended", "recorded"] if is_closed else ["started"]
    assert [each.kind for each in call.steps] == ["proposed", *since]


def started_meanwhile(monkeypatch: pytest.MonkeyPatch, call: AnyToolCall) -> None:
    """Let somebody else start a call while its result as one that was not is made."""
    made = CallRun.not_executed

    def starting(run: CallRun, *given: Any) -> ToolResult:
        if call.status == "new":
            call.start()
        return made(run, *given)

    monkeypatch.setattr(CallRun, "not_executed", starting)


def test_a_stopped_run_that_comes_second_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of it and of whoever starts the call at this moment, one has the call."""
    plan = opened("pay")
    (call,) = plan.pending
    started_meanwhile(monkeypatch, call)
    with pytest.raises(LifecycleError, match="was started already"):
        execute_sync(call, stopped(call))
    assert [each.kind for each in call.steps] == ["proposed", "started"]


def test_a_call_behind_a_doubt_that_somebody_else_starts_is_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that keeps the order does not answer it, and does not run it."""

    @tool_fn(capabilities=ACCESSES)
    def losing(path: str) -> str:
        """Lose the answer."""
        raise OutcomeUnknown("nobody answered")

    class Tills(Toolset):
        losing_ = tool(losing)

    calls = [("c1", "losing", {"path": "till"}), ("c2", "losing", {"path": "till"})]
    plan: Any = Tills.read_turn(ScriptedModel.tool_calls(*calls)).round.plan()  # type: ignore[union-attr]
    _, second = plan.pending
    started_meanwhile(monkeypatch, second)
    with pytest.raises(LifecycleError, match="was started already"):
        run_sync(plan, in_order=True)
    assert [each.kind for each in second.steps] == ["proposed", "started"]
    assert [each.id for each in plan.finished] == ["c1"]
    plan.discard()


OPEN = [True]


def is_open(name: str) -> str:
    if not OPEN[0]:
        raise ValueError("it is closed")
    return name


@tool_fn
async def visit(shop: Annotated[str, AfterValidator(is_open)]) -> str:
    """Visit a shop, if it is open."""
    return f"in {shop}"


class Town(Toolset):
    visit = tool(visit)


@pytest.mark.parametrize(
    "way",
    [
        execute,
        lambda call: execute(call, ToolContext.for_call(call)),
        lambda call: execute_all([call]),
    ],
)
def test_a_text_that_fits_no_more_ends_a_call_as_it_starts(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[AnyToolCall], Any]
) -> None:
    """The run answers with that, and so does the plan."""
    turn = ScriptedModel.tool_calls(("c1", "visit", {"shop": "Acme"}))
    saved = Town.read_turn(turn).round.plan().dump_json()  # type: ignore[union-attr]
    plan = Town.load_plan(saved)
    monkeypatch.setattr("tests.execution.test_started_calls.OPEN", [False])
    outcome = asyncio.run(way(plan.pending[0]))
    result = outcome[0] if isinstance(outcome, list) else outcome
    assert (result.status, "it is closed" in result.model_text) == ("rejected", True)
    assert plan.resolve().results == (result,)


@tool_fn(capabilities=READS)
def peek(deep: bool, ctx: ToolContext) -> str:
    """Look something up, by other calls."""
    if ctx.inner is None:
        ctx.request_calls([("lose" if deep else "glance", {})])
    return "seen"


@tool_fn(capabilities=READS)
def glance() -> str:
    """Look."""
    return "seen"


@tool_fn
def lose() -> None:
    """Change something, perhaps."""
    raise OutcomeUnknown("nobody answered")


class Room(Toolset):
    peek = tool(peek)
    glance = tool(glance)
    lose = tool(lose)


@pytest.mark.parametrize(("deep", "status"), [(False, "cancelled"), (True, "indeterminate")])
def test_a_call_only_reads_if_what_it_requested_does(deep: bool, status: str) -> None:
    """A tool that reads is in doubt where a call within it may have changed something."""
    read: Any = Room.read_turn(ScriptedModel.tool_calls(("c1", "peek", {"deep": deep})))
    OPENED.append(read.round)
    plan = read.round.plan()
    ran(plan)
    plan = plan.apply_hooks_sync(lambda call: call)
    ran(plan)
    (call,) = plan.pending
    result = execute_sync(call, stopped(call))
    assert isinstance(result, ToolResult)
    assert result.status == status
    assert "not executed" not in result.model_text
