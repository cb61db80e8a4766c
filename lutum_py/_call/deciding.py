"""Let hooks review a call, and write their verdicts into its history.

Hook sets, gates, rules and plain functions return types of their own, which the function that
calls them reads. From there on there is one way: the verdict is noted, and if the call does not go
on as it is, it gets a branch, with another input (`rewrite`) or an end (`settle`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from .._schema.input_text import InputText, same
from .._schema.signature import function_name
from .._text.escaping import words_of
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import HookError, MisuseError
from .call_state import CallState
from .decisions import Complete, DecisionKind, HookRun, Reject, RunNormally
from .drivers import HookGenerator
from .history import REQUESTED_BY, RULED_BY, StepPhase
from .outcomes import HandledCall, RejectedCall, SuspendedCall, outcome_of, question_about, suspend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .call import AnyToolCall, HookOutcome
    from .spec import ToolSpec

_RETURN_ANOTHER = (
    "Return another one from an execution hook, as in `RunNormally(input.model_copy(update={...}))`"
)

Settled: TypeAlias = HandledCall[Any, Any] | RejectedCall | SuspendedCall
"""A call that is not to be run, or not yet."""

OF_INPUT: Final = "RunNormally(input), Complete(output) or Reject(reason)"
OF_ARGUMENTS: Final = (
    "None, a mapping of the arguments to change, Complete(output) or Reject(reason)"
)
"""What hooks and rules may return that take the input, or arguments."""


def ask_function(
    call: AnyToolCall, hooks: Any, hook_run: HookRun, phase: StepPhase = "execution"
) -> HookGenerator[HookOutcome | DeferredSuspension]:
    """Let a plain function, or an object with a `hook_tool_call`, review a draft of the call.

    One that is to wait is given back as `DeferredSuspension`: rules review it before it does.

    Args:
        call: The call; it is not changed.
        hooks: The function or object.
        hook_run: Takes its verdict.
        phase: In which part of deciding.

    Raises:
        HookError: It raised, or gave something that is not a decision.
    """
    function = getattr(hooks, "hook_tool_call", hooks)
    toolset = getattr(function, "__self__", None)
    if getattr(function, "__name__", None) == "HookSet" and isinstance(toolset, type):
        raise HookError(
            "Hooks are a HookSet, not the method that makes one. Call it: "
            f"`{toolset.__qualname__}.HookSet()`."
        )
    if not callable(function) or isinstance(hooks, type):
        raise HookError(
            f"Hooks are a HookSet, or a function of a call, not {shorten(hooks)}. Make a hook set "
            "with `AppTools.HookSet()`."
        )
    hook = function_name(function)
    draft = call._draft()
    try:
        given: Any = yield from ask(hook, function, call, draft)
    finally:
        draft._give_up(call)
    answer: Any = given  # for type checkers to narrow
    if isinstance(answer, CallState) and answer.metadata == call.metadata:
        return _go_on(hook, call, given, hook_run, phase)
    by: str = getattr(given, "by", None) or hook
    if isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        verdict = Verdict("complete", by, phase, detail=output_and_result(hook, call, given))
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        draft, reason = answer.call, checked_reason(hook, call, answer.reason)
        # `call.reject()` cannot know who says it; a hook set after the function has said so.
        is_gate = answer.source == "gate"
        said: DecisionKind = "block" if is_gate else "reject"
        verdict = Verdict(said, by, "gate" if is_gate else phase, reason)
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        draft, ticket = answer.call, answer.ticket
        verdict = Verdict("suspend", by, phase, ticket.action, ticket)
    else:
        wanted = "the call itself, call.handled(...), call.reject(...) or call.suspend(...)"
        raise not_a_decision(hook, call, given, wanted)
    # A function may have done something with its draft before it answered: started it, or changed
    # its input. That is repeated on the branch, so that the history tells it.
    done = draft._history[len(call._history) :]
    hook_run.note(call, hook, phase, verdict.verdict, verdict.reason)
    if verdict.verdict == "suspend" and is_answered(call, given.digest):
        return call
    made = hook_run.branch(call)
    # Then comes what the function did with the call that it was given, except its end.
    for step in done:
        if step.kind in ("started", "reviewed"):
            made._append(step.kind, by=step.by, phase=step.phase, verdict=step.verdict)
    if any(step.kind == "changed" for step in done):
        made._replace_input(draft._input, draft._described)
    if verdict.verdict == "suspend" and made._stage.may_start:
        return DeferredSuspension(made, verdict)
    return settle(made, verdict, hook_run)


class DeferredSuspension(NamedTuple):
    """A call that waits once all rules have reviewed it: they may still change it, or end it."""

    call: AnyToolCall
    verdict: Verdict


class Verdict(NamedTuple):
    """Why a call does not go on: the verdict, of whoever reviewed it, in one shape.

    Attributes:
        verdict: What was decided.
        by: Who did.
        phase: In which part of deciding.
        reason: Why; of a suspension, what is asked.
        detail: A ticket, or the output with its result.
    """

    verdict: DecisionKind
    by: str
    phase: StepPhase
    reason: str | None = None
    detail: Any = None


def settle(call: AnyToolCall, verdict: Verdict, hook_run: HookRun) -> Settled:
    """Let a branch of a call end or wait as was decided."""
    said, by, phase, reason, detail = verdict
    made = hook_run.branch(call)
    if said == "suspend":
        if made._stage.may_start and not made._prove():
            return settle(made, unproven(made), hook_run)
        return suspend(made, detail, by, phase)
    status = "success" if said == "complete" else "rejected"
    made._append("ended", by=by, phase=phase, verdict=status, reason=reason, detail=detail)
    return outcome_of(made)


def output_and_result(hook: str, call: AnyToolCall, answer: Any) -> tuple[Any, ToolResult]:
    """Return the output that a hook gave a call, and its result.

    Raises:
        HookError: It does not fit, or belongs to another call.
    """
    kind: Any = answer.__class__
    if kind is Complete:
        try:
            answer = call._clone().handled(answer.output)
        except Exception as error:
            raise hook_error(
                hook, call, f"returned an unfit output: {words_of(error)}", "Coerce what it returns"
            ) from error
    result: ToolResult = answer if kind is ToolResult else answer.result
    check_answers(hook, call, result)
    return answer.output, result


def ask_approval(call: AnyToolCall, hook_run: HookRun) -> HookGenerator[Verdict | None]:
    """Say that a call waits, if it needs an approval and has none.

    Args:
        call: The call, with its final input; it is not changed.
        hook_run: Takes the verdicts.

    Raises:
        HookError: A condition raised, or gave something else than True or False.
    """
    known = call._history
    for condition in call.selector.approval:
        needed = True
        if condition is not True:
            needed = yield from ask(REQUESTED_BY, condition, call, call._lend_copy())
            if not isinstance(needed, bool):
                raise not_a_decision(REQUESTED_BY, call, needed, "True or False")
        if needed:
            from .._context.suspension import SuspendTicket  # needed by few, at the first question

            if not call._prove():  # before anybody is asked about its text
                return unproven(call)
            ticket = SuspendTicket(message=question_about(call))
            hook_run.note(call, REQUESTED_BY, "gate", "suspend", ticket.action)
            if is_answered(call, call.digest, by_gate=True):
                return None
            return Verdict("suspend", REQUESTED_BY, "gate", ticket.action, ticket)
    if any(step.kind == "changed" for step in call._history[len(known) :]):
        raise hook_error(
            REQUESTED_BY,
            call,
            "reviewed arguments that were changed meanwhile",
            "Change the input before hooks review it, or after",
        )
    hook_run.note(call, REQUESTED_BY if call.selector.approval else RULED_BY, "gate", None)
    return None


def ask_function_and_rules(
    call: AnyToolCall, hooks: Any, hook_run: HookRun
) -> HookGenerator[HookOutcome]:
    """Let a plain function review a call, and then what its tool is declared with."""
    outcome = yield from ask_function(call, hooks, hook_run)
    if isinstance(outcome, DeferredSuspension):
        return (yield from ask_rules(outcome.call, hook_run, outcome.verdict))
    if isinstance(outcome, CallState) and outcome.selector.needs_review:
        return (yield from ask_rules_and_approval(outcome, hook_run))
    return outcome


def ask_rules_and_approval(call: AnyToolCall, hook_run: HookRun) -> HookGenerator[HookOutcome]:
    """Let the rules of a call's tool review it, and find whether it needs an approval."""
    outcome = yield from ask_rules(call, hook_run)
    if not isinstance(outcome, CallState):
        return outcome
    verdict = yield from ask_approval(outcome, hook_run)
    return outcome if verdict is None else settle(outcome, verdict, hook_run)


