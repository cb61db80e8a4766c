"""What a pass over a broken request comes to: the mended items, and a note of each breach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import compact_json, shorten
from .._wire.tool_names import WireNames
from .violations import Change, Violation

__all__ = ["Mending", "text_of"]

_STEPS: Final = re.compile(r"\[(\d+)\]")
_FIELD: Final = re.compile(r"[^.\[]*")


class Mending:
    """Collect the mended items and the notes.

    Args:
        names: The names under which tools go out in it.
        body: The request body; empty where only its list was given.

    Attributes:
        items: The items as they are to be sent.
    """

    __slots__ = ("_changes", "_violations", "body", "items", "names")

    def __init__(self, names: WireNames, body: Mapping[str, Any]) -> None:
        self.items: list[Any] = []
        self.body = body
        self.names = names
        self._violations: list[Violation] = []
        self._changes: list[Change] = []

    def note(
        self,
        position: str,
        rule: str,
        problem: str,
        remedy: str,
        what: str,
        *,
        is_mended: bool = True,
    ) -> None:
        """Note a breach, and what is done about it."""
        self._violations.append(Violation(position, rule, problem, remedy))
        self._changes.append(Change(position, rule, what, is_mended))

    def follow_up(self, position: str, rule: str, what: str) -> None:
        """Note what has to be done only because of other changes."""
        self._changes.append(Change(position, rule, what))

    def rename(self, holder: Any, key: str | int, position: str) -> None:
        """Let a tool have a name that the provider takes.

        Args:
            holder: The object, or the list, that holds the name.
            key: Where it holds it.
            position: Where that is in the request.
        """
        name = holder.get(key) if isinstance(key, str) else holder[key]
        if self.names.takes(name):
            return
        holder[key] = made = self.names.of(name)
        self.note(
            position,
            "invalid_tool_name",
            f"the provider refuses the tool name {shorten(name)}",
            f"Send a name of {self.names.facts.tool_names_in_words}, the same everywhere",
            f"the tool is named {made!r} everywhere in the request",
        )

    def as_text(self, call: dict[str, Any], key: str, position: str, empty: str) -> None:
        """Let the arguments of a call be text; `empty` where there are none."""
        value = call.get(key)
        if isinstance(value, str):
            return
        call[key] = empty if value is None else text_of(value)
        self.note(
            position,
            "arguments_not_text",
            f"expected the text that the model wrote, got {shorten(value)}",
            "Send the arguments as text",
            "made text of them",
        )

    def text_id(self, holder: dict[str, Any], key: str, position: str) -> None:
        """Let the id of a call, if there is one, be text."""
        call_id = holder.get(key)
        if call_id is None or isinstance(call_id, str):
            return
        holder[key] = text_of(call_id)
        self.note(
            f"{position}.{key}",
            "invalid_call_id",
            f"expected the id of a call, got {shorten(call_id)}",
            "Send the id as text, the same in the call and in its result",
            "made text of it",
        )

    @property
    def violations(self) -> list[Violation]:
        """Every breach, in the order of the items."""
        return sorted(self._violations, key=_order)

    @property
    def changes(self) -> list[Change]:
        """Everything that was done, in the order of the items."""
        return sorted(self._changes, key=_order)


def text_of(value: Any) -> str:
    """Give anything that stands where text belongs as text."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else compact_json(value)
    except (TypeError, ValueError):
        return shorten(value)


def _order(note: Violation | Change) -> tuple[str, list[int]]:
    field = _FIELD.match(note.position)
    return field[0] if field else "", [int(step) for step in _STEPS.findall(note.position)]
