"""Plans and rounds in notebooks and on rich's terminal: each call, its state, and why.

All of it is made of rows. A saved plan is shown without its tools, so that no schema can be
compared, no input read and nothing masked: what is shown is what the text holds, and it is for
whoever may read the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .._call.base_call import CallRecord
from .._call.call_state import DecodedCall
from .._call.decisions import changed_names
from .._call.history import Step, end_of, wait_of
from .._call.outcomes import SOURCES, issue_in
from .._context.suspension import SuspendTicket
from .._schema.arguments import InputText
from .._text.escaping import LINES, escape_unprintable
from .._text.html import Entry, Part, as_styles, brief_table, cut_text, figure, note
from .._text.json import compact_json, indented_json, is_object
from .._transcript.assistant import AssistantTurn, callers_of
from .._transcript.saved import Saved
from .events import CallRow, row_of, rows_of
from .plan_json import histories_in
from .sorted_calls import RoundState

_MOST = 100
_LIMIT = 300
_LINE = 120


def shown_html(calls: RoundState, what: str) -> str:
    """Show the calls of a `Plan` or `Round` as a table, in the order of the turn."""
    rows, closed = _entries(calls, what), calls.closed_by
    title = f"{what} of {calls.toolset.__qualname__}"
    said = f"; {closed}" if closed and what == "Plan" else ""
    head = ("call", "tool and state", "arguments and why")
    content = [brief_table(head, rows[:_MOST], _LIMIT, _LIMIT)] * bool(rows)
    if len(rows) > _MOST:
        content.append(note(f"{len(rows) - _MOST} more calls are not shown."))
    return as_styles(figure(title, _counts(rows) + said, *content))


def shown_rich(calls: RoundState, what: str) -> Iterator[tuple[str, object]]:
    """Yield the calls of a `Plan` or `Round` by their state."""
    rows = _entries(calls, what)
    yield "toolset", escape_unprintable(calls.toolset.__qualname__)
    by_state: dict[str, list[str]] = {}
    for row in rows[:_MOST]:
        arguments, *told = (part.text for part in row.parts)
        said = "".join(f" - {text}" for text in told[:1])
        line = f"{cut_text(row.who, 40)} {cut_text(row.place, 40)} {cut_text(arguments, _LINE)}"
        shown = escape_unprintable(line + cut_text(said, _LINE), LINES)
        by_state.setdefault(row.state.replace(" ", "_").replace(",", ""), []).append(shown)
    yield from by_state.items()
    if len(rows) > _MOST:
        yield "not_shown", len(rows) - _MOST


def _counts(rows: Iterable[Entry]) -> str:
    counted = Counter(row.state for row in rows)
    return ", ".join(f"{count} {state}" for state, count in counted.items()) or "no calls"


def _entries(calls: RoundState, what: str) -> list[Entry]:
    """Say for each call how it stands, what its arguments are, why, and what happened to it."""
    made: list[Entry] = []
    for row in rows_of(calls):
        assert row._history is not None
        call, history = row._history.call, row._history.steps
        state, kind = _state_in_words(row, history)
        if what == "Round" and row.state == "pending":
            state = "undecided"
        # What the tool would get, which a hook may have changed.
        arguments = row.proposed
        if isinstance(call, DecodedCall):
            arguments = call.spec.shown_json(call.described)
        said = _steps_in_words(history, _first_text(call))
        parts = (Part("", arguments, "code"), *_why(row, history), *said)
        about = _within(f"{each.id} {each.tool}" for each in row.ancestors)
        made.append(Entry(row.id, row.tool, state, kind, about, parts))
    return made


def _within(outer: Iterable[str]) -> tuple[str, ...]:
    """Name the ancestors of a call, the outermost first."""
    named = ", ".join(outer)
    return (f"within {named}",) if named else ()


def _state_in_words(row: CallRow, history: tuple[Step, ...]) -> tuple[str, str]:
    """Name the state of a call, and the kind of its mark."""
    result = row.result
    end, status = end_of(history), history[-1].stage.status
    if row.state == "unusable" and result is not None:
        return str(result.code).replace("_", " "), "bad"
    if row.state == "rejected" and end is not None:
        # A gate that blocks has the run end; any other rejection is for the model to read.
        source = SOURCES[end.phase]
        return "blocked by gate" if source == "gate" else f"rejected by {source}", "bad"
    if result is not None:
        state = "answer" if end is not None and end.phase == "reply" else row.state
        return (state, "good") if result.is_success else (f"{state}, {result.status}", "bad")
    if row.state != "pending":
        return row.state.replace("_", " "), "waiting"
    return ("pending", "plain") if status == "new" else (f"pending, {status}", "waiting")


def _why(row: CallRow, history: tuple[Step, ...]) -> Iterator[Part]:
    """Say what is asked of a person, or the outcome of the call."""
    wait = wait_of(history)
    if wait is not None and row.state == "suspended":
        yield from _ticket_parts(wait.detail)
    elif row.state == "rejected":
        yield Part("reason", row.reason or "")
    elif row.state == "unusable":
        yield Part("the model is told", row.reason or "")
    elif row.result is not None:
        yield Part("result", row.result.model_text)


def _ticket_parts(ticket: SuspendTicket) -> Iterator[Part]:
    yield Part("ticket", f"{ticket.action} ({ticket.id})")
    if ticket.message is not None:
        yield Part("message", ticket.message)


_WORDS: Final = {
    "suspended": "waits",
    "started": "started",
    "abandoned": "abandoned while it ran",
    "retried": "another try",
}


# `started (+0.002 s)`, `ended (+1.3 s)`: each step has the time since the one before, so the
# duration of a run is at its `ended`, and that of a wait at its decision.
def _steps_in_words(history: tuple[Step, ...], text: InputText | None) -> Iterator[Part]:
    """Say what happened to a call, a part a step, with the time since the last.

    Args:
        history: The steps.
        text: The arguments that were proposed, if these can be told.
    """
    last = history[0].at
    for step in history[1:]:
        said = _in_words(step, text)
        text = step.detail if step.kind == "changed" else text
        if said is None:
            continue
        yield Part(said.label, f"{said.text} (+{step.at - last:.3g} s)", said.kind)
        last = step.at


def _first_text(call: CallRecord) -> InputText | None:
    """Return the arguments that were proposed, defaults included, if others came after them."""
    if not isinstance(call, DecodedCall) or not call.is_rewritten:
        return None
    return call.text_of(call.history[0].detail)


def _in_words(step: Step, before: InputText | None) -> Part | None:
    """Say what one step means to whoever reads it; None if another line says it.

    Args:
        step: The step.
        before: The arguments before it.
    """
    by = f" by {step.by}" if step.by else ""
    detail = step.detail
    if step.kind == "reviewed":
        if step.by is None:
            return Part(step.phase or "", "nobody had to review it")
        because = f": {step.reason}" if step.reason else ""
        said = step.verdict or "let it pass"
        return Part(
            step.phase or "", f"{step.by} {'decided ' if step.verdict else ''}{said}{because}"
        )
    if step.kind == "changed":
        label = "edit" if step.phase == "decision" else "changed"
        return Part(label, f"{_changed(before, step.detail)} changed{by}")
    if step.kind == "decided":
        because = f": {detail.reason}" if detail.reason else ""
        edit = " with arguments edited" if step.verdict == "edit" else ""
        return Part("decision", f"{detail.action}{edit}{by}{because}")
    if step.kind == "ended" and step.phase is None:
        return Part("ended", step.verdict or "")
    if step.kind == "requested":
        return Part("requested", f"for {', '.join(step.detail.ids)}")
    if step.kind in _WORDS:
        return Part(step.kind, f"{_WORDS[step.kind]}{by}")
    return None


def _changed(before: InputText | None, after: InputText | None) -> str:
    """Name the arguments that were changed."""
    old, new = (None if text is None else text.data for text in (before, after))
    names = changed_names(old, new) if is_object(old) and is_object(new) else ()
    return ", ".join(names) or "the arguments"


# A saved plan without its tools.


class PlanText(NamedTuple):
    """What a saved plan says.

    Attributes:
        turn: What the model said.
        calls: An entry for each call, in the order of the turn, and after those of the turn for
            each that calls requested.
    """

    turn: AssistantTurn
    calls: tuple[Entry, ...]


def read_plan(saved: Saved) -> PlanText:
    """Read what a saved plan says about its calls.

    Raises:
        PlanError: Something in it is damaged.
    """
    return plan_text(*histories_in(saved))


def plan_text(
    turn: AssistantTurn, calls: Iterable[CallRecord], waits: Mapping[str, Iterable[str]]
) -> PlanText:
    """Say how calls stand, without their tools.

    Args:
        turn: The turn.
        calls: The calls, each before those that it requested.
        waits: By the id of a call those that come before it in the order of the round.
    """
    outer: dict[str, tuple[str, ...]]
    outer = {id: (f"{caller} program",) for id, caller in callers_of(turn).items()}
    named: dict[str, str] = {}
    entries: list[Entry] = []
    for call in calls:
        id, by = call.id, call.requested_by
        named[id] = f"{id} {call.name}"
        if by is not None:
            outer[id] = (*outer.get(by, ()), named[by])
        entries.append(_saved_entry(call, outer.get(id, ()), waits.get(id, ())))
    return PlanText(turn, tuple(entries))


def _saved_entry(call: CallRecord, outer: Iterable[str], waits: Iterable[str]) -> Entry:
    """Say how one call stands, and a line for each step that brought it there."""
    row, history = row_of(call), call.history
    issue, text = issue_in(history), call.metadata.arguments
    parts = [Part("", indented_json(text), "code"), *_final_arguments(text, history)]
    for step in history:
        if step.kind == "suspended":
            parts += _ticket_parts(step.detail)
    parts += _steps_in_words(history, history[0].detail)
    if waits:
        parts.append(Part("in order", f"waits for {', '.join(waits)}"))
    if issue is not None:
        parts.append(Part("the model is told", issue.text))
    if row.state in ("finished", "handled") and row.result is not None:
        parts.append(Part("result", indented_json(row.result.model_text), "code"))
    return Entry(call.id, call.name, *_state_in_words(row, history), _within(outer), tuple(parts))


def _final_arguments(text: str, history: tuple[Step, ...]) -> Iterator[Part]:
    """Yield what the tool would get, if it is not what the model wrote; and texts as lines."""
    known = [
        step.detail for step in history if step.kind in ("proposed", "changed") and step.detail
    ]
    try:
        proposed = json.loads(text)
    except (ValueError, RecursionError):
        proposed = None
    final: Any = known[-1].data if known else proposed
    if final != proposed:
        yield Part("final arguments", indented_json(compact_json(final)), "code")
    for name, text in texts_of_lines(final).items():
        yield Part(name, text, "code")


def texts_of_lines(arguments: Any) -> dict[str, str]:
    """Find the arguments that are read as lines, such as a program: each by its name."""
    named = arguments.items() if is_object(arguments) else ()
    return {name: each for name, each in named if isinstance(each, str) and "\n" in each}
