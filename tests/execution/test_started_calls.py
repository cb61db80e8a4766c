"""The law of what was started: no run reports such a call as "not executed"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    Session,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities
from lutum_py.context import CancellationToken
from lutum_py.errors import OutcomeUnknown
from lutum_py.execution import (
    ExecutionErrors,
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
    run,
)
from lutum_py.store import Store, open_store
from tests.cases import over
from tests.inner_tools import Asked, Desk, asks, let_pass, opened, step
from tests.round_tools import close

PAY: Asked = ("pay", {"cents": 5})


def gone_on() -> ToolRoundPlan[Any]:
    """A plan whose call `c1` has paid, by a call that it asked for, and comes back."""
    plan = opened(asks([PAY]))
    step(plan)
    plan = asyncio.run(plan.apply_hooks(let_pass))
    step(plan)
    assert [each.id for each in plan.pending] == ["c1"]
    return plan


@contextmanager
def broken(_: AnyToolCall) -> Any:
    """A tracer that is down."""
    raise OSError("closed")
    yield


def stopped(call: AnyToolCall) -> ToolContext:
    token = CancellationToken()
    token.cancel("the user left.")
    return ToolContext.for_call(call, cancellation=token)


def by_around(plan: ToolRoundPlan[Any]) -> list[Any]:
    with pytest.raises(ExecutionErrors) as caught:
        execute_all_sync(plan.pending, around=broken)
    return list(caught.value.outcomes)


async def by_cancelling(work: Any) -> list[Any]:
    task = asyncio.create_task(work)
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return list(outcomes_of(caught.value))


def by_on_begin(plan: ToolRoundPlan[Any]) -> list[Any]:
    return asyncio.run(by_cancelling(run(plan, on_start=lambda _: asyncio.sleep(9))))


WAYS: dict[str, Callable[[ToolRoundPlan[Any]], list[Any]]] = {
    "token": lambda plan: [
        asyncio.run(execute(plan.pending[0], stopped(plan.pending[0]))),
    ],
    "token_sync": lambda plan: [execute_sync(plan.pending[0], stopped(plan.pending[0]))],
    "tokens": lambda plan: asyncio.run(execute_all(plan.pending, context=stopped)),
    "run": lambda plan: list(asyncio.run(run(plan, context=stopped)).finished)[:1],
    "around": by_around,
    "on_start": by_on_begin,
}


@over("way", list(WAYS))
def test_a_call_that_comes_back_and_is_stopped_is_in_doubt(way: str) -> None:
    """Whatever keeps it from going on, the model reads that it was started, and what was paid."""
    plan = gone_on()
    (outcome,) = WAYS[way](plan)
    assert isinstance(outcome, ToolResult)
    assert outcome.status == "indeterminate"
    assert "not executed" not in outcome.model_text
    assert "Within it, c1/1 of tool pay: success." in outcome.model_text
    if plan.pending:
        (told,) = plan.abort(Session(), "Enough.", [outcome]).results
        assert told.status == "indeterminate"
    else:
        close(plan)


def paid_in(store: Store, **options: Any) -> ToolResult:
    """Run a call of a store that pays within, with what stops it when it goes on."""
    store.save("one", opened(asks([PAY])))

    async def go() -> None:
        task: Any = None

        def stop(event: Any) -> None:
            if event.kind == "continued" and not options:
                task.cancel()

        task = asyncio.create_task(store.run("one", Desk, hooks=let_pass, on_event=stop, **options))
        with pytest.raises((asyncio.CancelledError, ExecutionErrors)):
            await task

    asyncio.run(go())
    plan = store.load("one", Desk).plan
    assert plan is not None
    close(plan)
    return next(each for each in plan.finished if each.id == "c1")


def test_a_call_of_a_store_that_is_cancelled_as_it_goes_on_is_in_doubt() -> None:
    """A payment within it was made, so that no model may take it for not executed."""
    store = open_store(":memory:")
    result = paid_in(store)
    assert result.status == "indeterminate"
    assert "Within it, c1/1 of tool pay: success." in result.model_text
    store.close()


def test_a_call_of_a_store_whose_context_does_not_open_again_is_in_doubt() -> None:
    """What `around` raises when the call goes on does not undo what was done within it."""

    @contextmanager
    def once(call: AnyToolCall) -> Any:
        if any(each.kind == "requested" for each in call.steps):
            raise OSError("closed")
        yield lambda _: None

    store = open_store(":memory:")
    result = paid_in(store, around=once)
    assert result.status == "indeterminate"
    assert "not executed" not in result.model_text
    store.close()


@tool_fn(capabilities=ToolCapabilities(effects=["read_file"]))
def peek(deep: bool, ctx: ToolContext) -> str:
    """Look something up, by other calls."""
    if ctx.inner is None:
        ctx.request_calls([("lose" if deep else "glance", {})])
    return "seen"


@tool_fn(capabilities=ToolCapabilities(effects=["read_file"]))
def glance() -> str:
    """Look."""
    return "seen"


@tool_fn
def lose() -> None:
    """Change something, perhaps."""
    raise OutcomeUnknown("nobody answered")


class Room(Toolset):
    peek = tool(peek)
    glance = tool(glance)
    lose = tool(lose)


@over("deep, status", [(False, "cancelled"), (True, "indeterminate")])
def test_a_call_only_reads_if_what_it_asked_for_does(deep: bool, status: str) -> None:
    """A tool that reads is in doubt where a call within it may have changed something."""
    plan = opened(("peek", {"deep": deep}), toolset=Room)
    step(plan)
    plan = asyncio.run(plan.apply_hooks(let_pass))
    step(plan)
    (call,) = plan.pending
    result = execute_sync(call, stopped(call))
    assert isinstance(result, ToolResult)
    assert result.status == status
    assert "not executed" not in result.model_text
    close(plan)
