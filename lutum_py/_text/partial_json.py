"""A best-effort view of JSON text that is still coming in.

Short text is read again with every piece. Past `_EXACT` characters it is read only when it has
grown by an eighth, so that the work stays proportional to the text and not to its square.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from .unicode import sendable

__all__ = ["PartialJson"]

_EXACT = 4096


class PartialJson:
    """Collect the pieces of one JSON text.

    Example:
        >>> json = PartialJson()
        >>> json.add('{"city": "Par')
        {'city': 'Par'}
        >>> json.text
        '{"city": "Par'
    """

    __slots__ = ("_length", "_next", "_pieces", "_view")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._next = 0
        self._view: Any = {}

    @property
    def text(self) -> str:
        """All the text so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> Any:
        """Add a piece and return the value as far as it can be read; for display only."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._next:
            return self._view
        if self._length >= _EXACT:
            self._next = self._length + self._length // 8
        with suppress(ValueError):
            self._view = from_json(sendable(self.text), allow_partial="trailing-strings")
        return self._view
