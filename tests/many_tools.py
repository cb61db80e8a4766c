"""A toolset with more tools than a model is to read at once, and short ways to search it."""

from __future__ import annotations

import json
from typing import Any, cast

from lutum_py import (
    NeedsTools,
    Session,
    ToolDef,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.tools import tool_search


@tool_fn
def ping() -> str:
    """Answer."""
    return "pong"


@tool_fn
def find_customer(name: str) -> str:
    """Look up who buys from us.

    Args:
        name: The surname, or a part of it.
    """
    return name


@tool_fn
def refund_order(order_id: str, reason: str = "") -> str:
    """Pay money back.

    Args:
        order_id: Which purchase.
        reason: Why the buyer is unhappy.
    """
    return order_id + reason


@tool_fn
def drop_database() -> str:
    """Remove every customer and every order."""
    return "gone"


class CrmTools(Toolset):
    """Customers and their orders."""

    find_customer = tool(find_customer)
    refund_order = tool(refund_order)
    drop_database = tool(drop_database, off=True)


class ManyTools(Toolset):
    ping = tool(ping)
    crm = toolset(CrmTools, deferred=True, prefix="crm_")
    search_tools = tool(tool_search())
    forecast = tool(
        ToolDef.from_json_schema(
            name="forecast",
            description="Tell the weather.",
            input_schema={
                "type": "object",
                "properties": {
                    "place": {
                        "type": "object",
                        "properties": {
                            "town": {"description": "Where it rains.", "type": "string"}
                        },
                    }
                },
            },
        ),
        deferred=True,
    )


ON = ["ping", "search_tools"]
DEFERRED = ["crm_find_customer", "crm_refund_order", "forecast"]


def asked(query: str, id: str = "s1", name: str = "search_tools") -> ToolMetadata:
    """What a model sends to search."""
    return ToolMetadata(id=id, name=name, arguments=json.dumps({"query": query}))


def found(*names: Any, id: str = "s1", name: str = "search_tools", **more: Any) -> ToolResult:
    """The result of a search, whoever made it."""
    return ToolResult(id=id, name=name, arguments="{}", result=json.dumps(list(names)), **more)


def answer_all(session: Session, outcome: Any) -> list[ToolResult]:
    """Run the calls of a turn as a plain loop does, and commit what they come to."""
    assert isinstance(outcome, NeedsTools)
    plan = cast("NeedsTools[Toolset]", outcome).round.plan()
    results = [call.call_sync() for call in plan.pending]
    plan.commit(session, results)
    return results
