"""Typed access to JSON that somebody else wrote: what is missing or odd says where it is.

A `Place` is a value together with the way to it. The way is only spelled out when something is
wrong, so reading a good payload costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from itertools import islice
from types import NoneType
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from .. import AssistantTurn, Attachment, Message, ToolMetadata, ToolResult, Usage
from .._text.json import (
    LEAVES,
    JsonObject,
    compact_json,
    has_long_number,
    is_mapping,
    is_sequence,
    parse_json,
    read_json,
    sendable,
    sendable_json,
    short_digest_of,
    shorten,
)
from .._text.names import is_among
from ..errors import DialectError, MisuseError
from ..turns import AssistantItem, RefusalItem, ToolCallItem, TranscriptItem
from ..typing import CutOff
from ._arguments import once
from ._facts import DistinctIds, Facts

DEEPEST: Final = 200
"""How deeply a payload may be nested: what pydantic, and with it the SDKs, can read and write."""

_TOO_MANY: Final = 1 << 63
_TOO_FEW: Final = -_TOO_MANY

UNKNOWN_EVENTS: Final = "unknown_events"
"""The key of a payload under which stand the events of its stream that nobody knows."""

DUMP: Final = (
    "Pass the wire's own JSON as a dict; from an SDK object, "
    '`response.to_dict(mode="json")` (openai, anthropic) or '
    '`response.model_dump(mode="json", by_alias=True, exclude_none=True)` '
    "(google-genai)"
)
"""What to do with what is not a JSON object, but perhaps an SDK's."""

_SPLIT: Final = "Feed what `lutum_py.dialects.sse.events(chunks)` gives of a response"

_FIELDS: Final = ("data:", "event:", "id:", "retry:", ":")
"""How a line of an event stream begins."""


def objects_in(value: object) -> Iterator[JsonObject]:
    """Yield the plain objects of an array, or a plain object alone; nothing of anything else."""
    for each in value if is_sequence(value) else (value,):
        if isinstance(each, dict):
            yield each  # pyright: ignore[reportUnknownVariableType]


def count_at(value: Any, key: str, *inner: str) -> int | None:
    """Take the number at a key, or further inside; None if there is no whole number.

    What a turn cost, or how its parts are numbered, never decides whether it can be read, so an odd
    value is not an error.
    """
    if value.__class__ is not dict and (value is None or not is_mapping(value)):
        return None
    found = value.get(key)
    if inner:
        return count_at(found, *inner)
    if found is None:
        return None
    if found.__class__ is not int:
        if not isinstance(found, float) or not found.is_integer():
            return None
        found = int(found)
    return found if _TOO_FEW < found < _TOO_MANY else None


def total(*counts: int | None) -> int | None:
    """Add up numbers of which some may be missing; None if all are."""
    found = None
    for count in counts:
        if count is not None:
            found = count if found is None else found + count
    return found


