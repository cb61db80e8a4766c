"""A response of the Messages API becomes a turn.

Blocks of a type that is unknown here are taken for something that the provider ran itself, and are
kept and sent back as they came: Anthropic adds server-side tools faster than clients learn them.
(Anthropic API reference: "Messages", response.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..._text.json import is_mapping
from ..._transcript.assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    ToolMetadata,
    Usage,
)
from .._wire.reading import (
    UNKNOWN_EVENTS,
    Place,
    caller_of,
    count_at,
    objects_in,
    own_id,
    turn_from,
)
from .._wire.replay import without_nulls
from ._facts import FACTS

# The input of a call is the model's own data, nulls included.
_FREE = frozenset({"input", UNKNOWN_EVENTS})
_OF_THE_SDK = ("parsed_output", "_request_id")


UNTIDY: Final = (b"null", b'"parsed_output"', b'"_request_id"')
"""One of these is in the JSON of each payload that `tidy` would change."""


def tidy(response: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a response without null fields and without what only the SDK puts there."""
    payload: dict[str, Any] = without_nulls(response, _FREE)
    # Were they kept, they would go back with the next request, and the API refuses a field that it
    # does not know.
    for fields in (payload, *objects_in(payload.get("content"))):
        for key in _OF_THE_SDK:
            fields.pop(key, None)
    return payload


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It is an error, has no content, or a field is missing or odd.
    """
    response.raise_error()
    response_id = response.text_at("id") or None
    finish_reason = response.text_at("stop_reason")
    items = list(_items(response, response_id))
    return turn_from(FACTS, response, items, finish_reason, usage_of(response), response_id)


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of the cache are counted apart on this wire."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields: Mapping[str, Any] = usage.value if is_mapping(usage.value) else {}
    cached = count_at(fields, "cache_read_input_tokens")
    # `input_tokens` is only what no cache had: 12 beside 8,000 read and 500 written is a request of
    # 8,512, which is what other providers report and what a limit is about.
    written = count_at(fields, "cache_creation_input_tokens")
    parts = (count_at(fields, "input_tokens"), written, cached)
    known = [part for part in parts if part is not None]
    return Usage(
        input_tokens=sum(known) if known else None,
        output_tokens=count_at(fields, "output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=count_at(fields.get("output_tokens_details"), "thinking_tokens"),
        cache_write_tokens=written,
    )


def _items(response: Place, response_id: str | None) -> Iterator[AssistantItem]:
    index = 0
    content = response.need("content")
    if isinstance(content.value, str):  # as programs may write it
        yield TextItem(content.value)
        return
    for block in content.items():
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
            yield ToolCallItem(_call(block, index, response_id), caller_of(block.object()))
            index += 1
        elif kind == "tool_result":
            raise block.error("a tool_result is the program's answer to a call, and no model's")
        else:
            yield ServerToolItem(kind, block.object())
    # A refusal is not a block on this wire, only a reason to stop, so its item is made up here.
    if response.text_at("stop_reason") == "refusal":
        details = response.get("stop_details")
        said = None if details is None else details.text_at("explanation")
        yield RefusalItem(said or "")


def _call(block: Place, index: int, response_id: str | None) -> ToolMetadata:
    name = block.need_text("name")
    return ToolMetadata(
        id=block.text_at("id") or own_id(response_id, index, name),
        name=name,
        arguments=block.written_at("input", "{}"),
    )
