"""Names and words of a server: what its tools are called here, and what is left of its texts.

A server writes text that the model reads. What nobody sees on a screen (controls, marks of
direction, tag characters) can carry words that a reviewer never read, so it is taken out.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256
from typing import Any, Final

from .._schema.schema_reader import JsonSchema, with_subschemas
from .._text.escaping import LINES, visible
from .._text.json import cut, is_object
from .._text.unicode import sendable

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the protocol lets tools be called."""

_LONGEST: Final = 64
_DIGITS: Final = 8
_SAID_IN_A_LINE: Final = 500
_JOINERS: Final = "\u200c\u200d"
"""Persian and Indic scripts need these, and emoji; they hide nothing by themselves."""


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
        text = "".join(filter(_is_seen, sendable(text)))
    return cut(text.strip(), limit)


def hides(text: str) -> bool:
    """Whether a text holds what nobody sees."""
    return not text.isascii() and not all(map(_is_seen, text))


def _is_seen(char: str) -> bool:
    if char in LINES or char in _JOINERS:
        return True
    if "\ufe00" <= char <= "\ufe0e" or "\U000e0100" <= char <= "\U000e01ef":
        return False
    return unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp")


def one_line(text: str) -> str:
    """Show a server's text in a message: on one line, without anything that does not print."""
    return visible(cut(" ".join(sendable(text).split()), _SAID_IN_A_LINE))


def legible_schema(schema: Any) -> Any:
    """Take out of a schema's titles and descriptions what nobody sees."""
    if not is_object(schema):
        return schema
    kept: JsonSchema = {
        key: legible(part, len(part)) if key in _SAID and isinstance(part, str) else part
        for key, part in schema.items()
    }
    return with_subschemas(kept, legible_schema)


_SAID: Final = ("title", "description", "$comment")
