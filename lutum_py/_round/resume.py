"""Take in a decision about a call that waits: check all, then change the plan.

An edit is new input, so it goes where input goes: through the validation and the hooks. The person
approved the edited arguments and nothing else. If the hooks leave these unchanged, the call is
approved; if a hook changes them once more, it waits again, with the new arguments.

Hooks may have to be awaited. A decision that is taken in meanwhile counts, so that a cancel never
has to wait. Two edits of one call never go through hooks at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from .._call.call import HookOutcome, Hooks, SuspendedCall
from .._call.call_state import DecodedCall
from .._call.deciding import Review
from .._call.drivers import HookGenerator
from .._call.history import Move, Step, move
from .._context.suspension import Decision, ResumeMode
from .._hooks.pipeline import review_all
from .._schema.field_issues import field_issues
from .._schema.schema_check import schema_faults
from .._schema.secrets import MASK, Masking
from .._text.escaping import escape_unprintable
from .._text.json import canonical_json, compact_json, is_array, is_object, shorten
from .._transcript.result import ToolResult
from ..errors import MisuseError, ResumeError, ToolOutputError
from .sorted_calls import RoundState


def resume(state: RoundState, decision: Decision) -> HookOutcome | None:
    """Decide about one suspended call of a plan; see `ToolRoundPlan.resume`."""
    waiting = _asked(state, decision)
    if waiting is None:
        return None
    call = waiting.call._record
    wait = call.history.wait
    if decision.edit is not None:
        raise ResumeError(
            f"Decision {decision.decision_id!r} edits the arguments of call {call.id!r} of tool "
            f"`{call.name}`, and an edit goes through hooks. Write `await plan.amend(decision, "
            "hooks)`, or `plan.amend_sync(decision, hooks)`."
        )
    as_output = None
    if decision.action == "resume" and waiting.ticket.resume_mode is _AS_RESULT:
        as_output = _as_output(waiting, decision)
    by, digest = decision.decider, waiting.digest
    moves: list[Move] = [
        move("decided", by=by, verdict=decision.action, digest=digest, detail=decision)
    ]
    if decision.action == "cancel":
        why = decision.reason or "the call was not approved."
        moves.append(move("ended", by=by, phase="decision", verdict="cancelled", reason=why))
    elif as_output is not None:
        moves.append(move("ended", by=by, phase="decision", verdict="success", detail=as_output))
    _take(state, decision, wait, call, moves)
    return _outcome(state, call)


def _outcome(state: RoundState, call: DecodedCall) -> HookOutcome:
    became = state.entry_of(call).value
    outcome: HookOutcome = call.call if became is call else became
    return outcome


def _take(
    state: RoundState, decision: Decision, wait: Step | None, call: DecodedCall, moves: list[Move]
) -> int:
    """Write what a decision does, if the call still waits for the same."""
    while True:
        since = len(call.entries)
        _find(state, decision, wait)
        number = call.append_all(tuple(moves), since)
        if number is not None:
            return number


_AS_RESULT = ResumeMode.USE_DECISION_AS_TOOL_RESULT


def check_decision(decision: object) -> None:
    """Check that this is a decision.

    Raises:
        MisuseError: It is not.
    """
    if not isinstance(decision, Decision):
        raise MisuseError(
            f"{shorten(decision)} is not a decision. Make one with `waiting.approve()`, "
            "`waiting.cancel(reason)` or `waiting.edit(changes)`."
        )


def _asked(state: RoundState, decision: Decision) -> SuspendedCall | None:
    """Find the call that a decision is about; None if it was taken in before.

    Raises:
        ResumeError: The decision is about no call that waits, or does not fit it.
    """
    check_decision(decision)
    call = state.find_decoded(decision.call_id)
    taken_in = () if call is None else [s.detail for s in call.history.of_kind("decided")]
    if any(each is not None and each.decision_id == decision.decision_id for each in taken_in):
        return None
    waiting = _find(state, decision)
    for fault in _faults(state, waiting, decision):
        raise ResumeError(f"Decision {decision.decision_id!r} {fault}")
    return waiting


def _find(state: RoundState, decision: Decision, wait: Step | None = None) -> SuspendedCall:
    """Find the call that a decision is about: it still waits, and for the same.

    Args:
        state: The state of the round.
        decision: The decision.
        wait: The step by which it waited before anything else was looked at. Not the ticket: a tool
            may ask twice with the same one.
    """
    found = state.find_decoded(decision.call_id)
    waiting = None if found is None else state.entry_of(found).value
    # One that waits may have been given up by `call.reject`, which no plan is told about.
    if found is None or not isinstance(waiting, SuspendedCall) or found.stage.name != "suspended":
        was_decided = found is not None and any(found.history.of_kind("decided"))
        why = ", because it was decided on already" if was_decided else ""
        suspended = [each.call.id for each in state.lists.suspended]
        others = "No call of this plan waits for a decision."
        if suspended:
            others = f"Suspended: {suspended}. Pass a decision for one of these."
        raise ResumeError(
            f"Decision {decision.decision_id!r} is for call {decision.call_id!r}, which is not "
            f"suspended in this plan{why}. {others}"
        )
    if wait is not None and wait != found.history.wait:
        raise ResumeError(
            f"Decision {decision.decision_id!r} comes too late: meanwhile call {waiting.call.id!r} "
            f"of tool `{waiting.call.name}` went on, and waits for another one. {_AGAIN}"
        )
    return waiting


_MASKED = f'"{MASK}"'
_AGAIN = "Show the call as it is now, and ask again."


def _faults(state: RoundState, waiting: SuspendedCall, decision: Decision) -> Iterator[str]:
    """Explain why a decision is not about the call as it is, or not about its ticket."""
    call, ticket, result = waiting.call._record, waiting.ticket, decision.result
    named = f"call {call.id!r} of tool `{call.name}`"
    is_resume = decision.action == "resume"
    if decision.digest is None and is_resume:
        yield (
            f"to resume {named} carries no digest, so nobody knows which arguments were approved. "
            "Make it with `waiting.approve()`, or pass `digest=` as it was shown."
        )
    if decision.digest not in (None, waiting.digest):
        yield (
            f"was made on another version of {named}: it carries digest "
            f"{shorten(decision.digest)}, the call has {waiting.digest!r}. {_AGAIN}"
        )
    if decision.ticket is None and len([*call.history.of_kind("suspended")]) > 1:
        yield (
            f"names no ticket, and {named} has waited before, so nobody knows what it is about. "
            "Make it with `waiting.approve()` and its like, or pass `ticket=` as it was shown."
        )
    if decision.ticket not in (None, ticket.id):
        yield (
            f"is not about what {named} waits for: it is for ticket "
            f"{shorten(decision.ticket)}, and the call waits under {shorten(ticket.id)}. {_AGAIN}"
        )
    # Ids of calls and tickets may be the same in two conversations, since some providers number the
    # calls of a turn. The name of the round tells such decisions apart, if both sides know it.
    stored = state.stored
    known = {call.round.requested_in, None if stored is None else stored.round} - {None}
    if decision.requested_in is not None and known and decision.requested_in not in known:
        yield (
            f"is not about what {named} waits for: it was made about a call of another "
            f"round, or of another conversation. {_AGAIN}"
        )
    try:  # no saved plan could hold anything else
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"has a result for {named} that is not JSON data ({error}). Pass plain data."
    schema = ticket.response_schema
    is_read = ticket.resume_mode is not ResumeMode.REPLAY_TOOL_CALL or schema is not None
    if result is not None and not (is_resume and is_read):
        what = "only lets it run" if is_resume else "cancels"
        yield (
            f"has a result for {named}, which nobody would read: it {what}. Leave `result=` out, "
            "or suspend with a ticket of another `resume_mode`."
        )
    if is_resume and schema is not None:
        faults = schema_faults(f"the response schema of suspension {ticket.id!r}", schema, result)
        if faults:
            yield (
                f"has a result for {named} that does not fit the response schema: "
                f"{'; '.join(faults)}. Ask again, and pass what fits, as in "
                "`waiting.approve(result=...)`."
            )


def _as_output(waiting: SuspendedCall, decision: Decision) -> tuple[Any, ToolResult]:
    """Read the decision's result as the tool's output, and as its result."""
    call = waiting.call._record
    try:
        output = call.spec.output.validate_json(compact_json(decision.result))
        return output, call.result_of(output)
    except (ValidationError, ToolOutputError) as error:
        found = Masking(call.selector.definition.output_schema or {}).found
        fields = (
            field_issues(error, redact=found)
            if isinstance(error, ValidationError)
            else error.fields
        )
        issues = "; ".join(str(issue) for issue in fields)
        raise ResumeError(
            f"The result of decision {decision.decision_id!r} for call {call.id!r} does not fit "
            f"the output type of tool `{call.name}`: {issues}. Ask again."
        ) from None


# Edits.


def amend(state: RoundState, decision: Decision, hooks: Hooks) -> HookGenerator[HookOutcome | None]:
    """Decide about one suspended call with other arguments; see `ToolRoundPlan.amend`."""
    check_decision(decision)
    if decision.edit is None:
        return resume(state, decision)
    waiting = _asked(state, decision)
    if waiting is None:
        return None
    call = waiting.call._record
    wait = call.history.wait
    # Hooks are shown a draft. So nothing of the edit is in a history before it is taken in, and a
    # `cancel` that comes while a hook is awaited finds the call as it was, waiting.
    review = _edited(waiting, wait, decision, decision.edit)
    if state.amending.setdefault(call.id, review) is not review:  # one of two threads has it
        raise ResumeError(
            f"Decision {decision.decision_id!r} comes while an edit of call {call.id!r} of tool "
            f"`{call.name}` is with the hooks. Deliver it again once that one is through."
        )
    try:
        yield from review_all([review], hooks)
    finally:
        del state.amending[call.id]
    state.check_open()
    state.note_hooks(hooks)
    if review.call is call:  # a function ran it, and the edit was taken in with the start
        Review.write_all([review])
    else:
        number = _take(state, decision, wait, call, review.moves)
        call.take_over(review.call, number)
    return _outcome(state, call)


def _edited(
    waiting: SuspendedCall, wait: Step | None, decision: Decision, edit: Mapping[str, Any]
) -> Review:
    """Begin the review of a call with the arguments of the edit, approved, and open to hooks.

    Raises:
        ResumeError: The arguments do not fit the tool, or there is no use for them.
    """
    call, spec = waiting.call._record, waiting.call.spec
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
        data = _unmasked(call, plain, waiting.arguments, call.text_or_raise().data)
        value, text = spec.arguments.edited(call.described, data)
        digest = call.digest_of(text)
    except ValidationError as error:
        issues = "; ".join(map(str, spec.issues_of(error)))
        end = "" if issues.endswith("?") else "."
        raise ResumeError(
            f"{said} does not fit tool `{call.name}`: {issues}{end} Ask again."
        ) from None
    by = decision.decider
    review = Review(call)
    review.edited = wait
    review.call = review.draft()
    decided: Move = move("decided", by=by, verdict="edit", digest=digest, detail=decision)
    review.call.append_all((decided,))
    review.moves.append(decided)
    if digest != waiting.digest:
        review.changes_more = not call.keeps_rest(value, text)
        review.replace_input(value, text, by, "decision")
    return review


# Shown `{"to": "eve", "key": "**********"}`, edited to `{"to": "bob", "key": "**********"}`: the
# key stays the real one, since that part is as it was shown. It is compared part by part, from the
# outside in, because a person may also type ten stars and mean them.
def _unmasked(call: DecodedCall, edit: Any, shown: Any, real: Any, path: str = "") -> Any:
    """Return the arguments of an edit with what is left masked in it as it really is.

    Raises:
        ResumeError: A mask is in a list that was edited, or under a key that was not there, so
            nobody knows which secret is meant.
    """
    own = canonical_json(shown)
    if own == canonical_json(real):  # nothing of it was masked
        return edit
    if own == canonical_json(edit):
        return real
    if is_object(edit) and is_object(shown) and is_object(real):
        # What was not shown at all could not be left out.
        is_kept = MASK in edit or MASK not in shown
        made = {name: part for name, part in real.items() if name not in shown and is_kept}
        for name, each in edit.items():
            if name == each == MASK and name in shown and name not in real:
                continue  # stands for all the keys that are secret themselves
            place = f"{path}.{name}" if path else name
            is_known = name in shown and name in real
            made[name] = (
                _unmasked(call, each, shown[name], real[name], place)
                if is_known
                else _without_masks(call, each, own, place)
            )
        return made
    return _without_masks(call, edit, own, path)


def _without_masks(call: DecodedCall, edit: Any, own: str, path: str) -> Any:
    """Return a part of an edit that stands for none that was shown, as `own`, with masks in it."""
    if _MASKED in compact_json(edit) and _MASKED in own:
        what = "the list " * is_array(edit)
        raise ResumeError(
            f"The edit of call {call.id!r} of tool `{call.name}` changes "
            f"{what}`{escape_unprintable(path)}` and leaves a mask in it, so that nobody knows "
            "which secret is meant. Give the secrets in it again, or leave it as it is shown."
        )
    return edit
