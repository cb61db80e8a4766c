"""Plans and rounds in notebooks and on rich's terminal: each call, its state, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.lifecycle import CallStatus
from .._call.outcomes import (
    HandledCall,
    RecoverableToolCallIssue,
    RejectedCall,
    SuspendedCall,
)
from .._text.escaping import LINES, visible
from .._text.html import (
    Html,
    cut_text,
    figure,
    mark,
    named,
    note,
    paragraph,
    table,
)
from .._transcript.result import ToolResult
from .edits import EditRecord
from .rows import open_text
from .sorted_calls import SortedCalls

__all__ = ["plan_html", "plan_rich", "round_html", "round_rich"]

_MOST = 100
_LIMIT = 300
_LINE = 120


class _Row(NamedTuple):
    """One call: its id, its tool, what becomes of it, its arguments, and what is said about it."""

    id: str
    tool: str
    state: str
    kind: str
    arguments: str
    notes: tuple[tuple[str, str], ...]


def plan_html(plan: SortedCalls) -> str:
    """Show the calls of a plan as a table, in the order of the turn."""
    rows = _of_plan(plan)
    closed = plan._state._closed_by
    return _html(f"Plan of {plan.toolset.__qualname__}", rows, f"; {closed}" if closed else "")


def plan_rich(plan: SortedCalls) -> Iterator[tuple[str, object]]:
    """Give the calls of a plan by their state."""
    return _rich(plan.toolset.__qualname__, _of_plan(plan))


def round_html(calls: SortedCalls) -> str:
    """Show the calls of a round as a table, in the order of the turn."""
    return _html(f"Round of {calls.toolset.__qualname__}", _of_round(calls), "")


def round_rich(calls: SortedCalls) -> Iterator[tuple[str, object]]:
    """Give the calls of a round by their state."""
    return _rich(calls.toolset.__qualname__, _of_round(calls))


def _of_plan(plan: SortedCalls) -> list[_Row]:
    recorded = {result.id for result in plan.finished}
    rows = [
        *map(_pending, plan.pending),
        *(_pending(call)._replace(state="in doubt") for call in plan.in_doubt),
        *(_finished(plan, result) for result in plan.finished),
        *map(_suspended, plan.suspended),
        *(_handled(plan, handled) for handled in plan.handled),
        *map(_rejected, plan.rejected),
        *(
            _issue(plan, issue)
            for issue in plan.recoverable_tool_call_issues
            if issue.metadata.id not in recorded
        ),
    ]
    decided: dict[str, list[DecisionRecord]] = {}
    for record in plan.decisions:
        decided.setdefault(record.call_id, []).append(record)
    edits = {edit.call_id: ("edit", _edit(edit)) for edit in plan.edits}
    rows = [
        row._replace(
            notes=(
                *row.notes,
                *([edits[row.id]] if row.id in edits else ()),
                *_decisions(row.notes, decided.get(row.id, ())),
            )
        )
        for row in rows
    ]
    return _in_order(rows, [call.id for call in plan._state.turn.tool_calls])


def _edit(edit: EditRecord) -> str:
    """Say who changed which arguments; those that are shown are the final ones."""
    return f"{', '.join(edit.changed) or 'nothing'} changed by {edit.by or edit.decision_id}"


def _decisions(
    notes: tuple[tuple[str, str], ...], records: Iterable[DecisionRecord]
) -> Iterator[tuple[str, str]]:
    """Say who decided what, and why where that is not said yet."""
    for record in records:
        reason = record.reason or ""
        because = "" if any(reason in text for _, text in notes) or not reason else f": {reason}"
        yield record.phase, f"{record.hook} decided {record.decision}{because}"


def _of_round(calls: SortedCalls) -> list[_Row]:
    rows = [
        *(_pending(call)._replace(state="undecided") for call in calls.pending),
        *(_issue(calls, issue) for issue in calls.recoverable_tool_call_issues),
    ]
    return _in_order(rows, [call.id for call in calls._state.turn.tool_calls])


def _in_order(rows: Iterable[_Row], ids: Iterable[str]) -> list[_Row]:
    place = {id: index for index, id in enumerate(ids)}
    return sorted(rows, key=lambda row: place.get(row.id, len(place)))


def _pending(call: AnyToolCall) -> _Row:
    is_new = call.status is CallStatus.NEW
    state = "pending" if is_new else f"pending, {call.status}"
    kind = "plain" if is_new else "waiting"
    return _Row(call.id, call.name, state, kind, _arguments(call), _approved(call))


def _approved(call: AnyToolCall) -> tuple[tuple[str, str], ...]:
    decision = call.approval
    if decision is None:
        return ()
    because = f": {decision.reason}" if decision.reason else ""
    return (("decision", f"{decision.action} by {decision.decider}{because}"),)


def _suspended(waiting: SuspendedCall) -> _Row:
    call, ticket = waiting.call, waiting.ticket
    notes = [("ticket", f"{ticket.action} ({ticket.id})")]
    if ticket.message is not None:
        notes.append(("message", ticket.message))
    return _Row(call.id, call.name, "suspended", "waiting", _arguments(call), tuple(notes))


def _finished(calls: SortedCalls, result: ToolResult) -> _Row:
    state, kind = (
        ("finished", "good") if result.is_success else (f"finished, {result.status}", "bad")
    )
    call = calls._ended.get(result.id)
    arguments = result.arguments if call is None else _arguments(call)
    return _Row(result.id, result.name, state, kind, arguments, (("result", result.model_text),))


def _handled(calls: SortedCalls, handled: HandledCall[Any, Any]) -> _Row:
    metadata, result = handled.metadata, handled.result
    state, kind = ("handled", "good") if result.is_success else (f"handled, {result.status}", "bad")
    said = (("result", result.model_text),)
    arguments = calls.toolset[metadata.name].spec.shown_json(handled.input)
    return _Row(metadata.id, metadata.name, state, kind, arguments, said)


def _rejected(rejected: RejectedCall) -> _Row:
    call = rejected.call
    # A gate that blocks has the run end; any other rejection is for the model to read.
    state = "blocked by gate" if rejected.source == "gate" else f"rejected by {rejected.source}"
    said = (("reason", rejected.reason),)
    return _Row(call.id, call.name, state, "bad", _arguments(call), said)


def _issue(calls: SortedCalls, issue: RecoverableToolCallIssue) -> _Row:
    metadata, state = issue.metadata, issue.reason.replace("_", " ")
    said = (("the model is told", issue.text),)
    return _Row(metadata.id, metadata.name, state, "bad", open_text(calls, metadata), said)


def _arguments(call: AnyToolCall) -> str:
    """Encode what the tool would get, which a hook may have changed."""
    return call.spec.shown_json(call.input)


def _counts(rows: Iterable[_Row]) -> str:
    counted: dict[str, int] = {}
    for row in rows:
        counted[row.state] = counted.get(row.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counted.items()) or "no calls"


def _html(title: str, rows: list[_Row], closed: str) -> str:
    cells = [
        (
            named(row.id),
            named(row.tool),
            mark(row.state, row.kind),
            paragraph(row.arguments, _LIMIT, code=True),
            Html("".join(paragraph(text, _LIMIT, label=label) for label, text in row.notes[:8])),
        )
        for row in rows[:_MOST]
    ]
    content = [table(("call", "tool", "state", "arguments", "why"), cells)] * bool(cells)
    if len(rows) > _MOST:
        content.append(note(f"{len(rows) - _MOST} more calls are not shown."))
    return figure(title, _counts(rows) + closed, *content)


def _rich(toolset: str, rows: list[_Row]) -> Iterator[tuple[str, object]]:
    yield "toolset", visible(toolset)
    by_state: dict[str, list[str]] = {}
    for row in rows[:_MOST]:
        said = "".join(f" - {text}" for _, text in row.notes[:1])
        line = f"{cut_text(row.tool, 40)} {cut_text(row.id, 40)} {cut_text(row.arguments, _LINE)}"
        shown = visible(line + cut_text(said, _LINE), LINES)
        by_state.setdefault(row.state.replace(" ", "_").replace(",", ""), []).append(shown)
    yield from by_state.items()
    if len(rows) > _MOST:
        yield "not_shown", len(rows) - _MOST
