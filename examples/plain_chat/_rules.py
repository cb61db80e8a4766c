"""What the provider refuses, and how it is repaired."""

from __future__ import annotations

from typing import Any

from lutum_py.dialects.authoring import (
    OUTCOME_UNKNOWN,
    Form,
    Pairing,
    Piece,
    Repairing,
    copy_json,
    is_mapping,
    is_sequence,
    note_places,
    text_of,
)

from ._facts import FACTS

ROLES = ("system", "developer", "user", "assistant", "tool")
REMEDY = "Send one result for each call, right after its turn, in the order of the calls"


class Part(Piece):
    """A call or a result, with its place."""

    said_at = "messages[%d]"


def _fix(messages: list[Any], repairing: Repairing) -> None:
    read = [read_message(index, message, repairing) for index, message in enumerate(messages)]
    kept = [(index, message) for index, message in enumerate(read) if message is not None]
    calls: list[Part] = []
    results: list[Part] = []
    turn = 0
    for index, message in kept:
        if message["role"] == "tool":
            part = Part(index, None, index, message)
            # What stands behind turn 4 is turn 5, and belongs there if its call is in turn 4.
            part.result, part.group, part.is_behind = message, turn + 1, False
            results.append(part)
            continue
        turn = 2 * index
        for call in message.get("calls", ()):
            part = Part(index, None, index, call)
            part.call, part.group = call, turn
            calls.append(part)
    pairing = Pairing[Part]()
    pairing.pair(calls, results, lambda part: part.value["id"])
    answers = pairing.answers(calls, REMEDY, _unanswered, repairing)
    for group, answered in answers.items():
        note_places(group, answered, repairing)
    for index, message in kept:
        if message["role"] != "tool":
            repairing.items += [message, *(part.value for _, part in answers.get(2 * index, ()))]


def _unanswered(repairing: Repairing, call: Part) -> Part:
    repairing.unanswered(call.position, call.value["id"], REMEDY)
    made = {"role": "tool", "id": call.value["id"], "content": OUTCOME_UNKNOWN}
    return call.beside(made, made)


def read_message(index: int, message: Any, repairing: Repairing) -> dict[str, Any] | None:
    """Copy a message and repair it; None where it is not a message."""
    position = f"messages[{index}]"
    if not is_mapping(message) or message.get("role") not in ROLES:
        remedy = f"Give it one of {', '.join(ROLES)}"
        repairing.note(position, "unknown_role", "it has no known role", remedy, "removed it")
        return None
    copied: dict[str, Any] = copy_json(message)
    _as_text(copied, "content", position, repairing)
    if copied["role"] == "tool":
        _as_text(copied, "id", position, repairing)
    if copied["role"] == "assistant" and "calls" in copied:
        copied["calls"] = _calls(copied["calls"], f"{position}.calls", repairing)
    return copied


def _calls(listed: Any, position: str, repairing: Repairing) -> list[Any]:
    calls: list[Any] = [call for call in listed if is_mapping(call)] if is_sequence(listed) else []
    if calls != listed:
        problem = "it is no list of calls"
        repairing.note(position, "invalid_calls", problem, "Send a list", "kept what is a call")
    for number, call in enumerate(calls):
        where = f"{position}[{number}]"
        _as_text(call, "id", where, repairing)
        repairing.repair_call(call, "arguments", where)
    return calls


def _as_text(holder: dict[str, Any], key: str, position: str, repairing: Repairing) -> None:
    if not isinstance(holder.get(key), str):
        where, remedy = f"{position}.{key}", 'Send text; `""` if there is nothing to say'
        repairing.note(where, "not_text", "it is no text", remedy, "made text of it")
        holder[key] = text_of(holder.get(key))


FORM = Form(facts=FACTS, said=lambda text: {"role": "user", "content": text}, fix=_fix)
