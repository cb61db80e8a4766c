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
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.line import wait_of
from .._call.outcomes import Asking, SuspendedCall
from .._call.steps import Steps
from .._context.suspension import Decision, ResumeMode
from .._hooks.pipeline import decide
from .._schema.secrets import holds_secrets
from .._text.escaping import words_of
from .._text.json import cut
from .._text.once import ONCE
from ..errors import HookError, ResumeError, ToolInputError
from .edits import unmasked
from .resume import check_decision, check_fits, check_same, find, resume, was_taken_in
from .sorted_calls import SortedCalls


def amend(calls: SortedCalls, decision: Decision, hooks: Hooks) -> Steps[HookOutcome | None]:
    """Answer one suspended call with other arguments; see `ToolRoundPlan.amend`."""
    check_decision(decision)
    if decision.edit is None:
        return resume(calls, decision)
    if was_taken_in(calls, decision):
        return None
    waiting = find(calls, decision)
    check_fits(waiting, decision)
    state, call = calls._state, waiting.call
    if call.id in state._amending:
        raise ResumeError(
            f"Decision {decision.decision_id!r} comes while an edit of call {call.id!r} of tool "
            f"`{call.name}` is with the hooks. Deliver it again once that one is through."
        )
    draft = _edited(waiting, decision, decision.edit)
    asking = Asking()
    asking.branches.append(draft)  # what is said goes on its own line
    state._amending |= {call.id}
    try:
        outcome = yield from decide(draft, hooks, asking, is_open=True, of=call)
        asking.settle(counts=False)
        if isinstance(outcome, AnyToolCall):
            _bind(waiting, draft)
    except (ToolInputError, PydanticSerializationError) as error:
        raise HookError(
            f"The hooks gave call {call.id!r} of tool `{call.name}` an input that has no "
            f"JSON form ({cut(words_of(error), 200)}). Mend what they return.",
            tool=call.name,
            call_id=call.id,
        ) from error
    finally:
        state._amending -= {call.id}
    state._check_open()
    with ONCE:
        check_same(calls, waiting, decision)
        call._become(draft)
        wait = wait_of(call._line)
        if wait is not None and wait.phase is None:
            call._append("recorded", said="suspended")
        calls._move(call.id)
        calls.note_hooks(hooks)
        calls.change(_askings=(*calls._askings, asking))
    return calls._became(call)


def _edited(waiting: SuspendedCall, decision: Decision, edit: Mapping[str, Any]) -> AnyToolCall:
    """Make a draft of the call with the arguments of the edit, approved, and open to hooks.

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
    try:
        real = call._final_arguments()
        value = spec.arguments.from_data(unmasked(waiting, plain, real))
        digest = call._digest_of(spec.arguments.to_data(value))
    except ValidationError as error:
        redact = holds_secrets(call.selector.definition.input_schema)
        issues = "; ".join(map(str, spec.issues_of(error, redact=redact)))
        raise ResumeError(f"{said} does not fit tool `{call.name}`: {issues}. Ask again.") from None
    except (ToolInputError, ValueError):
        raise ResumeError(
            f"{said} of tool `{call.name}` holds a value that has no JSON form. Ask again."
        ) from None
    draft = call._alike()
    draft._kept = draft._kept._replace(is_open=True)
    by = decision.decider
    draft._decide("answered", by=by, said="edit", digest=digest, detail=decision)
    if digest != waiting.digest:
        draft._replace_input(value, by, "decision", is_mine=True)
    return draft


def _bind(waiting: SuspendedCall, draft: AnyToolCall) -> None:
    """Let an edit that a hook changed once more wait again, as it is by then."""
    if draft.digest != draft._answers[0].digest:
        wait = wait_of(waiting.call._line)
        assert wait is not None
        draft._decide(
            "suspended",
            by=wait.by,
            phase=wait.phase,
            said=wait.said,
            digest=draft.digest,
            detail=wait.detail,
        )
