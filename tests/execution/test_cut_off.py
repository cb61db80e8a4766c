"""The laws of tools that are cut off: nobody knows what they did, unless they only read."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lutum_py import AnyToolCall, CallStatus, ToolContext, ToolMetadata, ToolResult, tool_fn
from lutum_py.capabilities import ToolCapabilities
from lutum_py.context import CancellationToken
from lutum_py.errors import Cancelled, LifecycleError, NotFound, OutcomeUnknown, TimedOut
from lutum_py.execution import execute, execute_all, execute_all_sync, execute_sync, outcomes_of
from tests.cases import over
from tests.execution.running import (
    LATE,
    SOON,
    Tools,
    call_of,
    calls_of,
    result_of,
    running,
    settled,
    statuses,
)
from tests.sample_tools import input_of

Options = dict[str, Any]
DOUBTFUL: list[Options] = [
    {},
    {"capabilities": ToolCapabilities(effects=["write_file"])},
    {"capabilities": ToolCapabilities(effects=["read_file", "write_file"])},
    {"idempotent": True},
    {"idempotent": True, "capabilities": ToolCapabilities(effects=["spend_money"])},
]
READING: list[Options] = [
    {"capabilities": ToolCapabilities(effects=["read_file", "network_request"])},
]


def call_to(function: Any) -> AnyToolCall:
    name = function.name
    return function.Call(ToolMetadata(id="c1", name=name, arguments="{}"), function.Input())  # type: ignore[no-any-return]


def made(is_async: bool, **options: Any) -> tuple[AnyToolCall, threading.Event]:
    """A call of a tool that does not end by itself, and what lets a thread go."""
    go = threading.Event()
    if is_async:

        @tool_fn(**options)  # type: ignore[untyped-decorator]
        async def endless(ctx: ToolContext) -> None:
            """Wait for ever."""
            await asyncio.Event().wait()

        return call_to(endless), go

    @tool_fn(**options)  # type: ignore[untyped-decorator]
    def deaf(ctx: ToolContext) -> None:
        """Hear nothing."""
        go.wait(LATE)

    return call_to(deaf), go


async def cut_off(call: AnyToolCall, by: str, grace: float = 0, **skipped: Any) -> ToolResult:
    """What a call comes to whose run is ended from outside, in one of three ways."""
    if by == "deadline":
        outcome = await execute(call, default_timeout=SOON, grace=grace, skipped=skipped)
        return result_of(outcome)
    token = CancellationToken()
    context = ToolContext.for_call(call, cancellation=token)
    task = asyncio.create_task(execute(call, context, grace=grace, skipped=skipped))
    await settled()
    if by == "token":
        token.cancel("the user left.")
        return result_of(await task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    (outcome,) = outcomes_of(caught.value)
    return result_of(outcome)


@over("is_async", [True, False])
@over("by", ["deadline", "token", "owner"])
@over("options", [*DOUBTFUL, *READING])
def test_what_is_cut_off_is_in_doubt_unless_it_only_reads(
    is_async: bool, by: str, options: Options
) -> None:
    """Deadline, token and a cancelled task, async and sync alike; `idempotent` is no excuse."""
    call, go = made(is_async, **options)
    result = running(cut_off(call, by))
    go.set()
    known = "error" if by == "deadline" else "cancelled"
    assert result.status == (known if options in READING else "indeterminate")
    assert result.code == ("timed_out" if by == "deadline" else "cancelled")
    assert call.status.is_terminal


@over("options", [*DOUBTFUL, *READING])
def test_a_sync_run_that_is_cut_off_is_judged_alike(options: Options) -> None:
    """`execute_sync` says the same of a thread that it leaves behind."""
    call, go = made(False, **options)
    result = result_of(execute_sync(call, default_timeout=SOON, grace=0))
    go.set()
    status = "error" if options in READING else "indeterminate"
    assert (result.status, result.code) == (status, "timed_out")


# What a tool raises on being stopped: two of its own words say what it did, and no others.


def raising_when_stopped(is_async: bool, error: Exception, **options: Any) -> AnyToolCall:
    """A call of a tool that raises something of its own once it is asked to stop."""
    if is_async:

        @tool_fn(**options)  # type: ignore[untyped-decorator]
        async def breaks(ctx: ToolContext) -> None:
            """Break."""
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise error from None

        return call_to(breaks)

    @tool_fn(**options)  # type: ignore[untyped-decorator]
    def tears(ctx: ToolContext) -> None:
        """Break in a thread."""
        ctx.cancellation.wait(LATE)
        raise error

    return call_to(tears)


PLAIN = [ConnectionError("lost"), NotFound("it"), ExceptionGroup("two", [OSError(), OSError()])]


@over("is_async", [True, False])
@over("by", ["deadline", "token", "owner"])
@over("error", PLAIN)
@over("options", [DOUBTFUL[0], DOUBTFUL[-1]])
def test_what_a_tool_raises_when_it_is_stopped_is_no_error(
    is_async: bool, by: str, error: Exception, options: Options
) -> None:
    """It was cut off, whatever the client beneath it makes of that: a plain error invites another
    call. Only words that are meant for the model are repeated.
    """
    call = raising_when_stopped(is_async, error, **options)
    result = running(cut_off(call, by, LATE))
    assert (result.status, result.code) == (
        "indeterminate",
        "timed_out" if by == "deadline" else "cancelled",
    )
    assert "lost" not in result.model_text
    assert ("Not found: it" in result.model_text) is isinstance(error, NotFound)


@over("by", ["deadline", "token", "owner"])
@over("error", [NotFound("it"), TimedOut("at the bank"), Cancelled("rolled back")])
def test_what_a_reading_tool_raises_when_it_is_stopped_is_kept(by: str, error: Exception) -> None:
    """Nothing is in doubt of what only reads, so its own words count; and so do the two words."""
    options = READING[0] if isinstance(error, NotFound) else {}
    result = running(cut_off(raising_when_stopped(True, error, **options), by, LATE))
    assert result.status == (
        "cancelled" if isinstance(error, Cancelled) and by != "deadline" else "error"
    )


def test_a_sync_tool_that_heeds_its_token_by_raising_is_in_doubt() -> None:
    """Run in its place, without a deadline, it was asked to stop all the same."""
    token = CancellationToken()

    @tool_fn
    def heeds(ctx: ToolContext) -> None:
        """Stop half way."""
        token.cancel("enough.")
        raise OSError

    call = call_to(heeds)
    context = ToolContext.for_call(call, cancellation=token)
    assert result_of(execute_sync(call, context)).status == "indeterminate"


@over("is_async", [True, False])
@over("how", ["raised", "deadline", "token", "owner"])
@over("options", [*DOUBTFUL, *READING])
def test_a_tool_may_say_that_nobody_knows(is_async: bool, how: str, options: Options) -> None:
    """`OutcomeUnknown` is `indeterminate` with its text, whatever is declared, also when it is
    raised on being stopped, and as one part of a group.
    """
    for error in (
        OutcomeUnknown("the bank is silent"),
        ExceptionGroup("of a task group", [OSError(), OutcomeUnknown("the bank is silent")]),
    ):
        if how == "raised":
            result = saying(error, **options)
        else:
            result = running(cut_off(raising_when_stopped(is_async, error, **options), how, LATE))
        assert (result.status, result.code) == ("indeterminate", "outcome_unknown")
        assert result.model_text == "[outcome_unknown] Outcome unknown: the bank is silent"


def saying(error: Exception, **options: Any) -> ToolResult:
    @tool_fn(**options)  # type: ignore[untyped-decorator]
    def speaks() -> None:
        """Say what is known."""
        raise error

    return result_of(execute_sync(call_to(speaks)))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TimedOut("too slow"), "error"),
        (Cancelled("as asked"), "cancelled"),
        (TimedOut("cut off.", is_in_doubt=True), "indeterminate"),
    ],
)
def test_what_a_tool_raises_is_its_own_word(error: Exception, status: str) -> None:
    """A tool that says that it stopped is believed; a deadline of the library is no such word."""

    @tool_fn
    def careful() -> None:
        """Stop in good order."""
        raise error

    result = result_of(execute_sync(call_to(careful)))
    assert result.status == status
    if status == "indeterminate":
        assert result.model_text == (
            "[timed_out] Outcome unknown: cut off. It may have had its effects."
        )


@over("options", [*DOUBTFUL, *READING])
def test_a_doubt_from_within_is_passed_on(options: Options) -> None:
    """A tool that lets the `TimedOut` of a call within it through is in doubt, unless it reads."""
    result = saying(TimedOut("cut off.", is_in_doubt=True), **options)
    assert result.status == ("error" if options in READING else "indeterminate")


# The deadline of a call that the user runs.


@over("is_async", [True, False])
@over("how", ["call", "invoke"])
def test_a_declared_deadline_holds_where_the_user_runs_the_call(is_async: bool, how: str) -> None:
    """It raises `TimedOut` in doubt, and the call stays running for the user to answer."""
    call, go = made(is_async, timeout=SOON)
    with pytest.raises(TimedOut, match=r"did not finish within 0\.01 seconds") as caught:
        asyncio.run(getattr(call, how)())
    go.set()
    assert caught.value.is_in_doubt
    assert call.status is CallStatus.RUNNING
    with pytest.raises(LifecycleError):
        asyncio.run(call.call())
    assert call.indeterminate(caught.value.reason, code=caught.value.code).code == "timed_out"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_timeout_of_the_tools_own_comes_out_unchanged(is_async: bool) -> None:
    """What the tool raises is its own, also where it is a `TimeoutError` at its deadline."""
    own = TimeoutError("mine")
    if is_async:

        @tool_fn(timeout=SOON)
        async def late() -> None:
            """Raise what the deadline would."""
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            raise own

        call = call_to(late)
    else:

        @tool_fn(timeout=LATE)
        def early() -> None:
            """Raise what the deadline would."""
            raise own

        call = call_to(early)
    with pytest.raises(TimeoutError) as caught:
        asyncio.run(call.call())
    assert caught.value is own


@pytest.mark.parametrize("is_async", [True, False])
def test_a_call_in_time_is_answered(is_async: bool) -> None:
    """A deadline that does not pass changes nothing, by `call` and by `invoke`."""
    if is_async:

        @tool_fn(timeout=LATE)
        async def quick() -> int:
            """Be quick."""
            return 7

        call = call_to(quick)
    else:

        @tool_fn(timeout=LATE)
        def swift() -> int:
            """Be quick."""
            return 7

        call = call_to(swift)
    assert asyncio.run(call.call()).output == 7
    assert asyncio.run(call.retry().invoke()) == 7


# What is no exception.


class Fatal(BaseException):
    pass


@over("kind", [KeyboardInterrupt, SystemExit, Fatal])
@over("is_async", [True, False])
def test_an_interrupt_keeps_what_the_siblings_came_to(
    kind: type[BaseException], is_async: bool
) -> None:
    """What finished is kept, what runs is cut off, and what waits is not started."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n == 1:
            await asyncio.Event().wait()
        if n == 2:
            await settled()
            raise kind("stop")
        return n

    def act_sync(n: int) -> int:
        if n == 1:
            raise kind("stop")
        return n

    def work() -> object:
        if is_async:
            return running(execute_all(calls_of(4), skipped={"act": act}, limit=3))
        sync = calls_of(3, Tools.doing_sync)
        return running(execute_all(sync, skipped={"act": act_sync}, limit=1))

    expected = ["success", "indeterminate", "cancelled"]
    if is_async:
        # The last one starts when the first has ended.
        expected = ["success", "indeterminate", "indeterminate", "success"]
    with pytest.raises(kind) as caught:
        work()
    assert statuses(outcomes_of(caught.value)) == expected


