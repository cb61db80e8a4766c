"""The laws of runs that are cut off because the task that owns them is cancelled."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from lutum_py import (
    Session,
    SuspendedCall,
    SuspendTicket,
    ToolContext,
    ToolResult,
)
from lutum_py.errors import Cancelled
from lutum_py.execution import (
    GRACE,
    ExecutionCancelled,
    execute,
    execute_all,
    outcomes_of,
)
from tests.execution.running import (
    LATE,
    SOON,
    Act,
    Stubborn,
    call_of,
    calls_of,
    hang,
    plan_of,
    result_of,
    running,
    seen,
    settled,
    statuses,
    until,
)

# The task that owns the runs.


async def some(n: int, ctx: ToolContext) -> int:
    """End where the number is even, and hang where it is odd."""
    return await hang(n, ctx) if n % 2 else n


async def cancelled_task(task: asyncio.Task[Any]) -> asyncio.CancelledError:
    """Let a task come as far as it can, cancel it, and give what it raises."""
    await settled()
    task.cancel("the user's own words")
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


def test_cancellation_keeps_what_finished() -> None:
    """Of a cancelled batch, each call has its outcome: kept, unknown, or not executed, in order."""

    async def main() -> None:
        plan = plan_of(5)
        task = asyncio.create_task(execute_all(plan.pending, skipped={"act": some}, limit=2))
        stop = await cancelled_task(task)
        outcomes = outcomes_of(stop)
        assert [(result_of(o).id, result_of(o).status) for o in outcomes] == [
            ("c0", "success"),
            ("c1", "indeterminate"),
            ("c2", "success"),
            ("c3", "indeterminate"),
            ("c4", "cancelled"),
        ]
        assert [call.status.value for call in plan.pending] == [
            "succeeded",
            "failed",
            "succeeded",
            "failed",
            "cancelled",
        ]
        session = Session()
        plan.abort(session, "The user left.", [result_of(outcome) for outcome in outcomes])
        assert statuses([i for i in session.transcript if isinstance(i, ToolResult)]) == [
            "success",
            "indeterminate",
            "success",
            "indeterminate",
            "cancelled",
        ]

    running(main())


def test_the_same_cancellation_goes_on() -> None:
    """What comes out is a plain `CancelledError` with the words of whoever cancelled."""

    async def main() -> None:
        for work in (
            execute(call_of(), skipped={"act": hang}),
            execute_all(calls_of(2), skipped={"act": hang}),
        ):
            stop = await cancelled_task(asyncio.create_task(work))
            assert type(stop) is asyncio.CancelledError
            assert stop.args == ("the user's own words",)
            assert isinstance(stop.__cause__, ExecutionCancelled)
            again = pickle.loads(pickle.dumps(stop.__cause__))
            assert again.outcomes == outcomes_of(stop)

    running(main())


def test_other_exceptions_have_no_outcomes() -> None:
    """Where no run was cut off, there are no outcomes to find."""
    error = ValueError("bad")
    error.__context__ = KeyError("worse")
    error.__context__.__context__ = error
    assert outcomes_of(error) == ()


def test_outcomes_survive_a_timeout_around_the_run() -> None:
    """Under `asyncio.timeout` and `wait_for` a late batch is a `TimeoutError` with its outcomes."""

    async def within_timeout() -> None:
        async with asyncio.timeout(SOON):
            await execute_all(calls_of(2), skipped={"act": some})

    async def main() -> None:
        for work in (
            within_timeout(),
            asyncio.wait_for(execute_all(calls_of(2), skipped={"act": some}), SOON),
        ):
            with pytest.raises(TimeoutError) as caught:
                await work
            assert statuses(outcomes_of(caught.value)) == ["success", "indeterminate"]
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    running(main())


def test_a_plan_can_be_aborted_after_a_timeout() -> None:
    """What a timeout left of a round goes into the transcript as it is."""

    async def main() -> None:
        plan = plan_of(2)
        session = Session()
        try:
            async with asyncio.timeout(SOON):
                await execute_all(plan.pending, skipped={"act": some})
        except TimeoutError as error:
            results = [result_of(outcome) for outcome in outcomes_of(error)]
            plan.abort(session, "The time was up.", results)
        assert len(session.transcript) == 3

    running(main())


def test_a_failing_sibling_in_a_task_group_cancels_the_run() -> None:
    """In a task group, the group raises the sibling's error alone, and the outcomes can be had."""
    kept: list[str] = []

    async def fail() -> None:
        await settled()
        raise ValueError("sibling")

    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            try:
                await execute_all(calls_of(2), skipped={"act": some})
            except asyncio.CancelledError as stop:
                kept.extend(statuses(outcomes_of(stop)))
                raise

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            await grouped()
        assert [str(error) for error in caught.value.exceptions] == ["sibling"]

    running(main())
    assert kept == ["success", "indeterminate"]


