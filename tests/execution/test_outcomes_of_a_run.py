"""The laws of what belongs to which run: an outcome is that of the run that made it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import AnyToolCall, ToolContext
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
from tests.execution.running import (
    Tools,
    call_of,
    calls_of,
    hang,
    plan_of,
    result_of,
    running,
    settled,
    statuses,
)


def earlier() -> asyncio.CancelledError:
    """What a run raises that was cut off while its call c1 ran."""

    async def main() -> asyncio.CancelledError:
        task = asyncio.create_task(execute(call_of(), skipped={"act": hang}))
        await settled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert statuses(outcomes_of(caught.value)) == ["indeterminate"]
        return caught.value

    return asyncio.run(main())


def raising(error: BaseException) -> Any:
    """A context that raises as it opens."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        raise error
        yield lambda _: None

    return around


ERRORS: list[Callable[[], BaseException]] = [
    lambda: OSError("down"),
    lambda: KeyboardInterrupt("c"),
    lambda: SystemExit(1),
]


WAYS: list[Callable[..., Any]] = [
    lambda plan, **given: asyncio.run(execute_all(plan.pending, **given)),
    lambda plan, **given: execute_all_sync(plan.pending, **given),
    lambda plan, **given: execute_all_sync(plan.pending, limit=2, **given),
    lambda plan, **given: asyncio.run(run(plan, **given)),
    run_sync,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", ERRORS)
def test_an_error_in_an_except_has_no_outcome_of_an_earlier_run(
    made: Callable[[], BaseException], way: Callable[..., Any]
) -> None:
    """A call that a context kept from running has not what the run before it came to."""
    plan = plan_of(2, Tools.doing_sync)
    try:
        raise earlier()
    except asyncio.CancelledError:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - of several classes
            way(plan, around=raising(made()), skipped={"act": hang})
    for outcome in outcomes_of(caught.value):
        assert result_of(outcome).status == "cancelled"
        assert "not executed" in result_of(outcome).model_text
    assert len(outcomes_of(caught.value)) == 2
    assert [call.status for call in plan.pending] in (["new"] * 2, ["new", "cancelled"])
    plan.discard()


def test_an_error_of_one_run_in_an_except_has_no_outcome_of_an_earlier_run() -> None:
    """Nor has the error of a single call that did not begin."""
    works: list[Callable[[], Any]] = [
        lambda: asyncio.run(execute(call_of(), around=raising(OSError()), skipped={"act": hang})),
        lambda: execute_sync(
            call_of(Tools.doing_sync), around=raising(OSError()), skipped={"act": hang}
        ),
    ]
    for work in works:
        try:
            raise earlier()
        except asyncio.CancelledError:
            with pytest.raises(OSError) as caught:  # noqa: PT011 - it has no words
                work()
        assert outcomes_of(caught.value) == ()


def test_an_error_of_the_programs_own_has_the_outcomes_that_it_is_raised_from() -> None:
    """`raise ... from error` passes outcomes on; what is merely being handled passes none."""
    stop = earlier()
    with pytest.raises(ValueError, match="late") as caught:
        raise ValueError("late") from stop
    assert statuses(outcomes_of(caught.value)) == ["indeterminate"]
    for error in (ValueError("another"), SystemExit(1)):
        try:
            raise stop
        except asyncio.CancelledError:
            with pytest.raises(type(error)) as other:
                raise error  # noqa: B904 - the law is about this
        assert outcomes_of(other.value) == ()


@pytest.mark.parametrize("made", ERRORS)
def test_what_a_tool_raises_from_an_earlier_run_is_its_own(
    made: Callable[[], BaseException],
) -> None:
    """A tool that passes the error of another run on has its own outcome."""
    stop = earlier()

    async def act(n: int, ctx: ToolContext) -> int:
        if n == 1:
            raise made() from stop
        return n

    async def main() -> list[Outcome]:
        try:
            return await execute_all(calls_of(2), skipped={"act": act})
        except (KeyboardInterrupt, SystemExit) as error:
            return list(outcomes_of(error))

    assert [result_of(each).id for each in running(main())] == ["c0", "c1"]


def test_a_run_that_is_cancelled_while_another_is_handled_has_outcomes_of_its_own() -> None:
    """Within the `except` of a run, a plan has nothing of that run on record."""

    async def cancelled() -> None:
        plan = plan_of(1)
        task = asyncio.create_task(
            run(plan, on_start=lambda _: asyncio.Event().wait(), skipped={"act": hang})
        )
        await settled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert statuses(outcomes_of(caught.value)) == ["cancelled"]
        assert plan.finished == ()
        plan.discard()

    try:
        raise earlier()
    except asyncio.CancelledError:
        asyncio.run(cancelled())


def test_the_interrupt_that_a_loop_makes_of_a_cancellation_has_its_outcomes() -> None:
    """`asyncio.run` names no cause when it makes a `KeyboardInterrupt` of a cancelled task."""

    def interrupted() -> None:
        try:
            raise earlier()
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert statuses(outcomes_of(caught.value)) == ["indeterminate"]
