"""What a model says in the form of Responses, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..._transcript.assistant import AssistantTurn
from .._wire_form import Said, WireForm, objects, said_call


def _response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if turn.text:
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        message = {
            "type": "message",
            "id": f"m{number}",
            "role": "assistant",
            "status": "completed",
        }
        output.append({**message, "content": [part]})
    output += [
        {
            "type": "function_call",
            "id": f"f{number}_{at}",
            "call_id": call.id or f"given_{number}_{at}",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for at, call in enumerate(turn.tool_calls)
    ]
    status: dict[str, Any] = {"status": "completed"}
    if turn.is_truncated:
        status = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {
        "id": f"r{number}",
        "object": "response",
        "model": "scripted",
        "output": output,
        **status,
    }


def _said(messages: Iterable[Any]) -> Iterator[Said]:
    for item in objects(list(messages)):
        if item.get("type") == "function_call":
            yield said_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        elif item.get("role") == "assistant":
            content = item.get("content")
            if isinstance(content, str):
                yield Said(content)
            for part in objects(content):
                yield Said(str(part.get("text", "")))


WIRE_FORM: Final = WireForm(_response, _said, lambda body: body["output"])
