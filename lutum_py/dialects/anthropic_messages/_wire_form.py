"""What a model says in the form of the Messages API, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..._transcript.assistant import AssistantTurn
from .._wire_form import Said, WireForm, as_object, objects, of_role, said_call


def _response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    content += [
        {
            "type": "tool_use",
            "id": call.id or f"given_{number}_{at}",
            "name": call.name,
            "input": as_object(call.arguments),
        }
        for at, call in enumerate(turn.tool_calls)
    ]
    reason = "tool_use" if turn.tool_calls else "end_turn"
    return {
        "id": f"r{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "max_tokens" if turn.is_truncated else reason,
    }


def _said(messages: Iterable[Any]) -> Iterator[Said]:
    for message in of_role(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, str):
            yield Said(content)
        for block in objects(content):
            if block.get("type") == "tool_use":
                yield said_call(block.get("id"), block.get("name"), block.get("input"))
            elif block.get("type") == "text":
                yield Said(str(block.get("text", "")))


WIRE_FORM: Final = WireForm(_response, _said, lambda body: [body])
