"""Send calls through hooks, in an order that is written down here and nowhere else.

For each call: execution hooks in the order of registration, each with the input that the one before
gave, validated again if it was changed → the rules that the tool is declared with, in the same way
→ gates, all of them, on the final input, and last of them the approval that the tool is declared
with → before-hooks, if the call is still to be run.

All of it is a generator that yields whatever is to be awaited; `_call.drivers` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from logging import INFO
from time import time
from typing import Any, Final, NamedTuple

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.call_state import MADE_LATER
from .._call.deciding import (
    OF_ARGUMENTS,
    OF_INPUT,
    Verdict,
    apply_decision,
    ask,
    ask_approval,
    ask_function_and_rules,
    ask_rules,
    check_answers,
    checked_reason,
    hook_error,
    hook_raised,
    is_answered,
    not_a_decision,
    output_and_result,
    settle,
    take_changes,
    unproven,
)
from .._call.decisions import LOGGER, Block, Complete, HookRun, RunNormally, Suspend, log
from .._call.drivers import HookGenerator
from .._call.history import Step, new_step, time_after
from .._call.selector import AnySelector, Selector
from .._text.escaping import words_of
from .._text.json import shorten
from .._text.on_demand import ONCE
from .._transcript.result import ToolResult, with_labels
from .._transcript.transcript import Transcript
from ..errors import HookError
from .places import HookPlaces
from .registered_hook import NO_HOOKS, ArgsHook, CallGate, PhaseHooks, RegisteredHook, keyed

_kind_of: Callable[[object], Any] = type

# A gate that refuses wins over one that asks a person, and both over one that gives a result, in
# whichever order they were registered: no gate that is added can weaken another. Another rule
# between gates is another order here, or another choice at the end of `_ask_gates`.
_STRICTEST: Final = ("block", "suspend", "complete")
_RUN = "run_normally"


def decide(
    call: AnyToolCall, hooks: Hooks, hook_run: HookRun, *, is_open: bool = False, of: Any = None
) -> HookGenerator[HookOutcome]:
    """Send one call through hooks, whatever its status; see `decide_each`."""
    (outcome,) = yield from decide_each(
        (call,), hooks, hook_run, whatever=True, is_open=is_open, of=of
    )
    return outcome


def decide_each(
    calls: Sequence[AnyToolCall],
    hooks: Hooks,
    hook_run: HookRun,
    *,
    whatever: bool = False,
    is_open: bool = False,
    of: AnyToolCall | None = None,
) -> HookGenerator[list[HookOutcome]]:
    """Send calls through hooks, one after the other.

    Args:
        calls: The calls; they are not changed.
        hooks: A hook set, an object like one, or a plain function.
        hook_run: Takes each verdict; the caller writes them when all have reviewed.
        whatever: Whether to review also calls that may not start any more.
        is_open: Whether execution hooks review the call although it is approved, as for an edit.
        of: If the only call is a draft, the call that it is a draft of: a before-hook that was
            reviewed either does not review the other.

    Returns:
        Each call that is still to be run, and what became of each other.
    """
    # One generator for a whole round, and in it only what every call passes: an execution hook that
    # lets the call go on as it is. All else is done by functions below, so that a call without
    # gates, before-hooks and approvals pays for none of them.
    outcomes: list[HookOutcome] = []
    given: Any = hooks
    places: HookPlaces[Any] | None = given if isinstance(hooks, HookPlaces) else None
    notes = hook_run.notes
    logs = LOGGER.isEnabledFor(INFO)
    # What reviews a tool is looked up once for calls of one tool in a row.
    selector: AnySelector | None = None
    execution = gates = before = NO_HOOKS
    is_fixed = True
    known: object = None
    for one in calls:
        # A branch of an older generation shows the history of another, which is reviewed.
        each: Any = one if one._branch is None else one._current
        raw = each._raw
        # The same as `each._own_history`, mostly without the call of a property.
        steps = raw if raw[-1].__class__ is Step else each._own_history
        stage = steps[-1].stage
        if not (stage.may_start or whatever):
            outcomes.append(one)
            continue
        if each._text is not None and stage.may_start:
            each._take_changes()  # no hook is to be blamed for them
            steps = each._own_history
        if places is None:
            outcome = yield from ask_function_and_rules(each, hooks, hook_run)
            outcomes.append(one if outcome is each else outcome)
            continue
        call = each
        if call.selector is not selector or known is not PhaseHooks.changes:
            selector = own = call.selector
            known = PhaseHooks.changes
            execution, gates, before = places._decisions_for(own)
            is_fixed = own.spec.arguments.is_fixed
        is_approved = len(steps) > 2 and not is_open and bool(call._answers)
        metadata = call.metadata
        history = steps
        for hook in execution if not is_approved else ():
            try:  # what `ask` does, spelled out where every call of a round passes
                shown = call._cache
                if not is_fixed or shown is MADE_LATER:
                    shown = (call if call._branch is None else call._current)._lend()
                decision = hook.function(metadata, shown)
                kind = _kind_of(decision)
                if kind is not RunNormally and hasattr(decision, "__await__"):
                    decision = yield hook.name, decision
                    kind = _kind_of(decision)
            except Exception as error:
                call._put_back()
                raise hook_raised(hook.name, call, error) from error
            except BaseException:
                call._put_back()
                raise
            if kind is RunNormally and decision.input is shown:
                if call is not each or is_open:
                    hook_run.note(call, hook.name, "execution", "run_normally")
                    continue
                # What `hook_run.note` does, spelled out.
                if history is not steps:  # another hook has spoken about the same history
                    history = notes.pop()[2]
                at, last = time(), history[-1].at
                at = at if last is None or at >= last else last
                said = ("reviewed", stage, at, hook.name, "execution", _RUN, None, None, hook_run)
                history = (*history, new_step(said))
                notes.append((call, steps, history))
                if logs:
                    log(call, "run_normally", None)
                continue
            wanted = OF_ARGUMENTS if isinstance(hook.function, ArgsHook) else OF_INPUT
            outcome = apply_decision(hook.name, call, decision, hook_run, shown, wanted)
            if not isinstance(outcome, AnyToolCall):
                outcomes.append(outcome)
                break
            call = outcome
        else:
            if not is_fixed and not call.selector.rules:
                call = take_changes(call, hook_run)
            if gates or before or call.selector.needs_review:
                outcome = yield from _decide_fully(call, gates, before, hook_run, is_open, of)
                outcomes.append(one if outcome is each else outcome)
            else:
                outcomes.append(one if call is each else call)
    return outcomes


def _decide_fully(
    call: AnyToolCall,
    gates: list[RegisteredHook],
    before: list[RegisteredHook],
    hook_run: HookRun,
    is_open: bool,
    of: AnyToolCall | None,
) -> HookGenerator[HookOutcome]:
    """Send a call through its rules, and then through gates, its approval, and before-hooks."""
    if call.selector.rules:
        ruled = yield from ask_rules(call, hook_run)
        if not isinstance(ruled, AnyToolCall):
            return ruled
        call = ruled
    verdict = (yield from _ask_gates(gates, call, hook_run)) if gates else None
    if call.selector.needs_review and (verdict is None or verdict.verdict == "complete"):
        verdict = (yield from ask_approval(call, hook_run)) or verdict
    if verdict is not None:
        return settle(call, verdict, hook_run)
    # An edit that hooks changed once more waits again: before-hooks review it when it should run.
    if before and not (is_open and call._answers and call._answers[0].digest != call.digest):
        yield from _ask_before(before, call, of)
    return call


def _ask_before(
    before: list[RegisteredHook], call: AnyToolCall, of: AnyToolCall | None
) -> HookGenerator[None]:
    """Run the before-hooks, each once a call, whichever branch of it was reviewed.

    That one reviews is written down before it does, so that of two at once only one reviews, and
    struck out if it raises.
    """
    for key, hook in keyed(before):
        step = _claimed_before(call, key, of or call)
        if step is None:
            continue
        try:
            shown = call._lend_copy()
            answer = yield from ask(hook.name, hook.function, call, call.metadata, shown)
            if answer is not None:
                raise not_a_decision(
                    hook.name,
                    call,
                    answer,
                    "nothing: a before-hook decides nothing. Register a gate",
                )
        except BaseException:
            with ONCE:
                for each in (call, call._current):
                    each._own_history = tuple(one for one in each._own_history if one is not step)
            raise


def _claimed_before(call: AnyToolCall, key: str, of: AnyToolCall) -> Step | None:
    """Write that a before-hook reviews a call, or return None if it did already."""
    with ONCE:
        # One before-hook reviews a call once, though plans may review several branches of
        # it. The claim is written under the lock before the hook runs, so two threads cannot both
        # ask. If somebody ran or ended the call while other hooks reviewed it, it comes too late.
        last = call._own_history[-1]
        if not last.stage.may_ask:
            return None
        group = () if of._branch is None else of._branch.group.members
        for each in (call, of, *group):
            for step in each._own_history:
                if step.phase == "before" and step.detail == key:
                    return None
        at, name = time_after(last), key.partition("#")[0]
        made: Step = new_step(("reviewed", last.stage, at, name, "before", None, None, None, key))
        call._own_history = (*call._own_history, made)
        return made


def _ask_gates(
    gates: list[RegisteredHook], call: AnyToolCall, hook_run: HookRun
) -> HookGenerator[Verdict | None]:
    """Let all gates review a call; the strictest verdict counts, and among equals the first."""
    answered = call._answer_of(tool=False)
    decision = None if answered is None else answered.decision
    verdicts: list[Verdict] = []
    for gate in gates:
        shown = call._lend_copy()
        given: tuple[Any, ...] = (call.metadata, shown)
        if isinstance(gate.function, CallGate):
            given = (call, decision)
            _check_conversation(gate, call)
        elif gate.takes_decision:
            given = (*given, decision)
        answer = yield from ask(gate.name, gate.function, call, *given)
        if answer is None:
            hook_run.note(call, gate.name, "gate", None)
            continue
        of = _kind_of(answer)
        if of is Block:
            reason = checked_reason(gate.name, call, answer.reason)
            verdict = Verdict("block", gate.name, "gate", reason)
        elif of is Suspend:
            ticket = answer.ticket
            verdict = Verdict("suspend", gate.name, "gate", ticket.action, ticket)
        elif of is Complete or of is ToolResult:
            verdict = Verdict("complete", gate.name, "gate", detail=answer)
        else:
            raise not_a_decision(
                gate.name,
                call,
                answer,
                "Block(reason), Suspend(ticket), Complete(output), a ToolResult or None",
            )
        hook_run.note(call, gate.name, "gate", verdict.verdict, verdict.reason)
        if verdict.verdict == "suspend":
            if not call._prove():  # before anybody is asked about its text
                return unproven(call)
            if is_answered(call, call.digest):
                continue  # answered: the call goes on under the digest that was approved
        # All gates review, also after a Block: each has its step in the history of the call, and
        # no gate can hide a call from those that were registered after it.
        verdicts.append(verdict)
    best = min(verdicts, key=lambda each: _STRICTEST.index(each.verdict), default=None)
    if best is None or best.verdict != "complete":
        return best
    return best._replace(detail=output_and_result(best.by, call, best.detail))


def _check_conversation(gate: RegisteredHook, call: AnyToolCall) -> None:
    """Refuse a gate that goes by another conversation than that of the call's round.

    Raises:
        HookError: It does.
    """
    asked: Transcript | None = gate.function.transcript
    if asked is not None and not call._round.is_of(asked):
        raise hook_error(
            gate.name,
            call,
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
    """

    call: AnyToolCall
    hook: str
    key: str
    put: ToolResult | None

    def write(self) -> None:
        """Write it to the history of the call."""
        said = None if self.put is None else "replaced"
        detail = (self.key, self.put)
        self.call._append("reviewed", by=self.hook, phase="after", verdict=said, detail=detail)


