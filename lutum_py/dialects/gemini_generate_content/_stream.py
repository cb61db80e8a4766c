"""The chunks of a streamed response become events, and in the end the whole turn.

The chunks are put together into the response that would have come in one piece, and that response
is decoded as any other. Text is joined to the text before it, save where a thought signature stands
with either, because it signs its own part. Fields of a chunk that are unknown here stay in the
payload. (Gemini API reference: "Generating content", streamGenerateContent.)
"""

from __future__ import annotations

from typing import Any, Final

from ..._transcript.assistant import AssistantTurn
from ..._transcript.stream_events import (
    CallCompleted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from .._stream.streaming import BrokenStream, StreamReader
from .._wire.reading import Place, response_place
from ._decode import (
    call_of,
    items_of_parts,
    provider_error,
    tidy,
    turn_of,
    usage_of,
)
from ._facts import NAME

__all__ = ["StreamDecoder"]

# One of these tells a chunk from an event of another kind.
_IN_CHUNKS: Final = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}
)

_JOINED: Final = frozenset({"text", "thought"})


class StreamDecoder(StreamReader):
    """Read the chunks of one streamed response.

    Feed every chunk, then call `close` for the last events, or `finish` for the turn alone. The
    stream is whole once a finish reason came, or the word that the prompt was blocked. A call comes
    in one piece on this wire.

    Example:
        >>> decoder = StreamDecoder()
        >>> said = {"role": "model", "parts": [{"text": "Hi"}]}
        >>> decoder.feed({"candidates": [{"content": said, "finishReason": "STOP"}]})
        [TextDelta(text='Hi')]
        >>> decoder.finish().text
        'Hi'
    """

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}
        self._calls = 0

    def _take(self, event: Place) -> list[StreamEvent]:
        failed = event.get("error")
        if failed is not None:
            raise provider_error(failed)
        chunk = Place(NAME, tidy(event.value), None, event.where)
        fields = chunk.object()
        if _IN_CHUNKS.isdisjoint(fields):
            self._keep(event)
            return []
        for key, value in fields.items():
            if key != "candidates":
                self._fields[key] = value
        events: list[StreamEvent] = []
        for candidate in chunk.items_at("candidates"):
            self._candidate(candidate, events)
        usage = usage_of(chunk)
        if usage is not None:
            events.append(UsageReported(usage))
        return events

    def _candidate(self, place: Place, events: list[StreamEvent]) -> None:
        number = place.count_at("index") or 0
        known = self._candidates.get(number)
        if known is None:
            known = self._candidates[number] = {"content": {"parts": []}}
        parts: list[dict[str, Any]] = known["content"]["parts"]
        # Only the first candidate is the turn; the others are kept in the payload.
        is_first = known is next(iter(self._candidates.values()))
        content = place.get("content")
        if content is not None:
            for key, value in content.object().items():
                if key != "parts":
                    known["content"][key] = value
            for part in content.items_at("parts"):
                if is_first:
                    self._part(part, events)
                _join(parts, dict(part.object()))
        for key, value in place.object().items():
            if key != "content":
                known[key] = value

    def _part(self, part: Place, events: list[StreamEvent]) -> None:
        fields = part.object()
        if "functionCall" in fields:
            call = call_of(part.need("functionCall"), self._calls, self._response_id)
            events.append(CallCompleted(self._calls, call))
            self._calls += 1
        elif "text" in fields:
            text = part.need("text").text()
            if text:
                said = ReasoningDelta if fields.get("thought") else TextDelta
                events.append(said(text))

    @property
    def _response_id(self) -> str | None:
        value = self._fields.get("responseId")
        return value if isinstance(value, str) and value else None

    def _end(self) -> AssistantTurn:
        first = next(iter(self._candidates.values()), None)
        is_blocked = first is None and "promptFeedback" in self._fields
        if not is_blocked and not (first or {}).get("finishReason"):
            raise BrokenStream(self.position, "the stream breaks off before a finish reason")
        response = dict(self._fields)
        if self._candidates:
            response["candidates"] = list(self._candidates.values())
        return turn_of(response_place(NAME, self._payload(response), tidy))

    def _so_far(self) -> AssistantTurn:
        first = next(iter(self._candidates.values()), None)
        parts: list[Any] = first["content"]["parts"] if first else []
        model = self._fields.get("modelVersion")
        return AssistantTurn(
            items=items_of_parts(Place(NAME, parts).items(), self._response_id),
            model=model if isinstance(model, str) else None,
            request_id=self._response_id,
            dialect=NAME,
        )


def _join(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    last = parts[-1] if parts else {}
    same = bool(last.get("thought")) == bool(part.get("thought"))
    if same and "text" in last and "text" in part and not (last.keys() | part.keys()) - _JOINED:
        last["text"] += part["text"]
    else:
        parts.append(part)
