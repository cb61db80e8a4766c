"""The rules that the Messages API sets for a conversation: finding breaches, and mending them.

Messages of one role that follow each other count as one turn. A turn with calls is followed at once
by a turn of the user that begins with one result for each call. The API takes the results of one
turn in any order; ours is the order of the calls, as everywhere in this library. A conversation is
mended in one pass, which notes each breach as it meets it; `check` reports the notes, `repair`
keeps the outcome. (Anthropic guide to tool use: "Handle tool calls", "Parallel tool use".)
"""

from __future__ import annotations

from typing import Any, Final

from ..._text.json import copy_json, shorten
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pairing import FreshIds, Pairing, Standing, pair
from .._repair.pieces import Spoken, note_places
from .._repair.violations import NOT_SHOWN, OUTCOME_UNKNOWN
from .._wire.call_ids import made_id, takes_id
from ._facts import FACTS
from ._spoken import Block, read_messages


def _is_in_order(messages: list[Any], mending: Mending) -> bool:
    """Tell whether the results of each turn stand at the head of the next, and no others."""
    due: list[str | None] = []
    turn = -1
    answered = 0
    turn_of: dict[str, int] = {}
    spoken = read_messages(messages, mending)
    for said in spoken:
        for block in said.pieces:
            kind = block.kind
            if kind == "tool_result":
                if answered == len(due) or said.group != turn + 1 or block.is_behind:
                    return False
                if _key(block.value.get("tool_use_id")) != due[answered]:
                    return False
                answered += 1
            elif kind == "tool_use":
                if said.group != turn:
                    if answered < len(due):
                        return False
                    due, answered, turn = [], 0, said.group
                call_id = block.value.get("id") or None
                due.append(call_id)
                if call_id is not None:
                    if call_id.__class__ is not str or turn_of.get(call_id) == turn:
                        return False
                    turn_of[call_id] = turn
    ids = "".join(turn_of)
    first = next((said.role for said in spoken if said.role != "system"), "")
    is_odd = ids and not takes_id(FACTS, ids)
    return answered == len(due) and first != "assistant" and not is_odd


def _mend(messages: list[Any], mending: Mending) -> None:
    spoken = read_messages(messages, mending)
    calls = [block for said in spoken for block in said.pieces if block.kind == "tool_use"]
    results = [block for said in spoken for block in said.pieces if block.is_result]
    pairing = pair(
        (Standing(call.number, _key(call.value.get("id")), call.group) for call in calls),
        (Standing(result.number, _key(result.value.get("tool_use_id"))) for result in results),
    )
    dropped = _drop(pairing, results, mending)
    touched: set[int] = set()
    answers = _answers(pairing, calls, results, mending, touched)
    _distinct_ids(answers, mending)
    _write(spoken, answers, touched, dropped, mending)
    _begin(mending)


def _key(value: Any) -> str | None:
    # A host that sends no id gets none back: such calls and results meet by their order.
    return str(value) if value else None


def _drop(pairing: Pairing, results: list[Block], mending: Mending) -> set[Block]:
    remedy = "Send exactly one result for each call, with the call's id"
    for number in pairing.orphans:
        mending.drop(results[number].position, "orphan_result", remedy)
    for number in pairing.duplicates:
        mending.drop(results[number].position, "duplicate_result", remedy)
    return {results[number] for number in (*pairing.orphans, *pairing.duplicates)}


