"""The stored form of a transcript: `{"format": ..., "version": ..., "items": [...]}`."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import DeveloperError, TranscriptError
from .check import TranscriptCheck
from .item_json import dump_item, load_item
from .request import TranscriptItem
from .saved import dump_saved, open_saved

__all__ = ["FORMAT", "VERSION", "dump_transcript", "load_transcript"]

FORMAT = "lutum_py.transcript"
VERSION = 1


def dump_transcript(items: Iterable[TranscriptItem]) -> str:
    """Encode items, with the version of the format."""
    data = {"format": FORMAT, "version": VERSION, "items": [dump_item(item) for item in items]}
    return dump_saved(data, TranscriptError, "The transcript")


def load_transcript(text: str | bytes) -> list[TranscriptItem]:
    """Read what `dump_transcript` gave, and refuse what would be invalid."""
    saved = open_saved(
        text, form=FORMAT, versions=(VERSION,), error=TranscriptError, what="transcript"
    )
    items: list[TranscriptItem] = []
    for entry in saved.each("items"):
        try:
            items.append(load_item(entry))
        except DeveloperError as error:
            # What no program could make, this one did not save.
            raise entry.wrong("", str(error)) from None
    check = TranscriptCheck()
    try:
        check.take(items)
        check.finish()
    except ValueError as error:
        raise TranscriptError(
            f"This transcript would be invalid: {error}. A provider would refuse it."
        ) from None
    return items
