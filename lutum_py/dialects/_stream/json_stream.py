"""Objects that arrive as plain JSON text: one array of them, or one after the other.

Only brackets, braces and quotes are looked at; whole objects are cut out and parsed by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKS = re.compile(r'["\\{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_BETWEEN = " \t\r\n,"


class ObjectSplitter:
    """Cut the text of whole objects out of JSON text that comes in chunks.

    Args:
        in_array: Whether the text is one array; its opening bracket comes first.

    Example:
        >>> splitter = ObjectSplitter(in_array=True)
        >>> list(splitter.feed('[{"a": "}"')), list(splitter.feed("}, {}]")), splitter.is_whole
        ([], ['{"a": "}"}', '{}'], True)
    """

    __slots__ = ("_base", "_closed", "_depth", "_escaped", "_in_string", "_pieces")

    def __init__(self, *, in_array: bool) -> None:
        self._base = 1 if in_array else 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._closed = False
        self._pieces: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Whether no object, and no array around the objects, is still open."""
        return self._depth == 0 and (self._closed or self._base == 0)

    def feed(self, chunk: str) -> Iterator[str]:
        """Take the next chunk and give the text of the objects that it completes; take them all.

        Raises:
            ValueError: Something else than objects is there.
        """
        # No parser is run until an object is whole: a chunk may end anywhere, as in `[{"a": "}`,
        # and to parse again from the beginning for each chunk is quadratic. Four things are kept
        # from one chunk to the next: the depth, whether a text is open, whether a backslash was
        # last, and the pieces so far.
        begin = 0 if self._inside else None
        at = 0
        while at < len(chunk):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_IN_STRING if self._in_string else _MARKS).search(chunk, at)
            end = len(chunk) if match is None else match.start()
            if not self._inside:
                self._expect_nothing(chunk[at:end])
            if match is None:
                break
            mark, at = match[0], match.end()
            if not self._inside and mark not in "{[]":
                raise ValueError(f"expected an object, got {mark!r}")
            if mark == "\\":
                self._escaped = True
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                if not self._inside and mark == "{" and self._depth == self._base:
                    begin = end
                elif not self._inside and (self._depth, self._base, self._closed) != (0, 1, False):
                    raise ValueError(f"expected an object, got {mark!r}")
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == self._base and begin is not None:
                    self._pieces.append(chunk[begin:at])
                    yield "".join(self._pieces)
                    self._pieces.clear()
                    begin = None
                elif self._depth < self._base:
                    self._close()
        if begin is not None:
            self._pieces.append(chunk[begin:])

    @property
    def _inside(self) -> bool:
        return self._depth > self._base

    def _close(self) -> None:
        if self._depth < 0:
            raise ValueError("unexpected ']'")
        self._closed = True

    def _expect_nothing(self, text: str) -> None:
        rest = text.strip(_BETWEEN)
        if rest:
            raise ValueError(f"expected an object, got {rest[:40]!r}")
