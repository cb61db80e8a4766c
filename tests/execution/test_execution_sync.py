"""The laws of running calls from sync code."""

from __future__ import annotations

import contextvars
import re
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import CallStatus, ResumeMode, Session, SuspendedCall, SuspendTicket, ToolContext
from lutum_py.context import CancellationToken
from lutum_py.errors import (
    Cancelled,
    LifecycleError,
    MisuseError,
    NotFound,
    TimedOut,
    ToolOutputError,
)
from lutum_py.execution import (
    ExecutionErrors,
    execute_all_sync,
    execute_sync,
    outcomes_of,
    run_sync,
)
from tests.cases import over
from tests.execution.running import (
    LATE,
    SOON,
    Tools,
    call_of,
    calls_of,
    no_collection,
    plan_of,
    result_of,
    seen,
    statuses,
)

DEADLINES = [None, LATE]
SYNC = Tools.doing_sync
HEARING = Tools.doing_hearing


def double(n: int) -> int:
    return 2 * n


def fail(n: int) -> int:
    raise ValueError(n)


@over("deadline", DEADLINES)
def test_a_call_that_returns_is_a_success(deadline: float | None) -> None:
    """The outcome of a sync call is its output, right here or in a thread with a deadline."""
    threads: list[threading.Thread] = []

    def act(n: int) -> int:
        threads.append(threading.current_thread())
        return n + 1

    call = call_of(SYNC, 4)
    outcome = execute_sync(call, skipped={"act": act}, default_timeout=deadline)
    assert seen([outcome]) == [("c1", "success", 5)]
    assert call.status is CallStatus.SUCCEEDED
    assert (threads[0] is threading.main_thread()) is (deadline is None)
    assert threads[0].daemon is (deadline is not None)


@over("deadline", DEADLINES)
@over(
    "error, status, message",
    [
        (NotFound("it"), "error", "[not_found] Not found: it"),
        (Cancelled("it"), "cancelled", "[cancelled] Cancelled: it"),
        (ValueError("it"), "error", "[execution_failed] Execution failed: ValueError: it"),
        (TimeoutError("it"), "error", "[execution_failed] Execution failed: TimeoutError: it"),
        (StopIteration(), "error", "[execution_failed] Execution failed: StopIteration"),
    ],
)
def test_exceptions_become_results_or_come_out(
    error: Exception, status: str, message: str, deadline: float | None
) -> None:
    """An exception becomes the same result as from async code, or comes out where that is asked."""

    def act(n: int) -> int:
        raise error

    result = result_of(execute_sync(call_of(SYNC), skipped={"act": act}, default_timeout=deadline))
    assert (result.status, result.message) == (status, message)
    call = call_of(SYNC)
    with pytest.raises(type(error)) as caught:
        execute_sync(call, skipped={"act": act}, default_timeout=deadline, raise_errors=True)
    assert caught.value is error
    assert call.status is CallStatus.RUNNING


def test_an_unfit_output_is_an_error() -> None:
    """What does not fit the declared output is an error, or raised."""
    given = {"act": lambda n: "three"}
    assert result_of(execute_sync(call_of(SYNC), skipped=given)).code == "invalid_output"
    with pytest.raises(ToolOutputError):
        execute_sync(call_of(SYNC), skipped=given, raise_errors=True)


@pytest.mark.parametrize(
    ("run", "twin"),
    [
        (execute_sync, "execute(call)"),
        (lambda call, **more: execute_all_sync([call], **more), "execute_all(calls)"),
    ],
)
def test_an_async_tool_is_refused(run: Callable[..., object], twin: str) -> None:
    """An async tool is a `TypeError` with the remedy, and its call can still be run elsewhere."""
    call = call_of(Tools.doing)
    remedy = f"is async: use `await {twin}`, or `asyncio.run({twin})`"
    with pytest.raises(MisuseError, match=re.escape(remedy)):
        run(call, skipped={"act": double})
    assert call.status is CallStatus.NEW


def test_a_plan_with_an_async_tool_is_told_how_to_run_it() -> None:
    """`run_sync` of a plan refuses an async tool, names the line to write, and runs nothing."""
    plan = plan_of(2)
    with pytest.raises(MisuseError, match=r"\(call 'c0'\) is async: use `await run\(plan\)`"):
        run_sync(plan, skipped={"act": double})
    assert [call.status for call in plan.pending] == [CallStatus.NEW] * 2
    plan.discard()


