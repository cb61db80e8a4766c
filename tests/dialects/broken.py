"""What broken conversations of every wire are made of: few words, so that breaches meet."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

IDS: Final = ("a", "b", "a", "", None, 7, {"x": 1}, ["a"], "a b", "\ud83d")

NAMES: Final = ("f", "g", "f", "no such!", 7)


def fill(random: Random, made: dict[str, Any], **choices: tuple[Any, ...]) -> dict[str, Any]:
    """Give most of the fields one of their values, and leave some out."""
    for key, values in choices.items():
        if random.random() < 0.8:
            made[key] = random.choice(values)
    return made


def listed(random: Random, make: Callable[[Random], Any], *instead: Any) -> Any:
    """Make a list of up to four, or what stands in its place."""
    many = [make(random) for _ in range(random.randint(0, 4))]
    return random.choice((many, many, many, make(random), *instead))
