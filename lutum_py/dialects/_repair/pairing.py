"""Which result answers which call, in a conversation that may be broken.

A call and a result meet by a key, which is the call id. Ids may come again in later rounds, so a
result belongs to the nearest round before it that has a call of its key; only where there is none,
to the first call after it. One pass, whatever is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Standing(NamedTuple):
    """A call or a result, and where it stands.

    Attributes:
        position: Its place in the conversation; rises from one to the next.
        key: What joins a call and its result.
        group: The round of a call; unused for a result.
    """

    position: int
    key: Hashable
    group: int = 0


@dataclass(slots=True)
class Pairing:
    """Who answers whom, by number in the lists that were given.

    Attributes:
        result_of: From a call to its result.
        call_of: From a result to its call.
        duplicates: Results whose call has one already.
        orphans: Results without any call.
    """

    result_of: dict[int, int] = field(default_factory=dict[int, int])
    call_of: dict[int, int] = field(default_factory=dict[int, int])
    duplicates: list[int] = field(default_factory=list[int])
    orphans: list[int] = field(default_factory=list[int])


class _Alike:
    """The calls of one key, in order, and which of them have a result."""

    # Ids may repeat: thousands of calls may share one. A result takes the first free call of the
    # nearest round before it; `_free` remembers for each round up to where all have one, so that
    # the pairing is one pass, and not one search through the round for each result.

    __slots__ = ("_begins", "_free", "_group", "_numbers", "_positions", "_taken")

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._numbers: list[int] = []
        self._begins: list[int] = []  # where the round of each call begins
        self._taken: list[bool] = []
        self._free: dict[int, int] = {}  # from the beginning of a round to where to look next
        self._group: int | None = None

    def add(self, number: int, call: Standing) -> None:
        is_same = call.group == self._group
        self._begins.append(self._begins[-1] if is_same else len(self._numbers))
        self._group = call.group
        self._numbers.append(number)
        self._positions.append(call.position)
        self._taken.append(False)

    def take(self, position: int) -> int | None:
        """Give the call that a result at a position answers; None where all have one."""
        # The calls stand in order, so the nearest round before a position is found by halving. Each
        # round remembers where its first call without a result may be, and never looks back: all
        # results together go over each call once.
        end = bisect_left(self._positions, position)
        if end:
            begin = self._begins[end - 1]
        else:
            begin, end = 0, len(self._positions)
        at = self._free.get(begin, begin)
        while at < end and self._taken[at]:
            at += 1
        self._free[begin] = at
        if at >= end:
            return None
        self._taken[at] = True
        return self._numbers[at]


def pair(calls: Iterable[Standing], results: Iterable[Standing]) -> Pairing:
    """Pair calls and results, both in the order of their positions.

    Example:
        >>> pair([Standing(0, "a")], [Standing(1, "a"), Standing(2, "a"), Standing(3, "b")])
        Pairing(result_of={0: 0}, call_of={0: 0}, duplicates=[1], orphans=[2])
    """
    by_key: dict[Hashable, _Alike] = {}
    for number, call in enumerate(calls):
        by_key.setdefault(call.key, _Alike()).add(number, call)
    made = Pairing()
    for number, result in enumerate(results):
        alike = by_key.get(result.key)
        if alike is None:
            made.orphans.append(number)
            continue
        call_number = alike.take(result.position)
        if call_number is None:
            made.duplicates.append(number)
        else:
            made.result_of[call_number] = number
            made.call_of[number] = call_number
    return made


# Counts go on per id: a thousand calls "a" get a_2, a_3, ..., each in one step. To begin from 2
# each time would try every number again, and a broken request could make that slow on purpose.
class FreshIds:
    """Make ids for calls whose own another call has.

    Args:
        taken: The ids that there are.

    Example:
        >>> fresh = FreshIds(["a", "a_2"])
        >>> fresh.of("a"), fresh.of("a")
        ('a_3', 'a_4')
    """

    __slots__ = ("_counts", "_taken")

    def __init__(self, taken: Iterable[str | None]) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def of(self, call_id: str) -> str:
        """Make an id that no call has yet."""
        count = self._counts.get(call_id, 1)
        # An id like "a_2" may be taken by chance; the count goes on from where it was, and not from
        # 2.
        made: str | None = None
        while made is None or made in self._taken:
            count += 1
            made = f"{call_id}_{count}"
        self._counts[call_id] = count
        self._taken.add(made)
        return made


def distinct_ids(
    ids: Iterable[str | None], taken: Iterable[str | None], fit: Callable[[str], str]
) -> Iterator[tuple[int, str, bool]]:
    """Give another id to each call whose own is refused, or is that of a call before it.

    Args:
        ids: The ids of calls, in order; None of a call that has none and needs none.
        taken: The ids that no made one may be.
        fit: Gives an id that the provider takes for one that it may refuse.

    Yields:
        The number of the call, its new id, and whether the old one is refused.

    Example:
        >>> list(distinct_ids(["a", "a", None, "b!"], (), lambda given: given.rstrip("!")))
        [(1, 'a_2', False), (3, 'b', True)]
    """
    fresh = FreshIds(taken)
    seen: set[str] = set()
    for number, given in enumerate(ids):
        if given is None:
            continue
        made = fitting = fit(given)
        if made in seen:
            made = fit(fresh.of(made))
        seen.add(made)
        if made != given:
            yield number, made, fitting != given
