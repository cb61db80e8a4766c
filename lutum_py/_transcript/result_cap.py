"""A bound on what a model reads of a result, and stores that keep the rest within its reach."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final, Protocol

from .._text.immutable import dataclass
from .._text.json import is_whole, shorten
from ..errors import InvalidValueError, MisuseError
from .result import ToolResult, with_message

_LEAST_BYTES: Final = 400
"""The least that a cap may leave: the notice with a handle takes half of it."""

READER: Final = "read_more"
"""The name of the stock tool that reads on."""


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
        return with_message(result, _joined(text, text, len(text), handle, self.max_bytes))


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


def _notice(stop: int, start: int, handle: str | None, total: int | None = None) -> str:
    """Say what was left out, in ASCII; with the total for all numbers it is at its longest."""
    of = f"of {stop if total is None else total} characters"
    on = "" if handle is None else f'; read them with {READER}(handle="{handle}", offset={start})'
    return f"\n[... {start} to {stop} {of} left out{on} ...]\n"


def _joined(begin: str, end: str, total: int, handle: str | None, size: int) -> str:
    """Put a notice between what fits of the beginning of a text and what fits of its end."""
    # By the notice with the longest numbers: what the true ones say depends on how much fits.
    room = size - len(_notice(total, total, handle))
    head = head_of(begin, room - room // 2)
    tail = tail_of(end, room // 2)
    return f"{head}{_notice(total - len(tail), len(head), handle, total)}{tail}"


_WITH_HANDLE: Final = re.compile(
    r"\n\[\.\.\. ([0-9]{1,15}) to ([0-9]{1,15}) of ([0-9]{1,15}) "
    r"characters left out; read them with "
    rf'{READER}\(handle="([0-9a-f]{{32}})", offset=\1\) \.\.\.\]\n'
)


def cut_again(text: str, size: int) -> str | None:
    """Cut more of a text that a cap has cut, and name its handle; None if it names none."""
    # A view may cut what a cap has cut already. A second notice inside the first would name no
    # handle that keeps the rest; so the numbers of the notice are read, and one notice is written
    # again. A text of the tool may look like a notice, so its numbers have to add up.
    for notice in _WITH_HANDLE.finditer(text):
        start, stop, total = map(int, notice.groups()[:3])
        if notice.start() == start and len(text) - notice.end() == total - stop:
            head, tail = text[:start], text[notice.end() :]
            return _joined(head, tail, total, notice[4], size)
    return None


def _fits(text: str, size: int) -> bool:
    # The cheap questions first: characters are never more than bytes, and ASCII text has as many.
    return len(text) <= size and (text.isascii() or len(text.encode()) <= size)


def head_of(text: str, size: int) -> str:
    """Return as much of the beginning as fits into so many bytes of UTF-8, in whole characters."""
    return text[:size].encode()[:size].decode(errors="ignore")


def tail_of(text: str, size: int) -> str:
    """Return as much of the end as fits into so many bytes of UTF-8, in whole characters."""
    return text[-size:].encode()[-size:].decode(errors="ignore")
