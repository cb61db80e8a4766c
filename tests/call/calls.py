"""Tools, and calls of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lutum_py import (
    Decision,
    SuspendTicket,
    ToolCall,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.testing import ScriptedModel
from tests.declared import call_of


class Sum(BaseModel):
    total: int


@tool_fn
def add(a: int, b: int = 1) -> Sum:
    """Add."""
    return Sum(total=a + b)


class FindArgs(ToolInput[list[str]]):
    words: list[str]


class Inner(Toolset):
    add = tool(add)
    find = tool(FindArgs)


class Outer(Toolset):
    left = toolset(Inner, prefix="left_")
    right = toolset(Inner, prefix="right_")


def suspended(
    name: str, arguments: Any, ticket: SuspendTicket, toolset: type[Toolset] = Inner
) -> tuple[Any, Any]:
    """A call of a round that waits under a ticket, and the plan of the round."""
    outcome: Any = toolset.read_turn(ScriptedModel.tool_calls(("c1", name, arguments)))
    plan = outcome.round.plan()
    (call,) = plan.pending
    plan.suspend(call.suspend(ticket))
    return call, plan


def approve(plan: Any) -> Decision:
    """Approve the call that waits."""
    (waiting,) = plan.suspended
    decision: Decision = waiting.approve()
    plan.resume(decision)
    return decision


def added(a: int = 1, **more: Any) -> ToolCall[Any, Sum]:
    call: ToolCall[Any, Sum] = call_of(add, {"a": a, **more})
    return call
