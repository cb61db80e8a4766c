"""One choice of a streamed Chat Completion, as it is put together from its deltas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Literal

from ... import AssistantTurn
from ..._text.json import JsonObject, is_array, is_mapping, is_sequence, shorten
from ...streaming import (
    ArgumentsDelta,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from ...turns import AssistantItem, ReasoningItem, RefusalItem, TextItem
from .._arguments import Arguments, BrokenStream, Pieces, begins_object, joined
from .._reading import Place, count_at, objects_in, own_id, response_place, text_or_none
from .._stream import StreamReader
from ._decode import CALLS, NAME, Shown, items_of_content, plain_text, tidy, turn_of, usage_of

_REASONING = ("reasoning_content", "reasoning")
_REASONS = frozenset({*_REASONING, "reasoning_details"})
_GOES_ON = frozenset({"text", "summary"})
_OF_PIECES = frozenset({"index", "function"})
_OF_CALLS = frozenset({"id", "index", "function", "custom"})
_OF_CHOICES = frozenset({"delta", "finish_reason", "index"})
_BESIDE_CONTENT = frozenset({"refusal", "tool_calls", "function_call", "audio", *_REASONS})
# Groq says about each piece whether it is reasoning; the assembled message has fields for that.
_PASSED_OVER = _BESIDE_CONTENT | {"content", "channel"}


_DELTAS: Final[dict[type[Shown], type[ReasoningDelta | TextDelta | RefusalDelta]]] = {
    ReasoningItem: ReasoningDelta,
    TextItem: TextDelta,
    RefusalItem: RefusalDelta,
}

_NOWHERE = "none"
"""The place of calls that began without an index."""


@dataclass(slots=True, eq=False)
class _CallState:
    """One call as it comes in."""

    kind: str
    number: int
    wire_index: Any
    name: str = ""
    is_named: bool = False
    arguments: Arguments = field(default_factory=Arguments)
    started: bool = False
    fields: JsonObject = field(default_factory=JsonObject)
    function: JsonObject = field(default_factory=JsonObject)

    def whole(self) -> JsonObject:
        """Return the call as a whole response has it.

        Raises:
            BrokenStream: Its arguments contradict each other.
        """
        named = {"name": self.name} if self.is_named else {}
        # Free text means what it says.
        text = self.arguments.text if self.kind == "custom" else self.arguments.whole(self.name)
        inner = {**self.function, **named, self.text_key: text}
        return inner if self.kind == "function_call" else {**self.fields, self.kind: inner}

    # Some hosts send the name in pieces, some the whole of it with each piece, some a new id with
    # each. So another name is that of another call once arguments are there, or come with an id;
    # and the same name, or none, belongs to this call until its arguments are whole and others
    # begin.
    def is_followed_by(self, call_id: str | None, name: str | None, text: str) -> bool:
        """Tell a piece that is another call, and not more of this one.

        Args:
            call_id: The id that the piece has, if any.
            name: The name that it has.
            text: What it has of arguments.
        """
        known, written = self.fields.get("id"), self.arguments
        is_other_id = bool(known and call_id and call_id != known)
        if name and self.name and name != self.name:
            return bool(is_other_id or not written.is_empty or (call_id and text))
        if self.kind != "function":
            return bool(is_other_id and name)
        if is_other_id and name:
            return written.is_whole or bool(self.name and written.is_empty)
        return bool(is_other_id or name) and written.is_followed_by(text)

    def is_repeated_in(self, name: str | None, text: str) -> bool:
        """Tell a piece of the same id, under an index of its own, that is another call."""
        if not text:
            return True
        if name is None:
            return begins_object(text) and self.arguments.is_whole
        return begins_object(text) or not self.arguments.is_open

    def goes_on_in(self, piece: _CallState) -> bool:
        """Tell whether what came without a name, under an index of its own, is more of this."""
        if self.kind != "function" or self.arguments.is_whole:
            return False
        return not piece.fields.get("id") or not (
            begins_object(piece.arguments.text) or self.arguments.is_empty
        )

    @property
    def text_key(self) -> str:
        """Where it has the text that the model writes."""
        return CALLS.get(self.kind, "arguments")


class ChoiceState:
    """Put the deltas of one choice together, and say what each adds.

    Args:
        index: The number of the choice.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self._fields: JsonObject = {}
        self._message: JsonObject = {}
        self._texts: dict[str, list[str]] = {}
        self._reasons = False
        self._content: list[Any] = []
        self._audio: JsonObject = {}
        self._details: list[JsonObject] = []
        self._calls: list[_CallState] = []
        self._old: _CallState | None = None
        self._newest: _CallState | None = None
        # The calls by the host's index, and by id and index: `_call_of` says how a piece finds its
        # call.
        self._at: dict[str, _CallState] = {}
        self._of_id: dict[tuple[str, str], _CallState] = {}
        self.finish_reason: str | None = None

    def take(self, place: Place, response_id: object) -> list[StreamEvent]:
        """Read one choice of a chunk.

        Args:
            place: The choice.
            response_id: The provider's id of the response, if it has come.
        """
        for key, value in place.object().items():
            if value is None or key in _OF_CHOICES:
                continue
            if key != "logprobs":
                self._fields[key] = value
            elif is_mapping(value):
                self._logprobs(value)
        events: list[StreamEvent] = []
        delta = place.get("delta")
        if delta is None and not (self._content or self._calls or self._texts):
            delta = place.get("message")  # of hosts that stream nothing, and send the whole at once
        if delta is not None:
            self._delta(delta, response_id if isinstance(response_id, str) else None, events)
        # A host may send "" with every chunk: the last word counts.
        self.finish_reason = place.text_at("finish_reason") or self.finish_reason
        return events

    def quick(self, fields: JsonObject) -> TextDelta | ArgumentsDelta | Literal[""] | None:
        """Read more text, more arguments of an open call, or the end, which adds nothing.

        None is given of anything else, and nothing is taken of it.

        Args:
            fields: The choice.
        """
        # Nine of ten chunks hold one piece of text, or of the arguments of one call. They are told
        # by exact classes and counts of keys, in the order that is most likely, and whatever is odd
        # goes the long way: this may say no too often, and never yes too often.
        delta: Any = fields.get("delta")
        if delta.__class__ is not dict:
            return None
        ends_with = None
        for key, value in fields.items():
            if value is not None and key != "delta" and key != "index":
                if delta or key != "finish_reason" or value.__class__ is not str:
                    return None
                ends_with = value
        if not delta:
            self.finish_reason = ends_with or self.finish_reason
            return ""
        content: Any = delta.get("content")
        size = len(delta)
        if content.__class__ is str and content:
            # Some hosts say with every chunk whose it is.
            if size == 2 and "role" in delta and delta["role"] == self._message.get("role"):
                size = 1
            if size != 1:
                return None
            self._content.append(content)
            return TextDelta(content)
        calls: Any = delta.get("tool_calls")
        if size != 1 or calls.__class__ is not list or len(calls) != 1:
            return None
        piece: Any = calls[0]
        if piece.__class__ is not dict or not piece.keys() <= _OF_PIECES:
            return None
        function: Any = piece.get("function")
        if function.__class__ is not dict or len(function) != 1 or not self._calls:
            return None
        text: Any = function.get("arguments")
        # The last call that began is the one that is written.
        call, index = self._calls[-1], len(self._calls) - 1
        if (
            text.__class__ is not str
            or not text
            or not call.started
            or call.kind != "function"
            or call.wire_index is None
            or piece.get("index") != call.wire_index
        ):
            return None
        return ArgumentsDelta.of(index, text, call.arguments)

    def choice(self) -> JsonObject:
        """Return the choice as a whole response has it."""
        # Later keys win, and what came in pieces is later than what came whole: `_message` has what
        # was sent once, such as the role, and the rest is joined of its pieces.
        message: JsonObject = {"role": "assistant", **self._message}
        for key, pieces in self._texts.items():
            # Empty reasoning counts: DeepSeek wants it back beside calls.
            message[key] = "".join(pieces)
        content = self._whole_content()
        if content:
            message["content"] = content
        if self._audio:
            message["audio"] = joined(self._audio)
        if self._details:
            message["reasoning_details"] = list(map(joined, self._details))
        if "thinking_blocks" in message:
            message["thinking_blocks"] = list(_signed(message["thinking_blocks"]))
        for call in self._whole_calls():
            if call.kind == "function_call":
                message["function_call"] = call.whole()
            else:
                message.setdefault("tool_calls", []).append(call.whole())
        return {
            **self._fields,
            "index": self.index,
            "message": message,
            "finish_reason": self.finish_reason,
        }

    def said(self) -> tuple[AssistantItem, ...]:
        """Return what was said so far, without any call."""
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        reasoning = (texts[key] for key in _REASONING if texts.get(key))
        said: list[Shown] = [ReasoningItem(next(reasoning, plain_text(self._details)))]
        said += items_of_content(Place("openai_chat", self._content).items())
        said += [] if self._content else [TextItem("".join(self._audio.get("transcript", ())))]
        said.append(RefusalItem(texts.get("refusal", "")))
        joined = [
            kind("".join(each.text for each in said if isinstance(each, kind))) for kind in _DELTAS
        ]
        return tuple(item for item in joined if item.text)

    def _delta(self, delta: Place, response_id: str | None, events: list[StreamEvent]) -> None:
        fields = delta.object()
        content = fields.get("content")
        # True at the end of the loop where nothing but text came, which is nearly always: then the
        # looks below are left out.
        is_text = content is None or content.__class__ is str
        for key, value in fields.items():
            if value is None:
                continue
            if key in _PASSED_OVER:
                is_text = is_text and key not in _BESIDE_CONTENT
                continue
            before = self._message.get(key)
            if is_array(before) and is_sequence(value):
                before.extend(value)
            else:
                self._message[key] = list(value) if is_sequence(value) else value
        if is_text:
            if content:
                self._content.append(content)
                events.append(TextDelta(content))
            return
        if not _REASONS.isdisjoint(fields):
            events.extend(self._reasoning(fields))
        if content is not None:
            place = delta.need("content")
            for part in place.items() if is_sequence(content) else (place,):
                if part.value is None or part.value == "":
                    continue
                shown = list(items_of_content((part,)))
                self._content.append(part.value)
                events.extend(_DELTAS[type(each)](each.text) for each in shown if each.text)
        refusal = delta.text_at("refusal")
        if refusal:
            self._texts.setdefault("refusal", []).append(refusal)
            events.append(RefusalDelta(refusal))
        audio = delta.get("audio")
        if audio is not None:
            events.extend(self._take_audio(audio.object()))
        for call in delta.items_at("tool_calls"):
            self._call(call, response_id, events)
        function = delta.get("function_call")
        if function is not None:
            self._old_call(function, response_id, events)

    def _reasoning(self, fields: Mapping[str, object]) -> Iterator[StreamEvent]:
        shown = ""
        for key in _REASONING:
            value = fields.get(key)
            if isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
                shown = shown or value
        self._reasons = self._reasons or bool(shown)
        for detail in objects_in(fields.get("reasoning_details")):
            self._detail(detail)
            # Where the host sends the text too, this is the same text once more.
            shown = shown if self._reasons else shown + plain_text(detail)
        if shown:
            yield ReasoningDelta(shown)

    def _detail(self, detail: JsonObject) -> None:
        last: JsonObject = self._details[-1] if self._details else {}
        # Details come in pieces, as {"type": "reasoning.text", "index": 0, "text": "Let"}: those of
        # one type and index are one, whose texts go on. A host may number all of them 0: what
        # replaces something, such as the id or the data of what is encrypted, is another.
        said = {key: value for key, value in detail.items() if value is not None}
        if (
            "type" not in said
            or any(last.get(key) != said.get(key) for key in ("type", "index"))
            or not all(_goes_on(last[key], said[key]) for key in said.keys() & last.keys())
        ):
            last = {}
            self._details.append(last)
        for key, value in said.items():
            if key in _GOES_ON and isinstance(value, str):
                last.setdefault(key, Pieces()).append(value)
            else:
                last[key] = value

    def _whole_content(self) -> str | list[Any]:
        # Text pieces only, ["Hel", "lo"], are a text; with one part of another kind among them all
        # become parts, and neighbours of one kind are joined to one.
        if all(isinstance(part, str) for part in self._content):
            return "".join(self._content)
        listed = (
            {"type": "text", "text": piece} if isinstance(piece, str) else dict(piece)
            for piece in self._content
        )
        parts: list[JsonObject] = []
        for kind, same in groupby(listed, key=lambda part: part.get("type")):
            group = list(same)
            if kind == "text":
                group = [{**group[0], "text": "".join([part["text"] for part in group])}]
            elif kind == "thinking" and len(group) > 1:
                thought = [{"type": "text", "text": plain_text(group)}]
                group = [{**group[0], "thinking": thought}]
            parts += group
        return parts

    def _take_audio(self, audio: Mapping[str, object]) -> Iterator[StreamEvent]:
        for key, value in audio.items():
            if key in ("data", "transcript") and isinstance(value, str):
                self._audio.setdefault(key, Pieces()).append(value)
                if key == "transcript" and value and not self._content:
                    yield TextDelta(value)
            elif value is not None:
                self._audio[key] = value

    def _call(self, place: Place, response_id: str | None, events: list[StreamEvent]) -> None:
        fields = place.object()
        place.text_at("id")
        call = self._call_of(fields)
        for key, value in fields.items():
            if value is not None and key not in _OF_CALLS:
                call.fields[key] = value
        # The first id counts: some hosts make one for each piece.
        if fields.get("id"):
            call.fields.setdefault("id", fields["id"])
        if call.fields.get("type") == "custom":
            call.kind = "custom"
        inner = place.get(call.kind)
        if inner is not None:
            self._inner(call, inner, response_id, events)

    # Which call a piece belongs to: the one of its id, best at its index; else the one at its
    # index; else the last one, where it has no index. Id and name are what counts, the index is a
    # hint: `is_followed_by` says where the piece begins another call there. Nothing is decided of
    # a piece under a new index that has no name: its call may begin later, or be that before it.
    # Our own number is the place in `_calls`, whatever the host's is.
    def _call_of(self, fields: Mapping[str, Any]) -> _CallState:
        index, call_id = fields.get("index"), fields.get("id") or None
        place = ""
        if index is not None:  # a number may be too long for a text
            place = hex(index) if index.__class__ is int else shorten(index)
        found = None
        if call_id:
            same = (call_id, place), (call_id, _NOWHERE), (call_id, "")
            found = next(filter(None, map(self._of_id.get, same)), None)
        if found is None:
            found = self._newest if index is None else self._at.get(place)
        if found is not None:
            inner = fields.get("custom" if fields.get("type") == "custom" else found.kind)
            name, text = (
                (inner.get("name"), inner.get(found.text_key)) if is_mapping(inner) else ("", "")
            )
            name, text = text_or_none(name), text_or_none(text) or ""
            is_new = index is not None and place not in self._at
            if found.is_followed_by(call_id, name, text) or (
                is_new and found.is_repeated_in(name, text)
            ):
                found = None
        if found is None:
            found = _CallState("function", len(self._calls), index)
            self._calls.append(found)
            self._at[place] = found
        else:
            self._at.setdefault(place, found)
        self._newest = found
        if call_id:
            # Under no index, a piece belongs to the last call of its id.
            self._of_id[call_id, _NOWHERE if found.wire_index is None else place] = found
            self._of_id[call_id, ""] = found
        return found

    def _whole_calls(self) -> Iterator[_CallState]:
        """Yield the calls, each with the pieces whose place nothing but the end could tell."""
        last = None
        for call in self._calls:
            if not call.is_named and call.arguments.is_empty and not call.fields.get("id"):
                continue  # an empty shell
            if last is not None and not call.is_named and last.goes_on_in(call):
                last.arguments.add(call.arguments.text)
            else:
                yield from () if last is None else (last,)
                last = call
        yield from () if last is None else (last,)

    def _old_call(self, place: Place, response_id: str | None, events: list[StreamEvent]) -> None:
        fields = place.object()
        found = self._old
        if found is None:
            if not fields.get("name"):
                return
            found = self._old = _CallState("function_call", len(self._calls), None)
            self._calls.append(found)
        self._inner(found, place, response_id, events)

    def _inner(
        self, call: _CallState, place: Place, response_id: str | None, events: list[StreamEvent]
    ) -> None:
        index, text_key = call.number, call.text_key
        for key, value in place.object().items():
            if key == "name" and isinstance(value, str):
                # Some hosts send the whole name again with every piece.
                call.name += "" if value == call.name else value
                call.is_named = call.is_named or bool(value)
            elif value is not None and key not in ("name", text_key):
                call.function[key] = value
        text = place.written_at(text_key, "")
        if call.name and not call.started:
            call.started = True
            call_id = call.fields.get("id") or own_id(response_id, index, call.name)
            events.append(CallStarted(index, call_id, call.name))
            # What came before the name is told with it.
            text, call.arguments = call.arguments.text + text, Arguments()
        if not call.started:
            call.arguments.add(text)
        elif text:
            events.append(ArgumentsDelta.of(index, text, call.arguments))

    def _logprobs(self, value: Mapping[str, object]) -> None:
        kept = self._fields.setdefault("logprobs", {})
        for key, tokens in value.items():
            if is_sequence(tokens):
                kept.setdefault(key, []).extend(tokens)


def _goes_on(known: object, value: object) -> bool:
    """Tell whether a field of a detail, or more of its text, is of the same detail."""
    return isinstance(value, str) if isinstance(known, Pieces) else bool(known == value)


def _signed(blocks: object) -> Iterator[Any]:
    """Join the pieces of thinking that LiteLLM streams as blocks, of which the last is signed."""
    pieces: list[str] = []
    for block in blocks if is_sequence(blocks) else ():
        if not is_mapping(block) or block.get("type") != "thinking":
            yield block
            continue
        piece = str(block.get("thinking") or "")
        if block.get("signature"):
            text = "".join(pieces)
            # The signed block may have no text, the last piece, or all of it once more.
            yield {**block, "thinking": piece if piece.startswith(text) else text + piece}
            pieces.clear()
        else:
            pieces.append(piece)
    text = "".join(pieces)
    if text:
        yield {"type": "thinking", "thinking": text}


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
        self._fields: JsonObject = {}
        self._first: ChoiceState | None = None
        self._choices: dict[int, ChoiceState] = {}

    def _quick(self, fields: JsonObject) -> list[StreamEvent] | None:
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
