"""Let hooks, rules and approvals decide about one call, and write what they say."""

from __future__ import annotations

import logging
from time import time
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import ValidationError

from .._schema.arguments import InputText, same
from .._schema.signature import function_name
from .._text.escaping import escape_unprintable, escape_unprintable_json, words_of
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import HookError, LifecycleError, MisuseError
from .call_state import DecodedCall, outcome_types, record_of
from .decisions import Complete, DecisionKind, Reject, RunNormally
from .drivers import HookGenerator
from .history import (
    ASKED_BY,
    REFUSED_BY,
    RULED_BY,
    History,
    Move,
    Step,
    StepPhase,
    hook_key,
    move,
)
from .outcomes import HandledCall
from .reply import reply_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .spec import AnySpec

_RETURN_ANOTHER = (
    "Return another one from an execution hook, as in `RunNormally(input.model_copy(update={...}))`"
)

OF_INPUT: Final = "RunNormally(input), Complete(output) or Reject(reason)"
OF_ARGUMENTS: Final = (
    "None, a mapping of the arguments to change, Complete(output) or Reject(reason)"
)
"""What hooks and rules may return that take the input, or arguments."""


LOGGER = logging.getLogger("lutum.tool_hook")


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

    @classmethod
    def unproven(cls, call: DecodedCall) -> Verdict:
        """Refuse a call whose own arguments do not describe its input, so nobody can be asked."""
        return cls("reject", REFUSED_BY, "execution", call.unproven)


class Reviewer(NamedTuple):
    """Name who reviews a call: it calls a hook, checks its answer, and makes its errors.

    Attributes:
        hook: The name of the hook, rule or function.
        call: The call.
    """

    hook: str
    call: DecodedCall

    def ask(self, function: Any, *arguments: Any) -> HookGenerator[Any]:
        """Call one hook, and await its verdict if it is async."""
        try:
            answer = function(*arguments)
            if hasattr(answer, "__await__"):
                answer = yield self.hook, answer
        except Exception as error:
            self.call.restore_input()
            raise self.raised(error) from error
        except BaseException:
            self.call.restore_input()
            raise
        return answer

    def output_and_result(self, answer: Any) -> tuple[Any, ToolResult]:
        """Return the output that a hook gave a self.call, and its result.

        Raises:
            HookError: It does not fit, or belongs to another self.call.
        """
        kind: Any = answer.__class__
        if kind is Complete:
            reply = reply_in(answer.output)
            try:
                result = self.call.result_of(answer.output)
            except Exception as error:
                raise self.error(
                    f"returned an unfit output: {words_of(error)}", "Fix what it returns"
                ) from error
            return (answer.output if reply is None else reply.output), result
        result = answer if kind is ToolResult else answer.result
        self.check_result(result)
        return answer.output, result

    def check_result(self, result: ToolResult) -> None:
        """Make sure that a result belongs to this self.call."""
        if not result.answers(self.call):
            raise self.error(
                f"returned a result of another self.call, {shorten(result.id)} of tool "
                f"{shorten(result.name)}",
                "Make it from this self.call, as `call.complete(output)` does",
            )

    def checked_reason(self, reason: object) -> str:
        """Make sure that a reason is a text."""
        if not isinstance(reason, str):
            raise self.error(
                f"gave {shorten(reason)} as a reason", "Give a text: the model reads it"
            )
        return reason

    def not_a_decision(self, answer: object, wanted: str) -> HookError:
        """Make the error for a return value that is not a decision."""
        return self.error(f"returned {shorten(answer)}", f"Return {wanted}")

    def raised(self, error: Exception) -> HookError:
        """Make the error for a hook that raised."""
        if isinstance(error, ValidationError) and any(
            fault["type"] == "frozen_instance" for fault in error.errors()
        ):
            what = f"assigned to `{error.title}`, which is frozen"
            return self.error(what, _RETURN_ANOTHER)
        return self.error(f"raised {type(error).__name__}: {words_of(error)}", "Fix the hook")

    def unfit(self, did: str, error: Exception) -> HookError:
        remedy = "Fix what it returns" if did == "returned" else "Fix what it does to the input"
        return self.error(f"{did} an unfit input: {words_of(error)}", remedy)

    def error(self, what: str, remedy: str) -> HookError:
        """Make the error that names hook, tool and call."""
        call = self.call
        return HookError(
            f"Hook `{self.hook}` for tool `{call.name}` (call {call.id!r}) {what.rstrip('.')}. "
            f"{remedy}.",
            hook=self.hook,
            tool=call.name,
            call_id=call.id,
        )


