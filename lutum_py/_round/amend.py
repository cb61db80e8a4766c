"""Take in a decision that edits the arguments of a call that waits.

An edit is new input, so it goes where input goes: through the validation and the hooks. The person
approved the edited arguments and nothing else. What comes out of the hooks with these is approved;
what a hook changed once more waits again, and is shown as it is by then.

Hooks may have to be awaited, and meanwhile another decision may be taken in: that one counts, since
to cancel never has to wait. Two edits of one call do not go through hooks at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from .._call.approval import Approval
from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.decision_log import DecisionRecord
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall, RejectedCall, SuspendedCall
from .._call.steps import Steps
from .._context.suspension import Decision, ResumeMode, SuspendTicket
from .._hooks.pipeline import decide
from .._schema.secrets import holds_secrets
from .._text.escaping import words_of
from .._text.json import cut
from .._text.once import ONCE
from ..errors import HookError, ResumeError, ToolInputError
from .edits import EditRecord, changed_names, noted, unmasked
from .resume import check_decision, check_fits, find, resume, take_in, was_taken_in
from .sorted_calls import SortedCalls, moving

__all__ = ["amend"]


class _Marks:
    """Remember before-hooks that were asked, until it is certain that the edit counts."""

    def __init__(self, ran_before: frozenset[tuple[str, str]]) -> None:
        self._ran_before = ran_before


def amend(calls: SortedCalls, decision: Decision, hooks: Hooks) -> Steps[HookOutcome | None]:
    """Answer one suspended call with other arguments; see `ToolRoundPlan.amend`."""
    check_decision(decision)
    if decision.edit is None:
        return resume(calls, decision)
    if was_taken_in(calls, decision):
        return None
    waiting = find(calls, decision)
    check_fits(waiting, decision)
    state, call_id = calls._state, decision.call_id
    if call_id in state._amending:
        raise ResumeError(
            f"Decision {decision.decision_id!r} comes while an edit of call {call_id!r} of tool "
            f"`{waiting.call.name}` is with the hooks. Deliver it again once that one is through."
        )
    edited = _edited(waiting, decision, decision.edit)
    records: list[DecisionRecord] = []
    marks = _Marks(state._ran_before)
    state._amending |= {call_id}
    try:
        outcome = yield from decide(edited, hooks, records, marks)
        record = _record_of(waiting, decision, edited, _input_of(outcome))
    except (ToolInputError, PydanticSerializationError) as error:
        raise HookError(
            f"The hooks gave call {call_id!r} of tool `{waiting.call.name}` an input that has no "
            f"JSON form ({cut(words_of(error), 200)}). Mend what they return.",
            tool=waiting.call.name,
            call_id=call_id,
        ) from error
    finally:
        state._amending -= {call_id}
    state._check_open()
    if find(calls, decision) is not waiting:
        raise ResumeError(
            f"Decision {decision.decision_id!r} comes too late: while hooks were asked about it, "
            f"call {call_id!r} of tool `{waiting.call.name}` went on, and waits for another one. "
            "Show the call as it is now, and ask again."
        )
    settled = _settle(waiting, edited, outcome)
    state._ran_before |= {mark for mark in marks._ran_before if mark[0] == call_id}
    take_in(calls, waiting, decision, settled)
    calls.note_hooks(hooks)
    calls.change(decisions=(*calls.decisions, *records))
    with ONCE:
        edits = moving(calls).edits
        edits[call_id] = noted(edits.pop(call_id, None), record)
    return settled


def _edited(waiting: SuspendedCall, decision: Decision, edit: Mapping[str, Any]) -> AnyToolCall:
    """Make the call anew with the arguments of the edit, approved, and open to hooks.

    Raises:
        ResumeError: The arguments do not fit the tool, or there is no use for them.
    """
    call, spec = waiting.call, waiting.call.spec
    said = f"The edit of decision {decision.decision_id!r} for call {call.id!r}"
    if waiting.ticket.resume_mode is ResumeMode.USE_DECISION_AS_TOOL_RESULT:
        raise ResumeError(
            f"{said} of tool `{call.name}` would change nothing: its ticket makes the decision's "
            "result the answer, and the tool is not run. Pass a result instead."
        )
    try:
        plain = json.loads(json.dumps(edit, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ResumeError(f"{said} is not JSON data ({error}). Pass plain data.") from None
    made = call._again()
    try:
        real = spec.arguments.to_data(call._input)
        made._input = spec.arguments.from_data(unmasked(waiting, plain, real))
        made._is_rewritten = True
        digest = made.digest
    except ValidationError as error:
        redact = holds_secrets(call.selector.definition.input_schema)
        issues = "; ".join(map(str, spec.issues_of(error, redact=redact)))
        raise ResumeError(f"{said} does not fit tool `{call.name}`: {issues}. Ask again.") from None
    except (ToolInputError, ValueError):
        raise ResumeError(
            f"{said} of tool `{call.name}` holds a value that has no JSON form. Ask again."
        ) from None
    made._status = CallStatus.RESUMING
    kept = call._approval  # what was answered about other arguments does not count for these
    made._approval = Approval(
        decision,
        ticket=waiting.ticket,
        digest=digest,
        is_of_tool=waiting.was_started,
        other=kept if kept is not None and kept.digest == digest else None,
        is_open=True,
    )
    return made


def _input_of(outcome: HookOutcome) -> Any:
    if isinstance(outcome, HandledCall):
        return outcome.input
    return outcome._input if isinstance(outcome, AnyToolCall) else outcome.call._input


def _record_of(
    waiting: SuspendedCall, decision: Decision, edited: AnyToolCall, final: Any
) -> EditRecord:
    arguments = waiting.call.spec.arguments
    return EditRecord(
        decision.call_id,
        waiting.arguments,
        deepcopy(arguments.to_shown(edited._input)),
        deepcopy(arguments.to_shown(final)),
        decision.decision_id,
        decision.by,
        decision.at,
        changed_names(arguments.to_data(waiting.call._input), arguments.to_data(final)),
    )


def _settle(waiting: SuspendedCall, edited: AnyToolCall, outcome: HookOutcome) -> HookOutcome:
    """Let the call itself become what came of the edit: other plans of the round have it too."""
    call, bound = waiting.call, edited._approval
    assert bound is not None
    if isinstance(outcome, SuspendedCall):
        return _wait_again(call, outcome.call, outcome.ticket, was_started=False, by=outcome.by)
    if isinstance(outcome, AnyToolCall) and outcome.digest != bound.digest:
        return _wait_again(
            call, outcome, waiting.ticket, was_started=waiting.was_started, by=waiting.by
        )
    _adopt(call, _input_of(outcome), bound._replace(is_open=False))
    if isinstance(outcome, AnyToolCall):
        return call
    if isinstance(outcome, HandledCall):
        call.move_to(CallStatus.SUCCEEDED)
        return outcome
    call.move_to(CallStatus.CANCELLED)
    return RejectedCall(call.metadata, call, outcome.reason, outcome.source, outcome.by)


def _wait_again(
    call: AnyToolCall,
    made: AnyToolCall,
    ticket: SuspendTicket,
    *,
    was_started: bool,
    by: str | None,
) -> SuspendedCall:
    digest, kept = made.digest, made._approval
    if kept is not None:
        kept = kept._replace(is_open=False) if kept.digest == digest else None
    _adopt(call, made._input, kept)
    call.move_to(CallStatus.SUSPENDED)
    return SuspendedCall(call, ticket, digest, was_started, by)


def _adopt(call: AnyToolCall, input: Any, approval: Approval | None) -> None:
    call.move_to(CallStatus.RESUMING)
    call._input, call._approval = input, approval
    call._is_rewritten = True
