"""A bound on what a model reads of a result, and stores that keep the rest within its reach."""

from __future__ import annotations

from dataclasses import field
from typing import Final, Protocol

from .._text.clipping import clipped
from .._text.immutable import dataclass, with_fields
from .._text.json import is_whole, sendable, shorten
from ..errors import InvalidValueError, MisuseError
from .result import ToolResult

_LEAST_BYTES: Final = 400
"""The least that a cap may leave: the notice with a handle takes half of it."""


class ResultStore(Protocol):
    """What keeps the whole text of results that were capped: a dict, a table, a bucket."""

    def put(self, handle: str, text: str, /) -> None:
        """Keep a text; the same text always has the same handle."""
        ...

    def get(self, handle: str, /) -> str | None:
        """Return the text that was kept under a handle, or None."""
        ...


class MemoryResults:
    """Keep texts in the memory of this process, for as long as the object lives.

    Example:
        >>> store = MemoryResults()
        >>> store.put("h1", "a long text")
        >>> store.get("h1"), store.get("h2")
        ('a long text', None)
    """

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def put(self, handle: str, text: str, /) -> None:
        """Keep a text."""
        self._texts[handle] = text

    def get(self, handle: str, /) -> str | None:
        """Return the text that was kept under a handle, or None."""
        return self._texts.get(handle)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"<{len(self)} results in memory>"


@dataclass(frozen=True, slots=True)
class ResultCap:
    """Bound what a model reads of a result: head, notice and tail, in so many bytes at most.

    Args:
        max_bytes: The bound, in bytes of UTF-8; 400 at least.
        store: Keeps the whole text, which the model may then read on with the stock tool that
            `result_reader(store)` makes.

    Raises:
        InvalidValueError: The bound is too small.
        MisuseError: The bound is not a number, or the store is not a store.

    Example:
        >>> from lutum_py import ToolResult
        >>> whole = ToolResult(id="c1", name="log", arguments="{}", result='"' + "x" * 2000 + '"')
        >>> capped = ResultCap(400).apply(whole)
        >>> len(capped.model_text) <= 400, len(capped.output)
        (True, 2000)
    """

    max_bytes: int
    store: ResultStore | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        check_bound("ResultCap", self.max_bytes)
        if self.store is not None:
            check_store("ResultCap", self.store)

    def apply(self, result: ToolResult) -> ToolResult:
        """Return a result of which the model reads no more than the cap allows.

        Args:
            result: A result of any status.

        Returns:
            The same result where it is short enough; else one whose `message` is the head, a
            notice and the tail. Its `output` is whole.
        """
        if not isinstance(result, ToolResult):
            raise MisuseError(f"A cap is applied to a ToolResult, not to {shorten(result)}.")
        # A text is never longer than the JSON that it is written in, which need not be read then.
        raw = result.result if result.message is None else result.message
        if _fits(raw, self.max_bytes) or _fits(text := result.model_text, self.max_bytes):
            return result
        # The handle is a digest of the text: capped again after a restart, it is the same, and a
        # view that cuts more of the message finds the rest by it.
        handle = None
        if self.store is not None:
            from hashlib import sha256  # only where something is cut

            handle = sha256(text.encode()).hexdigest()[:32]
            self.store.put(handle, text)
        message = sendable(clipped(text, text, len(text), handle, self.max_bytes))
        return with_fields(result, message=message, handle=handle)


def check_bound(where: str, max_bytes: object) -> None:
    """Refuse a bound that is not a number, or leaves no room."""
    if not is_whole(max_bytes):
        raise MisuseError.of_field(where, "max_bytes", "a whole number", max_bytes)
    if max_bytes < _LEAST_BYTES:
        raise InvalidValueError(
            f"{where}: max_bytes={max_bytes} leaves no room for a text beside the notice that it "
            f"was cut. Give {_LEAST_BYTES} at least."
        )


def check_store(where: str, store: object) -> None:
    """Refuse what cannot keep texts."""
    if isinstance(store, type) or not all(
        callable(getattr(store, name, None)) for name in ("put", "get")
    ):
        raise MisuseError(
            f"{where}: a store is an object with `put(handle, text)` and `get(handle)`, not "
            f"{shorten(store)}. `MemoryResults()` is one."
        )


def _fits(text: str, size: int) -> bool:
    # The cheap questions first: characters are never more than bytes, and ASCII text has as many.
    return len(text) <= size and (text.isascii() or len(text.encode()) <= size)
