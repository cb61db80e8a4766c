"""The laws of running several calls at once from async code."""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import (
    CallStatus,
    Session,
    ToolContext,
)
from lutum_py.errors import (
    Denied,
    LifecycleError,
    LutumError,
)
from lutum_py.execution import ExecutionErrors, execute_all, outcomes_of
from tests.execution.running import (
    LATE,
    Tools,
    call_of,
    calls_of,
    plan_of,
    raising,
    result_of,
    running,
    seen,
    statuses,
)


async def double(n: int, ctx: ToolContext) -> int:
    return 2 * n


def test_nothing_to_run_is_no_error() -> None:
    """No calls have no outcomes."""
    assert running(execute_all([])) == []


@given(st.permutations(range(6)), st.none() | st.integers(1, 7))
def test_results_come_in_the_order_of_the_calls(order: list[int], limit: int | None) -> None:
    """Whichever call ends first, outcomes come in call order, and no more than the limit run."""
    now: set[int] = set()
    most: list[int] = []

    async def main() -> None:
        done = [asyncio.Event() for _ in order]

        async def act(n: int, ctx: ToolContext) -> int:
            now.add(n)
            most.append(len(now))
            if limit is None or limit >= len(order):
                before = order.index(n)
                if before:
                    await done[order[before - 1]].wait()
            else:
                for _ in range(order[n]):
                    await asyncio.sleep(0)
            done[n].set()
            now.remove(n)
            return n * 10

        calls = calls_of(len(order))
        outcomes = await execute_all(calls, skipped={"act": act}, limit=limit)
        assert seen(outcomes) == [(f"c{n}", "success", n * 10) for n in range(len(order))]

    running(main())
    assert max(most) <= (limit or len(order))
    assert len(most) == len(order)


def test_a_limit_is_used_up() -> None:
    """As many calls run at once as the limit allows."""

    async def main() -> None:
        barrier = asyncio.Barrier(3)

        async def act(n: int, ctx: ToolContext) -> int:
            await barrier.wait()
            return n

        outcomes = await execute_all(calls_of(9), skipped={"act": act}, limit=3)
        assert statuses(outcomes) == ["success"] * 9

    running(main())


@pytest.mark.parametrize("selector", [Tools.doing, Tools.doing_sync])
def test_two_hundred_calls_at_once_keep_apart(selector: Any) -> None:
    """Each of two hundred parallel calls of one tool gets its own result."""
    release = threading.Event()

    async def main() -> None:
        arrived: list[int] = []
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()

        def arrive(n: int) -> None:
            arrived.append(n)
            if len(arrived) == 200:
                loop.call_soon_threadsafe(gate.set)
                release.set()

        async def act(n: int, ctx: ToolContext) -> int:
            arrive(n)
            await gate.wait()
            return n * n

        def act_sync(n: int) -> int:
            arrive(n)
            release.wait(LATE)
            return n * n

        given: Any = act if selector is Tools.doing else act_sync
        outcomes = await execute_all(calls_of(200, selector), skipped={"act": given})
        assert seen(outcomes) == [(f"c{n}", "success", n * n) for n in range(200)]

    running(main())


def test_a_failure_leaves_the_others_alone() -> None:
    """Calls that succeed keep their results where others fail."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n % 2:
            raise ValueError(n)
        return n

    outcomes = running(execute_all(calls_of(4), skipped={"act": act}))
    assert statuses(outcomes) == ["success", "error", "success", "error"]


def test_several_errors_are_raised_together_and_nothing_is_lost() -> None:
    """With `raise_errors`, all calls end first; then all exceptions come with all outcomes."""

    async def act(n: int, ctx: ToolContext) -> int:
        if n % 2:
            await asyncio.sleep(0)
            raise ValueError(n) if n == 1 else Denied(str(n))
        return n

    plan = plan_of(4)
    with pytest.raises(ExecutionErrors) as caught:
        running(execute_all(plan.pending, skipped={"act": act}, raise_errors=True))
    group = caught.value
    assert isinstance(group, LutumError)
    assert [type(error) for error in group.exceptions] == [ValueError, Denied]
    assert str(group).startswith("2 of 4 calls failed")
    assert statuses(group.outcomes) == ["success", "error", "success", "error"]
    assert outcomes_of(group) == group.outcomes
    session = Session()
    plan.commit(session, [result_of(outcome) for outcome in group.outcomes])
    assert len(session.transcript) == 5


def test_a_group_of_errors_keeps_its_outcomes() -> None:
    """Outcomes survive `except*` and pickling."""
    act = raising(ValueError("bad"))
    with pytest.raises(ExecutionErrors) as caught:
        running(execute_all(calls_of(2), skipped={"act": act}, raise_errors=True))
    group = caught.value
    part = group.subgroup(lambda error: error is group.exceptions[1])
    assert isinstance(part, ExecutionErrors)
    assert statuses(part.outcomes) == ["error", "error"]
    again = pickle.loads(pickle.dumps(group))
    assert isinstance(again, ExecutionErrors)
    assert again.outcomes == group.outcomes
    assert str(again) == str(group)


def test_nothing_is_raised_where_nothing_failed() -> None:
    """With `raise_errors`, calls that succeed give their outcomes."""
    outcomes = running(execute_all(calls_of(2), skipped={"act": double}, raise_errors=True))
    assert seen(outcomes) == [("c0", "success", 0), ("c1", "success", 2)]


def test_a_context_that_cannot_be_made_stops_all_before_the_start() -> None:
    """An exception of the `context` function comes out, and no call was started."""

    def context(call: Any) -> ToolContext:
        if call.id == "c2":
            raise LookupError("no context")
        return ToolContext.for_call(call)

    calls = calls_of(3)
    with pytest.raises(LookupError, match="no context"):
        running(execute_all(calls, context=context, skipped={"act": double}))
    assert {call.status for call in calls} == {CallStatus.NEW}


def test_what_is_wrong_with_one_call_is_found_before_any_starts() -> None:
    """A call that cannot be run is refused together with all others, which are untouched."""
    calls = calls_of(2)
    ended = call_of(id="ended")
    ended.fail("over")
    with pytest.raises(LifecycleError):
        running(execute_all([*calls, ended], skipped={"act": double}))
    assert {call.status for call in calls} == {CallStatus.NEW}


def test_a_call_that_was_answered_while_it_waited_is_not_run() -> None:
    """Whoever answers a call that still waits for its turn is told so, after the others ended."""

    async def main() -> None:
        calls = calls_of(3)
        ran: list[int] = []

        async def act(n: int, ctx: ToolContext) -> int:
            ran.append(n)
            calls[1].reject("no longer wanted")
            return n

        with pytest.raises(LifecycleError, match="'c1'"):
            await execute_all(calls, skipped={"act": act}, limit=1)
        assert ran == [0, 2]

    running(main())
