"""Send calls through hooks, in an order that is written down here and nowhere else.

For each call: execution hooks in the order of registration, each with the input that the one before
gave, validated again where it is another → gates, all of them, on the final input → before-hooks,
where the call is still to be run.

The steps are a generator that hands out whatever is to be awaited. Two small drivers run it, one
for async code and one for sync code, so that both do the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Generator
from typing import Any, Literal, TypeAlias, TypeVar

from ._call import AnyToolCall
from ._call_gate import CallGate
from ._decision_log import log_decision
from ._decisions import (
    Block,
    Complete,
    DecisionKind,
    DecisionRecord,
    Reject,
    RunNormally,
    Suspend,
)
from ._hook_outcome import HookOutcome, Hooks
from ._hook_set import HookSet, RegisteredHook
from ._json import shorten
from ._outcomes import HandledCall, RejectedCall, SuspendedCall
from ._result import ToolResult
from ._selector import AnySelector
from .errors import HookError, LutumError

__all__ = ["Decided", "after", "decide", "decide_one", "decide_one_sync", "drive", "drive_sync"]

R = TypeVar("R")

Waits: TypeAlias = tuple[str, Awaitable[Any]]
"""The name of a hook, and what it gave to be awaited."""

Steps: TypeAlias = Generator[Waits, Any, R]

_RANK = {Block: 0, Suspend: 1}


class Decided:
    """What became of one call, and who decided it.

    Attributes:
        outcome: The call itself, or what became of it.
        is_blocked: Whether a gate blocked it.
    """

    __slots__ = ("is_blocked", "outcome")

    def __init__(self, outcome: HookOutcome, is_blocked: bool = False) -> None:
        self.outcome = outcome
        self.is_blocked = is_blocked


async def drive(steps: Steps[R]) -> R:
    """Run steps to their end, awaiting what has to be awaited."""
    try:
        _, awaitable = next(steps)
        while True:
            try:
                value = await awaitable
            except BaseException as error:
                _, awaitable = steps.throw(error)
            else:
                _, awaitable = steps.send(value)
    except StopIteration as end:
        result: R = end.value
        return result


def drive_sync(steps: Steps[R]) -> R:
    """Run steps to their end where nothing has to be awaited.

    Raises:
        TypeError: A hook is async; the text names it.
    """
    try:
        name, awaitable = next(steps)
    except StopIteration as end:
        result: R = end.value
        return result
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    steps.close()
    raise TypeError(
        f"Hook `{name}` is async, so it cannot be asked from sync code. Use the async twin of this "
        "method, or make the hook a plain function."
    )


async def decide_one(call: AnyToolCall, hooks: Hooks) -> HookOutcome:
    """Send one call through hooks."""
    return (await drive(decide(call, hooks, [], set()))).outcome


def decide_one_sync(call: AnyToolCall, hooks: Hooks) -> HookOutcome:
    """Send one call through hooks that all are sync."""
    return drive_sync(decide(call, hooks, [], set())).outcome


def decide(
    call: AnyToolCall,
    hooks: Hooks,
    records: list[DecisionRecord],
    ran_before: set[tuple[str, int]],
) -> Steps[Decided]:
    """Send one call through hooks.

    Args:
        call: The call; it is not changed.
        hooks: A hook set, an object like one, or a plain function.
        records: Takes a record of each decision.
        ran_before: The before-hooks that were already run, by call id and order.
    """
    if not isinstance(hooks, HookSet):
        return (yield from _ask_function(call, hooks, records))
    selector = call.selector
    if call.approval is None:
        for hook in hooks.hooks_for(selector, "execution"):
            decision = yield from _ask(hook, call, call.metadata, call.input)
            if type(decision) is RunNormally:
                if decision.input is not call.input:
                    call = _rewrite(hook, call, decision.input)
                _record(records, call, hook, "hook", "run_normally", None)
            elif type(decision) is Complete:
                handled = _settle(hook, call, decision.output)
                _record(records, call, hook, "hook", "complete", None)
                return Decided(handled)
            elif type(decision) is Reject:
                _record(records, call, hook, "hook", "reject", decision.reason)
                return Decided(_reject(call, decision.reason, "hook"))
            else:
                raise _no_decision(
                    hook, call, decision, "RunNormally(input), Complete(output) or Reject(reason)"
                )
    gates = hooks.hooks_for(selector, "gates")
    if gates:
        gated = yield from _ask_gates(gates, call, records)
        if gated is not None:
            return gated
    for hook in hooks.hooks_for(selector, "before"):
        mark = (call.id, hook.order)
        if mark not in ran_before:
            yield from _ask(hook, call, call.metadata, call.input)
            ran_before.add(mark)
    return Decided(call)


def _ask(hook: RegisteredHook, call: AnyToolCall, *arguments: Any) -> Steps[Any]:
    try:
        answer = hook.function(*arguments)
        if hasattr(answer, "__await__"):
            answer = yield hook.name, answer
    except Exception as error:
        raise _hook_error(
            hook.name, call, f"raised {type(error).__name__}: {error}", "Mend the hook"
        ) from error
    return answer


def _ask_gates(
    gates: list[RegisteredHook], call: AnyToolCall, records: list[DecisionRecord]
) -> Steps[Decided | None]:
    """Ask all gates; the strictest answer counts, and among equals the first."""
    decision = call.approval
    best: tuple[int, RegisteredHook, Any] | None = None
    for gate in gates:
        if isinstance(gate.function, CallGate):
            answer = yield from _ask(gate, call, call, decision)
        elif gate.takes > 2:
            answer = yield from _ask(gate, call, call.metadata, call.input, decision)
        else:
            answer = yield from _ask(gate, call, call.metadata, call.input)
        if answer is None:
            continue
        kind: DecisionKind
        if type(answer) is Block:
            kind, reason = "block", answer.reason
        elif type(answer) is Suspend:
            kind, reason = "suspend", answer.ticket.action
        elif type(answer) in (Complete, ToolResult):
            kind, reason = "complete", None
        else:
            raise _no_decision(gate, call, answer, "Block, Suspend, Complete, a ToolResult or None")
        _record(records, call, gate, "gate", kind, reason)
        if kind == "suspend" and decision is not None:
            continue  # answered: the call goes on under the digest that was approved
        rank = _RANK.get(type(answer), 2)
        if best is None or rank < best[0]:
            best = (rank, gate, answer)
    if best is None:
        return None
    _, gate, answer = best
    if type(answer) is Block:
        return Decided(_reject(call, answer.reason, "gate"), is_blocked=True)
    if type(answer) is Suspend:
        return Decided(_again(call).suspend(answer.ticket))
    if type(answer) is ToolResult:
        return Decided(_take_result(gate, call, answer))
    return Decided(_settle(gate, call, answer.output))


def _ask_function(call: AnyToolCall, hooks: Any, records: list[DecisionRecord]) -> Steps[Decided]:
    """Ask a plain function, or an object with a `hook_tool_call`, about a copy of the call."""
    function = getattr(hooks, "hook_tool_call", hooks)
    if not callable(function):
        raise HookError(
            f"Hooks are a HookSet, or a function of a call, not {shorten(hooks)}. Pass "
            f"`{call.selector.toolset.__name__ if call.selector.toolset else 'Toolset'}.HookSet()`."
        )
    hook = RegisteredHook(function, "function")
    answer = yield from _ask(hook, call, _again(call))
    kind: DecisionKind
    if isinstance(answer, AnyToolCall) and answer.metadata == call.metadata:
        kind, reason = "run_normally", None
    elif isinstance(answer, HandledCall) and answer.metadata == call.metadata:
        kind, reason = "complete", None
    elif isinstance(answer, RejectedCall) and answer.metadata == call.metadata:
        kind, reason = "reject", answer.reason
    elif isinstance(answer, SuspendedCall) and answer.call.metadata == call.metadata:
        kind, reason = "suspend", answer.ticket.action
    else:
        raise _no_decision(
            hook,
            call,
            answer,
            "the call itself, call.handled(...), call.reject(...) or call.suspend(...)",
        )
    decided = answer if isinstance(answer, AnyToolCall) else call
    _record(records, decided, hook, "function", kind, reason)
    return Decided(answer)


def _again(call: AnyToolCall) -> AnyToolCall:
    """Copy a call, so that a decision changes the copy and the round stays as it is."""
    made = call.again()
    made.move_to(call.status)
    return made


def _rewrite(hook: RegisteredHook, call: AnyToolCall, value: Any) -> AnyToolCall:
    made = _again(call)
    try:
        made.input = value
    except LutumError as error:
        raise _hook_error(
            hook.name, call, f"returned an unfit input: {error}", "Mend what it returns"
        ) from error
    return made


def _settle(hook: RegisteredHook, call: AnyToolCall, output: Any) -> HandledCall[Any, Any]:
    try:
        return _again(call).handled(output)
    except LutumError as error:
        raise _hook_error(
            hook.name, call, f"returned an unfit output: {error}", "Mend what it returns"
        ) from error


def _take_result(
    hook: RegisteredHook, call: AnyToolCall, result: ToolResult
) -> HandledCall[Any, Any]:
    metadata = call.metadata
    if (result.id, result.name, result.arguments) != (
        metadata.id,
        metadata.name,
        metadata.arguments,
    ):
        raise _hook_error(
            hook.name, call, f"returned a result of another call, {result.id!r}", "Answer this one"
        )
    handled: HandledCall[Any, Any] = call.spec.handled_type(
        metadata, call.input, result.output, result
    )
    return handled


def _reject(call: AnyToolCall, reason: str, source: Literal["hook", "gate"]) -> RejectedCall:
    made = _again(call)
    made.reject(reason)
    return RejectedCall(call.metadata, made, reason, source)


def _record(
    records: list[DecisionRecord],
    call: AnyToolCall,
    hook: RegisteredHook,
    phase: Literal["hook", "gate", "function"],
    kind: DecisionKind,
    reason: str | None,
) -> None:
    records.append(DecisionRecord(call.id, call.name, hook.name, phase, kind, reason))
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
        result = _take_result(hook, call, answer).result
    return result


def describe(hooks: HookSet[Any]) -> Steps[list[tuple[AnySelector, str]]]:
    """Ask the description hooks of all tools."""
    found: list[tuple[AnySelector, str]] = []
    for selector in hooks.toolset:
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
