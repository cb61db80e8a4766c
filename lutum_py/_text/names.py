"""Names of tools as providers take them, and the words in which providers say why a turn ended."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property, lru_cache
from typing import Final

from .json import digest_of

_STEM, _DIGEST = 48, 12
# Patterns that `re` compiles when they are first asked for, after the import.
_FORM: Final = rf"[a-zA-Z][a-zA-Z0-9_]*_[0-9a-f]{{{_DIGEST}}}"
# What every provider takes that takes stand-ins.
_PLAIN: Final = rf"[a-zA-Z][a-zA-Z0-9_]{{0,{_STEM + _DIGEST}}}"
# Controls and halves of surrogate pairs.
_UNSENDABLE: Final = "[\x00-\x1f\x7f-\x9f\ud800-\udfff]"


def stand_in(name: str) -> str:
    """Return what goes out for a name where the provider refuses it.

    Args:
        name: Any text; the tool's own name, or one that a model made up.

    Example:
        >>> stand_in("math.factorial")
        'math_factorial_ad6b7ebf6789'
    """
    return f"{_stem(name)}_{digest_of(name).removeprefix('sha256:')[:_DIGEST]}"


def _stem(name: str) -> str:
    stem = re.sub(r"[^a-zA-Z0-9]+", "_", name[:_STEM]).strip("_")
    if not stem[:1].isalpha():
        stem = f"tool_{stem}".rstrip("_")
    return stem[:_STEM]


def is_plain(name: str) -> bool:
    """Tell a name that every provider takes, so that its stand-in is never needed."""
    return re.fullmatch(_PLAIN, name) is not None


def is_sendable(name: str) -> bool:
    """Tell a name that a tool may have: it is not blank, nor does it hold what no text carries."""
    return bool(name.strip()) and re.search(_UNSENDABLE, name) is None


class OwnNames:
    """Find the tools' own names of many names that came; each takes the same time.

    Args:
        known: The tools' own names.

    Example:
        >>> OwnNames(["math.factorial", "add"]).own("math_factorial_ad6b7ebf6789")
        'math.factorial'
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = known

    @cached_property
    def _by_stand_in(self) -> dict[str, str]:
        return {stand_in(each): each for each in self._known}

    def own(self, name: str) -> str:
        """Return the name of which another is the stand-in, as `own_name` does."""
        if name in self._known or re.fullmatch(_FORM, name) is None:
            return name
        return self._by_stand_in.get(name, name)


def own_name(name: str, known: Collection[str]) -> str:
    """Return the name of which another is the stand-in; or that name where it is not a stand-in.

    Args:
        name: What came: a tool's own name, its stand-in, or anything else.
        known: The tools' own names. One that came as it is wins.

    Example:
        >>> own_name("math_factorial_ad6b7ebf6789", ["math.factorial", "add"])
        'math.factorial'
        >>> own_name("add", ["math.factorial", "add"]), own_name("sum", ["add"])
        ('add', 'sum')
    """
    return OwnNames(known).own(name)


@lru_cache(64)
def is_among(finish_reason: str | None, words: frozenset[str]) -> bool:
    """Tell whether a turn ended for one of some reasons.

    Some hosts add their own word to one, as in `content_filter: SAFETY`, or spell it otherwise, as
    in `CONTENT-FILTER`.
    """
    if finish_reason is None:
        return False
    word = finish_reason.partition(":")[0].strip().replace("-", "_").casefold()
    return any(word == each.casefold() for each in words)
