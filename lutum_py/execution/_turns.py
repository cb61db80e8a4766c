"""Whose turn it is to begin: calls of a run, as places become free and what they wait for ends."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Self


class Turns:
    """Choose which call begins next: first the one with the longest chain of others behind it.

    Args:
        count: How many calls there are.
        limit: How many may run at once.
        waits: For each call the places of earlier ones that it waits for; None where none waits.

    Attributes:
        running: How many run now.
    """

    __slots__ = ("_behind", "_chain", "_left", "_limit", "_ready", "running")

    def __init__(
        self, count: int, limit: int, waits: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.running = 0
        self._limit = limit
        self._left = [0] * count if waits is None else [len(each) for each in waits]
        self._behind: list[list[int]] = [] if waits is None else [[] for _ in waits]
        # For `waits` of `[[], [], [1], [2]]` the chains are `[0, -2, -1, 0]`: place 1 has two
        # others behind it and begins before place 0. Counted down, so that the smallest of the heap
        # is the longest.
        self._chain = [0] * count
        if waits is not None:
            for place in reversed(range(count)):
                for before in waits[place]:
                    self._behind[before].append(place)
                    self._chain[before] = min(self._chain[before], self._chain[place] - 1)
        self._ready: list[tuple[int, int]] = []
        for place, left in enumerate(self._left):
            if not left:
                heappush(self._ready, (self._chain[place], place))

    def __iter__(self) -> Self:
        """Go through the calls that begin now; more may, once one of them has ended."""
        return self

    def __next__(self) -> int:
        if not self._ready or self.running >= self._limit:
            raise StopIteration
        self.running += 1
        return heappop(self._ready)[1]

    def ended(self, place: int, *, is_answered: bool) -> None:
        """Take note that a call has ended; one without an answer lets nothing behind it begin."""
        self.running -= 1
        for each in self._behind[place] if self._behind and is_answered else ():
            self._left[each] -= 1
            if not self._left[each]:
                heappush(self._ready, (self._chain[each], each))

    def stop(self) -> None:
        """Let nothing begin any more."""
        self._ready.clear()
