"""Texts that are safe to print, names that are near, and failures told from interrupts.

A listener, a context or an encoder that raises must take no result away. What it raises is its own
failure, also where that is an `asyncio.CancelledError`: sync code is not where a task learns of its
cancellation. An interrupt, such as Ctrl-C or `sys.exit`, goes on once the result is kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, cast


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception must go on: it is neither an error nor a cancellation."""
    # Whoever raises it has loaded asyncio, which takes too long to load here.
    asyncio = sys.modules.get("asyncio")
    is_cancellation = asyncio is not None and isinstance(error, asyncio.CancelledError)
    return not (is_cancellation or isinstance(error, Exception))


def must_go_on(error: BaseException) -> bool:
    """Whether an exception in async code ends the program, or the task that runs this code.

    A function may await what somebody else cancelled: such a cancellation is its own failure.
    """
    if is_interrupt(error):
        return True
    if isinstance(error, Exception):
        return False
    from asyncio import current_task

    task = current_task()
    return task is not None and task.cancelling() > 0


def members_of(error: Exception) -> Sequence[Exception]:
    """Return the members of an exception group; none for any other exception."""
    if not isinstance(error, ExceptionGroup):
        return ()
    return cast("ExceptionGroup[Exception]", error).exceptions


def sole(error: Exception) -> Exception:
    """Take a group of one, as task groups make it, for the one."""
    while len(members := members_of(error)) == 1:
        error = members[0]
    return error


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


# `forcast` and `forecast` are 0.93 alike, `search` and `delete` 0.17. Lower than this, a model
# would be led to tools that do something else.
_CUTOFF = 0.6
"""How alike two names have to be, from 0 to 1, for one to be proposed for the other."""

_MOST = 30
"""How many names stand in a message."""


# Comparing two names takes time with the product of their lengths, and a model chooses how many
# names it sends. 4,000,000 is a name of 16 letters against 16,000 like it: less than a second.
_MOST_COMPARED = 4_000_000
"""How much is compared for all names that are looked up together, in pairs of characters."""


_LEFT: ContextVar[list[int] | None] = ContextVar("_LEFT", default=None)
"""How much may still be compared by all that is made within `compared_together`."""


@contextmanager
def compared_together() -> Generator[None]:
    """Bound what is compared for all names together, such as those in the calls of one turn."""
    outer = _LEFT.set([_MOST_COMPARED])
    try:
        yield
    finally:
        _LEFT.reset(outer)


class NearestNames:
    """Find the known names nearest to others, of which somebody may send any number.

    The first name is always looked for, and each name once. When too much was compared, no further
    name has a nearest one.

    >>> NearestNames(["forecast", "search"]).nearest("forcast")
    'forecast'
    """

    __slots__ = ("_by_plain", "_found", "_left", "_length")

    def __init__(self, known: Iterable[str]) -> None:
        self._by_plain: dict[str, str] = {}
        for candidate in known:
            self._by_plain.setdefault(_plain(candidate), candidate)
        self._length = sum(map(len, self._by_plain))
        self._left = _LEFT.get() or [_MOST_COMPARED]
        self._found: dict[str, str | None] = {}

    def nearest(self, name: str) -> str | None:
        """Return the known name nearest to `name`, or None if none is near."""
        from difflib import get_close_matches

        plain = _plain(name)
        if plain not in self._found and self._left[0] > 0:
            self._left[0] -= len(plain) * self._length
            near = get_close_matches(plain, self._by_plain, n=1, cutoff=_CUTOFF)
            self._found[plain] = self._by_plain[near[0]] if near else None
        return self._found.get(plain)


def _plain(text: str) -> str:
    return text[:64].lower().replace("-", "_").replace(".", "_").replace(" ", "_")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, or None if none is near."""
    return NearestNames(known).nearest(name)


def meant_by(name: str, known: Iterable[str]) -> str:
    """Ask in a sentence, with a space before it, for the nearest name; empty if none is near.

    >>> meant_by("forcast", ["forecast"])
    ' Did you mean `forecast`?'
    """
    near = did_you_mean(name, known)
    return f" Did you mean {quoted(near)}?" if near else ""


def names_for_message(names: Iterable[str]) -> str:
    """List names in backticks for a message, the first of them where there are many."""
    listed = list(names)
    shown = ", ".join(quoted(name) for name in listed[:_MOST])
    if len(listed) > _MOST:
        shown += f" and {len(listed) - _MOST} more"
    return shown or "none"
