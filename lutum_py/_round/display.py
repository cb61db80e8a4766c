"""What is shown of plans and rounds: each call, its state, and why.

All of it is made of rows. A saved plan is shown without its tools, so that no schema can be
compared, no input read and nothing masked: what is shown is what the text holds, and it is for
whoever may read the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .._call.base_call import CallRecord
from .._call.call_state import DecodedCall
from .._call.history import History, Step
from .._schema.arguments import InputText
from .._text.display import BAD, GOOD, WAITING, Entry, Listing, Part
from .._text.json import compact_json, indented_json, is_object, texts_of_lines
from .._transcript.assistant import AssistantTurn
from .._transcript.saved import Saved
from .decision_records import changed_names
from .entries import histories_of
from .events import CallRow, row_of, rows_of
from .plan_json import histories_in
from .sorted_calls import RoundState


def calls_listing(calls: RoundState, what: str) -> Listing:
    """Show the calls of a `Plan` or `Round`, in the order of the turn."""
    entries = [_entry(row, what) for row in rows_of(calls)]
    closed = calls.closed_by
    said = f"; {closed}" if closed and what == "Plan" else ""
    return Listing(f"{what} of {calls.toolset.__qualname__}", _states_of(entries) + said, entries)


def _states_of(entries: Iterable[Entry]) -> str:
    """Count calls by how they stand."""
    counted = Counter(entry.state for entry in entries)
    return ", ".join(f"{count} {state}" for state, count in counted.items()) or "no calls"


def _entry(row: CallRow, what: str) -> Entry:
    assert row._history is not None
    call = row._history.call
    # What the tool would get, which a hook may have changed.
    arguments = row.proposed
    if isinstance(call, DecodedCall):
        arguments = call.spec.shown_json(call.described)
    within = [f"{each.id} {each.tool}" for each in row.ancestors]
    entry = _shown(row, [Part("", arguments)], _first_text(call), within)
    is_undecided = what == "Round" and row.state == "pending"
    return entry._replace(state="undecided") if is_undecided else entry


def _shown(
    row: CallRow, arguments: Iterable[Part], text: InputText | None, within: Iterable[str]
) -> Entry:
    """Show how a call stands, its arguments, the outcome, and what happened to it.

    Args:
        row: The call.
        arguments: Its arguments, as they may be shown.
        text: The arguments that were proposed, if these can be told.
        within: The calls that it is within, the outermost first.
    """
    assert row._history is not None
    history = row._history.steps
    outer = ", ".join(within)
    parts = (*arguments, *_outcome(row), *_steps_in_words(history, text))
    state, style = _state_in_words(row, history)
    return Entry(row.id, row.tool, state, style, f"within {outer}" if outer else "", parts)


def _state_in_words(row: CallRow, history: History) -> tuple[str, str]:
    """Name the state of a call, and its style."""
    result = row.result
    end, status = history.end, history.stage.status
    if row.state == "unusable" and result is not None:
        return str(result.code).replace("_", " "), BAD
    if row.state == "rejected" and end is not None:
        # A gate that blocks has the run end; any other rejection is for the model to read.
        source = end.source
        return "blocked by gate" if source == "gate" else f"rejected by {source}", BAD
    if result is not None:
        state = "answer" if end is not None and end.phase == "reply" else row.state
        return (state, GOOD) if result.is_success else (f"{state}, {result.status}", BAD)
    if row.state != "pending":
        return row.state.replace("_", " "), WAITING
    return ("pending", "") if status == "new" else (f"pending, {status}", WAITING)


def _outcome(row: CallRow) -> Iterator[Part]:
    if row.state == "rejected":
        yield Part("reason", row.reason or "")
    elif row.state == "unusable":
        yield Part("the model is told", row.reason or "")
    elif row.result is not None:
        yield Part("result", indented_json(row.result.model_text))


# `started (+0.002 s)`, `ended (+1.3 s)`: each step has the time since the one before, so the
# duration of a run is at its `ended`, and that of a wait at its decision.
def _steps_in_words(history: History, text: InputText | None) -> Iterator[Part]:
    """Say what happened to a call, a part a step, with the time since the last."""
    last = history[0].at
    for step in history[1:]:
        label, said = _in_words(step, text)
        text = step.detail if step.kind == "changed" else text
        if label:
            yield Part(label, f"{said} (+{step.at - last:.3g} s)".lstrip())
            last = step.at


def _first_text(call: CallRecord) -> InputText | None:
    """Return the arguments that were proposed, defaults included, if others came after them."""
    if not isinstance(call, DecodedCall) or not call.is_rewritten:
        return None
    return call.text_of(call.history[0].detail)


def _in_words(step: Step, before: InputText | None) -> tuple[str, str]:
    """Say what one step means to whoever reads it: its label and the words.

    Args:
        step: The step.
        before: The arguments before it.

    Returns:
        Both, or two empty texts if another line says it.
    """
    kind, detail, by = step.kind, step.detail, f" by {step.by}" if step.by else ""
    if kind == "reviewed":
        because = f": {step.reason}" if step.reason else ""
        said = f"decided {step.verdict}" if step.verdict else "let it pass"
        named = f"{step.by} {said}{because}" if step.by else "nobody had to review it"
        return step.phase or "", named
    if kind == "suspended":
        asked = f": {detail.message}" if detail.message is not None else ""
        return kind, f"{detail.action} ({detail.id}){asked}"
    if kind == "changed":
        names = f"{_changed(before, detail)} changed{by}"
        return "edit" if step.phase == "decision" else kind, names
    if kind == "decided":
        because = f": {detail.reason}" if detail.reason else ""
        edit = " with arguments edited" if step.verdict == "edit" else ""
        return "decision", f"{detail.action}{edit}{by}{because}"
    if kind == "ended" and step.phase is None:
        return kind, step.verdict or ""
    if kind == "requested":
        return kind, f"for {', '.join(detail.ids)}"
    return (kind, by) if kind in ("started", "abandoned", "retried") else ("", "")


def _changed(before: InputText | None, after: InputText | None) -> str:
    """Name the arguments that were changed."""
    old, new = (None if text is None else text.data for text in (before, after))
    names = changed_names(old, new) if is_object(old) and is_object(new) else ()
    return ", ".join(names) or "the arguments"


# A saved plan without its tools.


class SavedPlan(NamedTuple):
    """What a saved plan holds, read without its tools.

    Attributes:
        turn: What the model said.
        calls: What is shown of its calls: an entry for each, in the order of the turn, and after
            those of the turn for each that calls requested.
    """

    turn: AssistantTurn
    calls: Listing


def read_plan(saved: Saved) -> SavedPlan:
    """Read a saved plan without its tools.

    Args:
        saved: What `open_saved(text, PLAN)` gave, or the `plan` in a saved session.

    Raises:
        PlanError: Something in it is damaged.
    """
    return _saved_plan(*histories_in(saved))


def read_stored_round(
    record: Mapping[str, Any],
    entries: Iterable[Mapping[str, Any]],
    waits: Mapping[str, Iterable[str]],
) -> SavedPlan:
    """Read what a store has of an open round without its tools.

    Args:
        record: What `plan.round_record()` gave.
        entries: What `plan.entries_since()` gave since.
        waits: By the id of a call those that come before it in the order of the round.

    Raises:
        PlanError: Something of it is damaged.
    """
    return _saved_plan(*histories_of(record, entries), waits)


def _saved_plan(
    turn: AssistantTurn, calls: Iterable[CallRecord], waits: Mapping[str, Iterable[str]]
) -> SavedPlan:
    outer: dict[str, tuple[str, ...]]
    outer = {id: (f"{caller} program",) for id, caller in turn.callers.items()}
    named: dict[str, str] = {}
    entries: list[Entry] = []
    for call in calls:
        id, by, history = call.id, call.requested_by, call.history
        named[id] = f"{id} {call.name}"
        if by is not None:
            outer[id] = (*outer.get(by, ()), named[by])
        arguments = _whole_arguments(call.metadata.arguments, history)
        entry = _shown(row_of(call), arguments, history[0].detail, outer.get(id, ()))
        before = ", ".join(waits.get(id, ()))
        order = (Part("in order", f"waits for {before}"),) if before else ()
        entries.append(entry._replace(parts=(*entry.parts, *order)))
    return SavedPlan(turn, Listing("Calls of the open round", _states_of(entries), entries))


def _whole_arguments(text: str, history: History) -> Iterator[Part]:
    """Yield what the model wrote, what the tool would get if it differs; and texts as lines."""
    yield Part("", indented_json(text))
    known = [
        step.detail for step in history if step.kind in ("proposed", "changed") and step.detail
    ]
    try:
        proposed = json.loads(text)
    except (ValueError, RecursionError):
        proposed = None
    final: Any = known[-1].data if known else proposed
    if final != proposed:
        yield Part("final arguments", indented_json(compact_json(final)))
    yield from (Part(name, text) for name, text in texts_of_lines(final).items())
