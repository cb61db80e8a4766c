"""Let hooks review a call, and write their verdicts into its history.

Hook sets, gates, rules and plain functions return types of their own, which the function that
calls them reads. From there on there is one way: the verdict is noted in the `Review` of the call,
which gets another input (`rewrite`) or a verdict; when all hooks of the pass were asked, `settle`
makes steps of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from .._schema.input_text import InputText, same
from .._schema.signature import function_name
from .._text.escaping import words_of
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import HookError, MisuseError
from .call_state import CallState
from .decisions import Complete, DecisionKind, Reject, Review, RunNormally, Verdict
from .drivers import HookGenerator
from .history import REFUSED_BY, REQUESTED_BY, RULED_BY, StepPhase, move, move_of
from .outcomes import HandledCall, RejectedCall, SuspendedCall, question_about
from .reply import reply_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .call import AnyToolCall
    from .spec import ToolSpec

_RETURN_ANOTHER = (
    "Return another one from an execution hook, as in `RunNormally(input.model_copy(update={...}))`"
)

OF_INPUT: Final = "RunNormally(input), Complete(output) or Reject(reason)"
OF_ARGUMENTS: Final = (
    "None, a mapping of the arguments to change, Complete(output) or Reject(reason)"
)
"""What hooks and rules may return that take the input, or arguments."""


def ask_function(review: Review, hooks: Any, phase: StepPhase = "execution") -> HookGenerator[None]:
    """Let a plain function, or an object with a `hook_tool_call`, review a draft of the call.

    Args:
        review: The review of the call.
        hooks: The function or object.
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
    hook, call, draft = function_name(function), review.call, review.draft()
    review.may_start = True
    try:
        given: Any = yield from ask(hook, function, call, draft)
    finally:
        review.may_start = False
    answer: Any = given  # for type checkers to narrow
    if draft._review is None:
        _take_run(hook, review, given)
        return
    for step in draft._history[len(call._history) :]:  # it may have asked a hook set
        if step.kind == "reviewed" and step.by in (REQUESTED_BY, RULED_BY):
            review.moves.append(move_of(step))
    if isinstance(answer, CallState) and answer.metadata == call.metadata:
        _go_on(hook, review, given, draft, function, phase)
        return
    by: str = getattr(given, "by", None) or hook
    if isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        verdict = Verdict("complete", by, phase, detail=output_and_result(hook, call, given))
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        reason = checked_reason(hook, call, answer.reason)
        # `call.reject()` cannot know who says it; a hook set after the function has said so.
        is_gate = answer.source == "gate"
        said: DecisionKind = "block" if is_gate else "reject"
        verdict = Verdict(said, by, "gate" if is_gate else phase, reason)
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        verdict = Verdict("suspend", by, phase, answer.ticket.action, answer.ticket)
    else:
        wanted = "the call itself, call.handled(...), call.reject(...) or call.suspend(...)"
        raise not_a_decision(hook, call, given, wanted)
    review.note(hook, phase, verdict.verdict, verdict.reason, function)
    if draft._input_at != call._input_at:  # it changed the input before it decided
        review.replace_input(draft._input, draft._described, None, None)
    if verdict.verdict == "suspend" and is_answered(call, given.digest):
        return
    review.verdict = verdict


def _take_run(hook: str, review: Review, answer: Any) -> None:
    """Take what a function answers that ran the tool itself: the outcome of the run counts.

    Raises:
        HookError: It answered something else.
    """
    call = review.target
    if isinstance(answer, HandledCall | RejectedCall | ToolResult):
        result = answer if isinstance(answer, ToolResult) else answer.result
        check_answers(hook, call, result)
        if not call._stage.is_end:
            review.moves.append(move("ended", verdict=result.status, detail=result))
        review.moves.append(move("recorded", verdict=result.status, detail=result))
    elif isinstance(answer, SuspendedCall) and call._stage.name == "suspended":
        review.moves.append(move("recorded", verdict="suspended"))
    else:
        raise hook_error(
            hook,
            call,
            f"returned {shorten(answer)}, and the call is {call.status} by now",
            "Return what `handled` gave, or what became of the run",
        )
    review.since = len(call._entries)


