"""What is taken of a server: how much, what its tools are called here, what is left of its texts.

A server writes text that the model reads. What nobody sees on a screen (controls, marks of
direction, tag characters) can carry words that a reviewer never read, so it is taken out.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final

from .._schema.schema_reader import JsonSchema, with_subschemas
from .._text.escaping import LINES, escape_unprintable, is_unseen
from .._text.json import cut, is_array, is_object, shorten
from .._text.unicode import sendable
from ..errors import InvalidValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bound what is taken of a server that may send anything.

    They hold for what the SDK has read already; what it reads is bounded by the SDK, or not at all.

    Attributes:
        tools: Tools, after `only=`; more are a `ProviderError`.
        description: Characters of a description, a title, or a question; the rest is cut off.
        schema: Characters of the schemas of one tool, or of a question; a tool with more is
            refused.
        result: Characters of one result; the model gets an error in place of a longer one.

    Raises:
        InvalidValueError: A limit is not a positive number.

    Example:
        >>> Limits(tools=20).description
        8192
    """

    tools: int = 1000
    description: int = 8192
    schema: int = 100_000
    result: int = 10_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidValueError(
                    f"Limits({field.name}={shorten(value)}): give a whole number above 0."
                )


NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the protocol lets tools be called."""

_LONGEST: Final = 64
_DIGITS: Final = 8
_SAID_IN_A_LINE: Final = 500
_JOINERS: Final = "\u200c\u200d"
"""Persian and Indic scripts need these, and emoji."""
_SELECTORS: Final = "\ufe0e\ufe0f"
"""They choose whether a symbol is a letter or a picture."""


def wire_name(name: str) -> str:
    """Make the wire name of a server's tool: every provider takes it.

    A dot becomes an underscore; of a name of more than 64 characters the end becomes a digest.

    Args:
        name: What the server calls the tool.

    Example:
        >>> wire_name("repo.list_issues")
        'repo_list_issues'
        >>> len(wire_name("a" * 128))
        64
    """
    made = name.replace(".", "_")
    if len(made) <= _LONGEST:
        return made
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{made[: _LONGEST - _DIGITS - 1]}_{digest}"


def legible(text: str, limit: int) -> str:
    """Take out what nobody sees, and end the text at a limit."""
    if not text.isascii() or not text.isprintable():
        text = _seen(sendable(text))
    return cut(text.strip(), limit)


def _seen(text: str) -> str:
    # With two spaces on both sides, so that each character has two before and two after it.
    said = f"  {text}  "
    around = zip(said, said[1:], said[2:], said[3:], said[4:], strict=False)
    return "".join(near[2] for near in around if _is_seen(near[2]) or _joins(*near))


def hides(data: Any) -> bool:
    """Whether some text in plain JSON data, names included, holds what nobody sees."""
    if isinstance(data, str):
        return not (data.isascii() and data.isprintable()) and not all(map(_is_seen, data))
    if is_object(data):
        return any(map(hides, data)) or any(map(hides, data.values()))
    return is_array(data) and any(map(hides, data))


def _is_seen(char: str) -> bool:
    unseen = unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") or is_unseen(char)
    return char in LINES or not unseen


def _joins(earlier: str, before: str, char: str, after: str, later: str) -> bool:
    """Whether a character that nobody sees is alone, if a script or an emoji needs it.

    One that could be left out, or a run of them, may spell what nobody reads.
    """
    # "\u2764\ufe0f" is a red heart, and a run of selectors after it is a hidden text: each may
    # follow a symbol once, and something seen has to come next. Of "\u2764\ufe0f\u200d\U0001f525",
    # a heart on fire, that is the second symbol, which the joiner joins to the first.
    if char in _SELECTORS:
        return _is_symbol(before) and (_is_seen(after) or (after == "\u200d" and _is_symbol(later)))
    if before in _SELECTORS:
        return char == "\u200d" and _is_symbol(earlier) and _is_symbol(after)
    return char in _JOINERS and _is_joined(before) and _is_joined(after)


def _is_symbol(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char) in ("Sm", "So")


def _is_joined(char: str) -> bool:
    """Whether a character is of a script or kind that joins: no letter of English is."""
    return not char.isascii() and _is_seen(char) and unicodedata.category(char)[0] in "LMS"


def one_line(text: str) -> str:
    """Show a server's text in a message: on one line, without anything that does not print."""
    return escape_unprintable(cut(" ".join(sendable(text).split()), _SAID_IN_A_LINE))


def legible_schema(schema: Any) -> Any:
    """Take out of a schema's titles and descriptions what nobody sees."""
    if not is_object(schema):
        return schema
    kept: JsonSchema = {
        key: legible(part, len(part)) if key in _SAID and isinstance(part, str) else part
        for key, part in schema.items()
    }
    return with_subschemas(kept, legible_schema)


def without_words(schema: Any) -> Any:
    """Copy a schema without its titles and descriptions: with what is more than words."""
    if not is_object(schema):
        return schema
    kept = {
        key: part for key, part in schema.items() if key not in _SAID or not isinstance(part, str)
    }
    return with_subschemas(kept, without_words)


_SAID: Final = ("title", "description", "$comment")
