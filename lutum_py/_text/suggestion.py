"""Find the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from .escaping import quoted

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
        self._left = _MOST_COMPARED
        self._found: dict[str, str | None] = {}

    def nearest(self, name: str) -> str | None:
        """Return the known name nearest to `name`, or None if none is near."""
        from difflib import get_close_matches

        plain = _plain(name)
        if plain not in self._found and self._left > 0:
            self._left -= len(plain) * self._length
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
