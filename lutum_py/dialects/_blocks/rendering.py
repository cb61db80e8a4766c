"""How one wire writes its blocks: what differs between two wires of which all else is alike.

A call is a block of the assistant, its result a block at the head of what the user says next. On
one wire a block is told by a field, on another by the key that holds all of it:

    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    {"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}

What is in it, its fields, is named alike but for the id.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from ... import AssistantTurn, Message, ToolResult, TurnRequest
from ..._text.json import JsonObject, is_sequence
from ...turns import RefusalItem, TextItem
from .._facts import Facts
from .._findings import Loss
from .._repair import MOST_MARKS, marks_in
from .._wire.history import History, Part
from .._wire.offered import always_offered
from .._wire.reading import WireCall, caller_of
from .._wire.rendering import LED_NOWHERE, FrontRendering, ModelNames, told_apart

Fields: TypeAlias = JsonObject | None
Read: TypeAlias = tuple[Any, Fields, Fields]
"""What a block is: its text, the fields of a call that the program answers, those of its answer. Of
these it is one at most; the others are None."""


# Of one key that does not match, the API refuses all tools: "tools.0.custom.input_schema.properties
# : Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". (anthropics/claude-code#79418,
# decocms/studio#6874, 2026; by the latter the keys of the root alone are looked at.)
PROPERTY_KEYS: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The keys of a tool's parameters that Anthropic's models take."""

NOTHING: Final[Read] = (None, None, None)
"""What a block is that is neither said, nor called, nor answered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockForm:
    """Say how a wire writes its blocks.

    Attributes:
        facts: What is known of the dialect.
        text: Makes the block of a text.
        call: Makes the block of a call, of its fields.
        result: Makes the block of a result that says that something went wrong: of the field with
            the id of its call, if that has one, and of what it says.
        read: Says what an object is; None for what is not a block of this wire.
        is_reasoning: Tells a block that only the model that made it can read.
        declined: Finds the places of blocks that count no more, since the model that made them
            declined to go on, and another one did.
        unpaired: Finds what the provider ran and has no result, and the results of nothing that it
            ran, of a list of messages: by message and place, the rule, and what is wrong.
        block_looks: What a block of this wire looks like, for people.
        call_id: The field of a call that has its id.
        answers: The field of a result that has the id of its call.
        inside: The way from a block to the fields of a call.
        fix: Fixes what else is wrong with a block that is kept: the block, its position, the
            repairing.
        caller: The field of a call that says which program of the provider's made it, if that is
            so: the results of its turn stand alone in their message.
        takes_text: Whether text may stand for the list of blocks.
        needs_ids: Whether each call has to have an id.
        takes_turns: Whether no two messages that follow each other may be of one role.
    """

    facts: Facts
    text: Callable[[str], JsonObject]
    call: Callable[[JsonObject], JsonObject]
    result: Callable[[JsonObject, str], JsonObject]
    read: Callable[[Any], Read | None]
    is_reasoning: Callable[[Mapping[str, Any]], bool]
    block_looks: str
    call_id: str
    answers: str
    declined: Callable[[Sequence[Any]], Collection[int]] = lambda _: ()
    unpaired: Callable[[Sequence[Any]], Mapping[tuple[int, int], tuple[str, str]]] = lambda _: {}
    fix: Callable[[JsonObject, str, Any], None] | None = None
    inside: str = ""
    caller: str = ""
    takes_text: bool = True
    needs_ids: bool = False
    takes_turns: bool = False

    def message(self, text: str) -> JsonObject:
        """Make the message of the user that says a text."""
        return {"role": "user", "content": text if self.takes_text else [self.text(text)]}

    def is_of_program(self, call: JsonObject) -> bool:
        """Tell the fields of a call that a program of the provider's made."""
        return self.caller in call and caller_of(call) is not None

    def calls_in(self, content: Any) -> Iterator[WireCall]:
        """Yield the calls of what the assistant says, in order."""
        declined = self.declined(content)
        for place, block in enumerate(content):
            fields = None if place in declined else self.call_in(block)
            if fields is not None:
                yield WireCall(fields, self.call_id, fields, "input")

    # One `read` for all three, and not three functions a wire: telling a block is the same look at
    # its `type` or its keys each time, and the three answers can then never disagree.
    def text_in(self, block: object) -> Any:
        """Return the text of a block; None for any other."""
        return (self.read(block) or NOTHING)[0]

    def call_in(self, block: object) -> Fields:
        """Return the fields of a call that the program answers; None for any other block."""
        return (self.read(block) or NOTHING)[1]

    def result_in(self, block: object) -> Fields:
        """Return the fields of the program's answer; None for any other block."""
        return (self.read(block) or NOTHING)[2]


