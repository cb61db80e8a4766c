"""The laws of `plan.settle`: an outcome from elsewhere is shown, taken in, and goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lutum_py import AnyToolCall, NeedsTools, ToolResult, Toolset, tool, tool_fn
from lutum_py.errors import CommitError, HookError
from lutum_py.execution import execute
from lutum_py.testing import ScriptedModel
from tests.inner_tools import asks, let_pass, opened


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Sums(Toolset):
    add = tool(add)


def plan_of(hooks: Any) -> Any:
    turn = ScriptedModel.tool_calls(("c1", "add", {"a": 1, "b": 2}))
    outcome = Sums.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    return outcome.round.apply_hooks_sync(hooks)


def test_after_hooks_see_a_call_that_has_ended() -> None:
    """And what they put in its place is recorded."""
    hooks = Sums.HookSet()
    seen: list[bool] = []

    @hooks.after(Sums.add)
    def look(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(call.status.is_terminal)

    with plan_of(hooks) as plan:
        elsewhere = plan.detach("c1", owner="worker 7")
        asyncio.run(plan.settle(elsewhere.call_sync(), hooks))
        assert (seen, plan.resolve().results[0].output) == ([True], 3)


def test_an_outcome_that_hooks_raise_about_is_settled_again() -> None:
    """The call has ended by then, and its result waits for the hooks."""
    hooks = Sums.HookSet()
    tries: list[int] = []

    @hooks.after(Sums.add)
    def look(call: AnyToolCall, result: ToolResult) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError

    with plan_of(hooks) as plan:
        result = plan.detach("c1").call_sync()
        with pytest.raises(HookError):
            plan.settle_sync(result, hooks)
        assert plan.settle_sync(result, hooks).output == 3
        assert [row.result.output for row in plan.calls] == [3]
        plan.resolve()


def test_the_outcome_of_another_call_changes_nothing() -> None:
    """No hook sees it."""
    hooks = Sums.HookSet()
    with plan_of(hooks) as plan:
        other = ToolResult(id="c9", name="add", arguments="{}", result="1")
        with pytest.raises(CommitError):
            plan.settle_sync(other, hooks)
        assert [call.id for call in plan.pending] == ["c1"]
        plan.discard()


def test_hooks_review_what_a_call_requested() -> None:
    """The calls within it may start, and it waits for them."""
    plan = opened(asks([("note", {"text": "a"})]))
    elsewhere = plan.detach(plan.pending[0].id)
    asyncio.run(plan.settle(asyncio.run(execute(elsewhere)), let_pass))
    assert ([c.id for c in plan.awaiting], [c.id for c in plan.pending]) == (["c1"], ["c1/1"])
    assert plan.unreviewed == ()
    plan.discard()
