"""Turns of a model, which the wires of `tests/dialects/wire` write each in its own way."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any, Final

Payload = dict[str, Any]

MODEL: Final = "model-1"
SIGNATURE: Final = "c2lnbmVkLys+Pw=="


@dataclass(frozen=True, slots=True)
class Said:
    """One turn.

    Attributes:
        text: What the model writes.
        calls: Triples of call id, wire name and arguments; arguments as text are sent as they are,
            where the wire has a text for them.
        refusal: The words with which the model refuses; providers have each their way to say so.
        cut_off: Whether the limit on tokens ended it.
        blocked: Whether a filter ended it.
    """

    text: str = ""
    calls: tuple[tuple[str, str, Payload | str], ...] = ()
    refusal: str = ""
    cut_off: bool = False
    blocked: bool = False


def written(arguments: Payload | str) -> str:
    """Give arguments as text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


async def outcome_of(turn: Any, mode: str) -> Any:
    """End a turn in one of the four ways: async or sync, whole or streamed."""
    ended = getattr(turn, mode)()
    if mode.startswith("stream"):
        ended = ended.collect()
    return await ended if inspect.isawaitable(ended) else ended
