"""Turns as a provider sends them, and what the model said as it is in a list of messages.

The testing kit judges dialects by these, so they are written by hand in each dialect's
`_wire_form.py`, and neither rendered nor read by its other files. Nothing but the kit loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pydantic_core import from_json

from .. import AssistantTurn, Usage
from .._text.json import JsonObject, compact_json, is_array, is_object
from . import DIALECTS

__all__ = [
    "Said",
    "WireForm",
    "as_object",
    "cost_of",
    "end_of",
    "halves",
    "object_of",
    "objects",
    "of_role",
    "rest_of",
    "said_call",
    "wire_form_of",
]


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that the model said: a text, or a call.

    Attributes:
        text: The text, or the argument text of a call.
        name: The wire name of the tool; None for a text.
        id: The id of the call; None if it has none.
    """

    text: str
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class WireForm:
    """Say how a provider writes what the model says.

    Attributes:
        response: Makes the JSON of a response that says what a turn says; a number tells it from
            other responses. Calls without an id get one where the format demands it.
        said_in: Lists what the model said in a list of messages.
        messages_of: Lists the messages that a response itself holds.
        events: Gives the events of a stream that says what a response says, texts and arguments in
            halves. What no stream carries, such as a turn without a reason to end, it makes up.
        paths: What the address of a request ends with, and whether that asks for a stream; None
            if the body says so.
        last_line: What is at the end of a stream, if anything.
    """

    response: Callable[[AssistantTurn, int], JsonObject]
    said_in: Callable[[Iterable[object]], Iterator[Said]]
    messages_of: Callable[[Mapping[str, Any]], list[Any]]
    events: Callable[[Mapping[str, object]], Iterator[JsonObject]]
    paths: Mapping[str, bool | None] = field(default_factory=dict[str, "bool | None"])
    last_line: str = ""


def wire_form_of(name: str) -> WireForm:
    """Return the wire form of a dialect in the list."""
    found: WireForm = import_module(f"{DIALECTS[name]}._wire_form").WIRE_FORM
    return found


def cost_of(turn: AssistantTurn, key: str, written: Callable[[Usage], JsonObject]) -> JsonObject:
    """Write under a key what a turn cost; nothing if it does not say."""
    return {} if turn.usage is None else {key: written(turn.usage)}


def end_of(turn: AssistantTurn, blocked: str, truncated: str, otherwise: str | None) -> str | None:
    """Choose the word for why a turn ended."""
    if turn.is_blocked:
        return blocked
    return truncated if turn.is_truncated else otherwise


def rest_of(tokens: int | None, *apart: int | None) -> int | None:
    """Return a number of tokens without those that a wire counts apart."""
    return None if tokens is None else tokens - sum(each or 0 for each in apart)


def as_object(arguments: str) -> Any:
    """Read argument text where the wire knows objects only: what cannot be read is left out."""
    try:
        data = from_json(arguments, allow_partial=True)
    except (TypeError, ValueError):
        return {}
    return data if is_object(data) else {}


def said_call(id: object, name: object, arguments: object) -> Said:
    """Make a call of what is in a message, which may be anything."""
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    return Said(text, str(name), id if isinstance(id, str) and id else None)


def halves(text: str) -> Iterator[str]:
    """Return a text in two pieces, none of them empty."""
    middle = (len(text) + 1) // 2
    return (piece for piece in (text[:middle], text[middle:]) if piece)


def of_role(messages: Iterable[object], role: str) -> Iterator[JsonObject]:
    """Return the messages of one role."""
    return (each for each in objects(list(messages)) if each.get("role") == role)


def objects(value: object) -> list[JsonObject]:
    """Return the objects in a list; none if it is not a list."""
    return [each for each in value if is_object(each)] if is_array(value) else []


def object_of(value: object) -> JsonObject:
    """Return an object; an empty one for anything else."""
    return value if is_object(value) else {}
