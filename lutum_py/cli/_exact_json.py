"""Read JSON so that it can be written again with nothing changed but what was changed on purpose.

Numbers keep their text (`1.10`, `1e400`, `-0`), objects the order of their keys, and the whole its
style: indentation, spaces, and whether characters beyond ASCII are escaped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .._text.json import ExactNumber, exact_json, is_array, is_object, refuse_constant
from ._screen import Failure

_INDENTED = re.compile(r"[\[{]\r?\n([ \t]+)")
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}")
_LONE = re.compile("[\ud800-\udfff]")


def _whole(written: str) -> int | ExactNumber:
    # Python refuses to read integers of thousands of digits, and knows no negative zero.
    is_plain = len(written) < 4000 and written != "-0"
    return int(written) if is_plain else ExactNumber(written)


@dataclass(frozen=True, slots=True)
class Style:
    """How a JSON text is laid out.

    Attributes:
        indent: What one level is indented by; None for text on one line.
        after_comma: What follows a comma on one line.
        after_colon: What follows a colon.
        is_ascii: Whether other characters are escaped.
        line: How a line ends.
        end: What stands after the last bracket.
    """

    indent: str | None
    after_comma: str
    after_colon: str
    is_ascii: bool
    line: str
    end: str


def read_exact(data: bytes, name: str) -> tuple[Any, Style]:
    """Parse JSON, and see how it is laid out.

    Args:
        data: The bytes of a file, in UTF-8.
        name: What it is called in messages.

    Raises:
        Failure: It is not JSON, or an object in it has the same key twice.
    """
    try:
        words = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(
            f"{name} is not UTF-8 text (byte {error.start}), so it is not JSON."
        ) from None
    if not words.strip():
        raise Failure(f"{name} is empty, so it is not JSON.")
    try:
        value = json.loads(
            words,
            parse_float=ExactNumber,
            parse_int=_whole,
            parse_constant=refuse_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise Failure(f"{name} is nested too deeply to be read.") from None
    except ValueError as error:
        if _is_lines(words):
            raise Failure(
                f"{name} is JSON Lines, a value on each line, and not one JSON value. Give one "
                "line at a time; where each line is a message, make one list of them."
            ) from None
        raise Failure(f"{name} is not JSON: {error}.") from None
    return value, _style_of(words)


def _is_lines(words: str) -> bool:
    """Whether each line is an object or a list of its own."""
    lines = [line for line in words.split("\n") if line.strip()]
    try:
        values = [json.loads(line) for line in lines]
    except ValueError:
        return False
    return len(values) > 1 and all(is_object(value) or is_array(value) for value in values)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON readers keep the last of two equal keys. A repair that did so would drop the other,
    # silently.
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return made


# By the first thing of each kind that is found: a file of mixed styles comes out in one of them,
# which only its white space shows.
def _style_of(words: str) -> Style:
    indented = _INDENTED.search(words)
    return Style(
        indent=indented[1] if indented else None,
        after_comma=" " if ', "' in words or ", {" in words else "",
        after_colon=" " if '": ' in words else "",
        is_ascii=words.isascii() and _ESCAPED.search(words) is not None,
        line="\r\n" if indented and "\r" in indented[0] else "\n",
        end=words[len(words.rstrip()) :],
    )


def exact_text(value: Any, style: Style) -> str:
    """Write what `read_exact` read, or something made of it, in the style that it had."""
    text = exact_json(
        value,
        ensure_ascii=style.is_ascii,
        indent=style.indent,
        separators=("," + style.after_comma * (style.indent is None), ":" + style.after_colon),
    )
    if not style.is_ascii:
        # Half of a surrogate pair has no form in UTF-8, and came as an escape.
        text = _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.replace("\n", style.line) + style.end