def text_or_none(value: object) -> str | None:
    """Take a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


class Place:
    """A value inside a payload, and where it stands.

    Attributes:
        dialect: The name of the dialect that reads it.
        value: The JSON value.
    """

    __slots__ = ("_parent", "_step", "dialect", "value")

    def __init__(
        self, dialect: str, value: Any, parent: Place | None = None, step: str | int = ""
    ) -> None:
        self.dialect: str = dialect
        self.value: Any = value
        self._parent = parent
        self._step = step

    @property
    def where(self) -> str:
        """The way to the value, as in `choices[0].message`."""
        step = self._step
        before = "" if self._parent is None else self._parent.where
        if isinstance(step, int):
            return f"{before}[{step}]"
        return f"{before}.{step}" if before and step else before or step

    def error(self, problem: str) -> DialectError:
        """Make the error that says what is wrong here; the caller raises it."""
        where = sendable(self.where)
        at = f" at {where}" if where else ""
        end = "" if problem.endswith("?") else "."
        said = f"{self.dialect}{at}: {problem}{end}"
        return DialectError(said, dialect=self.dialect, where=where)

    def reported(self) -> DialectError:
        """Make the error for one that the provider reports here; the caller raises it."""
        value = self.value
        said = value.get("message", value) if is_mapping(value) else value
        return self.error(f"the provider reports an error: {shorten(said, 400)}")

    def raise_error(self) -> None:
        """Raise the error that the provider reports under `error`, if there is one."""
        error = self.get("error")
        if error is not None:
            raise error.reported()

    def get(self, key: str) -> Place | None:
        """Go to a key of an object; None if it is absent or null."""
        value = (self.value if self.value.__class__ is dict else self.object()).get(key)
        return None if value is None else Place(self.dialect, value, self, key)

    def need(self, key: str) -> Place:
        """Go to a key of an object that has to be there and not null."""
        found = self.get(key)
        if found is None:
            # At the top it may be something else altogether.
            hint = "" if self._parent else ". Is it the response of another dialect?"
            raise self.error(f"the field {key!r} is missing, got {shorten(self.value)}{hint}")
        return found

    def object(self) -> Mapping[str, Any]:
        """Take the value as an object."""
        value = self.value
        if value.__class__ is dict or is_mapping(value):
            return value
        raise self.error(f"expected an object, got {shorten(value)}")

    def text(self) -> str:
        """Take the value as a string."""
        if isinstance(self.value, str):
            return self.value
        raise self.error(f"expected a string, got {shorten(self.value)}")

    def need_text(self, key: str) -> str:
        """Take the string at a key that has to be there and not null."""
        value: Any = (self.value if self.value.__class__ is dict else self.object()).get(key)
        return value if value.__class__ is str else self.need(key).text()

    def items(self) -> list[Place]:
        """Return the elements of an array."""
        array = self.value
        if not is_sequence(array):
            raise self.error(f"expected an array, got {shorten(array)}")
        dialect = self.dialect
        return [Place(dialect, value, self, index) for index, value in enumerate(array)]

    def text_at(self, key: str) -> str | None:
        """Take the string at a key; None if it is absent or null."""
        value: Any = (self.value if self.value.__class__ is dict else self.object()).get(key)
        if value is None or value.__class__ is str:
            return value
        return Place(self.dialect, value, self, key).text()

    def written_at(self, key: str, empty: str) -> str:
        """Take the text at a key, or what is there as JSON; `empty` where it is null.

        Of the arguments of a call some hosts send text, and some the object itself.
        """
        value: Any = (self.value if self.value.__class__ is dict else self.object()).get(key)
        if isinstance(value, str):
            return value
        try:
            return empty if value is None else compact_json(value)
        except (TypeError, ValueError, RecursionError):
            raise fault(Place(self.dialect, value, self, key)) from None

    def items_at(self, key: str) -> list[Place]:
        """Return the elements of the array at a key; none if it is absent or null."""
        found = self.get(key)
        return [] if found is None else found.items()


def response_place(
    dialect: str, response: object, tidy: Callable[[Any], Any], position: str = ""
) -> Place:
    """Begin to read a response: a tidy copy of it that can be stored and sent back.

    Args:
        dialect: The dialect that reads it.
        response: The response.
        tidy: Copies it as the dialect keeps it.
        position: Where it stands, for the errors, if not alone.

    Raises:
        DialectError: It is not an object, such as text, an HTML page or an SDK object, or something
            in it is not JSON, or nested too deeply.
    """
    place = Place(dialect, response, None, position)
    if not is_mapping(response):
        what = f"expected the JSON object of a response, got {shorten(response)}"
        raise place.error(f"{what}. {DUMP}")
    try:
        place.value = tidy(response)
        if not _is_plain(place.value):
            place.value = sendable_json(place.value)
            from_json(compact_json(place.value), allow_inf_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise fault(place) from None
    return place


def is_tidy_json(payload: JsonObject, untidy: tuple[bytes, ...]) -> bool:
    """Tell by its JSON that `response_place` would leave a payload that was just parsed as it is.

    Args:
        payload: The payload.
        untidy: What tells a payload that would be changed, as in `Dialect`.
    """
    try:
        # Infinities are written as null, which is among what is untidy.
        text = to_json(payload, inf_nan_mode="null")
    except ValueError:  # half of a surrogate pair
        return False
    is_odd = _may_be_deep(text) or has_long_number(text)
    return not (is_odd or any(map(text.__contains__, untidy)))


def _is_plain(value: object) -> bool:
    """Tell at a glance, as every response is read, that there is nothing odd in it."""
    try:
        # One pass of pydantic in Rust and three searches in bytes, in place of a walk through
        # each value in Python. It may say no for a text that only speaks of NaN, and then the slow
        # way decides.
        text = to_json(value, inf_nan_mode="constants")
        if _may_be_deep(text):
            from_json(text, allow_inf_nan=False)
            return True
    except ValueError:
        return False
    return not (b"NaN" in text or b"Infinity" in text or has_long_number(text))


def _may_be_deep(text: bytes) -> bool:
    """Tell whether JSON may be nested too deeply: as many levels need as many brackets."""
    return text.count(b"{") + text.count(b"[") > DEEPEST


def fault(place: Place) -> DialectError:
    """Find what of a value cannot be kept: what is not JSON, or nested too deeply."""
    # A list that grows while it is gone through: breadth first and without recursion, which is what
    # may have failed. It is slow, and runs only for a payload that cannot be kept.
    waiting = [(place, 1)]
    for each, depth in waiting:
        value = each.value
        if is_mapping(value) or is_sequence(value):
            if depth > DEEPEST:
                return place.error(f"it is nested more deeply than {DEEPEST} levels")
            steps: Any = value.items() if is_mapping(value) else enumerate(value)
            inner = ((Place(each.dialect, item, each, step), depth + 1) for step, item in steps)
            waiting.extend(inner)
        else:
            try:
                compact_json(value)
            except (TypeError, ValueError):
                return each.error(f"{shorten(value)} is nothing that JSON can carry")
    return place.error("it cannot be kept as JSON")


def read_event(dialect: str, event: object, number: int) -> Place:
    """Begin to read one event of a stream, given as a dict or as the text of its `data:`.

    Args:
        dialect: The dialect that reads it.
        event: The event.
        number: Which event it is, from 0; it is in every error.

    Raises:
        DialectError: The text is not JSON, or the event is not an object.
    """
    place = Place(dialect, event, None, f"event {number}")
    if event.__class__ is dict:
        return place
    if isinstance(event, str | bytes):
        try:
            place.value = read_json(event)
        except ValueError as error:
            # A line of an event stream that was fed whole, as `data: {"a": 1}`, is the likely
            # mistake, so the hint names what splits it.
            problem = f"the event is not JSON ({error}): {shorten(event)}"
            text = event if isinstance(event, str) else event.decode("latin-1")
            hint = f". {_SPLIT}" if text.lstrip().startswith(_FIELDS) else ""
            raise place.error(f"{problem}{hint}") from None
    elif not is_mapping(event):
        raise place.error(f"expected an object, got {shorten(event)}. {DUMP}")
    place.object()
    return place


def caller_of(call: Mapping[str, object]) -> str | None:
    """Return the id of the item that made a call; None if the model made it itself.

    Example:
        >>> caller_of({"caller": {"type": "program", "caller_id": "p1"}})
        'p1'
    """
    caller = call.get("caller")
    if not is_mapping(caller):
        return None
    return text_or_none(caller.get("caller_id")) or text_or_none(caller.get("tool_id"))


def own_id(response_id: str | None, index: int, name: str) -> str:
    """Make the id of a call that a host sent without one.

    It is derived, so that decoding one response twice, or as a stream and as a whole, gives the
    same id. It never goes back to the host: a replay sends what the host sent, which is nothing.

    Args:
        response_id: The provider's id of the response, if it has one.
        index: Which call of the turn it is, from 0.
        name: The wire name of the tool.

    Example:
        >>> own_id("r1", 0, "add") == own_id("r1", 0, "add") != own_id("r1", 1, "add")
        True
    """
    return "lutum_" + short_digest_of(response_id, index, name)


def read_call(
    fields: Place,
    key: str,
    call_id: str | None,
    response_id: str | None,
    index: int,
    *,
    name: str | None = None,
    empty: str = "{}",
) -> ToolMetadata:
    """Read a call of a turn.

    Args:
        fields: What holds its name and its arguments.
        key: Where the arguments are.
        call_id: Its id; one is made where it has none.
        response_id: The provider's id of the response, if it has one.
        index: Which call of the turn it is, from 0.
        name: Its name, if the wire has none for it.
        empty: The arguments, if the wire has null.
    """
    name = name or name_of(fields)
    text = fields.written_at(key, empty)
    return ToolMetadata(
        id=call_id or own_id(response_id, index, name),
        name=name,
        arguments=once(text) if key == "arguments" else text,
    )


def name_of(call: Place) -> str:
    """Return the name of a call; `""` where it has none, which no tool has.

    So the round answers the call with an issue, and it goes back under the stand-in of that name.
    """
    return call.text_at("name") or ""


@lru_cache(64)
def ends_early(finish_reason: str | None) -> tuple[bool, bool]:
    """Tell whether a word of any provider says that a turn was truncated, or blocked."""
    turn = AssistantTurn(finish_reason=finish_reason)
    return turn.is_truncated, turn.is_blocked


class DecodedResponse(NamedTuple):
    """What was read of a response.

    Attributes:
        items: What it says; `turn` may add to it.
        finish_reason: Why it ended.
        request_id: The provider's id of it.
        usage: What it cost.
        calls: Its calls, in the order of the items; asked only where one has to be changed.
        refusal: What may be the provider's words for why it was refused.
        is_ended: Whether the provider had come to the end. The objects of an SDK can be read while
            they grow, and what an SDK makes of half a call looks whole. None if a finish reason
            says so, where the response has an id: what a program writes has none.
    """

    items: list[AssistantItem]
    finish_reason: str | None
    request_id: str | None = None
    usage: Usage | None = None
    calls: Iterable[WireCall] = ()
    refusal: object = None
    is_ended: bool | None = None

    def turn(self, facts: Facts, response: Place) -> AssistantTurn:
        """Make the turn of the response.

        Args:
            facts: What is known of the dialect.
            response: The response.
        """
        items, finish_reason, is_ended = self.items, self.finish_reason, self.is_ended
        _tell_apart(facts, items, self.calls)
        if is_ended is None:
            is_ended = finish_reason is not None or self.request_id is None
        cut_off: CutOff | None = None
        is_going_on = not is_ended and any(isinstance(item, ToolCallItem) for item in items)
        # A host may pass on the word of the provider behind it.
        is_truncated, is_blocked = ends_early(finish_reason)
        if is_truncated or is_among(finish_reason, facts.truncated) or is_going_on:
            cut_off = facts.cut_off(items)
        elif is_blocked or is_among(finish_reason, facts.refused):
            if facts.cut_off(items) == "arguments":
                cut_off = "arguments"
            # Few providers write a refusal among the items. Of the others the finish reason alone
            # says it, so here it becomes an item for all of them, beside what was said before.
            if not any(isinstance(item, RefusalItem) for item in items):
                items.append(RefusalItem(text_or_none(self.refusal) or ""))
        turn = AssistantTurn(
            items=items,
            finish_reason=finish_reason,
            usage=self.usage,
            model=response.text_at(facts.model_at),
            request_id=self.request_id,
            dialect=facts.name,
            cut_off=cut_off,
        )
        return turn.with_payload(response.value)


class WireCall(NamedTuple):
    """A call as it stands in a response.

    Attributes:
        call: What has its id.
        id_key: Where that is.
        fields: What has its name and its arguments.
        key: Where the arguments are.
        is_text: Whether those are text, and not an object.
        keys: Where they are, if each of several fields is one of them.
    """

    call: JsonObject
    id_key: str
    fields: JsonObject
    key: str
    is_text: bool = False
    keys: tuple[str, ...] = ()

    def write(self, text: str) -> None:
        """Give it other arguments."""
        if self.keys:
            arguments, _ = arguments_object(text)
            for key in self.keys:
                self.fields.pop(key, None)
            self.fields.update((key, arguments[key]) for key in self.keys if key in arguments)
            return
        self.fields[self.key] = text
        if not self.is_text:
            with suppress(ValueError):
                self.fields[self.key] = parse_json(text)


def replace_texts(
    blocks: list[object],
    text: str,
    is_text: Callable[[object], bool],
    made: Callable[[str], object],
    is_call: Callable[[object], bool] = lambda _: False,
) -> None:
    """Let one text stand for those of a response; nothing, if it is empty.

    Args:
        blocks: What the response says; it is changed.
        text: The text.
        is_text: Tells a block that is text.
        made: Makes such a block. What was beside a text, such as a signature, is not of this one.
        is_call: Tells a block before which the text stands, where there was none.
    """
    places = [place for place, block in enumerate(blocks) if is_text(block)]
    calls = (place for place, block in enumerate(blocks) if is_call(block))
    at = places[0] if places else next(calls, len(blocks))
    rest = [block for block in blocks if not is_text(block)]
    blocks[:] = [*rest[:at], *([made(text)] if text else []), *rest[at:]]


# In the response too, which goes back: no provider takes two calls of one id, or one without a
# name.
def _tell_apart(facts: Facts, items: list[AssistantItem], calls: Iterable[WireCall]) -> None:
    """Give each call an id of its own, and `""` as its name if it has none."""
    asked = [(at, item) for at, item in enumerate(items) if isinstance(item, ToolCallItem)]
    ids = {item.metadata.id for _, item in asked}
    if len(ids) == len(asked) and all(item.metadata.name for _, item in asked):
        return
    distinct = DistinctIds(facts.fitting_id)
    for (at, item), wire in zip(asked, calls, strict=False):
        given = item.metadata
        made = distinct.of(given.id)
        if made != given.id:
            wire.call[wire.id_key] = made
            same = ToolMetadata(id=made, name=given.name, arguments=given.arguments)
            items[at] = ToolCallItem(same, item.caller)
        if not given.name:
            wire.fields["name"] = ""


# The payload, as a turn keeps it.


_NOTHING: Final[frozenset[str]] = frozenset()


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
        copy: JsonObject = dict(value)  # most of a payload are texts and numbers
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


def with_nulls(value: object) -> Any:
    """Copy a payload as it is, and refuse what is not JSON as `without_nulls` does."""
    return without_nulls(value, _EVERYTHING)


# The look by which a payload is taken for plain is pydantic's, which writes sets, decimals and much
# else as if JSON had them; a transcript with one in it could not be saved.
def plain(value: object) -> Any:
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


UNREADABLE: Final = "INVALID_JSON"
"""The key under which arguments go out that are not a JSON object, as Anthropic's guide has it."""


