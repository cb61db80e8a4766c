"""`result_reader`: the stock tool by which a model reads on where a cap has cut."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .._text.json import shorten
from .._transcript.result_cap import READER, ResultStore, check_bound, check_store, head_of
from ..errors import NotFound
from .tool_fn import ToolFn, tool_fn


def result_reader(store: ResultStore, max_bytes: int = 8_000) -> ToolFn[..., str]:
    """Make the tool `read_more(handle, offset=0)`, a member of a toolset like any other.

    Args:
        store: What the caps keep whole texts in: `ResultCap(20_000, store)`.
        max_bytes: The bound on one answer, in bytes of UTF-8; 400 at least.

    Returns:
        The tool. Where its toolset has a smaller cap of its own, lift that for it with
        `tool(result_reader(store), result_cap=None)`.

    Raises:
        InvalidValueError: The bound is too small.
        MisuseError: The bound is no number, or the store no store.

    Example:
        >>> from lutum_py.window import MemoryResults
        >>> store = MemoryResults()
        >>> store.put("h1", "a" * 500)
        >>> result_reader(store, max_bytes=400)("h1", 490)
        'aaaaaaaaaa'
    """
    check_store("result_reader", store)
    check_bound("result_reader", max_bytes)

    @tool_fn(name=READER, idempotent=True)
    def read_more(handle: str, offset: Annotated[int, Field(ge=0)] = 0) -> str:
        """Read on in a result that was cut.

        Args:
            handle: The handle that the notice in the cut result names.
            offset: The character to begin with.
        """
        text = store.get(handle)
        if text is None:
            raise NotFound(f"no result is kept under the handle {shorten(handle)}")
        total = len(text)
        if offset >= total:
            raise NotFound(f"the text ends before character {offset}: it has {total} characters")
        # Offsets count characters, so that none is cut in two, and the bound counts bytes, as the
        # cap does. One more than may be given tells whether anything is left.
        rest = text[offset : offset + max_bytes + 1]
        if len(rest.encode()) <= max_bytes:
            return rest
        piece = head_of(rest, max_bytes - len(_note(total, total, total)))
        return piece + _note(offset, offset + len(piece), total)

    return read_more


def _note(start: int, stop: int, total: int) -> str:
    return f"\n[... characters {start} to {stop} of {total}; read on with offset={stop} ...]"
