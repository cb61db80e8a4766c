"""Send calls through hooks, in an order that is written down here and nowhere else.

For each call: execution hooks in the order of registration, each with the input that the one before
gave, validated again where it is another → gates, all of them, on the final input, and last of them
the approval that the tool is declared with → before-hooks, where the call is still to be run.

The steps are a generator that hands out whatever is to be awaited; `_call.steps` says who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Literal, Protocol, TypeAlias

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.decision_log import DecisionKind, DecisionRecord, is_logged, log, new, record
from .._call.decisions import Complete, Reject, RunNormally
from .._call.lifecycle import NOT_BEGUN, CallStatus
from .._call.outcomes import (
    HandledCall,
    RejectedCall,
    SuspendedCall,
    ask,
    ask_approval,
    ask_function,
    check_answers,
    check_untouched,
    checked_reason,
    hook_error,
    is_answered,
    no_decision,
    raised,
    rewrite,
    shown_input,
)
from .._call.selector import AnySelector
from .._call.steps import Steps
from .._text.escaping import words_of
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import HookError
from .gate_decisions import Block, CallGate, Suspend
from .places import HookPlaces
from .registered_hook import PhaseHooks, RegisteredHook, keyed

__all__ = ["after", "decide", "decide_each", "describe"]

_kind_of: Callable[[object], Any] = type

_RANK: dict[Any, int] = {Block: 0, Suspend: 1, Complete: 2, ToolResult: 2}
_NO_HOOKS: list[RegisteredHook] = []
_ANY_STATUS = tuple(CallStatus)

Settled: TypeAlias = HandledCall[Any, Any] | RejectedCall | SuspendedCall
"""A call that is not to be run, or not yet."""


class RanBefore(Protocol):
    """Remembers which before-hooks were asked: by call id and the key of the hook."""

    _ran_before: frozenset[tuple[str, str]]


def decide(
    call: AnyToolCall,
    hooks: Hooks,
    records: list[DecisionRecord],
    state: RanBefore | None,
) -> Steps[HookOutcome]:
    """Send one call through hooks, whatever its status; see `decide_each`."""
    pending, settled = yield from decide_each((call,), hooks, records, state, asked=_ANY_STATUS)
    return pending[0] if pending else settled[0]


def decide_each(
    calls: Sequence[AnyToolCall],
    hooks: Hooks,
    records: list[DecisionRecord],
    state: RanBefore | None,
    *,
    asked: tuple[CallStatus, ...] = NOT_BEGUN,
) -> Steps[tuple[list[AnyToolCall], list[Settled]]]:
    """Send calls through hooks, one after the other.

    Args:
        calls: The calls; they are not changed.
        hooks: A hook set, an object like one, or a plain function.
        records: Takes a record of each decision.
        state: The round of the calls, if any: it remembers which before-hooks were run.
        asked: The statuses of the calls that are asked about when their turn comes.

    Returns:
        The calls that are still to be run, in order, and what became of the others.
    """
    # One generator for a whole round, and in it only what every call passes: an execution hook that
    # lets the call go on as it is. All else is asked of functions below, so that a call without
    # gates, before-hooks and approvals pays for none of them.
    pending: list[Any] = []
    settled: list[Any] = []
    given: Any = hooks
    places: HookPlaces[Any] | None = given if isinstance(hooks, HookPlaces) else None
    logs = is_logged()
    # What is asked about a tool is looked up once for calls of one tool in a row.
    selector: AnySelector | None = None
    execution = gates = before = _NO_HOOKS
    is_fixed = True
    known: object = None
    for each in calls:
        if each._status not in asked:
            pending.append(each)
            continue
        if places is None:
            outcome = yield from ask_function(each, hooks, records)
            (pending if isinstance(outcome, AnyToolCall) else settled).append(outcome)
            continue
        call = each
        if call.selector is not selector or known is not PhaseHooks.changes:
            selector, known = call.selector, PhaseHooks.changes
            execution, gates, before = places.deciding(selector)
            is_fixed = selector.spec.arguments.is_fixed
        approval = call._approval
        metadata = call.metadata
        for hook in execution if approval is None or approval.is_open else ():
            try:  # what `ask` does, spelled out where every call of a round passes
                shown = call._input if is_fixed else shown_input(call)
                decision = hook.function(metadata, shown)
                kind = _kind_of(decision)
                if kind is not RunNormally and hasattr(decision, "__await__"):
                    decision = yield hook.name, decision
                    kind = _kind_of(decision)
            except Exception as error:
                raise raised(hook.name, call, error) from error
            if not is_fixed:
                check_untouched(hook.name, call, shown)
            if kind is RunNormally and decision.input is shown:
                # And this is what `record` does.
                fields = (metadata.id, metadata.name, hook.name, "hook", "run_normally", None)
                records.append(new(DecisionRecord, fields))
                if logs:
                    log(call, "run_normally", None)
                continue
            outcome = _taken(hook, call, decision, records)
            if not isinstance(outcome, AnyToolCall):
                settled.append(outcome)
                break
            call = outcome
        else:
            if gates or before or call.selector.approval:
                outcome = yield from _decide_fully(call, gates, before, records, state)
                (pending if isinstance(outcome, AnyToolCall) else settled).append(outcome)
            else:
                pending.append(call)
    return pending, settled


def _taken(
    hook: RegisteredHook, call: AnyToolCall, decision: Any, records: list[DecisionRecord]
) -> HookOutcome:
    """Take what an execution hook decided: the call with another input, or what became of it."""
    kind = _kind_of(decision)
    if kind is RunNormally:
        made = rewrite(hook.name, call, decision.input)
        record(records, made, hook.name, "hook", "run_normally", None)
        return made
    if kind is Complete:
        handled = _settle(hook, call, decision.output)
        record(records, call, hook.name, "hook", "complete", None)
        return handled
    if kind is Reject:
        rejected = _reject(hook, call, decision.reason, "hook")
        record(records, call, hook.name, "hook", "reject", decision.reason)
        return rejected
    raise no_decision(
        hook.name,
        call,
        decision,
        "RunNormally(input), Complete(output) or Reject(reason)",
    )


def _decide_fully(
    call: AnyToolCall,
    gates: list[RegisteredHook],
    before: list[RegisteredHook],
    records: list[DecisionRecord],
    state: RanBefore | None,
) -> Steps[HookOutcome]:
    """Send a call with its final input through gates, its approval, and before-hooks."""
    approval = call._approval
    gated: HookOutcome | None = None
    if gates:
        gated = yield from _ask_gates(gates, call, records)
    if call.selector.approval and (gated is None or isinstance(gated, HandledCall)):
        gated = (yield from ask_approval(call, records)) or gated
    if gated is not None:
        return gated
    # An edit that hooks changed once more waits again: whoever is told of runs is told later.
    if before and not (approval and approval.is_open and approval.digest != call.digest):
        yield from _ask_before(before, call, state)
    return call


def _ask_before(
    before: list[RegisteredHook], call: AnyToolCall, state: RanBefore | None
) -> Steps[None]:
    """Ask the before-hooks, each once a call.

    A hook is marked before it is asked, so that two who ask at once ask once, and unmarked where
    it raises.
    """
    for key, hook in keyed(before):
        mark = (call.id, key)
        if state is not None:
            if mark in state._ran_before:
                continue
            state._ran_before |= {mark}
        try:
            shown = shown_input(call)
            answer = yield from ask(hook.name, hook.function, call, call.metadata, shown)
            check_untouched(hook.name, call, shown)
            if answer is not None:
                raise no_decision(
                    hook.name,
                    call,
                    answer,
                    "nothing: a before-hook decides nothing. Register a gate",
                )
        except BaseException:
            if state is not None:
                state._ran_before -= {mark}
            raise


def _ask_gates(
    gates: list[RegisteredHook], call: AnyToolCall, records: list[DecisionRecord]
) -> Steps[HookOutcome | None]:
    """Ask all gates; the strictest answer counts, and among equals the first."""
    approval = call.gate_approval
    decision = None if approval is None else approval.decision
    best: tuple[int, RegisteredHook, Any] | None = None
    for gate in gates:
        shown = shown_input(call)
        given: tuple[Any, ...] = (call.metadata, shown)
        if isinstance(gate.function, CallGate):
            given = (call, decision)
        elif gate.takes_decision:
            given = (*given, decision)
        answer = yield from ask(gate.name, gate.function, call, *given)
        check_untouched(gate.name, call, shown)
        if answer is None:
            continue
        kind: DecisionKind
        of = _kind_of(answer)
        if of is Block:
            kind, reason = "block", checked_reason(gate.name, call, answer.reason)
        elif of is Suspend:
            kind, reason = "suspend", answer.ticket.action
        elif of is Complete or of is ToolResult:
            kind, reason = "complete", None
        else:
            raise no_decision(
                gate.name,
                call,
                answer,
                "Block(reason), Suspend(ticket), Complete(output), a ToolResult or None",
            )
        record(records, call, gate.name, "gate", kind, reason)
        if kind == "suspend" and is_answered(call, call.digest):
            continue  # answered: the call goes on under the digest that was approved
        rank = _RANK[of]
        if best is None or rank < best[0]:
            best = (rank, gate, answer)
    if best is None:
        return None
    rank, gate, answer = best
    if rank == 0:
        return _reject(gate, call, answer.reason, "gate")
    if rank == 1:
        return copy(call).suspend_by(gate.name, answer.ticket)
    if type(answer) is ToolResult:
        check_answers(gate.name, call, answer)
        handled: HandledCall[Any, Any] = call.spec.handled_type(
            call.metadata, call.input, answer.output, answer, gate.name
        )
        return handled
    return _settle(gate, call, answer.output)


def _settle(hook: RegisteredHook, call: AnyToolCall, output: Any) -> HandledCall[Any, Any]:
    try:
        return copy(call).handled_by(hook.name, output)
    except Exception as error:
        raise hook_error(
            hook.name, call, f"returned an unfit output: {words_of(error)}", "Mend what it returns"
        ) from error


def _reject(
    hook: RegisteredHook, call: AnyToolCall, reason: str, source: Literal["hook", "gate"]
) -> RejectedCall:
    made = copy(call)
    made.move_to(CallStatus.CANCELLED)
    said = checked_reason(hook.name, call, reason)
    return RejectedCall(call.metadata, made, said, source, hook.name)


def after(
    call: AnyToolCall,
    result: ToolResult,
    hooks: HookPlaces[Any],
    asked: set[tuple[str, str]],
    *,
    again: bool = False,
) -> Steps[ToolResult]:
    """Show a result to the after-hooks; each may put another in its place.

    Args:
        call: The call that the result is of.
        result: The result.
        hooks: The hook set.
        asked: Which hooks were asked about which calls; those that are asked now are added.
        again: Whether to ask also those that were asked before.
    """
    for key, hook in keyed(hooks.hooks_for(call.selector, "after")):
        if (call.id, key) in asked and not again:
            continue
        asked.add((call.id, key))
        answer = yield from ask(hook.name, hook.function, call, call, result)
        if answer is None:
            continue
        if not isinstance(answer, ToolResult):
            raise no_decision(hook.name, call, answer, "a ToolResult or None")
        check_answers(hook.name, call, answer)
        result = answer
    return result


def describe(hooks: HookPlaces[Any]) -> Steps[list[tuple[AnySelector, str]]]:
    """Ask the description hooks of all tools."""
    found: list[tuple[AnySelector, str]] = []
    toolset: Any = hooks.toolset
    selectors: Iterable[AnySelector] = toolset
    for selector in selectors:
        for hook in hooks.hooks_for(selector, "description"):
            try:
                text = hook.function(selector.definition)
                if hasattr(text, "__await__"):
                    text = yield hook.name, text
            except Exception as error:
                raise HookError(
                    f"Description hook `{hook.name}` of tool `{selector.name}` raised "
                    f"{type(error).__name__}: {words_of(error)}. Mend the hook.",
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