def ask_rules(
    call: AnyToolCall, hook_run: HookRun, verdict: Verdict | None = None
) -> HookGenerator[HookOutcome]:
    """Let the rules of a call's tool review it, unless a person has decided about its arguments.

    Args:
        call: The call; it is not changed.
        hook_run: Takes the verdicts.
        verdict: Why the call is to wait if they all let it pass, if it is.
    """
    rules = () if call._is_ruled and not call._round.is_editable else call.selector.rules
    for rule in rules:
        said: HookOutcome | DeferredSuspension = yield from rule.review(call, hook_run)
        if isinstance(said, DeferredSuspension):
            call, verdict = said.call, verdict or said.verdict
        elif isinstance(said, CallState):
            call = said
        else:
            return said
    call = take_changes(call, hook_run)
    return call if verdict is None else settle(call, verdict, hook_run)


def _go_on(
    hook: str, call: AnyToolCall, answer: AnyToolCall, hook_run: HookRun, phase: StepPhase
) -> AnyToolCall:
    """Take the call that a function gave back, with the input that it now has."""
    if answer.status is not call.status:
        raise hook_error(
            hook,
            call,
            f"returned the call, which is {answer.status} by now",
            "Return what `handled`, `reject` or `suspend` gave",
        )
    text = None
    if answer._own_history[0].at == call._own_history[0].at:  # a draft or branch of the call
        try:
            answer._take_changes()
        except Exception as error:
            raise _unfit(hook, call, "left", error) from error
        had = sum(step.kind == "changed" for step in call._history)
        is_other = sum(step.kind == "changed" for step in answer._history) > had
        value, text = answer._input, answer._described
        text.kept = value
    else:  # made by hand
        value = answer._input
        is_other = value is not call._input and call._differs(value)
    if not is_other:
        hook_run.note(call, hook, phase, "run_normally")
        return call
    return rewrite(hook, call, value, hook_run, phase, text)


