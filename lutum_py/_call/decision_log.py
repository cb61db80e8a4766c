"""Who decided what about a call: the record that a plan keeps, and the log.

It imports `logging`, so what a first tool needs does not import it.
"""

from __future__ import annotations

import logging
from typing import Any, Literal, NamedTuple, TypeAlias

from .._text.escaping import visible, visible_json
from .call_state import CallState

__all__ = ["DecisionKind", "DecisionPhase", "DecisionRecord", "is_logged", "log", "new", "record"]

_logger = logging.getLogger("lutum.tool_hook")
new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

DecisionPhase: TypeAlias = Literal["hook", "gate", "function"]
DecisionKind: TypeAlias = Literal["run_normally", "complete", "reject", "block", "suspend"]


class DecisionRecord(NamedTuple):
    """Say who decided what about a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        hook: The name of the hook or gate.
        phase: `hook`, `gate`, or `function` for a plain function used as hooks.
        decision: What it decided.
        reason: Why, for `reject` and `block`; the ticket's action for `suspend`.
    """

    call_id: str
    tool: str
    hook: str
    phase: DecisionPhase
    decision: DecisionKind
    reason: str | None = None


def record(
    records: list[DecisionRecord],
    call: CallState,
    hook: str,
    phase: DecisionPhase,
    kind: DecisionKind,
    reason: str | None,
) -> None:
    """Keep one decision, and log it where that is wanted."""
    metadata = call.metadata
    # A named tuple's own way to be made costs twice as much, and every hook leaves a record.
    fields = (metadata.id, metadata.name, hook, phase, kind, reason)
    records.append(new(DecisionRecord, fields))
    if is_logged():
        log(call, kind, reason)


def is_logged() -> bool:
    """Whether decisions are to be logged."""
    return _logger.isEnabledFor(logging.INFO)


def log(call: CallState, decision: str, reason: str | None) -> None:
    """Log a decision at INFO.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` where the call goes on, else `reason`.
    """
    name = visible(call.name)
    extra: dict[str, Any] = {
        "tool_name": name,
        "tool_call_id": visible(call.id),
        "decision": decision,
    }
    if decision == "run_normally":
        extra["effective_input_json"] = visible_json(call.spec.shown_json(call.input))
    else:
        extra["reason"] = None if reason is None else visible(reason)
    _logger.info("%s: %s (call %r)", decision, name, call.id, extra=extra)
