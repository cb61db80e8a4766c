"""Send calls through hooks, in an order that is written down here and nowhere else.

One pass over some calls goes stage by stage, in the order of the calls:

1. execution hooks in the order of registration, each with the input that the one before gave,
   validated again if it was changed; one that has reviewed the call in this try does not again;
2. the rules that the tool is declared with, in the same way;
3. gates, all of them, on the final input, and last of them the approval that the tool is declared
   with; each has an input of its own, if that can be changed, so that none can change it;
4. before-hooks, if the call is still to be run.

When all have reviewed, what they said about each call becomes one entry of its history. All of it
is a generator that yields whatever is to be awaited; `drive` of `_call.deciding` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from .._call.call import Hooks
from .._call.call_state import DecodedCall
from .._call.deciding import OF_ARGUMENTS, OF_INPUT, Review, Reviewer, Verdict, was_asked
from .._call.decisions import Block, Complete, Reject, RunNormally, Suspend
from .._call.drivers import HookGenerator
from .._call.history import STAGES, Move, move
from .._call.selector import Selector
from .._text.escaping import words_of
from .._text.json import shorten
from .._transcript.result import ToolResult, rejection, with_labels
from .._transcript.transcript import Transcript
from ..errors import HookError
from .registered_hook import NO_HOOKS, ArgsHook, CallGate, HookPlaces, RegisteredHook, keyed

_kind_of: Callable[[object], Any] = type
_UNREVIEWED: Final = STAGES["unreviewed"]

# A gate that refuses wins over one that asks a person, and both over one that gives a result, in
# whichever order they were registered: no gate that is added can weaken another. Another rule
# between gates is another order here, or another choice at the end of `_ask_gates`.
_STRICTEST: Final = ("block", "suspend", "complete")


def review_calls(
    calls: Iterable[DecodedCall], hooks: Hooks, note: Callable[[Hooks], None] | None = None
) -> HookGenerator[list[Review]]:
    """Let hooks review calls that were not started, and write what they say.

    Args:
        calls: The calls.
        hooks: A hook set, an object like one, or a plain function.
        note: Is told the hooks before anything is written.

    Returns:
        The reviews; a call whose review has a verdict does not go on, or not yet.

    Raises:
        HookError: A hook raised, or gave something that is no decision. Nothing was written.
        LifecycleError: Something was done to a call meanwhile; what was said of others is written.
    """
    reviews: list[Review] = []
    unreviewed: list[Review] = []
    for call in calls:
        entries = call.entries
        led_to = entries[len(entries) - 1][0]
        if led_to.stage.may_ask:
            is_new = len(entries) == 1 == len(entries[0][4]) and call.lent is None
            review = Review(call) if is_new else Review.begin(call)
            reviews.append(review)
            if led_to is _UNREVIEWED:
                unreviewed.append(review)
    yield from review_all(reviews, hooks)
    for review in unreviewed:
        was_asked = any(each[0] == "reviewed" for each in review.moves)
        if not was_asked and review.target.stage is _UNREVIEWED:  # there was nobody to ask
            review.moves.insert(0, move("reviewed", phase="gate"))
    if note is not None:
        note(hooks)
    Review.write_all(reviews)
    return reviews


def review_all(reviews: Sequence[Review], hooks: Hooks) -> HookGenerator[None]:
    """Let hooks review calls, stage by stage; the caller writes what they say."""
    given: Any = hooks
    places: HookPlaces[Any] | None = given if isinstance(hooks, HookPlaces) else None
    # Stages after the first, for the few calls that have any: the rest pays for none of them.
    more: list[tuple[Review, list[RegisteredHook], list[RegisteredHook]]] = []
    # What reviews a tool is looked up once for calls of one tool in a row.
    selector: Any = None
    execution = gates = before = NO_HOOKS
    for review in reviews:
        call = review.call
        if call.selector is not selector:
            selector = call.selector
            if places is not None:
                execution, gates, before = places._decisions_for(selector)
        asked: list[Any] = []
        is_approved = False
        entries = call.entries
        led_to, _, _, _, moves = entries[len(entries) - 1]
        if moves[-1][0] != "proposed":  # also what was loaded is one entry
            if not led_to.stage.may_ask:  # it went on while others were reviewed
                review.was_passed_over = bool(
                    places is None or execution or gates or before or selector.needs_review
                )
                continue
            asked = call.history.asked_hooks
            is_approved = review.edited is None and bool(call.answers)
        if places is None:
            if not was_asked(given, asked):
                yield from review.ask_function(given)
        else:
            for hook in execution if not is_approved else ():
                if asked and was_asked(hook, asked):
                    continue
                call = review.call
                shown = call.input_for_hook()
                try:  # what `ask` does, spelled out where every call of a round passes
                    decision = hook.function(call.metadata, shown)
                    if _kind_of(decision) is not RunNormally and hasattr(decision, "__await__"):
                        decision = yield hook.name, decision
                except Exception as error:
                    call.restore_input()
                    raise Reviewer(hook.name, call).raised(error) from error
                except BaseException:
                    call.restore_input()
                    raise
                if _kind_of(decision) is RunNormally and decision.input is shown:
                    # What was done in place to it is looked for later, once.
                    review.note(hook.name, "execution", "run_normally", None, hook)
                    continue
                wanted = OF_ARGUMENTS if isinstance(hook.function, ArgsHook) else OF_INPUT
                review.apply(hook.name, decision, shown, hook, wanted)
                if review.verdict is not None:
                    break
        if gates or before or selector.needs_review:
            more.append((review, gates, before))
    for review, _, _ in more:
        # What hooks did to the input in place is looked for once: here, or as the call starts.
        review.take_changes()
        # Rules review also what a function lets wait: they may still change it, or end it.
        if review.verdict is None or review.verdict.verdict == "suspend":
            yield from review.ask_rules()
    for review, asked_gates, _ in more:
        if _goes_on(review):
            yield from _ask_gates(asked_gates, review)
    for review, _, hooks_before in more:
        if hooks_before and _goes_on(review) and not review.is_asked_again:
            yield from _ask_before(hooks_before, review)
    for review in reviews:
        if review.verdict is not None or review.edited is not None:
            review.settle()


def _goes_on(review: Review) -> bool:
    """Whether the call is still to be run: nobody decided otherwise, and no function ran it."""
    return review.verdict is None and review.call.stage.may_ask


def _ask_before(before: list[RegisteredHook], review: Review) -> HookGenerator[None]:
    """Run the before-hooks, each once a call."""
    call = review.call
    done = [step.detail for step in call.history if step.phase == "before"] if before else ()
    for key, hook in keyed(before):
        if key in done or not call.stage.may_ask:  # it may have gone on meanwhile
            continue
        asked = Reviewer(hook.name, call)
        answer = yield from asked.ask(hook.function, call.metadata, call.input_for_gate())
        if answer is not None:
            raise asked.not_a_decision(
                answer, "nothing: a before-hook decides nothing. Register a gate"
            )
        review.note(hook.name, "before", None, detail=key)


def _ask_gates(gates: list[RegisteredHook], review: Review) -> HookGenerator[None]:
    """Let all gates review a call; the strictest verdict counts, and among equals the first."""
    call = review.call
    answered = call.answer_of(tool=False) if gates else None
    decision = None if answered is None else answered.decision
    verdicts: list[Verdict] = []
    for gate in gates:
        shown = call.input_for_gate()
        given: tuple[Any, ...] = (call.metadata, shown)
        if isinstance(gate.function, CallGate):
            given = (review.draft().call, decision)
            _check_conversation(gate, call)
        elif gate.takes_decision:
            given = (*given, decision)
        asked = Reviewer(gate.name, call)
        answer = yield from asked.ask(gate.function, *given)
        if answer is None:
            review.note(gate.name, "gate", None)
            continue
        of = _kind_of(answer)
        if of is Block:
            reason = asked.checked_reason(answer.reason)
            verdict = Verdict("block", gate.name, "gate", reason)
        elif of is Suspend:
            ticket = answer.ticket
            verdict = Verdict("suspend", gate.name, "gate", ticket.action, ticket)
        elif of is Complete or of is ToolResult:
            verdict = Verdict("complete", gate.name, "gate", detail=answer)
        else:
            raise asked.not_a_decision(
                answer, "Block(reason), Suspend(ticket), Complete(output), a ToolResult or None"
            )
        review.note(gate.name, "gate", verdict.verdict, verdict.reason)
        if verdict.verdict == "suspend":
            if not call.prove():  # before anybody is asked about its text
                review.verdict = Verdict.unproven(call)
                return
            if call.is_answered(call.digest):
                continue  # answered: the call goes on under the digest that was approved
        # All gates review, also after a Block: each has its step in the history of the call, and
        # no gate can hide a call from those that were registered after it.
        verdicts.append(verdict)
    best = min(verdicts, key=lambda each: _STRICTEST.index(each.verdict), default=None)
    if call.selector.needs_review and (best is None or best.verdict == "complete"):
        yield from review.ask_approval()
        best = review.verdict or best
    if best is not None and best.verdict == "complete":
        best = best._replace(detail=Reviewer(best.by, call).output_and_result(best.detail))
    review.verdict = best


def _check_conversation(gate: RegisteredHook, call: DecodedCall) -> None:
    """Refuse a gate that goes by another conversation than that of the call's round.

    Raises:
        HookError: It does.
    """
    asked: Transcript | None = gate.function.transcript
    if asked is not None and not call.round.is_of(asked):
        raise Reviewer(gate.name, call).error(
            "goes by the transcript of another conversation than the round of the call",
            "Make a hook set for each conversation, with a gate of its session",
        )


class AfterSaid(NamedTuple):
    """The verdict of one after-hook on a call's result.

    Attributes:
        call: The call.
        hook: The name of the hook.
        key: Tells it from others of the name.
        put: What it put in place of the result, if anything.
        tried: Where in the history the try began that the result is of.
    """

    call: DecodedCall
    hook: str
    key: str
    put: ToolResult | None
    tried: int

    @property
    def move(self) -> Move:
        """The step that says so."""
        said = None if self.put is None else "replaced"
        detail = (self.key, self.put)
        return move("reviewed", by=self.hook, phase="after", verdict=said, detail=detail)


def write_said(said: Iterable[AfterSaid]) -> list[DecodedCall]:
    """Write what after-hooks said: about each call one entry, and none about a try that is over.

    Returns:
        The calls that were tried again meanwhile.
    """
    retried: list[DecodedCall] = []
    by_call: dict[int, list[AfterSaid]] = {}
    for each in said:
        by_call.setdefault(id(each.call), []).append(each)
    for every in by_call.values():
        call, *_, tried = every[0]
        moves = tuple([each.move for each in every])
        while True:
            since = len(call.entries)
            if tried != _tried(call):
                retried.append(call)
                break
            if not call.stage.is_end or call.append_all(moves, since) is not None:
                break
    return retried


def _tried(call: DecodedCall) -> int:
    """Say where in the history of a call its last try began."""
    history = call.history
    return len(history) - len(history.this_try)


def after(
    call: DecodedCall,
    result: ToolResult,
    hooks: HookPlaces[Any],
    said: list[AfterSaid],
    *,
    again: bool = False,
) -> HookGenerator[ToolResult]:
    """Show a result to the after-hooks; each may put another in its place.

    Args:
        call: The call that the result belongs to.
        result: The result.
        hooks: The hook set.
        said: Takes the verdict of each hook.
        again: Whether to run also those that have seen the result.
    """
    # Each hook is shown what the one before it made of the result. That it has seen it is written
    # down later, by `write_said`, when none can raise any more.
    tried = _tried(call)
    for key, hook in keyed(hooks._hooks_for(call.selector, "after")):
        if not again and was_asked_after(call, key):
            continue
        asked = Reviewer(hook.name, call)
        answer = yield from asked.ask(hook.function, call.call, result)
        if isinstance(answer, Complete):
            _, answer = asked.output_and_result(answer)
        elif isinstance(answer, Reject):
            reason = asked.checked_reason(answer.reason)
            answer = rejection(call.metadata, reason)
        # A hook writes a new result, as to shorten it, and would drop its labels by that.
        if isinstance(answer, ToolResult):
            answer = with_labels(answer, result.labels)
        said.append(AfterSaid(call, hook.name, key, answer, tried))
        if answer is None:
            continue
        if not isinstance(answer, ToolResult):
            wanted = "a ToolResult, Complete(output), Reject(reason) or None"
            raise asked.not_a_decision(answer, wanted)
        asked.check_result(answer)
        result = answer
    return result


def was_asked_after(call: DecodedCall, key: str) -> bool:
    """Whether an after-hook reviewed the result of the last try of a call."""
    return any(step.phase == "after" and step.detail[0] == key for step in call.history.this_try)


def describe(hooks: HookPlaces[Any]) -> HookGenerator[list[tuple[Selector[Any, Any], str]]]:
    """Run the description hooks of all tools."""
    found: list[tuple[Selector[Any, Any], str]] = []
    toolset: Any = hooks.toolset
    selectors: Iterable[Selector[Any, Any]] = toolset
    for selector in selectors:
        for hook in hooks._hooks_for(selector, "description"):
            try:
                text = hook.function(selector.definition)
                if hasattr(text, "__await__"):
                    text = yield hook.name, text
            except Exception as error:
                raise HookError(
                    f"Description hook `{hook.name}` of tool `{selector.name}` raised "
                    f"{type(error).__name__}: {words_of(error)}. Fix the hook.",
                    hook=hook.name,
                    tool=selector.name,
                ) from error
            if text is not None and not isinstance(text, str):
                raise HookError(
                    f"Description hook `{hook.name}` of tool `{selector.name}` returned "
                    f"{shorten(text)}. Return a text, or None to leave the description.",
                    hook=hook.name,
                    tool=selector.name,
                )
            if text is not None:
                found.append((selector, text))
    return found