def rendered_items(
    items: Iterable[TranscriptItem], start: int = 0
) -> Iterator[tuple[str, TranscriptItem]]:
    """Go through what is to be rendered, but for the first items; give each with its position.

    Raises:
        MisuseError: It is a plan or another thing that holds items, or one is not an item.

    Example:
        >>> list(rendered_items([Message("user", "Hello")]))
        [('items[0]', Message(role='user', text='Hello', attachments=()))]
    """
    refusal = _refusal(items)
    if refusal is not None:
        raise MisuseError(refusal)
    for index, item in enumerate(islice(items, start, None), start):
        if not isinstance(item, AssistantTurn | ToolResult | Message):
            raise MisuseError(
                f"Expected a Message, AssistantTurn or ToolResult at items[{index}], got "
                f"{shorten(item)}. Pass a committed round, or the items of a transcript."
            )
        yield f"items[{index}]", item


# What is passed by mistake is mostly a step too early: a round or a plan that was not resolved.
# Those classes import this package, so they are told by what they have and not by their type.
def _refusal(items: object) -> str | None:
    """Say what to pass instead; a class far above is told by what it has."""
    name = type(items).__name__
    if isinstance(items, AssistantTurn | ToolResult | Message):
        return f"Items are passed as a list, even if there is only one: `[{name}(...)]`."
    if hasattr(items, "__iter__"):
        return None
    said = f"Expected a committed round, or a list of items, got {shorten(items)}"
    if hasattr(items, "resolve") or hasattr(items, "round"):
        return (
            f"{said}. Pass what `plan.resolve(results)` gives, or `plan.commit(session, results)`."
        )
    if hasattr(items, "transcript"):
        return f"{said}. Pass its `transcript`."
    return (
        f"{said}. Pass what `plan.resolve(results)` gives, or a list of Message, AssistantTurn and "
        "ToolResult."
    )


