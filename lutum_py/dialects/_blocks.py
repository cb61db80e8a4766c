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
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from .. import AssistantTurn, Message, ToolMetadata, ToolResult, TurnRequest, Usage
from .._text.json import JsonObject, copy_json, is_mapping, is_sequence, parse_json, shorten
from ..streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    UsageReported,
)
from ..turns import AssistantItem, ReasoningItem, RefusalItem, TextItem, ToolCallItem
from ._arguments import Arguments, BrokenStream
from ._facts import Facts
from ._findings import NOT_SHOWN, OUTCOME_UNKNOWN, Loss
from ._history import History, Part
from ._offered import always_offered
from ._reading import Place, WireCall, caller_of, name_of, own_id, text_or_none
from ._rendering import LED_NOWHERE, FrontRendering, ModelNames, told_apart
from ._repair import (
    MOST_MARKS,
    Form,
    Pairing,
    Piece,
    Repairing,
    Spoken,
    distinct_ids,
    marks_in,
    note_places,
    number_turns,
    read_spoken,
)
from ._stream import StreamReader

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


_ROLES: Final[Mapping[str | None, str]] = {role: role for role in ("user", "assistant", "system")}


class Block(Piece):
    """One content block."""

    __slots__ = ()

    said_at = "messages[%d].content"


def read_turns(messages: list[Any], form: BlockForm, repairing: Repairing) -> list[Spoken[Block]]:
    """Read the messages of a request, without what says nothing, and number their turns."""
    odd: list[int] = []
    pieces_of = partial(_blocks, form, repairing, odd, form.unpaired(messages))
    spoken = read_spoken(messages, Block.said_at, _ROLES, pieces_of, repairing)
    return _led_somewhere(spoken, form, repairing) if odd else spoken


def _led_somewhere(
    spoken: list[Spoken[Block]], form: BlockForm, repairing: Repairing
) -> list[Spoken[Block]]:
    """Leave out reasoning at the end of a turn, after which the model said nothing."""
    is_touched, told = False, -1
    for said in reversed(spoken):
        if said.role != "assistant" or said.group == told:
            continue
        while said.pieces and form.is_reasoning(said.pieces[-1].value):
            repairing.note(
                said.pieces.pop().position,
                "reasoning_at_end",
                "a turn ends with its reasoning",
                "Leave out reasoning after which the model said nothing",
                "removed the reasoning",
            )
            is_touched = True
        if said.pieces:
            told = said.group
    if not is_touched:
        return spoken
    kept = [said for said in spoken if said.pieces]
    number_turns(kept)
    return kept


def _blocks(
    form: BlockForm,
    repairing: Repairing,
    odd: list[int],
    unpaired: Mapping[tuple[int, int], tuple[str, str]],
    index: int,
    message: Mapping[str, object],
    role: str,
    number: int,
) -> list[Block]:
    """Read the blocks of a message, and note its number in `odd` if it may end with reasoning."""
    content = message.get("content")
    if isinstance(content, str) and (form.takes_text or not content.strip()):
        return [Block(index, None, number, form.text(content))] if content.strip() else []
    if content is not None and not is_sequence(content):
        listed = [form.text(content)] if isinstance(content, str) else [content]
        is_kept = is_mapping(listed[0])
        said = "text or a list" if form.takes_text else "a list"
        repairing.note(
            f"messages[{index}].content",
            "invalid_content",
            f"expected {said} of blocks, got {shorten(content)}",
            f"Send {said} of blocks, even if there is only one",
            "put it into a list" if is_kept else "removed it",
        )
        content = listed if is_kept else ()
    blocks: list[Block] = []
    declined = form.declined(content or ()) if role == "assistant" else ()
    read: Read | None = None
    for place, value in enumerate(content or ()):
        read = form.read(value) if is_mapping(value) else None
        if read is None:
            repairing.note(
                f"messages[{index}].content[{place}]",
                "unknown_block",
                f"expected a content block, got {shorten(value)}",
                f"Send {form.block_looks}",
                "removed it",
            )
            odd.append(index)
            continue
        unfit = _DECLINED if place in declined else _unfit(read, role)
        if unfit is None and unpaired and (index, place) in unpaired:
            remedy = "Send what the provider ran together with its result"
            unfit = (*unpaired[index, place], remedy, "removed the block")
        if unfit is not None:
            odd.append(index)
            repairing.note(f"messages[{index}].content[{place}]", *unfit)
            continue
        owned = repairing.own(value)
        # `own` gives the block itself, or a copy to change. `read` points into the block, so it has
        # to be read again from a copy: repairing would change the caller's block otherwise.
        block = Block(index, place, number + len(blocks), owned)
        _, block.call, block.result = read if owned is value else form.read(owned) or NOTHING
        if block.call is not None:
            _call(block, block.call, form, repairing)
        if form.fix is not None:
            form.fix(owned, block.position, repairing)
        blocks.append(block)
    if read == NOTHING:
        odd.append(index)
    return blocks


