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


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, or None if none is near."""
    from difflib import get_close_matches

    def plain(text: str) -> str:
        return text[:64].lower().replace("-", "_").replace(".", "_").replace(" ", "_")

    by_plain: dict[str, str] = {}
    for candidate in known:
        by_plain.setdefault(plain(candidate), candidate)
    near = get_close_matches(plain(name), by_plain, n=1, cutoff=_CUTOFF)
    return by_plain[near[0]] if near else None


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
