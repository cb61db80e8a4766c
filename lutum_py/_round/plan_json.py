"""The stored form of a plan: what was proposed, and what was decided.

The text has the turn as it came (what the model proposed) and an entry for each call with its
effective arguments. Each entry carries the digest of the tool's schema and, where something is
still to be run, of the call; each entry and the whole carry a seal, see `seal`. Tools are
named by their wire names only.
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import ValidationError

from .._call.approval import Approval
from .._call.call import AnyToolCall
from .._call.decision_log import DecisionKind, DecisionRecord
from .._call.lifecycle import CallStatus
from .._call.outcomes import (
    HandledCall,
    IssueReason,
    RecoverableToolCallIssue,
    RejectedCall,
    RejectionSource,
    SuspendedCall,
)
from .._context.suspension import (
    Decision,
    DecisionAction,
    ResumeMode,
    SuspendTicket,
)
from .._transcript.assistant import AssistantTurn, dump_turn, load_turn
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import Saved, dump_saved, open_saved
from ..errors import FieldIssue, PlanError, UnknownToolError
from .round_state import RoundState
from .seal import (
    check_key,
    check_seal,
    kind_of,
    seal_of,
)
from .sorted_calls import SortedCalls

__all__ = ["FORMAT", "VERSION", "dump_plan", "load_plan"]

FORMAT = "lutum_py.plan"
VERSION = 1

Phase: TypeAlias = Literal["hook", "gate", "function"]

P = TypeVar("P", bound=SortedCalls)


def dump_plan(calls: SortedCalls, state: RoundState, key: bytes | None) -> str:
    """Encode a plan.

    Raises:
        PlanError: An input, ticket, payload or decision is not JSON data, or the input of a call
            was changed while it was suspended.
    """
    check_key(key)
    try:
        body = dump_saved(_dump(calls, state), PlanError, "The plan")
    except ValueError as error:
        raise PlanError(f"An input of the plan has no JSON form ({error}).") from error
    # Sealed as it will be read again: JSON knows fewer types than Python.
    data: dict[str, Any] = json.loads(body)
    for entry in data["calls"]:
        entry["seal"] = seal_of(entry, key)
    data["seal"] = {"kind": kind_of(key), "value": seal_of(data, key)}
    return dump_saved(data, PlanError, "The plan")


def _dump(calls: SortedCalls, state: RoundState) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    entries += [{"state": "pending", **_dump_call(call)} for call in calls.pending]
    entries += [_dump_suspended(each) for each in calls.suspended]
    for handled in calls.handled:
        spec = calls.selector_of(handled.metadata).spec
        entries.append(
            {
                "state": "handled",
                "id": handled.metadata.id,
                "input": spec.arguments.to_data(handled.input),
                "result": dump_result(handled.result),
            }
        )
    for rejected in calls.rejected:
        entries.append(
            {
                "state": "rejected",
                "reason": rejected.reason,
                "source": rejected.source,
                **_dump_call(rejected.call),
            }
        )
    entries += [_dump_issue(issue) for issue in calls.recoverable_tool_call_issues]
    return {
        "format": FORMAT,
        "version": VERSION,
        "turn": dump_turn(state.turn),
        "calls": entries,
        "started": sorted(state._started),
        "decisions": [record._asdict() for record in calls.decisions],
        "resumed": [_dump_decision(decision) for decision in calls.resumed.values()],
    }


def _dump_call(call: AnyToolCall) -> dict[str, Any]:
    approval = call._approval
    data = {
        "id": call.id,
        "input": call.spec.arguments.to_data(call.input),
        "status": call.status.value,
        "mended": list(call.mended),
        "schema_digest": call.selector.definition.digest,
        "digest": call.digest,
        "approval": None,
    }
    if approval is not None:
        data["approval"] = {
            "decision": _dump_decision(approval.decision),
            "digest": approval.digest,
            "suspension_id": approval.suspension_id,
            "action": approval.action,
            "is_for_tool": approval.is_for_tool,
        }
    return data


def _dump_suspended(waiting: SuspendedCall) -> dict[str, Any]:
    call = waiting.call
    if call.digest != waiting.digest:
        raise PlanError(
            f"The input of call {call.id!r} of tool `{call.name}` was changed while it was "
            "suspended, so no decision on it could count. Abort the round."
        )
    return {
        "state": "suspended",
        **_dump_call(call),
        "ticket": waiting.ticket.to_dict(),
        "was_started": waiting.was_started,
    }


def _dump_issue(issue: RecoverableToolCallIssue) -> dict[str, Any]:
    return {
        "state": "issue",
        "id": issue.metadata.id,
        "reason": issue.reason,
        "text": issue.text,
        "fields": [
            {"path": each.path, "message": each.message, "received": each.received}
            for each in issue.fields
        ],
        "suggestion": issue.suggestion,
    }


def _dump_decision(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in Decision.__slots__}


def load_plan(make: type[P], toolset: Any, text: str | bytes, key: bytes | None) -> P:
    """Read what `dump_plan` gave, and open it as a round again.

    Args:
        make: What the calls are kept in.
        toolset: The toolset that they are of.
        text: What was saved.
        key: The key that it was sealed with, if any.

    Raises:
        PlanError: The text is no plan, of an unknown version, edited, sealed with another key, or
            made for tools that are not there any more or have another schema.
    """
    check_key(key)
    saved = open_saved(text, form=FORMAT, versions=(VERSION,), error=PlanError, what="plan")
    check_seal(saved, key)
    turn = load_turn(saved.inner("turn"))
    loader = _Loader(toolset, turn)
    for entry in saved.each("calls"):
        loader.take(entry)
    if len(loader.seen) != len(turn.tool_calls):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    resumed = [_load_decision(entry) for entry in saved.each("resumed")]
    decisions = tuple(_load_record(entry) for entry in saved.each("decisions"))
    started = loader.seen.intersection(saved.texts("started"))
    # Opened last: what fails before leaves no open round behind.
    state = RoundState(turn)
    state._started = frozenset(started)
    calls = make(state, toolset, (), tuple(loader.issues))
    calls.pending = tuple(loader.pending)
    calls.suspended = tuple(loader.suspended)
    calls.handled = tuple(loader.handled)
    calls.rejected = tuple(loader.rejected)
    calls.decisions = decisions
    calls.resumed = {(each.call_id, each.decision_id): each for each in resumed}
    return calls


class _Loader:
    """Sort the entries of a saved plan."""

    def __init__(self, toolset: Any, turn: AssistantTurn) -> None:
        self.toolset = toolset
        self.metadata = {call.id: call for call in turn.tool_calls}
        self.seen: set[str] = set()
        self.pending: list[AnyToolCall] = []
        self.suspended: list[SuspendedCall] = []
        self.handled: list[HandledCall[Any, Any]] = []
        self.rejected: list[RejectedCall] = []
        self.issues: list[RecoverableToolCallIssue] = []

    def take(self, saved: Saved) -> None:
        call_id = saved.get("id", str)
        metadata = self.metadata.get(call_id)
        if metadata is None or call_id in self.seen:
            raise saved.wrong("id", f"{call_id!r} is no call of the turn, or is there twice")
        self.seen.add(call_id)
        state = saved.get("state", str)
        if state == "issue":
            self.issues.append(
                RecoverableToolCallIssue(
                    metadata,
                    saved.member("reason", IssueReason),
                    saved.get("text", str),
                    tuple(
                        FieldIssue(
                            each.get("path", str),
                            each.get("message", str),
                            each.get("received", str, None),
                        )
                        for each in saved.each("fields")
                    ),
                    saved.get("suggestion", str, None),
                )
            )
        elif state == "handled":
            call = self._call(saved, call_id, checked=False)
            result = load_result(saved.inner("result"))
            handled_type = call.spec.handled_type
            output = _output_of(call, result)
            self.handled.append(handled_type(metadata, call.input, output, result))
        elif state == "rejected":
            call = self._call(saved, call_id, checked=False)
            source: RejectionSource = saved.member("source", RejectionSource)
            self.rejected.append(RejectedCall(metadata, call, saved.get("reason", str), source))
        elif state == "pending":
            self.pending.append(self._call(saved, call_id, checked=True))
        elif state == "suspended":
            call = self._call(saved, call_id, checked=True)
            ticket = _load_ticket(saved.inner("ticket"))
            self.suspended.append(
                SuspendedCall(
                    call, ticket, saved.get("digest", str), saved.get("was_started", bool)
                )
            )
        else:
            raise saved.wrong("state", f"{state!r} is none that this release knows")

    def _call(self, saved: Saved, call_id: str, *, checked: bool) -> AnyToolCall:
        """Rebuild a call; where it is still to be run, make sure that it is what was saved."""
        metadata = self.metadata[call_id]
        try:
            selector = self.toolset[metadata.name]
        except UnknownToolError as error:
            raise PlanError(
                f"Call {call_id!r} of this plan needs a tool that is gone: {error}"
            ) from None
        digest = selector.definition.digest
        if checked and saved.get("schema_digest", str) != digest:
            raise PlanError(
                f"The schema of tool `{metadata.name}` has changed since call {call_id!r} was "
                f"saved: it was {saved.get('schema_digest', str)!r}, it is {digest!r}. What was "
                "approved is not what would run; let the model call the tool again."
            )
        try:
            value = selector.spec.arguments.from_data(saved.any("input"))
        except (ValidationError, ValueError) as error:
            raise PlanError(
                f"The input of call {call_id!r} no longer fits tool `{metadata.name}`: {error}"
            ) from None
        call: AnyToolCall = selector.Call(
            metadata, value, selector=selector, mended=saved.texts("mended") if checked else ()
        )
        call._status = CallStatus(saved.one_of("status", CallStatus, "succeeded"))
        if checked and call.digest != saved.get("digest", str):
            raise PlanError(
                f"The arguments of call {call_id!r} of tool `{metadata.name}` were edited after "
                "the plan was saved. What was approved is not what would run."
            )
        approval = saved.inner_or_none("approval")
        if approval is not None:
            call._approval = Approval(
                _load_decision(approval.inner("decision")),
                digest=approval.get("digest", str),
                suspension_id=approval.get("suspension_id", str),
                action=approval.get("action", str),
                is_for_tool=approval.get("is_for_tool", bool),
            )
        return call


def _output_of(call: AnyToolCall, result: ToolResult) -> Any:
    """Read a result as the tool's output, or as plain data where it is none."""
    try:
        return call.spec.output.validate_json(result.result)
    except (ValidationError, ValueError, TypeError):
        return json.loads(result.result)


def _load_ticket(saved: Saved) -> SuspendTicket:
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


def _load_decision(saved: Saved) -> Decision:
    return Decision(
        call_id=saved.get("call_id", str),
        action=saved.member("action", DecisionAction),
        result=saved.any("result"),
        reason=saved.get("reason", str, None),
        decision_id=saved.get("decision_id", str),
        digest=saved.get("digest", str, None),
    )


def _load_record(saved: Saved) -> DecisionRecord:
    phase: Phase = saved.member("phase", Phase)
    return DecisionRecord(
        saved.get("call_id", str),
        saved.get("tool", str),
        saved.get("hook", str),
        phase,
        saved.member("decision", DecisionKind),
        saved.get("reason", str, None),
    )