def test_an_interrupt_of_one_call_carries_its_outcome() -> None:
    """A single run that is interrupted says in the exception that its outcome is unknown."""

    async def act(n: int, ctx: ToolContext) -> int:
        raise Fatal

    call = call_of()
    with pytest.raises(Fatal) as caught:
        running(execute(call, skipped={"act": act}))
    (outcome,) = outcomes_of(caught.value)
    assert "Fatal ended it. It may have had its effects." in result_of(outcome).model_text


def test_a_keyboard_interrupt_between_async_calls_keeps_results() -> None:
    """Ctrl-C while calls run: what finished is found in the `KeyboardInterrupt`."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return n

    with pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(execute_all(calls_of(2), skipped={"act": act}))
    assert statuses(outcomes_of(caught.value)) == ["success", "indeterminate"]


@pytest.mark.parametrize("limit", [1, 2])
def test_sync_siblings_of_an_interrupt_are_kept(limit: int) -> None:
    """One after the other and in threads: what finished is kept, what waits is not started."""
    first = threading.Event()

    def act(n: int, ctx: ToolContext) -> int:
        if n == 0:
            first.set()
            return n
        first.wait(LATE)
        raise Fatal

    calls = calls_of(4, Tools.doing_hearing)
    with pytest.raises(Fatal) as caught:
        execute_all_sync(calls, skipped={"act": act}, limit=limit)
    outcomes = outcomes_of(caught.value)
    assert statuses(outcomes)[:2] == ["success", "indeterminate"]
    assert statuses(outcomes)[3] == "cancelled"


def test_a_keyboard_interrupt_between_sync_calls_keeps_results() -> None:
    """An interrupt that comes between two calls loses none, and starts none."""
    seen: list[int] = []

    def around(call: AnyToolCall) -> Any:
        if input_of(call).n == 1:
            raise KeyboardInterrupt
        return opened()

    class opened:
        def __enter__(self) -> Callable[[object], None]:
            return lambda outcome: seen.append(1)

        def __exit__(self, *error: object) -> None: ...

    calls = calls_of(3, Tools.doing_sync)
    with pytest.raises(KeyboardInterrupt) as caught:
        execute_all_sync(calls, skipped={"act": lambda n: n}, around=around)
    assert statuses(outcomes_of(caught.value)) == ["success", "cancelled", "cancelled"]
    assert [call.status for call in calls[1:]] == [CallStatus.NEW, CallStatus.NEW]
    assert seen == [1]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_call_that_was_answered_meanwhile_loses_no_sibling(is_async: bool) -> None:
    """The `LifecycleError` of one call carries what the others came to."""
    selector = Tools.doing if is_async else Tools.doing_sync
    calls = calls_of(2, selector)

    async def act(n: int, ctx: ToolContext) -> int:
        return act_sync(n)

    def act_sync(n: int) -> int:
        if n == 1:
            calls[1].reject("no longer wanted")
        return n

    def work() -> object:
        if is_async:
            return running(execute_all(calls, skipped={"act": act}))
        return execute_all_sync(calls, skipped={"act": act_sync})

    with pytest.raises(LifecycleError) as caught:
        work()
    assert statuses(outcomes_of(caught.value)) == ["success", "indeterminate"]
