"""What a call accesses of the world, and which accesses conflict.

An access has a place in one tree: the world, its areas, and in each area its targets; in `files`
folders and what is in them. Two accesses may conflict where the place of one is that of the other
or above it. What is not known is above all that it may be.

    *                                 anything
    * / orders / a17                  one order
    * / files / . / src / a.py        a path from wherever the program is
    * / files / / / srv / a.py        one from the root, which may be the same file
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from .._text.json import is_array
from .capabilities import ANY_AREA, FILES, ToolEffect

if TYPE_CHECKING:
    from .arguments import Arguments

Place: TypeAlias = tuple[str, ...]


class ResourceAccess(NamedTuple):
    """Say that a call reads or changes something; `call.accesses` gives those of a call.

    Attributes:
        area: The part of the world, such as `files`; `*` for any.
        target: What of it, in the form in which targets are compared; None for all of it.
        mutating: Whether it is changed.

    >>> write = ResourceAccess("files", "src", mutating=True)
    >>> write.conflicts_with(ResourceAccess("files", "src/app.py", mutating=False))
    True
    >>> write.conflicts_with(ResourceAccess("files", "docs", mutating=True))
    False
    """

    area: str
    target: str | None
    mutating: bool

    def conflicts_with(self, other: ResourceAccess) -> bool:
        """Whether both may be of the same thing, and one of them changes it.

        Args:
            other: What another call accesses.
        """
        if not (self.mutating or other.mutating):
            return False
        one, two = place_of(self), place_of(other)
        shared = min(len(one), len(two))
        return one[:shared] == two[:shared] or beside(one) == two[:2]


EVERYTHING: Final = (ResourceAccess(ANY_AREA, None, mutating=True),)
"""What a tool accesses that does not say."""


def place_of(touch: ResourceAccess) -> Place:
    """Say where something is in the tree of all that can be accessed."""
    if touch.area == ANY_AREA:
        return ()
    if touch.target is None:
        return (touch.area,)
    if touch.area != FILES:
        return (touch.area, touch.target)
    anchor = "/" if touch.target.startswith("/") else "."
    return (FILES, anchor, *touch.target.strip("/").split("/"))


def beside(place: Place) -> Place | None:
    """Return what may hold the same files as a path: paths of the root, or those that are not."""
    if len(place) > 1 and place[0] == FILES:
        return (FILES, "." if place[1] == "/" else "/")
    return None


def meet(some: Iterable[ResourceAccess], others: Iterable[ResourceAccess]) -> bool:
    """Whether something is accessed by both of two calls, and changed by one."""
    others = tuple(others)
    return any(one.conflicts_with(other) for one in some for other in others)


def accesses_of(
    effects: tuple[ToolEffect, ...], arguments: Arguments, data: Any
) -> tuple[ResourceAccess, ...]:
    """Say what a call accesses.

    Args:
        effects: What its tool declares.
        arguments: The arguments of the tool.
        data: Those of the call, as plain data; None if they have no JSON form.
    """
    if not effects:
        return EVERYTHING
    found: dict[ResourceAccess, None] = {}
    for effect in effects:
        if effect.area is None:
            continue
        form: _Form = "NFC" if effect.area == FILES else "NFKC"
        for given in _given(arguments, data, effect.target) or [None]:
            for target in _targets(given, form):
                place = None if effect.area == ANY_AREA else target
                found[ResourceAccess(effect.area, place, effect.mutating)] = None
    return tuple(found)


def _given(arguments: Arguments, data: Any, target: str | None) -> list[Any]:
    """Return the values of the argument that is a target, but for a secret."""
    masking = arguments.masking
    if target is None or (masking.found and masking.hides((target,))):
        return []
    return arguments.values_of(data, target)


_Form: TypeAlias = Literal["NFC", "NFKC"]


def _targets(value: Any, form: _Form) -> Iterator[str | None]:
    """Yield the targets that an argument names; None if it may be any."""
    if is_array(value) and value:
        for part in value:
            yield from _targets(part, form)
    elif isinstance(value, str):
        yield (_path(value) if form == "NFC" else _folded(value, form).strip()) or None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(int(value) if isinstance(value, float) and value.is_integer() else value)
    else:
        yield None


def _folded(text: str, form: _Form) -> str:
    """Write texts alike that differ in their case or in how letters are put together."""
    return normalize(form, normalize(form, normalize("NFD", text).casefold()).casefold())


_ANYWHERE = re.compile(r"\s|~|[a-z][a-z0-9+.-]*:|.*(?:\s\Z|[$%])", re.DOTALL)
_PATTERN = re.compile(r"[*?\[{]")


def _path(text: str) -> str | None:
    """Resolve a path by its letters; None if nobody can tell by them where it is."""
    text = _folded(text, "NFC").replace("\\", "/")
    if _ANYWHERE.match(text):
        return None
    pattern = _PATTERN.search(text)
    if pattern is not None:
        if ".." in text[pattern.start() :]:
            return None
        text = text[: text.rfind("/", 0, pattern.start()) + 1]
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if text.startswith("/") else "") + "/".join(parts) if parts else None
