"""The stored form of what was asked and decided about calls, part by part, as a plan keeps it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .._call.line import moment
from .._context.suspension import Decision, DecisionAction, ResumeMode, SuspendTicket
from .._transcript.saved import Saved


def load_ticket(saved: Saved) -> SuspendTicket:
    """Read what `ticket.to_dict` gave."""
    parameters = saved.inner_or_none("parameters")
    response_schema = saved.inner_or_none("response_schema")
    return SuspendTicket(
        id=saved.get("id", str),
        action=saved.get("action", str),
        message=saved.get("message", str, None),
        parameters={} if parameters is None else parameters.data,
        response_schema=None if response_schema is None else response_schema.data,
        resume_mode=saved.one_of("resume_mode", ResumeMode),
    )


def dump_decision(decision: Decision) -> dict[str, Any]:
    """Save an answer of a person."""
    data = {name: getattr(decision, name) for name in Decision.__slots__}
    return {name: v for name, v in data.items() if v is not None or name not in _NEWER}


_NEWER = ("ticket", "asked_in")
"""What decisions of before do not have."""


def load_decision(saved: Saved) -> Decision:
    """Read an answer of a person."""
    action: DecisionAction = saved.member("action", DecisionAction)
    edit = saved.inner_or_none("edit")
    if edit is not None and action != "resume":
        raise saved.wrong("edit", f"it does not go with {action!r}")
    return Decision(
        call_id=saved.get("call_id", str),
        action=action,
        result=saved.any("result"),
        reason=saved.get("reason", str, None),
        decision_id=saved.get("decision_id", str),
        digest=saved.get("digest", str, None),
        edit=None if edit is None else edit.data,
        by=saved.get("by", str, None),
        at=saved.get("at", str, ""),
        ticket=saved.get("ticket", str, None),
        asked_in=saved.get("asked_in", str, None),
    )


def time_of(text: str) -> float | None:
    """Read a time in ISO 8601, of UTC where it does not say; None where it is none."""
    try:
        read = datetime.fromisoformat(text)
        at = (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
        moment(at)  # the first and the last day of the calendar have no time in UTC everywhere
    except (ValueError, OverflowError):
        return None
    return at
