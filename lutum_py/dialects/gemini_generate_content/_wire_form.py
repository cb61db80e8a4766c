"""What a model says in the form of `generateContent`, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, is_object
from .._wire_form import (
    Said,
    WireForm,
    as_object,
    cost_of,
    end_of,
    halves,
    object_of,
    objects,
    of_role,
    rest_of,
    said_call,
)


def _response(turn: AssistantTurn, number: int) -> JsonObject:
    parts: list[JsonObject] = [{"text": turn.text}] if turn.text else []
    for call in turn.tool_calls:
        named = {"name": call.name, "args": as_object(call.arguments)}
        # The API itself leaves ids out.
        parts.append({"functionCall": {"id": call.id, **named} if call.id else named})
    content = {"role": "model", "parts": parts}
    reason = end_of(turn, "SAFETY", "MAX_TOKENS", "STOP")
    return {
        "responseId": f"r{number}",
        "modelVersion": "scripted",
        "candidates": [{"index": 0, "content": content, "finishReason": reason}],
        **cost_of(turn, "usageMetadata", _usage),
    }


def _usage(usage: Usage) -> JsonObject:
    return {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "candidatesTokenCount": rest_of(usage.output_tokens, usage.reasoning_tokens),
    }


def _events(response: Mapping[str, object]) -> Iterator[JsonObject]:
    candidates = objects(response.get("candidates"))
    if not candidates:  # the question was blocked, and nothing was said
        yield dict(response)
        return
    candidate = candidates[0]
    content = object_of(candidate.get("content"))
    parts: list[JsonObject] = []
    for part in objects(content.get("parts")):
        # A signature is for the part that it comes with, so such a text is not halved.
        text = "" if "thoughtSignature" in part else part.get("text")
        parts += [{**part, "text": half} for half in halves(text)] if text else [part]
    for part in parts[:-1]:
        started = {"index": 0, "content": {**content, "parts": [part]}}
        yield {**response, "candidates": [started]}
    end = {**candidate, "finishReason": candidate.get("finishReason") or "STOP"}
    if parts:
        end["content"] = {**content, "parts": parts[-1:]}
    yield {**response, "candidates": [end]}


def _said(messages: Iterable[object]) -> Iterator[Said]:
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