def after(
    call: AnyToolCall,
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
    # down later, by `AfterSaid.write`, when none can raise any more.
    for key, hook in keyed(hooks._hooks_for(call.selector, "after")):
        if not again and was_asked_after(call, key):
            continue
        answer = yield from ask(hook.name, hook.function, call, call, result)
        # A hook writes a new result, as to shorten it, and would drop its labels by that.
        if isinstance(answer, ToolResult):
            answer = with_labels(answer, result.labels)
        said.append(AfterSaid(call, hook.name, key, answer))
        if answer is None:
            continue
        if not isinstance(answer, ToolResult):
            raise not_a_decision(hook.name, call, answer, "a ToolResult or None")
        check_answers(hook.name, call, answer)
        result = answer
    return result


def was_asked_after(call: AnyToolCall, key: str) -> bool:
    """Whether an after-hook reviewed the result of a call: of its last try."""
    result: object = None
    is_saved = False
    for step in reversed(call._history):
        detail: Any = step.detail
        if step.kind in ("ended", "recorded"):  # a saved history has the result in `recorded` alone
            is_saved = step.kind == "ended" and detail is None
            result = result or detail
        # The result may be one that an after-hook made of an earlier try's; then the steps before
        # `retried` count as well. It is told by identity, since two runs may give equal results,
        # and by equality only in a history that was saved.
        put: list[Any] = [each.detail for each in call._history if each.phase == "after"]
        if step.kind == "retried" and not any(
            by_hook is result or (is_saved and by_hook == result)
            for _, by_hook in put
            if by_hook is not None
        ):
            return False
        if step.phase == "after" and step.detail[0] == key:
            return True
    return False


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
