"""What becomes of a call before anyone runs it: handled, rejected, suspended, or not usable.

Also how one function is asked about it, and how its answer is taken.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from .._schema.signature import function_name
from .._text.escaping import words_of
from .._text.immutable import dataclass
from .._text.json import compact_json, shorten
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, make_result, rejection
from ..errors import FieldIssue, HookError
from .approval_gate import ASKED_BY, question_about
from .asked import Asked
from .call_state import CallState
from .steps import Steps

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket
    from .call import AnyToolCall, HookOutcome
    from .decision_log import DecisionKind, DecisionRecord

__all__ = [
    "ContinueSuggestion",
    "HandledCall",
    "IssueReason",
    "RecoverableToolCallIssue",
    "RejectedCall",
    "RejectionSource",
    "SuspendedCall",
    "ask",
    "ask_approval",
    "ask_function",
    "check_answers",
    "check_untouched",
    "checked_reason",
    "hook_error",
    "is_answered",
    "no_decision",
    "raised",
    "rewrite",
    "shown_input",
]

In = TypeVar("In")
Out = TypeVar("Out")

RejectionSource: TypeAlias = Literal["hook", "gate", "user", "decision"]
"""Who rejected a call: an execution hook, a gate that blocked it, the user's own code, or whoever
decided to cancel it while it was suspended."""

IssueReason: TypeAlias = Literal["unknown_tool", "not_available", "invalid_arguments"]


@dataclass(frozen=True, slots=True)
class HandledCall(Generic[In, Out]):
    """A call that got its output without being run.

    Attributes:
        metadata: The call as the model sent it.
        input: Its input when it was handled.
        output: The output that it got.
        result: The same, encoded.
        by: Who answered: the name of a hook or gate, or of a person; None for the program itself.
    """

    metadata: ToolMetadata
    input: In
    output: Out
    result: ToolResult
    by: str | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return (HandledCall, (self.metadata, self.input, self.output, self.result, self.by))


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that will not be run, and why.

    Attributes:
        metadata: The call as the model sent it.
        call: The call, with its input when it was rejected.
        reason: What the model is told.
        source: What rejected it.
        by: Who that was: the name of a hook or gate, or of a person; None for the program itself.
    """

    metadata: ToolMetadata
    call: AnyToolCall
    reason: str
    source: RejectionSource = "user"
    by: str | None = field(default=None, compare=False)

    @property
    def result(self) -> ToolResult:
        """The standard result of a call that was rejected, or cancelled by a decision."""
        if self.source == "decision":
            text = f"Cancelled: {self.reason}"
            return make_result(self.metadata, "null", "cancelled", text)
        return rejection(self.metadata, self.reason)


@dataclass(frozen=True, slots=True)
class SuspendedCall(Asked):
    """A call that waits for a decision.

    Attributes:
        call: The call; its input is frozen.
        ticket: What is asked, and how the answer is used.
        digest: Names the tool, its schema and the final arguments: what an approval is bound to.
        was_started: Whether the tool suspended itself after it was started.
        by: The name of the hook or gate that asks; None for the tool, or the program itself.
    """

    call: AnyToolCall
    ticket: SuspendTicket
    digest: str
    was_started: bool = False
    by: str | None = field(default=None, compare=False)

    # What a result has as well, so that an outcome is asked without looking at its class first.

    @property
    def is_pending(self) -> bool:
        """Whether the call waits for a decision, which it does."""
        return True

    @property
    def is_success(self) -> bool:
        """Whether the tool did what it was asked: not yet."""
        return False

    @property
    def is_error(self) -> bool:
        """Whether the call ended in any other way than success: it has not ended."""
        return False

    def to_json(self) -> dict[str, Any]:
        """Give the outcome as plain data, in the shape of Awaken's tool result.

        Returns:
            What `ToolResult.to_json` gives, of the status `pending`, and in `suspension` the ticket
            with the call that waits. Its arguments are the final ones, with secrets masked.
        """
        ticket, call = self.ticket.to_dict(), self.call
        mode = ticket.pop("resume_mode")
        pending = {"id": call.id, "name": call.name, "arguments": self.arguments}
        return {
            "tool_name": call.name,
            "status": "pending",
            "data": None,
            "message": self.ticket.message,
            "suspension": {"suspension": ticket, "pending": pending, "resume_mode": mode},
        }

    @property
    def arguments(self) -> Any:
        """The final arguments as plain data, defaults included: what is shown to whoever decides.

        What pydantic masks, such as a `SecretStr`, is masked here.
        """
        return self.call.spec.arguments.to_shown(self.call.input)

    def _of(self) -> tuple[str, str, str]:
        return self.call.id, self.call.name, self.digest


