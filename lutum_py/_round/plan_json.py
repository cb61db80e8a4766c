"""The stored form of a plan: what was proposed, and what was decided.

The text has the turn as it came (what the model proposed) and an entry for each call with its
effective arguments. Each entry carries the digest of the tool's schema and, where something is
still to be run, of the call; each entry and the whole carry a seal, see `seal`. Tools are
named by their wire names only.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from .._call.call import AnyToolCall
from .._call.lifecycle import NOT_BEGUN, CallStatus
from .._call.outcomes import (
    HandledCall,
    IssueReason,
    RecoverableToolCallIssue,
    RejectedCall,
    RejectionSource,
    SuspendedCall,
)
from .._text.json import shorten
from .._transcript.assistant import AssistantTurn, dump_turn, load_turn
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, dump_result, load_result
from .._transcript.saved import Saved, dump_saved, open_saved
from ..errors import FieldIssue, PlanError, UnknownToolError
from .commit import owes_after_hooks
from .decision_json import (
    dump_approvals,
    dump_decision,
    dump_edit,
    load_approvals,
    load_decision,
    load_edit,
    load_record,
    load_ticket,
)
from .round_state import RoundState
from .seal import check_belongs, check_binding, check_key, check_seal, kind_of, seal_of
from .sorted_calls import SortedCalls

__all__ = ["dump_plan", "load_plan", "open_plan"]

FORMAT = "lutum_py.plan"
VERSION = 2
READ = (1, 2)
"""The versions that are read."""


def dump_plan(calls: SortedCalls, state: RoundState, key: bytes | None, binding: str | None) -> str:
    """Encode a plan.

    Raises:
        PlanError: An input, ticket, payload or decision is not JSON data, or the input of a call
            was changed while it was suspended, or a call has ended of which the plan has no result.
    """
    check_key(key)
    check_binding(binding)
    try:
        body = dump_saved(_dump(calls, state, binding), PlanError, "The plan")
    except ValueError as error:
        raise PlanError(f"An input of the plan has no JSON form ({error}).") from error
    # Sealed as it will be read again: JSON knows fewer types than Python.
    data: dict[str, Any] = json.loads(body)
    for entry in data["calls"]:
        entry["seal"] = seal_of(entry, key)
    data["seal"] = {"kind": kind_of(key), "value": seal_of(data, key)}
    return dump_saved(data, PlanError, "The plan")


def _dump(calls: SortedCalls, state: RoundState, binding: str | None) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    entries += [_dump_open(call) for call in calls.pending]
    entries += [{"state": "in_doubt", **_dump_call(call)} for call in calls.in_doubt]
    issues = {issue.metadata.id: issue for issue in calls.recoverable_tool_call_issues}
    for result in calls.finished:
        ended = calls._ended.get(result.id)
        if ended is None and result.id not in issues:  # that of the final answer: no tool's call
            entries.append({"state": "answer", "id": result.id, "result": dump_result(result)})
            continue
        known = _dump_issue(issues.pop(result.id)) if ended is None else _dump_call(ended)
        entries.append({**known, "state": "finished", "result": dump_result(result)})
    entries += [_dump_suspended(each) for each in calls.suspended]
    for handled in calls.handled:
        spec = calls.selector_of(handled.metadata).spec
        entries.append(
            {
                "state": "handled",
                "id": handled.metadata.id,
                "input": spec.arguments.to_data(handled.input),
                "result": dump_result(handled.result),
                "by": handled.by,
            }
        )
    for rejected in calls.rejected:
        entries.append(
            {
                "state": "rejected",
                "reason": rejected.reason,
                "source": rejected.source,
                "by": rejected.by,
                **_dump_call(rejected.call),
            }
        )
    entries += [_dump_issue(issue) for issue in issues.values()]
    return {
        "format": FORMAT,
        "version": VERSION,
        "binding": binding,
        "key_begins": state._key_begins,
        "turn": dump_turn(state.turn),
        "calls": entries,
        "started": sorted(state._started),
        "asked_before": sorted(map(list, state._ran_before)),
        "asked_after": sorted(map(list, calls._asked_after)),
        "owes_after": calls._owes_after or owes_after_hooks(calls),
        "decisions": [record._asdict() for record in calls.decisions],
        "edits": [*map(dump_edit, calls.edits)],
        "resumed": [*map(dump_decision, calls.resumed.values())],
    }


def _dump_open(call: AnyToolCall) -> dict[str, Any]:
    """Save a call that the plan has no result of: it was begun, or is still to be run."""
    status = call.status
    if status.is_terminal or status is CallStatus.SUSPENDED:
        raise PlanError(
            f"Call {call.id!r} of tool `{call.name}` is {status}, and the plan was not told, so "
            "that a saved one would not know of it. Give the plan what the call came to, with "
            "`plan.record(outcome)`, and dump it then."
        )
    state = "in_doubt" if status is CallStatus.RUNNING else "pending"
    return {"state": state, **_dump_call(call)}


def _dump_call(call: AnyToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "input": call.spec.arguments.to_data(call.input),
        "status": call.status.value,
        "mended": list(call.mended),
        "is_rewritten": call._is_rewritten,
        "schema_digest": call.selector.definition.digest,
        "digest": call.digest,
        "approvals": dump_approvals(call),
    }


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
        "by": waiting.by,
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


def open_plan(text: str | bytes) -> Saved:
    """Parse a saved plan.

    Raises:
        PlanError: It is none, or of an unknown version.
    """
    return open_saved(text, form=FORMAT, versions=READ, error=PlanError, what="plan")


def load_plan(
    toolset: Any, text: str | bytes, key: bytes | None, binding: str | None
) -> SortedCalls:
    """Read what `dump_plan` gave, and open it as a round again.

    Args:
        toolset: The toolset that they are of.
        text: What was saved.
        key: The key that it was sealed with, if any.
        binding: What it was said to belong to, if anything.

    Raises:
        PlanError: The text is no plan, of an unknown version, edited, sealed with another key,
            bound to something else, or made for tools that are not there any more or have another
            schema.
    """
    check_key(key)
    check_binding(binding)
    saved = open_plan(text)
    check_seal(saved, key)
    check_belongs(saved, binding)
    turn = load_turn(saved.inner("turn"))
    key_begins = saved.get("key_begins", str, "")
    loader = _Loader(toolset, turn, frozenset(saved.texts("started")), key_begins)
    for entry in saved.each("calls"):
        loader.take(entry)
    if len(loader.seen) != len(turn.tool_calls):
        raise saved.wrong("calls", "they are not the calls of the turn, each under its own id")
    resumed = [load_decision(entry) for entry in saved.each("resumed")]
    decisions = tuple(load_record(entry) for entry in saved.each("decisions"))
    asked_before = _load_marks(saved, "asked_before")
    asked_after = _load_marks(saved, "asked_after")
    owes_after = saved.get("owes_after", bool, False)
    edits = tuple(load_edit(entry, loader.seen) for entry in saved.each("edits", optional=True))
    if len({edit.call_id for edit in edits}) != len(edits):
        raise saved.wrong("edits", "there are two of one call")
    # Opened last: what fails before leaves no open round behind.
    state = RoundState(turn)
    state._started = loader.started & loader.seen
    state._key_begins = key_begins
    state._ran_before = asked_before
    calls = SortedCalls(state, toolset, tuple(loader.pending), tuple(loader.issues))
    calls.suspended = tuple(loader.suspended)
    calls.handled = tuple(loader.handled)
    calls.rejected = tuple(loader.rejected)
    calls.decisions = decisions
    calls.edits = edits
    calls.resumed = {(each.call_id, each.decision_id): each for each in resumed}
    calls.finished = tuple(loader.finished[id] for id in loader.metadata if id in loader.finished)
    calls.in_doubt = tuple(loader.in_doubt)
    calls._ended = loader.ended
    calls._asked_after = asked_after
    calls._owes_after = owes_after
    calls._is_decided = True
    return calls


def _load_marks(saved: Saved, key: str) -> frozenset[tuple[str, str]]:
    """Read pairs of a call id and the key of a hook; version 1 kept none."""
    pairs: Any = saved.data.get(key, [])
    try:
        return frozenset((str(id), str(hook)) for id, hook in pairs)
    except (TypeError, ValueError):
        raise saved.wrong(key, "expected pairs of a call id and a hook") from None


class _Loader:
    """Sort the entries of a saved plan."""

    def __init__(
        self, toolset: Any, turn: AssistantTurn, started: frozenset[str], key_begins: str
    ) -> None:
        self.key_begins = key_begins
        self.started = started
        self.toolset = toolset
        self.metadata = {call.id: call for call in turn.tool_calls}
        self.seen: set[str] = set()
        self.pending: list[AnyToolCall] = []
        self.suspended: list[SuspendedCall] = []
        self.handled: list[HandledCall[Any, Any]] = []
        self.rejected: list[RejectedCall] = []
        self.issues: list[RecoverableToolCallIssue] = []
        self.finished: dict[str, ToolResult] = {}
        self.in_doubt: list[AnyToolCall] = []
        self.ended: dict[str, AnyToolCall] = {}

    def take(self, saved: Saved) -> None:
        call_id = saved.get("id", str)
        metadata = self.metadata.get(call_id)
        if metadata is None or call_id in self.seen:
            raise saved.wrong("id", f"{call_id!r} is no call of the turn, or is there twice")
        self.seen.add(call_id)
        state = saved.get("state", str)
        if state in ("finished", "answer"):
            self.finished[call_id] = self._result(saved, metadata)
        if state == "issue" or (state == "finished" and "reason" in saved.data):
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
            result = self._result(saved, metadata)
            handled_type = call.spec.handled_type
            output = _output_of(call, result)
            by = saved.get("by", str, None)
            self.handled.append(handled_type(metadata, call.input, output, result, by))
        elif state == "rejected":
            call = self._call(saved, call_id, checked=False)
            source: RejectionSource = saved.member("source", RejectionSource)
            reason, by = saved.get("reason", str), saved.get("by", str, None)
            self.rejected.append(RejectedCall(metadata, call, reason, source, by))
        elif state == "finished":
            self.ended[call_id] = self._call(saved, call_id, checked=False)
        elif state == "in_doubt":
            self.in_doubt.append(self._call(saved, call_id, checked=False))
        elif state == "pending":
            call = self._call(saved, call_id, checked=True)
            if call.status in NOT_BEGUN:
                self.pending.append(call)
            else:  # version 1 kept no results: what was begun may have had its effects
                call._status = CallStatus.RUNNING
                self.in_doubt.append(call)
        elif state == "suspended":
            call = self._call(saved, call_id, checked=True)
            ticket = load_ticket(saved.inner("ticket"))
            self.suspended.append(
                SuspendedCall(
                    call,
                    ticket,
                    saved.get("digest", str),
                    saved.get("was_started", bool),
                    saved.get("by", str, None),
                )
            )
        elif state != "answer":
            raise saved.wrong("state", f"{state!r} is none that this release knows")

    def _result(self, saved: Saved, metadata: ToolMetadata) -> ToolResult:
        """Read the result of a call; with that of another the round could never end."""
        result = load_result(saved.inner("result"))
        if not result.answers(metadata):
            raise saved.wrong("result", f"it answers another call, {shorten(result.id)}")
        return result

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
            metadata,
            value,
            selector=selector,
            mended=saved.texts("mended") if "mended" in saved.data else (),
        )
        call._status = CallStatus(saved.one_of("status", CallStatus, "succeeded"))
        if saved.get("is_rewritten", bool, False):
            call._is_rewritten = True
        if self.key_begins:
            call._key_begins = self.key_begins
        if checked and call.digest != saved.get("digest", str):
            raise PlanError(
                f"The arguments of call {call_id!r} of tool `{metadata.name}` were edited after "
                "the plan was saved. What was approved is not what would run."
            )
        for each in load_approvals(saved, call_id in self.started):
            call._approval = each._replace(other=call._approval)
        return call


def _output_of(call: AnyToolCall, result: ToolResult) -> Any:
    """Read a result as the tool's output, or as plain data where it is none."""
    try:
        return call.spec.output.validate_json(result.result)
    except (ValidationError, ValueError, TypeError):
        return json.loads(result.result)
