"""What a pass over a broken request comes to: the mended items, and a note of each breach."""

from __future__ import annotations

import re
from typing import Any

from ._violations import Change, Violation

__all__ = ["Mending"]

_NUMBERS = re.compile(r"\d+")


class Mending:
    """Collect the mended items and the notes.

    Attributes:
        items: The items as they are to be sent.
    """

    __slots__ = ("_notes", "items")

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._notes: list[tuple[Violation, Change]] = []

    def note(self, position: str, rule: str, problem: str, remedy: str, what: str) -> None:
        """Note a breach, and what is done about it."""
        self._notes.append(
            (Violation(position, rule, problem, remedy), Change(position, rule, what))
        )

    @property
    def violations(self) -> list[Violation]:
        """Every breach, in the order of the items."""
        return [violation for violation, _ in sorted(self._notes, key=_order)]

    @property
    def changes(self) -> list[Change]:
        """Everything that was done, in the order of the items."""
        return [change for _, change in sorted(self._notes, key=_order)]


def _order(note: tuple[Violation, Change]) -> list[int]:
    return [int(number) for number in _NUMBERS.findall(note[0].position)]
