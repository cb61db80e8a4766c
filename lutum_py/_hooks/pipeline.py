"""Send calls through hooks, in an order that is written down here and nowhere else.

For each call: execution hooks in the order of registration, each with the input that the one before
gave, validated again where it is another → gates, all of them, on the final input → before-hooks,
where the call is still to be run.

The steps are a generator that hands out whatever is to be awaited; see `_steps` for who runs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal

from .._call.call import AnyToolCall, HookOutcome, Hooks
from .._call.lifecycle import CallStatus
from .._call.outcomes import (
    HandledCall,
    RejectedCall,
    RejectionSource,
    SuspendedCall,
)
from .._call.selector import AnySelector
from .._call.steps import Steps, drive, drive_sync
from .._round.round_state import RoundState
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import HookError
from .decisions import (
    Block,
    CallGate,
    Complete,
    DecisionKind,
    DecisionRecord,
    Reject,
    RunNormally,
    Suspend,
    log_decision,
    logger,
)
from .hook_set import HookSet
from .registered_hook import RegisteredHook

__all__ = [
    "Steps",
    "after",
    "decide",
    "decide_one",
    "decide_one_sync",
    "describe",
    "drive",
    "drive_sync",
]

_kind_of: Callable[[object], Any] = type
_new_record: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

_RANK: dict[Any, int] = {Block: 0, Suspend: 1, Complete: 2, ToolResult: 2}
_DECISIONS = (RunNormally, Complete, Reject, Block, Suspend, ToolResult)


async def decide_one(call: AnyToolCall, hooks: Hooks) -> HookOutcome:
    """Send one call through hooks."""
    return await drive(decide(call, hooks, [], None))


def decide_one_sync(call: AnyToolCall, hooks: Hooks) -> HookOutcome:
    """Send one call through hooks that all are sync."""
    return drive_sync(decide(call, hooks, [], None))


def decide(
    call: AnyToolCall,
    hooks: Hooks,
    records: list[DecisionRecord],
    state: RoundState | None,
) -> Steps[HookOutcome]:
    """Send one call through hooks.

    Args:
        call: The call; it is not changed.
        hooks: A hook set, an object like one, or a plain function.
        records: Takes a record of each decision.
        state: The round of the call, if any: it remembers which before-hooks were run.
    """
    if not isinstance(hooks, HookSet):
        return (yield from _ask_function(call, hooks, records))
    execution, gates, before = hooks.deciding(call.selector)
    metadata = call.metadata
    if call._approval is None:
        for hook in execution:
            try:  # what `_ask` does, spelled out where every call of a round passes
                decision = hook.function(metadata, call._input)
                if hasattr(decision, "__await__"):
                    decision = yield hook.name, decision
            except Exception as error:
                raise _raised(hook, call, error) from error
            kind = _kind_of(decision)
            if kind is RunNormally:
                if decision.input is not call._input:
                    call = _rewrite(hook, call, decision.input)
                _record(records, call, hook, "hook", "run_normally", None)
            elif kind is Complete:
                handled = _settle(hook, call, decision.output)
                _record(records, call, hook, "hook", "complete", None)
                return handled
            elif kind is Reject:
                rejected = _reject(hook, call, decision.reason, "hook")
                _record(records, call, hook, "hook", "reject", decision.reason)
                return rejected
            else:
                raise _no_decision(
                    hook, call, decision, "RunNormally(input), Complete(output) or Reject(reason)"
                )
    if gates:
        gated = yield from _ask_gates(gates, call, records)
        if gated is not None:
            return gated
    for hook in before:
        mark = (metadata.id, hook.order)
        if state is None or mark not in state._ran_before:
            answer = yield from _ask(hook, call, metadata, call.input)
            if type(answer) in _DECISIONS:
                raise _no_decision(
                    hook, call, answer, "nothing: a before-hook decides nothing. Register a gate"
                )
            # At once: it has run, also where a later hook raises.
            if state is not None:
                state._ran_before |= {mark}
    return call


def _ask(hook: RegisteredHook, call: AnyToolCall, *arguments: Any) -> Steps[Any]:
    try:
        answer = hook.function(*arguments)
        if hasattr(answer, "__await__"):
            answer = yield hook.name, answer
    except Exception as error:
        raise _raised(hook, call, error) from error
    return answer


def _raised(hook: RegisteredHook, call: AnyToolCall, error: Exception) -> HookError:
    return _hook_error(hook.name, call, f"raised {type(error).__name__}: {error}", "Mend the hook")


def _ask_gates(
    gates: list[RegisteredHook], call: AnyToolCall, records: list[DecisionRecord]
) -> Steps[HookOutcome | None]:
    """Ask all gates; the strictest answer counts, and among equals the first."""
    decision = call.approval
    best: tuple[int, RegisteredHook, Any] | None = None
    for gate in gates:
        if isinstance(gate.function, CallGate):
            answer = yield from _ask(gate, call, call, decision)
        elif gate.takes_decision:
            answer = yield from _ask(gate, call, call.metadata, call.input, decision)
        else:
            answer = yield from _ask(gate, call, call.metadata, call.input)
        if answer is None:
            continue
        kind: DecisionKind
        given = _kind_of(answer)
        if given is Block:
            kind, reason = "block", _reason_of(gate, call, answer.reason)
        elif given is Suspend:
            kind, reason = "suspend", answer.ticket.action
        elif given is Complete or given is ToolResult:
            kind, reason = "complete", None
        else:
            raise _no_decision(
                gate,
                call,
                answer,
                "Block(reason), Suspend(ticket), Complete(output), a ToolResult or None",
            )
        _record(records, call, gate, "gate", kind, reason)
        if kind == "suspend" and _is_answered(call):
            continue  # answered: the call goes on under the digest that was approved
        rank = _RANK[given]
        if best is None or rank < best[0]:
            best = (rank, gate, answer)
    if best is None:
        return None
    rank, gate, answer = best
    if rank == 0:
        return _reject(gate, call, answer.reason, "gate")
    if rank == 1:
        return _again(call).suspend(answer.ticket)
    if type(answer) is ToolResult:
        _check_answers(gate, call, answer)
        handled = call.spec.handled_type
        return handled(call.metadata, call.input, answer.output, answer)
    return _settle(gate, call, answer.output)


def _ask_function(
    call: AnyToolCall, hooks: Any, records: list[DecisionRecord]
) -> Steps[HookOutcome]:
    """Ask a plain function, or an object with a `hook_tool_call`, about a copy of the call."""
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
    hook = RegisteredHook(function, "function")
    asked = _again(call)
    given = yield from _ask(hook, call, asked)
    answer: object = given
    kind: DecisionKind
    outcome: HookOutcome
    if isinstance(answer, AnyToolCall) and answer.metadata == call.metadata:
        kind, reason, outcome = "run_normally", None, _go_on(hook, call, asked, answer)
    elif isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        _check_answers(hook, call, answer.result)
        kind, reason, outcome = "complete", None, given
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        # `call.reject()` cannot know who says it; a hook set behind the function has said so.
        source: RejectionSource = "hook" if answer.source == "user" else answer.source
        kind = "block" if source == "gate" else "reject"
        reason = _reason_of(hook, call, answer.reason)
        outcome = RejectedCall(call.metadata, answer.call, answer.reason, source)
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        kind, reason = "suspend", answer.ticket.action
        outcome = call if _is_answered(call) else answer
    else:
        raise _no_decision(
            hook,
            call,
            given,
            "the call itself, call.handled(...), call.reject(...) or call.suspend(...)",
        )
    decided = outcome if isinstance(outcome, AnyToolCall) else call
    _record(records, decided, hook, "function", kind, reason)
    return outcome


def _go_on(
    hook: RegisteredHook, call: AnyToolCall, asked: AnyToolCall, answer: AnyToolCall
) -> AnyToolCall:
    """Take the call that a function gave back, with the input that it now has."""
    if answer.status is not call.status:
        raise _hook_error(
            hook.name,
            call,
            f"returned the call, which is {answer.status} by now",
            "Return what `handled`, `reject` or `suspend` gave",
        )
    if answer.input is call.input:
        return call
    return asked if answer is asked else _rewrite(hook, call, answer.input)


def _is_answered(call: AnyToolCall) -> bool:
    """Whether the call goes on by a decision, and still is what was decided on."""
    approval = call._approval
    return approval is not None and approval.digest == call.digest


def _again(call: AnyToolCall) -> AnyToolCall:
    """Copy a call, so that a decision changes the copy and the round stays as it is."""
    made = call._again()
    made.move_to(call.status)
    return made


def _rewrite(hook: RegisteredHook, call: AnyToolCall, value: Any) -> AnyToolCall:
    made = _again(call)
    try:
        made.input = value
    except Exception as error:
        raise _hook_error(
            hook.name, call, f"returned an unfit input: {error}", "Mend what it returns"
        ) from error
    return made


def _settle(hook: RegisteredHook, call: AnyToolCall, output: Any) -> HandledCall[Any, Any]:
    try:
        return _again(call).handled(output)
    except Exception as error:
        raise _hook_error(
            hook.name, call, f"returned an unfit output: {error}", "Mend what it returns"
        ) from error


def _check_answers(hook: RegisteredHook, call: AnyToolCall, result: ToolResult) -> None:
    """Make sure that a result is of this call."""
    metadata = call.metadata
    if (result.id, result.name, result.arguments) != (
        metadata.id,
        metadata.name,
        metadata.arguments,
    ):
        raise _hook_error(
            hook.name,
            call,
            f"returned a result of another call, {shorten(result.id)} of tool "
            f"{shorten(result.name)}",
            "Make it from this call, as `call.complete(output)` does",
        )


def _reject(
    hook: RegisteredHook, call: AnyToolCall, reason: str, source: Literal["hook", "gate"]
) -> RejectedCall:
    made = _again(call)
    made.move_to(CallStatus.CANCELLED)
    return RejectedCall(call.metadata, made, _reason_of(hook, call, reason), source)


def _reason_of(hook: RegisteredHook, call: AnyToolCall, reason: object) -> str:
    if not isinstance(reason, str):
        raise _hook_error(
            hook.name,
            call,
            f"gave {shorten(reason)} as a reason",
            "Give a text: the model reads it",
        )
    return reason


def _record(
    records: list[DecisionRecord],
    call: AnyToolCall,
    hook: RegisteredHook,
    phase: Literal["hook", "gate", "function"],
    kind: DecisionKind,
    reason: str | None,
) -> None:
    metadata = call.metadata
    # A named tuple's own way to be made costs twice as much, and every hook leaves a record.
    record = (metadata.id, metadata.name, hook.name, phase, kind, reason)
    records.append(_new_record(DecisionRecord, record))
    if logger.isEnabledFor(logging.INFO):
        log_decision(call, kind, reason)


def _no_decision(hook: RegisteredHook, call: AnyToolCall, answer: object, wanted: str) -> HookError:
    return _hook_error(hook.name, call, f"returned {shorten(answer)}", f"Return {wanted}")


def _hook_error(hook: str, call: AnyToolCall, what: str, remedy: str) -> HookError:
    return HookError(
        f"Hook `{hook}` for tool `{call.name}` (call {call.id!r}) {what.rstrip('.')}. {remedy}.",
        hook=hook,
        tool=call.name,
        call_id=call.id,
    )


def after(call: AnyToolCall, result: ToolResult, hooks: Hooks) -> Steps[ToolResult]:
    """Show a result to the after-hooks; each may put another in its place."""
    if not isinstance(hooks, HookSet):
        raise HookError(f"After-hooks are those of a HookSet, not of {shorten(hooks)}.")
    for hook in hooks.hooks_for(call.selector, "after"):
        answer = yield from _ask(hook, call, call, result)
        if answer is None:
            continue
        if not isinstance(answer, ToolResult):
            raise _no_decision(hook, call, answer, "a ToolResult or None")
        _check_answers(hook, call, answer)
        result = answer
    return result


def describe(hooks: HookSet[Any]) -> Steps[list[tuple[AnySelector, str]]]:
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
                    f"{type(error).__name__}: {error}. Mend the hook.",
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
