"""What is sent of a transcript: a sequence that copies nothing of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final, cast, overload

from .kept import Growing
from .message import Message
from .request import TranscriptItem


# Compared by identity: what is kept for a front is found without comparing its items.
# For a transcript of ten items of which 2 to 5 became one summary: items (0, 1, summary) at
# positions (0, 1, 2), places (0, 1, 2), and end 6, from where the transcript goes out as it is.
@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """Say what goes out in place of the first items of a transcript.

    Attributes:
        items: What goes out.
        positions: The place in the transcript of each.
        places: Where each counts as standing when an ephemeral message looks for its place: all
            that goes out for a span stands where it began.
        end: The first item of the transcript that goes out as it is, with all after it.
        changed: For each cut its first item, and how long the transcript was when it was made.
    """

    items: tuple[TranscriptItem, ...]
    positions: tuple[int, ...]
    places: tuple[int, ...]
    end: int
    changed: tuple[tuple[int, int], ...] = ()

    def is_changed_before(self, position: int) -> bool:
        """Tell whether something before an item was cut after the item was said."""
        return any(start <= position < at for start, at in self.changed)


NO_FRONT: Final = Front((), (), (), 0)


class TranscriptView(Sequence[TranscriptItem]):
    """The first items of a transcript, with ephemeral ones in between; not a copy.

    A transcript only grows, so a view of its first items never changes.

    Attributes:
        transcript: What it is a view of.
        base_length: How many of its items belong to the view.
        ephemeral: Pairs of a place in the transcript and the item that is before it, in order.
        front: What goes out in place of its first items.
    """

    __slots__ = ("base_length", "ephemeral", "front", "transcript")

    def __init__(
        self,
        transcript: Growing,
        base_length: int,
        ephemeral: tuple[tuple[int, Message], ...] = (),
        front: Front = NO_FRONT,
    ) -> None:
        self.transcript: Growing = transcript
        self.base_length: int = base_length
        self.ephemeral: tuple[tuple[int, Message], ...] = ephemeral
        self.front: Front = front

    @property
    def base_count(self) -> int:
        """How many items there are, without ephemeral ones."""
        return len(self.front.items) + self.base_length - self.front.end

    def __len__(self) -> int:
        return self.base_count + len(self.ephemeral)

    def index_of(self, place: int) -> int:
        """Return the index, among the items without ephemeral ones, of the first at a place."""
        front = self.front
        if place < front.end:
            return bisect_left(front.places, place)
        return len(front.items) + min(place, self.base_length) - front.end

    def numbered(self, start: int, stop: int) -> Iterator[tuple[int, TranscriptItem]]:
        """Go through a part of the items, ephemeral ones aside; give each with its place."""
        front, items = self.front, self.transcript._items
        known = len(front.items)
        if start < known:
            yield from zip(front.positions[start:stop], front.items[start:stop], strict=True)
        # After the front every index is off by the same: if items 2 to 5 went out as one, index 3
        # is position 6, so `moved` is 3.
        moved = front.end - known
        for position in range(max(start, known) + moved, stop + moved):
            yield position, items[position]

    def __iter__(self) -> Iterator[TranscriptItem]:
        if not self.ephemeral and not self.front.end:
            return islice(iter(self.transcript._items), self.base_length)
        return self._merged()

    def _merged(self) -> Iterator[TranscriptItem]:
        start = 0
        for place, message in self.ephemeral:
            stop = self.index_of(place)
            for _, item in self.numbered(start, stop):
                yield item
            yield message
            start = stop
        for _, item in self.numbered(start, self.base_count):
            yield item

    @overload
    def __getitem__(self, index: int) -> TranscriptItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TranscriptItem]: ...
    def __getitem__(self, index: int | slice) -> TranscriptItem | Sequence[TranscriptItem]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        length = len(self)
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            raise IndexError(f"item {index} of {length}")
        # Each ephemeral message moves what follows it by one. There are few, so they are counted.
        for number, (place, message) in enumerate(self.ephemeral):
            at = self.index_of(place) + number
            if position == at:
                return message
            if position < at:
                return self._at(position - number)
        return self._at(position - len(self.ephemeral))

    def _at(self, index: int) -> TranscriptItem:
        front = self.front
        known = len(front.items)
        if index < known:
            return front.items[index]
        return self.transcript._items[index - known + front.end]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(a == b for a, b in zip(self, others, strict=True))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<view of {len(self)} items>"

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))