_DECLINED: Final = (
    "declined",
    "the model that made this block declined to go on",
    "Leave out the calls and the thinking before the last `fallback`, and the results of the calls",
    "removed the block",
)


def _unfit(read: Read, role: str) -> tuple[str, str, str, str] | None:
    """Say what is wrong with a block that this role may not send."""
    text, call, _ = read
    if text is not None and not str(text).strip():
        return "empty_text", "the text is blank", "Leave the block out", "removed the block"
    if call is not None and role != "assistant":
        problem = f"a call is in a message of the {role}"
        remedy = "Send calls in messages of the assistant only"
        return "misplaced_call", problem, remedy, "removed the call"
    return None


def _call(block: Block, call: JsonObject, form: BlockForm, repairing: Repairing) -> None:
    value = call.get("input")
    if not repairing.takes(call.get("name")):
        repairing.rename(call, "name", f"{block.position}.{form.inside}name")
    if not isinstance(value, dict):
        inside = f"{block.position}.{form.inside}".removesuffix(".")
        repairing.repair_object(call, "input", inside)


def rules_of(form: BlockForm, *whole: Callable[[JsonObject, Repairing], None]) -> Form:
    """Make what checks and repairs the requests of a wire.

    Args:
        form: How the wire writes its blocks.
        whole: Its rules over the whole of a request.
    """
    return Form(
        whole=whole,
        facts=form.facts,
        said=form.message,
        fix=partial(_fix, form),
        is_in_order=partial(_is_in_order, form),
    )


def _is_in_order(form: BlockForm, messages: list[Any], repairing: Repairing) -> bool:
    """Tell whether the results of each turn stand at the head of the next, and no others."""
    # The quick way, for the conversations that are in order, which are nearly all: one pass that
    # moves nothing. `due` has the ids of the turn that is read, as ["c1", "c2"], and `answered`
    # says how many of them have their result. At the first doubt it says no, and `_fix` looks
    # closely.
    due: list[str | None] = []
    turn = alone = -1
    caller = form.caller
    answered = 0
    turn_of: dict[str, int] = {}
    spoken = read_turns(messages, form, repairing)
    for said in spoken:
        for block in said.pieces:
            call, result = block.call, block.result
            if result is not None:
                # A result too many, or not in the next turn, or after something that the user
                # says.
                if answered == len(due) or block.group != turn + 1 or block.is_behind:
                    return False
                if _text(result.get(form.answers)) != due[answered]:
                    return False
                answered += 1
            elif call is not None:
                if said.group != turn:
                    if answered < len(due):
                        return False
                    due, answered, turn = [], 0, said.group
                call_id = call.get(form.call_id) or None
                due.append(call_id)
                if call_id is not None:
                    if call_id.__class__ is not str or turn_of.get(call_id) == turn:
                        return False
                    turn_of[call_id] = turn
                elif form.needs_ids:
                    return False
                if caller in call and form.is_of_program(call):
                    alone = turn + 1  # whose results those of the next turn are
            elif said.group == alone and said.role == "user":
                return False
    takes = form.facts.call_ids.fullmatch
    if not all(map(takes, turn_of)) or answered < len(due) or _ends_blank(spoken, form, repairing):
        return False
    if form.takes_turns:
        roles = [said.role for said in spoken]
        # Compares each role with its neighbour; `roles[1:]` is one shorter, where `map` ends.
        if any(map(str.__eq__, roles, roles[1:])):
            return False
    return next((said.role for said in spoken if said.role != "system"), "") != "assistant"


def _fix(form: BlockForm, messages: list[Any], repairing: Repairing) -> None:
    # Read, pair, then write: a result may stand anywhere, also before its call, so nothing can be
    # written before all is read. Only turns that are `touched` are put in a new order; the rest
    # goes out block for block as it came, or a provider's cache would be lost.
    spoken = read_turns(messages, form, repairing)
    pieces = [block for said in spoken for block in said.pieces]
    calls = [block for block in pieces if block.call is not None]
    results = [block for block in pieces if block.result is not None]
    pairing: Pairing[Block] = Pairing()
    pairing.pair(calls, results, partial(_key, form))
    remedy = "Send exactly one result for each call, with the call's id"
    answers = pairing.answers(calls, remedy, partial(_unanswered, form), repairing)
    touched: set[int] = set()
    for group, answered in answers.items():
        if note_places(group, answered, repairing):
            touched.add(group)
        keys = (form.call_id, form.answers)
        distinct_ids(answered, keys, repairing, is_needed=form.needs_ids)
    if _ends_blank(spoken, form, repairing):
        last = spoken[-1].pieces[-1]
        repairing.note(
            last.position,
            "white_space_at_end",
            "the last message is the assistant's, and ends with white space",
            "End what the model should go on from with something else",
            "removed the white space",
        )
        last.value["text"] = last.value["text"].rstrip()
    due = {group: [result for _, result in answers[group]] for group in touched}
    _write(spoken, due, set(pairing.dropped), form, repairing)
    _begin(form, repairing)


