"""The events of a streamed OpenAI Response become events of ours, and in the end the whole turn.

The last event carries the whole response, and that response is decoded as any other. The events
before it are for watching; they also hold what is known where the stream breaks.
(OpenAI API reference: "Streaming events" of Responses.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from ... import AssistantTurn
from ..._text.json import JsonObject, compact_json, is_mapping, is_sequence
from ...streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from ...turns import AssistantItem, ReasoningItem, RefusalItem, TextItem
from .._arguments import Arguments, BrokenStream, settled
from .._reading import Place, count_at, response_place, text_or_none
from .._stream import StreamReader
from ._decode import (
    CALLS,
    NAME,
    PROGRAM_CALLS,
    WAITING,
    is_call,
    items_of_output,
    metadata_of,
    tidy,
    turn_of,
    usage_of,
)

_ENDS = frozenset({"response.completed", "response.incomplete", "response.cancelled"})
_ARGUMENTS = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
)

_WRITTEN: Final = {
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}
"""The events that say all that was written of a call, and where."""

_SAID: dict[str, tuple[type[TextDelta | ReasoningDelta | RefusalDelta], Any]] = {
    "response.output_text.delta": (TextDelta, TextItem),
    "response.refusal.delta": (RefusalDelta, RefusalItem),
    "response.reasoning_text.delta": (ReasoningDelta, ReasoningItem),
    "response.reasoning_summary_text.delta": (ReasoningDelta, ReasoningItem),
}
# Events whose content is in the items that they are about, or in the whole response.
_STEPS = {
    "audio": ("delta", "done", "transcript.delta", "transcript.done"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "code_interpreter_call_code": ("delta", "done"),
    "compaction": ("compacting",),
    "content_part": ("added", "done"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_call_arguments": ("delta", "done"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "output_text": ("done", "annotation.added"),
    "reasoning_summary_part": ("done",),
    "reasoning_summary_text": ("done",),
    "reasoning_text": ("done",),
    "refusal": ("done",),
    "shell_call_command": ("added", "delta", "done"),
    "shell_call_output_content": ("delta", "done"),
    "web_search_call": ("in_progress", "searching", "completed"),
}
_REPEATED = frozenset(
    f"response.{about}.{step}" for about, steps in _STEPS.items() for step in steps
)


@dataclass(slots=True, eq=False)
class _ItemState:
    """One item as it comes in.

    Attributes:
        number: Where it stands among the items, as the host has it.
        item: The item as it was added, or once it is done; None if only pieces came.
        is_done: Whether it is done.
        call: Its number among the calls, if it is one.
        said: The pieces of what it says.
        arguments: The argument text, if it is a call.
        written: The same as a whole, if an event had it.
    """

    number: int
    item: Place | None = None
    is_done: bool = False
    call: int | None = None
    said: list[AssistantItem] = field(default_factory=list[AssistantItem])
    arguments: Arguments = field(default_factory=Arguments)
    written: str = ""

    @property
    def kind(self) -> str:
        """The type of the item."""
        return "" if self.item is None else self.item.text_at("type") or ""

    def whole(self, known: Mapping[str, Any] | None = None) -> JsonObject | None:
        """Return the item as far as it is known; None if nothing came that goes back.

        Args:
            known: The item as the whole response has it, if it does.

        Raises:
            BrokenStream: The arguments of a call contradict each other.
        """
        whole = dict(known or ({} if self.item is None else self.item.object()))
        key = CALLS.get(self.kind)
        if key is not None:
            # A host may leave out at the end what it sent in pieces.
            text = whole.get(key) or ""
            if isinstance(text, str):
                of_call = (self.arguments, str(whole.get("name")))
                text = settled((self.written, text), *of_call, is_json=key == "arguments")
            return whole | ({key: text} if text else {})
        if whole.get("content") or (whole and self.kind != "message"):
            return whole
        parts = [
            {"type": "output_text", "text": item.text}
            if isinstance(item, TextItem)
            else {"type": "refusal", "refusal": item.text}
            for item in _joined(self.said)
            if isinstance(item, TextItem | RefusalItem)
        ]
        if not parts:
            return whole or None
        return {"type": "message", "role": "assistant", **whole, "content": parts}

    def goes_on(self, of_call: bool) -> bool:
        """Tell whether a piece that has no id may be of this item."""
        return not self.is_done and (self.call is not None) == of_call

    def may_be(self, item: Place) -> bool:
        """Tell whether an item under the number of this one is this one."""
        fields = item.object()
        known: Mapping[str, Any] = {} if self.item is None else self.item.object()
        if not known:
            return not self.is_done
        if any(
            known.get(key, fields.get(key)) != fields.get(key, known.get(key))
            for key in ("type", "call_id", "name")
        ):
            return False
        return not self.is_done or known == fields


class StreamDecoder(StreamReader):
    """Read the events of one streamed response.

    Feed every event; the one that carries the whole response also gives `TurnFinished`. Then call
    `finish` for the turn.

    Example:
        >>> decoder = StreamDecoder()
        >>> decoder.feed({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"})
        [TextDelta(text='Hi')]
        >>> part = {"type": "output_text", "text": "Hi"}
        >>> response = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
        >>> _ = decoder.feed({"type": "response.completed", "response": response})
        >>> decoder.finish().text
        'Hi'
    """

    __slots__ = ("_at", "_calls", "_final", "_items", "_last_call", "_started")

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        # `_started` is the response as it was at the start, for its id and model; `_final` is the
        # whole one, and is None until the last event.
        self._started: JsonObject = {}
        self._final: JsonObject | None = None
        # All items, in the order in which they began, and by their ids and `output_index`: `_found`
        # tells which of them an event is about.
        self._items: list[_ItemState] = []
        self._at: dict[Any, _ItemState] = {}
        self._calls = 0
        self._last_call: _ItemState | None = None

    # Most events are {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi", ...},
    # and none of their other fields matters. What is not exactly so is None, and goes through
    # `_take`, which has the errors.
    def _quick(self, fields: JsonObject) -> list[StreamEvent] | None:
        kind: Any = fields.get("type")
        index: Any = fields.get("output_index")
        text: Any = fields.get("delta")
        if not (kind.__class__ is text.__class__ is str) or not text or index.__class__ is not int:
            return None
        # Nearly always that of the event before.
        state = self._items[-1] if self._items else None
        if state is None or self._at.get(index) is not state or state.is_done:
            return None
        item_id: Any = fields.get("item_id")
        if item_id.__class__ is str and self._at.get(item_id) is not state:
            return None
        if kind in _SAID:
            delta, item = _SAID[kind]
            state.said.append(item(text))
            return [delta(text)]
        if kind not in _ARGUMENTS or state.call is None:
            return None
        self._reports.wrote(state.call)
        return [ArgumentsDelta.of(state.call, text, state.arguments)]

    def _take(self, event: Place) -> Iterator[StreamEvent]:
        kind = event.text_at("type")
        if kind == "error" or (kind is None and event.get("error") is not None):
            raise (event.get("error") or event).reported()
        if kind is None:
            self._keep(event)
        elif kind in _SAID:
            yield from self._said(event, kind)
        elif kind in _ARGUMENTS:
            yield from self._arguments(event)
        elif kind in _WRITTEN:
            yield from self._written(event, text_or_none(event.value.get(_WRITTEN[kind])))
        elif kind == "response.reasoning_summary_part.added":
            if count_at(event.value, "summary_index"):
                yield from self._more(event, ReasoningDelta, ReasoningItem, "\n\n")
        elif kind == "response.output_item.added":
            yield from self._added(event, event.need("item"))
        elif kind == "response.output_item.done":
            yield from self._completed(event, event.need("item"))
        elif kind == "response.failed":
            failed = event.need("response")
            raise (failed.get("error") or failed).reported()
        elif kind in _ENDS:
            yield from self._whole(event.need("response"), kind.removeprefix("response."))
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            self._started = dict(event.need("response").object())
        elif kind not in _REPEATED:
            self._keep(event)

    # By its id first, of the item or of the call: some hosts leave `output_index` out, or number
    # all items 0. By `output_index` where the id is not known, since some make a new one for each
    # event. A host with neither means the last item, or the next one where that is done.
    def _state(
        self, event: Place, item: Place | None = None, *, of_call: bool = False
    ) -> _ItemState | None:
        """Return the item that an event is about; None if it has not begun.

        Args:
            event: The event.
            item: The item that is in it, if it has one.
            of_call: Whether the event adds to a call; of other pieces, and of an item.
        """
        fields = event.object() if item is None else item.object()
        keys = [fields.get("item_id" if item is None else "id"), None]
        if item is not None and isinstance(fields.get("call_id"), str):
            keys[1] = f"{item.text_at('type')} {fields['call_id']}"
        state, same = (self._at.get(key) if isinstance(key, str) and key else None for key in keys)
        # Two calls of one response may have one id, which `turn_of` tells apart.
        if state is None and same is not None and item is not None and same.may_be(item):
            state = same
        index = count_at(event.value, "output_index")
        if state is None:
            last = self._items[-1] if self._items else None
            state = last if index is None else self._at.get(index)
            if state is not None and not (
                state.goes_on(of_call) if item is None else state.may_be(item)
            ):
                state = self._last_call if of_call else None
        if state is None and not of_call:
            before = self._items[-1].number if self._items else 0
            state = _ItemState(before if index is None else index)
            self._items.append(state)
            if index is not None:
                self._at[index] = state
        if state is not None:
            for key in (index, *keys):
                if isinstance(key, int) or (isinstance(key, str) and key):
                    self._at.setdefault(key, state)
        return state

    def _said(self, event: Place, kind: str) -> Iterator[StreamEvent]:
        delta, item = _SAID[kind]
        yield from self._more(event, delta, item, event.need_text("delta"))

    def _more(self, event: Place, delta: Any, item: Any, text: str) -> Iterator[StreamEvent]:
        state = self._state(event) if text else None
        if state is not None:
            state.said.append(item(text))
            yield delta(text)

    def _begin(self, state: _ItemState, item: Place) -> Iterator[StreamEvent]:
        if state.item is None:
            state.item = Place(NAME, self._kept(item.object()), None, item.where)
        is_program_call = state.kind in PROGRAM_CALLS and is_call(item.object())
        if state.call is None and (state.kind in CALLS or is_program_call):
            state.call = self._calls
            self._calls += 1
            if state.kind in CALLS:
                self._last_call = state
            metadata = metadata_of(item, state.kind, state.call, self._response_id)
            yield CallStarted(state.call, metadata.id, metadata.name)

    def _added(self, event: Place, item: Place) -> Iterator[StreamEvent]:
        state = self._state(event, item)
        assert state is not None
        yield from self._begin(state, item)

    def _arguments(self, event: Place) -> Iterator[StreamEvent]:
        state = self._state(event, of_call=True)
        if state is None or state.call is None:
            raise event.error("argument text comes for a call that has not started")
        text = event.need_text("delta")
        if text:
            yield ArgumentsDelta.of(state.call, text, state.arguments)

    def _written(self, event: Place, text: str | None) -> Iterator[StreamEvent]:
        """Take all that was written of a call, which may have come in pieces."""
        state = self._state(event, of_call=True) if self._calls else None
        if state is not None and state.call is not None and text:
            state.written = text
            if state.arguments.is_empty:
                yield ArgumentsDelta.of(state.call, text, state.arguments)

    def _completed(self, event: Place, item: Place) -> Iterator[StreamEvent]:
        state = self._state(event, item)
        assert state is not None
        yield from self._begin(state, item)
        state.item = Place(NAME, self._kept(item.object()), None, item.where)
        whole = Place(NAME, state.whole(), None, item.where)
        state.is_done = True
        if state.call is not None:
            metadata = metadata_of(whole, state.kind, state.call, self._response_id)
            yield CallCompleted(state.call, metadata)

    def _whole(self, response: Place, status: str) -> Iterator[StreamEvent]:
        self._final = dict(response.object())
        # Some hosts repeat here what they said at the start.
        if self._final.get("status") in WAITING:
            self._final["status"] = status
        output = self._final.get("output")
        if self._items:
            self._final["output"] = self._output(output if is_sequence(output) else ())
        elif output is None:
            self._final["output"] = []
        self._over = True
        usage = usage_of(response)
        if usage is not None:
            yield UsageReported(usage)

    # Some hosts do not say again at the end what they said item by item, or not all of it. What
    # they say there is found by id, or where that is another, by what it says, or by its kind.
    def _output(self, final: Sequence[Any]) -> list[Any]:
        """Put together what is in the whole response and what came before and is not in it."""
        states = sorted(self._items, key=attrgetter("number"))
        items = [state.whole() for state in states]
        place_of: dict[int, int] = {}
        left = {place: item for place, item in enumerate(final) if is_mapping(item)}
        for key in (_id_of, _call_of, _words_of, _kind_of):
            places: dict[Any, deque[int]] = {}
            for place, sent in left.items():
                places.setdefault(key(sent), deque()).append(place)
            for at, item in enumerate(items):
                name = None if item is None or at in place_of else key(item)
                found = None if name is None else places.get(name)
                if found:
                    place_of[at] = found.popleft()
                    del left[place_of[at]]
            if not left:
                break
        behind: dict[int, list[Any]] = {}
        last = -1
        for at, (state, item) in enumerate(zip(states, items, strict=True)):
            last = place_of.get(at, last)
            if at in place_of:
                behind.setdefault(last, []).insert(0, state.whole(final[last]))
            elif item is not None and (state.is_done or state.call is not None or state.said):
                behind.setdefault(last, []).append(item)
        matched = set(place_of.values())
        for place in range(len(final)):
            if place not in matched:
                behind.setdefault(place, []).insert(0, final[place])
        return [item for place in range(-1, len(final)) for item in behind.get(place, ())]

    def _end(self) -> AssistantTurn:
        if self._final is None:
            raise BrokenStream("the stream breaks off before the response is whole")
        return turn_of(response_place(NAME, self._payload(self._final), tidy))

    def _so_far(self) -> AssistantTurn:
        items: list[AssistantItem] = []
        # Of a stream that broke, only a call that is done may look like one that can run.
        for state in sorted(self._items, key=attrgetter("number")):
            if state.is_done:
                items.extend(items_of_output([Place(NAME, state.whole())], self._response_id))
            else:
                items.extend(_joined(state.said))
        return self._neutral(items, self._started.get("model"), self._response_id)

    @property
    def _response_id(self) -> str | None:
        return text_or_none(self._started.get("id"))


def _joined(pieces: list[AssistantItem]) -> Iterator[AssistantItem]:
    for kind in (ReasoningItem, TextItem, RefusalItem):
        text = "".join(piece.text for piece in pieces if isinstance(piece, kind))
        if text:
            yield kind(text)


def _id_of(item: Mapping[str, Any]) -> Any:
    return item.get("id") or None


def _call_of(item: Mapping[str, Any]) -> Any:
    return (item.get("type"), item["call_id"]) if item.get("call_id") else None


def _words_of(item: Mapping[str, Any]) -> Any:
    return compact_json({key: item[key] for key in sorted(item) if key not in ("id", "status")})


def _kind_of(item: Mapping[str, Any]) -> Any:
    return None if item.get("call_id") else item.get("type")
