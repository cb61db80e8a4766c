"""Read stored JSON with care: every surprise is an error that says where.

A `Saved` is one object of the text and the path to it. Whoever reads takes entries by name and type
from it and goes into inner ones, so that the path in a message is right without anyone passing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar, cast, get_args

from pydantic_core import from_json

from .._text.json import refuse_constant, shorten
from ..errors import MisuseError, SavedDataError

K = TypeVar("K")
_MISSING: Any = object()
_LIST: type[list[object]] = list
OBJECT: type[dict[str, Any]] = dict
"""The type of an entry that is an object."""


def dump_saved(data: dict[str, Any], error: type[SavedDataError], what: str) -> str:
    """Encode plain data as ASCII, so that any text the model sent survives any store."""
    try:
        return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as reason:
        raise error(
            f"{what} holds something that is not JSON data ({reason}). Payloads and tickets must "
            "be plain dicts, lists, texts, numbers, booleans and None."
        ) from reason


def open_saved(
    text: str | bytes,
    *,
    form: str,
    versions: tuple[int, ...],
    error: type[SavedDataError],
    what: str,
) -> Saved:
    """Parse stored text, and check its format and version.

    Args:
        text: What was stored.
        form: The name of the format, which the text has to carry.
        versions: The versions that this code reads.
        error: What to raise.
        what: What it is, for messages.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise MisuseError(
            f"A saved {what} is loaded from its text, not from {shorten(text)}. Pass what "
            "`dump_json()` gave, as str or bytes."
        )
    try:
        data = _parse(text)
    except (ValueError, RecursionError) as reason:
        raise error(f"This is not a saved {what}: it is not JSON ({reason}).") from None
    if not isinstance(data, dict):
        raise error(
            f"This is not a saved {what}: it is {shorten(data)}. Load what `dump_json()` gave."
        )
    # Paths are written as in `$.calls[2].ticket`, so that an editor's search finds the place.
    saved = Saved(data, "$", error)
    if saved.data.get("format") != form:
        raise error(
            f"This is not a saved {what}: its `format` is {shorten(saved.data.get('format'))}, not "
            f"{form!r}. Load what `dump_json()` gave."
        )
    version = saved.data.get("version")
    if type(version) is not int or version not in versions:
        raise error(
            f"This {what} has format version {shorten(version)}; this release reads "
            f"{', '.join(map(str, versions))}. Load it with the release that saved it."
        )
    return saved


def _parse(text: str | bytes) -> Any:
    """Parse JSON text; what the fast parser refuses, such as lone surrogates, the slow one reads.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except (TypeError, ValueError):
        return json.loads(text, parse_constant=refuse_constant)


# `Damaged data at $.calls[2].ticket.id: expected str, got 3.` pydantic would check a model of the
# whole, and say less of what it found: a message here names the place, and quotes no more than is
# safe.
class Saved:
    """One JSON object of stored data, and where it stands."""

    __slots__ = ("_around", "_error", "_index", "_step", "data")

    def __init__(
        self,
        data: Any,
        step: str,
        error: type[SavedDataError],
        around: Saved | None = None,
        index: int | None = None,
    ) -> None:
        self._step = step
        self._index = index
        self._around = around
        self._error = error
        if not isinstance(data, dict):
            raise self.wrong("", f"expected an object, got {shorten(data)}")
        self.data = cast("dict[str, Any]", data)

    @property
    def path(self) -> str:
        """The way to the object."""
        step = self._step if self._index is None else f"{self._step}[{self._index}]"
        return step if self._around is None else f"{self._around.path}.{step}"

    def wrong(self, key: str, reason: str) -> SavedDataError:
        """Make the error that says what is wrong with an entry."""
        where = f"{self.path}.{key}" if key else self.path
        return self._error(f"Damaged data at {where}: {reason}.")

    def get(self, key: str, kind: type[K], default: Any = _MISSING) -> K:
        """Return an entry, which has to be of a type; None counts where it is the default."""
        value = self.data.get(key, _MISSING)
        # By class and not by `isinstance`: in stored data True is not a number.
        if value.__class__ is kind:
            return value
        if value is _MISSING or value is default is None:
            if default is _MISSING:
                raise self.wrong(key, "it is missing")
            return default  # type: ignore[no-any-return]
        raise self.wrong(key, f"expected {kind.__name__}, got {shorten(value)}")

    def json_text(self, key: str) -> str:
        """Return an entry that is JSON text itself; any text a tool gave is taken back."""
        text = self.get(key, str)
        try:
            _parse(text)
        except (ValueError, RecursionError) as reason:
            raise self.wrong(key, f"expected JSON text, got {shorten(text)} ({reason})") from None
        return text

    def member(self, key: str, allowed: Any) -> Any:
        """Return an entry that is one of some texts, or of those of a literal or an enumeration."""
        is_listed = allowed.__class__ is tuple
        values: tuple[Any, ...] = allowed if is_listed else get_args(allowed) or tuple(allowed)
        value = self.get(key, str)
        if value not in values:
            raise self.wrong(key, f"{shorten(value)} is none of the known values")
        return values[values.index(value)]

    def each(self, key: str, *, optional: bool = False) -> Iterator[Saved]:
        """Go through a list of objects, which may be missing only where that is said."""
        entries: list[object] = self.get(key, _LIST, [] if optional else _MISSING)
        for index, entry in enumerate(entries):
            yield Saved(entry, key, self._error, self, index)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        texts: list[object] = self.get(key, _LIST)
        if not all(isinstance(entry, str) for entry in texts):
            raise self.wrong(key, "expected texts only")
        return tuple(cast("list[str]", texts))

    def inner(self, key: str) -> Saved:
        """Go into an object."""
        return Saved(self.get(key, OBJECT), key, self._error, self)

    def inner_or_none(self, key: str) -> Saved | None:
        """Go into an object, if it is there."""
        return None if self.data.get(key) is None else self.inner(key)