# "final assistant content cannot end with trailing whitespace": tailcallhq/forgecode#1872.
# A list alone may be a part of a conversation that goes on.
def _ends_blank(spoken: list[Spoken[Block]], form: BlockForm, repairing: Repairing) -> bool:
    if not repairing.body or not spoken or spoken[-1].role != "assistant":
        return False
    text = form.text_in(spoken[-1].pieces[-1].value)
    return isinstance(text, str) and text != text.rstrip()


def _key(form: BlockForm, block: Block) -> str | None:
    # A host that sends no id gets none back: such calls and results meet by their order.
    fields, key = (block.call, form.call_id) if block.call else (block.result, form.answers)
    return _text((fields or {}).get(key))


def _text(value: object) -> str | None:
    return str(value) if value else None


def _unanswered(form: BlockForm, repairing: Repairing, block: Block) -> Block:
    call = block.call or {}
    repairing.unanswered(
        block.position,
        call.get(form.call_id, call.get("name")),
        "Send one result for each call at the head of the next user message",
    )
    same = {form.answers: call[form.call_id]} if call.get(form.call_id) else {}
    value = form.result(same, OUTCOME_UNKNOWN)
    return block.beside(value, form.result_in(value))


def _write(
    spoken: list[Spoken[Block]],
    due: dict[int, list[Block]],
    dropped: set[Block],
    form: BlockForm,
    repairing: Repairing,
) -> None:
    """Write the messages; results of a turn with a breach go to the head of the turn after it."""
    # `due` has turn 1 where the answers of turn 1 are to be written again; `moved` has them
    # wherever they stand, so that going through the messages drops each at its old place, and
    # `waiting` puts it at the new one.
    moved = dropped.union(*due.values())
    # Results of a repaired turn wait here until its last message is written. They then stand at the
    # head of the user's next message, or make one where the user says nothing.
    waiting: list[Block] = []
    # What is beside results that go out alone waits here, until the user may say it.
    late: list[Block] = []
    is_alone, last = False, ""
    # The last message of each turn; instructions stand in none.
    ends = {said.group: said for said in spoken if said.role != "system"}
    for said in spoken:
        kept = [block for block in said.pieces if block not in moved]
        if said.role == "user":
            kept = waiting + kept
            waiting = []
            results = [block for block in kept if block.result is not None]
            rest = kept[len(results) :]
            if is_alone:
                _note_beside(rest, repairing)
                late, kept = late + rest, results
            elif late:
                late, kept = [], results + late + rest
        elif said.role == "assistant" and kept:
            calls = [block.call for block in kept if block.call is not None]
            is_alone = (is_alone and last == said.role) or any(map(form.is_of_program, calls))
        if kept:
            last = last if said.role == "system" else said.role
            _say(_with_blocks(said, kept, form), said.index, form, repairing)
        if said.role == "assistant" and ends[said.group] is said:
            waiting = due.get(said.group, waiting)
            if waiting and said.group + 1 not in ends:
                content = [result.value for result in waiting]
                repairing.items.append({"role": "user", "content": content})
                waiting = []


def _note_beside(rest: list[Block], repairing: Repairing) -> None:
    """Note what is beside results that are to stand alone."""
    for block in rest:
        repairing.note(
            block.position,
            "result_not_alone",
            "it is beside results for a program that the provider runs",
            "Send these results alone, and say the rest after the next turn",
            "put it after the next turn, or left it out if there is none",
        )


def _say(message: JsonObject, index: int, form: BlockForm, repairing: Repairing) -> None:
    last: JsonObject = repairing.items[-1] if repairing.items else {}
    if not form.takes_turns or last.get("role") != message["role"]:
        repairing.items.append(message)
        return
    repairing.note(
        f"messages[{index}]",
        "role_again",
        f"the {message['role']} speaks twice in a row",
        "Send what one side says in one message",
        "joined it to the message before it",
    )
    last["content"] += message["content"]


def _with_blocks(said: Spoken[Block], blocks: list[Block], form: BlockForm) -> JsonObject:
    """Return a message with these blocks; as it was where they are its own."""
    message: JsonObject = copy_json(said.message)
    is_text = form.takes_text and isinstance(message.get("content"), str)
    # Text stays text where nothing changed: as a list of one block it would be another beginning
    # for a cache, though it says the same.
    if blocks != said.pieces or not is_text:
        message["content"] = [block.value for block in blocks]
    else:
        message["content"] = form.text_in(blocks[0].value)
    return message


def _begin(form: BlockForm, repairing: Repairing) -> None:
    first = next((item for item in repairing.items if item["role"] != "system"), None)
    if first is not None and first["role"] == "assistant":
        repairing.note(
            "messages[0]",
            "first_role",
            "the first message is the assistant's",
            "Begin with a message of the user",
            "put a message of the user before it that says that the beginning is missing",
        )
        repairing.items.insert(repairing.items.index(first), form.message(NOT_SHOWN))


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
