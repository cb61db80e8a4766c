"""A support desk that may be killed anywhere: `python support.py FOLDER` goes on where it was.

Refunds over 5000 cents wait for `python support.py FOLDER decide`, in any other process.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from script import MODEL
from shop import Shop

from lutum_py import (
    NeedsTools,
    NoAnswer,
    RunNormally,
    Session,
    ToolContext,
    ToolResult,
    Toolset,
    Transcript,
    log_events,
    tool,
    tool_fn,
    visible,
)
from lutum_py.store import Store, open_store

FOLDER = Path(sys.argv[1])
SHOP = Shop(str(FOLDER / "shop.db"))


class Outcome(BaseModel):
    """How the conversation ended."""

    resolved: bool
    summary: str


@tool_fn(idempotent=True)
def find_orders(customer: str) -> list[tuple[str, int]]:
    """Find the orders of a customer: number and price in cents."""
    return SHOP.orders(customer)


@tool_fn(idempotent=True)  # by its key
def refund(order: str, cents: int, ctx: ToolContext) -> str:
    """Refund an order."""
    SHOP.refund(ctx.idempotency_key, order, cents)
    return f"refunded {cents}"


@tool_fn(idempotent=True)
def send_mail(to: str, text: str, ctx: ToolContext) -> str:
    """Send a mail."""
    SHOP.mail(ctx.idempotency_key, to, text)
    return f"sent to {to}"


class Desk(Toolset, timeout=2):
    """What the desk can do."""

    find_orders = tool(find_orders)
    refund = tool(
        refund,
        needs_approval=lambda input: input.cents > 5000,
        approval_message="Refund {cents} cents of order {order}?",
    )
    send_mail = tool(send_mail)


hooks = Desk.HookSet()


@hooks.on(Desk.send_mail)
def lower_case(_: object, input: Any) -> RunNormally[Any]:
    """Write addresses in lower case."""
    return RunNormally(input.model_copy(update={"to": input.to.lower()}))


async def advance(store: Store, id: str) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    log = log_events("desk")
    if id not in store.ids():
        session = Session(id=id)
        session.push_user("Please refund my orders. Ann")
        store.save(id, None, note=session.transcript.dump_json())
    while True:
        stored = await store.run(id, Desk, lease=1, on_event=log)
        session = Session(Transcript.load_json(stored.note), id=id)
        if stored.plan is not None:
            if not stored.plan.is_settled:
                stored.plan.discard()
                return None
            stored.plan.commit(session)
        last = session.transcript[-1]
        if isinstance(last, ToolResult) and last.name == "answer":
            print(session.transcript.usage())
            return Outcome.model_validate_json(last.arguments)
        turn = await session.text_turn(MODEL).tools(Desk).answer(Outcome).collect()
        if isinstance(turn, NoAnswer):
            session.push_user(turn.text)
        asks = turn.round if isinstance(turn, NeedsTools) else None
        plan = await asks.apply_hooks(hooks, on_event=log) if asks else None
        store.save(id, plan, note=session.transcript.dump_json(), version=stored.version)


def decide(store: Store) -> None:
    """Ask at a terminal about each refund that waits."""
    for waiting in store.waiting():
        answer = input(f"{visible(waiting.ticket.message or waiting.tool)} [y/n] ")
        store.decide(waiting.id, waiting.decide(answer == "y", by="me"), Desk)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    with open_store(FOLDER / "desk.db") as store:
        decide(store) if "decide" in sys.argv else print(asyncio.run(advance(store, "ann")))
