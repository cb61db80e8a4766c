"""Show the results of a plan to after-hooks, each once to each hook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._call.call import AnyToolCall, Hooks
from .._call.outcomes import SuspendedCall, outcome_of
from .._call.steps import Steps
from .._hooks.pipeline import AfterSaid, after
from .._hooks.places import HookPlaces
from .._text.json import shorten
from .._text.once import ONCE
from .._transcript.result import ToolResult
from ..errors import HookError
from .commit import ResultLike, as_results
from .sorted_calls import SortedCalls, list_of, result_in


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
    said: list[AfterSaid] = []
    answered = list(_answered(calls))
    open_calls = {call.id: call for call in (*calls.pending, *calls.in_doubt)}
    shown: list[ToolResult | SuspendedCall] = []
    ends: list[tuple[AnyToolCall, ToolResult]] = []
    for result in results:
        call = open_calls.get(result.id)
        if call is None:  # of no call of ours, or of one that was never decoded
            shown.append(result)
            continue
        if call._stage.may_end:
            call._check_newest()
        ends.append((call, result))
        # The plan does not hold this result: who passes it again wants to see the same again.
        shown.append((yield from after(call, result, hook_set, said, again=True)))
    for call, result in answered:
        yield from after(call, result, hook_set, said)
    with ONCE:
        for call, result in ends:  # made elsewhere, or by hand: it is the end of the call here, too
            if call._stage.may_end and result.answers(call):
                call._end(result.status, detail=result)
        for call, name, key, answer in said:
            if call._stage.is_end:
                put = None if answer is None else "replaced"
                call._append("asked", by=name, phase="after", said=put, detail=(key, answer))
                calls._move(call.id)
    if calls._owes_after:  # the hooks of the plan that was saved: from here on they are known
        calls.change(_owes_after=False, _hook_sets=(*calls._hook_sets, hook_set))
    return [*shown, *suspended]


def _answered(calls: SortedCalls) -> Iterator[tuple[AnyToolCall, ToolResult]]:
    """Give the calls whose results the plan has, as things stand now: those that were run first."""
    for call in calls._calls:
        result = result_in(call._line) if list_of(call) == "finished" else None
        if result is not None:
            yield call, result
    for call in calls._calls:
        if list_of(call) == "handled":
            handled: Any = outcome_of(call)
            yield call, handled.result
