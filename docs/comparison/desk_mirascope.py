"""The support desk in Mirascope: `python desk_mirascope.py FOLDER`, and the same with `decide`."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirascope import llm
from model_mirascope import MODEL
from pydantic import BaseModel
from shop import Shop

FOLDER = Path(sys.argv[1])
SHOP = Shop(str(FOLDER / "shop.db"))
LOG = logging.getLogger("desk")


class Outcome(BaseModel):
    """How the conversation ended."""

    resolved: bool
    summary: str


@dataclass
class Saved:
    """What has to be kept while somebody decides."""

    messages: list[llm.Message]
    outputs: dict[str, llm.ToolOutput[Any]] = field(default_factory=dict)
    answers: dict[str, bool] = field(default_factory=dict)
    tokens: tuple[int, int] = (0, 0)


@llm.tool
async def find_orders(customer: str) -> list[tuple[str, int]]:
    """Find the orders of a customer: number and price in cents."""
    return await asyncio.to_thread(SHOP.orders, customer)


@llm.tool
async def refund(order: str, cents: int) -> str:
    """Refund an order."""
    await asyncio.to_thread(SHOP.refund, None, order, cents)
    return f"refunded {cents}"


@llm.tool
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    await asyncio.to_thread(SHOP.mail, None, to, text)
    return f"sent to {to}"


TOOLS = llm.AsyncToolkit([find_orders, refund, send_mail])


def arguments_of(call: llm.ToolCall) -> dict[str, Any]:
    """Read the arguments of a call, where they can be read, with the address in lower case."""
    try:
        arguments: dict[str, Any] = json.loads(call.args)
    except ValueError:
        return {}
    if call.name == "send_mail":
        arguments["to"] = arguments["to"].lower()
        call.args = json.dumps(arguments)
    return arguments


def is_large(call: llm.ToolCall) -> bool:
    """Tell whether somebody has to approve a refund."""
    cents = arguments_of(call).get("cents")
    return call.name == "refund" and isinstance(cents, int) and cents > 5000


async def execute(call: llm.ToolCall, approved: bool) -> llm.ToolOutput[Any]:
    """Run a call, for two seconds at most."""
    if not approved:
        return llm.ToolOutput(id=call.id, name=call.name, result="Somebody said no.")
    arguments_of(call)
    LOG.info("%s %s %s", call.id, call.name, call.args)
    try:
        return await asyncio.wait_for(TOOLS.execute(call), 2)
    except TimeoutError:
        return llm.ToolOutput(id=call.id, name=call.name, result="It took too long.")


def pending(saved: Saved) -> list[llm.ToolCall]:
    """Give the calls of the last turn that have no output yet."""
    last = saved.messages[-1]
    calls = [part for part in last.content if getattr(part, "type", "") == "tool_call"]
    return [call for call in calls if call.id not in saved.outputs]


async def advance(file: Path) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    if file.exists():
        saved: Saved = pickle.loads(file.read_bytes())
    else:
        saved = Saved(messages=[llm.messages.user("Please refund my orders. Ann")])
    while True:
        if saved.messages[-1].role == "user":
            response = await MODEL.call_async(saved.messages, tools=TOOLS, format=Outcome)
            saved.messages = list(response.messages)
            if response.usage:
                used = (response.usage.input_tokens, response.usage.output_tokens)
                saved.tokens = (saved.tokens[0] + used[0], saved.tokens[1] + used[1])
            if not response.tool_calls:
                print("input_tokens={} output_tokens={}".format(*saved.tokens))
                return response.parse()
        ready = [call for call in pending(saved) if not is_large(call) or call.id in saved.answers]
        runs = [execute(call, saved.answers.get(call.id, True)) for call in ready]
        saved.outputs |= {output.id: output for output in await asyncio.gather(*runs)}
        waits = pending(saved)
        if not waits:
            saved.messages.append(llm.messages.user(list(saved.outputs.values())))
            saved.outputs = {}
        file.write_bytes(pickle.dumps(saved))
        if waits:
            return None


def decide(file: Path) -> None:
    """Ask at a terminal about each refund that waits."""
    saved: Saved = pickle.loads(file.read_bytes())
    for call in pending(saved):
        saved.answers[call.id] = input(f"{call.name} {call.args}? [y/n] ") == "y"
    file.write_bytes(pickle.dumps(saved))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    state = FOLDER / "saved.pickle"
    decide(state) if "decide" in sys.argv else print(asyncio.run(advance(state)))
