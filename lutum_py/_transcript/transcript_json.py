"""The stored form of a transcript: `{"format": ..., "version": ..., "items": [...]}`.

The form of each item stands beside the item.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import TranscriptError
from .assistant import dump_turn, load_turn
from .check import checked, is_in_order
from .message import Message, dump_message, load_message
from .request import TranscriptItem
from .result import ToolResult, dump_result, load_result
from .saved import Saved, dump_saved, open_saved

FORMAT = "lutum_py.transcript"
VERSION = 1


def dump_transcript(items: Iterable[TranscriptItem]) -> str:
    """Encode items, with the version of the format."""
    data = {"format": FORMAT, "version": VERSION, "items": [_dump_item(item) for item in items]}
    return dump_saved(data, TranscriptError, "The transcript")


def load_transcript(text: str | bytes) -> list[TranscriptItem]:
    """Read what `dump_transcript` gave, and refuse what would be invalid."""
    saved = open_saved(
        text, form=FORMAT, versions=(VERSION,), error=TranscriptError, what="transcript"
    )
    items = [load_item(entry) for entry in saved.each("items")]
    # An invalid transcript would be refused by a provider at the next request, with a message about
    # a position in a body. Here the place in the text is known, and what to do.
    faults = [] if is_in_order(items) else checked(items).faults
    if faults:
        first, more = faults[0], len(faults) - 1
        others = f" ({more} more of its items {'is' if more == 1 else 'are'} wrong)" if more else ""
        raise TranscriptError(
            f"This transcript would be invalid: {first.position}: {first.problem}{others}. "
            f"A provider would refuse it. {first.remedy}; `lutum repair` does what can be done."
        )
    return items


def _dump_item(item: TranscriptItem) -> dict[str, Any]:
    if isinstance(item, Message):
        return dump_message(item)
    return dump_result(item) if isinstance(item, ToolResult) else dump_turn(item)


def load_item(saved: Saved) -> TranscriptItem:
    """Read an item of any kind."""
    kind = saved.get("type", str)
    if kind == "message":
        return load_message(saved)
    if kind == "tool_result":
        return load_result(saved)
    if kind == "assistant":
        return load_turn(saved)
    raise saved.wrong("type", f"{kind!r} is none of message, assistant, tool_result")