def _answers(
    pairing: Pairing,
    calls: list[Block],
    results: list[Block],
    mending: Mending,
    touched: set[int],
) -> dict[int, list[tuple[Block, Block]]]:
    """Give the call and result pairs of each turn, in the order of its calls, and note breaches."""
    answers: dict[int, list[tuple[Block, Block]]] = {}
    for number, call in enumerate(calls):
        found = pairing.result_of.get(number)
        if found is None:
            mending.note(
                call.position,
                "call_without_result",
                f"the call {shorten(call.value.get('id', call.value.get('name')))} has no result",
                "Send one result for each call at the head of the next user message",
                "added a result that says that its outcome is unknown",
            )
            touched.add(call.group)
            same = {"tool_use_id": call.value["id"]} if call.value.get("id") else {}
            content = {"content": OUTCOME_UNKNOWN, "is_error": True}
            result = call.beside({"type": "tool_result", **same, **content})
        else:
            result = results[found]
        answers.setdefault(call.group, []).append((call, result))
    for group, answered in answers.items():
        if note_places(group, answered, "result", mending):
            touched.add(group)
    return answers


def _distinct_ids(answers: dict[int, list[tuple[Block, Block]]], mending: Mending) -> None:
    """Give calls whose id is taken or has odd characters another one, and their results with it."""
    for answered in answers.values():
        seen: set[str] = set()
        taken = FreshIds(_key(call.value.get("id")) for call, _ in answered)
        for call, result in answered:
            call_id = call.value.get("id")
            if not call_id:
                continue
            fresh = str(call_id)
            if not takes_id(FACTS, fresh):
                fresh = made_id(FACTS, fresh)
            rule = "invalid_call_id" if fresh != call_id else "duplicate_call_id"
            if fresh in seen:
                fresh = taken.of(fresh)
            seen.add(fresh)
            if fresh != call_id:
                mending.note(
                    call.position,
                    rule,
                    f"the id {shorten(call_id)} is taken in this turn, or has odd characters",
                    "Give each call of a turn an id of its own, of letters, digits, `_` and `-`",
                    f"gave the call and its result the id {fresh!r}",
                )
                call.value["id"] = result.value["tool_use_id"] = fresh


def _write(
    spoken: list[Spoken[Block]],
    answers: dict[int, list[tuple[Block, Block]]],
    touched: set[int],
    dropped: set[Block],
    mending: Mending,
) -> None:
    """Write the messages; results of a turn with a breach go to the head of the turn after it."""
    moved = {result for group in touched for _, result in answers.get(group, ())} | dropped
    waiting: list[Block] = []
    for said, following in zip(spoken, _following(spoken), strict=True):
        kept = [block for block in said.pieces if block not in moved]
        if said.role == "user":
            kept = waiting + kept
            waiting = []
        if kept:
            mending.items.append(_with_blocks(said, kept))
        if said.role == "assistant" and (following is None or following.group != said.group):
            if said.group in touched:
                waiting = [result for _, result in answers.get(said.group, ())]
            if waiting and (following is None or following.role != "user"):
                content = [result.value for result in waiting]
                mending.items.append({"role": "user", "content": content})
                waiting = []


def _with_blocks(said: Spoken[Block], blocks: list[Block]) -> dict[str, Any]:
    """Give a message with these blocks; as it was where they are its own."""
    message: dict[str, Any] = copy_json(said.message)
    if blocks != said.pieces or not isinstance(message.get("content"), str):
        message["content"] = [block.value for block in blocks]
    return message


def _following(spoken: list[Spoken[Block]]) -> list[Spoken[Block] | None]:
    """Give what follows each message, instructions aside."""
    following: list[Spoken[Block] | None] = []
    after: Spoken[Block] | None = None
    for said in reversed(spoken):
        following.append(after)
        if said.role != "system":
            after = said
    return following[::-1]


def _begin(mending: Mending) -> None:
    first = next((item for item in mending.items if item["role"] != "system"), None)
    if first is not None and first["role"] == "assistant":
        mending.note(
            "messages[0]",
            "first_role",
            "the first message is the assistant's",
            "Begin with a message of the user",
            "put a message of the user before it that says that the beginning is missing",
        )
        mending.items.insert(mending.items.index(first), {"role": "user", "content": NOT_SHOWN})


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "content": text},
    mend=_mend,
    is_in_order=_is_in_order,
)
