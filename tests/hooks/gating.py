"""Tools that declare effects, and what the gate says of their calls."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    Block,
    NeedsTools,
    Suspend,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect, capability_gate
from lutum_py.typing import ToolFn
from tests.private import decode

GateAction: TypeAlias = Literal["allow", "suspend", "block"]


def make(*effects: ToolEffect | str, background_safe: bool = False) -> ToolFn[..., str]:
    capabilities = ToolCapabilities(effects=effects, background_safe=background_safe)

    @tool_fn(capabilities=capabilities)
    def act(path: str = "a", amount: int = 1, dry_run: bool = False) -> str:
        return "done"

    return act


def call_of(function: ToolFn[..., str], id: str = "c1", **arguments: Any) -> AnyToolCall:
    metadata = ToolMetadata(id=id, name="act", arguments=json.dumps(arguments))
    call: AnyToolCall = decode(function.__lutum_fn__().free_selector, metadata).call
    return call


def ask(call: AnyToolCall, policy: Any = None, **options: Any) -> object:
    """What the gate says of one call."""
    return capability_gate(policy, **options)(call, None)


def action_of(answer: object) -> GateAction:
    if answer is None:
        return "allow"
    return "block" if isinstance(answer, Block) else "suspend"


def blocked(answer: object) -> str:
    assert isinstance(answer, Block)
    return answer.reason


def ticket_of(answer: object) -> SuspendTicket:
    assert isinstance(answer, Suspend)
    return answer.ticket


@tool_fn(
    capabilities=ToolCapabilities(
        effects=[ToolEffect("deploy", "service", dry_run="required_before_execute")]
    )
)
def roll_out(service: str, count: int = 1, dry_run: bool = False) -> str:
    return f"{service}: {count}"


@tool_fn
def look(service: str, dry_run: bool = True) -> str:
    return service


class Ops(Toolset):
    deploying = tool(roll_out)
    looking = tool(look)


def plan_of(*calls: tuple[str, str, dict[str, Any]]) -> ToolRoundPlan[Ops]:
    turn = AssistantTurn(
        tool_calls=[
            ToolMetadata(id=id, name=name, arguments=json.dumps(arguments))
            for id, name, arguments in calls
        ]
    )
    match Ops.read_turn(turn):
        case NeedsTools(round):
            return round.apply_hooks_sync(Ops.HookSet())
        case other:
            raise AssertionError(other)


def deploy(**arguments: Any) -> AnyToolCall:
    metadata = ToolMetadata(id="now", name="roll_out", arguments=json.dumps(arguments))
    return Ops.parse_tool_call(metadata)
