"""How the provider writes what a model says, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lutum_py import AssistantTurn
from lutum_py.dialects.authoring import Said, WireForm, halves, objects, of_role, said_call


def _response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    calls = [
        {"id": call.id or f"given_{number}_{at}", "name": call.name, "arguments": call.arguments}
        for at, call in enumerate(turn.tool_calls)
    ]
    message = {"role": "assistant", "content": turn.text, "calls": calls}
    end = "filtered" if turn.is_blocked else "limit" if turn.is_truncated else "stop"
    return {"id": f"r{number}", "message": message, "end": end}


def _said(messages: Iterable[Any]) -> Iterator[Said]:
    for message in of_role(messages, "assistant"):
        if message.get("content"):
            yield Said(str(message["content"]))
        for call in objects(message.get("calls")):
            yield said_call(call.get("id"), call.get("name"), call.get("arguments"))


def _events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message = response["message"]
    for half in halves(message["content"] or ""):
        yield {"content": half}
    for call in message["calls"]:
        yield {"call": {"id": call["id"], "name": call["name"]}}
        for half in halves(call["arguments"]):
            yield {"arguments": half}
    yield {"end": response["end"]}


WIRE_FORM = WireForm(_response, _said, lambda response: [response["message"]], _events)