def test_a_sync_function_with_a_coroutine_fails() -> None:
    """A sync function that gives a coroutine is told so; the coroutine is closed."""

    async def later() -> int:
        return 1

    result = result_of(execute_sync(call_of(SYNC), skipped={"act": lambda n: later()}))
    assert result.code == "execution_failed"
    assert "is async" in result.model_text


def test_a_missing_hidden_parameter_is_refused() -> None:
    """A hidden parameter that is missing is a `TypeError`, and nothing was started."""
    calls = calls_of(2, SYNC)
    with pytest.raises(MisuseError):
        execute_all_sync(calls)
    assert {call.status for call in calls} == {CallStatus.NEW}


def test_a_call_runs_once() -> None:
    """A call is not run twice, neither one after the other nor in one list."""
    call = call_of(SYNC)
    execute_sync(call, skipped={"act": double})
    with pytest.raises(LifecycleError):
        execute_sync(call, skipped={"act": double})
    again = call.retry()
    with pytest.raises(LifecycleError):
        execute_all_sync([again, again], skipped={"act": double}, limit=None)
    assert statuses(execute_all_sync([again], skipped={"act": double})) == ["success"]


@pytest.mark.parametrize("seconds", [SOON, 1e-9])
def test_a_thread_that_outlives_its_deadline_is_never_done(seconds: float) -> None:
    """A sync tool that passes its deadline is `indeterminate`, and its late result is dropped."""
    release, ended = threading.Event(), threading.Event()

    def act(n: int) -> int:
        release.wait(LATE)
        ended.set()
        return n

    call = call_of(SYNC)
    outcome = execute_sync(call, skipped={"act": act}, default_timeout=seconds, grace=LATE)
    assert not ended.is_set()
    release.set()
    result = result_of(outcome)
    assert (result.status, result.code) == ("indeterminate", "timed_out")
    assert ended.wait(LATE)
    assert call.status is CallStatus.FAILED


@pytest.mark.parametrize(
    ("heeds", "status", "code"), [(True, "error", "timed_out"), (False, "success", None)]
)
def test_a_tool_with_a_context_has_the_grace(heeds: bool, status: str, code: str | None) -> None:
    """A sync tool that hears its deadline may stop, a timeout, or finish, which is kept."""

    def act(n: int, ctx: ToolContext) -> int:
        assert ctx.cancellation.wait(LATE)
        if heeds:
            ctx.cancellation.raise_if_cancelled()
        return n

    result = result_of(
        execute_sync(call_of(HEARING), skipped={"act": act}, default_timeout=SOON, grace=LATE)
    )
    assert (result.status, result.code) == (status, code)


def test_a_deadline_that_is_heeded_can_be_raised() -> None:
    """With `raise_errors`, a tool that stops at its deadline is a `TimedOut`."""

    def act(n: int, ctx: ToolContext) -> int:
        ctx.cancellation.wait(LATE)
        raise Cancelled("heard")

    with pytest.raises(TimedOut):
        execute_sync(
            call_of(HEARING), skipped={"act": act}, default_timeout=SOON, raise_errors=True
        )


def test_a_tool_that_hears_and_goes_on_is_of_unknown_outcome() -> None:
    """A sync tool that does not use its grace is `indeterminate`."""
    release = threading.Event()

    def act(n: int, ctx: ToolContext) -> int:
        release.wait(LATE)
        return n

    outcome = execute_sync(call_of(HEARING), skipped={"act": act}, default_timeout=SOON, grace=SOON)
    release.set()
    assert result_of(outcome).status == "indeterminate"


@pytest.mark.parametrize("seconds", [float("inf"), 1e300])
def test_a_deadline_may_be_as_far_as_one_likes(seconds: float) -> None:
    """A deadline and a grace beyond all clocks never pass."""
    outcome = execute_sync(
        call_of(SYNC, 3), skipped={"act": double}, default_timeout=seconds, grace=seconds
    )
    assert seen([outcome]) == [("c1", "success", 6)]

    def act(n: int, ctx: ToolContext) -> int:
        ctx.cancellation.wait(LATE)
        return n

    outcome = execute_sync(
        call_of(HEARING, 3), skipped={"act": act}, default_timeout=SOON, grace=seconds
    )
    assert seen([outcome]) == [("c1", "success", 3)]


