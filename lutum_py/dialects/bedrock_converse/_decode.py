"""A response of Converse becomes a turn.

The response names neither itself nor its model. The id of the request stands among what boto3 says
about the answer; the model, if it is known, is put beside the output as `modelId`, the word of
requests for it. What a model ran by a tool of the provider is kept and sent back as it came, as is
a block of a kind that is unknown here. (Amazon Bedrock API reference: "Converse", response.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, is_mapping, shorten
from ...turns import AssistantItem, ReasoningItem, ServerToolItem, TextItem, ToolCallItem
from .._wire.reading import (
    UNKNOWN_EVENTS,
    Place,
    WireCall,
    count_at,
    read_call,
    replace_texts,
    total,
    turn_from,
    without_nulls,
)
from ._facts import BLOCKS, FACTS, FREE, without_bytes

META: Final = "ResponseMetadata"

_FREE: Final = FREE | {UNKNOWN_EVENTS}


def tidy(response: Mapping[str, Any]) -> JsonObject:
    """Copy a response without null fields, without bytes, and without the headers of HTTP."""
    payload: JsonObject = without_nulls(without_bytes(response), _FREE)
    # boto3 puts the headers of the answer here, which would be saved with every turn. The id of the
    # request is what support asks for.
    meta = payload.pop(META, None)
    if is_mapping(meta) and "RequestId" in meta:
        payload[META] = {"RequestId": meta["RequestId"]}
    return payload


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It is an error, has no message, or a field is missing or odd.
    """
    response.raise_error()
    meta = response.get(META)
    request_id = None if meta is None else meta.text_at("RequestId") or None
    finish_reason = response.text_at("stopReason")
    items = list(_items(response.need("output").need("message"), request_id))
    return turn_from(
        FACTS,
        response,
        items,
        finish_reason,
        usage_of(response),
        request_id,
        calls=calls_in(response.value),
        model_at="modelId",
        is_ended=finish_reason is not None or request_id is None,
    )


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    return BLOCKS.calls_in(payload["output"]["message"]["content"])


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    content, call_in = payload["output"]["message"]["content"], BLOCKS.call_in
    replace_texts(content, text, _is_text, BLOCKS.text, lambda block: call_in(block) is not None)


def _is_text(block: Any) -> bool:
    return "text" in block or "citationsContent" in block


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of the cache are counted apart on this wire."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields = usage.value
    cached = count_at(fields, "cacheReadInputTokens")
    written = count_at(fields, "cacheWriteInputTokens")
    return Usage(
        input_tokens=total(count_at(fields, "inputTokens"), written, cached),
        output_tokens=count_at(fields, "outputTokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def _items(message: Place, request_id: str | None) -> Iterator[AssistantItem]:
    calls = 0
    for block in message.need("content").items():
        fields = block.object()
        # A block is told by its only key; with two it would be a matter of their order which one
        # counts.
        if len(fields) != 1:
            raise block.error(f"expected an object with one key, got {shorten(fields)}")
        (kind,) = fields
        inner = block.need(kind)
        if kind == "text":
            if text := inner.text():
                yield TextItem(text)
        elif kind == "citationsContent":
            yield TextItem(
                "".join(part.text_at("text") or "" for part in inner.items_at("content"))
            )
        elif kind == "reasoningContent":
            shown = inner.get("reasoningText")
            # Where the thinking itself is left out, only its signature comes.
            yield ReasoningItem("" if shown is None else shown.text_at("text") or "")
        # A call with a `type`, as in {"toolUse": {"type": "server_tool_use", ...}}, was run by the
        # provider.
        elif kind not in ("toolUse", "toolResult") or inner.text_at("type") is not None:
            inner.object()
            yield ServerToolItem(kind, fields)
        elif kind == "toolUse":
            call_id = inner.text_at("toolUseId")
            yield ToolCallItem(read_call(inner, "input", call_id, request_id, calls))
            calls += 1
        else:
            raise block.error("a toolResult is the program's answer, which no model sends")
