"""The laws of running a plan: the plan keeps each outcome as soon as it is there."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    CallStatus,
    Session,
    SuspendTicket,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.context import CancellationToken
from lutum_py.errors import CommitError, LifecycleError, MisuseError, RoundClosedError
from lutum_py.execution import (
    ExecutionErrors,
    execute,
    execute_all,
    execute_all_sync,
    outcomes_of,
    run,
    run_sync,
)
from lutum_py.typing import CallEvent
from tests.cases import over
from tests.round_tools import close, opened

done: list[str] = []
gates: dict[str, asyncio.Event] = {}


@tool_fn
def note(text: str) -> str:
    """Note a text."""
    done.append(text)
    return text


@tool_fn
async def wait(name: str) -> str:
    """Wait for someone."""
    await gates[name].wait()
    return name


@tool_fn
def fail(how: str) -> str:
    """Fail."""
    if how == "interrupt":
        raise KeyboardInterrupt
    raise ValueError(how)


@tool_fn
def ask(text: str, ctx: ToolContext) -> str:
    """Ask a person."""
    ctx.suspend(SuspendTicket())
    return text


class Desk(Toolset):
    note = tool(note)
    wait = tool(wait)
    fail = tool(fail)
    ask = tool(ask)


def plan_of(*calls: tuple[str, Any]) -> ToolRoundPlan[Any]:
    """A plan of calls `c0`, `c1` and so on."""
    done.clear()
    field = {"note": "text", "wait": "name", "fail": "how", "ask": "text"}
    asked = [(f"c{at}", name, {field[name]: value}) for at, (name, value) in enumerate(calls)]
    return opened(*asked, toolset=Desk).plan()


@pytest.fixture(params=["run", "run_sync", "threads"])
def running(request: pytest.FixtureRequest) -> Any:
    """All ways to run a plan."""

    def go(plan: ToolRoundPlan[Any], **options: Any) -> ToolRoundPlan[Any]:
        if request.param == "run":
            return asyncio.run(run(plan, **options))
        return run_sync(plan, limit=None if request.param == "threads" else 1, **options)

    return go


def statuses(plan: ToolRoundPlan[Any]) -> list[str]:
    return [row.state if row.result is None else row.result.status for row in plan.calls]


def test_a_plan_that_was_run_is_committed_without_results(running: Any) -> None:
    """Every outcome is in the plan: successes, errors and calls that wait."""
    plan = plan_of(("note", "a"), ("fail", "b"), ("ask", "c"))
    assert running(plan) is plan
    assert statuses(plan) == ["success", "error", "suspended"]
    session = Session()
    with pytest.raises(CommitError):
        plan.commit(session)
    plan.resume(plan.suspended[0].cancel())
    plan.commit(session)
    assert len(session.transcript) == 4


def test_only_what_was_not_begun_is_run(running: Any) -> None:
    """A call that was started by hand, or is recorded, is left alone; twice runs nothing twice."""
    plan = plan_of(("note", "a"), ("note", "b"), ("note", "c"))
    first, second, _ = plan.pending
    first.start()
    plan.record(second.complete("by hand"))
    running(running(plan))
    assert done == ["c"]
    assert statuses(plan) == ["pending", "success", "success"]
    close(plan)


def test_where_on_begin_raises_that_call_is_not_begun(running: Any) -> None:
    """The others end and are recorded, the exception comes out, and the call is still pending."""
    seen: list[str] = []

    def on_start(call: AnyToolCall) -> None:
        assert call.status is CallStatus.NEW
        seen.append(call.id)
        if call.id in ("c0", "c2"):
            raise LookupError(call.id)

    plan = plan_of(("note", "a"), ("note", "b"), ("note", "c"))
    with pytest.raises(LookupError, match="c0") as caught:
        running(plan, on_start=on_start)
    assert caught.value.__notes__ == ["`on_start` raised for another call, too: LookupError('c2')"]
    assert sorted(seen) == ["c0", "c1", "c2"]
    assert [each.status for each in outcomes_of(caught.value)] == [  # type: ignore[union-attr]
        "cancelled",
        "success",
        "cancelled",
    ]
    assert done == ["b"]
    assert statuses(plan) == ["pending", "success", "pending"]
    assert statuses(running(plan)) == ["success", "success", "success"]
    close(plan)


def test_what_an_async_on_begin_awaits_in_vain_is_raised_as_well() -> None:
    """Somebody cancelled what it waits for, and nobody the run: that is no silent end."""

    async def on_start(call: AnyToolCall) -> None:
        if call.id == "c0":
            awaited = asyncio.get_running_loop().create_future()
            awaited.cancel()
            await awaited

    plan = plan_of(("note", "a"), ("note", "b"))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run(plan, on_start=on_start))
    assert statuses(plan) == ["pending", "success"]
    close(plan)


def test_a_run_that_is_cancelled_while_on_begin_waits_is_cancelled() -> None:
    """The call is not started, and the task ends as any that was cancelled."""

    async def cut_off() -> None:
        waits = asyncio.Event()

        async def on_start(call: AnyToolCall) -> None:
            waits.set()
            await asyncio.get_running_loop().create_future()

        running = asyncio.create_task(run(plan, on_start=on_start))
        await waits.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    plan = plan_of(("note", "a"))
    asyncio.run(cut_off())
    assert statuses(plan) == ["pending"]
    close(plan)


def test_an_async_on_begin_is_awaited_before_the_tool_begins() -> None:
    """What it does is done when the tool starts."""
    events: list[str] = []

    async def on_start(call: AnyToolCall) -> None:
        await asyncio.sleep(0)
        events.append(f"begin {call.id} after {done}")

    plan = asyncio.run(run(plan_of(("note", "a"), ("note", "b")), on_start=on_start, limit=1))
    assert events == ["begin c0 after []", "begin c1 after ['a']"]
    close(plan)


def test_sync_code_refuses_an_async_on_begin() -> None:
    """It would never be done; nothing was started."""

    async def on_start(call: AnyToolCall) -> None:
        """Never awaited."""

    plan = plan_of(("note", "a"))
    with pytest.raises(MisuseError):
        run_sync(plan, on_start=on_start)
    assert statuses(plan) == ["pending"]
    close(plan)


def test_what_is_recorded_is_there_as_soon_as_it_is() -> None:
    """While one call still runs, the plan has the result of the other."""

    async def look() -> list[str]:
        gates["a"] = asyncio.Event()
        plan = plan_of(("wait", "a"), ("note", "b"))
        ended = asyncio.Event()

        def on_event(event: CallEvent) -> None:
            if event.kind == "ended":
                ended.set()

        task = asyncio.create_task(run(plan, on_event=on_event))
        await ended.wait()
        seen = statuses(plan)
        gates["a"].set()
        close(await task)
        return seen

    assert asyncio.run(look()) == ["pending", "success"]


def test_a_cancelled_run_leaves_in_the_plan_what_is_known() -> None:
    """What was started has its outcome, the rest stays pending and can be run elsewhere."""

    async def cut() -> ToolRoundPlan[Any]:
        gates["a"] = asyncio.Event()
        plan = plan_of(("note", "x"), ("wait", "a"), ("note", "b"))
        started = asyncio.Event()

        def on_start(call: AnyToolCall) -> None:
            if call.id == "c1":
                started.set()

        task = asyncio.create_task(run(plan, on_start=on_start, limit=1))
        await started.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return plan

    plan = asyncio.run(cut())
    assert statuses(plan) == ["success", "indeterminate", "pending"]
    loaded = run_sync(Desk.load_plan(plan.dump_json()))
    assert statuses(loaded) == ["success", "indeterminate", "success"]
    close(loaded)


def test_an_interrupt_leaves_in_the_plan_what_is_known(running: Any) -> None:
    """It comes out, and no call has ended of which the plan was not told."""
    plan = plan_of(("fail", "interrupt"))
    with pytest.raises(KeyboardInterrupt):
        running(plan)
    assert statuses(plan) == ["indeterminate"]
    plan.dump_json()


def test_an_interrupt_in_on_begin_leaves_the_call_pending(running: Any) -> None:
    """Nothing was started, and nothing is said to have been."""

    def on_start(call: AnyToolCall) -> None:
        raise KeyboardInterrupt

    plan = plan_of(("note", "a"))
    with pytest.raises(KeyboardInterrupt):
        running(plan, on_start=on_start)
    assert statuses(plan) == ["pending"]
    close(plan)


def test_a_context_that_does_not_open_leaves_the_call_pending(running: Any) -> None:
    """`around` raised before the call was started: it is raised in the end, the others are done."""

    @contextmanager
    def around(call: AnyToolCall) -> Any:
        if call.id == "c0":
            raise OSError("closed")
        yield lambda outcome: None

    plan = plan_of(("note", "a"), ("note", "b"))
    with pytest.raises(ExecutionErrors):
        running(plan, around=around)
    assert statuses(plan) == ["pending", "success"]
    close(plan)


def test_what_is_stopped_before_it_begins_is_recorded_as_cancelled(running: Any) -> None:
    """Its token says that it is not to run: `on_start` is not done, and the result says so."""
    token = CancellationToken()
    token.cancel("enough")
    plan = plan_of(("note", "a"))
    running(
        plan,
        on_start=lambda call: pytest.fail("started"),
        context=lambda call: ToolContext.for_call(call, cancellation=token),
    )
    assert statuses(plan) == ["cancelled"]
    close(plan)


def test_raise_errors_raises_when_all_are_recorded(running: Any) -> None:
    """Errors come out as a group, and the plan has a result of each call."""
    plan = plan_of(("fail", "a"), ("note", "b"))
    with pytest.raises(ExecutionErrors):
        running(plan, raise_errors=True)
    assert statuses(plan) == ["error", "success"]
    close(plan)


def test_what_a_plan_does_not_take_comes_out(running: Any) -> None:
    """The round was closed while its call ran: nothing is lost in silence."""
    plan = plan_of(("note", "a"))
    with pytest.raises(LifecycleError, match="as `late`") as caught:
        running(plan, on_event=lambda event: plan.discard() if event.kind == "started" else None)
    assert done == ["a"]
    assert len(outcomes_of(caught.value)) == 1
    assert [(each.kind, each.verdict) for each in plan.steps][-1] == ("late", "success")


@over("is_cancelled", [False, True])
async def test_asyncio_prints_nothing_of_calls_whose_plan_was_closed(is_cancelled: bool) -> None:
    """Somebody presses stop: the plan is ended, and perhaps its run is cancelled too."""
    printed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: printed.append(told))
    gates.update({name: asyncio.Event() for name in "ab"})
    plan = plan_of(("wait", "a"), ("wait", "b"))
    task = asyncio.create_task(run(plan))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert {result.status for result in plan.abort(Session(), "stopped").results} == {
        "indeterminate"
    }
    for gate in gates.values():
        gate.set()
    if is_cancelled:
        task.cancel()
    with pytest.raises(asyncio.CancelledError if is_cancelled else LifecycleError) as caught:
        await task
    assert len(outcomes_of(caught.value)) == 2
    del task, caught
    gc.collect()
    assert printed == []


@pytest.mark.parametrize("given", ["plan", [], None])
def test_only_an_open_plan_is_run(given: Any, running: Any) -> None:
    """Anything else is refused with what to pass; so is a plan that has ended."""
    with pytest.raises(MisuseError, match=r"round\.plan\(\)"):
        running(given)
    plan = plan_of(("note", "a"))
    plan.discard()
    with pytest.raises(RoundClosedError):
        running(plan)


@over("name", ["in_order", "raise_errors"])
def test_what_is_neither_true_nor_false_is_refused_by_name(name: str, running: Any) -> None:
    """`"no"` would count as yes; nothing is started then."""
    plan = plan_of(("note", "a"))
    with pytest.raises(MisuseError, match=f"{name}='no'"):
        running(plan, **{name: "no"})
    assert (done, plan.pending[0].status) == ([], "new")
    plan.discard()


@over("name", ["around", "context", "hooks", "on_start", "on_event", "skipped"])
def test_what_is_no_function_or_mapping_is_refused_by_name(name: str, running: Any) -> None:
    """Nothing is started then."""
    plan = plan_of(("note", "a"))
    with pytest.raises(MisuseError, match=f"{name}=5"):
        running(plan, **{name: 5})
    assert (done, plan.pending[0].status) == ([], "new")
    plan.discard()


@over("given", ["a context", 5, object()])
def test_what_is_no_context_is_told_before_any_call_begins(given: Any, running: Any) -> None:
    """As from an `async def`, which gives a coroutine."""
    plan = plan_of(("note", "a"), ("note", "b"))
    with pytest.raises(MisuseError, match=r"context of call 'c0' is .*ToolContext\.for_call"):
        running(plan, context=lambda call: given)
    assert (done, {call.status for call in plan.pending}) == ([], {CallStatus.NEW})
    plan.discard()


def test_in_threads_one_on_begin_is_done_at_a_time() -> None:
    """What it writes to need not be shared by threads."""
    lock = threading.Lock()

    def on_start(call: AnyToolCall) -> None:
        assert lock.acquire(blocking=False)
        lock.release()

    plan = plan_of(*(("note", str(at)) for at in range(20)))
    run_sync(plan, limit=8, on_start=on_start)
    assert sorted(done) == sorted(map(str, range(20)))
    close(plan)


def run_in_loop(plan: ToolRoundPlan[Any], **options: Any) -> ToolRoundPlan[Any]:
    return asyncio.run(run(plan, **options))


@pytest.mark.parametrize("way", [run_in_loop, run_sync])
def test_a_call_that_was_saved_as_pending_is_not_begun_any_more(way: Any) -> None:
    """Where a plan is saved while its calls run in turn, each runs once, here or where it loads."""
    saved: list[str] = []

    def saving(event: CallEvent) -> None:
        if event.kind == "ended":
            saved.append(plan.dump_json())

    plan = plan_of(("note", "a"), ("note", "b"), ("note", "c"))
    with pytest.raises(RoundClosedError) as caught:
        way(plan, on_event=saving, limit=1)
    came_to = [getattr(each, "status", None) for each in outcomes_of(caught.value)]
    assert came_to == ["success", "cancelled", "cancelled"]
    loaded = run_sync(Desk.load_plan(saved[0]))
    assert done == ["a", "b", "c"]
    assert statuses(loaded) == ["success"] * 3
    close(loaded)


Runner = Callable[[ToolRoundPlan[Any]], Coroutine[Any, Any, object]]
AT_ONCE: dict[str, Runner] = {
    "run": run,
    "execute": lambda plan: execute(plan.pending[0]),
    "execute_all": lambda plan: execute_all(plan.pending),
    "limited": lambda plan: execute_all(plan.pending, limit=1),
    "call": lambda plan: plan.pending[0].call(),
}


@over("first, second", [(first, second) for first in AT_ONCE for second in AT_ONCE])
def test_of_two_runs_at_once_the_first_to_begin_a_call_has_it(first: str, second: str) -> None:
    """Whoever comes second is told so, and takes nothing from what the first comes to."""

    async def both(plan: ToolRoundPlan[Any]) -> tuple[Any, Any]:
        gates["a"] = asyncio.Event()
        tasks = [asyncio.create_task(AT_ONCE[way](plan)) for way in (first, second)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        gates["a"].set()
        mine, other = await asyncio.gather(*tasks, return_exceptions=True)
        return mine, other

    plan = opened(("c0", "wait", {"name": "a"}), toolset=Desk).plan()
    (call,) = plan.pending
    told: list[ToolResult] = []
    for each in asyncio.run(both(plan)):
        if isinstance(each, LifecycleError):
            assert [one.is_error for one in outcomes_of(each)] in ([], [True])
        elif not isinstance(each, ToolRoundPlan):
            told += each if isinstance(each, list) else [each]
    assert call.status == "succeeded"
    assert [each.is_success for each in (*told, *plan.finished)] == [True]
    plan.commit(Session(), told)


@over("way", ["run", "run_sync", "execute_all_sync"])
def test_a_run_leaves_alone_what_somebody_else_began_before_it(way: str) -> None:
    """A call that is started between the look at it and its turn is not this run's to end."""
    plan = opened(("c0", "note", {"text": "a"}), toolset=Desk).plan()
    (call,) = plan.pending

    @contextmanager
    def around(given: AnyToolCall) -> Any:
        given.start()
        yield lambda outcome: None

    ways: dict[str, Callable[[], object]] = {
        "run": lambda: asyncio.run(run(plan, on_start=lambda given: given.start())),
        "run_sync": lambda: run_sync(plan, on_start=lambda given: given.start()),
        "execute_all_sync": lambda: execute_all_sync([call], around=around),
    }
    with pytest.raises((LifecycleError, ExecutionErrors)):
        ways[way]()
    assert call.status == "running"
    plan.commit(Session(), [call.complete("b")])


def test_a_task_that_is_cancelled_before_it_starts_ends_no_call_of_others() -> None:
    """What somebody else began goes on, though a batch with it was cancelled."""

    async def main(call: AnyToolCall) -> BaseException:
        batch = asyncio.create_task(execute_all([call]))
        asyncio.get_running_loop().call_soon(lambda: (call.start(), batch.cancel()))
        with pytest.raises(asyncio.CancelledError) as caught:
            await batch
        return caught.value

    plan = opened(("c0", "note", {"text": "a"}), toolset=Desk).plan()
    (call,) = plan.pending
    (outcome,) = outcomes_of(asyncio.run(main(call)))
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"  # it was started, so it is not "not executed"
    assert call.status == "running"
    plan.commit(Session(), [call.complete("b")])
