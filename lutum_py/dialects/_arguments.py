"""The argument text of a call as hosts stream it: in pieces, cumulatively, or more than once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from .._text.json import (
    JsonObject,
    PartialJson,
    is_array,
    is_object,
    is_whole_json,
    parse_json,
    shorten,
)
from .sse import ObjectSplitter

# Where one object ends and another begins.
_SEAM: Final = re.compile(r"\}\s*\{")


class Pieces(list[str]):
    """A text that comes in pieces: each that is added to a string would copy all before it."""


def joined(fields: Mapping[str, object]) -> JsonObject:
    """Copy an object with its texts in one piece."""
    return {
        key: "".join(value) if isinstance(value, Pieces) else value for key, value in fields.items()
    }


class BrokenStream(Exception):
    """Raised by `_end` where the turn is not whole; `close` makes the `DialectError` of it."""


class Arguments(PartialJson):
    """Collect the argument text of one call.

    Example:
        >>> arguments = Arguments()
        >>> [arguments.add(piece) for piece in ('{"a": 1}', '{"a": 1, "b": 2}')]
        [1, 2]
        >>> arguments.whole("f")
        '{"a": 1, "b": 2}'
    """

    __slots__ = ("_looked", "_objects", "_splitter")

    def __init__(self) -> None:
        super().__init__()
        self._looked = 0
        self._objects: list[str] = []
        self._splitter: ObjectSplitter | None = ObjectSplitter(in_array=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come."""
        return not self._length

    # Asked with each piece that might begin another call, so only what came since is looked at.
    @property
    def is_whole(self) -> bool:
        """Whether the text so far is an object, or several, to the end."""
        pieces, splitter = self._pieces, self._splitter
        while splitter is not None and self._looked < len(pieces):
            self._looked += 1
            try:
                self._objects += splitter.feed(pieces[self._looked - 1])
            except ValueError:
                self._splitter = splitter = None
        return bool(self._objects) and splitter is not None and splitter.is_whole

    @property
    def is_open(self) -> bool:
        """Whether an object has begun, and has not come to its end."""
        return not self.is_whole and self._splitter is not None and self._splitter.is_inside

    def is_followed_by(self, text: str) -> bool:
        """Tell whether a piece is the arguments of another call, and not more of these.

        Args:
            text: The piece.
        """
        if not (begins_object(text) and self.is_whole):
            return False
        try:
            return not _contains(parse_json(text), parse_json(self._objects[-1]))
        except ValueError:
            return True

    def whole(self, tool: str) -> str:
        """Return the text at its end: once, where a host sent it cumulatively or twice.

        Args:
            tool: The tool that is called.

        Raises:
            BrokenStream: It is two different objects.
        """
        text = self.text
        pieces = [piece for piece in self._pieces if piece.strip()]
        is_cumulative = (
            len(pieces) > 1
            and begins_object(pieces[0])
            and all(later.startswith(earlier) for earlier, later in pairwise(pieces))
        )
        if not (is_cumulative or _SEAM.search(text)) or is_whole_json(text):
            return text
        if is_cumulative:
            return pieces[-1]
        if not self.is_whole:
            return text
        try:
            found = [parse_json(each) for each in self._objects]
        except ValueError:  # of the model's making
            return text
        if all(_contains(later, earlier) for earlier, later in pairwise(found)):
            return self._objects[-1]
        raise BrokenStream(
            f"the arguments of a call of {shorten(tool)} are two objects, of which the later does "
            "not contain the earlier; ask for the turn again"
        )


def settled(texts: Iterable[str], pieces: Arguments, tool: str, *, is_json: bool) -> str:
    """Return what a host wrote of a call in pieces, and again as a whole, once.

    Args:
        texts: Each whole, in order; `""` if one was left out.
        pieces: The pieces.
        tool: The tool that is called.
        is_json: Whether they are arguments, and not free text.

    Raises:
        BrokenStream: As of `Arguments.whole`, or neither of two contains the other.
    """
    written = pieces.whole(tool) if is_json else pieces.text
    for text in texts:
        if not text or text == pieces.text:
            continue
        said = text
        if is_json:
            whole = Arguments()
            whole.add(text)
            said = whole.whole(tool)
        agreed = _agreed(said, written, is_json) if written else said
        if agreed is None:
            raise BrokenStream(
                f"the arguments of a call of {shorten(tool)} are one text in pieces and another "
                "as a whole; ask for the turn again"
            )
        written = agreed
    return written


def _agreed(later: str, earlier: str, is_json: bool) -> str | None:
    """Return the one that contains the other; None if neither does."""
    if is_json:
        try:
            one, other = parse_json(later), parse_json(earlier)
        except ValueError:  # of the model's making, or pieces got lost
            pass
        else:
            return later if _contains(one, other) else earlier if _contains(other, one) else None
    # The whole is the host's last word on free text, which may have come cumulatively.
    return later if later in earlier or earlier in later else None


def begins_object(text: str) -> bool:
    """Tell whether a text begins an object."""
    return text.lstrip().startswith("{")


def once(text: str) -> str:
    """Return arguments that came in one piece, once where a host doubled them."""
    if _SEAM.search(text) is None:
        return text
    arguments = Arguments()
    arguments.add(text)
    try:
        return arguments.whole("")
    except BrokenStream:
        return text


def _contains(later: object, earlier: object) -> bool:
    """Tell whether a value has all of an earlier one, of which texts and lists may go on."""
    if is_object(later) and is_object(earlier):
        return all(key in later and _contains(later[key], earlier[key]) for key in earlier)
    if is_array(later) and is_array(earlier):
        return len(earlier) <= len(later) and all(map(_contains, later, earlier))
    if isinstance(later, str) and isinstance(earlier, str):
        return later.startswith(earlier)
    return bool(later == earlier)
