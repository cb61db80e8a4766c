"""From events to a turn."""

from __future__ import annotations

from collections.abc import Iterator

from lutum_py import AssistantTurn
from lutum_py.dialects.authoring import (
    BrokenStream,
    Place,
    StreamReader,
    copy_json,
    response_place,
)
from lutum_py.streaming import ArgumentsDelta, CallStarted, PartialJson, StreamEvent, TextDelta

from ._decode import turn_of
from ._facts import NAME


class StreamDecoder(StreamReader):
    """Read the events of one streamed response."""

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._calls: list[dict[str, str]] = []
        self._arguments: list[PartialJson] = []
        self._reason: str | None = None

    def _take(self, event: Place) -> Iterator[StreamEvent]:
        event.raise_error()
        text, call = event.text_at("content"), event.get("call")
        piece, reason = event.text_at("arguments"), event.text_at("end")
        if text:
            self._text.append(text)
            yield TextDelta(text)
        elif call is not None:
            started = {"id": call.need("id").text(), "name": call.need("name").text()}
            self._calls.append(started)
            self._arguments.append(PartialJson())
            yield CallStarted(len(self._calls) - 1, started["id"], started["name"])
        elif piece and self._calls:
            partial = self._arguments[-1].add(piece)
            yield ArgumentsDelta(len(self._calls) - 1, piece, partial)
        elif reason:
            self._reason = reason
            self._over = True
        else:
            self._keep(event)

    def _end(self) -> AssistantTurn:
        if self._reason is None:
            raise BrokenStream("the stream breaks off before its end")
        written = zip(self._calls, self._arguments, strict=True)
        calls = [{**call, "arguments": arguments.text} for call, arguments in written]
        message = {"role": "assistant", "content": "".join(self._text), "calls": calls}
        response = self._payload({"message": message, "end": self._reason})
        return turn_of(response_place(NAME, response, copy_json))

    def _so_far(self) -> AssistantTurn:
        return AssistantTurn(text="".join(self._text) or None, dialect=NAME)
