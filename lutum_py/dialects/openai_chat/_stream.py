"""The chunks of a streamed Chat Completion become events, and in the end the whole turn.

The chunks are put together into the response that would have come in one piece, and that response
is decoded as any other: so a stream and a whole response cannot disagree. Hosts number their calls
badly, or not at all: a piece that brings another id than the call under its number begins a call.
(OpenAI API reference: "Streaming events" of Chat Completions.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._transcript.assistant import AssistantTurn
from ..._transcript.stream_events import StreamEvent, UsageReported
from .._stream.streaming import BrokenStream, StreamReader
from .._wire.reading import Place, response_place
from ._decode import (
    tidy,
    turn_of,
    usage_of,
)
from ._facts import NAME
from ._stream_choice import ChoiceState

__all__ = ["StreamDecoder"]

# One of these, or its type, tells a chunk from an event that a host adds.
_IN_CHUNKS = frozenset({"choices", "usage", "x_groq"})
# What has a form of its own in a whole response, or pads the chunks only.
_OF_CHUNKS = frozenset({"choices", "object", "obfuscation", "usage", "x_groq"})


class StreamDecoder(StreamReader):
    """Read the chunks of one streamed response.

    Feed every chunk, then call `close` for the last events, or `finish` for the turn alone. The
    stream is whole once a finish reason came, or `[DONE]`, or the usage that ends it.

    Example:
        >>> decoder = StreamDecoder()
        >>> decoder.feed({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})
        [TextDelta(text='Hi')]
        >>> decoder.finish().text
        'Hi'
    """

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[str, Any] = {}
        self._choices: dict[int, ChoiceState] = {}

    def _take(self, event: Place) -> Iterator[StreamEvent]:
        failed = event.get("error")
        if failed is not None:
            raise failed.reported()
        chunk = event.object()
        if not _IN_CHUNKS & chunk.keys() and chunk.get("object") != "chat.completion.chunk":
            self._keep(event)
            return
        for key, value in chunk.items():
            if value is not None and key not in _OF_CHUNKS:
                self._fields[key] = value
        for key in ("usage", "x_groq"):
            if isinstance(chunk.get(key), Mapping):
                self._fields[key] = {**self._fields.get(key, {}), **chunk[key]}
        choices = list(event.items_at("choices"))
        for choice in choices:
            yield from self._take_choice(choice)
        usage = usage_of(event)
        if usage is not None:
            self._done = self._done or (not choices and bool(self._choices))
            yield UsageReported(usage)

    def _take_choice(self, place: Place) -> Iterator[StreamEvent]:
        failed = place.get("error")
        if failed is not None:
            raise failed.reported()
        number = place.count_at("index") or 0
        is_first = not self._choices or number == next(iter(self._choices))
        state = self._choices.setdefault(number, ChoiceState(number))
        events = list(state.take(place, self._fields.get("id")))
        # Only the first choice is the turn; the others are kept in the payload.
        yield from events if is_first else ()

    def _end(self) -> AssistantTurn:
        first = next(iter(self._choices.values()), None)
        if first is None:
            raise BrokenStream(self.position, "the stream ends without a choice")
        if not first.finish_reason and not self._done:
            raise BrokenStream(self.position, "the stream breaks off before a finish reason")
        choices = [state.choice() for state in self._choices.values()]
        response = {**self._fields, "object": "chat.completion", "choices": choices}
        return turn_of(response_place(NAME, self._payload(response), tidy))

    def _so_far(self) -> AssistantTurn:
        items = next(iter(self._choices.values())).said() if self._choices else ()
        return AssistantTurn(
            items=items,
            model=self._text("model"),
            request_id=self._text("id"),
            dialect=NAME,
        )

    def _text(self, key: str) -> str | None:
        value = self._fields.get(key)
        return value if isinstance(value, str) and value else None
