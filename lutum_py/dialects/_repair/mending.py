"""What a pass over a broken request comes to: the mended items, and a note of each breach.

Most requests break no rule. So each is first looked at as it is, by the code that reads items to
mend them, up to the first breach. For that nothing is changed before its breach is noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, Final

from ..._text.json import compact_json, copy_json, is_mapping, shorten
from .._facts import Facts
from .._findings import Change, Violation
from .._wire.reading import DUMP

MAYBE_TEXT: Final = (str, NoneType)
"""What `isinstance` asks of an id, which is text or absent."""

_STEPS: Final = re.compile(r"\[(\d+)\]")
_FIELD: Final = re.compile(r"[^.\[]*")


class Mending:
    """Collect the mended items and the notes.

    Args:
        facts: What is known of the dialect.
        body: The request body; empty where only its list was given.
        is_look: Whether this is the first look, at the request itself.

    Attributes:
        items: The items as they are to be sent.
    """

    __slots__ = ("_changes", "_is_look", "_taken", "_violations", "body", "facts", "items")

    def __init__(self, facts: Facts, body: Mapping[str, Any], *, is_look: bool = False) -> None:
        self.items: list[Any] = []
        self.body = body
        self.facts = facts
        self._is_look = is_look
        # The names that were looked at: the same few come again in every turn, and a pattern is
        # slower.
        self._taken: set[str] = set()
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
        """Note a breach, and what is done about it; only then may it be done.

        Raises:
            Breach: It ends the first look.
        """
        # The order of the lines matters everywhere: note, then mend. On the first look the item is
        # the caller's own, and nothing of it may have changed when this raises.
        if self._is_look:
            raise Breach
        self._violations.append(Violation(position, rule, problem, remedy))
        self._changes.append(Change(position, rule, what, is_mended))

    def drop_unknown(self, position: str, word: str, item: Any, remedy: str) -> None:
        """Note a message whose role is unknown.

        Args:
            position: Where it stands.
            word: What the provider calls a message.
            item: What is there.
            remedy: What to send, where it is an object.
        """
        self.note(
            position,
            "unknown_role",
            f"expected a {word} with a known role, got {shorten(item)}",
            remedy if is_mapping(item) else DUMP,
            f"removed the {word}",
        )

    # The first look reads what the caller holds, and may not copy it: that is what it saves. As it
    # ends with the first breach, before anything is mended, it needs no copy either.
    def own(self, item: Any) -> Any:
        """Return an item as a breach in it may be mended: a copy, but for the first look."""
        return item if self._is_look else copy_json(item)

    def takes(self, name: Any) -> bool:
        """Tell whether the provider takes the name of a tool; of a known one, at once."""
        if name.__class__ is str and name in self._taken:
            return True
        if not self.facts.takes_name(name):
            return False
        self._taken.add(name)
        return True

    def drop(self, position: str, rule: str, remedy: str, word: str = "result") -> None:
        """Note a result that has no place.

        Args:
            position: Where it stands.
            rule: `orphan_result` or `duplicate_result`.
            remedy: What to send.
            word: What the provider calls it.
        """
        is_orphan = rule == "orphan_result"
        why = "it answers no call" if is_orphan else f"its call has a {word} already"
        what = f"removed the {word}, because {why}"
        self.note(position, rule, f"the {word} has no place: {why}", remedy, what)

    def out_of_order(self, position: str, word: str = "result") -> None:
        """Note a result that stands where that of another call belongs.

        Args:
            position: Where it stands.
            word: What the provider calls it.
        """
        self.note(
            position,
            "results_out_of_order",
            f"the {word}s are not in the order of their calls",
            f"Send the {word}s in the order of the calls",
            f"put the {word} where its call stands",
        )

    def unanswered(self, position: str, call: Any, remedy: str, word: str = "result") -> None:
        """Note a call that nobody answered, which gets a result that says so.

        Args:
            position: Where the call stands.
            call: Its id, or its name.
            remedy: What to send.
            word: What the provider calls a result.
        """
        self.note(
            position,
            "call_without_result",
            f"the call {shorten(call)} has no {word}",
            remedy,
            f"added a {word} that says that its outcome is unknown",
        )

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
        if self.takes(name):
            return
        made = self.facts.wire_name(name)
        self.note(
            position,
            "invalid_tool_name",
            f"the provider refuses the tool name {shorten(name)}",
            f"Send a name of {self.facts.tool_names_in_words}, the same everywhere",
            f"the tool is named {made!r} everywhere in the request",
        )
        holder[key] = made

    def is_well_written(self, call: Mapping[str, Any], key: str) -> bool:
        """Tell whether a call has a name that the provider takes, and arguments that are text."""
        return isinstance(call.get(key), str) and self.takes(call.get("name"))

    def mend_call(self, call: dict[str, Any], key: str, position: str) -> None:
        """Let a call have a name that the provider takes, and arguments that are text.

        Args:
            call: What holds both.
            key: Where it holds the arguments: `arguments`, or `input` where any text is taken.
            position: Where that is in the request.
        """
        self.rename(call, "name", f"{position}.name")
        value = call.get(key)
        if isinstance(value, str):
            return
        self.note(
            f"{position}.{key}",
            "arguments_not_text",
            f"expected the text that the model wrote, got {shorten(value)}",
            "Send the arguments as text",
            "made text of them",
        )
        empty = "{}" if key == "arguments" else ""
        call[key] = empty if value is None else text_of(value)

    def text_id(self, holder: dict[str, Any], key: str, position: str) -> None:
        """Let the id of a call be text, where it is something else."""
        self.note(
            f"{position}.{key}",
            "invalid_call_id",
            f"expected the id of a call, got {shorten(holder[key])}",
            "Send the id as text, the same in the call and in its result",
            "made text of it",
        )
        holder[key] = text_of(holder[key])

    @property
    def violations(self) -> list[Violation]:
        """Every breach, in the order of the items."""
        return sorted(self._violations, key=_order)

    @property
    def changes(self) -> list[Change]:
        """Everything that was done, in the order of the items."""
        return sorted(self._changes, key=_order)


class Breach(Exception):
    """Ends the first look at a request: there is something to be mended."""


def text_of(value: Any) -> str:
    """Return anything that stands where text belongs as text."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else compact_json(value)
    except (TypeError, ValueError):
        return shorten(value)


def _order(note: Violation | Change) -> tuple[str, list[int]]:
    field = _FIELD.match(note.position)
    # By numbers, as in ("messages", [10, 0]): as text, messages[10] would come before messages[9].
    return field[0] if field else "", [int(step) for step in _STEPS.findall(note.position)]
