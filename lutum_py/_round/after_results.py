"""Show the results of a plan to after-hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._call.call import AnyToolCall, Hooks
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall
from .._call.steps import Steps
from .._hooks.pipeline import after
from .._transcript.result import ToolResult
from .commit import Answer, as_results
from .sorted_calls import SortedCalls

__all__ = ["after_handled", "after_run"]


def after_run(
    sorted_calls: SortedCalls, hooks: Hooks, answers: Iterable[Answer]
) -> Steps[list[ToolResult]]:
    """Show the results of calls that were run; what is of no pending call passes as it is."""
    calls = {call.id: call for call in sorted_calls.pending}
    shown: list[ToolResult] = []
    for result in as_results(answers):
        call = calls.get(result.id)
        if call is not None:
            shown.append((yield from after(call, result, hooks)))
        else:
            shown.append(result)
    return shown


def after_handled(
    sorted_calls: SortedCalls, hooks: Hooks
) -> Steps[tuple[HandledCall[Any, Any], ...]]:
    """Show the results of calls that a hook or gate answered."""
    shown: list[HandledCall[Any, Any]] = []
    for handled in sorted_calls.handled:
        call = _call_of(sorted_calls, handled)
        result = yield from after(call, handled.result, hooks)
        if result is handled.result:
            shown.append(handled)
        else:
            kind = type(handled)
            shown.append(kind(handled.metadata, handled.input, result.output, result))
    return tuple(shown)


def _call_of(sorted_calls: SortedCalls, handled: HandledCall[Any, Any]) -> AnyToolCall:
    selector = sorted_calls.selector_of(handled.metadata)
    call = selector.Call(handled.metadata, handled.input, selector=selector)
    call.move_to(CallStatus.SUCCEEDED)
    return call
