"""The stored form of a transcript: `{"format": ..., "version": ..., "items": [...]}`.

The form of each item is beside the item; that of a turn is in `turn_json`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import TranscriptError
from .assistant import AssistantTurn
from .check import checked
from .message import Message, dump_message, load_message
from .metadata import ToolMetadata
from .request import TranscriptItem
from .result import ToolResult, dump_result, load_result
from .saved import Saved, dump_saved, open_saved
from .turn_json import dump_turn, load_turn

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
    items: list[TranscriptItem] = []
    # The calls of the last turn, the next one to be answered at the end: `pop` takes it off in one
    # step. Nearly every transcript that is loaded is right, and is then not looked at by `checked`.
    waiting: list[ToolMetadata] = []
    is_right = True
    for entry in saved.each("items"):
        call = waiting.pop() if waiting else None
        item = load_item(entry, call)
        items.append(item)
        if isinstance(item, ToolResult):
            is_right = is_right and call is not None and item.answers(call)
        else:
            is_right = is_right and call is None
            if isinstance(item, AssistantTurn):
                waiting = [*reversed(item.tool_calls)]
                if len(waiting) > 1:
                    is_right = is_right and len({each.id for each in waiting}) == len(waiting)
    # An invalid transcript would be refused by a provider at the next request, with a message about
    # a position in a body. Here the place in the text is known, and what to do.
    if waiting or not is_right:
        faults = checked(items).faults
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


def load_item(saved: Saved, call: ToolMetadata | None = None) -> TranscriptItem:
    """Read an item of any kind; with the call that has to be answered next, if there is one."""
    kind = saved.data.get("type")
    if kind == "tool_result":
        return load_result(saved, call)
    if kind == "assistant":
        return load_turn(saved)
    if kind == "message":
        return load_message(saved)
    kind = saved.get("type", str)  # which says so where it is not text
    raise saved.wrong("type", f"{kind!r} is none of message, assistant, tool_result")
