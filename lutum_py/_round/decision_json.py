"""The stored form of what was asked and decided about calls, part by part, as a plan keeps it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._call.approval import Approval
from .._call.call import AnyToolCall
from .._call.decision_log import DecisionKind, DecisionPhase, DecisionRecord
from .._context.suspension import Decision, DecisionAction, ResumeMode, SuspendTicket
from .._transcript.saved import Saved
from .edits import EditRecord

__all__ = [
    "dump_approvals",
    "dump_decision",
    "dump_edit",
    "load_approvals",
    "load_decision",
    "load_edit",
    "load_record",
    "load_ticket",
]


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
    return {name: getattr(decision, name) for name in Decision.__slots__}


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
    )


def dump_approvals(call: AnyToolCall) -> list[dict[str, Any]]:
    """Save the answers by which a call goes on, the latest first."""
    return [
        {
            "decision": dump_decision(approval.decision),
            "ticket": approval.ticket.to_dict(),
            "digest": approval.digest,
            "is_of_tool": approval.is_of_tool,
        }
        for approval in call._approvals()
    ]


def load_approvals(saved: Saved, was_started: bool) -> list[Approval]:
    """Read the answers by which a call goes on, the earliest first."""
    old = saved.inner_or_none("approval")
    if old is not None:  # version 1 kept one, and of its ticket only what it was asked by
        mode = ResumeMode.REPLAY_TOOL_CALL
        if old.get("is_for_tool", bool):
            mode = ResumeMode.PASS_DECISION_TO_TOOL
        ticket = SuspendTicket(
            id=old.get("suspension_id", str), action=old.get("action", str), resume_mode=mode
        )
        decision = load_decision(old.inner("decision"))
        return [Approval(decision, ticket, old.get("digest", str), was_started)]
    return [
        Approval(
            load_decision(each.inner("decision")),
            load_ticket(each.inner("ticket")),
            each.get("digest", str),
            each.get("is_of_tool", bool),
        )
        for each in saved.each("approvals", optional=True)
    ][::-1]


def dump_edit(edit: EditRecord) -> dict[str, Any]:
    """Save who changed which arguments of a call."""
    return {name: getattr(edit, name) for name in EditRecord.__slots__}


def load_edit(saved: Saved, ids: Collection[str]) -> EditRecord:
    """Read who changed which arguments of a call; `ids` are those of the calls of the turn."""
    call_id = saved.get("call_id", str)
    if call_id not in ids:
        raise saved.wrong("call_id", f"{call_id!r} is no call of the turn")
    return EditRecord(
        call_id,
        saved.inner("shown").data,
        saved.inner("edited").data,
        saved.inner("final").data,
        saved.get("decision_id", str),
        saved.get("by", str, None),
        saved.get("at", str),
        saved.texts("changed"),
    )


def load_record(saved: Saved) -> DecisionRecord:
    """Read what a hook decided."""
    phase: DecisionPhase = saved.member("phase", DecisionPhase)
    return DecisionRecord(
        saved.get("call_id", str),
        saved.get("tool", str),
        saved.get("hook", str),
        phase,
        saved.member("decision", DecisionKind),
        saved.get("reason", str, None),
    )
