"""The tools that the tests of stores share, and a clock that stands still."""

from __future__ import annotations

from typing import Annotated, Any

from lutum_py import (
    AnyToolCall,
    NeedsTools,
    ResumeMode,
    Skip,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.store import Claim, Store
from lutum_py.testing import ScriptedModel

KEY = b"a key of the tests"


@tool_fn
def pay(cents: int, payee: str = "Acme", log: Annotated[Any, Skip()] = None) -> str:
    """Pay, another time each time."""
    if log is not None:
        log.append((payee, cents))
    return f"paid {payee} {cents}"


@tool_fn(idempotent=True)
def look(place: str) -> str:
    """Look something up."""
    return f"seen {place}"


@tool_fn
def ask(question: str, context: ToolContext) -> str:
    """Ask by itself, in the middle of its work."""
    if context.resume is None:
        context.suspend(SuspendTicket(id="t9", resume_mode=ResumeMode.PASS_DECISION_TO_TOOL))
    return f"{question}: {context.resume.result}"


class Desk(Toolset):
    pay = tool(pay)
    look = tool(look)
    ask = tool(ask)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
def may_it_be_paid(_metadata: ToolMetadata, _input: Any) -> Suspend:
    return Suspend(SuspendTicket(id="t1", message="Pay?"))


Call = tuple[str, str, Any]
PAY: Call = ("c1", "pay", {"cents": 500})
LOOK: Call = ("c2", "look", {"place": "Oslo"})
ASK: Call = ("c3", "ask", {"question": "why"})


def plan_of(*calls: Call) -> ToolRoundPlan[Desk]:
    """A plan whose payments wait."""
    outcome = Desk.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(outcome, NeedsTools)
    return outcome.round.apply_hooks_sync(hooks)


def approve(store: Store, id: str = "one") -> None:
    """Approve all that waits."""
    for waiting in store.waiting(id):
        store.decide(id, waiting.approve(), Desk)


def claimed(store: Store, **options: Any) -> Claim:
    claim = store.claim(Desk, **options)
    assert claim is not None
    return claim


def started(store: Store, claim: Claim) -> AnyToolCall:
    return store.start(claim)


def read_again(claim: Claim) -> AnyToolCall:
    """The call of a claim as whoever else was sent it reads it, to make outcomes by hand."""
    return Desk.parse_tool_call(claim.call.metadata)


def states(store: Store, id: str = "one") -> dict[str, str]:
    """Say where each call of a conversation is, as a loaded plan has it."""
    plan = store.load(id, Desk).plan
    assert plan is not None
    found = {call.id: "pending" for call in plan.pending}
    found |= {call.id: "in doubt" for call in plan.in_doubt}
    found |= {waiting.call.id: "suspended" for waiting in plan.suspended}
    found |= {result.id: result.status for result in plan.finished}
    found |= {each.metadata.id: "rejected" for each in plan.rejected}
    found |= {each.metadata.id: "handled" for each in plan.handled}
    return found
