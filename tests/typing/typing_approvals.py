"""What checkers know of conditions that stand beside a tool: the input, where it has a type."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lutum_py import ToolInput, Toolset, tool, tool_fn, tool_input, toolset


@tool_input(output=str, name="pay_back")
class Refund(BaseModel):
    cents: int


class Payment(ToolInput[str]):
    cents: int


@tool_fn
def send(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool_fn(input=Refund)
def refund(given: Refund) -> str:
    """Pay a customer back."""
    return f"{given.cents} cents"


def is_outside(input: Any) -> bool:
    """A condition with a name says that it takes the input of a function tool."""
    return not str(input.to).endswith("@here.example")


async def is_much(input: Refund) -> bool:
    """A condition may be async."""
    return input.cents > 5000


class Desk(Toolset, needs_approval=lambda input: input.cents > 5000):
    send = tool(send, needs_approval=lambda input: len(input.text) > 1000)
    refund = tool(refund, needs_approval=lambda input: input.cents > 5000)
    pay = tool(Payment, needs_approval=lambda input: input.cents > 5000)
    pay_back = tool(Refund, needs_approval=is_much)


class Strict(Toolset):
    pay_back = tool(Refund, needs_approval=True, approval_message="Refund {cents} cents?")


class Office(Toolset):
    send = tool(send, needs_approval=is_outside)
    desk = toolset(Desk, prefix="desk_", needs_approval=lambda input: input.cents > 0)


class Called(Toolset):
    send = tool(send, callers=("model", "program"))
    pay_back = tool(Refund, callers=["program"], needs_approval=is_much)


tool(refund, callers=("programs",))  # error
tool(refund, callers="program")  # error


class Misspelt(Toolset):
    refund = tool(refund, needs_approval=lambda input: input.cnts > 5000)  # error
    pay = tool(Payment, needs_approval=lambda input: input.cnts > 5000)  # error


tool(Payment, needs_approval=is_much)  # error
