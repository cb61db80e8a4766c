"""The chunks of a streamed response become events, and in the end the whole turn.

The chunks are put together into the response that would have come in one piece, and that response
is decoded as any other. Text is joined to the text before it, save where a thought signature stands
with either, because it signs its own part. Fields of a chunk that are unknown here stay in the
payload. (Gemini API reference: "Generating content", streamGenerateContent.)
"""

from __future__ import annotations

from typing import Any, Final

from ... import AssistantTurn, ToolMetadata, Usage
from ..._text.json import JsonObject
from ..._text.names import is_among
from ...streaming import (
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from .._arguments import BrokenStream, Pieces, joined
from .._reading import Place, count_at, response_place, text_or_none
from .._stream import StreamReader
from ._decode import FACTS, NAME, call_of, items_of_parts, tidy, turn_of, usage_in, usage_of
from ._pieces import PartialCall, is_in_pieces

# One of these tells a chunk from an event of another kind.
_IN_CHUNKS: Final = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}
)

# What is read at a glance, in a chunk and in its candidate.
_CHUNK: Final = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
_CANDIDATE: Final = frozenset({"content", "index", "finishReason"})
_CONTENT: Final = frozenset({"role", "parts"})
_PART: Final = frozenset({"text", "thought", "thoughtSignature", "functionCall"})
_CALL: Final = frozenset({"id", "name", "args"})
_NONE: Final[JsonObject] = {}

_JOINED: Final = frozenset({"text", "thought"})


