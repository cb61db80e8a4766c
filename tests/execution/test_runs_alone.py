"""The laws of runs without a token: they take one task each, and end as all others do."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lutum_py import CallStatus, SuspendTicket, ToolResult
from lutum_py.context import ToolSuspended
from lutum_py.errors import Cancelled, LifecycleError, TimedOut
from lutum_py.execution import Outcome, execute, execute_all, outcomes_of, run
from tests.cases import over

from .running import LATE, SOON, Stubborn, Tools, calls_of, plan_of, running, settled, until

Work = Callable[[], Awaitable[object]]


class Fatal(BaseException):
    """No `Exception`."""


async def hang() -> object:
    await asyncio.Event().wait()
    return 1


async def late() -> object:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return 2
    return 3


async def saying() -> object:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise Cancelled("as asked") from None
    return 3


async def breaking() -> object:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        raise ValueError("broken") from None
    return 3


async def fatal_in_the_end() -> object:
    try:
        await asyncio.Event().wait()
    finally:
        raise Fatal
    return 3


async def cancelling_itself() -> object:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return 3


def raising(error: Exception) -> Work:
    async def work() -> object:
        raise error

    return work


async def one() -> object:
    return 1


async def text() -> object:
    return "no number"


ENDINGS: dict[str, Work] = {
    "returns": one,
    "returns what does not fit": text,
    "raises": raising(ValueError("no")),
    "raises a group": raising(ExceptionGroup("two", [ValueError("a"), ValueError("b")])),
    "times out": raising(TimedOut("took too long", True)),
    "cancels": raising(Cancelled("enough")),
    "cancels itself": cancelling_itself,
}
CUT_OFF: dict[str, Work] = {
    "hangs": hang,
    "returns late": late,
    "says that it was cancelled": saying,
    "breaks": breaking,
}


def said(outcomes: tuple[Outcome, ...] | list[Outcome]) -> list[Any]:
    """What is known of each outcome but the id."""
    return [
        (each.status, each.code, each.model_text) if isinstance(each, ToolResult) else "suspended"
        for each in outcomes
    ]


def acting(work: Work) -> Any:
    async def act(n: int) -> object:
        return await work()

    return {"act": act}


async def together(by: str, count: int, **given: Any) -> list[Outcome]:
    """Run calls in one batch: from a list, or of a plan, which keeps what they came to."""
    if by == "list":
        return await execute_all(calls_of(count, Tools.doing_alone), **given)
    plan = plan_of(count, Tools.doing_alone)
    told: list[Outcome] | None = None
    try:
        await run(plan, **given)
    except BaseException as error:
        told = list(outcomes_of(error))
        raise
    finally:
        kept: list[Outcome] = [*plan.finished, *plan.suspended]
        assert told in (None, kept)
        assert plan.pending == ()
        plan.discard()
    return kept


BATCH = pytest.mark.parametrize("by", ["list", "plan"])


async def stopped(task: asyncio.Task[Any]) -> list[Any]:
    """What the calls of a task came to that is cancelled once all of them wait."""
    await settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return said(outcomes_of(caught.value))


@BATCH
@over("ending", ENDINGS)
def test_a_run_ends_in_a_batch_as_it_does_by_itself(ending: str, by: str) -> None:
    """However a tool ends, a batch says the same of it as `execute`."""

    async def main() -> None:
        given = acting(ENDINGS[ending])
        (call,) = calls_of(1, Tools.doing_alone)
        alone = await execute(call, skipped=given)
        outcomes = await together(by, 3, skipped=given)
        assert said(outcomes) == said([alone]) * 3

    running(main())


@BATCH
def test_a_run_that_cancels_its_task_and_returns_has_returned(by: str) -> None:
    """What such a tool gave is known, and so is what the others came to."""

    async def act(n: int) -> object:
        task = asyncio.current_task()
        assert task is not None
        if n == 1:
            task.cancel()
        return n

    async def main() -> None:
        outcomes = await together(by, 3, skipped={"act": act})
        assert [each[0] for each in said(outcomes)] == ["success"] * 3

    running(main())


@BATCH
def test_a_run_suspends_itself_in_a_batch(by: str) -> None:
    """A tool that asks for a decision waits for it."""

    async def main() -> None:
        given = acting(raising(ToolSuspended(SuspendTicket())))
        outcomes = await together(by, 2, skipped=given)
        assert said(outcomes) == ["suspended"] * 2

    running(main())


@BATCH
@over("ending", CUT_OFF)
def test_a_deadline_ends_a_run_in_a_batch_as_it_does_by_itself(ending: str, by: str) -> None:
    """Whatever a tool does when its time is up, a batch says the same of it as `execute`."""

    async def main() -> None:
        given = acting(CUT_OFF[ending])
        (call,) = calls_of(1, Tools.doing_alone)
        alone = await execute(call, skipped=given, default_timeout=SOON)
        outcomes = await together(by, 3, skipped=given, default_timeout=SOON)
        assert said(outcomes) == said([alone]) * 3

    running(main())


@BATCH
@over("ending", [*CUT_OFF, "breaks down"])
@over("timeout", [None, LATE])
def test_a_cancellation_ends_a_run_in_a_batch_as_it_does_by_itself(
    ending: str, timeout: float | None, by: str
) -> None:
    """Whatever a tool does when its program is cancelled, a batch keeps what `execute` keeps."""

    async def main() -> None:
        given: Any = {
            "skipped": acting({**CUT_OFF, "breaks down": fatal_in_the_end}[ending]),
            "default_timeout": timeout,
        }
        (call,) = calls_of(1, Tools.doing_alone)
        alone = await stopped(asyncio.create_task(execute(call, **given)))
        outcomes = await stopped(asyncio.create_task(together(by, 3, **given)))
        assert outcomes == alone * 3

    running(main())


@BATCH
@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_a_stubborn_run_is_left_behind_at_its_deadline(error: Exception | None, by: str) -> None:
    """The batch goes on after the grace; what the tool comes to later is nobody's affair."""

    async def main() -> None:
        work = Stubborn(error)
        given = acting(lambda: work(1, None))  # type: ignore[arg-type]
        outcomes = await together(by, 2, skipped=given, default_timeout=SOON, grace=SOON)
        assert [each[:2] for each in said(outcomes)] == [("indeterminate", "timed_out")] * 2
        assert work.requests == 2
        work.release.set()
        await until(lambda: work.ended)

    running(main())


