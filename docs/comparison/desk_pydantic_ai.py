"""The support desk in Pydantic AI: `python desk_pydantic_ai.py FOLDER`, and with `decide`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from model_pydantic_ai import MODEL
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    RunContext,
    RunUsage,
)
from pydantic_ai.capabilities import Hooks
from shop import Shop

FOLDER = Path(sys.argv[1])
SHOP = Shop(str(FOLDER / "shop.db"))
LOG = logging.getLogger("desk")


class Outcome(BaseModel):
    """How the conversation ended."""

    resolved: bool
    summary: str


class Saved(BaseModel):
    """What has to be kept while somebody decides."""

    messages: list[ModelMessage]
    requests: DeferredToolRequests
    results: DeferredToolResults | None = None


hooks = Hooks()


@hooks.on.before_tool_execute(tools=["send_mail"])
async def lower_case(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
    """Write addresses in lower case."""
    return {**args, "to": args["to"].lower()}


@hooks.on.before_tool_execute
async def note(ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
    """Log what is about to run."""
    LOG.info("%s %s %s", call.tool_call_id, call.tool_name, args)
    return args


agent = Agent(
    MODEL, output_type=[Outcome, DeferredToolRequests], capabilities=[hooks], tool_timeout=2
)


@agent.tool_plain
def find_orders(customer: str) -> list[tuple[str, int]]:
    """Find the orders of a customer: number and price in cents."""
    return SHOP.orders(customer)


@agent.tool
def refund(ctx: RunContext, order: str, cents: int) -> str:
    """Refund an order."""
    if cents > 5000 and not ctx.tool_call_approved:
        raise ApprovalRequired
    SHOP.refund(None, order, cents)
    return f"refunded {cents}"


@agent.tool_plain
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    SHOP.mail(None, to, text)
    return f"sent to {to}"


async def advance(file: Path) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    if file.exists():
        saved = Saved.model_validate_json(file.read_text())
        if saved.results is None:
            return None
        result = await agent.run(
            message_history=saved.messages, deferred_tool_results=saved.results
        )
    else:
        result = await agent.run("Please refund my orders. Ann")
    if isinstance(result.output, DeferredToolRequests):
        saved = Saved(messages=result.all_messages(), requests=result.output)
        file.write_text(saved.model_dump_json())
        return None
    usage = RunUsage()
    for message in result.all_messages():
        if message.kind == "response":
            usage.incr(message.usage)
    print(f"input_tokens={usage.input_tokens} output_tokens={usage.output_tokens}")
    return result.output


def decide(file: Path) -> None:
    """Ask at a terminal about each refund that waits."""
    saved = Saved.model_validate_json(file.read_text())
    saved.results = DeferredToolResults()
    for call in saved.requests.approvals:
        answer = input(f"{call.tool_name} {call.args}? [y/n] ")
        saved.results.approvals[call.tool_call_id] = answer == "y"
    file.write_text(saved.model_dump_json())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    state = FOLDER / "saved.json"
    decide(state) if "decide" in sys.argv else print(asyncio.run(advance(state)))
