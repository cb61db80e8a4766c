"""Conversations of each wire, made at random from few words, so that breaches meet."""

from __future__ import annotations

from random import Random
from typing import Any

from .every_dialect import KEYS, OF_LIBRARY, wire_of


def broken_request(dialect: str, random: Random) -> Any:
    """Make a body, or its list alone."""
    make = wire_of(dialect if dialect in OF_LIBRARY else "openai_chat").broken
    said = [make(random) for _ in range(random.randint(0, 7))]
    return said if random.random() < 0.5 else {KEYS[dialect]: said}