class StreamDecoder(StreamReader):
    """Read the chunks of one streamed response.

    Feed every chunk, then call `close` for the last events, or `finish` for the turn alone. The
    stream is whole once a finish reason came, or the word that the prompt was blocked. A call comes
    in one piece, or with `streamFunctionCallArguments` in several: it is told when it begins, and
    its arguments once it is whole.

    Example:
        >>> decoder = StreamDecoder()
        >>> said = {"role": "model", "parts": [{"text": "Hi"}]}
        >>> decoder.feed({"candidates": [{"content": said, "finishReason": "STOP"}]})
        [TextDelta(text='Hi')]
        >>> decoder.finish().text
        'Hi'
    """

    __slots__ = (
        "_calls",
        "_candidates",
        "_fields",
        "_first",
        "_first_number",
        "_partial",
        "_text",
        "_usage",
    )

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._fields: JsonObject = {}
        self._candidates: dict[int, JsonObject] = {}
        self._first: JsonObject | None = None
        self._first_number = 0
        # Each call, and the id of the response as far as it was known then.
        self._calls: list[tuple[str | None, ToolMetadata]] = []
        self._partial: PartialCall | None = None  # the call that is not whole yet
        self._usage: Usage | None = None  # as the last chunk that has one says
        # Plain text that is still to be joined to the parts of the first candidate.
        self._text: list[str] = []

    # Nearly every chunk is one candidate with texts and calls, as {"candidates": [{"content":
    # {"role": "model", "parts": [{"text": "Hi"}]}, "index": 0}], "usageMetadata": {...}}. Only if
    # all of it is of the usual class and nothing else is in it is it taken here, as it stands;
    # `_take` reads the rest.
    def _quick(self, fields: JsonObject) -> list[StreamEvent] | None:
        candidates: Any = fields.get("candidates")
        if candidates.__class__ is not list or len(candidates) != 1 or not fields.keys() <= _CHUNK:
            return None
        candidate: Any = candidates[0]
        content: Any = candidate.get("content") if candidate.__class__ is dict else None
        parts: Any = content.get("parts") if content.__class__ is dict else None
        usage: Any = fields.get("usageMetadata", _NONE)
        if not (
            parts.__class__ is list
            and fields.get("modelVersion", "").__class__
            is fields.get("responseId", "").__class__
            is candidate.get("finishReason", "").__class__
            is content.get("role", "").__class__
            is str
            and candidate.get("index", 0) == 0
            and content.keys() <= _CONTENT
            and usage.__class__ is dict
            and "_" not in "".join(usage)
            and all(map(_is_usual, parts))
        ):
            return None
        known = self._first
        if known is not None and self._first_number != 0:
            return None
        # First: what cannot be read is to leave nothing behind.
        if not self._is_own:
            parts, usage = tidy(parts), tidy(usage)
        if not candidate.keys() <= _CANDIDATE:
            candidate = tidy({**candidate, "content": None})
        if known is None:
            known = self._begin(0)
        self._fields.update(fields)  # with candidates, for which the whole ones stand in the end
        if "role" in content:
            known["content"]["role"] = content["role"]
        for key, value in candidate.items():
            if key != "content":
                known[key] = value
        events: list[StreamEvent] = []
        for index, part in enumerate(parts):
            if len(part) == 1 and "text" in part:
                text = part["text"]
                self._text.append(text)
                if text:
                    events.append(TextDelta(text))
            else:
                self._settle()
                where = f"event {self._number - 1}.candidates[0].content.parts[{index}]"
                whole = self._part(Place(NAME, part, None, where), events)
                assert whole is not None  # a piece after which more is to come is not usual
                _join(known["content"]["parts"], whole)
        if "usageMetadata" in fields:
            self._fields["usageMetadata"] = usage
            self._usage = usage_in(usage)
            events.append(UsageReported(self._usage))
        return self._reports.of(events) if self._calls else events

    def _take(self, event: Place) -> list[StreamEvent]:
        event.raise_error()
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
            self._usage = usage
            events.append(UsageReported(usage))
        return events

    def _begin(self, number: int) -> JsonObject:
        made = self._candidates[number] = {"content": {"parts": []}}
        if self._first is None:
            self._first, self._first_number = made, number
        return made

    def _candidate(self, place: Place, events: list[StreamEvent]) -> None:
        self._settle()
        number = count_at(place.value, "index") or 0
        known = self._candidates.get(number)
        if known is None:
            known = self._begin(number)
        parts: list[JsonObject] = known["content"]["parts"]
        # Only the first candidate is the turn; the others are kept in the payload.
        is_first = known is self._first
        content = place.get("content")
        if content is not None:
            for key, value in content.object().items():
                if key != "parts":
                    known["content"][key] = value
            for part in content.items_at("parts"):
                whole = self._part(part, events) if is_first else dict(part.object())
                if whole is not None:
                    _join(parts, whole)
        for key, value in place.object().items():
            if key != "content":
                known[key] = value

    def _part(self, part: Place, events: list[StreamEvent]) -> JsonObject | None:
        """Report a part, and return it as it is kept; None of a call that is not whole yet."""
        fields = part.object()
        if "functionCall" in fields:
            index, called = len(self._calls), part.need("functionCall")
            if self._partial is not None or is_in_pieces(called.object()):
                whole = self._add(part, index, events)
                if whole is None:
                    return None
                fields, called = whole, Place(NAME, whole["functionCall"], None, called.where)
            call = call_of(called, index, self._response_id)
            events.append(CallCompleted(index, call))
            self._calls.append((self._response_id, call))
        elif "text" in fields:
            text = part.need_text("text")
            if text:
                said = ReasoningDelta if fields.get("thought") else TextDelta
                events.append(said(text))
        return dict(fields)

    def _add(self, part: Place, index: int, events: list[StreamEvent]) -> JsonObject | None:
        """Add a piece to the call that is not whole, and return the part of one that is."""
        partial = self._partial
        if partial is None:
            partial = self._partial = PartialCall()
        is_named = "name" in partial.call
        partial.add(part)
        if partial.is_open:
            # What shows that a call begins has its id, so an id that comes later counts no more.
            if not is_named and "name" in partial.call:
                call = call_of(Place(NAME, partial.call), index, self._response_id)
                partial.call["id"] = partial.call.get("id")
                events.append(CallStarted(index, call.id, call.name))
            return None
        self._partial = None
        return partial.whole()

    def _settle(self) -> None:
        # Before anything but plain text is added, or the parts would change their order.
        if self._text and self._first is not None:
            _join(self._first["content"]["parts"], {"text": "".join(self._text)})
            self._text.clear()

    @property
    def _response_id(self) -> str | None:
        return text_or_none(self._fields.get("responseId"))

    def _end(self) -> AssistantTurn:
        self._settle()
        first = self._first
        is_blocked = first is None and "promptFeedback" in self._fields
        if not is_blocked and not (first or {}).get("finishReason"):
            raise BrokenStream("the stream breaks off before a finish reason")
        if self._partial is not None and first is not None:
            # A limit or a filter may cut a call off, which then does not run; nothing else does.
            if not is_among(first.get("finishReason"), FACTS.truncated | FACTS.refused):
                name = self._partial.call.get("name", "")
                raise BrokenStream(f"the stream ends before the call of {name!r} is whole")
            first["content"]["parts"].append(self._partial.whole())
        response = dict(self._fields)
        if "usageMetadata" in response:
            response["usageMetadata"] = tidy(response["usageMetadata"])
        if self._candidates:
            for candidate in self._candidates.values():
                candidate["content"]["parts"] = list(map(joined, candidate["content"]["parts"]))
            response["candidates"] = list(self._candidates.values())
        payload = self._payload(response)
        # It is made of tidy chunks.
        place = response_place(NAME, payload, lambda whole: whole)
        made: list[ToolMetadata] = []
        for response_id, call in self._calls:
            # The id of a call may be made of that of the response, and of a name that can be sent.
            # The id came late, or something was repaired: then the calls are read again with the
            # whole, where the events told them otherwise.
            if response_id != self._response_id or place.value is not payload:
                break
            made.append(call)
        return turn_of(place, made, self._usage)

    def _so_far(self) -> AssistantTurn:
        self._settle()
        parts = list(map(joined, self._first["content"]["parts"])) if self._first else []
        items = items_of_parts(Place(NAME, parts).items(), self._response_id)
        return self._neutral(items, self._fields.get("modelVersion"), self._response_id)


def _is_usual(part: Any) -> bool:
    """Tell a part with text or a call that is there as it is kept."""
    if part.__class__ is not dict or not part.keys() <= _PART:
        return False
    call, signature = part.get("functionCall", _NONE), part.get("thoughtSignature", "")
    return (
        part.get("text", "").__class__ is signature.__class__ is str
        and part.get("thought", True).__class__ is bool
        and not ("-" in signature or "_" in signature)
        and call.__class__ is dict
        and call.keys() <= _CALL
        and None not in call.values()
    )


def _join(parts: list[JsonObject], part: JsonObject) -> None:
    # {"text": "Hel"} and {"text": "lo"} become one part; a signature, or anything else beside a
    # text, ends it: it signs exactly the part that it came with.
    last = parts[-1] if parts else {}
    same = bool(last.get("thought")) == bool(part.get("thought"))
    if same and "text" in last and "text" in part and not (last.keys() | part.keys()) - _JOINED:
        if last["text"].__class__ is not Pieces:
            last["text"] = Pieces([last["text"]])
        last["text"].append(part["text"])
    else:
        parts.append(part)
