"""What a model says in the form of the Messages API, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, compact_json
from .._wire_form import (
    Said,
    WireForm,
    as_object,
    cost_of,
    end_of,
    halves,
    objects,
    of_role,
    rest_of,
    said_call,
)


def _response(turn: AssistantTurn, number: int) -> JsonObject:
    content: list[JsonObject] = []
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
        "stop_reason": end_of(turn, "refusal", "max_tokens", reason),
        "usage": {"input_tokens": 0, "output_tokens": 0},
        **cost_of(turn, "usage", _usage),
    }


def _usage(usage: Usage) -> JsonObject:
    read, written = usage.cached_tokens, usage.cache_write_tokens
    return {
        "input_tokens": rest_of(usage.input_tokens, read, written),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _events(response: Mapping[str, object]) -> Iterator[JsonObject]:
    if response.get("type") == "error":
        yield dict(response)
        return
    started: JsonObject = {**response, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": started}
    for index, block in enumerate(objects(response.get("content"))):
        empty: JsonObject = block
        deltas: list[JsonObject] = []
        if block.get("type") == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": half} for half in halves(block["text"])]
        elif block.get("type") == "thinking":
            signed = {"signature": block["signature"]} if "signature" in block else {}
            empty = {**block, "thinking": "", **dict.fromkeys(signed, "")}
            thought = halves(str(block.get("thinking", "")))
            deltas = [{"type": "thinking_delta", "thinking": half} for half in thought]
            deltas += [{"type": "signature_delta", **signed}] if signed else []
        elif block.get("type") == "tool_use":
            text = compact_json(block.get("input"))
            empty = dict(block, input={})
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves(text)]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {key: response.get(key) for key in ("stop_reason", "stop_sequence")}
    usage = response.get("usage") or {"output_tokens": 0}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def _said(messages: Iterable[object]) -> Iterator[Said]:
    for message in of_role(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, str):
            yield Said(content)
        for block in objects(content):
            if block.get("type") == "tool_use":
                yield said_call(block.get("id"), block.get("name"), block.get("input"))
            elif block.get("type") == "text":
                yield Said(str(block.get("text", "")))


WIRE_FORM: Final = WireForm(_response, _said, lambda body: [body], _events, {"/v1/messages": None})