def ask(hook: str, function: Any, call: AnyToolCall, *arguments: Any) -> HookGenerator[Any]:
    """Call one hook, and await its verdict if it is async."""
    try:
        answer = function(*arguments)
        if hasattr(answer, "__await__"):
            answer = yield hook, answer
    except Exception as error:
        call._put_back()
        raise hook_raised(hook, call, error) from error
    except BaseException:
        call._put_back()
        raise
    return answer


def unproven(call: AnyToolCall) -> Verdict:
    """Refuse a call whose own arguments do not describe its input, so nobody can be asked."""
    return Verdict("reject", "input", "execution", call._unproven)


def take_changes(call: AnyToolCall, hook_run: HookRun) -> AnyToolCall:
    """Take in what hooks and rules did to the input in place, in a branch of the call.

    Raises:
        HookError: It does not fit; the input is as it was.
    """
    if not call._is_touched:
        return call
    given = call._cache
    if call._answers and not call._round.is_editable:
        call._put_back()  # nobody changes what was approved
        return call
    try:
        taken = call._take(given)
    except Exception as error:
        raise _unfit("of those asked", call, "left", error) from error
    finally:
        call._put_back()
    made = hook_run.branch(call)
    made._replace_input(*taken)
    return made


def hook_raised(hook: str, call: AnyToolCall, error: Exception) -> HookError:
    """Make the error for a hook that raised."""
    if isinstance(error, ValidationError) and any(
        fault["type"] == "frozen_instance" for fault in error.errors()
    ):
        what = f"assigned to `{error.title}`, which is frozen"
        return hook_error(hook, call, what, _RETURN_ANOTHER)
    return hook_error(
        hook, call, f"raised {type(error).__name__}: {words_of(error)}", "Coerce the hook"
    )


def is_answered(call: AnyToolCall, digest: str, *, by_gate: bool = False) -> bool:
    """Whether what asked before the run is decided, about the call as this digest names it.

    Args:
        call: The call.
        digest: Names tool, schema and arguments.
        by_gate: Whether a gate has to have asked: what a function of the program asks is another
            question than whether the call may run.
    """
    answer = call._answer_of(tool=False)
    if answer is None or answer.digest != digest:
        return False
    return answer.is_of_gate or not by_gate


