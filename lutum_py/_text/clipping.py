"""Cut the middle out of a text, and say so in its place, with the tool that reads it."""

from __future__ import annotations

import re
from typing import Final

READER: Final = "read_more"
"""The name of the stock tool that reads on."""


def _notice(stop: int, start: int, handle: str | None, total: int | None = None) -> str:
    """Say what was left out, in ASCII; with the total for all numbers it is at its longest."""
    of = f"of {stop if total is None else total} characters"
    on = "" if handle is None else f'; read them with {READER}(handle="{handle}", offset={start})'
    return f"\n[... {start} to {stop} {of} left out{on} ...]\n"


def clipped(begin: str, end: str, total: int, handle: str | None, size: int) -> str:
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


def cut_again(text: str, handle: str, size: int) -> str | None:
    """Cut more of a text that a cap has cut, and name its handle; None if it does not have it.

    Args:
        text: What the cap left.
        handle: What keeps the rest. The notice with it is the cap's own: no text holds the digest
            of itself, so none of a tool can have it.
        size: How much may stay, in bytes of UTF-8.
    """
    # A second notice inside the first would name no handle that keeps the rest; so the numbers of
    # the notice are read, and one notice is written again.
    notice = next((each for each in _WITH_HANDLE.finditer(text) if each[4] == handle), None)
    if notice is None:
        return None
    head, tail = text[: notice.start()], text[notice.end() :]
    return clipped(head, tail, int(notice[3]), handle, size)


def head_of(text: str, size: int) -> str:
    """Return as much of the beginning as fits into so many bytes of UTF-8, in whole characters."""
    return text[:size].encode()[:size].decode(errors="ignore")


def tail_of(text: str, size: int) -> str:
    """Return as much of the end as fits into so many bytes of UTF-8, in whole characters."""
    return text[-size:].encode()[-size:].decode(errors="ignore")
