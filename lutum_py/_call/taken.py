"""What an execution hook, a rule or a gate decided, taken into the line of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .._text.escaping import words_of
from .._transcript.result import ToolResult
from .decisions import Complete, Reject, RunNormally
from .line import StepPhase
from .outcomes import (
    Asking,
    HandledCall,
    RejectedCall,
    SuspendedCall,
    checked_reason,
    end,
    hook_error,
    no_decision,
    outcome_of,
    rewrite,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .call import AnyToolCall, HookOutcome
    from .spec import ToolSpec

_WANTED = "RunNormally(input), Complete(output) or Reject(reason)"

Settled: TypeAlias = HandledCall[Any, Any] | RejectedCall | SuspendedCall
"""A call that is not to be run, or not yet."""


def taken(
    hook: str, call: AnyToolCall, decision: Any, asking: Asking, shown: Any, wanted: str = _WANTED
) -> HookOutcome:
    """Take what an execution hook decided: the call with another input, or what became of it."""
    kind: Any = decision.__class__
    if kind is RunNormally:
        is_left = decision.input is shown
        # The same input may have been changed in place, and another object may be equal: only what
        # is another input in the end makes a new branch of the call.
        if is_left or call._differs(decision.input):
            return rewrite(hook, call, decision.input, asking, left=is_left)
        call._put_back()
        asking.note(call, hook, "hook", "run_normally")
        return call
    call._put_back()
    if kind is Complete:
        return _settle(hook, call, decision.output, asking)
    if kind is Reject:
        return _reject(hook, call, decision.reason, asking)
    raise no_decision(hook, call, decision, wanted)


def with_arguments(
    spec: ToolSpec[Any, Any], tool: str, input: Any, changes: Mapping[str, Any]
) -> RunNormally[Any]:
    """Go on with an input in which some arguments are changed.

    Raises:
        MisuseError: The function takes no such argument, or the model does not fill it in.
        ToolInputError: It does not fit.
    """
    invocation: Any = spec.invocation
    given = invocation.input_with(tool, input, changes)
    return RunNormally(spec.check_input(tool, given, by_name=invocation.whole is None))


class Gated(NamedTuple):
    """What a hook or gate answered a call with, unless something stricter comes."""

    by: str
    output: Any
    result: ToolResult


def answer_with(hook: str, call: AnyToolCall, output: Any) -> Gated:
    """Make a handled call of what a hook or gate answered."""
    try:
        handled = call._alike().handled(output)
    except Exception as error:
        raise hook_error(
            hook, call, f"returned an unfit output: {words_of(error)}", "Mend what it returns"
        ) from error
    return Gated(hook, handled.output, handled.result)


def handle(made: AnyToolCall, given: Gated, phase: StepPhase) -> Settled:
    """Let a branch that nobody else has yet be answered."""
    end(made, "success", by=given.by, phase=phase, detail=(given.output, given.result))
    return outcome_of(made)


def _settle(hook: str, call: AnyToolCall, output: Any, asking: Asking) -> Settled:
    given = answer_with(hook, call, output)
    made = asking.branch(call)
    asking.note(made, hook, "hook", "complete")
    return handle(made, given, "hook")


def _reject(hook: str, call: AnyToolCall, reason: str, asking: Asking) -> Settled:
    said = checked_reason(hook, call, reason)
    made = asking.branch(call)
    asking.note(made, hook, "hook", "reject", said)
    end(made, "rejected", by=hook, phase="hook", reason=said)
    return outcome_of(made)
