"""Server-sent events: the text of an HTTP response, in any chunks, becomes the JSON of its events.

A line ends with a line feed, a carriage return or both; `data:` lines of one event are joined; a
blank line ends the event; a line that begins with a colon is a comment (the HTML standard, section
"Server-sent events"). `[DONE]`, with which OpenAI's streams end, is not an event. Gemini streams a
JSON array where no `alt=sse` was asked for, and some hosts one object a line: both are understood.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import ClassVar

from .._text.immutable import Settled
from .._text.json import JsonObject, is_mapping, read_json, shorten
from ..errors import DialectError

_MARKS = re.compile(r'["\\{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_BETWEEN = " \t\r\n,"


# Only brackets, braces and quotes are looked at; whole objects are cut out, and parsed elsewhere.
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
        begin = 0 if self.is_inside else None
        at = 0
        while at < len(chunk):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_IN_STRING if self._in_string else _MARKS).search(chunk, at)
            end = len(chunk) if match is None else match.start()
            if not self.is_inside:
                self._expect_nothing(chunk[at:end])
            if match is None:
                break
            mark, at = match[0], match.end()
            if not self.is_inside and mark not in "{[]":
                raise ValueError(f"expected an object, got {mark!r}")
            if mark == "\\":
                self._escaped = True
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                if not self.is_inside and mark == "{" and self._depth == self._base:
                    begin = end
                elif not self.is_inside and (self._depth, self._base, self._closed) != (
                    0,
                    1,
                    False,
                ):
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
    def is_in_text(self) -> bool:
        """Whether a text within an object is still open."""
        return self._in_string

    @property
    def is_inside(self) -> bool:
        """Whether an object is still open."""
        return self._depth > self._base

    def _close(self) -> None:
        if self._depth < 0:
            raise ValueError("unexpected ']'")
        self._closed = True

    def _expect_nothing(self, text: str) -> None:
        rest = text.strip(_BETWEEN)
        if rest:
            raise ValueError(f"expected an object, got {rest[:40]!r}")


__all__ = ["EventSplitter", "aevents", "events"]


class EventSplitter(Settled):
    r"""Split the text of a stream as it comes in.

    Example:
        >>> splitter = EventSplitter()
        >>> splitter.feed('data: {"a"')
        []
        >>> splitter.feed(": 1}\n\n")
        [{'a': 1}]
        >>> splitter.close()
        []
    """

    _way: ClassVar[str] = "it changes by what it is fed alone, as in `splitter.feed(text)`."

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._after_return = False
        self._started = False
        self._objects: ObjectSplitter | None = None
        self._pending: list[str] = []
        self._data: list[str] = []
        self._count = 0

    def feed(self, chunk: str | bytes) -> list[JsonObject]:
        """Take the next chunk and return the events that it completes.

        Raises:
            DialectError: An event is not a JSON object, the bytes are not UTF-8, or the text is a
                page and no stream; `where` says which event it was.
        """
        return list(self.read(chunk))

    def read(self, chunk: str | bytes) -> Iterator[JsonObject]:
        """Do the same as `feed`, and give what was whole before an event that is broken.

        The iterator has to be taken to its end.
        """
        return self._read(chunk if isinstance(chunk, str) else self._decode(chunk))

    def close(self) -> list[JsonObject]:
        """Say that the stream has ended, and return the last event if no blank line ended it.

        Raises:
            DialectError: The stream broke off inside an event.
        """
        found = list(self._read(self._decode(b"", final=True)))
        if self._objects is not None:
            if not self._objects.is_whole:
                raise self._error("the JSON text breaks off")
            return found
        self._line("".join(self._pending))
        self._pending.clear()
        return [*found, *self._event(is_cut=True)]

    def _decode(self, chunk: bytes, final: bool = False) -> str:
        try:
            return self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            raise self._error(f"the bytes are not UTF-8 ({error.reason})") from None

    def _read(self, text: str) -> Iterator[JsonObject]:
        if not self._started:
            text = text.lstrip("\ufeff \t\r\n")
            if not text:
                return
            self._started = True
            # A page of a proxy or a login, which comes with status 200 and would else be lines
            # without events.
            if text[0] == "<":
                raise self._error(f"expected events, got a page: {shorten(text)}")
            if text[0] in "{[":
                self._objects = ObjectSplitter(in_array=text[0] == "[")
        if self._objects is not None:
            try:
                for whole in self._objects.feed(text):
                    yield self._parse(whole)
            except ValueError as error:
                raise self._error(str(error)) from None
            return
        for line in self._lines(text):
            if line:
                self._line(line)
            else:
                yield from self._event()

    def _lines(self, text: str) -> Iterator[str]:
        # A return at the end of a chunk has ended its line: the feed that may follow is its other
        # half, and not a blank line.
        if not text:
            return
        if self._after_return:
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        first, *rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._pending.append(first)
        for line in rest:
            whole = "".join(self._pending)
            self._pending[:] = [line]
            yield whole

    def _line(self, line: str) -> None:
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))

    def _event(self, *, is_cut: bool = False) -> Iterator[JsonObject]:
        text = "\n".join(self._data).strip()
        self._data.clear()
        if text not in ("", "[DONE]"):
            yield self._parse(text, is_cut)

    def _parse(self, text: str, is_cut: bool = False) -> JsonObject:
        try:
            event = read_json(text)
        except ValueError as error:
            problem = "the stream breaks off" if is_cut else f"the event is not JSON ({error})"
            raise self._error(f"{problem}: {shorten(text)}") from None
        if not is_mapping(event):
            raise self._error(f"expected an object, got {shorten(event)}")
        self._count += 1
        return dict(event)

    def _error(self, problem: str) -> DialectError:
        where = f"event {self._count}"
        return DialectError(f"Event stream at {where}: {problem}.", dialect="sse", where=where)


def events(chunks: str | bytes | Iterable[str | bytes]) -> Iterator[JsonObject]:
    r"""Yield the events of a stream as they come in.

    Args:
        chunks: The text or bytes of the response, whole or in chunks of any size, such as
            `response.iter_bytes()` of httpx.

    Returns:
        An iterator over the JSON object of each event, to be fed to a `StreamDecoder`.

    Raises:
        DialectError: An event is broken, or the stream breaks off inside one.

    Example:
        >>> list(events(["data: {}", "\n\ndata: [DONE]\n\n"]))
        [{}]
    """
    splitter = EventSplitter()
    for chunk in (chunks,) if isinstance(chunks, str | bytes) else chunks:
        yield from splitter.read(chunk)
    yield from splitter.close()


async def aevents(chunks: AsyncIterable[str | bytes]) -> AsyncIterator[JsonObject]:
    """Return the events of a stream whose chunks come in asynchronously; else as `events`.

    Args:
        chunks: The chunks, such as `response.aiter_bytes()` of httpx.

    Returns:
        An iterator over the JSON object of each event.

    Raises:
        DialectError: An event is broken, or the stream breaks off inside one.

    Example:
        ```python
        async for event in aevents(response.aiter_bytes()):
            decoder.feed(event)
        ```
    """
    splitter = EventSplitter()
    async for chunk in chunks:
        for event in splitter.read(chunk):
            yield event
    for event in splitter.close():
        yield event
