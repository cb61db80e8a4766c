"""A support desk that may be killed anywhere: `python support.py FOLDER` goes on where it was.

Refunds over 5000 cents wait for `python support.py FOLDER decide`, in any other process.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from pydantic import BaseModel
from script import MODEL
from shop import Shop

from lutum_py import NeedsTools, NoAnswer, Session, ToolContext, Toolset, tool, tool_fn
from lutum_py.sinks import log_events
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
    refund = tool(refund, needs_approval=lambda input: input.cents > 5000)
    send_mail = tool(send_mail)


hooks = Desk.HookSet()


@hooks.on_args(Desk.send_mail)
def lower_case(to: str, text: str, ctx: ToolContext) -> dict[str, str]:
    """Write addresses in lower case."""
    return {"to": to.lower()}


async def advance(store: Store, id: str) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    log = log_events("desk")
    if id not in store.ids():
        session = Session()
        session.push_user("Please refund my orders. Ann")
        store.save(id, None, session=session)
    while True:
        stored = await store.run(id, Desk, lease=1, on_event=log)
        session, plan = stored.session, stored.plan
        if plan is not None:
            if not plan.is_settled:
                return None
            plan.commit(session)
        if finished := session.finished(Outcome):
            print(session.transcript.usage())
            return finished.answer
        plan = None
        match await session.text_turn(MODEL).tools(Desk).answer(Outcome).collect():
            case NeedsTools(round):
                plan = await round.apply_hooks(hooks, on_event=log)
            case NoAnswer(text=text):
                session.push_user(text)
        store.save(id, plan, session=session, version=stored.version)


def decide(store: Store) -> None:
    """Ask at a terminal about each refund that waits."""
    for waiting in store.waiting():
        yes = input(f"{waiting.question} [y/n] ") == "y"
        store.decide(waiting.id, waiting.decide(yes, by="me"), Desk, on_event=log_events("desk"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    with open_store(FOLDER / "desk.db") as store:
        decide(store) if "decide" in sys.argv else print(asyncio.run(advance(store, "ann")))
