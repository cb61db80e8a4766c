"""The law of calls that were started, for what a store has on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lutum_py import AnyToolCall, Session, ToolContext, ToolResult, Toolset, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.context import CancellationToken
from lutum_py.errors import OutcomeUnknown
from lutum_py.execution import ExecutionErrors, Outcome, outcomes_of
from lutum_py.store import Store
from lutum_py.testing import ScriptedModel
from tests.inner_tools import Desk, asks, let_pass, opened

PAY: Any = ("pay", {"cents": 5})


def result_of(store: Store) -> ToolResult:
    plan = store.load("one", Desk).plan
    assert plan is not None
    (result,) = plan.commit(Session()).results
    return result


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


@pytest.mark.parametrize("kind", ["started", "continued"])
def test_a_run_that_is_cancelled_as_a_call_goes_on_leaves_it_in_doubt(
    store: Store, kind: str
) -> None:
    """It is on record that it began, and what it did within it the model reads."""
    store.save("one", opened(asks([PAY])))
    outcomes = asyncio.run(cancelled_at(store, kind))
    result = result_of(store)
    assert [each.model_text for each in outcomes[-1:]] == [result.model_text]  # type: ignore[union-attr]
    assert result.status == "indeterminate"
    assert "not executed" not in result.model_text
    within = "Within it, c1/1 of tool pay: success."
    assert (within in result.model_text) is (kind == "continued")


def test_a_context_that_does_not_open_keeps_a_call_that_was_started_claimable(store: Store) -> None:
    """What `around` raises before a call goes on takes nothing from it: the next run goes on."""
    is_down = True

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], None]]:
        if is_down and any(each.kind == "requested" for each in call.steps):
            raise OSError("the tracer is down")
        yield lambda _: None

    store.save("one", opened(asks([PAY])))
    with pytest.raises(ExecutionErrors) as caught:
        asyncio.run(store.run("one", Desk, hooks=let_pass, around=around))
    last = caught.value.outcomes[-1]
    assert isinstance(last, ToolResult)
    assert last.status == "indeterminate"
    assert last.model_text.endswith("Within it, c1/1 of tool pay: success.")
    is_down = False
    asyncio.run(store.run("one", Desk, hooks=let_pass, around=around))
    assert result_of(store).status == "success"


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


@tool_fn(capabilities=ToolCapabilities(effects=[ToolEffect("write_file", "path")]))
def write(path: str) -> str:
    """Write a file, and nobody knows whether it was written."""
    raise OutcomeUnknown("the disk is gone")


class Files(Toolset):
    write = tool(write)


def test_a_call_that_a_doubt_keeps_from_its_beginning_was_not_started(store: Store) -> None:
    """A call that is claimed, and not started, is told as one that was not started."""
    turn = ScriptedModel.tool_calls(("c1", "write", {"path": "a"}), ("c2", "write", {"path": "a"}))
    store.save("one", Files.read_turn(turn).round.plan(), in_order=True)  # type: ignore[union-attr]
    asyncio.run(store.run("one", Files))
    plan = store.load("one", Files).plan
    assert plan is not None
    first, second = plan.commit(Session()).results
    assert first.status == "indeterminate"
    assert (second.status, second.code) == ("cancelled", "after_doubt")
    assert "not started" in second.model_text
