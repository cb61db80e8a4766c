"""What a model says in the form of `generateContent`, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..._text.json import is_object
from ..._transcript.assistant import AssistantTurn
from .._wire_form import Said, WireForm, as_object, halves, objects, of_role, said_call


def _response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for call in turn.tool_calls:
        named = {"name": call.name, "args": as_object(call.arguments)}
        # The API itself leaves ids out.
        parts.append({"functionCall": {"id": call.id, **named} if call.id else named})
    content = {"role": "model", "parts": parts}
    reason = "MAX_TOKENS" if turn.is_truncated else "STOP"
    return {
        "responseId": f"r{number}",
        "modelVersion": "scripted",
        "candidates": [{"index": 0, "content": content, "finishReason": reason}],
    }


def _events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    candidate = response["candidates"][0]
    parts: list[dict[str, Any]] = []
    for part in objects(candidate["content"].get("parts")):
        text = part.get("text")
        parts += [{**part, "text": half} for half in halves(text)] if text else [part]
    for part in parts:
        content = {"role": "model", "parts": [part]}
        yield {**response, "candidates": [{"index": 0, "content": content}]}
    end = {"index": 0, "finishReason": candidate.get("finishReason", "STOP")}
    yield {**response, "candidates": [end]}


def _said(messages: Iterable[Any]) -> Iterator[Said]:
    for content in of_role(messages, "model"):
        for part in objects(content.get("parts")):
            call = part.get("functionCall")
            if is_object(call):
                yield said_call(call.get("id"), call.get("name"), call.get("args"))
            elif isinstance(part.get("text"), str):
                yield Said(part["text"])


WIRE_FORM: Final = WireForm(
    _response,
    _said,
    lambda body: [body["candidates"][0]["content"]],
    _events,
    {":generateContent": False, ":streamGenerateContent": True},
)
