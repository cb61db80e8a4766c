"""Whether a turn goes back as it came, or in the neutral view, and what that costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ..._text.json import is_mapping
from ..._transcript.assistant import AssistantTurn, ReasoningItem, ServerToolItem
from ...errors import MisuseError
from .._findings import Loss

# A provider takes back what it sent and little else: signatures and encrypted reasoning cover the
# turn as it came. So the payload of the same dialect is sent again; the neutral items are for
# foreign turns only, and what they cannot say is a loss that is told.


LED_NOWHERE: Final = "its reasoning led to nothing, and the provider refuses reasoning alone"
"""Why the reasoning at the end of a turn is left out."""


def own_payload(turn: AssistantTurn, dialect: str) -> Mapping[str, Any] | None:
    """Return the payload of a turn that the dialect itself decoded; None for any other turn."""
    payload = turn.payload
    if turn.dialect == dialect and is_mapping(payload):
        return payload
    return None


def foreign_losses(position: str, turn: AssistantTurn, dialect: str) -> Iterator[Loss]:
    """Say what the neutral view of a turn leaves out; nothing if it leaves out nothing."""
    lost: list[str] = []
    if any(isinstance(item, ReasoningItem) for item in turn.items):
        lost.append("its reasoning")
    kinds = [item.kind for item in turn.items if isinstance(item, ServerToolItem)]
    if kinds:
        lost.append(f"what the provider ran itself ({', '.join(dict.fromkeys(kinds))})")
    foreign = turn.payload is not None and turn.dialect != dialect
    if foreign:
        lost.append(f"the form that only {turn.dialect or 'its own dialect'} understands")
    if lost:
        *others, last = lost
        without = f"{', '.join(others)} and {last}" if others else last
        yield Loss(position, f"{dialect} gets the neutral view of this turn, without {without}")


ModelNames: TypeAlias = str | Iterable[str] | None
"""The name of a model, or all names that one model is known by."""

# A date in the ways of the providers, the word for the newest, a revision: of recorded traffic,
# `gpt-5-2025-08-07`, `claude-sonnet-4-0`, `claude-haiku-4-5@20251001`, `gemini-2.0-flash-001`.
_NO_DIFFERENCE: Final = re.compile(
    r"(?:[-@:](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{8}|\d{4}|00\d|0|v\d+(?::\d+)?))++$"
)
# `models/` of Gemini, also after the path of a project; the vendor in the names of Bedrock.
_IN_FRONT: Final = re.compile(r"^(?:.*\bmodels/|(?:[a-z-]+\.)?anthropic\.)")
_WORDS: Final = re.compile(r"[-._@: ]+")


@lru_cache(maxsize=512)
def _plain(name: str) -> tuple[str, ...]:
    """Return what tells a model: hosts write its words in one order or another.

    >>> _plain("anthropic/claude-sonnet-4-5") == _plain("anthropic/claude-4.5-sonnet-20250929")
    True
    """
    core = _NO_DIFFERENCE.sub("", _IN_FRONT.sub("", name.lower()))
    return tuple(sorted(_WORDS.split(core)))


def names_of(model: ModelNames) -> tuple[str, ...]:
    """Take one name, or several, or none.

    Raises:
        MisuseError: It is something else.
    """
    if model is None:
        return ()
    names = model if isinstance(model, Iterable) and not isinstance(model, str) else (model,)
    listed: tuple[Any, ...] = tuple(names)
    if not all(isinstance(name, str) for name in listed):
        wish = "the name of a model, a list of them or None"
        raise MisuseError.of_field("encode_request", "model", wish, model)
    return listed


def told_apart(turn: AssistantTurn, names: tuple[str, ...]) -> bool:
    """Tell whether a turn belongs to another model; if one of them is not known, it is the same.

    Example:
        >>> turn = AssistantTurn(text="Hi", model="gpt-5-2025-08-07")
        >>> told_apart(turn, ("gpt-5",)), told_apart(turn, ("gpt-5-mini",))
        (False, True)
    """
    if not names or turn.model is None or turn.model in names:
        return False
    made_by = _plain(turn.model)
    return all(_plain(name) != made_by for name in names)