def settle(review: Review) -> None:
    """Let a call end or wait as was decided about it."""
    call, wait = review.call, review.edited
    if review.verdict is None:
        if wait is not None and review.is_asked_again:
            review.moves.append(move_of(wait._replace(digest=call.digest)))
            if wait.phase is None:
                review.moves.append(move("recorded", verdict="suspended"))
        return
    verdict, by, phase, reason, detail = review.verdict
    if verdict == "suspend":
        if not call._prove():  # before anybody is asked about its text
            review.verdict = unproven(call)
            settle(review)
            return
        waits = move("suspended", by=by, phase=phase, digest=call.digest, detail=detail)
        review.moves.append(waits)
        return
    status = "success" if verdict == "complete" else "rejected"
    ends = move("ended", by=by, phase=phase, verdict=status, reason=reason, detail=detail)
    review.moves.append(ends)


def output_and_result(hook: str, call: AnyToolCall, answer: Any) -> tuple[Any, ToolResult]:
    """Return the output that a hook gave a call, and its result.

    Raises:
        HookError: It does not fit, or belongs to another call.
    """
    kind: Any = answer.__class__
    if kind is Complete:
        reply = reply_in(answer.output)
        try:
            result = call._result_of(answer.output)
        except Exception as error:
            raise hook_error(
                hook, call, f"returned an unfit output: {words_of(error)}", "Fix what it returns"
            ) from error
        return (answer.output if reply is None else reply.output), result
    result = answer if kind is ToolResult else answer.result
    check_answers(hook, call, result)
    return answer.output, result


def ask_approval(review: Review) -> HookGenerator[None]:
    """Let a call wait, if it needs an approval and has none.

    Args:
        review: The review of the call, which has its final input.

    Raises:
        HookError: A condition raised, or gave something else than True or False.
    """
    call = review.call
    for condition in call.selector.approval:
        needed = True
        if condition is not True:
            needed = yield from ask(REQUESTED_BY, condition, call, call._lend_copy())
            if not isinstance(needed, bool):
                raise not_a_decision(REQUESTED_BY, call, needed, "True or False")
        if needed:
            from .._context.suspension import SuspendTicket  # needed by few, at the first question

            if not call._prove():  # before anybody is asked about its text
                review.verdict = unproven(call)
                return
            ticket = SuspendTicket(message=question_about(call))
            review.note(REQUESTED_BY, "gate", "suspend", ticket.action)
            if not is_answered(call, call.digest, by_gate=True):
                review.verdict = Verdict("suspend", REQUESTED_BY, "gate", ticket.action, ticket)
            return
    review.note(REQUESTED_BY if call.selector.approval else RULED_BY, "gate", None)


def ask_rules(review: Review) -> HookGenerator[None]:
    """Let the rules of a call's tool review it, unless they or a person did with its arguments."""
    call = review.call
    if call._is_ruled and review.edited is None:
        return
    waits = review.verdict
    for rule in call.selector.rules:
        yield from rule.review(review)
        if review.verdict is not None:
            if review.verdict.verdict != "suspend":
                return
            waits, review.verdict = waits or review.verdict, None
    review.verdict = waits


def ask_declared(review: Review) -> HookGenerator[None]:
    """Ask what a tool is declared with: its rules, and then whether it needs an approval."""
    call = review.call
    if not call.selector.needs_review or not call._stage.may_ask:
        return
    if review.verdict is None or review.verdict.verdict == "suspend":
        yield from ask_rules(review)
    if review.verdict is None:
        yield from ask_approval(review)


def _go_on(
    hook: str,
    review: Review,
    answer: AnyToolCall,
    draft: AnyToolCall,
    function: Any,
    phase: StepPhase,
) -> None:
    """Take the call that a function gave back, with the input that it now has."""
    call = review.call
    if answer.status is not call.status:
        raise hook_error(
            hook,
            call,
            f"returned the call, which is {answer.status} by now",
            "Return what `handled`, `reject` or `suspend` gave",
        )
    if answer is draft:
        try:
            answer._take_changes()
        except Exception as error:
            raise _unfit(hook, call, "left", error) from error
        is_other = draft._input_at != call._input_at
        text = draft._described
        text.kept = draft._input
    else:  # made by hand
        is_other, text = answer._input is not call._input and call._differs(answer._input), None
    if is_other:
        rewrite(hook, review, answer._input, function, phase, text)
    else:
        review.note(hook, phase, "run_normally", detail=function)


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


