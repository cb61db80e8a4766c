"""Show the results of a plan to after-hooks, each once to each hook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._call.call import AnyToolCall, Hooks
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall, SuspendedCall
from .._call.steps import Steps
from .._hooks.pipeline import after
from .._transcript.result import ToolResult
from .commit import Answer, as_results
from .sorted_calls import SortedCalls

__all__ = ["show_results"]

Marks = set[tuple[str, str]]
"""Which hooks were asked about which calls: call id, and the key of the hook."""


def show_results(
    calls: SortedCalls, hooks: Hooks, answers: Iterable[Answer | SuspendedCall]
) -> Steps[list[ToolResult | SuspendedCall]]:
    """Show results to the after-hooks; see `ToolRoundPlan.apply_after_hooks`.

    The plan changes when all were asked: where a hook raises, it is as it was.
    """
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
            shown.append((yield from after(call, result, hooks, marks, again=True)))
    finished: list[ToolResult] = []
    for result in calls.finished:
        ended = calls._ended.get(result.id)
        finished.append(
            result if ended is None else (yield from after(ended, result, hooks, marks))
        )
    handled: list[HandledCall[Any, Any]] = []
    for each in calls.handled:
        result = yield from after(_call_of(calls, each), each.result, hooks, marks)
        kept = result is each.result
        handled.append(
            each if kept else type(each)(each.metadata, each.input, result.output, result)
        )
    calls.change(finished=tuple(finished), handled=tuple(handled), _asked_after=frozenset(marks))
    if calls._owes_after:  # the hooks of the plan that was saved: from here on they are known
        calls.change(_owes_after=False, _hook_sets=(*calls._hook_sets, hooks))
    return [*shown, *suspended]


def _call_of(calls: SortedCalls, handled: HandledCall[Any, Any]) -> AnyToolCall:
    selector = calls.selector_of(handled.metadata)
    call: AnyToolCall = selector.Call(handled.metadata, handled.input, selector=selector)
    call.move_to(CallStatus.SUCCEEDED)
    return call
