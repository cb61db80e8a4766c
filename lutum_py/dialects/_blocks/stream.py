"""The blocks of a streamed message, each put together from its pieces.

The events of a wire are read by its own decoder, which says here what each of them adds to which
block. In the end the blocks make the message that would have come in one piece.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from ... import AssistantTurn, ToolMetadata, Usage
from ..._text.json import JsonObject, is_sequence, parse_json
from ...streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from ...turns import AssistantItem, ReasoningItem, TextItem, ToolCallItem
from .._arguments import Arguments, BrokenStream
from .._stream import StreamReader
from .._wire.reading import Place, caller_of, name_of, own_id, text_or_none

Delta = type[TextDelta | ReasoningDelta]


@dataclass(slots=True, eq=False)
class BlockState:
    """One content block as it comes in.

    Attributes:
        fields: What has come of it but texts in pieces.
        inside: The way from the block to its fields.
        arguments: The argument text of a call.
        call: The number, id and name of a call that the program answers.
        made: That call, once it is whole.
        is_stopped: Whether its end was told.
        says: The key of the text that is shown, and as what.
    """

    fields: JsonObject
    inside: tuple[str, ...] = ()
    # Pieces of text are listed, as {"text": ["Hel", "lo"]}, and joined once at the end. Adding each
    # to a string would copy the whole text for each of thousands of deltas.
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    arguments: Arguments = field(default_factory=Arguments)
    call: tuple[int, str, str] | None = None
    made: ToolMetadata | None = None
    is_stopped: bool = False
    says: tuple[str, Delta] | None = None

    def add(self, key: str, text: str) -> None:
        """Take more of a text."""
        pieces = self.texts.get(key)
        if pieces is None:
            pieces = self.texts[key] = []
        pieces.append(text)

    def read(self) -> JsonObject:
        """Return its fields as a whole message has them.

        Raises:
            BrokenStream: The arguments of a call contradict each other.
        """
        joined = {
            key: (text_or_none(self.fields.get(key)) or "") + "".join(pieces)
            for key, pieces in self.texts.items()
        }
        fields = {**self.fields, **joined}
        text = self.arguments.whole(str(self.fields.get("name")))
        if text.strip():
            try:
                fields["input"] = parse_json(text)
            except ValueError:
                # Kept as text: the call is then one with arguments that cannot be read, which the
                # round answers with an error. A stream that is whole is not broken by what the
                # model wrote.
                fields["input"] = text
        return fields

    def whole(self) -> JsonObject:
        """Return the block as a whole message has it."""
        block = self.read()
        for key in reversed(self.inside):
            block = {key: block}
        return block


class BlockStream(StreamReader):
    """Read the events of one streamed message."""

    __slots__ = ("_before", "_blocks", "_called", "_calls", "_last", "_message", "_stopped")

    def __init__(self) -> None:
        super().__init__()
        self._message: JsonObject | None = None
        self._blocks: dict[int, BlockState] = {}
        self._before: list[tuple[int, BlockState]] = []
        self._calls = 0
        self._called: list[BlockState] = []
        self._last = 0
        self._stopped = False

    def _started(self, event: Place) -> JsonObject:
        if self._message is None:
            raise event.error("the message has not started")
        return self._message

    # A host may number every block 0, or send the beginning of a block twice. What was said in the
    # block before has been told already, so it stays in the turn.
    def _begin_block(self, number: int, state: BlockState) -> BlockState:
        """Let a block begin; one that has its number already stands before it."""
        known = self._blocks.get(number)
        if known is not None:
            self._before.append((number, known))
        self._blocks[number] = state
        self._last = max(self._last, number)
        return state

    def _is_started(self, number: int, call_id: str | None, call: Place) -> bool:
        """Whether a block is this call already, and still open: its beginning was sent twice."""
        known = self._blocks.get(number)
        if known is None or known.call is None or known.is_stopped:
            return False
        return known.call[1:] == (call_id, name_of(call))

    def _in_order(self) -> list[BlockState]:
        """Return all blocks, by their numbers; of one number, in the order in which they came."""
        numbered = sorted([*self._before, *self._blocks.items()], key=itemgetter(0))
        return [state for _, state in numbered]

    def _begin_call(
        self, state: BlockState, call: Place, call_id: str | None, message_id: object
    ) -> CallStarted:
        name = name_of(call)
        response_id = message_id if isinstance(message_id, str) else None
        state.call = (self._calls, call_id or own_id(response_id, self._calls, name), name)
        self._calls += 1
        self._called.append(state)
        return CallStarted(*state.call)

    def _say(self, state: BlockState, key: str, text: str, delta: Delta) -> list[StreamEvent]:
        """Take more of a text that is shown."""
        if state.says is None:
            state.says = (key, delta)
        state.add(key, text)
        return [delta(text)] if text else []

    def _write(self, state: BlockState, text: str) -> list[StreamEvent]:
        """Take more of the arguments of a call."""
        if state.call is not None and text:
            state.made = None  # where a host stopped the block too early, the call goes on
            return [ArgumentsDelta.of(state.call[0], text, state.arguments)]
        state.arguments.add(text)
        return []

    def _block(self, event: Place, number: int) -> BlockState:
        self._started(event)
        block = self._blocks.get(number)
        if block is None:
            raise event.error(f"the content block {number} has not started")
        return block

    def _close(self, state: BlockState) -> Iterator[StreamEvent]:
        # Hosts that stop a block twice, or not at all: the first stop completes the call, and for
        # the others the end of the stream does.
        state.is_stopped = True
        if state.call is not None and state.made is None:
            index, call_id, name = state.call
            arguments = Place(self.dialect, state.read()).written_at("input", "{}")
            state.made = ToolMetadata(id=call_id, name=name, arguments=arguments)
            yield CallCompleted(index, state.made)

    def _report(self, usage: Usage | None) -> list[StreamEvent]:
        return [] if usage is None else [UsageReported(usage)]

    def _end(self) -> AssistantTurn:
        if self._message is None:
            raise BrokenStream("the stream ends before a message began")
        if not self._stopped:
            raise BrokenStream("the stream breaks off before the message stopped")
        # Some hosts send the first blocks whole, within the message that begins; those that come in
        # pieces stand after them.
        before = self._message.get("content")
        blocks = [state.whole() for state in self._in_order()]
        content = [*(before if is_sequence(before) else ()), *blocks]
        return self._whole({**self._message, "content": content})

    @abstractmethod
    def _whole(self, message: JsonObject) -> AssistantTurn:
        """Read the whole message like any other."""

    def _so_far(self) -> AssistantTurn:
        items: list[AssistantItem] = []
        for state in self._in_order():
            fields = state.read()
            if state.call is not None:
                # Of a stream that broke off, only calls that came to their end count: one with half
                # of its arguments must not look like one that can run.
                if state.made is not None and not isinstance(fields.get("input"), str):
                    items.append(ToolCallItem(state.made, caller_of(fields)))
            elif state.says is not None:
                key, delta = state.says
                said = text_or_none(fields.get(key))
                if said is not None:
                    items.append(TextItem(said) if delta is TextDelta else ReasoningItem(said))
        message = self._message or {}
        return self._neutral(items, message.get("model"), message.get("id"))
