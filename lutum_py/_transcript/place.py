"""The place of a round in its conversation: after so many items, the last of which is known.

A round that was opened in one place and committed in another would answer what nobody asked there.
The place is told by the number of items and the digest of the last, so that a branch of the
conversation, or one that was saved and loaded, is the same place. Where the transcript is at hand,
all that was said in it counts.
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

    def is_behind(
        self, items: Sequence[TranscriptItem], said: Sequence[TranscriptItem] | None = None
    ) -> bool:
        """Whether these items begin with those that the round is behind.

        Args:
            items: The items of a conversation.
            said: Those of the conversation in which the round was opened, if they are at hand:
                without them, only the last one is compared.
        """
        if not self.length or items is said:
            return True
        if len(items) < self.length:
            return False
        # The same object, nearly always; after loading, an equal one, which is told by its digest.
        last = items[self.length - 1]
        if not (last is self._last or digest_of_item(last) == self.digest):
            return False
        return said is None or all(map(_are_alike, said[: self.length], items))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Place, (self.length, None, self.digest))


def _are_alike(one: TranscriptItem, other: TranscriptItem) -> bool:
    return one is other or digest_of_item(one) == digest_of_item(other)


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
