"""A saved plan without its tools: what the text says of each call, for somebody who looks at it.

Without the tools no schema can be compared, no input read and nothing masked: what is shown is what
the text holds, and it is for whoever may read the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._call.decision_log import DecisionRecord
from .._call.lifecycle import CallStatus
from .._call.outcomes import IssueReason, RejectionSource
from .._text.entries import Entry, Part
from .._text.json import compact_json, indented_json
from .._transcript.assistant import AssistantTurn, load_turn
from .._transcript.metadata import ToolMetadata
from .._transcript.result import load_result
from .._transcript.saved import Saved
from .decision_json import load_approvals, load_decision, load_edit, load_record, load_ticket
from .display import (
    decided_parts,
    decision_part,
    edit_in_words,
    pending_state,
    rejected_state,
    result_state,
    ticket_parts,
)
from .plan_json import open_plan
from .seal import check_seal, kind_of

__all__ = ["PlanText", "open_plan", "read_plan", "seal_in_words"]


class PlanText(NamedTuple):
    """What a saved plan says.

    Attributes:
        turn: What the model said.
        calls: An entry for each call, in the order of the turn.
    """

    turn: AssistantTurn
    calls: tuple[Entry, ...]


def seal_in_words(saved: Saved, what: str) -> str:
    """Say what the seal is worth without a key.

    Raises:
        PlanError: The text was edited after it was saved, or has no seal.
    """
    kind = saved.inner("seal").get("kind", str)
    if kind == kind_of(b""):
        return (
            f"This {what} is sealed with a key, which is not here: nothing says that the text was "
            "not edited."
        )
    check_seal(saved, None, what)
    return (
        f"The text fits the digest that this {what} was saved with. Anybody who edits it can make "
        "a new one; only a key protects it."
    )


def read_plan(saved: Saved) -> PlanText:
    """Read what a saved plan says of its calls.

    Raises:
        PlanError: Something in it is damaged.
    """
    turn = load_turn(saved.inner("turn"))
    asked = {call.id: call for call in turn.tool_calls}
    started = saved.texts("started")
    entries: dict[str, Entry] = {}
    for entry in saved.each("calls"):
        id = entry.get("id", str)
        if id not in asked or id in entries:
            raise entry.wrong("id", f"{id!r} is no call of the turn, or is there twice")
        entries[id] = _entry(asked[id], entry, id in started)
    if len(entries) != len(turn.tool_calls):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    edits = [load_edit(each, asked) for each in saved.each("edits", optional=True)]
    changed = {edit.call_id: Part("edit", f"{edit_in_words(edit)} at {edit.at}") for edit in edits}
    answers = {each.get("call_id", str): load_decision(each) for each in saved.each("resumed")}
    decided: dict[str, list[DecisionRecord]] = {}
    for each in saved.each("decisions"):
        record = load_record(each)
        decided.setdefault(record.call_id, []).append(record)
    for id, row in entries.items():
        more = [changed[id]] if id in changed else []
        if id in answers:
            answer = answers[id]
            said = decision_part(answer)
            at = f" at {answer.at}" if answer.at else ""
            more.append(said._replace(text=f"{said.text}{at}"))
        told = (*row.parts, *more)
        entries[id] = row._replace(parts=(*told, *decided_parts(told, decided.get(id, ()))))
    return PlanText(turn, tuple(entries[call.id] for call in turn.tool_calls))


def _entry(call: ToolMetadata, saved: Saved, was_started: bool) -> Entry:
    state = saved.get("state", str)
    result = None
    if state in ("finished", "handled", "answer"):
        result = load_result(saved.inner("result"))
        shown, kind = result_state(result, state)
    elif state == "rejected":
        shown, kind = rejected_state(saved.member("source", RejectionSource)), "bad"
    elif state == "issue":
        shown, kind = saved.member("reason", IssueReason).replace("_", " "), "bad"
    elif state == "suspended":
        shown, kind = "suspended", "waiting"
    elif state == "in_doubt":
        shown, kind = "in doubt", "waiting"
    elif state == "pending":
        shown, kind = pending_state(CallStatus(saved.one_of("status", CallStatus)))
    else:
        raise saved.wrong("state", f"{state!r} is none that this release knows")
    parts = [Part("", indented_json(call.arguments), "code"), *_final(call, saved)]
    if state == "suspended":
        parts += ticket_parts(load_ticket(saved.inner("ticket")))
    if state == "rejected":
        parts.append(Part("reason", saved.get("reason", str)))
    if state == "issue":
        parts.append(Part("the model is told", saved.get("text", str)))
    for approval in load_approvals(saved, was_started):
        parts += ticket_parts(approval.ticket)
    if result is not None:
        parts.append(Part("result", indented_json(result.model_text), "code"))
    return Entry(call.id, call.name, shown, kind, (), tuple(parts))


def _final(call: ToolMetadata, saved: Saved) -> Iterator[Part]:
    """Give the arguments that the tool would get, where they are not what the model wrote."""
    if "input" not in saved.data:
        return
    final: Any = saved.any("input")
    try:
        is_other = json.loads(call.arguments) != final
    except (ValueError, RecursionError):
        is_other = True
    if is_other:
        yield Part("final arguments", indented_json(compact_json(final)), "code")
