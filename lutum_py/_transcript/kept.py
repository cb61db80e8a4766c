"""What was worked out from the items of a transcript, so that nobody works it out again.

A transcript only grows, so all of it holds for good. Nothing of it is saved, copied or compared.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .request import TranscriptItem

V = TypeVar("V")


class Latest(Generic[V]):
    """Keep a few values by key, and let go of the one that was not asked for longest.

    What is taken is gone until it is put back, so that two threads never work on one value.

    Args:
        most: How many are kept.

    Example:
        >>> kept = Latest[int](2)
        >>> for number in range(3):
        ...     kept.put(number, number)
        >>> kept.take(0), kept.take(2), kept.take(2)
        (None, 2, None)
    """

    __slots__ = ("_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Any, V] = {}

    def take(self, key: object) -> V | None:
        """Take a value out; None where there is none."""
        return self._values.pop(key, None)

    def put(self, key: object, value: V) -> None:
        """Put a value in, as the latest."""
        self._values[key] = value
        if len(self._values) > self._most:
            # From a list, which is made at one go: threads that put at once would end an iterator.
            for oldest in list(self._values)[: -self._most]:
                self._values.pop(oldest, None)


# A dialect that renders 200 items for each request would spend most of a turn on what it rendered
# before. Kept here, the next request renders the items that are new.
class Kept:
    """Hold what is kept of one transcript.

    Attributes:
        renderings: What was rendered of it, by dialect and what is in front.
        fronts: What is in front, by view.
        ledger: How much there is to read in its items, once somebody wanted to know.
        counted: The same, by the function that counted last.
        loaded: Which deferred tools it has loaded, by offer.
    """

    __slots__ = ("counted", "fronts", "ledger", "loaded", "renderings")

    def __init__(self) -> None:
        self.renderings: Latest[Any] = Latest(2)
        self.fronts: Latest[Any] = Latest(4)
        # Who makes a toolset for each turn keeps no more of them alive.
        self.loaded: Latest[Any] = Latest(8)
        # Of types that stand above this folder, each known to the one who puts it here.
        self.ledger: Any = None
        self.counted: Any = None


class Growing:
    """Hold items to which others are only ever added, and what was worked out from them."""

    __slots__ = ("__weakref__", "_items", "_kept")

    _items: list[TranscriptItem]
    _kept: Kept | None

    @property
    def kept(self) -> Kept:
        """What was worked out from the items; it goes with this very transcript."""
        kept = self._kept
        if kept is None:
            kept = self._kept = Kept()
        return kept