def test_a_call_that_was_cancelled_before_its_start_is_not_run() -> None:
    """A token that is cancelled already keeps its call from being started."""
    token = CancellationToken()
    token.cancel("the user left.")
    call = call_of(SYNC)
    context = ToolContext.for_call(call, cancellation=token)
    result = result_of(execute_sync(call, context, skipped={"act": fail}))
    text = "[cancelled] Cancelled: not executed, because the user left."
    assert (result.status, result.message) == ("cancelled", text)


def test_a_token_keeps_later_calls_from_being_started() -> None:
    """A tool that is asked to stop heeds it, and the calls after it are not executed."""
    token = CancellationToken()

    def act(n: int, ctx: ToolContext) -> int:
        if n == 1:
            token.cancel("enough.")
            ctx.cancellation.raise_if_cancelled()
        assert n < 2
        return n

    outcomes = execute_all_sync(
        calls_of(4, HEARING),
        context=lambda call: ToolContext.for_call(call, cancellation=token),
        skipped={"act": act},
    )
    assert statuses(outcomes) == ["success", "cancelled", "cancelled", "cancelled"]


@given(st.integers(0, 9), st.none() | st.integers(1, 12))
def test_results_come_in_the_order_of_the_calls(count: int, limit: int | None) -> None:
    """Outcomes come in call order, however many run at once."""
    outcomes = execute_all_sync(calls_of(count, SYNC), skipped={"act": double}, limit=limit)
    assert seen(outcomes) == [(f"c{n}", "success", 2 * n) for n in range(count)]


@pytest.mark.parametrize("limit", [3, None])
def test_a_limit_is_used_up_and_kept(limit: int | None) -> None:
    """In threads, exactly as many calls run at once as the limit allows."""
    barrier = threading.Barrier(limit or 6)
    lock = threading.Lock()
    now: list[int] = []
    most: list[int] = []

    def act(n: int) -> int:
        with lock:
            now.append(n)
            most.append(len(now))
        barrier.wait(LATE)
        with lock:
            now.remove(n)
        barrier.wait(LATE)
        return n

    outcomes = execute_all_sync(calls_of(6, SYNC), skipped={"act": act}, limit=limit)
    assert statuses(outcomes) == ["success"] * 6
    assert max(most) == (limit or 6)


def test_without_a_limit_of_its_own_one_runs_after_the_other() -> None:
    """By default calls run one after the other, in this very thread."""
    order: list[tuple[int, bool]] = []

    def act(n: int) -> int:
        order.append((n, threading.current_thread() is threading.main_thread()))
        return n

    execute_all_sync(calls_of(3, SYNC), skipped={"act": act})
    assert order == [(0, True), (1, True), (2, True)]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_lets_nothing_run_is_refused(limit: int) -> None:
    """A limit below one is a `ValueError`."""
    with pytest.raises(ValueError, match=f"^limit={limit}:"):
        execute_all_sync(calls_of(1, SYNC), skipped={"act": double}, limit=limit)


@pytest.mark.parametrize("limit", [1, 2])
def test_several_errors_are_raised_together_and_nothing_is_lost(limit: int) -> None:
    """With `raise_errors`, all calls end first; then all exceptions come with all outcomes."""

    def act(n: int) -> int:
        if n % 2:
            raise ValueError(n)
        return n

    plan = plan_of(4, SYNC)
    with pytest.raises(ExecutionErrors) as caught:
        execute_all_sync(plan.pending, skipped={"act": act}, limit=limit, raise_errors=True)
    assert [str(error) for error in caught.value.exceptions] == ["1", "3"]
    assert statuses(caught.value.outcomes) == ["success", "error", "success", "error"]
    session = Session()
    plan.commit(session, [result_of(outcome) for outcome in caught.value.outcomes])
    assert len(session.transcript) == 5


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE", default="unset")