Parts: TypeAlias = Callable[[Any, str, History], Iterator[Part]]
"""Reads text, or blocks, that stand somewhere; results among them are read elsewhere."""


def read_messages(
    history: History,
    form: BlockForm,
    parts: Parts,
    answer: Callable[[Mapping[str, Any], str, History], None],
    response: Callable[[Any], JsonObject],
) -> None:
    """Read the messages of a request, and the instructions in front of them.

    Args:
        history: Takes what is read.
        form: How the wire writes its blocks.
        parts: Reads what a message says.
        answer: Reads a block that is a result.
        response: Puts what the assistant said into a response.
    """
    history.say("system", parts(history.body.get("system"), "system", history), "system")
    spoken: list[tuple[str, Any]] = []

    def turns() -> None:
        """Read what the assistant says before anyone else does: one message, as a rule."""
        # Messages of the assistant in a row are separate turns, unless one before the last has
        # calls: [call a], [call b], then the results of both. Read apart, the first turn would have
        # no result after it, which a transcript refuses.
        read = [history.decode(response(content), position) for position, content in spoken]
        if any(turn.tool_calls for turn in read[:-1]):
            # The results of all come after the last, so that they are one turn.
            blocks: list[Any] = []
            for _, content in spoken:
                blocks += [form.text(content)] if isinstance(content, str) else content
            read = [history.decode(response(blocks), spoken[0][0])]
        for turn in read:
            history.turn(turn)
        spoken.clear()

    for position, message in history.listed():
        content, where = message["content"], f"{position}.content"
        history.rest(message, ("role", "content"), position)
        if message["role"] == "assistant":
            spoken.append((position, content))
            continue
        turns()
        # Results are taken out first and the rest after: [result, "and now?"] answers the call, and
        # then the user speaks. That they stand at the head was checked before.
        blocks = content if is_sequence(content) else ()
        results = [at for at, block in enumerate(blocks) if form.result_in(block) is not None]
        for at in results:
            answer(blocks[at], f"{where}[{at}]", history)
        # Where all blocks were results, the user said nothing, which is not a message either.
        if len(results) < len(content):
            history.say(message["role"], parts(content, where, history), position)
    turns()


