"""A response of the Messages API becomes a turn.

Blocks of a type that is unknown here are taken for something that the provider ran itself, and are
kept and sent back as they came: Anthropic adds server-side tools faster than clients learn them.
(Anthropic API reference: "Messages", response.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, is_mapping
from ...turns import AssistantItem, ReasoningItem, ServerToolItem, TextItem, ToolCallItem
from .._wire.reading import (
    UNKNOWN_EVENTS,
    Place,
    WireCall,
    caller_of,
    count_at,
    read_call,
    replace_texts,
    total,
    turn_from,
    without_nulls,
)
from ._facts import BLOCKS, FACTS

# The input of a call is the model's own data, nulls included.
_FREE = frozenset({"input", UNKNOWN_EVENTS})
_OF_THE_SDK = frozenset({"parsed_output", "_request_id"})


UNTIDY: Final = (b"null", b'"parsed_output"', b'"_request_id"')
"""One of these is in the JSON of each payload that `tidy` would change."""


tidy: Final = partial(without_nulls, free=_FREE, of_sdk=_OF_THE_SDK)
"""Copies a response without null fields and without what only the SDK puts there."""


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It is an error, has no content, or a field is missing or odd.
    """
    response.raise_error()
    response_id = response.text_at("id") or None
    finish_reason = response.text_at("stop_reason")
    details = response.value.get("stop_details")
    return turn_from(
        FACTS,
        response,
        list(_items(response, response_id)),
        finish_reason,
        usage_of(response),
        response_id,
        calls=calls_in(response.value),
        refusal=details.get("explanation") if is_mapping(details) else None,
        is_ended=finish_reason is not None or response_id is None,
    )


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    return BLOCKS.calls_in(payload["content"])


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    said, call_in = payload["content"], BLOCKS.call_in
    content: list[object] = [] if isinstance(said, str) else said
    payload["content"] = content
    replace_texts(content, text, _is_text, BLOCKS.text, lambda block: call_in(block) is not None)


def _is_text(block: Any) -> bool:
    return bool(block["type"] == "text")


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of the cache are counted apart on this wire."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields = usage.value
    # `input_tokens` is only what no cache had: 12 beside 8,000 read and 500 written is a request of
    # 8,512, which is what other providers report and what a limit is about.
    cached = count_at(fields, "cache_read_input_tokens")
    written = count_at(fields, "cache_creation_input_tokens")
    return Usage(
        input_tokens=total(count_at(fields, "input_tokens"), written, cached),
        output_tokens=count_at(fields, "output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=count_at(fields, "output_tokens_details", "thinking_tokens"),
        cache_write_tokens=written,
    )


def _items(response: Place, response_id: str | None) -> Iterator[AssistantItem]:
    index = 0
    content = response.need("content")
    if isinstance(content.value, str):  # as programs may write it
        yield TextItem(content.value)
        return
    blocks = content.items()
    if declined := BLOCKS.declined(content.value):
        blocks = [block for place, block in enumerate(blocks) if place not in declined]
    for block in blocks:
        kind = block.need_text("type")
        if kind == "text":
            text = block.need_text("text")
            if text:
                yield TextItem(text)
        elif kind == "thinking":
            yield ReasoningItem(block.need_text("thinking"))
        elif kind == "redacted_thinking":
            # Encrypted: there is nothing to show, but views and other models must know that
            # reasoning is here. It goes back from the payload.
            yield ReasoningItem("")
        elif kind == "tool_use":
            call = read_call(block, "input", block.text_at("id"), response_id, index)
            yield ToolCallItem(call, caller_of(block.object()))
            index += 1
        elif kind == "tool_result":
            raise block.error("a tool_result is the program's answer, which no model sends")
        else:
            yield ServerToolItem(kind, block.object())
