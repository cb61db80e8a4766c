"""The desk that pays invoices: its tools, who has a say, and the loop.

`advance` is the whole loop. It can be killed anywhere and called again: whatever it does next
follows from what the store has, and nothing that was started is started again blindly.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from time import sleep
from typing import Annotated
from uuid import uuid4

from bank import Receipt, World
from pydantic import BaseModel, Field

from lutum_py import (
    AssistantTurn,
    NeedsTools,
    Skip,
    ToolInput,
    ToolResult,
    Toolset,
    TurnRequest,
    execution,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.capabilities import ToolCapabilities, ToolEffect
from lutum_py.errors import StaleError
from lutum_py.execution import Outcome
from lutum_py.sinks import escape_unprintable
from lutum_py.store import Claim, Store
from lutum_py.testing import ScriptedModel

CONVERSATION = "invoices"
LEASE = 3.0
"""Seconds after which a call that was started is taken to be in doubt: longer than any tool
runs.
"""

QUESTION = "Pay the open invoices, and tell Initech that theirs is disputed."


class Invoice(BaseModel):
    """An open invoice."""

    number: str
    payee: str
    cents: int


@tool_fn(idempotent=True)
def list_invoices() -> list[Invoice]:
    """List the open invoices."""
    return [
        Invoice(number="A-17", payee="Acme", cents=12_000),
        Invoice(number="G-4", payee="Globex", cents=980_000),
    ]


@tool_input(
    name="pay",
    idempotent=True,
    capabilities=ToolCapabilities(effects=[ToolEffect("spend_money", target="payee")]),
)
class Payment(ToolInput[Receipt]):
    """Pay a supplier."""

    payee: str = Field(description="Who is paid.")
    cents: int = Field(description="How much, in cents.", gt=0)


@tool_fn(capabilities=ToolCapabilities(effects=["send_message"]))
def send_letter(recipient: str, text: str, world: Annotated[World, Skip()]) -> str:
    """Send a letter.

    Args:
        recipient: Who gets it.
        text: What it says.
        world: Where the post office is.
    """
    world.post(recipient, text)
    return f"sent to {recipient}"


class Desk(Toolset):
    """What the model may call; no payment goes out before somebody approved it."""

    list_invoices = tool(list_invoices)
    pay = tool(Payment, needs_approval=True, approval_message="Pay {payee} {cents} cents?")
    send_letter = tool(send_letter)


handlers = Desk.Handlers()


@handlers.on(Desk.pay)
def pay(payment: Payment, world: Annotated[World, Skip()], key: Annotated[str, Skip()]) -> Receipt:
    """Do what a payment asks for; the other tools are done by their own functions."""
    return world.pay(key, payment.payee, payment.cents)


handlers.complete()  # a tool without a function is an error here, and not when it is called

hooks = Desk.HookSet()  # an edit by `lutum inbox` goes through them


def advance(store: Store, world: World, model: ScriptedModel) -> str | None:
    """Go on until somebody has to decide, or the conversation is over; give its answer then."""
    while True:
        run_calls(store, world)
        stored = store.load(CONVERSATION, Desk)
        session, plan = stored.session, stored.plan
        if plan is None:
            if finished := session.finished():
                return finished.answer
            match session.text_turn(model).tools(Desk).collect_sync():
                case NeedsTools(round):
                    plan = round.apply_hooks_sync(hooks)
        elif plan.is_settled:
            plan.commit(session)
            plan = None
        elif plan.suspended:
            return None
        else:
            sleep(LEASE / 10)  # a call runs elsewhere, or a process was killed in it
            continue
        # A plan that is not saved, because another process was faster, is open at the end.
        with suppress(StaleError), plan or nullcontext():
            store.save(CONVERSATION, plan, session=session, version=stored.version)


def run_calls(store: Store, world: World) -> None:
    """Run what may run, one call after the other."""
    while (claim := store.claim(Desk, id=CONVERSATION, lease=LEASE)) is not None:
        with suppress(StaleError):  # it took longer than its lease, and is somebody else's
            store.finish(claim, outcome_of(claim, store, world))


def outcome_of(claim: Claim, store: Store, world: World) -> Outcome:
    """Run a call, or find out what became of it where a process was killed in the middle."""
    call = claim.call
    if claim.in_doubt:
        print(f"  {call.name}: a process was killed in the middle of it", end="; ")
        # A second payment does no harm: the bank takes the same key for the same payment. Asking
        # it first is what one would do where a request costs something.
        paying, receipt = Desk.pay.match(call), world.find_payment(claim.key)
        if paying is not None and receipt is not None:
            print("the bank has made it")
            return paying.complete(receipt)
        if not claim.idempotent:
            print("its outcome is unknown")
            return call.indeterminate("The program was killed while the tool ran.")
        print("it is run again")
    call = store.start(claim)
    skipped = {"world": world, "key": claim.key}
    outcome = execution.execute_sync(call, skipped=skipped, handlers=handlers)
    assert isinstance(outcome, ToolResult)  # none of these tools suspends itself
    # With what it ran: somebody may have edited what the model wrote.
    print(escape_unprintable(f"  {call.name} {call.input!r}: {outcome.model_text}"))
    return outcome


def scripted(request: TurnRequest) -> AssistantTurn:
    """Stand in for a model: look at the invoices, pay them and write a letter, then report."""
    results = [item for item in request.items if isinstance(item, ToolResult)]
    if not results:
        return ScriptedModel.tool_calls((_new_id(), "list_invoices", {}))
    if len(results) == 1:
        payments = [
            (_new_id(), "pay", {"payee": each["payee"], "cents": each["cents"]})
            for each in results[0].output
        ]
        letter = {"recipient": "Initech", "text": "We dispute your invoice I-9."}
        return ScriptedModel.tool_calls(*payments, (_new_id(), "send_letter", letter))
    lines = [f"{each.name}: {each.status} ({each.model_text})" for each in results[1:]]
    return ScriptedModel.text("Done.\n" + "\n".join(lines))


def _new_id() -> str:
    return f"call_{uuid4().hex[:6]}"
