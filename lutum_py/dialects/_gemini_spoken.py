"""Contents of generateContent as parts in turns, read from a request that may be broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._json import copy_json, shorten
from ._mending import Mending
from ._reading import is_array, is_object, objects_in

__all__ = ["Part", "Spoken", "read_contents"]

# Content without a role is the user's; `function` is an older word for who sends responses.
_ROLES = {"user": "user", None: "user", "function": "user", "model": "model"}


class Part:
    """One part of a content, and where it stands.

    Attributes:
        position: Where, as in `contents[1].parts[0]`.
        number: Its number among all parts of the conversation.
        group: The turn that it is in.
        value: The part; a copy.
        is_behind: Whether a part that is no response stands before it in its turn.
        made: Whether it was made by the repair.
    """

    __slots__ = ("group", "is_behind", "made", "number", "position", "value")

    def __init__(self, position: str, number: int, value: dict[str, Any]) -> None:
        self.position = position
        self.number = number
        self.value = value
        self.group = 0
        self.is_behind = False
        self.made = False

    @property
    def call(self) -> dict[str, Any] | None:
        """The function call, if the part is one."""
        return self._inner("functionCall", "function_call")

    @property
    def response(self) -> dict[str, Any] | None:
        """The function response, if the part is one."""
        return self._inner("functionResponse", "function_response")

    @property
    def name(self) -> Any:
        """The name of the tool that is called, or that answers."""
        return (self.call or self.response or {}).get("name")

    @property
    def id(self) -> Any:
        """The id of the call that is made or answered, if there is one."""
        return (self.call or self.response or {}).get("id") or None

    def rename(self, name: Any) -> None:
        """Let a response be of another tool."""
        (self.response or {})["name"] = name

    def beside(self, value: dict[str, Any]) -> Part:
        """Make a new part that belongs to this one."""
        made = Part(self.position, self.number, value)
        made.group = self.group
        made.made = True
        return made

    def _inner(self, key: str, other: str) -> dict[str, Any] | None:
        # The API takes both ways of writing a key.
        found = self.value.get(key, self.value.get(other))
        return next(objects_in(found), None) if is_object(found) else None


class Spoken:
    """One content of a conversation.

    Attributes:
        role: Who speaks: `user` or `model`.
        parts: What is said.
        group: The turn that the content is part of.
    """

    __slots__ = ("_content", "group", "parts", "role")

    def __init__(self, content: Mapping[str, Any], role: str, parts: list[Part]) -> None:
        self._content = content
        self.role = role
        self.parts = parts
        self.group = 0

    def with_parts(self, parts: list[Part]) -> dict[str, Any]:
        """Give the content with these parts."""
        content: dict[str, Any] = copy_json(
            {key: value for key, value in self._content.items() if key != "parts"}
        )
        content["parts"] = [part.value for part in parts]
        return content


def read_contents(contents: list[Any], mending: Mending) -> list[Spoken]:
    """Read the contents of a request, without what says nothing, and number their turns."""
    spoken: list[Spoken] = []
    number = 0
    for index, content in enumerate(contents):
        role = _role(content)
        if not is_object(content) or role is None:
            mending.note(
                f"contents[{index}]",
                "unknown_role",
                f"expected a content with a known role, got {shorten(content)}",
                "Give it the role `user` or `model`",
                "removed the content",
            )
            continue
        parts = _parts(index, content.get("parts"), number, mending)
        number += len(parts)
        if parts:
            spoken.append(Spoken(content, role, parts))
        else:
            mending.note(
                f"contents[{index}].parts",
                "empty_content",
                "the content has no parts",
                "Leave it out",
                "removed the content",
            )
    _number_turns(spoken)
    return spoken


def _role(content: Any) -> str | None:
    if not is_object(content):
        return None
    role = content.get("role")
    return _ROLES.get(role) if role is None or isinstance(role, str) else None


def _parts(index: int, parts: Any, number: int, mending: Mending) -> list[Part]:
    read: list[Part] = []
    for place, value in enumerate(parts if is_array(parts) else ()):
        position = f"contents[{index}].parts[{place}]"
        if is_object(value) and value:
            read.append(Part(position, number + len(read), copy_json(value)))
        else:
            mending.note(
                position,
                "empty_part",
                f"expected a part, got {shorten(value)}",
                "Send an object with `text`, or with another kind of data",
                "removed the part",
            )
    return read


def _number_turns(spoken: list[Spoken]) -> None:
    group = -1
    role = None
    is_behind = False
    for said in spoken:
        if said.role != role:
            role = said.role
            group += 1
            is_behind = False
        said.group = group
        for part in said.parts:
            part.group = group
            part.is_behind = is_behind
            is_behind = is_behind or part.response is None