_OTHER_NAMES: Final = {
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "image/jpg": "image/jpeg",
}


def usual_type(attachment: Attachment) -> str:
    """Return the type of a file by the name that wires know it by.

    Example:
        >>> usual_type(Attachment.from_bytes(b"RIFF", "audio/x-wav"))
        'audio/wav'
    """
    # What the ending of a name says differs: `.wav` is `audio/x-wav` for Python 3.11 and
    # `audio/vnd.wave` for Python 3.14.
    name = attachment.mime_type.lower()
    return _OTHER_NAMES.get(name, name)


def named_text(result: ToolResult, unshown: Iterable[Attachment]) -> str:
    """Return what the model reads of a result, with the files that it does not get to see."""
    return "\n".join([result.model_text, *(each.described for each in unshown)])


def carried(text: str) -> Any:
    """Parse JSON text whose data is in a request itself.

    Raises:
        ValueError: It is not JSON, or what no client can write: nested too deeply, or with a number
            that Python reads as an infinity.
    """
    value = parse_json(text)
    if text.count("{") + text.count("[") > DEEPEST or _MAY_BE_INFINITE.search(text):
        from_json(compact_json(value))
    return value


_MAY_BE_INFINITE: Final = re.compile(r"[eE]\+?\d{3}|\d{300}")


