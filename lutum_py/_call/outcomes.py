"""What becomes of a call before anyone runs it: handled, rejected, suspended, or not usable.

Also how one function is asked about it, and how its answer is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from time import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

from .._schema.signature import function_name
from .._text.escaping import words_of
from .._text.immutable import dataclass
from .._text.json import shorten
from .._text.once import ONCE
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ResultStatus, ToolResult, make_result, rejection
from ..errors import FieldIssue, HookError, MisuseError
from .approval_gate import question_about
from .asked import Asked
from .call_state import CallState
from .line import (
    ASKED_BY,
    BY_TOOL,
    END_OF,
    RULED_BY,
    Step,
    StepPhase,
    end_of,
    new_step,
    said_of,
    wait_of,
)
from .steps import Steps

if TYPE_CHECKING:
    from typing import Unpack

    from .._context.suspension import SuspendTicket
    from .._transcript.assistant import AssistantTurn
    from .call import AnyToolCall, HookOutcome
    from .decision_log import DecisionKind
    from .line import Said

In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)

RejectionSource: TypeAlias = Literal["hook", "gate", "user", "decision"]
"""Who rejected a call: an execution hook, a gate that blocked it, the user's own code, or whoever
decided to cancel it while it was suspended."""

IssueReason: TypeAlias = Literal["unknown_tool", "not_available", "invalid_arguments"]


@dataclass(frozen=True, slots=True)
class HandledCall(Generic[In_co, Out_co]):
    """A call that got its output without being run.

    Attributes:
        metadata: The call as the model sent it.
        input: Its input when it was handled.
        output: The output that it got.
        result: The same, encoded.
        by: Who answered: the name of a hook or gate, or of a person; None for the program itself.
    """

    metadata: ToolMetadata
    input: In_co = field(repr=False)  # `plan.calls` shows it with secrets masked
    output: Out_co
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
    def call_id(self) -> str:
        """The id of the call."""
        return self.call.id

    @property
    def tool(self) -> str:
        """The wire name of the tool."""
        return self.call.name

    @property
    def proposed(self) -> str:
        """The arguments as the model wrote them; what is secret by the tool's schema is masked."""
        return self.call.spec.shown_text(self.call.metadata.arguments)

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

        What is secret by the tool's schema, or a `SecretStr`, is masked here.
        """
        return self.call.spec.shown(self.call._written())

    def _of(self) -> tuple[str, str, str]:
        return self.call.id, self.call.name, self.digest

    def _asked_in(self) -> str | None:
        return self.call._kept.asked_in


@dataclass(frozen=True, slots=True)
class AskingCall:
    """A call that left its tool for others that it asks for: an outcome, for `plan.record`.

    Attributes:
        call: The call.
        turn: What it asks for: the turn of its model, or one that was made of pairs.
        state: The bytes or text that it left to go on with.
    """

    call: AnyToolCall
    turn: AssistantTurn
    state: bytes | str | None = field(default=None, repr=False)
    _session: str | None = field(default=None, repr=False)
    _known: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, hash=False)
    _before: int = field(default=0, repr=False)  # how often the call had asked
    _trace: str | None = field(default=None, repr=False, compare=False)

    def _traced(self, trace: str) -> None:
        """Note the span that what is asked for stands under, as W3C writes a `traceparent`."""
        object.__setattr__(self, "_trace", trace)

    # What a result has as well, so that an outcome is asked without looking at its class first.

    @property
    def was_started(self) -> bool:
        """Whether the tool was started, which it was."""
        return True

    @property
    def is_pending(self) -> bool:
        """Whether the call waits, which it does."""
        return True

    @property
    def is_success(self) -> bool:
        """Whether the tool did what it was asked: not yet."""
        return False

    @property
    def is_error(self) -> bool:
        """Whether the call ended in any other way than success: it has not ended."""
        return False


NotEnded: TypeAlias = SuspendedCall | AskingCall
"""What a call came to that left its tool, and comes back to it."""


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


# What became of a call is made here and nowhere else: of the call and its last step.


def handled_call(
    call: AnyToolCall, output: Any, result: ToolResult, by: str | None
) -> HandledCall[Any, Any]:
    """Make a call that was answered without being run."""
    made: HandledCall[Any, Any] = call.spec.handled_type(
        call.metadata, call.input, output, result, by
    )
    return made


def outcome_of(
    call: AnyToolCall, line: tuple[Step, ...] | None = None
) -> HandledCall[Any, Any] | RejectedCall | SuspendedCall:
    """Give what hooks, a gate or a person made of a call.

    Args:
        call: The call, which waits or was ended by one of these.
        line: Its line as it was at some moment; by default as it is.
    """
    line = call._line if line is None else line
    wait = wait_of(line)
    if wait is not None:
        return SuspendedCall(call, wait.detail, wait.digest or "", wait.said == BY_TOOL, wait.by)
    end = end_of(line)
    assert end is not None
    if end.said == "success":
        output, result = end.detail
        for step in said_of(line, "asked"):
            if step.phase == "after" and step.said == "replaced":
                result = step.detail[1]
                output = result.output
                break
        return handled_call(call, output, result, end.by)
    return rejected_call(call, end)


def rejected_call(call: AnyToolCall, end: Step) -> RejectedCall:
    """Make a call that will not be run, of the step by which it was refused."""
    return RejectedCall(call.metadata, call, end.reason or "", SOURCES[end.phase], end.by)


SOURCES: Final[Mapping[StepPhase | None, RejectionSource]] = {
    "hook": "hook",
    "function": "hook",
    "gate": "gate",
    "decision": "decision",
}
"""What rejected a call, by the phase in which it ended."""


def suspend(
    call: AnyToolCall,
    ticket: SuspendTicket,
    by: str | None = None,
    phase: StepPhase | None = None,
    *,
    is_mine: bool = False,
) -> SuspendedCall:
    """Let a call wait for a decision.

    Args:
        call: The call.
        ticket: What is asked.
        by: Who asks.
        phase: In which part of deciding.
        is_mine: Whether the call is a branch that nobody else has yet.

    Raises:
        MisuseError: The ticket is not a `SuspendTicket`.
        LifecycleError: The call waits already, or has ended.
    """
    if not hasattr(ticket, "resume_mode"):
        raise MisuseError(
            f"Call {call.id!r} of tool `{call.name}` waits under a SuspendTicket, not "
            f"{shorten(ticket)}. Write `call.suspend(SuspendTicket(message=...))`."
        )
    told = call if is_mine else call._told
    told._text = told._text or told.spec.arguments.to_text(told._input)  # what is approved stays
    digest = call.digest
    with ONCE:
        if not is_mine:
            call._check_newest()
        was_started = call._stage.name == "running"
        write = call._decide if is_mine else call._append
        said = BY_TOOL if was_started else None
        write("suspended", by=by, phase=phase, said=said, digest=digest, detail=ticket)
    return SuspendedCall(call, ticket, digest, was_started, by)


# Asking one function about one call: what hook sets, gates and plain functions share.


_ITS_OWN: Final[Any] = object()


class Asking:
    """One time that hooks are asked about calls: what they said is written when all were asked.

    A call that passes keeps its line, which others may have as well; so what was said about it
    waits here until no hook can raise any more. A call that does not pass gets a branch, which
    nobody has before then. The steps name this object: by it a plan knows which are its own.

    Attributes:
        notes: What was said about calls that pass so far, in order, each with the line of the call
            that it was said about.
        branches: The branches that were made.
    """

    __slots__ = ("branches", "notes")

    def __init__(self) -> None:
        self.notes: list[tuple[AnyToolCall, tuple[Step, ...], Step]] = []
        self.branches: list[AnyToolCall] = []

    def __reduce__(self) -> tuple[Any, ...]:  # it is who it is, and holds nothing for long
        return (Asking, ())

    def note(
        self,
        call: AnyToolCall,
        hook: str,
        phase: StepPhase,
        said: DecisionKind | None,
        reason: str | None = None,
        *,
        input: Any = _ITS_OWN,
    ) -> None:
        """Keep what one hook said about a call, and log it where that is wanted.

        Args:
            call: The call.
            hook: The name of the hook.
            phase: In which part of deciding.
            said: What it decided; None where it let the call pass.
            reason: Why.
            input: The input that the call goes on with, where that is another.
        """
        if self.branches and self.branches[-1] is call:
            call._decide("asked", by=hook, phase=phase, said=said, reason=reason, detail=self)
        else:
            steps = call._steps
            step = ("asked", steps[-1].stage, time(), hook, phase, said, reason, None, self)
            self.notes.append((call, steps, new_step(step)))
        if said is not None:
            from .decision_log import is_logged, log  # with `logging`, which is slow to import

            if is_logged():
                log(call, said, reason, call._input if input is _ITS_OWN else input)

    def branch(self, call: AnyToolCall) -> AnyToolCall:
        """Give the call a line of its own, that goes on with what was said about it so far."""
        if self.branches and self.branches[-1] is call:
            return call
        made = call._grow()
        said: list[Step] = []
        while self.notes and self.notes[-1][0] is call:
            said.append(self.notes.pop()[2])
        for step in reversed(said):
            made._steps = _in_time(made._steps, step)
        self.branches.append(made)
        return made

    def settle(self, *, counts: bool = True) -> None:
        """Write what was said on the lines of the calls that pass, and let branches count.

        Args:
            counts: Whether a plan holds the branches from here on.
        """
        with ONCE:
            for call, steps, step in self.notes:
                if call._raw is steps and call._branch is None:  # as nearly always
                    at = steps[-1].at
                    if at is None or at <= (step.at or at):
                        call._raw = (*steps, step)
                        continue
                told = call if call._branch is None else call._told
                last = told._steps[-1]
                # Where somebody did something with it meanwhile, what was said here came too late.
                if last.stage.may_begin:
                    line = told._steps
                    since = range(len(steps), len(line))
                    place = next((at for at in since if _is_assigned(line[at])), None)
                    if place is not None:  # nobody was asked about what it is since
                        earlier = step._replace(at=line[place].at)
                        told._steps = (*line[:place], earlier, *line[place:])
                    elif last.phase is None and (last.at or 0.0) <= (step.at or 0.0):
                        told._steps = (*line, step)
                    else:
                        told._steps = _in_time(line, step)
            self.notes.clear()
            if counts:
                for made in self.branches:
                    made._count()
            self.branches.clear()


def _is_assigned(step: Step) -> bool:
    """Whether a program's own code changed the input by this."""
    return step.kind == "changed" and step.phase is None


