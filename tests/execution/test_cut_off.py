"""The laws of tools that are cut off: nobody knows what they did, unless that does no harm."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    CallStatus,
    CancellationToken,
    ToolCapabilities,
    ToolContext,
    ToolMetadata,
    tool_fn,
)
from lutum_py.errors import Cancelled, LifecycleError, TimedOut
from lutum_py.execution import (
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
)
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
]
HARMLESS: list[Options] = [
    {"idempotent": True},
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


@over("is_async", [True, False])
@over("by", ["deadline", "token"])
@over("options", [*DOUBTFUL, *HARMLESS])
def test_what_is_cut_off_is_in_doubt_unless_that_is_harmless(
    is_async: bool, by: str, options: Options
) -> None:
    """Deadline and token, async and sync alike: `indeterminate`, or what it was where harmless."""
    call, go = made(is_async, **options)
    token = CancellationToken()

    async def main() -> Any:
        if by == "deadline":
            return await execute(call, default_timeout=SOON, grace=0)
        task = asyncio.create_task(
            execute(call, ToolContext.for_call(call, cancellation=token), grace=0)
        )
        await settled()
        token.cancel("the user left.")
        return await task

    result = result_of(running(main()))
    go.set()
    harmless = "error" if by == "deadline" else "cancelled"
    assert result.status == (harmless if options in HARMLESS else "indeterminate")
    assert result.code == ("timed_out" if by == "deadline" else "cancelled")
    assert call.status.is_terminal


@pytest.mark.parametrize("options", [{}, {"idempotent": True}])
def test_a_sync_run_that_is_cut_off_is_judged_alike(options: Options) -> None:
    """`execute_sync` says the same of a thread that it leaves behind."""
    call, go = made(False, **options)
    result = result_of(execute_sync(call, default_timeout=SOON, grace=0))
    go.set()
    assert (result.status, result.code) == ("error" if options else "indeterminate", "timed_out")


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


def test_an_idempotent_tool_that_passes_a_doubt_on_has_failed() -> None:
    """A doubt from within is no matter where a second run does no harm."""

    @tool_fn(idempotent=True)
    def remote() -> None:
        """Ask somebody else."""
        raise TimedOut("cut off.", is_in_doubt=True)

    assert result_of(execute_sync(call_to(remote))).status == "error"


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
    assert asyncio.run(call.again().invoke()) == 7


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
