"""The laws of what belongs to which run: an outcome is that of the run that made it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import ToolResult, Toolset, tool, tool_fn
from lutum_py.errors import MisuseError
from lutum_py.execution import execute, execute_all_sync, outcomes_of, run
from lutum_py.store import open_store
from lutum_py.testing import ScriptedModel
from tests.round_tools import close, opened

sent: list[str] = []


@tool_fn
def send(text: str) -> str:
    """Send a text."""
    sent.append(text)
    return text


@tool_fn
async def hang() -> None:
    """Never end."""
    await asyncio.Event().wait()


@tool_fn
def interrupt() -> None:
    """End the program."""
    raise KeyboardInterrupt


class Post(Toolset):
    send = tool(send)
    hang = tool(hang)
    interrupt = tool(interrupt)


SEND: Any = ("c1", "send", {"text": "hello"})


def of(*calls: Any) -> Any:
    return opened(*calls, toolset=Post).plan()


def cut_off() -> BaseException:
    """What comes out of a run in which `c1` succeeded, and another call ended the program."""
    plan = of(SEND, ("c2", "interrupt", {}))
    try:
        execute_all_sync(plan.pending)
    except KeyboardInterrupt as error:
        close(plan)
        sent.clear()
        return error
    raise AssertionError


def test_a_run_that_begins_while_another_is_handled_has_outcomes_of_its_own() -> None:
    """Within the `except` of a run, no other run takes the outcomes of that one for its own."""

    async def cancelled() -> None:
        plan = of(SEND)
        task = asyncio.create_task(run(plan, on_start=lambda _: asyncio.sleep(9)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        found = [*outcomes_of(caught.value), *plan.finished]
        assert [each.status for each in found] == ["cancelled"]
        close(plan)

    try:
        raise cut_off()
    except KeyboardInterrupt:
        asyncio.run(cancelled())
    assert sent == []


def test_a_store_records_no_outcome_of_an_earlier_run() -> None:
    """A call of a store that never ran has no success on record, whatever is handled around it."""
    store = open_store(":memory:")
    read: Any = Post.read_turn(ScriptedModel.tool_calls(SEND))
    store.save("one", read.round.plan())

    async def stopped() -> None:
        task: Any = None
        task = asyncio.create_task(store.run("one", Post, on_event=lambda _: task.cancel()))
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        raise cut_off()
    except KeyboardInterrupt:
        asyncio.run(stopped())
    plan = store.load("one", Post).plan
    assert plan is not None
    assert [each.status for each in plan.finished] == ["cancelled"]
    assert sent == []
    close(plan)
    store.close()


def test_what_is_raised_while_a_run_is_handled_has_none_of_its_outcomes() -> None:
    """An error has outcomes where it is of the run or was raised from that, and only then."""
    try:
        raise cut_off()
    except KeyboardInterrupt:
        with pytest.raises(MisuseError) as refused:
            execute_all_sync(["no call"])  # type: ignore[list-item]
    assert outcomes_of(refused.value) == ()
    earlier = cut_off()
    caused = ValueError("late")
    caused.__cause__ = earlier
    assert outcomes_of(caused) == outcomes_of(earlier)


def test_the_interrupt_that_a_loop_makes_of_a_cancellation_has_its_outcomes() -> None:
    """`asyncio.run` names no cause when it makes a `KeyboardInterrupt` of a cancelled task."""

    async def cancelled() -> None:
        plan = of(("c1", "hang", {}))
        task = asyncio.create_task(execute(plan.pending[0]))
        await asyncio.sleep(0.01)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            close(plan)

    with pytest.raises(KeyboardInterrupt) as caught:
        asyncio.run(cancelled())
    (outcome,) = outcomes_of(caught.value)
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"
