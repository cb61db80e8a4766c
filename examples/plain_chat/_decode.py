"""From a response to a turn."""

from __future__ import annotations

from collections.abc import Iterator

from lutum_py import AssistantTurn, ToolMetadata
from lutum_py.dialects.authoring import DecodedResponse, Place
from lutum_py.turns import AssistantItem, TextItem, ToolCallItem

from ._facts import FACTS


def turn_of(response: Place) -> AssistantTurn:
    """Read a response.

    Raises:
        DialectError: It is an error, or a field is missing or odd.
    """
    response.raise_error()
    reason = response.text_at("end")
    items = list(_items(response.need("message")))
    return DecodedResponse(items, reason, response.text_at("id")).turn(FACTS, response)


def _items(message: Place) -> Iterator[AssistantItem]:
    text = message.text_at("content")
    if text:
        yield TextItem(text)
    for call in message.items_at("calls"):
        yield ToolCallItem(
            ToolMetadata(
                id=call.need("id").text(),
                name=call.need("name").text(),
                arguments=call.text_at("arguments") or "",
            )
        )
