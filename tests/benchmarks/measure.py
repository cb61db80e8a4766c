"""Measure two pieces of work against each other, so that only the ratio means anything.

The two take turns in one process: whatever else the machine does meets both. The ratio is the
median of the ratios of neighbours.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

__all__ = ["Measured", "paired", "seconds"]

Work = Callable[[int], object]
"""A piece of work that repeats itself a number of times."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of measuring.

    Attributes:
        floor: Seconds that the work by hand took, once.
        ours: Seconds that the library took, once.
        ratio: The median of the paired ratios.
    """

    floor: float
    ours: float
    ratio: float


def seconds(work: Work, times: int) -> float:
    """Time a piece of work, with the collector off as `timeit` has it."""
    was_on = gc.isenabled()
    gc.disable()
    start = time.perf_counter()
    work(times)
    took = time.perf_counter() - start
    if was_on:
        gc.enable()
    return took


def paired(floor: Work, ours: Work, *, times: int, rounds: int) -> Measured:
    """Measure the two in turns.

    Args:
        floor: The work by hand.
        ours: The same by the library.
        times: How often each repeats itself in one round.
        rounds: How many rounds.
    """
    floor(1)
    ours(1)
    pairs = [(seconds(floor, times), seconds(ours, times)) for _ in range(rounds)]
    return Measured(
        floor=median(f for f, _ in pairs) / times,
        ours=median(o for _, o in pairs) / times,
        ratio=median(o / f for f, o in pairs),
    )
