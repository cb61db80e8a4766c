"""The events of a streamed message become our events, and in the end the whole turn.

The events are put together into the message that would have come in one piece, and that message is
decoded as any other. Events of unknown types are kept apart; deltas of unknown types stay in their
block, under the names that the wire gave them. (Anthropic API reference: "Streaming messages".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..._text.json import copy_json, is_mapping, is_sequence, parse_json
from ..._text.partial_json import PartialJson
from ..._transcript.assistant import (
    AssistantItem,
    AssistantTurn,
    ReasoningItem,
    TextItem,
    ToolCallItem,
)
from ..._transcript.metadata import ToolMetadata
from ..._transcript.stream_events import (
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
    arguments_delta,
)
from .._stream.streaming import BrokenStream, StreamReader
from .._wire.reading import Place, count_at, own_id, response_place, text_or_none
from ._decode import tidy, turn_of, usage_of
from ._facts import NAME

_SAID: Final[dict[str, type[TextDelta | ReasoningDelta]]] = {
    "text_delta": TextDelta,
    "thinking_delta": ReasoningDelta,
}
_TEXTS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


class _BlockState:
    """One content block as it comes in."""

    __slots__ = ("arguments", "call", "citations", "fields", "is_open", "texts")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.texts: dict[str, list[str]] = {}
        self.arguments = PartialJson()
        self.citations: list[Any] | None = None
        self.call: tuple[int, str, str] | None = None
        self.is_open = True

    def add(self, key: str, text: str) -> None:
        """Take more of a text."""
        pieces = self.texts.get(key)
        if pieces is None:
            pieces = self.texts[key] = []
        pieces.append(text)

    def whole(self) -> dict[str, Any]:
        """Give the block as a whole message has it."""
        joined = {
            key: (text_or_none(self.fields.get(key)) or "") + "".join(pieces)
            for key, pieces in self.texts.items()
        }
        block = {**self.fields, **joined}
        text = self.arguments.text
        if text.strip():
            try:
                block["input"] = parse_json(text)
            except ValueError:
                block["input"] = text
        return block


class StreamDecoder(StreamReader):
    """Read the events of one streamed message.

    Feed every event, then call `close` for the last events, or `finish` for the turn alone. The
    stream is whole once `message_stop` came. A call whose argument text is not JSON in the end has
    the text as it came.

    Example:
        >>> decoder = StreamDecoder()
        >>> start = {"type": "message_start", "message": {"id": "m1", "content": []}}
        >>> block = {
        ...     "type": "content_block_start",
        ...     "index": 0,
        ...     "content_block": {"type": "text", "text": "Hi"},
        ... }
        >>> [decoder.feed(event) for event in (start, block, {"type": "message_stop"})]
        [[], [TextDelta(text='Hi')], []]
        >>> decoder.finish().text
        'Hi'
    """

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, _BlockState] = {}
        self._calls = 0
        self._stopped = False

    def _quick(self, fields: dict[str, Any]) -> list[StreamEvent] | None:
        delta: Any = fields.get("delta")
        index: Any = fields.get("index")
        if (
            fields.get("type") != "content_block_delta"
            or delta.__class__ is not dict
            or index.__class__ is not int
            or self._message is None
            or fields.get("error") is not None
        ):
            return None
        state = self._blocks.get(index)
        if state is None:
            return None
        kind: Any = delta.get("type")
        if kind == "input_json_delta" and state.call is not None:
            text = delta.get("partial_json")
            if text.__class__ is not str:
                return None
            if not text:  # as the first of each call
                return []
            number = state.call[0]
            self._reports.wrote(number)
            return [arguments_delta(number, text, state.arguments)]
        said = _SAID.get(kind) if kind.__class__ is str else None
        text = None if said is None else delta.get(_TEXTS[kind])
        if said is None or text.__class__ is not str or not text:
            return None
        state.add(_TEXTS[kind], text)
        return [said(text)]

    def _take(self, event: Place) -> Iterable[StreamEvent]:
        kind = event.text_at("type")
        failed = event.get("error")
        if kind == "error" or failed is not None:
            raise (failed or event).reported()
        if kind == "content_block_delta":
            return self._delta(event)
        if kind == "content_block_start":
            return self._start(event)
        if kind == "content_block_stop":
            return self._close(self._block(event))
        if kind == "message_start":
            message = event.need("message")
            self._message = copy_json(message.object())
            return self._report(message)
        if kind == "message_delta":
            return self._finish_message(event)
        if kind == "message_stop":
            self._stopped = True
        elif kind != "ping":
            self._keep(event)
        return ()

    def _begun(self, event: Place) -> dict[str, Any]:
        if self._message is None:
            raise event.error("the message has not begun")
        return self._message

    def _start(self, event: Place) -> Iterator[StreamEvent]:
        message_id = self._begun(event).get("id")
        block = event.need("content_block")
        kind = block.need_text("type")
        index = count_at(event.value, "index")
        number = len(self._blocks) if index is None else index
        state = self._blocks[number] = _BlockState(copy_json(block.object()))
        if kind == "tool_use":
            name = block.need_text("name")
            response_id = message_id if isinstance(message_id, str) else None
            call_id = block.text_at("id") or own_id(response_id, self._calls, name)
            state.call = (self._calls, call_id, name)
            self._calls += 1
            yield CallStarted(*state.call)
        elif kind == "text" and block.text_at("text"):
            yield TextDelta(block.need_text("text"))
        elif kind == "thinking" and block.text_at("thinking"):
            yield ReasoningDelta(block.need_text("thinking"))

    def _block(self, event: Place) -> _BlockState:
        self._begun(event)
        index = count_at(event.value, "index")
        number = len(self._blocks) - 1 if index is None else index
        block = self._blocks.get(number)
        if block is None:
            raise event.error(f"the content block {number} has not begun")
        return block

    def _delta(self, event: Place) -> Iterable[StreamEvent]:
        state = self._block(event)
        delta = event.need("delta")
        kind = delta.need_text("type")
        if kind in _TEXTS:
            key = _TEXTS[kind]
            text = delta.need_text(key)
            state.add(key, text)
            said = _SAID.get(kind)
            if said is not None and text:
                return (said(text),)
        elif kind == "input_json_delta":
            text = delta.text_at("partial_json") or ""
            if state.call is not None and text:
                return (arguments_delta(state.call[0], text, state.arguments),)
            state.arguments.add(text)
        elif kind == "citations_delta":
            if state.citations is None:
                known: Any = state.fields.get("citations")
                state.citations = [*(known if is_sequence(known) else ())]
                state.fields["citations"] = state.citations
            state.citations.append(copy_json(delta.need("citation").object()))
        else:
            additions = {key: value for key, value in delta.object().items() if key != "type"}
            state.fields.update(copy_json(additions))
        return ()

    def _close(self, state: _BlockState) -> Iterator[StreamEvent]:
        was_open, state.is_open = state.is_open, False
        if state.call is None or not was_open:
            return
        index, call_id, name = state.call
        arguments = Place(NAME, state.whole()).written_at("input", "{}")
        yield CallCompleted(index, ToolMetadata(id=call_id, name=name, arguments=arguments))

    def _finish_message(self, event: Place) -> Iterator[StreamEvent]:
        message = self._begun(event)
        delta = event.get("delta")
        if delta is not None:
            message.update(copy_json(delta.object()))
        for key, value in event.object().items():
            if key == "usage" and is_mapping(value):
                known = message.get("usage")
                usage = message["usage"] = dict(known) if is_mapping(known) else {}
                for name, count in copy_json(value).items():
                    if count is not None:
                        usage[name] = count
            elif key not in ("type", "delta"):
                message[key] = copy_json(value)
        yield from self._report(Place(NAME, message))

    def _report(self, message: Place) -> Iterator[StreamEvent]:
        usage = usage_of(message)
        if usage is not None:
            yield UsageReported(usage)

    def _end(self) -> AssistantTurn:
        if self._message is None:
            raise BrokenStream("the stream ends before a message began")
        if not self._stopped:
            raise BrokenStream("the stream breaks off before the message stopped")
        whole = self._payload({**self._message, "content": self._content()})
        return turn_of(response_place(NAME, whole, tidy))

    def _content(self) -> list[Any]:
        assert self._message is not None
        before = self._message.get("content")
        blocks = [state.whole() for _, state in sorted(self._blocks.items())]
        return [*(before if is_sequence(before) else ()), *blocks]

    def _so_far(self) -> AssistantTurn:
        items: list[AssistantItem] = []
        for _, state in sorted(self._blocks.items()):
            block = state.whole()
            kind = block.get("type")
            if kind == "text" and text_or_none(block.get("text")):
                items.append(TextItem(block["text"]))
            elif kind == "thinking" and text_or_none(block.get("thinking")):
                items.append(ReasoningItem(block["thinking"]))
            elif (
                state.call is not None
                and not state.is_open
                and not isinstance(block.get("input"), str)
            ):
                _, call_id, name = state.call
                text = Place(NAME, block).written_at("input", "{}")
                metadata = ToolMetadata(id=call_id, name=name, arguments=text)
                items.append(ToolCallItem(metadata))
        message = self._message or {}
        return self._neutral(items, message.get("model"), message.get("id"))