def hook_raised(hook: str, call: AnyToolCall, error: Exception) -> HookError:
    """Make the error for a hook that raised."""
    if isinstance(error, ValidationError) and any(
        fault["type"] == "frozen_instance" for fault in error.errors()
    ):
        what = f"assigned to `{error.title}`, which is frozen"
        return hook_error(hook, call, what, _RETURN_ANOTHER)
    return hook_error(
        hook, call, f"raised {type(error).__name__}: {words_of(error)}", "Fix the hook"
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
    hook: str, review: Review, decision: Any, shown: Any, function: Any, wanted: str
) -> None:
    """Take what an execution hook or rule decided.

    Args:
        hook: Its name.
        review: The review of the call.
        decision: What it gave.
        shown: The input that it was given.
        function: The hook.
        wanted: What it may give, in words.

    Raises:
        HookError: It is not a decision, or does not fit the call.
    """
    kind: Any = decision.__class__
    call = review.call
    if kind is RunNormally:
        # Another object may be the same input. What was done in place to the one that the call has
        # is looked for later, once.
        if decision.input is shown:
            review.note(hook, "execution", "run_normally", detail=function)
        elif call._differs(decision.input):
            rewrite(hook, review, decision.input, function, "execution", decision._text)
        else:
            call._put_back()
            review.note(hook, "execution", "run_normally", detail=function)
        return
    call._put_back()
    if kind is Complete:
        detail = output_and_result(hook, call, decision)
        verdict = Verdict("complete", hook, "execution", detail=detail)
    elif kind is Reject:
        verdict = Verdict("reject", hook, "execution", checked_reason(hook, call, decision.reason))
    else:
        raise not_a_decision(hook, call, decision, wanted)
    review.note(hook, "execution", verdict.verdict, verdict.reason, function)
    review.verdict = verdict


def rewrite(
    hook: str,
    review: Review,
    value: Any,
    function: Any,
    phase: StepPhase,
    text: InputText | None = None,
) -> None:
    """Let a call go on with the input that a hook returned.

    Args:
        hook: Its name.
        review: The review of the call.
        value: The input.
        function: The hook.
        phase: In which part of deciding.
        text: What describes the input, if it was checked already.

    Raises:
        HookError: It does not fit, or a person has decided about the one that the call has.
    """
    if text is None or not same(text.kept, value):
        value, text = _taken(hook, review, value, "returned")
    else:
        _check_free(hook, review, "returned")
    review.call._put_back()
    review.note(hook, phase, "run_normally", detail=function, text=text)
    review.replace_input(value, text, hook, phase)


def take_changes(hook: str, review: Review) -> None:
    """Take what hooks or rules did to the input in place; it is looked for once a call.

    Args:
        hook: Who did it, in words.
        review: The review of the call.

    Raises:
        HookError: It does not fit; the input is as it was.
    """
    call = review.call
    if not call._is_touched:
        return
    if call._answers and review.edited is None:
        call._put_back()  # nobody changes what was approved
        return
    review.replace_input(*_taken(hook, review, call._held[1], "left"), None, None)


def _check_free(hook: str, review: Review, did: str) -> None:
    call = review.call
    if call._answers and review.edited is None:
        call._put_back()
        raise hook_error(
            hook,
            call,
            f"{did} another input, and the input is frozen: a decision is bound to it",
            "Reject the call instead",
        )


def _taken(hook: str, review: Review, value: Any, did: str) -> tuple[Any, InputText]:
    """Check and describe the input that hooks returned, or left behind in place."""
    _check_free(hook, review, did)
    call = review.call
    try:
        return call._take(value)
    except Exception as error:
        raise _unfit(hook, call, did, error) from error
    finally:
        call._put_back()


def unproven(call: AnyToolCall) -> Verdict:
    """Refuse a call whose own arguments do not describe its input, so nobody can be asked."""
    return Verdict("reject", REFUSED_BY, "execution", call._unproven)


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
