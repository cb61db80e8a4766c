"""Which result answers which call, in a conversation that may be broken.

A call and a result meet by a key, which is the call id. Ids may come again in later rounds, so a
result belongs to the nearest round before it that has a call of its key; only where there is none,
to the first call after it. One pass, whatever is wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field

__all__ = ["Pairing", "Standing", "pair", "unused_id"]


@dataclass(frozen=True, slots=True)
class Standing:
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


def pair(calls: Iterable[Standing], results: Iterable[Standing]) -> Pairing:
    """Pair calls and results, both in the order of their positions.

    Example:
        >>> pair([Standing(0, "a")], [Standing(1, "a"), Standing(2, "a"), Standing(3, "b")])
        Pairing(result_of={0: 0}, call_of={0: 0}, duplicates=[1], orphans=[2])
    """
    by_key: dict[Hashable, list[tuple[int, int, int]]] = {}
    for number, call in enumerate(calls):
        by_key.setdefault(call.key, []).append((call.position, number, call.group))
    made = Pairing()
    for number, result in enumerate(results):
        alike = by_key.get(result.key)
        if alike is None:
            made.orphans.append(number)
            continue
        after = bisect_left(alike, (result.position, -1, -1))
        begin = end = after
        if after:
            while begin and alike[begin - 1][2] == alike[after - 1][2]:
                begin -= 1
        else:
            end = len(alike)
        free = (call for _, call, _ in alike[begin:end] if call not in made.result_of)
        call_number = next(free, None)
        if call_number is None:
            made.duplicates.append(number)
        else:
            made.result_of[call_number] = number
            made.call_of[number] = call_number
    return made


def unused_id(call_id: str, taken: Collection[str | None]) -> str:
    """Make an id for the second of two calls that share one.

    Example:
        >>> unused_id("a", ["a", "a_2"])
        'a_3'
    """
    count = 2
    while f"{call_id}_{count}" in taken:
        count += 1
    return f"{call_id}_{count}"
