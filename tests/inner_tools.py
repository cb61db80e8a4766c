"""The tools that the tests of calls within calls share, and how their plans are opened."""

from __future__ import annotations

import asyncio
from typing import Any

from lutum_py import ToolContext, ToolRoundPlan, Toolset, tool, tool_fn
from lutum_py.execution import execute
from lutum_py.testing import ScriptedModel

Asked = tuple[str, dict[str, Any]]
"""A call to ask for: the tool and its arguments."""


@tool_fn
def note(text: str) -> str:
    """Write something down."""
    return f"noted {text}"


@tool_fn
def pay(cents: int, to: str = "shop") -> str:
    """Pay an amount."""
    return f"paid {cents} to {to}"


@tool_fn
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@tool_fn(idempotent=True)
def steps(each: list[list[Asked]], ctx: ToolContext) -> list[list[str]]:
    """Ask for calls, step by step, and tell how each of them ended."""
    rounds = () if ctx.inner is None else ctx.inner.rounds
    assert ctx.inner is None or ctx.inner.state == str(len(rounds))
    if len(rounds) < len(each):
        ctx.request_calls(each[len(rounds)], state=str(len(rounds) + 1))
    return [[f"{one.id} {one.status}" for one in results] for results in rounds]


class Desk(Toolset):
    """What can be called."""

    note = tool(note)
    pay = tool(pay)
    fail = tool(fail)
    steps = tool(steps)


class Asking(Toolset):
    """The same, where a payment needs an approval."""

    note = tool(note)
    pay = tool(pay, needs_approval=True)
    fail = tool(fail)
    steps = tool(steps)


def asks(*each: list[Asked]) -> Asked:
    """A call of the tool that asks, in so many steps."""
    return "steps", {"each": [list(map(list, step)) for step in each]}


TWO = asks([("note", {"text": "a"}), ("nix", {})], [("note", {"text": "b"})])
"""A call that asks twice, the first time also for a tool that is not there."""
SAID_BY_TWO = [["c1/1 success", "c1/2 rejected"], ["c1/3 success"]]
TOLD_OF_TWO = [
    ("started", "c1"),
    ("requested", "c1"),
    ("proposed", "c1/1"),
    ("proposed", "c1/2"),
    ("decided", "c1/1"),
    ("started", "c1/1"),
    ("ended", "c1/1"),
    ("continued", "c1"),
    ("requested", "c1"),
    ("proposed", "c1/3"),
    ("decided", "c1/3"),
    ("started", "c1/3"),
    ("ended", "c1/3"),
    ("continued", "c1"),
    ("ended", "c1"),
]
"""What a run of it tells, where nothing stands against what it asks for."""


def opened(
    *calls: Asked, toolset: type[Toolset] = Desk, ids: tuple[str, ...] = ()
) -> ToolRoundPlan[Any]:
    """The plan of a turn with these calls, `c1` and so on by default."""
    named = ids or tuple(f"c{number}" for number in range(1, len(calls) + 1))
    spoken = [(id, *call) for id, call in zip(named, calls, strict=True)]
    return toolset.read_turn(ScriptedModel.tool_calls(*spoken)).round.plan()  # type: ignore[union-attr]


def let_pass(call: Any) -> Any:
    """Hooks that have nothing against it."""
    return call


def step(plan: ToolRoundPlan[Any]) -> None:
    """Run what is pending, and let the plan know."""
    for call in plan.pending:
        plan.record(asyncio.run(execute(call)))


def states(plan: ToolRoundPlan[Any]) -> dict[str, str]:
    """Where each call stands."""
    return {row.id: row.state for row in plan.calls}