def test_a_run_in_a_task_group_ends_with_it() -> None:
    """A batch that is a task of a group is cancelled with the group, which ends cleanly."""
    calls = calls_of(2)

    async def grouped() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(execute_all(calls, skipped={"act": some}))
            await settled()
            raise ValueError("body")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            await grouped()
        assert [str(error) for error in caught.value.exceptions] == ["body"]
        assert [call.status.value for call in calls] == ["succeeded", "failed"]

    running(main())


def test_cancelling_again_changes_nothing() -> None:
    """However often a batch is cancelled, each tool has its grace, and the outcomes come."""

    async def main() -> None:
        steps = asyncio.Event()

        async def act(n: int, ctx: ToolContext) -> int:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await steps.wait()
            return n

        for single in (True, False):
            steps.clear()
            work: Any = (
                execute(call_of(n=0, id="c0"), skipped={"act": act}, grace=LATE)
                if single
                else execute_all(calls_of(1), skipped={"act": act}, grace=LATE)
            )
            task: asyncio.Task[Any] = asyncio.create_task(work)
            await settled()
            for _ in range(3):
                task.cancel()
                await settled()
                assert not task.done()
            steps.set()
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert seen(outcomes_of(caught.value)) == [("c0", "success", 0)]

    running(main())


def test_a_stubborn_tool_does_not_hold_up_cancellation() -> None:
    """A cancelled run ends after the grace, whatever its tool does."""

    async def main() -> None:
        act = Stubborn()
        task = asyncio.create_task(execute_all(calls_of(1), skipped={"act": act}, grace=SOON))
        stop = await cancelled_task(task)
        assert statuses(outcomes_of(stop)) == ["indeterminate"]
        assert act.requests == 1
        act.release.set()
        await until(lambda: act.ended)

    running(main())


def test_a_result_that_comes_with_the_cancellation_is_kept() -> None:
    """A tool that finishes in the very step in which its run is cancelled has finished."""

    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []
        go = asyncio.Event()

        async def act(n: int, ctx: ToolContext) -> int:
            await go.wait()
            tasks[0].cancel()
            return n

        tasks.append(asyncio.create_task(execute(call_of(n=8), skipped={"act": act})))
        await settled()
        go.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await tasks[0]
        assert seen(outcomes_of(caught.value)) == [("c1", "success", 8)]

    running(main())


def test_cancellation_during_the_grace_keeps_the_outcome() -> None:
    """A run that is cancelled while its tool winds up after the deadline loses nothing."""

    async def main() -> None:
        started, done = asyncio.Event(), asyncio.Event()

        async def act(n: int, ctx: ToolContext) -> int:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                started.set()
            while not done.is_set():
                try:
                    await done.wait()
                except asyncio.CancelledError:
                    continue
            return n

        task = asyncio.create_task(
            execute_all(calls_of(1), skipped={"act": act}, default_timeout=SOON, grace=LATE)
        )
        await started.wait()
        task.cancel()
        await settled()
        done.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert seen(outcomes_of(caught.value)) == [("c0", "success", 0)]

    running(main())