# All that one pass says about one call is one entry, so that nobody sees half of it: neither that
# hooks let a call pass whose input they are still changing, nor what a hook said before another one
# raised. It waits here until no hook of the pass can raise any more.
class Review:
    """What one pass of hooks says about one call, until it is written into the history.

    Args:
        target: The call.

    Attributes:
        call: What hooks are shown: the call itself, or a draft of it.
        since: How many entries the history had.
        moves: What was said so far.
        verdict: Why the call does not go on; None while it does.
        edited: Of a call whose input a person edited, the step by which it waited: hooks may still
            change the input, and then it waits for the same again.
        changes_more: Whether an edit changed more of the input than it names.
        may_start: Whether a function in place of hooks is asked right now: it may run its draft.
        was_passed_over: Whether hooks were not asked, since the call went on meanwhile.
    """

    # Of the class where most reviews have nothing of it.
    verdict: Verdict | None = None
    edited: Step | None = None
    changes_more = False
    may_start = False
    was_passed_over = False

    def __init__(self, target: DecodedCall) -> None:
        self.target = self.call = target
        self.since = len(target.entries)
        self.moves: list[Move] = []

    def note(
        self,
        hook: str,
        phase: StepPhase,
        verdict: DecisionKind | None,
        reason: str | None = None,
        detail: Any = None,
    ) -> None:
        """Keep what one hook said, and log it if that is wanted.

        Args:
            hook: The name of the hook.
            phase: In which part of deciding.
            verdict: What it decided; None if it let the call pass.
            reason: Why.
            detail: The hook.
        """
        # As `move` makes it, which costs as much as the hook.
        self.moves.append(
            ("reviewed", "reviewed", time(), hook, phase, verdict, reason, None, detail)
        )
        if verdict is not None and LOGGER.isEnabledFor(logging.INFO):
            log(self.call, verdict, reason)

    def draft(self) -> DecodedCall:
        """Make a draft for a function that reviews a call: what is done to it is not the call's."""
        return self.call.copy_for(self)

    def replace_input(
        self, value: Any, text: InputText, by: str | None, phase: StepPhase | None
    ) -> None:
        """Let the call go on with another input, which is valid."""
        if self.call is self.target:
            self.call = self.draft()
        self.moves.append(self.call.replace_input(value, text, by, phase))

    @property
    def is_asked_again(self) -> bool:
        """Whether more was changed than a person edited, so that it waits for the person again."""
        if self.edited is None:
            return False
        return self.changes_more or self.call.digest != self.call.answers[0].digest

    def start(self, draft: DecodedCall, moves: tuple[Move, ...]) -> int | None:
        """Start the call itself, because a function started its draft: a call runs once.

        From here on the draft is the call.

        Raises:
            LifecycleError: Somebody did something with the call meanwhile, or the draft cannot be
                started: it is a gate's, or the function that it was for has answered.
        """
        target, since = self.target, self.since
        target.check_round_open()
        if not self.may_start:
            raise LifecycleError(
                f"Call {target.id!r} of tool `{target.name}` is not started: this is a draft, "
                "which hooks were given to decide about the call. Run the call that the plan has, "
                "as in `plan.pending`."
            )
        own = [
            step.as_move
            for step in draft.history[len(self.call.history) :]
            if step.kind in ("changed", "reviewed")
        ]
        number = target.append_all((*self.moves, *own, *moves), since)
        if number is None:
            raise target.grown(since)
        target.take_over(draft, number)
        draft.become(target)
        self.moves, self.since, self.call = [], number + 1, target
        return number

    def settle(self) -> None:
        """Let a call end or wait as was decided about it."""
        call, wait = self.call, self.edited
        if self.verdict is None:
            if wait is not None and self.is_asked_again:
                self.moves.append(wait._replace(digest=call.digest).as_move)
                if wait.phase is None:
                    self.moves.append(move("recorded", verdict="suspended"))
            return
        verdict, by, phase, reason, detail = self.verdict
        if verdict == "suspend":
            if not call.prove():  # before anybody is asked about its text
                self.verdict = Verdict.unproven(call)
                self.settle()
                return
            waits = move("suspended", by=by, phase=phase, digest=call.digest, detail=detail)
            self.moves.append(waits)
            return
        status = "success" if verdict == "complete" else "rejected"
        ends = move("ended", by=by, phase=phase, verdict=status, reason=reason, detail=detail)
        self.moves.append(ends)

    def ask_function(self, hooks: Any, phase: StepPhase = "execution") -> HookGenerator[None]:
        """Let a plain function, or an object with a `hook_tool_call`, review a draft of the call.

        Args:
            hooks: The function or object.
            phase: In which part of deciding.

        Raises:
            HookError: It raised, or gave something that is not a decision.
        """
        rejected_call, suspended_call = outcome_types()
        function = getattr(hooks, "hook_tool_call", hooks)
        toolset = getattr(function, "__self__", None)
        if getattr(function, "__name__", None) == "HookSet" and isinstance(toolset, type):
            raise HookError(
                "Hooks are a HookSet, not the method that makes one. Call it: "
                f"`{toolset.__qualname__}.HookSet()`."
            )
        if not callable(function) or isinstance(hooks, type):
            raise HookError(
                f"Hooks are a HookSet, or a function of a call, not {shorten(hooks)}. Make a hook "
                "set with `AppTools.HookSet()`."
            )
        hook, call, draft = function_name(function), self.call, self.draft()
        asked = Reviewer(hook, call)
        self.may_start = True
        try:
            given: Any = yield from asked.ask(function, draft.call)
        finally:
            self.may_start = False
        answer: Any = given  # for type checkers to narrow
        if draft.review is None:
            self._take_run(hook, given)
            return
        for step in draft.history[len(call.history) :]:  # it may have asked a hook set
            if step.kind == "reviewed" and step.by in (ASKED_BY, RULED_BY):
                self.moves.append(step.as_move)
        back = record_of(given)
        if back is not None and back.metadata == call.metadata:
            self._go_on(hook, back, draft, function, phase)
            return
        by: str = getattr(given, "by", None) or hook
        if isinstance(answer, HandledCall) and answer.metadata == call.metadata:
            verdict = Verdict("complete", by, phase, detail=asked.output_and_result(given))
        elif isinstance(answer, rejected_call) and answer.metadata == call.metadata:
            reason = asked.checked_reason(answer.reason)
            # `call.reject()` cannot know who says it; a hook set after the function has said so.
            is_gate = answer.source == "gate"
            said: DecisionKind = "block" if is_gate else "reject"
            verdict = Verdict(said, by, "gate" if is_gate else phase, reason)
        elif isinstance(answer, suspended_call) and answer.call.metadata == call.metadata:
            verdict = Verdict("suspend", by, phase, answer.ticket.action, answer.ticket)
        else:
            wanted = "the call itself, call.handled(...), call.reject(...) or call.suspend(...)"
            raise asked.not_a_decision(given, wanted)
        self.note(hook, phase, verdict.verdict, verdict.reason, function)
        if draft.input_at != call.input_at:  # it changed the input before it decided
            self.replace_input(draft.current_input, draft.described, None, None)
        if verdict.verdict == "suspend" and call.is_answered(given.digest):
            return
        self.verdict = verdict

    def _take_run(self, hook: str, answer: Any) -> None:
        """Take what a function answers that ran the tool itself: the outcome of the run counts.

        Raises:
            HookError: It answered something else.
        """
        rejected_call, suspended_call = outcome_types()
        call = self.target
        if isinstance(answer, (HandledCall, rejected_call, ToolResult)):
            result = answer if isinstance(answer, ToolResult) else answer.result
            Reviewer(hook, call).check_result(result)
            if not call.stage.is_end:
                self.moves.append(move("ended", verdict=result.status, detail=result))
            self.moves.append(move("recorded", verdict=result.status, detail=result))
        elif isinstance(answer, suspended_call) and call.stage.name == "suspended":
            self.moves.append(move("recorded", verdict="suspended"))
        else:
            raise Reviewer(hook, call).error(
                f"returned {shorten(answer)}, and the call is {call.status} by now",
                "Return what `handled` gave, or what became of the run",
            )
        self.since = len(call.entries)

    def ask_approval(self) -> HookGenerator[None]:
        """Let the call wait, if it needs an approval and has none, and has its final input.

        Raises:
            HookError: A condition raised, or gave something else than True or False.
        """
        call = self.call
        for condition in call.selector.approval:
            needed = True
            if condition is not True:
                asked = Reviewer(ASKED_BY, call)
                needed = yield from asked.ask(condition, call.input_for_gate())
                if not isinstance(needed, bool):
                    raise asked.not_a_decision(needed, "True or False")
            if needed:
                from .._context.suspension import (
                    SuspendTicket,
                )  # needed by few, at the first question

                if not call.prove():  # before anybody is asked about its text
                    self.verdict = Verdict.unproven(call)
                    return
                ticket = SuspendTicket(message=call.question)
                self.note(ASKED_BY, "gate", "suspend", ticket.action)
                if not call.is_answered(call.digest, by_gate=True):
                    self.verdict = Verdict("suspend", ASKED_BY, "gate", ticket.action, ticket)
                return
        self.note(ASKED_BY if call.selector.approval else RULED_BY, "gate", None)

    def ask_rules(self) -> HookGenerator[None]:
        """Let the rules of the tool review the call, unless they or a person did as it is."""
        call = self.call
        if call.is_ruled and self.edited is None:
            return
        waits = self.verdict
        for rule in call.selector.rules:
            yield from rule.review(self)
            if self.verdict is not None:
                if self.verdict.verdict != "suspend":
                    return
                waits, self.verdict = waits or self.verdict, None
        self.verdict = waits

    def ask_declared(self) -> HookGenerator[None]:
        """Ask what a tool is declared with: its rules, and then whether it needs an approval."""
        call = self.call
        if not call.selector.needs_review or not call.stage.may_ask:
            return
        if self.verdict is None or self.verdict.verdict == "suspend":
            yield from self.ask_rules()
        if self.verdict is None:
            yield from self.ask_approval()

    def _go_on(
        self,
        hook: str,
        answer: DecodedCall,
        draft: DecodedCall,
        function: Any,
        phase: StepPhase,
    ) -> None:
        """Take the call that a function gave back, with the input that it now has."""
        call = self.call
        if answer.status is not call.status:
            raise Reviewer(hook, call).error(
                f"returned the call, which is {answer.status} by now",
                "Return what `handled`, `reject` or `suspend` gave",
            )
        if answer is draft:
            try:
                answer.take_changes()
            except Exception as error:
                raise Reviewer(hook, call).unfit("left", error) from error
            is_other = draft.input_at != call.input_at
            text = draft.described
            text.kept = draft.current_input
        else:  # made by hand
            value = answer.current_input
            is_other, text = value is not call.current_input and call.differs_from(value), None
        if is_other:
            self.rewrite(hook, answer.current_input, function, phase, text)
        else:
            self.note(hook, phase, "run_normally", detail=function)

    def apply(self, hook: str, decision: Any, shown: Any, function: Any, wanted: str) -> None:
        """Take what an execution hook or rule decided.

        Args:
            hook: Its name.
            decision: What it gave.
            shown: The input that it was given.
            function: The hook.
            wanted: What it may give, in words.

        Raises:
            HookError: It is not a decision, or does not fit the call.
        """
        kind: Any = decision.__class__
        call = self.call
        if kind is RunNormally:
            # Another object may be the same input. What was done in place to the one that the call
            # has is looked for later, once.
            if decision.input is shown:
                self.note(hook, "execution", "run_normally", detail=function)
            elif call.differs_from(decision.input):
                self.rewrite(hook, decision.input, function, "execution", decision._text)
            else:
                call.restore_input()
                self.note(hook, "execution", "run_normally", detail=function)
            return
        call.restore_input()
        if kind is Complete:
            detail = Reviewer(hook, call).output_and_result(decision)
            verdict = Verdict("complete", hook, "execution", detail=detail)
        elif kind is Reject:
            verdict = Verdict(
                "reject", hook, "execution", Reviewer(hook, call).checked_reason(decision.reason)
            )
        else:
            raise Reviewer(hook, call).not_a_decision(decision, wanted)
        self.note(hook, "execution", verdict.verdict, verdict.reason, function)
        self.verdict = verdict

    def rewrite(
        self,
        hook: str,
        value: Any,
        function: Any,
        phase: StepPhase,
        text: InputText | None = None,
    ) -> None:
        """Let a call go on with the input that a hook returned.

        Args:
            hook: Its name.
            value: The input.
            function: The hook.
            phase: In which part of deciding.
            text: What describes the input, if it was checked already.

        Raises:
            HookError: It does not fit, or a person has decided about the one that the call has.
        """
        if text is None or not same(text.kept, value):
            value, text = self._taken(hook, value, "returned")
        else:
            self._check_free(hook, "returned")
        self.call.restore_input()
        at, verdict = time(), "run_normally"
        said = move("reviewed", at=at, by=hook, phase=phase, verdict=verdict, detail=function)
        self.moves.append(said)
        self.replace_input(value, text, hook, phase)
        if LOGGER.isEnabledFor(logging.INFO):
            log(self.call, verdict, None)

    def take_changes(self, hook: str | None = None) -> None:
        """Take what hooks or rules did to the input in place; it is looked for once a call.

        Args:
            hook: Who did it; by default one of the execution hooks that were asked.

        Raises:
            HookError: It does not fit; the input is as it was.
        """
        call = self.call
        if not call.is_touched:
            return
        if hook is None:
            hook = "` or `".join(each[3] for each in self.moves if each[4] == "execution")
        self.replace_input(*self._taken(hook, call.held[1], "left"), None, None)

    def _check_free(self, hook: str, did: str) -> None:
        call = self.call
        if call.answers and self.edited is None:
            call.restore_input()
            raise Reviewer(hook, call).error(
                f"{did} another input, and the input is frozen: a decision is bound to it",
                "Reject the call instead",
            )

    def _taken(self, hook: str, value: Any, did: str) -> tuple[Any, InputText]:
        """Check and describe the input that hooks returned, or left behind in place."""
        self._check_free(hook, did)
        call = self.call
        try:
            return call.take(value)
        except Exception as error:
            raise Reviewer(hook, call).unfit(did, error) from error
        finally:
            call.restore_input()

    def _begin_again(self, steps: History) -> None:
        """Let another try begin with the input as it was before hooks."""
        if any(step.kind == "retried" for step in steps):
            reviewed = any(step.kind in ("reviewed", "changed") for step in steps.this_try)
            own = _before_hooks(steps)
            last = next(step for step in reversed(steps) if step.kind in ("proposed", "changed"))
            if not reviewed and own != last.detail:
                call = self.call
                text = call.text_of(own)
                self.replace_input(call.spec.read_again(text), text, None, None)

    @classmethod
    def begin(cls, call: DecodedCall) -> Review:
        """Begin the review of a call, with what your own code did to its input in place.

        Raises:
            ToolInputError: That does not fit the tool; the input is as it was.
        """
        review = cls(call)
        # What was loaded is one entry.
        if call.input_at or len(call.entries[0][4]) > 1:
            review._begin_again(call.history)
        changed = None if call.lent is None else call.changes()  # no hook gets the blame
        if changed is not None:
            review.replace_input(*changed[1:], None, None)
        return review

    @staticmethod
    def write_all(reviews: Iterable[Review]) -> None:
        """Write what a pass of hooks said: of each call as one entry.

        Raises:
            LifecycleError: Something was done to some of the calls meanwhile; the others have it.
        """
        grown: LifecycleError | None = None
        for review in reviews:
            target, since = review.target, review.since
            if not review.moves:
                if review.was_passed_over:
                    grown = grown or target.grown(since)
                continue
            number = target.append_all(tuple(review.moves), since)
            if number is None:
                grown = grown or target.grown(since)
            elif review.call is not target:
                target.take_over(review.call, number)
        if grown is not None:
            raise grown