@BATCH
@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_a_stubborn_run_does_not_hold_up_a_cancellation(error: Exception | None, by: str) -> None:
    """A cancelled batch ends after the grace, however often it is cancelled."""

    async def main() -> None:
        work = Stubborn(error)
        given = acting(lambda: work(1, None))  # type: ignore[arg-type]
        task = asyncio.create_task(together(by, 2, skipped=given, grace=SOON))
        await settled()
        task.cancel()
        await settled()
        assert [each[:2] for each in await stopped(task)] == [("indeterminate", "cancelled")] * 2
        work.release.set()
        await until(lambda: work.ended)

    running(main())


@BATCH
def test_a_stubborn_run_does_not_hold_up_an_interrupt(by: str) -> None:
    """Where one tool breaks down, a batch ends after the grace of the others."""

    async def main() -> None:
        work = Stubborn()

        async def act(n: int) -> object:
            if n == 1:
                await settled()
                raise Fatal
            return await work(n, None)  # type: ignore[arg-type]

        with pytest.raises(Fatal) as caught:
            await together(by, 3, skipped={"act": act}, grace=SOON)
        assert [each[0] for each in said(outcomes_of(caught.value))] == ["indeterminate"] * 3
        work.release.set()
        await until(lambda: work.ended)

    running(main())


def test_a_batch_that_winds_up_after_an_interrupt_can_be_cancelled() -> None:
    """A cancellation that comes in the grace after an interrupt comes out, with all outcomes."""

    async def main() -> None:
        release = asyncio.Event()

        async def act(n: int) -> object:
            if n == 1:
                await settled()
                broken.set()
                raise Fatal
            try:
                await asyncio.Event().wait()
            finally:
                await release.wait()
            return n

        broken = asyncio.Event()
        calls = calls_of(2, Tools.doing_alone)
        task = asyncio.create_task(execute_all(calls, skipped={"act": act}, grace=LATE))
        await broken.wait()
        assert [each[0] for each in await stopped(task)] == ["indeterminate"] * 2

    running(main())


def test_a_run_that_is_dropped_says_nothing() -> None:
    """Where its coroutine is closed, as a loop that goes away does, the call stays as it was."""
    started: list[int] = []

    async def act(n: int) -> object:
        started.append(n)
        await asyncio.Event().wait()
        return n

    calls = calls_of(2, Tools.doing_alone)
    loop = asyncio.new_event_loop()
    said: list[str] = []
    loop.set_exception_handler(lambda _, what: said.append(what["message"]))
    task = loop.create_task(execute_all(calls, skipped={"act": act}))
    loop.run_until_complete(until(lambda: len(started) == 2))
    loop.close()
    del task
    gc.collect()
    assert [call.status for call in calls] == [CallStatus.RUNNING] * 2
    assert set(said) == {"Task was destroyed but it is pending!"}


def test_a_stubborn_run_that_breaks_down_late_breaks_nothing() -> None:
    """An interrupt of a tool that was left behind is not raised anywhere."""

    async def main() -> None:
        release = asyncio.Event()
        ended: list[int] = []

        async def act(n: int) -> object:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            ended.append(n)
            raise Fatal

        calls = calls_of(2, Tools.doing_alone)
        outcomes = await execute_all(calls, skipped={"act": act}, default_timeout=SOON, grace=SOON)
        assert [each[0] for each in said(outcomes)] == ["indeterminate"] * 2
        release.set()
        await until(lambda: len(ended) == 2)

    running(main())


