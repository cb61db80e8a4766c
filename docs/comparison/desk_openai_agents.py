"""The support desk in OpenAI Agents: `python desk_openai_agents.py FOLDER`, and with `decide`."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunState,
    Tool,
    function_tool,
    set_tracing_disabled,
)
from agents.tool_context import ToolContext
from model_openai_agents import MODEL
from pydantic import BaseModel
from shop import Shop

FOLDER = Path(sys.argv[1])
SHOP = Shop(str(FOLDER / "shop.db"))
LOG = logging.getLogger("desk")
set_tracing_disabled(True)


class Outcome(BaseModel):
    """How the conversation ended."""

    resolved: bool
    summary: str


async def is_large(ctx: RunContextWrapper[Any], params: dict[str, Any], call_id: str) -> bool:
    """Tell whether somebody has to approve a refund."""
    cents = params.get("cents")
    return isinstance(cents, int) and cents > 5000


@function_tool(timeout=2)
async def find_orders(customer: str) -> list[tuple[str, int]]:
    """Find the orders of a customer: number and price in cents."""
    return await asyncio.to_thread(SHOP.orders, customer)


@function_tool(timeout=2, needs_approval=is_large)
async def refund(order: str, cents: int) -> str:
    """Refund an order."""
    await asyncio.to_thread(SHOP.refund, None, order, cents)
    return f"refunded {cents}"


@function_tool(timeout=2)
async def send_mail(to: str, text: str) -> str:
    """Send a mail, to an address in lower case."""
    await asyncio.to_thread(SHOP.mail, None, to.lower(), text)
    return f"sent to {to.lower()}"


class Log(RunHooks[Any]):
    """A line for each call that is about to run."""

    async def on_tool_start(self, context: Any, agent: Agent[Any], tool: Tool) -> None:
        """Log what the model asked for."""
        if isinstance(context, ToolContext):
            LOG.info("%s %s %s", context.tool_call_id, tool.name, context.tool_arguments)


agent = Agent("desk", model=MODEL, tools=[find_orders, refund, send_mail], output_type=Outcome)


async def advance(file: Path) -> Outcome | None:
    """Go on as far as possible; None where somebody has to decide first."""
    start: Any = "Please refund my orders. Ann"
    if file.exists():
        start = await RunState.from_string(agent, file.read_text())
    config = RunConfig(tool_not_found_behavior="return_error_to_model")
    result = await Runner.run(agent, start, hooks=Log(), run_config=config)
    if result.interruptions:
        file.write_text(result.to_state().to_string())
        return None
    usage = result.context_wrapper.usage
    print(f"input_tokens={usage.input_tokens} output_tokens={usage.output_tokens}")
    return result.final_output_as(Outcome)


async def decide(file: Path) -> None:
    """Ask at a terminal about each refund that waits."""
    state = await RunState.from_string(agent, file.read_text())
    for item in state.get_interruptions():
        if input(f"{item.name} {item.arguments}? [y/n] ") == "y":
            state.approve(item)
        else:
            state.reject(item)
    file.write_text(state.to_string())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    saved = FOLDER / "state.json"
    asyncio.run(decide(saved)) if "decide" in sys.argv else print(asyncio.run(advance(saved)))
