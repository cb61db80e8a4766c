"""Contents of generateContent as parts in turns, read from a request that may be broken."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from ..._text.json import is_mapping, is_object, is_sequence, shorten
from .._repair.mending import MAYBE_TEXT, Mending
from .._repair.pieces import Piece, Spoken, number_turns
from .._wire.rendered_items import UNREADABLE

# Content without a role is the user's; `function` is an older word for who sends responses.
_ROLES = {"user": "user", None: "user", "function": "user", "model": "model"}
# The API takes both ways of writing a key.
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_PAIRED = frozenset((*_CALL, *_RESPONSE))
_MAYBE_OBJECT = (dict, NoneType)


class Part(Piece):
    """One part of a content."""

    __slots__ = ()

    said_at = "contents[%d].parts"

    def __init__(self, index: int, place: int | None, number: int, value: dict[str, Any]) -> None:
        super().__init__(index, place, number, value)
        # The inner object itself and no copy, whichever way its key is written: what is mended in
        # `call` is mended in `value`, and that goes out.
        self.call = _inner(value, *_CALL)
        self.result = _inner(value, *_RESPONSE)

    @property
    def name(self) -> Any:
        """The name of the tool that is called, or that answers."""
        return (self.call or self.result or {}).get("name")

    @property
    def id(self) -> Any:
        """The id of the call that is made or answered, if there is one."""
        return (self.call or self.result or {}).get("id") or None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it, or the key of a call or a response and nothing that is one."""
        value = self.value
        for key in value:
            if key in _PAIRED and not is_mapping(value[key]):
                return True
        return not value

    def answer(self, call: Part) -> None:
        """Let a response have the id that its call has, or none, so that nobody has to guess."""
        fields = self.result or {}
        fields.pop("id", None)
        if call.id is not None:
            fields["id"] = call.id


def _inner(value: Mapping[str, Any], key: str, other: str) -> dict[str, Any] | None:
    found = value.get(key)
    if is_object(found):
        return found
    found = value.get(other)
    return found if is_object(found) else None


def read_contents(contents: list[Any], mending: Mending) -> list[Spoken[Part]]:
    """Read the contents of a request, without what says nothing, and number their turns."""
    spoken: list[Spoken[Part]] = []
    number = 0
    for index, content in enumerate(contents):
        given = content.get("role") if is_mapping(content) else ""
        role = _ROLES.get(given) if isinstance(given, MAYBE_TEXT) else None
        if not is_mapping(content) or role is None:
            remedy = "Give it the role `user` or `model`"
            mending.drop_unknown(f"contents[{index}]", "content", content, remedy)
            continue
        parts = _parts(index, content.get("parts"), role, number, mending)
        number += len(parts)
        if parts:
            spoken.append(Spoken(index, content, role, parts))
        else:
            mending.note(
                f"contents[{index}].parts",
                "empty_content",
                "the content has no parts",
                "Leave it out",
                "removed the content",
            )
    number_turns(spoken)
    return spoken


def _parts(index: int, parts: Any, role: str, number: int, mending: Mending) -> list[Part]:
    read: list[Part] = []
    # The API takes one part where a list belongs.
    listed = parts if is_sequence(parts) else [parts] if is_mapping(parts) else ()
    for place, value in enumerate(listed):
        part = None
        if is_mapping(value):
            part = Part(index, place, number + len(read), mending.own(value))
            if part.call is not None and part.result is not None:
                _leave_one(part, role, mending)
        if part is None or part.is_empty:
            mending.note(
                f"contents[{index}].parts[{place}]",
                "empty_part",
                f"expected a part, got {shorten(value)}",
                "Send an object with `text`, or with another kind of data",
                "removed the part",
            )
        elif part.call is not None and role != "model":
            mending.note(
                part.position,
                "misplaced_call",
                "a function call is in a content of the user",
                "Send function calls in contents of the model only",
                "removed the call",
            )
        else:
            if part.call is not None:
                _named(part, part.call, "functionCall", mending)
                _called_with(part, part.call, mending)
            if part.result is not None:
                _named(part, part.result, "functionResponse", mending)
            read.append(part)
    return read


def _leave_one(part: Part, role: str, mending: Mending) -> None:
    kind, gone = ("call", _RESPONSE) if role == "model" else ("response", _CALL)
    mending.note(
        part.position,
        "part_of_two_kinds",
        "the part is a function call and a function response at once",
        "Send one kind of data in a part",
        f"left the function {kind}, which is what the {role} may send",
    )
    for key in gone:
        part.value.pop(key, None)
    if role == "model":
        part.result = None
    else:
        part.call = None


def _named(part: Part, fields: dict[str, Any], kind: str, mending: Mending) -> None:
    if not mending.takes(fields.get("name")):
        mending.rename(fields, "name", f"{part.position}.{kind}.name")
    if not isinstance(fields.get("id"), MAYBE_TEXT):
        mending.text_id(fields, "id", f"{part.position}.{kind}")


def _called_with(part: Part, call: dict[str, Any], mending: Mending) -> None:
    arguments = call.get("args")
    if isinstance(arguments, _MAYBE_OBJECT):
        return
    mending.note(
        f"{part.position}.functionCall.args",
        "args_not_an_object",
        f"the arguments are {shorten(arguments)}, and not an object",
        "Send the arguments as an object",
        f"put them into an object, under `{UNREADABLE}`",
    )
    call["args"] = {UNREADABLE: arguments}
