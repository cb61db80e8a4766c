"""Plans and rounds in notebooks and on rich's terminal: each call, its state, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.line import Step
from .._call.outcomes import (
    HandledCall,
    RecoverableToolCallIssue,
    RejectedCall,
    RejectionSource,
    SuspendedCall,
)
from .._context.suspension import SuspendTicket
from .._text.entries import Entry, Part, brief_table
from .._text.escaping import LINES, visible
from .._text.html import as_styles, cut_text, figure, note
from .._text.json import is_object, parse_json
from .._transcript.result import ToolResult
from .edits import changed_names
from .rows import open_text
from .sorted_calls import SortedCalls

_MOST = 100
_LIMIT = 300
_LINE = 120


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


def _of_plan(plan: SortedCalls) -> list[Entry]:
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
    return [_with_steps(plan, row) for row in _in_order(plan, rows)]


def _with_steps(plan: SortedCalls, row: Entry) -> Entry:
    """Say of a call, a line a step, what happened to it."""
    call = plan._call(row.place)
    if call is None:
        return row
    return row._replace(parts=(*row.parts, *steps_in_words(call._line)))


_WORDS: Final = {
    "suspended": "waits",
    "begun": "begun",
    "left": "left while it ran",
    "again": "another try",
}


def steps_in_words(line: tuple[Step, ...]) -> Iterator[Part]:
    """Say what happened to a call, a part a step, with the time since the last."""
    last: float | None = line[0].at
    text = line[0].detail
    for step in line[1:]:
        said = _in_words(step, text)
        text = step.detail if step.kind == "changed" else text
        if said is None:
            continue
        since = "" if last is None or step.at is None else f" (+{step.at - last:.3g} s)"
        last = step.at if step.at is not None else last
        yield Part(said.label, f"{said.text}{since}", said.kind)


def _in_words(step: Step, before: bytes | None) -> Part | None:
    """Say what one step means to whoever reads it; None for what another line says.

    Args:
        step: The step.
        before: The arguments before it.
    """
    by = f" by {step.by}" if step.by else ""
    detail = step.detail
    if step.kind == "asked":
        because = f": {step.reason}" if step.reason else ""
        said = step.said or "let it pass"
        return Part(step.phase or "", f"{step.by} {'decided ' if step.said else ''}{said}{because}")
    if step.kind == "changed":
        label = "edit" if step.phase == "decision" else "changed"
        return Part(label, f"{_changed(before, step.detail)} changed{by}")
    if step.kind == "answered" and detail is not None:
        because = f": {detail.reason}" if detail.reason else ""
        edit = " with arguments edited" if step.said == "edit" else ""
        return Part("decision", f"{detail.action}{edit}{by}{because}")
    if step.kind == "ended" and step.phase is None:
        return Part("ended", step.said or "")
    if step.kind in _WORDS:
        return Part(step.kind, f"{_WORDS[step.kind]}{by}")
    return None


def _changed(before: bytes | None, after: bytes | None) -> str:
    """Name the arguments that were changed."""
    old, new = (parse_json(text or b"null") for text in (before, after))
    names = changed_names(old, new) if is_object(old) and is_object(new) else ()
    return ", ".join(names) or "the arguments"


def _of_round(calls: SortedCalls) -> list[Entry]:
    rows = [
        *(_pending(call)._replace(state="undecided") for call in calls.pending),
        *(_issue(calls, issue) for issue in calls.recoverable_tool_call_issues),
    ]
    return _in_order(calls, rows)


def _in_order(calls: SortedCalls, rows: Iterable[Entry]) -> list[Entry]:
    place = {call.id: index for index, call in enumerate(calls._state.turn.tool_calls)}
    return sorted(rows, key=lambda row: place[row.place])


def _row(id: str, tool: str, state: str, kind: str, arguments: str, *told: Part) -> Entry:
    """Say of one call what becomes of it, what its arguments are, and why."""
    return Entry(id, tool, state, kind, (), (Part("", arguments, "code"), *told))


def _pending(call: AnyToolCall) -> Entry:
    state, kind = pending_state(call.status)
    return _row(call.id, call.name, state, kind, _arguments(call))


def pending_state(status: CallStatus) -> tuple[str, str]:
    """Give the state of a call that is pending, and the kind of its mark."""
    if status is CallStatus.NEW:
        return "pending", "plain"
    return f"pending, {status}", "waiting"


def ticket_parts(ticket: SuspendTicket) -> tuple[Part, ...]:
    """Say what is asked of a person."""
    asked = Part("ticket", f"{ticket.action} ({ticket.id})")
    return (asked,) if ticket.message is None else (asked, Part("message", ticket.message))


def _suspended(waiting: SuspendedCall) -> Entry:
    call, told = waiting.call, ticket_parts(waiting.ticket)
    return _row(call.id, call.name, "suspended", "waiting", _arguments(call), *told)


def result_state(result: ToolResult, state: str) -> tuple[str, str]:
    """Give the state of a call that has a result, and the kind of its mark."""
    return (state, "good") if result.is_success else (f"{state}, {result.status}", "bad")


def _finished(calls: SortedCalls, result: ToolResult) -> Entry:
    state, kind = result_state(result, "finished")
    call = calls._call(result.id)
    if call is None:
        arguments = open_text(calls, result.name, result.arguments)
    else:
        arguments = _arguments(call)
    return _row(result.id, result.name, state, kind, arguments, Part("result", result.model_text))


def _handled(calls: SortedCalls, handled: HandledCall[Any, Any]) -> Entry:
    metadata, result = handled.metadata, handled.result
    state, kind = result_state(result, "handled")
    arguments = calls.toolset[metadata.name].spec.shown_json(handled.input)
    said = Part("result", result.model_text)
    return _row(metadata.id, metadata.name, state, kind, arguments, said)


def rejected_state(source: RejectionSource) -> str:
    """Name the state of a call that will not run."""
    # A gate that blocks has the run end; any other rejection is for the model to read.
    return "blocked by gate" if source == "gate" else f"rejected by {source}"


def _rejected(rejected: RejectedCall) -> Entry:
    metadata, state = rejected.metadata, rejected_state(rejected.source)
    reason = Part("reason", rejected.reason)
    return _row(metadata.id, metadata.name, state, "bad", _arguments(rejected.call), reason)


def _issue(calls: SortedCalls, issue: RecoverableToolCallIssue) -> Entry:
    metadata, state = issue.metadata, issue.reason.replace("_", " ")
    told = Part("the model is told", issue.text)
    arguments = open_text(calls, metadata.name, metadata.arguments)
    return _row(metadata.id, metadata.name, state, "bad", arguments, told)


def _arguments(call: AnyToolCall) -> str:
    """Encode what the tool would get, which a hook may have changed."""
    return call.spec.shown_json(call._input)


def _counts(rows: Iterable[Entry]) -> str:
    counted = Counter(row.state for row in rows)
    return ", ".join(f"{count} {state}" for state, count in counted.items()) or "no calls"


def _html(title: str, rows: list[Entry], closed: str) -> str:
    head = ("call", "tool and state", "arguments and why")
    content = [brief_table(head, rows[:_MOST], _LIMIT, _LIMIT)] * bool(rows)
    if len(rows) > _MOST:
        content.append(note(f"{len(rows) - _MOST} more calls are not shown."))
    return as_styles(figure(title, _counts(rows) + closed, *content))


def _rich(toolset: str, rows: list[Entry]) -> Iterator[tuple[str, object]]:
    yield "toolset", visible(toolset)
    by_state: dict[str, list[str]] = {}
    for row in rows[:_MOST]:
        arguments, *told = (part.text for part in row.parts)
        said = "".join(f" - {text}" for text in told[:1])
        line = f"{cut_text(row.who, 40)} {cut_text(row.place, 40)} {cut_text(arguments, _LINE)}"
        shown = visible(line + cut_text(said, _LINE), LINES)
        by_state.setdefault(row.state.replace(" ", "_").replace(",", ""), []).append(shown)
    yield from by_state.items()
    if len(rows) > _MOST:
        yield "not_shown", len(rows) - _MOST
