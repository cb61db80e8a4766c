"""The support desk, whose model writes programs: `python support.py FOLDER [decide]`."""

import asyncio
import logging
import sys
from contextlib import suppress

from pydantic import BaseModel
from script import MODEL
from shop import Shop

from lutum_py import NeedsTools, NoAnswer, ToolContext, Toolset, tool, tool_fn, toolset
from lutum_py.code import program_tool
from lutum_py.flow import Policy, output
from lutum_py.sinks import escape_unprintable, log_events
from lutum_py.store import Store, open_store

SHOP = Shop(f"{sys.argv[1]}/shop.db") if sys.argv[1:] else sys.exit(__doc__)


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


class Calls(Toolset, timeout=2):
    """What programs may call."""

    find_orders = tool(find_orders)
    refund = tool(refund, needs_approval=lambda input: input.cents > 5000)
    send_mail = tool(send_mail, rule=lambda to: {"to": to.lower()})


class Desk(Toolset):
    """What the model is offered: programs alone."""

    calls = toolset(Calls, off=True)
    run_program = tool(program_tool(Calls, keep="replay"))


POLICY = Policy(Desk)  # number and price of a refund have to stand in the shop's lists
POLICY.fill(Calls.refund, ["order", "cents"], output(Calls.find_orders, path="[][]"))


async def advance(store: Store, id: str) -> Outcome | str:
    """Go on as far as possible, to the answer or to what is to be done first."""
    async with store.hold(id, Desk, lease=1) as desk:
        if not desk.session.transcript:
            desk.session.push_user("Please refund my orders. Ann")
        (hooks := Desk.HookSet()).gate()(POLICY.gate(desk.session))
        while not await desk.run(hooks=hooks, on_event=log_events("desk")):
            desk.commit()
            if (end := desk.session.finished(Outcome)) is not None:
                print(desk.session.transcript.usage())
                return end.answer
            outcome = await desk.session.text_turn(MODEL).tools(Desk).answer(Outcome).collect()
            if isinstance(outcome, NeedsTools):
                desk.save(outcome.round.plan())
            elif isinstance(outcome, NoAnswer):
                desk.session.push_user(outcome.text)
    return "Somebody has to decide first: run this again with `decide` at the end."


def decide(store: Store) -> None:
    """Ask at a terminal about each refund that waits."""
    for waiting in store.waiting():
        print(*(escape_unprintable(it.arguments["code"], kept="\n") for it in waiting.ancestors))
        yes = input(f"{waiting.question} [y/n] ") == "y"
        store.decide(waiting.id, waiting.decide(yes, by="me"), Desk, on_event=log_events("desk"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    with suppress(EOFError), open_store(f"{sys.argv[1]}/desk.db") as store:
        decide(store) if "decide" in sys.argv else print(asyncio.run(advance(store, "ann")))
