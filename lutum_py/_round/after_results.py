"""Show the results of a plan to after-hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._call.call import AnyToolCall, Hooks
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall
from .._hooks.pipeline import Steps, after
from .._transcript.result import ToolResult
from .commit import Answer, as_results

if TYPE_CHECKING:
    from .plan import ToolRoundPlan

__all__ = ["after_handled", "after_run"]


def after_run(
    plan: ToolRoundPlan[Any], hooks: Hooks, answers: Iterable[Answer]
) -> Steps[list[ToolResult]]:
    """Show the results of calls that were run; what is of no pending call passes as it is."""
    calls = {call.id: call for call in plan.pending}
    shown: list[ToolResult] = []
    for result in as_results(answers):
        call = calls.get(result.id)
        if call is not None:
            shown.append((yield from after(call, result, hooks)))
        else:
            shown.append(result)
    return shown


def after_handled(
    plan: ToolRoundPlan[Any], hooks: Hooks
) -> Steps[tuple[HandledCall[Any, Any], ...]]:
    """Show the results of calls that a hook or gate answered."""
    shown: list[HandledCall[Any, Any]] = []
    for handled in plan.handled:
        call = _call_of(plan, handled)
        result = yield from after(call, handled.result, hooks)
        if result is handled.result:
            shown.append(handled)
        else:
            kind = type(handled)
            shown.append(kind(handled.metadata, handled.input, result.output, result))
    return tuple(shown)


def _call_of(plan: ToolRoundPlan[Any], handled: HandledCall[Any, Any]) -> AnyToolCall:
    selector = plan.selector_of(handled.metadata)
    call = selector.Call(handled.metadata, handled.input, selector=selector)
    call.move_to(CallStatus.SUCCEEDED)
    return call