def test_cancellation_is_stronger_than_raised_errors() -> None:
    """With `raise_errors` too a cancelled run ends by that, and what it cut off is in doubt."""

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while stopping")
        return n

    async def main() -> None:
        for work in (
            execute(call_of(), skipped={"act": act}, raise_errors=True),
            execute_all(calls_of(1), skipped={"act": act}, raise_errors=True),
        ):
            stop = await cancelled_task(asyncio.create_task(work))
            (outcome,) = outcomes_of(stop)
            assert result_of(outcome).status == "indeterminate"

    running(main())


def test_a_call_that_suspended_itself_is_kept_by_a_cancellation() -> None:
    """A suspension is an outcome like any other, and an abort calls it by its name."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n == 0:
            ctx.suspend(SuspendTicket(action="ask"))
        return await hang(n, ctx)

    async def main() -> None:
        plan = plan_of(2)
        stop = await cancelled_task(
            asyncio.create_task(execute_all(plan.pending, skipped={"act": act}))
        )
        waiting, cut_off = outcomes_of(stop)
        assert isinstance(waiting, SuspendedCall)
        plan.suspend(waiting)
        session = Session()
        plan.abort(session, "The user left.", [result_of(cut_off)])
        results = [item for item in session.transcript if isinstance(item, ToolResult)]
        assert statuses([*results]) == ["indeterminate", "indeterminate"]

    running(main())


def test_a_tool_that_says_that_it_was_cancelled_is_believed() -> None:
    """A tool that heeds the end of its owner by `Cancelled` has a cancelled result."""

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Cancelled("rolled back") from None
        return n

    async def main() -> None:
        stop = await cancelled_task(asyncio.create_task(execute(call_of(), skipped={"act": act})))
        (outcome,) = outcomes_of(stop)
        assert result_of(outcome).message == "[cancelled] Cancelled: rolled back"

    running(main())


class Fatal(BaseException):
    pass


def test_a_fatal_end_during_cancellation_does_not_hide_it() -> None:
    """Where a tool breaks down while it is being cancelled, the cancellation still comes out."""

    async def act(n: int, ctx: ToolContext) -> int:
        try:
            await asyncio.Event().wait()
        finally:
            raise Fatal
        return n

    async def main() -> None:
        stop = await cancelled_task(asyncio.create_task(execute(call_of(), skipped={"act": act})))
        (outcome,) = outcomes_of(stop)
        assert result_of(outcome).status == "indeterminate"
        assert "Fatal ended it." in result_of(outcome).model_text

    running(main())


def test_a_batch_that_broke_in_part_can_still_be_cancelled() -> None:
    """A call whose run broke down has an unknown outcome in a batch that is cancelled."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n == 0:
            calls[0].reject("answered by hand")
        return await some(n, ctx)

    async def main() -> None:
        stop = await cancelled_task(asyncio.create_task(execute_all(calls, skipped={"act": act})))
        assert statuses(outcomes_of(stop)) == ["indeterminate", "indeterminate"]

    calls = calls_of(2)
    running(main())


def test_a_stray_cancellation_of_one_call_stays_there() -> None:
    """Where somebody cancels the task of one call of a batch, only that call is cut off."""

    async def main() -> None:
        before = asyncio.all_tasks()
        batch = asyncio.create_task(
            execute_all(calls_of(4), skipped={"act": returning_when(go)}, limit=3)
        )
        await asyncio.sleep(0)
        inner = sorted(asyncio.all_tasks() - before - {batch}, key=number)
        assert len(inner) == 3
        inner[2].cancel()  # before it begins
        await settled()
        inner[0].cancel()
        await settled()
        go.set()
        counted = sorted(statuses(await batch))
        assert counted == ["cancelled", "indeterminate", "success", "success"]

    go = asyncio.Event()
    running(main())


def number(task: asyncio.Task[Any]) -> int:
    """The place of a task in the order in which tasks were made."""
    return int(task.get_name().partition("-")[2])


def returning_when(go: asyncio.Event) -> Act:
    async def act(n: int, ctx: ToolContext) -> int:
        await go.wait()
        return n

    return act


def test_the_grace_is_a_second() -> None:
    """A tool has a second to end, unless one says otherwise."""
    assert GRACE == 1.0
