"""What checkers know of rules that stand beside a tool: what they may give, and what an input has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from typing_extensions import assert_type

from lutum_py.typing import HookOutcome
from lutum_py import (
    AnyToolCall,
    Complete,
    Reject,
    Selector,
    ToolContext,
    ToolInput,
    Toolset,
    tool,
    tool_fn,
    tool_input,
    toolset,
)


@tool_input(output=str, name="pay_back")
class Refund(BaseModel):
    cents: int


@tool_fn
def send(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool_fn
async def wire(cents: int, ctx: ToolContext) -> str:
    """Send money."""
    return f"sent {cents}"


@tool_fn(input=Refund)
def refund(given: Refund) -> str:
    """Pay a customer back."""
    return f"{given.cents} cents"


def lower(to: str) -> dict[str, str]:
    return {"to": to.lower()}


def at_most(cents: int, ctx: ToolContext) -> Mapping[str, object] | Reject | None:
    return Reject("too much") if cents > 5000 else None


async def known(to: str) -> Complete[str] | None:
    return Complete("sent before") if to == "ann" else None


def number(to: str) -> int:
    return len(to)


async def number_later(to: str) -> int:
    return len(to)


def half(input: Refund) -> Refund:
    return Refund(cents=input.cents // 2)


async def none_at_all(input: Refund) -> Reject | Complete[str]:
    return Reject("never")


def of_call(call: AnyToolCall) -> HookOutcome:
    return call


async def of_call_later(call: AnyToolCall) -> HookOutcome:
    return call.reject("never")


class Desk(Toolset, rule=of_call):
    lowered = tool(send, rule=lower)
    known = tool(send, rule=known, needs_approval=True)
    wire = tool(wire, rule=at_most)
    half = tool(refund, rule=half)
    pay_back = tool(Refund, rule=none_at_all)
    small = tool(refund, rule=lambda input: Reject("no") if input.cents > 5 else None)


class Office(Toolset):
    desk = toolset(Desk, prefix="desk_", rule=of_call_later)


class Payment(ToolInput[dict[str, int]]):
    cents: int


class Purse(Toolset):
    capped = tool(Payment, rule=lambda input: Payment(cents=min(input.cents, 50)))
    small = tool(Payment, rule=lambda input: Reject("no") if input.cents > 5 else None)
    asked = tool(Payment, needs_approval=lambda input: input.cents > 5, rule=lambda input: input)
    pay_back = tool(Refund, rule=lambda input: input if input.cents else None)


assert_type(Purse.capped, Selector[Payment, dict[str, int]])
assert_type(Purse.small, Selector[Payment, dict[str, int]])
assert_type(Purse.asked, Selector[Payment, dict[str, int]])
assert_type(Purse.pay_back, Selector[Refund, Any])


class Wrong(Toolset):
    at_all = tool(Payment, rule=lambda input: input.cnts)  # error
    now = tool(send, rule=number)  # error
    later = tool(send, rule=number_later)  # error
    other = tool(refund, rule=lower)  # error
    misspelt = tool(refund, rule=lambda input: Reject(str(input.cnts)))  # error