@dataclass(frozen=True, slots=True)
class RecoverableToolCallIssue:
    """A call that cannot be used, and what the model is told so that it can do better.

    Attributes:
        metadata: The call as the model sent it.
        reason: `unknown_tool`, `not_available` or `invalid_arguments`.
        text: What the model is told.
        fields: For invalid arguments, one entry for each failing field.
        suggestion: For an unknown tool, the nearest name on offer.
    """

    metadata: ToolMetadata
    reason: IssueReason
    text: str
    fields: tuple[FieldIssue, ...] = ()
    suggestion: str | None = None

    @property
    def result(self) -> ToolResult:
        """The standard rejection that answers the call unless the user gives another result."""
        return rejection(self.metadata, self.text, code=self.reason)


@dataclass(frozen=True, slots=True)
class ContinueSuggestion:
    """Say why the model should go on: it made calls that could not be used.

    Attributes:
        call_ids: The ids of those calls.
        text: The same for people.
    """

    call_ids: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, issues: tuple[RecoverableToolCallIssue, ...]) -> ContinueSuggestion | None:
        """Make the suggestion that issues give reason for, if there are any."""
        if not issues:
            return None
        count = len(issues)
        text = (
            f"{count} tool call{'s' * (count != 1)} could not be used; the model is told why, and "
            "can correct itself when it is asked again."
        )
        return cls(tuple(issue.metadata.id for issue in issues), text)


# Asking one function about one call: what hook sets, gates and plain functions share.


def ask_function(
    call: AnyToolCall, hooks: Any, records: list[DecisionRecord]
) -> Steps[HookOutcome]:
    """Ask a plain function, or an object with a `hook_tool_call`, about a copy of the call.

    Args:
        call: The call; it is not changed.
        hooks: The function or object.
        records: Takes a record of the decision.

    Raises:
        HookError: It raised, or gave something that is no decision.
    """
    from .decision_log import record  # with `logging`, which is slow to import

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
    asked = copy(call)
    shown = asked._input = shown_input(call)
    given = yield from ask(hook, function, call, asked)
    if asked._input is shown:
        check_untouched(hook, call, shown)
        asked._input = call._input
    answer: Any = given
    kind: DecisionKind
    outcome: HookOutcome
    if isinstance(answer, CallState) and answer.metadata == call.metadata:
        kind, reason, outcome = "run_normally", None, _go_on(hook, call, asked, given)
    elif isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        check_answers(hook, call, answer.result)
        kind, reason, outcome = "complete", None, given
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        # `call.reject()` cannot know who says it; a hook set behind the function has said so.
        source: RejectionSource = "hook" if answer.source == "user" else answer.source
        kind = "block" if source == "gate" else "reject"
        reason = checked_reason(hook, call, answer.reason)
        outcome = RejectedCall(call.metadata, answer.call, answer.reason, source, answer.by)
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        kind, reason = "suspend", answer.ticket.action
        outcome = call if is_answered(call, answer.digest) else answer
    else:
        raise no_decision(
            hook,
            call,
            given,
            "the call itself, call.handled(...), call.reject(...) or call.suspend(...)",
        )
    if not isinstance(outcome, CallState) and outcome.by is None:
        outcome = replace(outcome, by=hook)
    decided = outcome if isinstance(outcome, CallState) else call
    record(records, decided, hook, "function", kind, reason)
    if isinstance(outcome, CallState) and outcome.selector.approval:
        return (yield from ask_approval(outcome, records)) or outcome
    return outcome


