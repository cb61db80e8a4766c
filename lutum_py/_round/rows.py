"""The calls of a plan as plain rows: what the model asked for, and what became of it.

All of it is to be looked at, so what is secret in arguments is masked, and what could not be read
stands there by its size alone where something secret may be in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .._call.call import AnyToolCall
from .._call.outcomes import HandledCall
from .._schema.secrets import holds_secrets
from .._text.json import size_of
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .sorted_calls import SortedCalls

__all__ = ["CallRow", "CallRowState", "open_text", "rows_of"]

CallRowState: TypeAlias = Literal[
    "pending", "handled", "rejected", "suspended", "unusable", "finished", "in_doubt"
]

_NOTHING: Any = object()
"""The input of a call that could not be read."""


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
    rows = {row.id: row for row in _rows(calls)}
    return tuple(rows[asked.id] for asked in calls._state.turn.tool_calls)


def _rows(calls: SortedCalls) -> Iterator[CallRow]:
    for issue in calls.recoverable_tool_call_issues:
        yield _row(
            calls, issue.metadata, _NOTHING, "unusable", reason=issue.text, result=issue.result
        )
    for call in calls.pending:
        yield _of_call(calls, call, "pending")
    for call in calls.in_doubt:
        yield _of_call(calls, call, "in_doubt")
    asked = {each.id: each for each in calls._state.turn.tool_calls}
    for result in calls.finished:
        ended = calls._ended.get(result.id)
        if ended is None:  # in the place of a call that could not be used, or of an answer
            yield _row(calls, asked[result.id], _NOTHING, "finished", result=result)
        else:
            yield _of_call(calls, ended, "finished", result)
    for waits in calls.suspended:
        call, said = waits.call, waits.ticket.message or waits.ticket.action
        yield _row(calls, call.metadata, call._input, "suspended", waits.by, said)
    for each in calls.handled:
        yield _row(
            calls,
            each.metadata,
            each.input,
            "handled",
            each.by,
            _reason_of(calls, each),
            each.result,
        )
    for no in calls.rejected:
        call = no.call
        yield _row(calls, call.metadata, call._input, "rejected", no.by, no.reason, no.result)


def _of_call(
    calls: SortedCalls, call: AnyToolCall, state: CallRowState, result: ToolResult | None = None
) -> CallRow:
    decision = call.approval
    by = reason = None
    if decision is not None:
        by, reason = decision.by or decision.decision_id, decision.reason
    return _row(calls, call.metadata, call._input, state, by, reason, result)


def _reason_of(calls: SortedCalls, handled: HandledCall[Any, Any]) -> str | None:
    """Say why a person made the result of a decision the answer, if a person did."""
    for (call_id, decision_id), decision in calls.resumed.items():
        if call_id == handled.metadata.id and handled.by == (decision.by or decision_id):
            return decision.reason
    return None


def _row(
    calls: SortedCalls,
    metadata: ToolMetadata,
    input: Any,
    state: CallRowState,
    by: str | None = None,
    reason: str | None = None,
    result: ToolResult | None = None,
) -> CallRow:
    arguments = None
    if input is not _NOTHING:
        arguments = calls.selector_of(metadata).spec.shown_data(input)
    proposed = open_text(calls, metadata)
    return CallRow(metadata.id, metadata.name, proposed, arguments, state, by, reason, result)


def open_text(calls: SortedCalls, metadata: ToolMetadata) -> str:
    """Give what the model wrote; nothing in it can be masked, so it is shown only as a whole."""
    toolset = calls.toolset
    is_open = metadata.name in toolset and not holds_secrets(
        toolset[metadata.name].definition.input_schema
    )
    return metadata.arguments if is_open else size_of(metadata.arguments)