class BlockRendering(FrontRendering):
    """Collect the messages of user and assistant.

    Attributes:
        form: How the wire writes its blocks.
    """

    form: ClassVar[BlockForm]
    growing = (*FrontRendering.growing, "_blank_ends")

    def __init__(self, model: ModelNames = None, found: object = None) -> None:
        super().__init__(model, found)
        # Where turns end with white space: the message, and the block in it.
        self._blank_ends: list[tuple[int, int]] = []

    def to_send(self) -> list[JsonObject]:
        """Return what was said, for a request; no turn of the model ends with white space.

        Raises:
            InvalidValueError: The API refuses how it begins.
        """
        said = super().to_send()
        # Of all turns and not of the last alone: the next request begins as this one does.
        for index, place in self._blank_ends:
            content = said[index]["content"]
            if isinstance(content, str):
                said[index]["content"] = content.rstrip()
            elif isinstance(self.form.text_in(content[place]), str):
                content[place]["text"] = content[place]["text"].rstrip()
        return said

    def _is_refused_first(self, said: JsonObject) -> bool:
        return bool(said["role"] == "assistant")

    def _result(self, result: ToolResult, position: str) -> None:
        answers = self._answers.get(result.id)
        # A result of no turn in this request: its call was cut by a view, or the list begins with
        # it. It goes out with the id that such a call would have had.
        if answers is None:
            answers = {self.form.answers: self.ids.of(result.id)}
        self._results.append(self._result_block(result, answers, position))

    def _message(self, message: Message, position: str) -> None:
        if self.stand_alone and self._results:
            text = "the results for a program go out alone: this follows after the next turn"
            self.losses.append(Loss(position, text))
        self._of_user += self.parts_of(message.text, message.attachments, position)

    def _write(self, results: list[JsonObject], of_user: list[JsonObject]) -> None:
        if results or of_user:
            self._say("user", results + of_user)

    def _say(self, role: str, content: list[JsonObject]) -> None:
        # A new dict, and a new list in it: the message before may be one that an earlier request
        # sent and that is kept for the next (see `Rendering`).
        last: JsonObject = self.said[-1] if self.said and self.form.takes_turns else {}
        if last.get("role") == role:
            self.said[-1] = {**last, "content": last["content"] + content}
        else:
            self.said.append({"role": role, "content": content})

    def _turn(self, turn: AssistantTurn, position: str) -> None:
        form = self.form
        payload = self.payload_of(turn, position)
        if payload is None:
            blocks = self._neutral(turn, position)
        else:
            content = self._content_of(payload)
            if isinstance(content, str):
                self.stand_alone = False
                self.said.append({"role": "assistant", "content": content})
                if content[-1:].isspace():
                    self._blank_ends.append((len(self.said) - 1, 0))
                return
            blocks = [self._replayed(block) for block in self._sent_back(turn, content, position)]
        # Calls of the turn and blocks that go out pair by order, not by id: the id may be missing
        # on this wire, or be about to change because the API does not take its letters.
        read = map(form.read, blocks)
        calls = [each[1] for each in read if each is not None and each[1] is not None]
        self._answers = {}
        key = form.call_id
        for call, sent in zip(turn.tool_calls, calls, strict=False):
            if form.needs_ids and not sent.get(key):
                sent[key] = call.id
            self.ids.send(sent, key, is_own=payload is not None)
            self._answers[call.id] = {form.answers: sent[key]} if sent.get(key) else {}
        self.facts.send_names(calls)
        self.stand_alone = any(map(form.is_of_program, calls))
        if blocks:
            self._say("assistant", blocks)
            if "text" in blocks[-1] and str(blocks[-1]["text"])[-1:].isspace():
                self._blank_ends.append((len(self.said) - 1, len(self.said[-1]["content"]) - 1))

    def _sent_back(
        self, turn: AssistantTurn, content: Sequence[Mapping[str, object]], position: str
    ) -> list[Mapping[str, Any]]:
        text_in = self.form.text_in
        declined = self.form.declined(content)
        if declined:
            content = [block for place, block in enumerate(content) if place not in declined]
        said = [block for block in content if (text := text_in(block)) is None or text.strip()]
        is_reasoning, is_of_other = self.form.is_reasoning, told_apart(turn, self.model)
        if is_of_other or self._is_reasoning_void(turn):
            others = [block for block in said if not is_reasoning(block)]
            if is_of_other and len(others) < len(said):
                self.keep_back(turn, position, "the thinking")
            return others
        if said and is_reasoning(said[-1]):
            # A limit on tokens ended it there: the APIs refuse a turn that ends with its reasoning.
            self.losses.append(Loss(position, LED_NOWHERE))
            while said and is_reasoning(said[-1]):
                said.pop()
        return said

    def _neutral(self, turn: AssistantTurn, position: str) -> list[JsonObject]:
        form = self.form
        blocks = [
            form.text(item.text)
            for item in turn.items
            if isinstance(item, TextItem | RefusalItem) and item.text.strip()
        ]
        for call, value in self._called_with(turn, position):
            blocks.append(form.call({form.call_id: call.id, "name": call.name, "input": value}))
        return blocks

    def _is_said(self, text: str) -> bool:
        return bool(text.strip())  # the APIs refuse a block of blank text

    def _text(self, text: str) -> JsonObject:
        return self.form.text(text)

    @abstractmethod
    def _is_reasoning_void(self, turn: AssistantTurn) -> bool:
        """Tell whether the model that made a turn would refuse its reasoning now."""

    @abstractmethod
    def _content_of(self, payload: Mapping[str, object]) -> Any:
        """Return what was said in a response: blocks, or text in their place."""

    @abstractmethod
    def _replayed(self, block: Mapping[str, object]) -> JsonObject:
        """Copy a block of a response as the API takes it back."""

    @abstractmethod
    def _result_block(self, result: ToolResult, answers: JsonObject, position: str) -> JsonObject:
        """Make the block of a result, with the field that names its call, if there is one."""


