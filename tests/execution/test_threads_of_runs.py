"""The laws of sync tools that are stopped, and of threads that cannot be."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from lutum_py import CallStatus, ToolContext, ToolResult
from lutum_py.context import CancellationToken
from lutum_py.execution import execute, outcomes_of
from tests.execution.running import (
    LATE,
    SOON,
    Deaf,
    Tools,
    call_of,
    result_of,
    running,
    seen,
    settled,
    until,
    with_token,
)

# Threads that cannot be stopped.


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_a_thread_that_outlives_its_run_is_never_done(is_cut_off: bool) -> None:
    """A sync tool that goes on is `indeterminate` at once, and its late result changes nothing."""
    act = Deaf()
    call = call_of(Tools.doing_sync)

    async def main() -> ToolResult:
        if not is_cut_off:
            outcome = await execute(
                call, skipped={"act": act}, default_timeout=SOON, grace=10 * LATE
            )
        else:
            task = asyncio.create_task(execute(call, skipped={"act": act}, grace=10 * LATE))
            await until(act.started.is_set)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            (outcome,) = outcomes_of(caught.value)
        assert not act.ended.is_set()
        result = result_of(outcome)
        act.release.set()
        await until(act.ended.is_set)
        await settled()
        return result

    result = running(main())
    assert result.status == "indeterminate"
    assert result.code == ("cancelled" if is_cut_off else "timed_out")
    assert call.status is CallStatus.FAILED


def test_a_thread_that_hears_but_goes_on_is_of_unknown_outcome() -> None:
    """A sync tool with a context gets the grace, and is `indeterminate` after it."""
    release, asked = threading.Event(), threading.Event()

    def act(n: int, ctx: ToolContext) -> int:
        ctx.cancellation.wait(LATE)
        asked.set()
        release.wait(LATE)
        return n

    call = call_of(Tools.doing_hearing)
    outcome = running(execute(call, skipped={"act": act}, default_timeout=SOON, grace=SOON))
    assert (result_of(outcome).status, result_of(outcome).code) == ("indeterminate", "timed_out")
    assert asked.wait(LATE)
    release.set()


def test_a_thread_that_finished_just_then_has_finished() -> None:
    """A result that a thread has handed over counts, though the loop has not seen it yet."""
    act = Deaf()
    act.release.set()

    async def main() -> None:
        task = asyncio.create_task(execute(call_of(Tools.doing_sync, 3), skipped={"act": act}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # The loop stands still here, so it cannot have noticed.
        assert act.ended.wait(LATE)
        for thread in threading.enumerate():
            if thread.name == "tool do_sync":
                thread.join(LATE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert seen(outcomes_of(caught.value)) == [("c1", "success", 3)]

    running(main())


def test_what_a_sync_function_gave_to_await_can_be_cancelled() -> None:
    """Where a sync function returned a coroutine, a deadline cancels that."""

    async def later() -> int:
        await asyncio.Event().wait()
        return 1

    call = call_of(Tools.doing_sync)
    given = {"act": lambda n: later()}
    result = result_of(running(execute(call, skipped=given, default_timeout=0.05)))
    assert (result.status, result.code) == ("indeterminate", "timed_out")
    assert "and was cancelled" in result.model_text


SCRIPT = """
import asyncio, logging, threading
from lutum_py import ToolMetadata, Toolset, tool, tool_fn
from lutum_py.execution import execute, execute_sync

@tool_fn
def hang() -> None:
    threading.Event().wait()

@tool_fn
def linger(skip: int = 0) -> int:
    released.wait()
    return 1

class Tools(Toolset):
    hanging = tool(hang)
    lingering = tool(linger)

released = threading.Event()
logging.getLogger("asyncio").setLevel(logging.ERROR)  # a slow machine is no error

def call(name):
    return Tools.parse_tool_call(ToolMetadata(id="c1", name=name, arguments="{}"))

for name in ("hang", "linger"):
    print(asyncio.run(execute(call(name), default_timeout=0.01)).status)
    print(execute_sync(call(name), default_timeout=0.01).status)
released.set()
for thread in threading.enumerate():
    if thread.name == "tool linger":
        thread.join()
print("end")
"""


def test_a_thread_that_hangs_blocks_neither_the_loop_nor_the_program() -> None:
    """A program ends although a tool hangs, and a thread that ends after its loop says nothing."""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.returncode == 0
    assert ended.stdout.split() == [*["indeterminate"] * 4, "end"]


def test_a_sync_tool_heeds_its_token() -> None:
    """A sync tool that looks at its token is cancelled; one that returns anyway has returned."""

    async def main() -> None:
        token = CancellationToken()

        def act(n: int, ctx: ToolContext) -> int:
            token.cancel("enough.")
            ctx.cancellation.wait(LATE)
            if n:
                ctx.cancellation.raise_if_cancelled()
            return n

        for n, status in ((0, "success"), (1, "cancelled")):
            call = call_of(Tools.doing_hearing, n)
            token = CancellationToken()
            outcome = await execute(call, with_token(token, call), skipped={"act": act})
            assert result_of(outcome).status == status

    running(main())


def test_a_token_cannot_stop_a_deaf_thread() -> None:
    """A sync tool without a context cannot heed its token, so nobody knows what it does."""
    act = Deaf()

    async def main() -> ToolResult:
        token = CancellationToken()
        call = call_of(Tools.doing_sync)
        task = asyncio.create_task(execute(call, with_token(token, call), skipped={"act": act}))
        await until(act.started.is_set)
        token.cancel("enough.")
        return result_of(await task)

    result = running(main())
    act.release.set()
    assert (result.status, result.code) == ("indeterminate", "cancelled")
    assert "asked to stop and goes on" in result.model_text
