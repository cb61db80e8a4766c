r"""Show text that somebody else wrote: to a person, in a log, to the model.

Text of a model, a tool, a provider or a file may hold what commands a terminal (`ESC [ 2 K` wipes
the line that is being approved), what turns the direction of reading around, and what cannot be
seen at all. Where it is shown it goes through `escape_unprintable`, which spells that out; where it
is kept or sent it stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from .own_code import is_interrupt

# Patterns that `re` compiles when they are first asked for, which takes longer than most imports.
_UNUSUAL: Final = r"[^ -~]"
LINES: Final = "\n\t"
"""What `escape_unprintable` is to keep where text of several lines is expected."""

_UNSEEN: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode calls `Default_Ignorable_Code_Point`, assigned or not: no font shows any of it.

A pattern that `re` compiles when it is first asked for, which takes longer than most imports here.
"""
_SPACES: Final = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_LONGEST: Final = 80
"""How many characters of a name are shown."""


# A model may write `Pay Acme 12.00?` and after it what wipes the line and writes another amount.
# Whoever approves on a terminal has to see what is run, so all that does not print is spelled out.
def escape_unprintable(text: str, kept: str = "") -> str:
    r"""Spell out the characters that do not print, and make a plain space of every other space.

    Those are control characters, line and paragraph separators, what overrides the direction of
    reading, halves of surrogate pairs, and what Unicode leaves unassigned or calls ignorable, also
    if it joins emoji or letters.

    Args:
        text: Text that anybody may have written.
        kept: Characters that stay all the same, such as line breaks where lines are expected.

    >>> print(escape_unprintable("Pay Acme 12.00?" + chr(27) + "[2K" + chr(13)))
    Pay Acme 12.00?\x1b[2K\r
    """
    if _is_seen(text):
        return text
    return re.sub(_UNUSUAL, lambda found: _shown(found[0], kept), text)


def _is_seen(text: str) -> bool:
    return text.isprintable() and (text.isascii() or re.search(_UNSEEN, text) is None)


def is_unseen(char: str) -> bool:
    """Whether a character is shown by nothing: Unicode says that it is to be ignored."""
    return re.match(_UNSEEN, char) is not None


def without_unseen(text: str) -> str:
    """Take out the characters that are shown by nothing.

    >>> without_unseen("pay" + chr(0x200B) + "pal")
    'paypal'
    """
    return re.sub(_UNSEEN, "", text)


def _shown(char: str, kept: str) -> str:
    if _is_seen(char) or char in kept:
        return char
    if char in _SPACES:
        return " "
    return char.encode("unicode_escape").decode("ascii")


def escape_unprintable_json(text: str) -> str:
    r"""Spell out the same in JSON text, with the escapes of JSON: it still says what it said.

    >>> print(escape_unprintable_json('{"note": "' + chr(0x202E) + '"}'))
    {"note": "\u202e"}
    """
    if _is_seen(text):
        return text
    return re.sub(_UNUSUAL, lambda found: _in_json(found[0]), text)


def _in_json(char: str) -> str:
    if _is_seen(char) or char == "\n":
        return char
    # JSON escapes a character beyond U+FFFF as two: `\ud83d\ude00`.
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def quoted(name: str) -> str:
    """Put a name that anybody may have made up between backticks, on one line.

    >>> quoted("get_weather")
    '`get_weather`'
    """
    if not name:
        return "''"
    return (
        f"`{escape_unprintable(name)}`"
        if len(name) <= _LONGEST
        else f"`{escape_unprintable(name[:_LONGEST])}…`"
    )


def words_of(error: object) -> str:
    """Return the text of anything, such as an exception; if its `str` raises, say so.

    >>> words_of(ValueError("no such city"))
    'no such city'
    """
    try:
        return str(error)
    except BaseException as broken:  # its text is of its own making
        if is_interrupt(broken):
            raise
        return f"(its text cannot be read: `__str__` raised {type(broken).__name__})"
