"""A saved plan without its tools: what the text says of each call, for somebody who looks at it.

Without the tools no schema can be compared, no input read and nothing masked: what is shown is what
the text holds, and it is for whoever may read the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._call.line import Step, end_of
from .._call.outcomes import SOURCES, IssueReason
from .._text.entries import Entry, Part
from .._text.json import compact_json, indented_json
from .._transcript.assistant import AssistantTurn, load_turn
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .._transcript.saved import Saved
from .display import pending_state, rejected_state, result_state, steps_in_words, ticket_parts
from .plan_json import as_latest, check_words, load_line
from .seal import check_seal, kind_of
from .sorted_calls import list_in, result_in


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
    saved = as_latest(saved)
    check_words(saved)
    turn = load_turn(saved.inner("turn"))
    asked = {call.id: call for call in turn.tool_calls}
    entries: dict[str, Entry] = {}
    for entry in saved.each("calls"):
        id = entry.get("id", str)
        if id not in asked or id in entries:
            raise entry.wrong("id", f"{id!r} is no call of the turn, or is there twice")
        entries[id] = _entry(asked[id], entry)
    if len(entries) != len(turn.tool_calls):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    return PlanText(turn, tuple(entries[call.id] for call in turn.tool_calls))


def _entry(call: ToolMetadata, saved: Saved) -> Entry:
    """Say how one call stands, and a line for each step that brought it there."""
    check_words(saved)
    entries = list(saved.each("steps"))
    line = load_line(entries, call)
    shown, kind = _state(line, entries)
    parts = [Part("", indented_json(call.arguments), "code"), *_final(call, entries)]
    for step in line:
        if step.kind == "suspended" and step.detail is not None:
            parts += ticket_parts(step.detail)
    parts += steps_in_words(line)
    result = result_in(line) or _answer_in(line)
    if line[1:] and line[1].phase == "reading":
        parts.append(Part("the model is told", entries[1].inner("issue").get("text", str)))
    if result is not None:
        parts.append(Part("result", indented_json(result.model_text), "code"))
    return Entry(call.id, call.name, shown, kind, (), tuple(parts))


def _state(line: tuple[Step, ...], entries: list[Saved]) -> tuple[str, str]:
    """Name the state of a call, and the kind of its mark."""
    result = result_in(line)
    end, stage = end_of(line), line[-1].stage
    if end is not None and end.phase == "reading" and result is None:
        issue = entries[1].inner("issue")
        return issue.member("reason", IssueReason).replace("_", " "), "bad"
    if end is not None and end.phase == "answer" and result is not None:
        return result_state(result, "answer")
    where = list_in(line)
    if where == "finished" and result is not None:
        return result_state(result, "finished")
    if where == "handled":
        answer = _answer_in(line)
        assert answer is not None
        return result_state(answer, "handled")
    if where == "rejected" and end is not None:
        return rejected_state(SOURCES[end.phase]), "bad"
    if where == "suspended":
        return "suspended", "waiting"
    return ("in doubt", "waiting") if where == "in_doubt" else pending_state(stage.status)


def _answer_in(line: tuple[Step, ...]) -> ToolResult | None:
    """Give the result of a call that a hook or a person answered."""
    end = end_of(line)
    if end is None or end.phase is None or end.said != "success" or end.phase == "answer":
        return None
    answer: ToolResult = result_in(line) or end.detail[1]
    return answer


def _final(call: ToolMetadata, entries: list[Saved]) -> Iterator[Part]:
    """Give the arguments that the tool would get, where they are not what the model wrote."""
    known = [each.any("arguments") for each in entries if "arguments" in each.data]
    if not known:
        return
    final: Any = known[-1]
    try:
        is_other = json.loads(call.arguments) != final
    except (ValueError, RecursionError):
        is_other = True
    if is_other:
        yield Part("final arguments", indented_json(compact_json(final)), "code")
