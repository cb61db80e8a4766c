"""The items of a transcript on their way to the wire, and what may not stand in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..._text.json import shorten
from ..._transcript.assistant import AssistantTurn
from ..._transcript.message import Message
from ..._transcript.request import TranscriptItem
from ..._transcript.result import ToolResult
from ...errors import MisuseError

__all__ = ["rendered_items"]


def rendered_items(items: Iterable[TranscriptItem]) -> Iterator[tuple[str, TranscriptItem]]:
    """Go through what is to be rendered; give each item with its position.

    Raises:
        MisuseError: It is a plan or another thing that holds items, or an item is none.

    Example:
        >>> list(rendered_items([Message("user", "Hello")]))
        [('items[0]', Message(role='user', text='Hello', attachments=()))]
    """
    refusal = _refusal(items)
    if refusal is not None:
        raise MisuseError(refusal)
    for index, item in enumerate(items):
        if not isinstance(item, AssistantTurn | ToolResult | Message):
            raise MisuseError(
                f"Expected a Message, AssistantTurn or ToolResult at items[{index}], got "
                f"{shorten(item)}. Pass a committed round, or the items of a transcript."
            )
        yield f"items[{index}]", item


def _refusal(items: Any) -> str | None:
    """Say what to pass instead; a class far above is told by what it has."""
    name = type(items).__name__
    if isinstance(items, AssistantTurn | ToolResult | Message):
        return f"Items are passed as a list, also where there is only one: `[{name}(...)]`."
    if hasattr(items, "__iter__"):
        return None
    said = f"Expected a committed round, or a list of items, got {shorten(items)}"
    if hasattr(items, "resolve") or hasattr(items, "round"):
        return (
            f"{said}: its calls have no results yet. Pass `plan.resolve(results)`, or the round "
            "that `plan.commit(session, results)` gives."
        )
    if hasattr(items, "transcript"):
        return f"{said}. Pass its `transcript`."
    return (
        f"{said}. Pass what `plan.resolve(results)` gives, or a list of Message, AssistantTurn and "
        "ToolResult."
    )
