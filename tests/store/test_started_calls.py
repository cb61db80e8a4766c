"""The law of calls that were started, for what a store has on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import AnyToolCall, ToolContext, ToolResult
from lutum_py.context import CancellationToken
from lutum_py.execution import ExecutionErrors, Outcome, outcomes_of
from lutum_py.store import Store
from tests.inner_tools import Desk, asks, let_pass, opened

PAY: Any = ("pay", {"cents": 5})


async def cancelled_at(store: Store, kind: str, **options: Any) -> tuple[Outcome, ...]:
    """Cancel a run at the moment at which it tells of a step of `c1`."""

    def on_event(event: Any) -> None:
        if (event.kind, event.row.id) == (kind, "c1"):
            task.cancel()

    working = store.run("one", Desk, hooks=let_pass, on_event=on_event, **options)
    task = asyncio.create_task(working)
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return outcomes_of(caught.value)


def check_goes_on(store: Store, taken_back: int = 0) -> None:
    """No outcome of the stopped run is on record, and the next one goes on."""
    plan = store.load("one", Desk).plan
    assert plan is not None
    assert ([call.id for call in plan.pending], plan.in_doubt) == (["c1"], ())
    plan = asyncio.run(store.run("one", Desk, hooks=let_pass)).plan
    assert plan is not None
    assert [each.status for each in plan.finished] == ["success", "success"]
    kinds = [[step.kind for step in row.steps] for row in plan.calls]
    assert [each.count("started") for each in kinds] == [2 + taken_back, 1]
    assert [each.count("retried") for each in kinds] == [taken_back, 0]


@pytest.mark.parametrize(
    ("kind", "status"), [("started", "cancelled"), ("continued", "indeterminate")]
)
def test_a_run_that_is_cancelled_before_a_tool_starts_leaves_its_call_claimable(
    store: Store, kind: str, status: str
) -> None:
    """Who cancels reads what was done within the call; the next run goes on with it."""
    store.save("one", opened(asks([PAY])))
    told = asyncio.run(cancelled_at(store, kind))[-1]
    assert isinstance(told, ToolResult)
    assert (told.id, told.status) == ("c1", status)
    assert ("not executed" in told.model_text) is (kind == "started")
    assert told.model_text.endswith(" Within it, c1/1 of tool pay: success.") is (
        kind == "continued"
    )
    check_goes_on(store, taken_back=1)


def test_a_context_that_does_not_open_keeps_a_call_that_was_started_claimable(store: Store) -> None:
    """What `around` raises before a call goes on takes nothing from it: the next run goes on."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        if any(each.kind == "requested" for each in call.steps):
            raise OSError("the tracer is down")
        yield lambda _: None

    store.save("one", opened(asks([PAY])))
    with pytest.raises(ExecutionErrors) as caught:
        asyncio.run(store.run("one", Desk, hooks=let_pass, around=around))
    last = caught.value.outcomes[-1]
    assert isinstance(last, ToolResult)
    assert last.status == "indeterminate"
    assert last.model_text.endswith("Within it, c1/1 of tool pay: success.")
    check_goes_on(store)


def test_a_call_that_its_context_stops_is_not_on_record_as_started(store: Store) -> None:
    """What was not executed has no beginning in its history."""

    def stopped(call: AnyToolCall) -> ToolContext:
        token = CancellationToken()
        token.cancel("the user left.")
        return ToolContext.for_call(call, cancellation=token)

    store.save("one", opened(PAY))
    asyncio.run(store.run("one", Desk, context=stopped))
    plan = store.load("one", Desk).plan
    assert plan is not None
    (result,) = plan.finished
    assert "not executed, because the user left." in result.model_text
    kinds = [step.kind for step in plan.calls[0].steps]
    assert "started" not in kinds
    plan.discard()
