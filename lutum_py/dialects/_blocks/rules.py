"""The rules of such a wire for a conversation: finding breaches, and repairing them.

Messages of one role that follow each other count as one turn. A turn with calls is followed at once
by a turn of the user that begins with one result for each call. The APIs take the results of one
turn in any order; ours is the order of the calls, as everywhere in this library. A conversation is
repaired in one pass, which notes each breach as it meets it; `check` reports the notes, `repair`
keeps the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ..._text.json import JsonObject, copy_json, is_mapping, is_sequence, shorten
from .._findings import NOT_SHOWN, OUTCOME_UNKNOWN
from .._repair import (
    Form,
    Pairing,
    Piece,
    Repairing,
    Spoken,
    distinct_ids,
    note_places,
    number_turns,
    read_spoken,
)
from .rendering import NOTHING, BlockForm, Read

_ROLES: Final[Mapping[str | None, str]] = {role: role for role in ("user", "assistant", "system")}


class Block(Piece):
    """One content block."""

    __slots__ = ()

    said_at = "messages[%d].content"


def read_messages(
    messages: list[Any], form: BlockForm, repairing: Repairing
) -> list[Spoken[Block]]:
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
    spoken = read_messages(messages, form, repairing)
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
    spoken = read_messages(messages, form, repairing)
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
        keys, fit = (form.call_id, form.answers), form.facts.fitting_id
        distinct_ids(answered, keys, fit, repairing, is_needed=form.needs_ids)
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
    _write(spoken, answers, touched, set(pairing.dropped), form, repairing)
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
    answers: dict[int, list[tuple[Block, Block]]],
    touched: set[int],
    dropped: set[Block],
    form: BlockForm,
    repairing: Repairing,
) -> None:
    """Write the messages; results of a turn with a breach go to the head of the turn after it."""
    # `touched` is {1} where the answers of turn 1 are to be written again; `moved` has them
    # wherever they stand, so that going through the messages drops each at its old place, and
    # `waiting` puts it at the new one.
    moved = {result for group in touched for _, result in answers.get(group, ())} | dropped
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
            if said.group in touched:
                waiting = [result for _, result in answers.get(said.group, ())]
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
