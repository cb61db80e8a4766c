"""The support desk in LangChain: `python desk_langchain.py FOLDER`, and the same with `decide`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain.agents.structured_output import ToolStrategy
from langchain.messages import ToolMessage
from langchain.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from model_langchain import MODEL
from pydantic import BaseModel
from shop import Shop

FOLDER = Path(sys.argv[1])
SHOP = Shop(str(FOLDER / "shop.db"))
LOG = logging.getLogger("desk")
THREAD: Any = {"configurable": {"thread_id": "ann"}}


class Outcome(BaseModel):
    """How the conversation ended."""

    resolved: bool
    summary: str


@tool
def find_orders(customer: str) -> list[tuple[str, int]]:
    """Find the orders of a customer: number and price in cents."""
    return SHOP.orders(customer)


@tool
def refund(order: str, cents: int) -> str:
    """Refund an order."""
    SHOP.refund(None, order, cents)
    return f"refunded {cents}"


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    SHOP.mail(None, to, text)
    return f"sent to {to}"


def is_large(request: Any) -> bool:
    """Tell whether somebody has to approve a refund."""
    cents = request.tool_call["args"].get("cents")
    return isinstance(cents, int) and cents > 5000


@wrap_tool_call
async def careful(request: Any, handler: Any) -> Any:
    """Write addresses in lower case, log the call, and wait no longer than two seconds."""
    call = request.tool_call
    if call["name"] == "send_mail":
        call = {**call, "args": {**call["args"], "to": call["args"]["to"].lower()}}
    LOG.info("%s %s %s", call["id"], call["name"], call["args"])
    try:
        return await asyncio.wait_for(handler(request.override(tool_call=call)), 2)
    except TimeoutError:
        return ToolMessage("It took too long.", tool_call_id=call["id"], status="error")


async def advance(file: Path, answer: Any = None) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        asks = HumanInTheLoopMiddleware(
            {"refund": {"allowed_decisions": ["approve", "reject"], "when": is_large}}
        )
        agent = create_agent(
            MODEL,
            [find_orders, refund, send_mail],
            middleware=[asks, careful],
            checkpointer=saver,
            response_format=ToolStrategy(Outcome),
        )
        state = await agent.aget_state(THREAD)
        start: Any = None  # go on from the checkpoint
        if answer and state.interrupts:
            decisions = []
            for interrupt in state.interrupts:
                for action in interrupt.value["action_requests"]:
                    yes = input(f"{action['name']} {action['args']}? [y/n] ") == "y"
                    decisions.append({"type": "approve" if yes else "reject"})
            start = Command(resume={"decisions": decisions})
        elif answer or state.interrupts:
            return None
        elif not state.values:
            start = {"messages": [{"role": "user", "content": "Please refund my orders. Ann"}]}
        done = start is None and state.values.get("structured_response") is not None
        result = state.values if done else await agent.ainvoke(start, THREAD)
        if result.get("structured_response") is None:
            return None
        usage = [m.usage_metadata for m in result["messages"] if getattr(m, "usage_metadata", 0)]
        tokens = {k: sum(each[k] for each in usage) for k in ("input_tokens", "output_tokens")}
        print(" ".join(f"{name}={many}" for name, many in tokens.items()))
        outcome: Outcome = result["structured_response"]
        return outcome


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    print(asyncio.run(advance(FOLDER / "checkpoints.db", "decide" in sys.argv)))
