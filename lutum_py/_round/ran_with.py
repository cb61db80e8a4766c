"""What a call was run with, where that is not what the model sent: said in its result.

What counts is what the program made of the input, by a hook, an edit or an assignment. What reading
the text adds (coercion, defaults) does not: whoever reads the transcript can do that again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._call.call import AnyToolCall
from .._transcript.result import NOT_RUN, ToolResult, with_ran_with
from ..errors import LutumError
from .sorted_calls import SortedCalls

__all__ = ["rewritten_calls", "with_final_arguments"]


def rewritten_calls(calls: SortedCalls) -> Mapping[str, AnyToolCall]:
    """Find the calls of which the program replaced the input, by id."""
    found: dict[str, AnyToolCall] = {}
    for call in calls.pending:
        if call._marks is not None and call._marks.is_rewritten:
            found[call.id] = call
    if calls.in_doubt or calls.suspended or calls._ended:
        others = (
            *calls.in_doubt,
            *(each.call for each in calls.suspended),
            *calls._ended.values(),
        )
        found.update((call.id, call) for call in others if call._is_rewritten)
    return found


def with_final_arguments(
    results: tuple[ToolResult, ...], rewritten: Mapping[str, AnyToolCall]
) -> tuple[ToolResult, ...]:
    """Say of each call that was run with other arguments which those were, secrets masked."""
    return tuple(
        _told(each, rewritten[each.id])
        if each.id in rewritten and each.status not in NOT_RUN
        else each
        for each in results
    )


def _told(result: ToolResult, call: AnyToolCall) -> ToolResult:
    final = call.spec.shown_data(call._input)
    return result if final is None or _is_as_sent(call) else with_ran_with(result, final)


def _is_as_sent(call: AnyToolCall) -> bool:
    """Whether the input came to be again what the model's text says; in doubt it is not."""
    data: Any = call.spec.arguments.to_data
    try:
        sent = call.selector.decode(call.metadata, redact=True)
        same: bool = data(sent._input) == data(call._input)
    except (LutumError, ValueError):
        return False
    return same