@over("deadline", DEADLINES)
def test_context_variables_are_seen_in_threads(deadline: float | None) -> None:
    """Each tool in a thread sees the caller's context variables, and no other tool's."""
    values: list[str] = []

    def act(n: int) -> int:
        values.append(VARIABLE.get())
        VARIABLE.set("inner")
        return n

    def run() -> None:
        VARIABLE.set("outer")
        execute_all_sync(calls_of(4, SYNC), skipped={"act": act}, limit=2, default_timeout=deadline)
        values.append(VARIABLE.get())

    contextvars.copy_context().run(run)
    assert values == ["outer"] * 5


def test_each_call_gets_its_own_context() -> None:
    """The context of a call is the one that was made for it, before any was started."""
    made: list[str] = []

    def context(call: Any) -> ToolContext:
        made.append(call.id)
        return ToolContext.for_call(call, agent=call.id)

    def act(n: int, ctx: ToolContext) -> int:
        assert made == ["c0", "c1"]
        assert ctx.agent == ctx.call_id == f"c{n}"
        return n

    outcomes = execute_all_sync(calls_of(2, HEARING), context=context, skipped={"act": act})
    assert statuses(outcomes) == ["success", "success"]


@over("deadline", DEADLINES)
def test_a_tool_may_suspend_itself_and_go_on(deadline: float | None) -> None:
    """A sync tool that suspends itself reads the decision when its call goes on."""

    def act(n: int, ctx: ToolContext) -> int:
        if ctx.resume is None:
            ctx.suspend(SuspendTicket(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL))
        return int(ctx.resume.result)

    plan = plan_of(1, HEARING)
    (waiting,) = execute_all_sync(plan.pending, skipped={"act": act}, default_timeout=deadline)
    assert isinstance(waiting, SuspendedCall)
    assert waiting.was_started
    plan.suspend(waiting)
    plan.resume(waiting.approve(result=7))
    outcomes = execute_all_sync(plan.pending, skipped={"act": act}, default_timeout=deadline)
    assert seen(outcomes) == [("c0", "success", 7)]
    plan.discard()


@over("kind", [KeyboardInterrupt, SystemExit])
@over("limit", [1, 2])
@over("deadline", DEADLINES)
def test_what_is_no_exception_comes_out(
    kind: type[BaseException], limit: int, deadline: float | None
) -> None:
    """An interrupt or exit in a tool comes out; other tools are asked to stop, and none start."""
    started: list[int] = []
    together = threading.Barrier(limit)
    asked = threading.Event()

    def act(n: int, ctx: ToolContext) -> int:
        started.append(n)
        together.wait(LATE)
        if n == 0:
            raise kind("stop")
        ctx.cancellation.wait(LATE)
        asked.set()
        return n

    calls = calls_of(5, HEARING)
    with pytest.raises(kind):
        execute_all_sync(calls, skipped={"act": act}, limit=limit, default_timeout=deadline)
    assert limit == 1 or asked.wait(LATE)
    for thread in threading.enumerate():
        if thread.name == "tool worker":
            thread.join(LATE)
    assert len(started) == limit
    assert {call.status for call in calls[limit:]} == {CallStatus.NEW}


def test_an_interrupt_of_the_waiting_thread_reaches_the_tool() -> None:
    """Who interrupts a program that waits for a tool gets the interrupt, and the tool is asked."""
    asked: list[str | None] = []
    ended = threading.Event()

    def act(n: int, ctx: ToolContext) -> int:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        ctx.cancellation.wait(LATE)
        asked.append(ctx.cancellation.reason)
        ended.set()
        return n

    call = call_of(HEARING)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        execute_sync(call, skipped={"act": act}, default_timeout=LATE)
    assert ended.wait(LATE)
    assert asked == ["the program was interrupted"]
    assert statuses(outcomes_of(interrupt.value)) == ["indeterminate"]
    assert call.status is CallStatus.FAILED


class Output:
    """Something that can be watched."""


@over("deadline", DEADLINES)
def test_a_run_that_is_over_holds_nothing(deadline: float | None) -> None:
    """What a tool held when it raised goes away with its run, without the help of the collector."""
    watched: list[weakref.ref[Output]] = []

    def act(n: int) -> int:
        held = Output()
        watched.append(weakref.ref(held))
        raise ValueError(n)

    with no_collection():
        execute_sync(call_of(SYNC), skipped={"act": act}, default_timeout=deadline)
        for thread in threading.enumerate():
            if thread.name == "tool do_sync":
                thread.join(LATE)
        assert [ref() for ref in watched] == [None]
