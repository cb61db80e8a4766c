"""The chunks of a streamed Chat Completion become events, and in the end the whole turn.

The chunks are put together into the response that would have come in one piece, and that response
is decoded as any other: so a stream and a whole response cannot disagree. Hosts number their calls
badly, or not at all: a piece that brings another id than the call under its number begins a call.
(OpenAI API reference: "Streaming events" of Chat Completions.)
"""

from __future__ import annotations

from typing import Any

from ..._text.json import is_mapping
from ..._transcript.assistant import AssistantTurn
from ..._transcript.stream_events import ArgumentsDelta, StreamEvent, UsageReported
from .._arguments import BrokenStream
from .._stream import StreamReader
from .._wire.reading import Place, count_at, response_place
from ._decode import tidy, turn_of, usage_of
from ._facts import NAME
from ._stream_choice import ChoiceState

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

    __slots__ = ("_choices", "_fields", "_first")

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[str, Any] = {}
        self._first: ChoiceState | None = None
        self._choices: dict[int, ChoiceState] = {}

    def _quick(self, fields: dict[str, Any]) -> list[StreamEvent] | None:
        choices: Any = fields.get("choices")
        if choices.__class__ is not list or len(choices) != 1:
            return None
        choice: Any = choices[0]
        state = self._first
        if (
            state is None
            or choice.__class__ is not dict
            or choice.get("index", 0) != state.index
            or choice.get("index").__class__ is bool
            or fields.get("usage") is not None
            or fields.get("x_groq") is not None
            or fields.get("error") is not None
        ):
            return None
        event = state.quick(choice)
        if event is None:
            return None
        known = self._fields
        for key, value in fields.items():
            if value is not None and key not in _OF_CHUNKS:
                known[key] = value
        if isinstance(event, ArgumentsDelta):
            self._reports.wrote(event.index)
        return [event] if event else []

    def _take(self, event: Place) -> list[StreamEvent]:
        chunk = event.object()
        event.raise_error()
        if chunk.get("object") == "error":
            raise event.reported()
        if _IN_CHUNKS.isdisjoint(chunk) and chunk.get("object") != "chat.completion.chunk":
            self._keep(event)
            return []
        for key, value in chunk.items():
            if value is not None and key not in _OF_CHUNKS:
                self._fields[key] = self._kept(value)
        events: list[StreamEvent] = []
        for choice in event.items_at("choices"):
            events += self._take_choice(choice)
        if chunk.get("usage") is not None or chunk.get("x_groq") is not None:
            events += self._take_usage(event)
        return events

    def _take_usage(self, event: Place) -> list[StreamEvent]:
        chunk = event.object()
        for key in ("usage", "x_groq"):
            if is_mapping(chunk.get(key)):
                self._fields.setdefault(key, {}).update(self._kept(chunk[key]))
        usage = usage_of(event)
        if usage is None:
            return []
        # Usage alone, after the choices, is the last thing that is sent. Hosts that send it with
        # every chunk send it beside choices, which says nothing of the end.
        self._done = self._done or (not chunk.get("choices") and bool(self._choices))
        return [UsageReported(usage)]

    def _take_choice(self, place: Place) -> list[StreamEvent]:
        place.raise_error()
        number = count_at(place.value, "index") or 0
        state = self._choices.get(number)
        if state is None:
            state = self._choices[number] = ChoiceState(number)
            self._first = self._first or state
        events = state.take(place, self._fields.get("id"))
        # Only the first choice is the turn; the others are kept in the payload.
        return events if state is self._first else []

    def _end(self) -> AssistantTurn:
        first = self._first
        if first is None:
            raise BrokenStream("the stream ends without a choice")
        if not first.finish_reason and not self._done:
            raise BrokenStream("the stream breaks off before a finish reason")
        choices = [state.choice() for state in self._choices.values()]
        response = {**self._fields, "object": "chat.completion", "choices": choices}
        return turn_of(response_place(NAME, self._payload(response), tidy), is_ended=True)

    def _so_far(self) -> AssistantTurn:
        items = self._first.said() if self._first is not None else ()
        return self._neutral(items, self._fields.get("model"), self._fields.get("id"))
