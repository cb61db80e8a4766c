"""The events of ConverseStream become our events, and in the end the whole turn.

Each event is an object with one key, which says what it is. Only a call starts with an event of its
own; a block of text or reasoning begins with its first piece. The stream is whole once
`messageStop` came; what it cost comes after that. (Amazon Bedrock API reference: "ConverseStream".)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ... import AssistantTurn
from ..._text.json import JsonObject, is_array, is_object
from ...streaming import ReasoningDelta, StreamEvent, TextDelta
from .._blocks import BlockState, BlockStream
from .._reading import Place, count_at, response_place
from ._decode import META, NAME, tidy, turn_of, usage_of, without_bytes

_REASONING: Final = ("reasoningContent", "reasoningText")
_BESIDE: Final = frozenset({"modelId", META})
"""What is not of the wire: a model says with the first event who answers, and which request."""


class StreamDecoder(BlockStream):
    """Read the events of one streamed message.

    Feed every event of the `stream` of a response, then call `close` for the last events, or
    `finish` for the turn alone. A call whose argument text is not JSON in the end has the text as
    it came.

    Example:
        >>> decoder = StreamDecoder()
        >>> delta = {"contentBlockIndex": 0, "delta": {"text": "Hi"}}
        >>> start, stop = {"role": "assistant"}, {"stopReason": "end_turn"}
        >>> events = ({"messageStart": start}, {"contentBlockDelta": delta}, {"messageStop": stop})
        >>> [decoder.feed(event) for event in events]
        [[], [TextDelta(text='Hi')], []]
        >>> decoder.finish().text
        'Hi'
    """

    __slots__ = ("_response",)

    dialect = NAME

    def __init__(self) -> None:
        super().__init__()
        self._response: JsonObject = {}

    def _take(self, event: Place) -> Iterable[StreamEvent]:
        fields = event.object()
        for key in _BESIDE & fields.keys():
            self._response[key] = self._kept(fields[key])
        # As a rule the only key, as in {"contentBlockDelta": {"contentBlockIndex": 0, "delta":
        # ...}}.
        kind = next((key for key in fields if key not in _BESIDE), "")
        if kind.endswith("Exception") or kind == "error":
            raise event.need(kind).reported()
        said = event.get(kind)
        if said is None:
            if kind:
                self._keep(event)
            return ()
        if kind == "contentBlockDelta":
            return self._delta(said)
        if kind == "contentBlockStart":
            return self._start(said)
        if kind == "contentBlockStop":
            return self._close(self._block(said, self._index(said)))
        if kind == "messageStart":
            self._message = self._kept(said.object())
        elif kind == "messageStop":
            self._started(said)
            self._stopped = True
            self._response.update(self._kept(said.object()))
        elif kind == "metadata":
            self._response.update(self._kept(said.object()))
            return self._report(usage_of(said))
        else:
            self._keep(event)
        return ()

    # Some hosts leave it out. Then a call starts after the others, and so does a text where the
    # block that began last has stopped; any other event is about that block.
    def _index(self, event: Place, *, begins: bool = False, begins_after_stop: bool = False) -> int:
        index = count_at(event.value, "contentBlockIndex")
        if index is not None:
            return index
        last = self._last
        known = self._blocks.get(last)
        if known is not None and (begins or (begins_after_stop and known.is_stopped)):
            return last + 1
        return last

    def _start(self, event: Place) -> Iterable[StreamEvent]:
        self._started(event)
        start = event.need("start")
        kind = next(iter(start.object()), "")
        started = start.get(kind)
        if started is None:
            return ()
        number = self._index(event, begins=True)
        is_call = kind == "toolUse" and started.text_at("type") is None
        call_id = started.text_at("toolUseId") if is_call else None
        if self._is_started(number, call_id, started):
            return ()
        state = self._begin_block(number, BlockState(without_bytes(started.object()), (kind,)))
        if not is_call:
            return ()
        meta = self._response.get(META)
        request_id = meta.get("RequestId") if is_object(meta) else None
        return (self._begin_call(state, started, call_id, request_id),)

    def _delta(self, event: Place) -> Iterable[StreamEvent]:
        self._started(event)
        delta = event.need("delta")
        reasoning, call = delta.get("reasoningContent"), delta.get("toolUse")
        index = self._index(event, begins_after_stop=call is None)
        state = self._blocks.get(index)
        if state is None:
            # The way into a block says what is put around its text: () gives {"text": "Hi"}, and
            # _REASONING {"reasoningContent": {"reasoningText": {"text": "Hi"}}}.
            way = () if reasoning is None else _REASONING
            state = self._begin_block(index, BlockState({}, way))
        if call is not None:
            return self._write(state, call.text_at("input") or "")
        shown = delta if reasoning is None else reasoning
        text, signature = shown.text_at("text"), shown.text_at("signature")
        if text is not None:
            return self._say(
                state, "text", text, TextDelta if reasoning is None else ReasoningDelta
            )
        if signature is not None:
            state.add("signature", signature)
        elif reasoning is not None:
            # Encrypted: `redactedContent` stands one level above where the text of reasoning would.
            state.inside = _REASONING[:1]
            state.fields.update(without_bytes(reasoning.object()))
        else:
            _add(state, without_bytes(delta.object()))
        return ()

    def _whole(self, message: JsonObject) -> AssistantTurn:
        message["content"] = [_cited(block) for block in message["content"]]
        whole = self._payload({**self._response, "output": {"message": message}})
        return turn_of(response_place(NAME, whole, tidy))


def _add(state: BlockState, delta: JsonObject) -> None:
    """Take what is neither said nor called: a citation, or more of what a tool of theirs gave."""
    for kind, value in delta.items():
        if kind == "citation":
            _listed(state.fields, "citations").append(value)
            continue
        state.inside = (kind,)
        if is_array(value):
            _listed(state.fields, "content").extend(value)
        elif is_object(value):
            state.fields.update(value)


def _listed(fields: JsonObject, key: str) -> list[object]:
    known = fields.get(key)
    if not is_array(known):
        known = fields[key] = []
    return known


def _cited(block: JsonObject) -> JsonObject:
    """Return a text with citations in the form that it has in a whole response."""
    if "citations" not in block or "text" not in block:
        return block
    content = [{"text": block["text"]}]
    return {"citationsContent": {"content": content, "citations": block["citations"]}}
