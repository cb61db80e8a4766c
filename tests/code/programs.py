"""The desk whose programs the tests run, and what runs them."""

from __future__ import annotations

import json
from typing import Any, Literal

from lutum_py import (
    AssistantTurn,
    HookSet,
    NeedsTools,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.code import ProgramLimits, program_tool
from lutum_py.errors import NotFound, OutcomeUnknown
from lutum_py.execution import run_sync
from lutum_py.turns import ToolCallItem

KEY = b"k" * 32


@tool_fn
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool_fn
def echo(value: Any) -> Any:
    """Give back what came."""
    return value


@tool_fn
def lose(what: str) -> str:
    """Fail, or leave in doubt."""
    raise (OutcomeUnknown if what == "doubt" else NotFound)(what)


@tool_fn
def refund(order: str, cents: int, ctx: ToolContext) -> str:
    """Refund an order."""
    return f"{order}: {cents}"


class Shop(Toolset):
    """What programs may call."""

    add = tool(add)
    echo = tool(echo)
    lose = tool(lose)
    refund = tool(refund, needs_approval=lambda input: input.cents > 5000)


def desk(
    keep: Literal["state", "replay"] = "state", limits: ProgramLimits | None = None
) -> type[Toolset]:
    """Make a desk that offers programs alone."""

    class Desk(Toolset):
        shop = toolset(Shop, off=True)
        run_program = tool(program_tool(Shop, limits=limits, keep=keep))

    return Desk


STATE, REPLAY = desk("state"), desk("replay")


def planned(code: str, tools: type[Toolset] = STATE, id: str = "c1") -> ToolRoundPlan[Any]:
    """Open the round of a model that wrote one program."""
    text = json.dumps({"code": code})
    sent = ToolCallItem(ToolMetadata(id=id, name="run_program", arguments=text))
    outcome = tools.read_turn(AssistantTurn(items=(sent,)))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.plan()


def result_of(plan: ToolRoundPlan[Any]) -> ToolResult:
    """Give the one result of a plan that is done."""
    (result,) = plan.resolve().results
    return result


def ran(code: str, tools: type[Toolset] = STATE, hooks: HookSet[Any] | None = None) -> ToolResult:
    """Run a program to its end; without hooks, whatever it asks for is let pass."""
    return result_of(run_sync(planned(code, tools), hooks=hooks or tools.HookSet()))


def output_of(code: str, tools: type[Toolset] = STATE) -> Any:
    """Give the value of a program."""
    result = ran(code, tools)
    assert result.is_success, result.model_text
    return result.output["output"]


def failed(code: str, tools: type[Toolset] = STATE) -> tuple[str | None, str]:
    """Give the code of a program that fails, and what its model is told."""
    result = ran(code, tools)
    assert result.status == "error"
    return result.code, result.model_text


def limited(**most: Any) -> type[Toolset]:
    """Make a desk of which programs may use little."""
    return desk(limits=ProgramLimits(**most))