# A marker says: keep the beginning up to here. A later request finds the entry where its own
# marker, or one of the twenty blocks before it, ends the same beginning. So the ends of the last
# two user messages are marked: that of this request, and that of the one before. Nothing is marked
# from an ephemeral message on: no later request begins so. (Anthropic guide: "Prompt caching".)
class CacheMarks(NamedTuple):
    """Say how a wire marks the beginnings that the prompt cache keeps.

    Attributes:
        kind: The type of a mark.
        put: Puts a mark into a list of blocks, before a place in it.
        marker: The field that is a mark.
        ways: The ways to the blocks of a request that may have one.
    """

    kind: str
    put: Callable[[list[JsonObject], int, JsonObject], None]
    marker: str
    ways: tuple[str, ...]


def mark_beginnings(
    request: TurnRequest,
    body: JsonObject,
    tools: list[JsonObject],
    rendering: BlockRendering,
    marks: CacheMarks,
) -> Iterator[Loss]:
    """Put the marks of the prompt cache into a body: after tools, instructions and messages.

    Args:
        request: The request, which may ask for a cache.
        body: Its body, with `system` as a list of blocks, if there is any.
        tools: The tools in it, of which the first are always on offer.
        rendering: What was said in it.
        marks: How the wire marks.

    Yields:
        What is not marked, since the extras of the request have marks too.
    """
    cache, always = request.cache, len(always_offered(request))
    if cache is None:
        return
    ttl = {} if cache.ttl is None else {"ttl": cache.ttl}
    extra = request.extra
    left = MOST_MARKS - len(marks_in(extra, marks.marker, marks.ways)) - (marks.marker in extra)

    def mark(blocks: list[JsonObject], end: int) -> bool:
        nonlocal left
        left -= 1
        if left >= 0:
            marks.put(blocks, end, {"type": marks.kind, **ttl})
        return left < 0

    if cache.tools and always and mark(tools, always):
        yield Loss("cache.tools", _NO_MARK)
    if cache.system and rendering.system_end and mark(body["system"], rendering.system_end):
        yield Loss("cache.system", _NO_MARK)
    messages, count = body["messages"], cache.turns
    # Where the first ephemeral message stands: the index of its message, and of its first block.
    lasting = rendering.lasting
    last, blocks = (len(messages), 0) if lasting is None else lasting
    # `last` may be the number of messages: then the first ephemeral one is still to come, or there
    # is none, and the search begins at the last message.
    for at in range(min(last, len(messages) - 1), -1, -1):
        message = messages[at]
        if not count:
            return
        if message["role"] != "user":
            continue
        content: list[JsonObject] = message["content"]
        # What is ephemeral may wait after results that stand alone, and is not in the message.
        end = min(blocks, len(content)) if at == last else len(content)
        if end:
            if mark(content, end):
                yield Loss("cache.turns", _NO_MARK)
                return
            count -= 1


_NO_MARK: Final = f"the extras have marks too, and a request has at most {MOST_MARKS}"
