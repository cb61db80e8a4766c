"""The rules of such a wire for a conversation: finding breaches, and mending them.

Messages of one role that follow each other count as one turn. A turn with calls is followed at once
by a turn of the user that begins with one result for each call. The APIs take the results of one
turn in any order; ours is the order of the calls, as everywhere in this library. A conversation is
mended in one pass, which notes each breach as it meets it; `check` reports the notes, `repair`
keeps the outcome.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..._text.json import copy_json, shorten
from .._findings import NOT_SHOWN, OUTCOME_UNKNOWN
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pairing import Standing, distinct_ids, pair
from .._repair.pieces import Spoken, note_places
from .form import BlockForm
from .spoken import Block, read_messages


def rules_of(form: BlockForm) -> Form:
    """Make what checks and repairs the requests of a wire."""
    return Form(
        facts=form.facts,
        said=form.message,
        mend=partial(_mend, form),
        is_in_order=partial(_is_in_order, form),
    )


def _is_in_order(form: BlockForm, messages: list[Any], mending: Mending) -> bool:
    """Tell whether the results of each turn stand at the head of the next, and no others."""
    # The quick way, for the conversations that are in order, which are nearly all: one pass that
    # moves nothing. `due` has the ids of the turn that is read, as ["c1", "c2"], and `answered`
    # says how many of them have their result. At the first doubt it says no, and `_mend` looks
    # closely.
    due: list[str | None] = []
    turn = alone = -1
    caller = form.caller
    answered = 0
    turn_of: dict[str, int] = {}
    spoken = read_messages(messages, form, mending)
    for said in spoken:
        for block in said.pieces:
            _, call, result = block.read
            if result is not None:
                # A result too many, or not in the next turn, or behind something that the user
                # says.
                if answered == len(due) or block.group != turn + 1 or block.is_behind:
                    return False
                if _key(result.get(form.answers)) != due[answered]:
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
    if not all(map(takes, turn_of)) or answered < len(due):
        return False
    if form.takes_turns:
        roles = [said.role for said in spoken]
        # Compares each role with its neighbour; `roles[1:]` is one shorter, where `map` ends.
        if any(map(str.__eq__, roles, roles[1:])):
            return False
    return next((said.role for said in spoken if said.role != "system"), "") != "assistant"


def _mend(form: BlockForm, messages: list[Any], mending: Mending) -> None:
    # Read, pair, then write: a result may stand anywhere, also before its call, so nothing can be
    # written before all is read. Only turns that are `touched` are put in a new order; the rest
    # goes out block for block as it came, or a provider's cache would be lost.
    spoken = read_messages(messages, form, mending)
    pieces = [block for said in spoken for block in said.pieces]
    calls = [(block, block.call) for block in pieces if block.call is not None]
    results = [(block, block.result) for block in pieces if block.result is not None]
    pairing = pair(
        (Standing(at.number, _key(call.get(form.call_id)), at.group) for at, call in calls),
        (Standing(at.number, _key(result.get(form.answers))) for at, result in results),
    )
    remedy = "Send exactly one result for each call, with the call's id"
    gone = mending.drop_unpaired(pairing, [block.position for block, _ in results], remedy)
    dropped = {results[number][0] for number in gone}
    touched: set[int] = set()
    answers: dict[int, list[tuple[Block, Block]]] = {}
    for number, (block, call) in enumerate(calls):
        found = pairing.result_of.get(number)
        if found is None:
            touched.add(block.group)
            result = _unanswered(block, call, form, mending)
        else:
            result = results[found][0]
        answers.setdefault(block.group, []).append((block, result))
    for group, answered in answers.items():
        if note_places(group, answered, "result", mending):
            touched.add(group)
        _distinct_ids(answered, form, mending)
    _write(spoken, answers, touched, dropped, form, mending)
    _begin(form, mending)


def _key(value: Any) -> str | None:
    # A host that sends no id gets none back: such calls and results meet by their order.
    return str(value) if value else None


def _unanswered(block: Block, call: dict[str, Any], form: BlockForm, mending: Mending) -> Block:
    mending.unanswered(
        block.position,
        call.get(form.call_id, call.get("name")),
        "Send one result for each call at the head of the next user message",
    )
    same = {form.answers: call[form.call_id]} if call.get(form.call_id) else {}
    made = block.beside(form.result(same, OUTCOME_UNKNOWN))
    made.read = (None, None, form.result_in(made.value))
    return made


def _distinct_ids(answered: list[tuple[Block, Block]], form: BlockForm, mending: Mending) -> None:
    """Give calls whose id is taken or odd or missing another one, and their results with it."""
    # Where an id has to be there, the position stands in for a missing one. It is no id that the
    # API takes, so `distinct_ids` replaces it like any other odd id.
    known = [_key((block.call or {}).get(form.call_id)) for block, _ in answered]
    ids = [
        block.position if given is None and form.needs_ids else given
        for given, (block, _) in zip(known, answered, strict=True)
    ]
    for number, made, is_odd in distinct_ids(ids, known, form.facts.fitting_id):
        _give_id(answered[number], made, is_odd, form, mending)
    for block, answer in answered:
        given = (block.call or {}).get(form.call_id)
        if given and given.__class__ is not str:
            _give_id((block, answer), str(given), True, form, mending)


def _give_id(
    answered: tuple[Block, Block], made: str, is_odd: bool, form: BlockForm, mending: Mending
) -> None:
    block, answer = answered
    call, result = block.call, answer.result
    assert call is not None
    assert result is not None
    mending.note(
        block.position,
        "invalid_call_id" if is_odd else "duplicate_call_id",
        f"the id {shorten(call.get(form.call_id))} is taken in this turn, or not one that the API "
        "takes",
        f"Give each call of a turn an id of its own, of {form.facts.call_ids_in_words}",
        f"gave the call and its result the id {made!r}",
    )
    call[form.call_id] = result[form.answers] = made


def _write(
    spoken: list[Spoken[Block]],
    answers: dict[int, list[tuple[Block, Block]]],
    touched: set[int],
    dropped: set[Block],
    form: BlockForm,
    mending: Mending,
) -> None:
    """Write the messages; results of a turn with a breach go to the head of the turn after it."""
    # `touched` is {1} where the answers of turn 1 are to be written anew; `moved` has them wherever
    # they stand, so that going through the messages drops each at its old place, and `waiting` puts
    # it at the new one.
    moved = {result for group in touched for _, result in answers.get(group, ())} | dropped
    # Results of a mended turn wait here until its last message is written. They then stand at the
    # head of the user's next message, or make one where the user says nothing.
    waiting: list[Block] = []
    # What stands beside results that go out alone waits here, until the user may say it.
    late: list[Block] = []
    is_alone, last = False, ""
    for said, following in zip(spoken, _following(spoken), strict=True):
        kept = [block for block in said.pieces if block not in moved]
        if said.role == "user":
            kept = waiting + kept
            waiting = []
            results = [block for block in kept if block.is_result]
            rest = kept[len(results) :]
            if is_alone:
                _note_beside(rest, mending)
                late, kept = late + rest, results
            elif late:
                late, kept = [], results + late + rest
        elif said.role == "assistant" and kept:
            calls = [block.call for block in kept if block.call is not None]
            is_alone = (is_alone and last == said.role) or any(map(form.is_of_program, calls))
        if kept:
            last = last if said.role == "system" else said.role
            _say(_with_blocks(said, kept, form), said.index, form, mending)
        if said.role == "assistant" and (following is None or following.group != said.group):
            if said.group in touched:
                waiting = [result for _, result in answers.get(said.group, ())]
            if waiting and (following is None or following.role != "user"):
                content = [result.value for result in waiting]
                mending.items.append({"role": "user", "content": content})
                waiting = []


def _note_beside(rest: list[Block], mending: Mending) -> None:
    """Note what stands beside results that are to stand alone."""
    for block in rest:
        mending.note(
            block.position,
            "result_not_alone",
            "it stands beside results for a program that the provider runs",
            "Send these results alone, and say the rest behind the next turn",
            "put it behind the next turn, or left it out where there is none",
        )


def _say(message: dict[str, Any], index: int, form: BlockForm, mending: Mending) -> None:
    last: dict[str, Any] = mending.items[-1] if mending.items else {}
    if not form.takes_turns or last.get("role") != message["role"]:
        mending.items.append(message)
        return
    mending.note(
        f"messages[{index}]",
        "role_again",
        f"the {message['role']} speaks twice in a row",
        "Send what one side says in one message",
        "joined it to the message before it",
    )
    last["content"] += message["content"]


def _with_blocks(said: Spoken[Block], blocks: list[Block], form: BlockForm) -> dict[str, Any]:
    """Give a message with these blocks; as it was where they are its own."""
    message: dict[str, Any] = copy_json(said.message)
    is_text = form.takes_text and isinstance(message.get("content"), str)
    # Text stays text where nothing changed: as a list of one block it would be another beginning
    # for a cache, though it says the same.
    if blocks != said.pieces or not is_text:
        message["content"] = [block.value for block in blocks]
    return message


def _following(spoken: list[Spoken[Block]]) -> list[Spoken[Block] | None]:
    """Give what follows each message, instructions aside."""
    following: list[Spoken[Block] | None] = []
    after: Spoken[Block] | None = None
    # From the end, so that one pass does: what follows a message is what was met last. Instructions
    # are passed over, for they stand in no turn.
    for said in reversed(spoken):
        following.append(after)
        if said.role != "system":
            after = said
    return following[::-1]


def _begin(form: BlockForm, mending: Mending) -> None:
    first = next((item for item in mending.items if item["role"] != "system"), None)
    if first is not None and first["role"] == "assistant":
        mending.note(
            "messages[0]",
            "first_role",
            "the first message is the assistant's",
            "Begin with a message of the user",
            "put a message of the user before it that says that the beginning is missing",
        )
        mending.items.insert(mending.items.index(first), form.message(NOT_SHOWN))
