"""The tools that the tests of rounds, sessions and suspension share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    Decision,
    Finished,
    HookSet,
    NeedsTools,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import ResumeError, RoundClosedError
from lutum_py.testing import ScriptedModel, assert_transcript_valid
from lutum_py.turns import TranscriptItem


class Receipt(BaseModel):
    """What a payment gives."""

    paid: int


class PayArgs(ToolInput[Receipt]):
    """Pay an amount."""

    amount: int
    to: tuple[str, ...] = ()


@tool_fn
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool_fn
async def shout(text: str) -> str:
    """Say a text louder."""
    return text.upper()


@tool_fn
def ask(question: str, context: ToolContext) -> str:
    """Answer with what was decided."""
    return json.dumps(context.resume.result if context.resume else None)


@tool_fn
def wipe(path: str) -> None:
    """Delete a file."""


class Slip(BaseModel):
    """What every copy of an input shares, so that it can be changed in place behind a call."""

    amount: int

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Slip:
        return self


@tool_fn
def charge(slip: Slip, note: str = "") -> int:
    """Charge what the slip says."""
    return slip.amount


class Till(Toolset):
    charge = tool(charge)


CHARGE = ("p", "charge", {"slip": {"amount": 20}})


class Shop(Toolset):
    add = tool(add)
    shout = tool(shout)
    pay = tool(PayArgs)
    ask = tool(ask)
    wipe = tool(wipe, off=True)


Call = tuple[str, str, Any]


def turn(*calls: Call, text: str | None = None, finish_reason: str = "tool_calls") -> AssistantTurn:
    """A turn with these calls: triples of id, name and arguments."""
    return ScriptedModel.tool_calls(*calls, text=text, finish_reason=finish_reason)


def opened(*calls: Call, toolset: type[Toolset] = Shop, **options: Any) -> ToolRound[Any]:
    """The round of a turn with these calls."""
    outcome = toolset.read_turn(turn(*calls, **options))
    assert isinstance(outcome, NeedsTools)
    return outcome.round


def adds(count: int) -> list[Call]:
    """Calls of `add`, each telling its own number."""
    return [(f"c{i}", "add", {"a": i, "b": 0}) for i in range(count)]


def needs(outcome: NeedsTools[Any] | Finished) -> ToolRound[Any]:
    """The round of an outcome."""
    assert isinstance(outcome, NeedsTools)
    return outcome.round


def answer(outcome: NeedsTools[Any] | Finished) -> str:
    """The text of an outcome."""
    assert isinstance(outcome, Finished)
    return outcome.result.text


def done(calls: Iterable[AnyToolCall]) -> list[ToolResult]:
    """Run sync calls."""
    return [call.call_sync() for call in calls]


def forged(metadata: ToolMetadata, result: str = "0") -> ToolResult:
    """A result that is made by hand."""
    return ToolResult(
        id=metadata.id, name=metadata.name, arguments=metadata.arguments, result=result
    )


def close(*ends: ToolRound[Any] | ToolRoundPlan[Any]) -> None:
    """Discard what is still open."""
    for end in ends:
        with suppress(RoundClosedError):
            end.discard()


def is_closed(plan: ToolRoundPlan[Any]) -> bool:
    """Whether the round of a plan has ended: it refuses a decision about any call."""
    try:
        plan.resume(Decision(call_id="of no round", action="cancel"))
    except RoundClosedError:
        return True
    except ResumeError:
        return False
    raise AssertionError("a decision about no call was taken in")


def approval(plan: ToolRoundPlan[Any], call_id: str, **fields: Any) -> Decision:
    """A decision to let a call of a plan go on, under the digest that it shows while it waits."""
    shown = {each.call.id: (each.digest, each.ticket.id) for each in plan.suspended}
    digest, ticket = shown.get(call_id, ("sha256:of none that waits", None))
    return Decision(call_id=call_id, action="resume", digest=digest, ticket=ticket, **fields)


def gated(
    ticket: Callable[[Any], SuspendTicket | None] | SuspendTicket, *selectors: Any
) -> HookSet[Any]:
    """Hooks whose gate suspends calls under a ticket, or under one made from the input."""
    hooks = Shop.HookSet()

    def gate(metadata: ToolMetadata, input: Any) -> Suspend | None:
        made = ticket(input) if callable(ticket) else ticket
        return None if made is None else Suspend(made)

    for selector in selectors or (Shop.add, Shop.pay, Shop.ask, Shop.shout):
        hooks.gate(selector)(gate)
    return hooks


def check(items: Iterable[TranscriptItem]) -> None:
    """Raise unless a provider would take these items."""
    assert_transcript_valid(items)


def check_transcript(transcript: Transcript) -> None:
    """Raise unless a transcript is valid and survives being saved."""
    check(transcript)
    assert Transcript.load_json(transcript.dump_json()) == transcript


def _no_pair(text: str) -> bool:
    return not any(
        "\ud800" <= one <= "\udbff" and "\udc00" <= two <= "\udfff" for one, two in pairwise(text)
    )


any_text = st.text(st.characters(codec=None), max_size=20).filter(_no_pair)
"""Any text, lone surrogates included, but no pair of them that is one character."""