def arguments_object(arguments: str) -> tuple[JsonObject, bool]:
    """Return the object for a call's argument text, and whether the text was one.

    Example:
        >>> arguments_object('{"a": 1}'), arguments_object("")
        (({'a': 1}, True), ({}, True))
        >>> arguments_object("[1]")
        ({'INVALID_JSON': '[1]'}, False)
    """
    value: object
    try:
        # Blank text is not arguments, and not broken ones: some models send nothing for a tool that
        # takes nothing. Only a text that says something goes out under `UNREADABLE`.
        value = carried(arguments) if arguments.strip() else None
    except ValueError:
        value = arguments
    if value is None:
        return {}, True
    return (dict(value), True) if is_mapping(value) else ({UNREADABLE: arguments}, False)


def send_as_object(call: JsonObject, key: str) -> None:
    """Let the arguments of a call be an object, also if a host sent something else."""
    value = call.get(key)
    if isinstance(value, str):
        call[key], _ = arguments_object(value)
    elif not isinstance(value, dict):
        call[key] = {} if value is None else {UNREADABLE: value}


def send_as_text(call: JsonObject, key: str) -> None:
    """Let the arguments of a call be text, also if a host sent an object or nothing."""
    value = call.get(key)
    if value is None:
        call[key] = "{}" if key == "arguments" else ""
    elif not isinstance(value, str):
        call[key] = compact_json(value)
