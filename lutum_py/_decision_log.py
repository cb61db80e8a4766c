"""One log record for each decision about a call, on the logger `lutum.tool_hook`."""

from __future__ import annotations

import logging
from typing import Any

from ._call import AnyToolCall
from ._json import compact_json

__all__ = ["log_decision"]

_logger = logging.getLogger("lutum.tool_hook")


def log_decision(call: AnyToolCall, decision: str, reason: str | None) -> None:
    """Log a decision at INFO; nothing is encoded where the level is off.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` where the call goes on, else `reason`.
    """
    if not _logger.isEnabledFor(logging.INFO):
        return
    extra: dict[str, Any] = {
        "tool_name": call.name,
        "tool_call_id": call.id,
        "decision": decision,
    }
    if decision == "run_normally":
        extra["effective_input_json"] = compact_json(call.spec.arguments.to_data(call.input))
    else:
        extra["reason"] = reason
    _logger.info("%s: %s (call %s)", decision, call.name, call.id, extra=extra)
