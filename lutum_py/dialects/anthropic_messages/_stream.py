"""The events of a streamed message become our events, and in the end the whole turn.

The events are put together into the message that would have come in one piece, and that message is
decoded as any other. Events of unknown types are kept apart; deltas of unknown types stay in their
block, under the names that the wire gave them. (Anthropic API reference: "Streaming messages".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ... import AssistantTurn
from ..._text.json import JsonObject, is_array, is_mapping, is_object
from ...streaming import ArgumentsDelta, ReasoningDelta, StreamEvent, TextDelta
from .._blocks import BlockState, BlockStream, Delta
from .._reading import Place, count_at, response_place
from ._decode import NAME, tidy, turn_of, usage_of

_SHOWN: Final[dict[str, Delta]] = {"text": TextDelta, "thinking": ReasoningDelta}
_SAID: Final = {f"{kind}_delta": delta for kind, delta in _SHOWN.items()}
_TEXTS: Final = {f"{kind}_delta": kind for kind in (*_SHOWN, "signature")}


class StreamDecoder(BlockStream):
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

    __slots__ = ()

    dialect = NAME

    # Nearly all events are deltas of a few letters, such as {"type": "content_block_delta",
    # "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}, so they have a short path of their
    # own. Whatever is not exactly so is None, and goes the long way through `_take`, which also has
    # the errors. Exact classes are compared because `isinstance` would let True pass for an index.
    def _quick(self, fields: JsonObject) -> list[StreamEvent] | None:
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
        if kind == "input_json_delta" and state.call is not None and state.made is None:
            text = delta.get("partial_json")
            if text.__class__ is not str:
                return None
            if not text:  # as the first of each call
                return []
            number = state.call[0]
            self._reports.wrote(number)
            return [ArgumentsDelta.of(number, text, state.arguments)]
        said = _SAID.get(kind) if kind.__class__ is str else None
        text = None if said is None else delta.get(_TEXTS[kind])
        if said is None or state.says is None or text.__class__ is not str or not text:
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
            return self._close(self._found(event))
        if kind == "message_start":
            message = event.need("message")
            self._message = self._kept(message.object())
            return self._report(usage_of(message))
        if kind == "message_delta":
            return self._finish_message(event)
        if kind == "message_stop":
            self._stopped = True
        elif kind != "ping":
            self._keep(event)
        return ()

    # Hosts may leave the number out: then a block begins after the others, and a delta is for the
    # last.
    def _place(self, event: Place, absent: int) -> int:
        index = count_at(event.value, "index")
        return absent if index is None else index

    def _start(self, event: Place) -> Iterable[StreamEvent]:
        message = self._started(event)
        block = event.need("content_block")
        kind = block.need_text("type")
        number = self._place(event, len(self._blocks))
        call_id = block.text_at("id") if kind == "tool_use" else None
        if self._is_started(number, call_id, block):
            return ()
        state = self._begin_block(number, BlockState(self._kept(block.object())))
        if kind == "tool_use":
            return (self._begin_call(state, block, call_id, message.get("id")),)
        if kind == "fallback":
            # The whole message has the name of the model that answers in the end, and no call of
            # those that declined.
            to = block.get("to")
            message.update({} if to is None else {"model": to.text_at("model")})
            for each in self._called:
                each.call = None
            self._called.clear()
        if kind in _SHOWN:
            delta = _SHOWN[kind]
            state.says = (kind, delta)
            text = block.text_at(kind)
            return (delta(text),) if text else ()
        return ()

    def _found(self, event: Place) -> BlockState:
        return self._block(event, self._place(event, len(self._blocks) - 1))

    def _delta(self, event: Place) -> Iterable[StreamEvent]:
        state = self._found(event)
        delta = event.need("delta")
        kind = delta.need_text("type")
        if kind in _SAID:
            return self._say(state, _TEXTS[kind], delta.need_text(_TEXTS[kind]), _SAID[kind])
        if kind in _TEXTS:
            state.add(_TEXTS[kind], delta.need_text(_TEXTS[kind]))
        elif kind == "input_json_delta":
            return self._write(state, delta.text_at("partial_json") or "")
        elif kind == "citations_delta":
            known = state.fields.get("citations")
            cited: list[object] = known if is_array(known) else []
            cited.append(self._kept(delta.need("citation").object()))
            state.fields["citations"] = cited
        else:
            # A kind of delta that came after this was written. Its fields are kept, so that the
            # block goes back with them; dropping them could void a signature.
            additions = {key: value for key, value in delta.object().items() if key != "type"}
            state.fields.update(self._kept(additions))
        return ()

    def _finish_message(self, event: Place) -> list[StreamEvent]:
        message = self._started(event)
        delta = event.get("delta")
        if delta is not None:
            message.update(_said(self._kept(delta.object())))
        # Usage comes twice, at the start with the input and here with the output, and null for what
        # it does not repeat: so it is joined field by field. Nulls change nothing: some hosts send
        # a second event of this kind, with the usage, or without.
        for key, value in _said(event.object()).items():
            if key == "usage" and is_mapping(value):
                known = message.get("usage")
                message["usage"] = usage = known if is_object(known) else {}
                usage.update(_said(self._kept(value)))
            elif key not in ("type", "delta"):
                message[key] = self._kept(value)
        return self._report(usage_of(Place(NAME, message)))

    def _whole(self, message: JsonObject) -> AssistantTurn:
        return turn_of(response_place(NAME, self._payload(message), tidy))


def _said(fields: Mapping[str, object]) -> JsonObject:
    """Return the fields that are not null."""
    return {key: value for key, value in fields.items() if value is not None}