def _before_hooks(steps: History) -> Any:
    """Return the text of the input without what changed it since hooks were lent it, in each try.

    What a person made of it stays. Who did something in place is not known, so it goes as well: if
    a hook did it, the hook is asked again.
    """
    own: Any = None
    was_lent = False
    for step in steps:
        if step.kind == "reviewed" and step.phase == "execution":
            was_lent = True
        elif step.kind == "retried":
            was_lent = False
        elif step.kind in ("proposed", "changed") and (step.phase == "decision" or not was_lent):
            own = step.detail
    return own


def was_asked(hook: Any, asked: Sequence[Any]) -> bool:
    """Whether a hook is among those that were asked.

    In one process it is known by its registration, so that another hook set with the same function
    is asked; a plain function by itself. After a load it is known by its name; one without a name
    of its own, such as a lambda, counts as another: to ask it twice is a smaller fault than to
    leave it out.
    """
    hook = getattr(hook, "hook_tool_call", hook)
    key = hook_key(hook)
    return any(
        each is hook
        or (each.__class__ is str and each == key)
        or (each.__class__ is MethodType and each == hook)
        for each in asked
    )


def review_by(call: DecodedCall, hooks: Any) -> HookGenerator[None]:
    """Let a plain function review one call, and what its tool is declared with; write it."""
    review = Review.begin(call)
    if not was_asked(hooks, call.history.asked_hooks):
        yield from review.ask_function(hooks)
    yield from review.ask_declared()
    review.settle()
    Review.write_all([review])


def with_arguments(
    spec: AnySpec, tool: str, input: Any, changes: Mapping[str, Any]
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


def log(call: DecodedCall, decision: str, reason: str | None) -> None:
    """Log a decision at INFO, which is on.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` if the call goes on, else `reason`.
    """
    name = escape_unprintable(call.name)
    extra: dict[str, Any] = {
        "tool_name": name,
        "tool_call_id": escape_unprintable(call.id),
        "decision": decision,
    }
    if decision == "run_normally":
        shown = call.spec.shown_json(call.described)
        extra["effective_input_json"] = escape_unprintable_json(shown)
    else:
        extra["reason"] = None if reason is None else escape_unprintable(reason)
    LOGGER.info("%s: %s (call %r)", decision, name, call.id, extra=extra)
