"""A response of OpenAI Responses becomes a turn, item by item in the order in which they came.

Function and custom tool calls are the program's to answer. Whatever else the model asked for, the
provider runs itself, or it has a form that only the provider knows: it is kept as a server item.
(OpenAI API reference: "The response object".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..._text.json import compact_json
from ..._transcript.assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    Usage,
)
from ..._transcript.metadata import ToolMetadata
from .._wire.reading import UNKNOWN_EVENTS, Place, objects_in, own_id
from .._wire.replay import without_nulls
from ._facts import FACTS, NAME

__all__ = ["CALLS", "items_of_output", "metadata_of", "tidy", "turn_of", "usage_of"]

CALLS: Final[Mapping[str, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that the program answers, and where each has the text that the model wrote."""

# What users and models wrote may hold nulls that mean something.
_FREE = frozenset(
    {
        "arguments",
        "attributes",
        "metadata",
        "output_schema",
        "parameters",
        "schema",
        UNKNOWN_EVENTS,
    }
)


def tidy(response: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a response without null fields and without what only the SDK puts there."""
    payload: dict[str, Any] = without_nulls(response, _FREE)
    for item in objects_in(payload.get("output")):
        item.pop("parsed_arguments", None)
        for part in objects_in(item.get("content")):
            part.pop("parsed", None)
    return payload


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It failed, or a field is missing or odd.
    """
    failed = response.get("error")
    if failed is not None:
        raise failed.reported()
    status = response.text_at("status")
    if status == "failed":
        raise response.error("the response failed, and the provider does not say why")
    response_id = response.text_at("id") or None
    details = response.get("incomplete_details")
    finish_reason = (None if details is None else details.text_at("reason")) or status
    items = list(items_of_output(response.need("output").items(), response_id))
    return AssistantTurn(
        items=items,
        finish_reason=finish_reason,
        usage=usage_of(response),
        model=response.text_at("model"),
        request_id=response_id,
        dialect=NAME,
        payload=response.value,
        cut_off=FACTS.cut_off(finish_reason, items),
    )


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost."""
    usage = response.get("usage")
    if usage is None:
        return None
    return Usage(
        input_tokens=usage.count_at("input_tokens"),
        output_tokens=usage.count_at("output_tokens"),
        cached_tokens=usage.count_at("input_tokens_details", "cached_tokens"),
        reasoning_tokens=usage.count_at("output_tokens_details", "reasoning_tokens"),
    )


def items_of_output(output: Iterable[Place], response_id: str | None) -> Iterator[AssistantItem]:
    """Read the items of an output."""
    calls = 0
    for item in output:
        kind = item.text_at("type") or "message"
        if kind in CALLS:
            yield ToolCallItem(metadata_of(item, kind, calls, response_id))
            calls += 1
        elif kind == "message":
            yield from _message(item)
        elif kind == "reasoning":
            yield ReasoningItem(_reasoning(item))
        else:
            yield ServerToolItem(kind, item.object())


def metadata_of(item: Place, kind: str, index: int, response_id: str | None) -> ToolMetadata:
    """Read a call, which is the one of its number in the turn."""
    name = item.need("name").text()
    text = item.object().get(CALLS[kind])
    return ToolMetadata(
        id=item.text_at("call_id") or own_id(response_id, index, name),
        name=name,
        arguments=text if isinstance(text, str) else "" if text is None else compact_json(text),
    )


def _message(item: Place) -> Iterator[AssistantItem]:
    for part in item.items_at("content"):
        kind = part.text_at("type")
        if kind == "output_text":
            text = part.need("text").text()
            if text:
                yield TextItem(text)
        elif kind == "refusal":
            yield RefusalItem(part.need("refusal").text())


def _reasoning(item: Place) -> str:
    for key, between in (("content", ""), ("summary", "\n\n")):
        shown = between.join(part.text_at("text") or "" for part in item.items_at(key))
        if shown:
            return shown
    return ""