def _in_time(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """Put what a hook said where it belongs: before-hooks come, and are written down, behind it."""
    end = len(steps)
    while steps[end - 1].phase == "before" and (steps[end - 1].at or 0) >= (step.at or 0):
        end -= 1
    before = steps[end - 1].at
    if before is not None and step.at is not None and step.at < before:
        step = step._replace(at=before)
    return (*steps[:end], step, *steps[end:])


def ask_function(
    call: AnyToolCall, hooks: Any, asking: Asking, phase: StepPhase = "function"
) -> Steps[HookOutcome]:
    """Ask a plain function, or an object with a `hook_tool_call`, about a draft of the call.

    Args:
        call: The call; it is not changed.
        hooks: The function or object.
        asking: Takes what it said.
        phase: In which part of deciding.

    Raises:
        HookError: It raised, or gave something that is no decision.
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
    given: Any = yield from ask(hook, function, call, draft)
    answer: Any = given  # what checkers narrow
    if isinstance(answer, CallState) and answer.metadata == call.metadata:
        outcome: HookOutcome = _go_on(hook, call, given, asking, phase)
    elif isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        check_answers(hook, call, given.result)
        made = _said(hook, call, draft, "complete", None, asking, phase)
        by = given.by or hook
        end(made, "success", by=by, phase=phase, detail=(given.output, given.result))
        outcome = outcome_of(made)
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        reason = checked_reason(hook, call, answer.reason)
        # `call.reject()` cannot know who says it; a hook set behind the function has said so.
        is_gate = answer.source == "gate"
        said: DecisionKind = "block" if is_gate else "reject"
        made = _said(hook, call, answer.call, said, reason, asking, phase)
        by = answer.by or hook
        end(made, "rejected", by=by, phase="gate" if is_gate else phase, reason=reason)
        outcome = outcome_of(made)
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        if is_answered(call, answer.digest):
            asking.note(call, hook, phase, "suspend", answer.ticket.action)
            outcome = call
        else:
            reason = answer.ticket.action
            made = _said(hook, call, answer.call, "suspend", reason, asking, phase)
            outcome = suspend(made, answer.ticket, answer.by or hook, phase, is_mine=True)
    else:
        raise no_decision(
            hook,
            call,
            given,
            "the call itself, call.handled(...), call.reject(...) or call.suspend(...)",
        )
    return outcome


def _said(
    hook: str,
    call: AnyToolCall,
    answer: AnyToolCall,
    said: DecisionKind,
    reason: str | None,
    asking: Asking,
    phase: StepPhase,
) -> AnyToolCall:
    """Make the branch that a function's answer asks for, with what it did behind its `asked`."""
    done = answer._line[len(call._line) :]
    made = asking.branch(call)
    asking.note(made, hook, phase, said, reason)
    # Behind it stands what the function did with the call that it got, but for its end.
    for step in done:
        if step.kind in ("begun", "asked"):
            made._decide(step.kind, step.stage, by=step.by, phase=step.phase, said=step.said)
    if any(step.kind == "changed" for step in done):
        made._replace_input(answer._input, is_mine=True)
    return made


def end(made: AnyToolCall, status: ResultStatus, **said: Unpack[Said]) -> None:
    """Let a branch that nobody else has yet meet its end."""
    said["said"] = status
    made._decide("ended", END_OF[status], **said)


def ask_approval(call: AnyToolCall, asking: Asking) -> Steps[SuspendedCall | None]:
    """Let a call wait where it needs an approval that it has not.

    Args:
        call: The call, with its final input; it is not changed.
        asking: Takes what was said.

    Raises:
        HookError: A condition raised, or gave something else than True or False.
    """
    known = call._line
    shown = call._lend()
    if call._is_rewritten and call._told._text is None and not call.spec.arguments.is_fixed:
        raise hook_error(
            ASKED_BY,
            call,
            "is to be asked about an input that a program made and that has no JSON form, so that "
            "nobody could tell whether it is changed in place afterwards",
            "Give its types a form, as by a serializer, or leave the arguments as they came",
        )
    for condition in call.selector.approval:
        needed = True
        if condition is not True:
            needed = yield from ask(ASKED_BY, condition, call, shown)
            check_untouched(ASKED_BY, call)
            if not isinstance(needed, bool):
                raise no_decision(ASKED_BY, call, needed, "True or False")
        if needed:
            return _wait_for_approval(call, asking)
    if any(step.kind == "changed" for step in call._line[len(known) :]):
        raise hook_error(
            ASKED_BY,
            call,
            "was asked about arguments that were changed meanwhile",
            "Change the input before hooks are asked, or after",
        )
    asking.note(call, ASKED_BY if call.selector.approval else RULED_BY, "gate", None)
    return None


def _wait_for_approval(call: AnyToolCall, asking: Asking) -> SuspendedCall | None:
    from .._context.suspension import SuspendTicket  # needed by few, at the first question

    ticket = SuspendTicket(message=question_about(call))
    asking.note(call, ASKED_BY, "gate", "suspend", ticket.action)
    if is_answered(call, call.digest, by_gate=True):
        return None
    return suspend(asking.branch(call), ticket, ASKED_BY, "gate", is_mine=True)


def ask_whole(call: AnyToolCall, hooks: Any, asking: Asking) -> Steps[HookOutcome]:
    """Ask a plain function about a call, and then what its tool is declared with."""
    outcome = yield from ask_function(call, hooks, asking)
    if isinstance(outcome, CallState) and outcome.selector.asks:
        return (yield from ask_declared(outcome, asking))
    return outcome


def ask_declared(call: AnyToolCall, asking: Asking) -> Steps[HookOutcome]:
    """Ask the rules of a call's tool, and whether it needs an approval."""
    outcome: Any = yield from ask_rules(call, asking)
    given, is_call = outcome, isinstance(outcome, CallState)
    waits: Any = (yield from ask_approval(given, asking)) if is_call else None
    decided: HookOutcome = waits or outcome
    return decided


def ask_rules(call: AnyToolCall, asking: Asking) -> Steps[HookOutcome]:
    """Ask the rules of a call's tool; what was decided on stays as it was decided on."""
    outcome: Any = call
    rules = () if call._answers and not call._kept.is_open else call.selector.rules
    for rule in rules:
        outcome = yield from rule.ask(outcome, asking)
        is_call = isinstance(outcome, CallState)
        if not is_call:
            break
    ruled: HookOutcome = outcome
    return ruled


def _go_on(
    hook: str, call: AnyToolCall, answer: AnyToolCall, asking: Asking, phase: StepPhase
) -> AnyToolCall:
    """Take the call that a function gave back, with the input that it now has."""
    if answer.status is not call.status:
        raise hook_error(
            hook,
            call,
            f"returned the call, which is {answer.status} by now",
            "Return what `handled`, `reject` or `suspend` gave",
        )
    value = answer._input
    if answer._is_as(call):
        try:
            answer._take_changes()
        except Exception as error:
            raise _unfit(hook, call, "left", error) from error
        had = sum(step.kind == "changed" for step in call._line)
        is_other = sum(step.kind == "changed" for step in answer._line) > had
        value = answer._input
    else:  # made by hand
        is_other = value is not call._input and call._differs(value)
        if is_other and call._answers and not call._kept.is_open:
            raise hook_error(
                hook,
                call,
                "gave a call of another input, and the input is frozen: a decision is bound to it",
                "Reject the call instead",
            )
    if not is_other:
        asking.note(call, hook, phase, "run_normally")
        return call
    try:
        value = call.spec.check_input(call.name, value)
    except Exception as error:
        raise _unfit(hook, call, "returned", error) from error
    made = asking.branch(call)
    asking.note(made, hook, phase, "run_normally", input=value)
    made._replace_input(value, hook, phase, is_mine=True)
    return made


def ask(hook: str, function: Any, call: AnyToolCall, *arguments: Any) -> Steps[Any]:
    """Ask one hook, and wait for its answer where it is async."""
    try:
        answer = function(*arguments)
        if hasattr(answer, "__await__"):
            answer = yield hook, answer
    except Exception as error:
        call._put_back()
        raise raised(hook, call, error) from error
    except BaseException:
        call._put_back()
        raise
    return answer


def check_untouched(hook: str, call: AnyToolCall) -> None:
    """Make sure that what decides nothing about the input changed nothing of it in place.

    Raises:
        HookError: It did; the call still is what it was.
    """
    if call._changed_text() is not None:
        call._put_back()
        raise hook_error(
            hook,
            call,
            "changed the input in place",
            "Return another one from an execution hook, as in "
            "`RunNormally(input.model_copy(update={...}))`",
        )


def raised(hook: str, call: AnyToolCall, error: Exception) -> HookError:
    """Make the error for a hook that raised."""
    return hook_error(
        hook, call, f"raised {type(error).__name__}: {words_of(error)}", "Mend the hook"
    )


def is_answered(call: AnyToolCall, digest: str, *, by_gate: bool = False) -> bool:
    """Whether what asked before the run is answered, about the call as this digest names it.

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


def rewrite(hook: str, call: AnyToolCall, value: Any, asking: Asking, *, left: bool) -> AnyToolCall:
    """Give the call another input, as an execution hook asks: that it returned, or left behind."""
    try:
        checked = call.spec.check_input(call.name, value)
    except Exception as error:
        call._put_back()
        raise _unfit(hook, call, "left" if left else "returned", error) from error
    call._put_back()
    made = asking.branch(call)
    asking.note(made, hook, "hook", "run_normally", input=checked)
    made._replace_input(checked, hook, "hook", is_mine=True)
    return made


def _unfit(hook: str, call: AnyToolCall, did: str, error: Exception) -> HookError:
    remedy = "Mend what it returns" if did == "returned" else "Mend what it does to the input"
    return hook_error(hook, call, f"{did} an unfit input: {words_of(error)}", remedy)


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
