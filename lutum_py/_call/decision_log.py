"""Who decided what about a call: the record that a plan keeps, and the log.

It imports `logging`, so what a first tool needs does not import it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, Literal, NamedTuple, TypeAlias

from .._text.escaping import visible, visible_json
from .call_state import CallState
from .line import HOOK_PHASES

_logger = logging.getLogger("lutum.tool_hook")

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


def decisions_in(call: CallState, own: Collection[object]) -> list[tuple[float, DecisionRecord]]:
    """Give what hooks and gates decided about a call, each with its time.

    Args:
        call: The call; a hook that let it pass decided nothing.
        own: The times of asking that count.
    """
    return [
        (
            step.at or 0.0,
            DecisionRecord._make((call.id, call.name, step.by, step.phase, step.said, step.reason)),
        )
        for step in call._line
        if step.said is not None and step.phase in HOOK_PHASES and step.detail in own
    ]


def is_logged() -> bool:
    """Whether decisions are to be logged."""
    return _logger.isEnabledFor(logging.INFO)


def log(call: CallState, decision: str, reason: str | None, input: Any) -> None:
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
        extra["effective_input_json"] = visible_json(call.spec.shown_json(input))
    else:
        extra["reason"] = None if reason is None else visible(reason)
    _logger.info("%s: %s (call %r)", decision, name, call.id, extra=extra)
