"""What is sent of deferred tools has the form of recorded requests that providers took."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import AssistantTurn, Message, ToolDef, ToolMetadata, ToolResult, TurnRequest
from lutum_py.dialects import anthropic_messages, openai_responses
from lutum_py.tools import tool_search
from lutum_py.turns import DeferredTools

from .plain import is_array, objects
from .recordings import Recording, answered, recordings

RATES = ToolDef.from_json_schema(
    name="get_exchange_rate", description="Look it up.", input_schema={"type": "object"}
)
CALL = ToolMetadata(id="c1", name="tool_search", arguments='{"query": "rates"}')
SEARCH = tool_search(name="tool_search").definition
REQUEST = TurnRequest(
    items=[
        Message("user", "What is the rate?"),
        AssistantTurn(tool_calls=[CALL]),
        ToolResult(
            id="c1",
            name="tool_search",
            arguments=CALL.arguments,
            result='["get_exchange_rate"]',
        ),
    ],
    tools=(SEARCH, RATES),
    deferred=DeferredTools((RATES,), ("get_exchange_rate",), frozenset({"tool_search"})),
)


def searched_by_the_client(one: Recording) -> bool:
    """The program ran the search and loaded something, and the provider took that."""
    return (
        answered(one) and "defer_loading" in str(one.request) and bool(loading_items(one.request))
    )


def is_loaded(item: dict[str, Any]) -> bool:
    if item.get("type") == "tool_search_output":
        return item.get("execution") == "client"
    content = item.get("content") if item.get("type") == "tool_result" else None
    return is_array(content) and "tool_reference" in str(content)


def loading_items(body: Any) -> list[dict[str, Any]]:
    """The items of a request that load tools."""
    found: list[dict[str, Any]] = []
    for said in objects(body.get("messages") or body["input"]):
        found += filter(is_loaded, objects(said.get("content")) or [said])
    return found


def shape(value: Any) -> Any:
    """The keys of what loads a tool, and those of what it holds."""
    inner = value.get("content") or value.get("tools")
    kept = {key for key in value if key not in ("is_error", "id")}
    return kept, [set(each) - {"description", "strict"} for each in inner[:1]]


@pytest.mark.parametrize("module", [anthropic_messages, openai_responses])
def test_what_loads_a_tool_is_as_recorded(module: Any) -> None:
    """The items that load tools, and deferred tools, have the keys of some that were accepted."""
    taken = recordings(module.NAME, searched_by_the_client)
    body = module.encode_request(REQUEST, native_search=True)
    (own,) = loading_items(body)
    assert shape(own) in [shape(each) for one in taken for each in loading_items(one.request)]
    deferred = [each for each in body["tools"] if each.get("defer_loading")]
    assert [each["name"] for each in deferred] == ["get_exchange_rate"]
    assert all(
        set(deferred[0]) == set(tool)
        for one in taken
        for tool in one.request["tools"]
        if tool.get("defer_loading")
    )


def test_the_search_of_the_program_is_declared_as_recorded() -> None:
    """The Responses API took a search with execution, description and parameters, and no name."""

    def declared(tools: Any) -> list[set[str]]:
        found = [each for each in tools if each.get("type") == "tool_search"]
        return [set(each) for each in found if each.get("execution") == "client"]

    taken = recordings(
        openai_responses.NAME, lambda one: answered(one) and bool(one.request.get("tools"))
    )
    accepted = [each for one in taken for each in declared(one.request["tools"])]
    body = openai_responses.encode_request(REQUEST, native_search=True)
    assert accepted
    assert all(each == accepted[0] for each in accepted)
    assert declared(body["tools"]) == accepted[:1]
