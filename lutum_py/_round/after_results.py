"""Show the results of a plan to after-hooks, each once to each hook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._call.call import AnyToolCall, Hooks
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall, SuspendedCall
from .._call.steps import Steps
from .._hooks.pipeline import after
from .._hooks.places import HookPlaces
from .._text.json import shorten
from .._text.once import ONCE
from .._transcript.result import ToolResult
from ..errors import HookError
from .commit import ResultLike, as_results
from .sorted_calls import SortedCalls, moving

__all__ = ["show_results"]

Marks = set[tuple[str, str]]
"""Which hooks were asked about which calls: call id, and the key of the hook."""


def show_results(
    calls: SortedCalls, hooks: Hooks, answers: Iterable[ResultLike | SuspendedCall]
) -> Steps[list[ToolResult | SuspendedCall]]:
    """Show results to the after-hooks; see `ToolRoundPlan.apply_after_hooks`.

    The plan changes when all were asked: where a hook raises, it is as it was.
    """
    hook_set: Any = hooks
    if not isinstance(hooks, HookPlaces):
        raise HookError(f"After-hooks are those of a HookSet, not of {shorten(hooks)}.")
    results, suspended = as_results(answers)
    marks: Marks = set(calls._asked_after)
    open_calls = {call.id: call for call in (*calls.pending, *calls.in_doubt)}
    shown: list[ToolResult | SuspendedCall] = []
    for result in results:
        call = open_calls.get(result.id)
        if call is None:  # of no call of ours, or of one that was never decoded
            shown.append(result)
        else:
            # The plan does not hold this result: who passes it again wants to see the same again.
            shown.append((yield from after(call, result, hook_set, marks, again=True)))
    finished: dict[str, ToolResult] = {}
    for result in calls.finished:
        ended = calls._ended.get(result.id)
        if ended is not None:
            finished[result.id] = yield from after(ended, result, hook_set, marks)
    handled: dict[str, HandledCall[Any, Any]] = {}
    for each in calls.handled:
        result = yield from after(_call_of(calls, each), each.result, hook_set, marks)
        if result is not each.result:
            made = type(each)(each.metadata, each.input, result.output, result, each.by)
            handled[each.metadata.id] = made
    # What came to the plan while hooks were awaited stays in it.
    if finished:
        with ONCE:
            moving(calls).finished.update(finished)
    calls.change(
        handled=tuple(handled.get(each.metadata.id, each) for each in calls.handled),
        _asked_after=calls._asked_after | marks,
    )
    if calls._owes_after:  # the hooks of the plan that was saved: from here on they are known
        calls.change(_owes_after=False, _hook_sets=(*calls._hook_sets, hook_set))
    return [*shown, *suspended]


def _call_of(calls: SortedCalls, handled: HandledCall[Any, Any]) -> AnyToolCall:
    selector = calls.selector_of(handled.metadata)
    call: AnyToolCall = selector.Call(handled.metadata, handled.input, selector=selector)
    call.move_to(CallStatus.SUCCEEDED)
    return call