def ask_approval(call: AnyToolCall, records: list[DecisionRecord]) -> Steps[SuspendedCall | None]:
    """Let a call wait where it needs an approval that it has not.

    Args:
        call: The call, with its final input; it is not changed.
        records: Takes a record of the decision.

    Raises:
        HookError: A condition raised, or gave something else than True or False.
    """
    for condition in call.selector.approval:
        needed = True
        if condition is not True:
            shown = shown_input(call)
            needed = yield from ask(ASKED_BY, condition, call, shown)
            check_untouched(ASKED_BY, call, shown)
            if not isinstance(needed, bool):
                raise no_decision(ASKED_BY, call, needed, "True or False")
        if needed:
            return _wait_for_approval(call, records)
    return None


def _wait_for_approval(call: AnyToolCall, records: list[DecisionRecord]) -> SuspendedCall | None:
    from .._context.suspension import SuspendTicket  # needed by few, at the first question
    from .decision_log import record

    ticket = SuspendTicket(message=question_about(call))
    record(records, call, ASKED_BY, "gate", "suspend", ticket.action)
    if is_answered(call, call.digest):
        return None
    return copy(call).suspend_by(ASKED_BY, ticket)


def _go_on(hook: str, call: AnyToolCall, asked: AnyToolCall, answer: AnyToolCall) -> AnyToolCall:
    """Take the call that a function gave back, with the input that it now has."""
    if answer.status is not call.status:
        raise hook_error(
            hook,
            call,
            f"returned the call, which is {answer.status} by now",
            "Return what `handled`, `reject` or `suspend` gave",
        )
    if answer.input is call.input:
        return call
    return asked if answer is asked else rewrite(hook, call, answer.input)


def ask(hook: str, function: Any, call: AnyToolCall, *arguments: Any) -> Steps[Any]:
    """Ask one hook, and wait for its answer where it is async."""
    try:
        answer = function(*arguments)
        if hasattr(answer, "__await__"):
            answer = yield hook, answer
    except Exception as error:
        raise raised(hook, call, error) from error
    return answer


def shown_input(call: AnyToolCall) -> Any:
    """Give a hook the input: itself where nothing can change it in place, else a copy."""
    if call.spec.arguments.is_fixed:
        return call._input
    try:
        return deepcopy(call._input)
    except Exception:  # noqa: BLE001 - a field of any type may refuse to be copied
        return call._input


def check_untouched(hook: str, call: AnyToolCall, shown: Any) -> None:
    """Make sure that a hook changed nothing in place: what it has to say, it returns.

    Raises:
        HookError: It did; the call still is what it was.
    """
    own = call._input
    if shown is own:
        return
    data = call.spec.arguments.to_data
    try:  # what compares to no truth value, or has no JSON form, tells nothing
        is_same = shown == own or compact_json(data(shown)) == compact_json(data(own))
    except Exception:  # noqa: BLE001 - a field of any type compares as it likes
        is_same = True
    if not is_same:
        raise hook_error(
            hook,
            call,
            "changed the input in place",
            "Return another one, as in `RunNormally(input.model_copy(update={...}))`",
        )


def raised(hook: str, call: AnyToolCall, error: Exception) -> HookError:
    """Make the error for a hook that raised."""
    return hook_error(
        hook, call, f"raised {type(error).__name__}: {words_of(error)}", "Mend the hook"
    )


def is_answered(call: AnyToolCall, digest: str) -> bool:
    """Whether what asked before the run is answered, about the call as this digest names it."""
    approval = call.gate_approval
    return approval is not None and approval.digest == digest


def rewrite(hook: str, call: AnyToolCall, value: Any) -> AnyToolCall:
    """Give the call another input, as a hook asks."""
    made = copy(call)
    try:
        made.input = value
    except Exception as error:
        raise hook_error(
            hook, call, f"returned an unfit input: {words_of(error)}", "Mend what it returns"
        ) from error
    return made


def check_answers(hook: str, call: AnyToolCall, result: ToolResult) -> None:
    """Make sure that a result is of this call."""
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


def no_decision(hook: str, call: AnyToolCall, answer: object, wanted: str) -> HookError:
    """Make the error for an answer that is no decision."""
    return hook_error(hook, call, f"returned {shorten(answer)}", f"Return {wanted}")


def hook_error(hook: str, call: AnyToolCall, what: str, remedy: str) -> HookError:
    """Make the error that names hook, tool and call."""
    return HookError(
        f"Hook `{hook}` for tool `{call.name}` (call {call.id!r}) {what.rstrip('.')}. {remedy}.",
        hook=hook,
        tool=call.name,
        call_id=call.id,
    )
