"""The desk that pays invoices: its tools, who has a say, and the loop.

`advance` is the whole loop. It can be killed anywhere and called again: whatever it does next
follows from what `store.py` has, and nothing that was begun is begun again blindly.
"""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from bank import Receipt, World
from pydantic import BaseModel, Field
from store import Store

from lutum_py import (
    AnyToolCall,
    AssistantTurn,
    CallStatus,
    Finished,
    NeedsTools,
    Skip,
    Suspend,
    SuspendTicket,
    ToolCapabilities,
    ToolEffect,
    ToolMetadata,
    ToolResult,
    Toolset,
    TurnRequest,
    execution,
    tool,
    tool_fn,
    visible,
)
from lutum_py.testing import ScriptedModel

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


class Payment(BaseModel):
    """What the model fills in to pay."""

    payee: str = Field(description="Who is paid.")
    cents: int = Field(description="How much, in cents.", gt=0)


@tool_fn(
    idempotent=True,
    capabilities=ToolCapabilities(effects=[ToolEffect("spend_money", target="payee")]),
)
def pay(payment: Payment, world: Annotated[World, Skip()], key: Annotated[str, Skip()]) -> Receipt:
    """Pay a supplier."""
    return world.pay(key, payment.payee, payment.cents)


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
    """What the model may call."""

    list_invoices = tool(list_invoices)
    pay = tool(pay)
    send_letter = tool(send_letter)


hooks = Desk.HookSet()


@hooks.gate(Desk.pay)
def ask_somebody(_metadata: ToolMetadata, input: Payment) -> Suspend:
    """Let no payment through before somebody approved it."""
    amount = f"{input.cents / 100:.2f}"
    return Suspend(SuspendTicket(action="approve_payment", message=f"Pay {input.payee} {amount}?"))


def advance(store: Store, world: World, model: ScriptedModel) -> None:
    """Go on with the conversation until it waits for somebody, or is over."""
    while True:
        session, plan = store.load(Desk)
        if plan is None:
            match session.text_turn(model).tools(Desk).collect_sync():
                case Finished(result):
                    store.save_answer(session, result.text)
                    return
                case NeedsTools(round):
                    store.save(session, round.apply_hooks_sync(hooks))
            continue

        place = f"{store.conversation_id}/{len(session.transcript)}"
        results: list[ToolResult] = []
        try:
            for call in plan.pending:
                settled = settle(call, f"{place}/{call.idempotency_key}", store, world)
                if settled is not None:
                    results.append(settled)
        except BaseException:
            plan.discard()  # the store has it as it was
            raise
        if plan.remaining():
            plan.discard()  # what waits is in the store as it was
            return
        if len(results) == len(plan.pending):
            plan.commit(session, results)
        else:
            plan.abort(session, "The program was killed while the tool ran.", results)
        store.save(session, None)


def settle(call: AnyToolCall, key: str, store: Store, world: World) -> ToolResult | None:
    """Find the result of a call, or run it; None where nobody can know what it did.

    The key is on record before the tool is run, and the result right after. A key without a result
    therefore means that a process was killed in between.
    """
    attempt = store.attempt(key, call)
    if attempt is None:
        store.start(key, call)
    elif attempt.result is not None:
        return attempt.result
    elif not call.selector.definition.idempotent:
        print(f"  {call.name}: a process was killed in the middle of it; its outcome is unknown")
        call.move_to(CallStatus.RUNNING)  # it was begun: this is how `plan.abort` knows
        return None
    else:
        # A second run does no harm: the bank takes the same key for the same payment. Asking it
        # first is what one would do where a request costs something.
        paying, receipt = Desk.pay.match(call), world.find_payment(key)
        if paying is not None and receipt is not None:
            print(f"  {call.name}: a process was killed in the middle of it; the bank has made it")
            return store.finish(key, paying.complete(receipt))
    outcome = execution.execute_sync(call, skipped={"world": world, "key": key})
    assert isinstance(outcome, ToolResult)  # none of these tools suspends itself
    print(visible(f"  {call.name} {call.metadata.arguments}: {outcome.model_text}"))
    return store.finish(key, outcome)


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
