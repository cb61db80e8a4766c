"""One log record for each decision about a call, on the logger `lutum.tool_hook`."""

from __future__ import annotations

import logging
from typing import Any

from .._call.call import AnyToolCall
from .._text.json import compact_json, shorten

__all__ = ["log_decision", "logger"]

logger = logging.getLogger("lutum.tool_hook")


def log_decision(call: AnyToolCall, decision: str, reason: str | None) -> None:
    """Log a decision at INFO; to be asked only where `logger` takes that level.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` where the call goes on, else `reason`.
    """
    extra: dict[str, Any] = {
        "tool_name": call.name,
        "tool_call_id": call.id,
        "decision": decision,
    }
    if decision == "run_normally":
        extra["effective_input_json"] = _input_json(call)
    else:
        extra["reason"] = reason
    logger.info("%s: %s (call %r)", decision, call.name, call.id, extra=extra)


def _input_json(call: AnyToolCall) -> str:
    try:
        return compact_json(call.spec.arguments.to_shown(call.input))
    except (TypeError, ValueError):
        # A record is no reason to fail: a field of any type may hold what JSON cannot carry.
        return shorten(call.input)
