"""The events of a streamed OpenAI Response become events of ours, and in the end the whole turn.

The last event carries the whole response, and that response is decoded as any other. The events
before it are for watching; they also hold what is known where the stream breaks.
(OpenAI API reference: "Streaming events" of Responses.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ..._text.partial_json import PartialJson
from ..._transcript.assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    RefusalItem,
    TextItem,
)
from ..._transcript.stream_events import (
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
    arguments_delta,
)
from .._arguments import BrokenStream
from .._stream import StreamReader
from .._wire.reading import Place, count_at, response_place, text_or_none
from ._decode import CALLS, items_of_output, metadata_of, tidy, turn_of, usage_of
from ._facts import NAME

_ENDS = frozenset({"response.completed", "response.incomplete", "response.cancelled"})
_ARGUMENTS = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
)

_WRITTEN: Final = {
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
}
"""The events that say all that was written of a call, and where."""

_MOST_ITEMS: Final = 1 << 16
"""An item of such a number gets a closer look."""
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
class _CallState:
    index: int
    item: Place
    arguments: PartialJson = field(default_factory=PartialJson)
    received: bool = False

    def whole(self) -> dict[str, Any]:
        """Return the item as it stands, for a host that never says that it is done."""
        started = dict(self.item.object())
        text = {CALLS[started["type"]]: self.arguments.text} if self.received else {}
        return {**started, **text}


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

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        # `_started` is the response as it was at the start, for its id and model; `_final` is the
        # whole one, and is None until the last event.
        self._started: dict[str, Any] = {}
        self._final: dict[str, Any] | None = None
        # By `output_index`: `_items` that are done, `_calls` that have started, `_open` the pieces
        # of what is still being said. In the end they are one list in the order of the numbers.
        self._items: dict[int, Place] = {}
        self._calls: dict[int, _CallState] = {}
        self._open: dict[int, list[AssistantItem]] = {}
        self._last = 0

    # Most events are {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi", ...},
    # and none of their other fields matters. What is not exactly so is None, and goes through
    # `_take`, which has the errors.
    def _quick(self, fields: dict[str, Any]) -> list[StreamEvent] | None:
        kind: Any = fields.get("type")
        index: Any = fields.get("output_index")
        text: Any = fields.get("delta")
        if (
            not (kind.__class__ is text.__class__ is str)
            or not text
            or index.__class__ is not int
            or not 0 <= index < _MOST_ITEMS
        ):
            return None
        if kind in _SAID:
            delta, item = _SAID[kind]
            self._open.setdefault(index, []).append(item(text))
            self._last = index
            return [delta(text)]
        call = self._calls.get(index) if kind in _ARGUMENTS else None
        if call is None:
            return None
        self._last = index
        call.received = True
        self._reports.wrote(call.index)
        return [arguments_delta(call.index, text, call.arguments)]

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
                yield from self._more(self._index(event), ReasoningDelta, ReasoningItem, "\n\n")
        elif kind == "response.output_item.added":
            yield from self._added(self._index(event), event.need("item"))
        elif kind == "response.output_item.done":
            yield from self._completed(self._index(event), event.need("item"))
        elif kind == "response.failed":
            failed = event.need("response")
            raise (failed.get("error") or failed).reported()
        elif kind in _ENDS:
            yield from self._whole(event.need("response"))
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            self._started = dict(event.need("response").object())
        elif kind not in _REPEATED:
            self._keep(event)

    def _index(self, event: Place) -> int:
        """Return the number of the item that an event is about; a host may leave it out."""
        # A host without numbers means the item that was spoken of last, or the next one where that
        # is done: it writes one at a time.
        found = count_at(event.value, "output_index")
        if found is None:
            is_done = self._last in self._items
            found = max({*self._items, *self._calls, *self._open}) + 1 if is_done else self._last
        self._last = found
        return found

    def _said(self, event: Place, kind: str) -> Iterator[StreamEvent]:
        delta, item = _SAID[kind]
        yield from self._more(self._index(event), delta, item, event.need_text("delta"))

    def _more(self, index: int, delta: Any, item: Any, text: str) -> Iterator[StreamEvent]:
        if text:
            self._open.setdefault(index, []).append(item(text))
            yield delta(text)

    def _added(self, index: int, item: Place) -> Iterator[StreamEvent]:
        kind = item.text_at("type") or ""
        if kind in CALLS and index not in self._calls:
            call = self._calls[index] = _CallState(len(self._calls), item)
            metadata = metadata_of(item, kind, call.index, self._response_id)
            yield CallStarted(call.index, metadata.id, metadata.name)

    def _arguments(self, event: Place) -> Iterator[StreamEvent]:
        call = self._calls.get(self._index(event))
        if call is None:
            raise event.error("argument text comes for a call that has not started")
        text = event.need_text("delta")
        if text:
            call.received = True
            yield arguments_delta(call.index, text, call.arguments)

    def _written(self, event: Place, text: str | None) -> Iterator[StreamEvent]:
        """Take all that was written of a call, if none of it came in pieces."""
        call = self._calls.get(self._index(event))
        if call is not None and text and not call.received:
            call.received = True
            yield arguments_delta(call.index, text, call.arguments)

    def _completed(self, index: int, item: Place) -> Iterator[StreamEvent]:
        yield from self._added(index, item)
        self._items[index] = item
        self._open.pop(index, None)
        call = self._calls.get(index)
        kind = item.text_at("type") or ""
        if call is None or kind not in CALLS:
            return
        yield CallCompleted(call.index, metadata_of(item, kind, call.index, self._response_id))

    def _whole(self, response: Place) -> Iterator[StreamEvent]:
        self._final = dict(response.object())
        if not self._final.get("output"):
            # Some hosts do not say again at the end what they said item by item.
            # {0: done, 1: a call that nobody ended, 2: text without an end} is the output in the
            # order of the numbers; of each number the most complete that is known counts.
            numbers = sorted({*self._items, *self._calls, *self._open})
            self._final["output"] = [item for number in numbers for item in self._item(number)]
        self._over = True
        usage = usage_of(response)
        if usage is not None:
            yield UsageReported(usage)

    def _item(self, number: int) -> Iterator[Any]:
        if number in self._items:
            yield self._items[number].value
        elif number in self._calls:
            yield self._calls[number].whole()
        else:
            parts = [
                {"type": "output_text", "text": item.text}
                if isinstance(item, TextItem)
                else {"type": "refusal", "refusal": item.text}
                for item in _joined(self._open[number])
                if isinstance(item, TextItem | RefusalItem)
            ]
            if parts:
                yield {"type": "message", "role": "assistant", "content": parts}

    def _end(self) -> AssistantTurn:
        if self._final is None:
            raise BrokenStream("the stream breaks off before the response is whole")
        return turn_of(response_place(NAME, self._payload(self._final), tidy))

    def _so_far(self) -> AssistantTurn:
        items: list[AssistantItem] = []
        # Not `_calls`: of a stream that broke, only a call that is done may look like one that can
        # run, and that one is in `_items`.
        for index in sorted({*self._items, *self._open}):
            if index in self._items:
                items.extend(items_of_output([self._items[index]], self._response_id))
            else:
                items.extend(_joined(self._open[index]))
        return self._neutral(items, self._started.get("model"), self._response_id)

    @property
    def _response_id(self) -> str | None:
        return text_or_none(self._started.get("id"))


def _joined(pieces: list[AssistantItem]) -> Iterator[AssistantItem]:
    for kind in (ReasoningItem, TextItem, RefusalItem):
        text = "".join(piece.text for piece in pieces if isinstance(piece, kind))
        if text:
            yield kind(text)
