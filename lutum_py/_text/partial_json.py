"""A best-effort view of JSON text that is still coming in.

Short text may be read again with every piece. Past `_EXACT` characters there is a new view only
when it has grown by an eighth, so that the work stays proportional to the text and not to its
square.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from pydantic_core import from_json

from .unicode import sendable

_EXACT = 4096

# What the parser cannot read of a number that goes on: the ends of `0.` and `1.5e-`.
_OPEN_NUMBER: Final = re.compile(r"(?<=\d)(?:\.|[eE][+-]?)$")
_QUOTES: Final = re.compile(r'\\.|[^"]', re.DOTALL)


# Most programs pass the pieces on, and look at none of the views: each is made when it is asked
# for. A view is known by its number, so that it is the same whenever that is.
class PartialJson:
    """Collect the pieces of one JSON text.

    Example:
        >>> json = PartialJson()
        >>> json.view(json.add('{"city": "Par'))
        {'city': 'Par'}
        >>> json.text
        '{"city": "Par'
    """

    __slots__ = ("_last", "_length", "_next", "_pieces", "_shown")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._next = 0
        # How many pieces each view shows; and what was read last, for which of the views.
        self._shown = [0]
        self._last: tuple[int, int, Any] = (0, 0, {})

    @property
    def text(self) -> str:
        """All the text so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> int:
        """Add a piece, and return the number of the view that shows it."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length >= self._next:
            self._shown.append(len(self._pieces))
            if self._length >= _EXACT:
                self._next = self._length + self._length // 8
        return len(self._shown) - 1

    def view(self, number: int) -> Any:
        """Return the value as far as it can be read there; for display only.

        If it cannot be read at all, that is what could be read before.
        """
        # A view may be asked for late and out of order, and is to be the same then. `_last` is the
        # one that was read last, so that asking for each in turn reads the text once.
        value: Any
        first, last, value = self._last
        if number < first:
            first, last, value = 0, 0, {}
        # From the view that is asked for back to the last one that was read: the first that can be
        # read.
        for each in range(number, last, -1):
            with suppress(ValueError):
                text = sendable("".join(self._pieces[: self._shown[each]]))
                value = from_json(_readable(text), allow_partial="trailing-strings")
                first = each
                break
        self._last = (first, max(number, last), value)
        return value


def _readable(text: str) -> str:
    """Return the text without the end of a number that cannot be read yet."""
    found = _OPEN_NUMBER.search(text, max(len(text) - 2, 0))
    # In a text, which an odd number of quotes leaves open, it is no number.
    if found is None or len(_QUOTES.sub("", text)) % 2:
        return text
    return text[: found.start()]
