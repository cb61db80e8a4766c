"""Measure two pieces of work against each other, so that only the ratio means anything.

The two take turns in one process, and the time that is taken is the processor's: what else the
machine does only ever adds to it, so the least of many rounds is nearest to the truth.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Measured", "paired", "seconds"]

Work = Callable[[int], object]
"""A piece of work that repeats itself a number of times."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of measuring.

    Attributes:
        floor: Seconds that the work by hand took, once.
        ours: Seconds that the library took, once.
    """

    floor: float
    ours: float

    @property
    def ratio(self) -> float:
        """How many times the floor it is."""
        return self.ours / self.floor

    def beyond(self, less: Measured) -> Measured:
        """Give what this took more than a smaller piece of the same work."""
        return Measured(self.floor - less.floor, self.ours - less.ours)

    def share(self, parts: int) -> Measured:
        """Give what one part of the work took."""
        return Measured(self.floor / parts, self.ours / parts)


def seconds(work: Work, times: int, *, collecting: bool = False) -> float:
    """Time a piece of work, with the collector off as `timeit` has it.

    Args:
        work: The work.
        times: How often it repeats itself.
        collecting: Leave the collector on, where what it costs is part of the work.
    """
    was_on, is_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    if collecting:
        # What was there before is no part of the work.
        gc.collect()
        if not is_frozen:
            gc.freeze()
    else:
        gc.disable()
    start = time.process_time()
    work(times)
    took = time.process_time() - start
    if not is_frozen:
        gc.unfreeze()
    if was_on:
        gc.enable()
    return took


def paired(
    floor: Work,
    ours: Work,
    *,
    times: int,
    rounds: int,
    collecting: bool = False,
    before: Callable[[], object] = bool,
) -> Measured:
    """Measure the two in turns.

    Args:
        floor: The work by hand.
        ours: The same by the library.
        times: How often each repeats itself in one round.
        rounds: How many rounds.
        collecting: Leave the collector on.
        before: What is done before each of them, without being timed.
    """

    def once(work: Work, times: int) -> float:
        before()
        return seconds(work, times, collecting=collecting)

    once(floor, 1)
    once(ours, 1)
    pairs = [(once(floor, times), once(ours, times)) for _ in range(rounds)]
    return Measured(min(f for f, _ in pairs) / times, min(o for _, o in pairs) / times)
