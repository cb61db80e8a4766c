"""How long plans take: with turns as they are, and with a scheduler that knows every duration.

`python -m tests.execution.makespan PLANS SEED` prints the mean times, relative to the latter.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from heapq import heappop, heappush
from random import Random

from lutum_py._round.sorted_calls import waits_for
from lutum_py._schema.capabilities import ResourceAccess
from lutum_py.execution._batch import Schedule


def by_turns(waits: Sequence[Sequence[int]], seconds: Sequence[float], limit: int) -> float:
    """The time that a plan takes, by the turns that a run gives its calls."""
    turns = Schedule(len(waits), limit, waits)
    going: list[tuple[float, int]] = []
    now = 0.0
    while True:
        for place in turns:
            heappush(going, (now + seconds[place], place))
        if not going:
            return now
        now, place = heappop(going)
        turns.ended(place, is_answered=True)


def by_list(waits: Sequence[Sequence[int]], seconds: Sequence[float], limit: int) -> float:
    """The time by list scheduling: first whichever has the longest way behind it, in seconds."""
    count = len(waits)
    way = [*seconds]
    for place in reversed(range(count)):
        for before in waits[place]:
            way[before] = max(way[before], seconds[before] + way[place])
    ended: set[int] = set()
    left, going, now = set(range(count)), list[tuple[float, int]](), 0.0
    while left or going:
        free = sorted((-way[at], at) for at in left if ended.issuperset(waits[at]))
        for _, place in free[: limit - len(going)]:
            left.remove(place)
            heappush(going, (now + seconds[place], place))
        now, place = heappop(going)
        ended.add(place)
    return now


def in_groups(waits: Sequence[Sequence[int]], seconds: Sequence[float], limit: int) -> float:
    """The time where each group waits for all of the one before it."""
    group: list[int] = []
    for each in waits:
        group.append(max((group[at] + 1 for at in each), default=0))
    total = 0.0
    for number in range(max(group) + 1):
        members = [at for at, each in enumerate(group) if each == number]
        total += by_turns([()] * len(members), [seconds[at] for at in members], limit)
    return total


def random_plan(random: Random) -> tuple[list[list[int]], list[float], int]:
    """What the calls of a plan wait for, how long each takes, and how many may run at once."""
    targets = [f"src/{at}.py" for at in range(random.randint(1, 12))] + ["src"]
    calls = [
        [ResourceAccess("files", random.choice(targets), random.random() < 0.5)]
        for _ in range(random.randint(2, 24))
    ]
    seconds = [random.choice((random.expovariate(1), random.uniform(0.5, 1.5))) for _ in calls]
    return waits_for(calls), seconds, random.randint(2, 8)


def ratios(plans: int, seed: int) -> tuple[float, float, float]:
    """The mean times by turns, in groups and one after the other, to that of list scheduling."""
    random = Random(seed)
    sums = [0.0, 0.0, 0.0, 0.0]
    for _ in range(plans):
        waits, seconds, limit = random_plan(random)
        best = by_list(waits, seconds, limit)
        for at, each in enumerate(
            (by_turns(waits, seconds, limit), in_groups(waits, seconds, limit), sum(seconds), best)
        ):
            sums[at] += each
    return sums[0] / sums[3], sums[1] / sums[3], sums[2] / sums[3]


if __name__ == "__main__":
    told = ratios(int(sys.argv[1]), int(sys.argv[2]))
    print(*(f"{way} {each:.3f}" for way, each in zip(("turns", "groups", "serial"), told)))  # noqa: B905