def apply_decision(
    hook: str, call: AnyToolCall, decision: Any, hook_run: HookRun, shown: Any, wanted: str
) -> HookOutcome:
    """Take what an execution hook or rule decided: the call, or what became of it.

    Args:
        hook: Its name.
        call: The call.
        decision: What it gave.
        hook_run: Takes its verdict.
        shown: The input that it was given.
        wanted: What it may give, in words.

    Raises:
        HookError: It is not a decision, or does not fit the call.
    """
    kind: Any = decision.__class__
    if kind is RunNormally:
        value = decision.input
        # Another object may be the same input: a new branch of the call is made only if the
        # values differ. What was done in place to the one that it has is looked for later, once.
        if value is not shown:
            if call._differs(value):
                return rewrite(hook, call, value, hook_run, "execution", decision._text)
            call._put_back()
        hook_run.note(call, hook, "execution", "run_normally")
        return call
    call._put_back()
    if kind is Complete:
        verdict = Verdict(
            "complete", hook, "execution", detail=output_and_result(hook, call, decision)
        )
    elif kind is Reject:
        verdict = Verdict("reject", hook, "execution", checked_reason(hook, call, decision.reason))
    else:
        raise not_a_decision(hook, call, decision, wanted)
    hook_run.note(call, hook, "execution", verdict.verdict, verdict.reason)
    return settle(call, verdict, hook_run)


def rewrite(
    hook: str,
    call: AnyToolCall,
    value: Any,
    hook_run: HookRun,
    phase: StepPhase,
    text: InputText | None = None,
) -> AnyToolCall:
    """Give a branch of the call the input that a hook returned.

    Args:
        hook: Its name.
        call: The call.
        value: The input.
        hook_run: Takes what it said.
        phase: In which part of deciding.
        text: What describes the input, if it was checked already.

    Raises:
        HookError: It does not fit, or a person has decided about the one that the call has.
    """
    if call._answers and not call._round.is_editable:
        call._put_back()
        raise hook_error(
            hook,
            call,
            "returned another input, and the input is frozen: a decision is bound to it",
            "Reject the call instead",
        )
    try:
        if text is None or not same(text.kept, value):
            value, text = call._take(value)
    except Exception as error:
        raise _unfit(hook, call, "returned", error) from error
    finally:
        call._put_back()
    made = hook_run.branch(call)
    hook_run.note(made, hook, phase, "run_normally", text=text)
    made._replace_input(value, text, hook, phase)
    return made


def with_arguments(
    spec: ToolSpec[Any, Any], tool: str, input: Any, changes: Mapping[str, Any]
) -> RunNormally[Any]:
    """Go on with an input in which some arguments are changed.

    Raises:
        MisuseError: The function takes no such argument, or the model does not fill it in.
        ToolInputError: It does not fit.
    """
    invocation: Any = spec.invocation
    named: dict[str, Any] = {}
    for name, value in changes.items():
        parameter = spec.parameter_named(name) or name
        if parameter in named:
            raise MisuseError(
                f"{shorten(name)} is another name of parameter `{parameter}` of tool `{tool}`, "
                "which is changed already. Change it once."
            )
        named[parameter] = value
    given = invocation.input_with(tool, input, named)
    is_by_name = invocation.whole is None
    if spec.arguments.is_faithful:
        return RunNormally._of(*spec.take(tool, given, by_name=is_by_name))
    # What did not change was validated, and would be converted a second time.
    if is_by_name:
        given = input.model_copy(
            update={name: part for name, part in given.items() if part is not getattr(input, name)}
        )
    return RunNormally(given)


def _unfit(hook: str, call: AnyToolCall, did: str, error: Exception) -> HookError:
    remedy = "Fix what it returns" if did == "returned" else "Fix what it does to the input"
    return hook_error(hook, call, f"{did} an unfit input: {words_of(error)}", remedy)


def check_answers(hook: str, call: AnyToolCall, result: ToolResult) -> None:
    """Make sure that a result belongs to this call."""
    if not result.answers(call):
        raise hook_error(
            hook,
            call,
            f"returned a result of another call, {shorten(result.id)} of tool "
            f"{shorten(result.name)}",
            "Make it from this call, as `call.complete(output)` does",
        )


def checked_reason(hook: str, call: AnyToolCall, reason: object) -> str:
    """Make sure that a reason is a text."""
    if not isinstance(reason, str):
        raise hook_error(
            hook,
            call,
            f"gave {shorten(reason)} as a reason",
            "Give a text: the model reads it",
        )
    return reason


def not_a_decision(hook: str, call: AnyToolCall, answer: object, wanted: str) -> HookError:
    """Make the error for a return value that is not a decision."""
    return hook_error(hook, call, f"returned {shorten(answer)}", f"Return {wanted}")


def hook_error(hook: str, call: AnyToolCall, what: str, remedy: str) -> HookError:
    """Make the error that names hook, tool and call."""
    return HookError(
        f"Hook `{hook}` for tool `{call.name}` (call {call.id!r}) {what.rstrip('.')}. {remedy}.",
        hook=hook,
        tool=call.name,
        call_id=call.id,
    )
