"""Whether a turn was made by another model than the one that is asked now.

Reasoning goes back to the model that made it, and to hardly any other: it is signed, encrypted, or
in a field of one host. Each dialect leaves out what its provider ties to a model, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from ..._transcript.assistant import AssistantTurn
from .losses import Loss

ModelNames: TypeAlias = str | Iterable[str] | None
"""The name of a model, or all names that one model is known by."""

# A date in the ways of the providers, the word for the newest, a revision: of recorded traffic,
# `gpt-5-2025-08-07`, `claude-sonnet-4-0`, `claude-haiku-4-5@20251001`, `gemini-2.0-flash-001`.
_NO_DIFFERENCE: Final = re.compile(
    r"(?:[-@:](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{8}|\d{4}|00\d|0|v\d+(?::\d+)?))++$"
)
# `models/` of Gemini, also behind the path of a project; the vendor in the names of Bedrock.
_IN_FRONT: Final = re.compile(r"^(?:.*\bmodels/|(?:[a-z-]+\.)?anthropic\.)")
_WORDS: Final = re.compile(r"[-._@: ]+")


@lru_cache(maxsize=512)
def _plain(name: str) -> tuple[str, ...]:
    """Give what tells a model: hosts write its words in one order or another.

    >>> _plain("anthropic/claude-sonnet-4-5") == _plain("anthropic/claude-4.5-sonnet-20250929")
    True
    """
    core = _NO_DIFFERENCE.sub("", _IN_FRONT.sub("", name.lower()))
    return tuple(sorted(_WORDS.split(core)))


def names_of(model: ModelNames) -> tuple[str, ...]:
    """Take one name, or several, or none."""
    if model is None:
        return ()
    return (model,) if isinstance(model, str) else tuple(model)


def told_apart(turn: AssistantTurn, names: tuple[str, ...]) -> bool:
    """Tell whether a turn is of another model; where one of them is not known, it is the same.

    Example:
        >>> turn = AssistantTurn(text="Hi", model="gpt-5-2025-08-07")
        >>> told_apart(turn, ("gpt-5",)), told_apart(turn, ("gpt-5-mini",))
        (False, True)
    """
    if not names or turn.model is None or turn.model in names:
        return False
    made_by = _plain(turn.model)
    return all(_plain(name) != made_by for name in names)


def kept_back(position: str, turn: AssistantTurn, names: tuple[str, ...], what: str) -> Loss:
    """Say what of a turn goes to no other model than the one that made it."""
    return Loss(position, f"{what} of {turn.model} is for that model alone: not sent to {names[0]}")
