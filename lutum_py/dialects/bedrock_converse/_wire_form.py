"""What a model says in the form of Converse, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, compact_json
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
    content: list[JsonObject] = [{"text": turn.text}] if turn.text else []
    for at, call in enumerate(turn.tool_calls):
        call_id = call.id or f"given_{number}_{at}"
        fields = {"name": call.name, "input": as_object(call.arguments)}
        content.append({"toolUse": {"toolUseId": call_id, **fields}})
    reason = "tool_use" if turn.tool_calls else "end_turn"
    return {
        "ResponseMetadata": {"RequestId": f"r{number}"},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": end_of(turn, "content_filtered", "max_tokens", reason),
        **cost_of(turn, "usage", _usage),
    }


def _usage(usage: Usage) -> JsonObject:
    read, written = usage.cached_tokens, usage.cache_write_tokens
    return {
        "inputTokens": rest_of(usage.input_tokens, read, written),
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": written,
        "outputTokens": usage.output_tokens,
    }


def _events(response: Mapping[str, Any]) -> Iterator[JsonObject]:
    message = response["output"]["message"]
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(objects(message.get("content"))):
        at = {"contentBlockIndex": index}
        call = object_of(block.get("toolUse"))
        reasoning = object_of(object_of(block.get("reasoningContent")).get("reasoningText"))
        deltas: list[JsonObject] = [block]
        if call:
            start = {key: value for key, value in call.items() if key != "input"}
            yield {"contentBlockStart": {**at, "start": {"toolUse": start}}}
            text = compact_json(call.get("input"))
            deltas = [{"toolUse": {"input": half}} for half in halves(text)]
        elif "text" in block:
            deltas = [{"text": half} for half in halves(block["text"])]
        elif reasoning:
            pieces = [{"text": half} for half in halves(str(reasoning.get("text", "")))]
            pieces += [{"signature": reasoning["signature"]}] if "signature" in reasoning else []
            deltas = [{"reasoningContent": piece} for piece in pieces]
        for delta in deltas:
            yield {"contentBlockDelta": {**at, "delta": delta}}
        yield {"contentBlockStop": at}
    yield {"messageStop": {"stopReason": response.get("stopReason")}}
    yield {"metadata": {"usage": response.get("usage") or _NO_USAGE}}


_NO_USAGE: Final = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def _said(messages: Iterable[object]) -> Iterator[Said]:
    for message in of_role(messages, "assistant"):
        for block in objects(message.get("content")):
            call = object_of(block.get("toolUse"))
            if call:
                yield said_call(call.get("toolUseId"), call.get("name"), call.get("input"))
            elif "text" in block:
                yield Said(str(block["text"]))


WIRE_FORM: Final = WireForm(_response, _said, lambda body: [body["output"]["message"]], _events)
