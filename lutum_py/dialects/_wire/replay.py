"""Whether a turn goes back as it came, or in the neutral view, and what that costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from types import NoneType
from typing import Any, Final, TypeAlias

from ..._text.json import LEAVES, is_mapping, is_sequence
from ..._transcript.assistant import AssistantTurn, ReasoningItem, ServerToolItem
from .._findings import Loss

# A provider takes back what it sent and little else: signatures and encrypted reasoning cover the
# turn as it came. So the payload of the same dialect is sent again; the neutral items are for
# foreign turns only, and what they cannot say is a loss that is told.
_NOTHING: frozenset[str] = frozenset()


def own_payload(turn: AssistantTurn, dialect: str) -> Mapping[str, Any] | None:
    """Return the payload of a turn that the dialect itself decoded; None for any other turn."""
    payload = turn.payload
    if turn.dialect == dialect and is_mapping(payload):
        return payload
    return None


def foreign_losses(position: str, turn: AssistantTurn, dialect: str) -> Iterator[Loss]:
    """Say what the neutral view of a turn leaves out; nothing where it leaves out nothing."""
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


def without_nulls(
    value: Any, free: frozenset[str] = _NOTHING, of_sdk: frozenset[str] = _NOTHING
) -> Any:
    """Copy a payload without the keys whose value is null, as SDK objects dump them.

    Everywhere that a provider's own fields stand, absent and null mean the same. Data that a user
    or model wrote is under the keys in `free`; it is copied as it is, nulls included.

    Args:
        value: The payload.
        free: As above.
        of_sdk: What only an SDK puts there, and is left out: the API refuses a field that it does
            not know.

    Raises:
        TypeError: It holds what is not JSON.

    Example:
        >>> without_nulls({"a": None, "args": {"b": None}}, frozenset({"args"}))
        {'args': {'b': None}}
    """
    if value.__class__ is dict or is_mapping(value):
        copy: dict[str, Any] = dict(value)  # most of a payload are texts and numbers
        for key, item in value.items():
            if item.__class__ not in LEAVES:
                copy[key] = (
                    without_nulls(item, _EVERYTHING)
                    if key in free
                    else without_nulls(item, free, of_sdk)
                )
            elif item is None and free is not _EVERYTHING:
                del copy[key]
        if not of_sdk.isdisjoint(copy):
            for key in of_sdk:
                copy.pop(key, None)
        return copy
    if is_sequence(value):
        return [
            item if item.__class__ in LEAVES else without_nulls(item, free, of_sdk)
            for item in value
        ]
    return plain(value)


def with_nulls(value: Any) -> Any:
    """Copy a payload as it is, and refuse what is not JSON as `without_nulls` does."""
    return without_nulls(value, _EVERYTHING)


# The look by which a payload is taken for plain is pydantic's, which writes sets, decimals and much
# else as if JSON had them; a transcript with one in it could not be saved.
def plain(value: Any) -> Any:
    """Return what is neither object nor array as JSON has it: of a time, SDKs make an object.

    Raises:
        TypeError: JSON has no such thing.
    """
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, str | int | float | NoneType):
        return value
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


class _Everything(frozenset[str]):
    def __contains__(self, key: object) -> bool:
        return True


_EVERYTHING = _Everything()


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
    """Take one name, or several, or none."""
    if model is None:
        return ()
    return (model,) if isinstance(model, str) else tuple(model)


def told_apart(turn: AssistantTurn, names: tuple[str, ...]) -> bool:
    """Tell whether a turn belongs to another model; where one of them is not known, it is the same.

    Example:
        >>> turn = AssistantTurn(text="Hi", model="gpt-5-2025-08-07")
        >>> told_apart(turn, ("gpt-5",)), told_apart(turn, ("gpt-5-mini",))
        (False, True)
    """
    if not names or turn.model is None or turn.model in names:
        return False
    made_by = _plain(turn.model)
    return all(_plain(name) != made_by for name in names)