@BATCH
def test_a_run_that_nothing_reaches_takes_one_task(by: str) -> None:
    """So many calls at once are so many tasks, with a deadline or without."""

    async def main() -> None:
        for timeout in (None, LATE):
            counts: set[int] = set()
            before = len(asyncio.all_tasks())

            async def act(n: int, before: int = before, counts: set[int] = counts) -> object:
                await asyncio.sleep(0)
                counts.add(len(asyncio.all_tasks()) - before)
                return n

            await together(by, 5, skipped={"act": act}, default_timeout=timeout)
            assert max(counts) == 5

    running(main())


def test_a_round_that_is_closed_meanwhile_is_an_error_and_no_hold_up() -> None:
    """A run that is left behind ends a plan that takes nothing any more, and says why."""

    async def main() -> None:
        work = Stubborn()
        plan = plan_of(2, Tools.doing_alone)

        async def act(n: int) -> object:
            if n == 1:  # the last: none is started after that
                plan.discard()
            return await work(n, None)  # type: ignore[arg-type]

        with pytest.raises(LifecycleError, match="as `late`") as caught:
            await run(plan, skipped={"act": act}, default_timeout=SOON, grace=SOON)
        assert [each[0] for each in said(outcomes_of(caught.value))] == ["indeterminate"] * 2
        work.release.set()
        await until(lambda: work.ended)

    running(main())


def test_a_run_that_is_left_behind_gives_its_turn_away() -> None:
    """Under a limit the next call starts when one is left behind, and never more than allowed."""

    async def main() -> None:
        work = Stubborn()
        running_now: list[int] = []
        most: list[int] = []
        late: list[bool] = []
        asyncio.get_running_loop().call_later(1, work.release.set)

        async def act(n: int) -> object:
            if n < 2:
                return await work(n, None)  # type: ignore[arg-type]
            running_now.append(n)
            most.append(len(running_now))
            if n == 2:
                late.append(work.ended)
                work.release.set()  # what was left behind ends, and its turn is not given twice
            await settled()
            running_now.remove(n)
            return n

        outcomes = await execute_all(
            calls_of(7, Tools.doing_alone),
            skipped={"act": act},
            limit=2,
            default_timeout=0.2,
            grace=SOON,
        )
        assert [each[0] for each in said(outcomes)] == ["indeterminate"] * 2 + ["success"] * 5
        assert max(most) == 2
        assert late == [False]

    running(main())


def test_a_deadline_does_not_disturb_a_run_that_is_stopped() -> None:
    """A tool that is cancelled with its program has the grace to clean up, and is asked once."""

    async def main() -> None:
        requests: list[int] = []

        async def act(n: int) -> object:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                requests.append(n)
                try:
                    await asyncio.sleep(1.2)
                except asyncio.CancelledError:
                    requests.append(n)
            return n

        calls = calls_of(2, Tools.doing_alone)
        given: Any = {"skipped": {"act": act}, "default_timeout": 1, "grace": LATE}
        task = asyncio.create_task(execute_all(calls, **given))
        assert [each[0] for each in await stopped(task)] == ["success"] * 2
        assert sorted(requests) == [0, 1]

    running(main())


class EndedTask(asyncio.Future[Any]):
    """What stands for a task that has ended, and may be named as one."""

    def set_name(self, name: object) -> None:
        self.name = str(name)


def at_once(loop: asyncio.AbstractEventLoop, work: Any, **_: Any) -> Any:
    """Make a task that begins as it is made, as the eager ones of Python 3.12, and ends so, too."""
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    task = EndedTask(loop=loop)
    task.set_result(ended.value.value)
    return task


@pytest.mark.parametrize("limit", [None, 1])
def test_no_call_is_begun_after_an_interrupt_by_a_task_that_begins_at_once(
    limit: int | None,
) -> None:
    """Where tasks begin as they are made, the calls after one that raises an interrupt stay new."""
    started: list[int] = []

    async def act(n: int) -> object:
        started.append(n)
        raise Fatal

    async def main() -> None:
        plan = plan_of(3, Tools.doing_alone)
        asyncio.get_running_loop().set_task_factory(at_once)
        with pytest.raises(Fatal) as caught:
            await run(plan, skipped={"act": act}, limit=limit)
        assert started == [0]
        outcomes = outcomes_of(caught.value)
        assert [each[0] for each in said(outcomes)] == ["indeterminate", "cancelled", "cancelled"]
        assert [call.status for call in plan.pending] == [CallStatus.NEW] * 2
        plan.discard()

    running(main())
