"""What a call was run with, where that is not what the model sent: said in its result.

What counts is what the program made of the input, by a hook, an edit or an assignment. What reading
the text adds (coercion, defaults) does not: whoever reads the transcript can do that again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._call.call import AnyToolCall
from .._transcript.result import NOT_RUN, ToolResult, with_ran_with
from ..errors import LutumError
from .sorted_calls import list_of


def with_final_arguments(
    results: tuple[ToolResult, ...], rewritten: Iterable[AnyToolCall]
) -> tuple[ToolResult, ...]:
    """Say of each call that was run with other arguments which those were, secrets masked.

    Args:
        results: The results of a round.
        rewritten: The calls of which the program, a hook or a person replaced the input.
    """
    run = {call.id: call for call in rewritten if list_of(call) not in ("handled", "rejected")}
    return tuple(
        _told(each, run[each.id]) if each.id in run and each.status not in NOT_RUN else each
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
        same: bool = data(sent._input) == call._final_arguments()
    except (LutumError, ValueError):
        return False
    return same
