"""The place of a round in its conversation: after so many items, the last of which is known.

A round that was opened in one place and committed in another would answer what nobody asked there.
The place is told by the number of items and the digest of the last, so that a branch of the
conversation, or one that was saved and loaded, is the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._text.json import digest_of
from .message import Message
from .request import TranscriptItem
from .result import ToolResult


# `Place(4, digest="sha256:…")`: after four items, the last of which is this one. A reference to
# the transcript would not outlive a save, and the number alone would take any conversation of four
# items for this one.
class Place:
    """Say where in a transcript a round was opened.

    Attributes:
        length: How many items there were.
    """

    # The last item, as long as nobody asked for its digest: most rounds end where they began.
    __slots__ = ("_digest", "_last", "length")

    def __init__(
        self, length: int, last: TranscriptItem | None = None, digest: str | None = None
    ) -> None:
        self.length: int = length
        self._last = last
        self._digest = digest

    @property
    def digest(self) -> str:
        """The digest of the last item; empty if there was none."""
        if self._digest is None:
            self._digest = "" if self._last is None else digest_of_item(self._last)
        return self._digest

    def is_end_of(self, items: Sequence[TranscriptItem]) -> bool:
        """Whether these items are those that the round is behind, and no more."""
        return len(items) == self.length and self.is_behind(items)

    def is_behind(self, items: Sequence[TranscriptItem]) -> bool:
        """Whether these items begin with those that the round is behind."""
        if not self.length:
            return True
        if len(items) < self.length:
            return False
        # The same object, nearly always; after loading, an equal one, which is told by its digest.
        last = items[self.length - 1]
        return last is self._last or digest_of_item(last) == self.digest

    def __reduce__(self) -> tuple[Any, ...]:
        return (Place, (self.length, None, self.digest))


def digest_of_item(item: TranscriptItem) -> str:
    """Return what tells an item from another: the same after it was saved and loaded."""
    if isinstance(item, Message):
        # Without payload and usage: some stores change these, and the place stays the same.
        return digest_of([item.role, item.text])
    if isinstance(item, ToolResult):
        answered = (item.id, item.name, item.arguments)
        return digest_of([*answered, item.result, item.status, item.message])
    return digest_of(
        [item.text, [[call.id, call.name, call.arguments] for call in item.tool_calls]]
    )
