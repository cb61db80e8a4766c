"""The laws of running calls from async code."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from lutum_py import (
    CallStatus,
    ResumeMode,
    Session,
    Skip,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    LifecycleError,
)
from lutum_py.execution import execute, execute_all
from tests.cases import over
from tests.execution.running import (
    Tools,
    call_of,
    calls_of,
    no_collection,
    plan_of,
    raising,
    raising_sync,
    result_of,
    running,
    seen,
    statuses,
)
from tests.sample_tools import input_of


async def double(n: int, ctx: ToolContext) -> int:
    return 2 * n


def test_a_call_that_returns_is_a_success() -> None:
    """The outcome of a call that returns is its output, as the result of exactly this call."""
    call = call_of(n=21)
    result = result_of(running(execute(call, skipped={"act": double})))
    assert (result.id, result.name, result.arguments) == ("c1", "do", '{"n": 21}')
    assert (result.status, result.output) == ("success", 42)
    assert call.status is CallStatus.SUCCEEDED


def test_a_sync_function_runs_in_a_thread_of_its_own() -> None:
    """A sync function runs in a daemon thread that bears the name of its tool."""
    threads: list[threading.Thread] = []

    def act(n: int) -> int:
        threads.append(threading.current_thread())
        return n + 1

    result = result_of(running(execute(call_of(Tools.doing_sync), skipped={"act": act})))
    assert result.output == 2
    assert threads[0] is not threading.main_thread()
    assert (threads[0].daemon, threads[0].name) == (True, "tool do_sync")


def test_a_sync_function_may_give_something_to_await() -> None:
    """What a sync function returns is awaited where it can be."""
    awaited: list[int] = []

    async def later(n: int) -> int:
        awaited.append(n)
        return n + 1

    call = call_of(Tools.doing_sync, 4)
    assert result_of(running(execute(call, skipped={"act": later}))).output == 5
    assert awaited == [4]


def test_a_missing_hidden_parameter_is_refused_before_the_start() -> None:
    """A hidden parameter that is missing is a `TypeError` with the remedy; nothing has changed."""
    call = call_of()
    with pytest.raises(TypeError, match=r'needs `act`, .*: `skipped=\{"act": \.\.\.\}`'):
        running(execute(call))
    assert call.status is CallStatus.NEW


def test_hidden_parameters_of_others_are_left_out() -> None:
    """A tool takes those hidden values that it has, and never one that the model fills in."""
    given = {"act": double, "database": object(), "n": 99}
    assert result_of(running(execute(call_of(n=2), skipped=given))).output == 4


@tool_fn
def greet(name: str, greeting: Annotated[str, Skip()] = "Hello") -> str:
    return f"{greeting} {name}"


class OnlyInput(ToolInput[int]):
    x: int


class MoreTools(Toolset):
    greet_user = tool(greet)
    only_input = tool(OnlyInput)


def test_a_hidden_parameter_may_have_a_default() -> None:
    """A hidden parameter with a default need not be given."""
    metadata = ToolMetadata(id="c1", name="greet", arguments='{"name": "Ada"}')
    call = MoreTools.parse_tool_call(metadata)
    assert result_of(running(execute(call))).output == "Hello Ada"
    call.retry()
    assert result_of(running(execute(call, skipped={"greeting": "Hi"}))).output == "Hi Ada"


def test_an_input_without_a_function_is_refused() -> None:
    """A tool without a function cannot be run; the error says what to do instead."""
    name = MoreTools.only_input.name
    call = MoreTools.parse_tool_call(ToolMetadata(id="c1", name=name, arguments='{"x": 1}'))
    with pytest.raises(TypeError, match=r"without a function.*call\.complete\(output\)"):
        running(execute(call))
    assert call.status is CallStatus.NEW


def test_a_call_runs_once() -> None:
    """A call that has ended cannot be run again, but a new call of the same can."""
    call = call_of(n=3)
    running(execute(call, skipped={"act": double}))
    with pytest.raises(LifecycleError):
        running(execute(call, skipped={"act": double}))
    assert result_of(running(execute(call.retry(), skipped={"act": double}))).output == 6


def test_a_running_call_is_not_run_beside_itself() -> None:
    """A call that runs cannot be started once more, alone or in one list."""
    started: list[int] = []

    async def act(n: int, ctx: ToolContext) -> int:
        started.append(n)
        with pytest.raises(LifecycleError):
            await execute(call, skipped={"act": act})
        return n

    call = call_of()
    assert result_of(running(execute(call, skipped={"act": act}))).is_success
    fresh = call.retry()
    with pytest.raises(LifecycleError):
        running(execute_all([fresh, fresh], skipped={"act": act}))
    assert started == [1]
    assert fresh.status is CallStatus.NEW


@over(
    "arguments",
    [
        {"default_timeout": 0},
        {"default_timeout": -1.0},
        {"default_timeout": float("nan")},
        {"default_timeout": "1"},
        {"grace": -1.0},
        {"grace": None},
        {"limit": 0},
        {"limit": "3"},
        {"limit": 2.5},
    ],
)
def test_numbers_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    """A number of seconds or calls that is none is named, before anything has changed.

    That holds without calls too: what is wrong shows on the first day, not on the first call.
    """
    call = call_of()
    name = next(iter(arguments))
    for calls in ([call], []):
        with pytest.raises(ValueError, match=f"^{name}="):
            running(execute_all(calls, skipped={"act": double}, **arguments))
    assert call.status is CallStatus.NEW


def test_each_call_gets_its_own_context() -> None:
    """The context of a call is the one that was made for it."""
    told: list[tuple[str, object]] = []

    async def act(n: int, ctx: ToolContext) -> int:
        told.append((ctx.call_id, ctx.agent))
        return n

    outcomes = running(
        execute_all(
            calls_of(3),
            context=lambda call: ToolContext.for_call(call, agent=input_of(call).n),
            skipped={"act": act},
        )
    )
    assert statuses(outcomes) == ["success"] * 3
    assert sorted(told, key=lambda pair: pair[0]) == [("c0", 0), ("c1", 1), ("c2", 2)]


def test_a_tool_without_a_context_from_outside_gets_one() -> None:
    """A missing context becomes one that knows the call and reports to nobody."""

    async def act(n: int, ctx: ToolContext) -> int:
        ctx.report_progress("running")
        assert (ctx.call_id, ctx.tool_name, ctx.resume) == ("c1", "do", None)
        return n

    assert result_of(running(execute(call_of(), skipped={"act": act}))).is_success


def test_a_call_that_was_answered_while_it_ran_has_no_second_answer() -> None:
    """Where somebody answered a running call, its end is a `LifecycleError`, and not a result."""

    async def act(n: int, ctx: ToolContext) -> int:
        call.reject("no longer wanted")
        return n

    call = call_of()
    with pytest.raises(LifecycleError):
        running(execute(call, skipped={"act": act}))


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE")


def test_context_variables_are_seen_in_threads() -> None:
    """A tool in a thread sees the context variables of its caller and cannot change them."""
    values: list[str] = []

    def act(n: int) -> int:
        values.append(VARIABLE.get())
        VARIABLE.set("inner")
        return n

    async def main() -> str:
        VARIABLE.set("outer")
        await execute_all(calls_of(2, Tools.doing_sync), skipped={"act": act})
        return VARIABLE.get()

    assert running(main()) == "outer"
    assert values == ["outer", "outer"]


def test_a_tool_may_suspend_itself_and_go_on() -> None:
    """A call that suspends itself waits in the plan, and its tool reads the decision later."""
    ids: list[str] = []

    async def act(n: int, ctx: ToolContext) -> int:
        if ctx.resume is None:
            ticket = SuspendTicket(action="ask", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)
            ctx.suspend(ticket)
        assert (ctx.suspension_id, ctx.suspension_reason) == (ids[0], "ask")
        return int(ctx.resume.result)

    plan = plan_of(1)
    (waiting,) = running(execute_all(plan.pending, skipped={"act": act}))
    assert isinstance(waiting, SuspendedCall)
    ids.append(waiting.ticket.id)
    assert waiting.was_started
    assert waiting.call is plan.pending[0]
    assert waiting.call.status is CallStatus.SUSPENDED
    plan.suspend(waiting)
    with pytest.raises(LifecycleError):
        running(execute(waiting.call, skipped={"act": act}))
    plan.resume(waiting.approve(result=0))
    outcomes = running(execute_all(plan.pending, skipped={"act": act}))
    assert seen(outcomes) == [("c0", "success", 0)]
    session = Session()
    plan.commit(session, [result_of(outcome) for outcome in outcomes])
    assert len(session.transcript) == 2


def test_a_call_may_suspend_itself_again_and_from_a_thread() -> None:
    """Suspending is no error, also from a thread, in a task group, or for the second time."""

    def act(n: int, ctx: ToolContext) -> int:
        ctx.suspend(SuspendTicket(action="first" if ctx.suspension_id is None else "second"))

    plan = plan_of(1, Tools.doing_hearing)
    for action in ("first", "second"):
        (waiting,) = running(execute_all(plan.pending, skipped={"act": act}, raise_errors=True))
        assert isinstance(waiting, SuspendedCall)
        assert waiting.ticket.action == action
        plan.suspend(waiting)
        plan.resume(waiting.approve())
    plan.discard()

    async def grouped(n: int, ctx: ToolContext) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(ctx.suspend, SuspendTicket(action="inside")))
        return n

    outcome = running(execute(call_of(), skipped={"act": grouped}, raise_errors=True))
    assert isinstance(outcome, SuspendedCall)
    assert outcome.ticket.action == "inside"


def test_a_tool_that_is_cancelled_by_a_stranger_is_of_unknown_outcome() -> None:
    """A `CancelledError` that nobody asked for is no success, no failure, and no cancellation."""
    for selector, act in (
        (Tools.doing, raising(asyncio.CancelledError())),
        (Tools.doing_sync, raising_sync(asyncio.CancelledError())),
    ):
        call = call_of(selector)
        result = result_of(running(execute(call, skipped={"act": act})))
        assert (result.status, result.code) == ("indeterminate", "cancelled")
        assert "though nobody asked it to stop" in result.model_text
        assert call.status is CallStatus.FAILED


class Output:
    """Something that can be watched."""


@over("fails", [False, True])
@over("selector", [Tools.doing, Tools.doing_sync])
def test_a_run_that_is_over_holds_nothing(selector: Any, fails: bool) -> None:
    """What a tool held or raised goes away with its run, without the help of the collector."""
    watched: list[weakref.ref[Output]] = []

    class Failure(Exception):
        def __init__(self) -> None:
            self.held = Output()
            watched.append(weakref.ref(self.held))

    def work(n: int) -> int:
        held = Output()
        watched.append(weakref.ref(held))
        if fails:
            raise Failure
        return n

    async def act(n: int, ctx: ToolContext) -> int:
        return work(n)

    async def main() -> int:
        given: Callable[..., Any] = act if selector is Tools.doing else work
        await execute_all([call_of(selector)], skipped={"act": given})
        await asyncio.sleep(0)
        return sum(ref() is not None for ref in watched)

    with no_collection():
        assert asyncio.run(main()) == 0
    assert len(watched) == (2 if fails else 1)
