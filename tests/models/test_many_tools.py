"""Tools that a model loads, by the real clients: as any provider takes it, and natively."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import Finished, Session, Toolset, tool, toolset
from lutum_py.dialects import anthropic_messages, openai_responses
from lutum_py.tools import tool_search
from tests.dialects.plain import is_array, is_object
from tests.many_tools import CrmTools, ManyTools, answer_all, ping

from .loopback import Loopback
from .said import MODEL, Payload, Said
from .wires import MODES, Wire, in_each, outcome_of

SEARCH = "tool_search"


class NativeTools(Toolset):
    """A toolset whose search has the name that the Responses API has for it."""

    ping = tool(ping)
    crm = toolset(CrmTools, deferred=True, prefix="crm_")
    more = tool(tool_search(name=SEARCH))


def script(search: str) -> list[Said]:
    return [
        Said(calls=(("c1", search, {"query": "customer"}),)),
        Said(calls=(("c2", "crm_find_customer", {"name": "Ada"}),)),
        Said(text="It is Ada."),
    ]


async def talk(wire: Wire, mode: str, server: Loopback, tools: type[Toolset], **how: Any) -> None:
    """Have the whole conversation, over the client of a mode."""
    session = Session()
    session.push_user("Who buys?")
    async with wire.client(server.url, mode) as client:
        turn = session.text_turn(wire.model(client, MODEL, **how)).tools(tools)
        answer_all(session, await outcome_of(turn, mode))
        (result,) = answer_all(session, await outcome_of(turn, mode))
        assert result.output == "Ada"
        assert isinstance(await outcome_of(turn, mode), Finished)
    assert server.refusals == []
    assert [each.name for each in tools.loaded_tools(session)] == ["crm_find_customer"]


def tools_of(body: Payload) -> list[Payload]:
    tools: list[Payload] = body["tools"]
    inner: list[Payload] | None = tools[0].get("functionDeclarations")
    return tools if inner is None else inner


@in_each("mode", MODES)
async def test_a_model_finds_a_tool_and_calls_it(wire: Wire, mode: str, server: Loopback) -> None:
    """Over every client a search loads a tool, which is offered last, and then called."""
    server.replies.extend(wire.reply(each, mode) for each in script("search_tools"))
    await talk(wire, mode, server, ManyTools)
    first, second, third = (tools_of(each.body) for each in server.received)
    assert len(first) == 2
    assert second[:2] == first
    assert third == second
    assert "crm_find_customer" in json.dumps(second[2])
    (_, found), (_, said) = wire.results(server.received[2].body)
    assert "crm_find_customer: Look up who buys from us." in found
    assert "Ada" in said


def as_search(wire: Wire, turn: Said, mode: str) -> Any:
    """Write a turn as `Wire.reply` does, with a search as the Responses API writes one."""
    if wire.dialect is not openai_responses:
        return wire.reply(turn, mode)

    def written(item: Payload) -> Payload:
        if item.get("name") != SEARCH:
            return item
        item = {key: item[key] for key in item if key != "name"}
        given = json.loads(item["arguments"] or "{}")
        return {**item, "type": f"{SEARCH}_call", "execution": "client", "arguments": given}

    def told(value: Any) -> Any:
        if is_array(value):
            return [told(each) for each in value]
        if is_object(value):
            return written({key: told(each) for key, each in value.items()})
        return value

    if not mode.startswith("stream"):
        reply = wire.reply(turn, mode)
        return type(reply)(text=json.dumps(told(json.loads(reply.text))))
    is_search = any(name == SEARCH for _, name, _ in turn.calls)
    events = [
        told(event)
        for event in wire.events(turn)
        if not (is_search and event["type"].startswith("response.function_call_arguments"))
    ]
    return wire.stream(events)


@pytest.mark.parametrize("wire", [openai_responses.NAME, anthropic_messages.NAME], indirect=True)
@in_each("mode", MODES)
async def test_natively_the_tools_stay_the_same(wire: Wire, mode: str, server: Loopback) -> None:
    """The clients that know deferred tools send the same tools with each request of it all."""
    server.replies.extend(as_search(wire, each, mode) for each in script(SEARCH))
    await talk(wire, mode, server, NativeTools, native_search=True)
    bodies = [each.body for each in server.received]
    assert bodies[0]["tools"] == bodies[1]["tools"] == bodies[2]["tools"]
    flagged = [each["name"] for each in bodies[0]["tools"] if each.get("defer_loading")]
    assert flagged == ["crm_find_customer", "crm_refund_order"]
    sent = json.dumps(bodies[2])
    assert ("tool_reference" in sent) is (wire.name == "anthropic_messages")
    assert ("tool_search_output" in sent) is (wire.name == "openai_responses")
