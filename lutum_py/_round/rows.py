"""The calls of a plan as plain rows: what the model asked for, and what became of it.

All of it is to be looked at, so what is secret in arguments is masked, and what could not be read
stands there by its size alone where something secret may be in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, TypeAlias

from .._call.call import AnyToolCall, HookOutcome
from .._call.outcomes import HandledCall, SuspendedCall
from .._call.selector import AnySelector
from .._schema.secrets import holds_secrets
from .._text.json import size_of
from .._text.once import ONCE
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .sorted_calls import SortedCalls

__all__ = ["CallRow", "CallRowState", "open_text", "row_of_call", "row_of_outcome", "rows_of"]

CallRowState: TypeAlias = Literal[
    "pending", "handled", "rejected", "suspended", "unusable", "finished", "in_doubt"
]


@dataclass(frozen=True, slots=True)
class CallRow:
    """Say of one call what was asked, who decided what about it, and what it came to.

    Attributes:
        id: The id of the call.
        tool: The wire name of the tool.
        proposed: The arguments as the model wrote them; their size alone where something in them
            may be secret.
        arguments: The final arguments as plain data, secrets masked; None where there are none,
            because the call could not be read.
        state: Where the plan has the call; one that runs is `pending`.
        by: Who decided last: the name of a hook, a gate or a person; None where nobody did.
        reason: Why, in their words; for a call that waits, what is asked.
        result: Its result, if the plan has it.
    """

    id: str
    tool: str
    proposed: str
    arguments: Any = field(hash=False)
    state: CallRowState
    by: str | None = None
    reason: str | None = None
    result: ToolResult | None = None

    def model_dump(self) -> dict[str, Any]:
        """Give the row as plain data; of a result, its status and what the model reads of it."""
        dumped = {name: getattr(self, name) for name in self.__slots__}
        if self.result is not None:
            dumped["result"] = {"status": self.result.status, "text": self.result.model_text}
        return dumped


def rows_of(calls: SortedCalls) -> tuple[CallRow, ...]:
    """Give a row for each call of a round, in the order of the turn."""
    with ONCE:  # meanwhile another thread may move a call
        seen = calls.copy()
    rows = {row.id: row for row in _rows(seen)}
    return tuple(rows[asked.id] for asked in calls._state.turn.tool_calls)


def _rows(calls: SortedCalls) -> Iterator[CallRow]:
    for issue in calls.recoverable_tool_call_issues:
        yield _row(calls, issue.metadata, None, "unusable", None, issue.text, issue.result)
    for call in calls.in_doubt:
        yield row_of_call(call, "in_doubt")
    asked = {each.id: each for each in calls._state.turn.tool_calls}
    for result in calls.finished:
        ended = calls._ended.get(result.id)
        if ended is None:  # in the place of a call that could not be used, or of an answer
            yield _row(calls, asked[result.id], None, "finished", None, None, result)
        else:
            yield row_of_call(ended, "finished", result)
    decided = (calls.pending, calls.suspended, calls.handled, calls.rejected)
    for outcome in chain[HookOutcome](*decided):
        yield row_of_outcome(calls, outcome)


def row_of_outcome(calls: SortedCalls, outcome: HookOutcome) -> CallRow:
    """Give the row of a call that hooks or a person decided on, by what became of it."""
    if isinstance(outcome, SuspendedCall):
        return row_of_call(outcome.call, "suspended", waits=outcome)
    if isinstance(outcome, AnyToolCall):
        return row_of_call(outcome, "pending")
    if isinstance(outcome, HandledCall):
        state: CallRowState = "handled"
        input, reason = outcome.input, _reason_of(calls, outcome)
    else:
        state, input, reason = "rejected", outcome.call._input, outcome.reason
    shown = calls.selector_of(outcome.metadata).spec.shown_data(input)
    return _row(calls, outcome.metadata, shown, state, outcome.by, reason, outcome.result)


def row_of_call(
    call: AnyToolCall,
    state: CallRowState,
    result: ToolResult | None = None,
    waits: SuspendedCall | None = None,
) -> CallRow:
    """Give the row of a call that is looked at without its plan."""
    by = reason = None
    if waits is not None:
        by, reason = waits.by, waits.ticket.message or waits.ticket.action
    elif call.approval is not None:
        by, reason = call.approval.decider, call.approval.reason
    return CallRow(
        call.id,
        call.name,
        _proposed(call.selector, call.metadata),
        call.spec.shown_data(call._input),
        state,
        by,
        reason,
        result,
    )


def _reason_of(calls: SortedCalls, handled: HandledCall[Any, Any]) -> str | None:
    """Say why a person made the result of a decision the answer, if a person did."""
    for (call_id, _), decision in calls.resumed.items():
        if call_id == handled.metadata.id and handled.by == decision.decider:
            return decision.reason
    return None


def _row(
    calls: SortedCalls,
    metadata: ToolMetadata,
    arguments: Any,
    state: CallRowState,
    by: str | None,
    reason: str | None,
    result: ToolResult,
) -> CallRow:
    proposed = open_text(calls, metadata)
    return CallRow(metadata.id, metadata.name, proposed, arguments, state, by, reason, result)


def open_text(calls: SortedCalls, metadata: ToolMetadata) -> str:
    """Give what the model wrote for a call that could not be read."""
    return _proposed(calls.toolset._by_name.get(metadata.name), metadata)


def _proposed(selector: AnySelector | None, metadata: ToolMetadata) -> str:
    """Give what the model wrote; nothing in it can be masked, so it is shown only as a whole."""
    is_open = selector is not None and not holds_secrets(selector.definition.input_schema)
    return metadata.arguments if is_open else size_of(metadata.arguments)
