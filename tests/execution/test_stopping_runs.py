"""The laws of runs that are stopped by a deadline or a token."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from lutum_py import CallStatus, ToolContext, ToolMetadata, ToolResult, Toolset, tool, tool_fn
from lutum_py.context import CancellationToken
from lutum_py.errors import TimedOut
from lutum_py.execution import execute, execute_all
from tests.cases import over
from tests.execution.running import (
    LATE,
    SOON,
    Stubborn,
    Tools,
    call_of,
    calls_of,
    hang,
    result_of,
    returning_late,
    running,
    seen,
    settled,
    statuses,
    until,
    with_token,
)

# Deadlines.


@tool_fn(skip=("act",), timeout=SOON)
async def hurried(n: int, act: Any) -> int:
    return await act(n, None)  # type: ignore[no-any-return]


class Hurried(Toolset):
    tool = tool(hurried)


@pytest.mark.parametrize("default", [None, LATE])
def test_a_deadline_cancels_the_tool(default: float | None) -> None:
    """A tool that passes its own deadline is cut off, and nobody knows what it did."""
    cancelled: list[bool] = []

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return n

    call = Hurried.parse_tool_call(ToolMetadata(id="c1", name="hurried", arguments='{"n": 1}'))
    result = result_of(running(execute(call, skipped={"act": act}, default_timeout=default)))
    assert cancelled == [True]
    assert (result.status, result.code) == ("indeterminate", "timed_out")
    assert result.message == (
        "[timed_out] Outcome unknown: the tool did not finish within 0.01 seconds and was "
        "cancelled. It may have had its effects."
    )
    assert call.status is CallStatus.FAILED


def test_a_default_deadline_holds_where_the_tool_has_none() -> None:
    """The default deadline stops each tool that is late, and none that is in time."""

    async def act(n: int, ctx: ToolContext) -> int:
        return await hang(n, ctx) if n else n

    outcomes = running(execute_all(calls_of(3), skipped={"act": act}, default_timeout=SOON))
    assert statuses(outcomes) == ["success", "indeterminate", "indeterminate"]
    assert [result_of(each).code for each in outcomes] == [None, "timed_out", "timed_out"]


def test_a_deadline_can_be_raised() -> None:
    """With `raise_errors`, a deadline that passes is a `TimedOut`."""
    with pytest.raises(TimedOut, match="did not finish within"):
        running(execute(call_of(), skipped={"act": hang}, default_timeout=SOON, raise_errors=True))


def test_a_deadline_of_one_call_does_not_reach_the_others() -> None:
    """The deadline of a call cancels the token that its tool sees, and no other."""
    token = CancellationToken()
    reasons: list[str | None] = []

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await ctx.cancellation.cancelled()
        finally:
            reasons.append(ctx.cancellation.reason)
        return n

    call = call_of()
    running(execute(call, with_token(token, call), skipped={"act": act}, default_timeout=SOON))
    assert reasons == ["the deadline has passed"]
    assert not token.is_cancelled


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_heeds_its_deadline_has_timed_out(is_async: bool) -> None:
    """A tool that stops at its deadline by itself has timed out, also in a thread."""

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ctx.cancellation.raise_if_cancelled()
        return n

    def act_hearing(n: int, ctx: ToolContext) -> int:
        ctx.cancellation.wait(LATE)
        ctx.cancellation.raise_if_cancelled()
        return n

    call = call_of(Tools.doing if is_async else Tools.doing_hearing)
    given = {"act": act if is_async else act_hearing}
    result = result_of(running(execute(call, skipped=given, default_timeout=SOON)))
    assert (result.status, result.code) == ("error", "timed_out")


def test_a_result_that_is_late_is_kept() -> None:
    """What a tool returns while it is being stopped is its result."""
    outcome = running(execute(call_of(n=5), skipped={"act": returning_late}, default_timeout=SOON))
    assert seen([outcome]) == [("c1", "success", 5)]

    def hearing(n: int, ctx: ToolContext) -> int:
        ctx.cancellation.wait(LATE)
        return n

    call = call_of(Tools.doing_hearing, 6)
    outcome = running(execute(call, skipped={"act": hearing}, default_timeout=SOON))
    assert seen([outcome]) == [("c1", "success", 6)]


@over("kind", [None, ValueError])
@over("grace", [0, SOON])
def test_a_tool_that_goes_on_is_of_unknown_outcome(
    kind: type[Exception] | None, grace: float
) -> None:
    """A tool that swallows its cancellation is `indeterminate` after the grace, and forgotten."""

    async def main() -> None:
        act = Stubborn(None if kind is None else kind("late"))
        call = call_of()
        result = result_of(
            await execute(call, skipped={"act": act}, default_timeout=SOON, grace=grace)
        )
        assert (result.status, result.code) == ("indeterminate", "timed_out")
        assert "did not finish within 0.01 seconds and cannot be stopped" in result.model_text
        assert call.status is CallStatus.FAILED
        assert not act.ended
        act.release.set()
        watched = weakref.ref(act)
        del act
        await settled()
        gc.collect()
        assert watched() is None

    running(main())


def test_a_tool_that_goes_on_may_be_cancelled_later() -> None:
    """A tool that was left behind and gives in later is of no interest any more."""

    async def main() -> None:
        tasks: list[asyncio.Task[Any] | None] = []
        requests: list[int] = []

        async def act(n: int, ctx: ToolContext) -> int:
            tasks.append(asyncio.current_task())
            for _ in range(2):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    requests.append(1)
                    if len(requests) == 2:
                        raise
            return n

        outcome = await execute(call_of(), skipped={"act": act}, default_timeout=SOON, grace=SOON)
        assert result_of(outcome).status == "indeterminate"
        (task,) = tasks
        assert task is not None
        task.cancel()
        await until(task.cancelled)

    running(main())


def test_a_tool_ends_its_children() -> None:
    """Tasks that a tool started in a task group have ended before its run has."""
    ended: list[int] = []

    async def child(n: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(n)

    async def act(n: int, ctx: ToolContext) -> int:
        async with asyncio.TaskGroup() as group:
            for each in range(3):
                group.create_task(child(each))
        return n

    async def main() -> None:
        outcome = await execute(call_of(), skipped={"act": act}, default_timeout=SOON)
        assert result_of(outcome).code == "timed_out"
        assert sorted(ended) == [0, 1, 2]

    running(main())


def test_children_that_are_not_awaited_are_not_waited_for() -> None:
    """A task that a tool leaves behind is its own business, and does not change its result."""

    async def main() -> None:
        children: list[asyncio.Task[int]] = []

        async def act(n: int, ctx: ToolContext) -> int:
            children.append(asyncio.create_task(hang(n, ctx)))
            return n

        assert statuses([await execute(call_of(), skipped={"act": act})]) == ["success"]
        assert not children[0].done()
        children[0].cancel()
        await settled()

    running(main())


# The token.


def test_a_call_that_was_cancelled_before_its_start_is_not_run() -> None:
    """A token that is cancelled already keeps its call from being started."""
    token = CancellationToken()
    token.cancel("the user left.")
    ran: list[int] = []

    async def act(n: int, ctx: ToolContext) -> int:
        ran.append(n)
        return n

    call = call_of()
    result = result_of(running(execute(call, with_token(token, call), skipped={"act": act})))
    assert ran == []
    assert (result.status, result.code) == ("cancelled", "cancelled")
    text = "[cancelled] Cancelled: not executed, because the user left."
    assert result.message == text
    assert call.status is CallStatus.CANCELLED


@pytest.mark.parametrize("reason", ["the user left.", None])
def test_a_token_stops_a_running_tool(reason: str | None) -> None:
    """A tool that waits is cut off when its token is cancelled, and the result says why."""

    async def main() -> ToolResult:
        token = CancellationToken()

        async def act(n: int, ctx: ToolContext) -> int:
            token.cancel(reason)
            await asyncio.Event().wait()
            return n

        call = call_of()
        return result_of(await execute(call, with_token(token, call), skipped={"act": act}))

    result = running(main())
    assert (result.status, result.code) == ("indeterminate", "cancelled")
    because = "" if reason is None else ": the user left"
    assert result.message == (
        f"[cancelled] Outcome unknown: the tool was asked to stop and cut off{because}. "
        "It may have had its effects."
    )


def test_a_token_stops_all_calls_that_share_it() -> None:
    """One token stops what runs and keeps from starting what waits; what has ended is kept."""

    async def main() -> None:
        token = CancellationToken()

        async def act(n: int, ctx: ToolContext) -> int:
            if n == 1:
                token.cancel("enough.")
            return await hang(n, ctx) if n else n

        outcomes = await execute_all(
            calls_of(4),
            context=lambda call: with_token(token, call),
            skipped={"act": act},
            limit=1,
        )
        assert statuses(outcomes) == ["success", "indeterminate", "cancelled", "cancelled"]
        assert result_of(outcomes[2]).message == (
            "[cancelled] Cancelled: not executed, because enough."
        )

    running(main())
