"""The end of a round, whichever way it ends: one pipeline, and this is its order.

1. Faults: every call has exactly one result, and after-hooks were asked about each that a call came
   to. Nothing has changed where one is found.
2. Edit lines: what people changed in the arguments of a call is said before its result.
3. Final arguments: what a call was run with is said where it is not what the model sent.
4. Caps: what the model reads of each result is bounded, where its tool says so. What is cut goes
   into the caps' stores, so nothing can fail after this but a store itself.
5. The seal: turn and results are one from here on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._call.call import AnyToolCall
from .._call.outcomes import SuspendedCall
from .._call.selector import AnySelector
from .._hooks.registered_hook import RegisteredHook
from .._transcript.committed import CommittedRound, joined
from .._transcript.result import NOT_RUN, ToolResult, with_ran_with
from .._transcript.result_cap import ResultCap
from ..errors import LutumError
from .commit import ResultLike, are_in_order, as_results, check_after_hooks, match_results
from .edits import with_edit_lines
from .sorted_calls import SortedCalls, list_of


def end_round(
    calls: SortedCalls,
    answers: Iterable[ResultLike | SuspendedCall],
    unfinished: Mapping[str, ToolResult] | None = None,
) -> CommittedRound:
    """Join the turn with its results, as they go into a transcript.

    Args:
        calls: The calls of the round; they are not changed.
        answers: What they came to, as far as the plan was not told.
        unfinished: Results for those that have none, by call id, where the round is given up: then
            nothing is waited for.

    Raises:
        CommitError: The results do not answer the calls.
        LifecycleError: A newer plan goes on with a call.
    """
    state = calls._state
    lists = calls._sorted
    if unfinished is None:
        for call in (*lists.pending, *lists.in_doubt):
            if call._branch is not None:  # else no newer plan goes on with it
                call._check_newest()
    is_mixed = lists.handled or lists.rejected or lists.suspended or lists.finished
    given: Any = answers
    results: tuple[ToolResult, ...]
    # Nearly every round ends so: its calls were run and nothing else, with their results in order.
    if not is_mixed and given.__class__ is list and are_in_order(state.turn.tool_calls, given):
        results = tuple(given)
    else:
        given, results = _matched(calls, answers, unfinished)
    if calls._owes_after or RegisteredHook.any_after:
        check_after_hooks(calls, given)
    rewritten = [call for call in calls._calls if call._is_rewritten]
    if rewritten:
        results = with_edit_lines(results, calls.edits)
        results = with_final_arguments(results, rewritten)
    if calls.toolset._caps_results:
        results = tuple(_capped(each, calls.toolset._by_name) for each in results)
    return joined(state.turn, results)


def _capped(result: ToolResult, tools: Mapping[str, AnySelector]) -> ToolResult:
    """Give a result as the cap of its tool leaves it; a name that is made up has no tool."""
    selector = tools.get(result.name)
    cap = None if selector is None else selector.options.result_cap
    return cap.apply(result) if isinstance(cap, ResultCap) else result


def _matched(
    calls: SortedCalls,
    answers: Iterable[ResultLike | SuspendedCall],
    unfinished: Mapping[str, ToolResult] | None,
) -> tuple[list[ToolResult], tuple[ToolResult, ...]]:
    """Take answers as results, and find one for each call, or every fault."""
    asked = calls._state.turn.tool_calls
    given, suspended = as_results(answers)
    results = [*calls.finished, *given]
    waiting = calls.suspended if unfinished is None else ()
    if not (calls.handled or calls.rejected or waiting or suspended) and are_in_order(
        asked, results
    ):
        return given, tuple(results)
    settled = {each.metadata.id: each.result for each in calls.handled}
    settled.update((each.metadata.id, each.result) for each in calls.rejected)
    issues = {each.metadata.id: each.result for each in calls.recoverable_tool_call_issues}
    matched = match_results(
        asked,
        results,
        settled=settled,
        replaceable=issues if unfinished is None else {**unfinished, **issues},
        suspended=[each.call.metadata for each in (*waiting, *suspended)],
        in_doubt=[call.id for call in calls.in_doubt],
    )
    return given, matched


# What a call was run with is said in its result, where the program made it of the input: by a hook,
# an edit or an assignment. What reading the text adds (coercion, defaults) is not said: whoever
# reads the transcript can do that again.


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
    final = call.spec.shown(call._input)
    return result if final is None or _is_as_sent(call) else with_ran_with(result, final)


def _is_as_sent(call: AnyToolCall) -> bool:
    """Whether the input came to be again what the model's text says; in doubt it is not."""
    data: Any = call.spec.arguments.to_data
    try:
        sent = call.selector._decode(call.metadata, redact=True)
        same: bool = data(sent._input) == call._final_arguments()
    except (LutumError, ValueError):
        return False
    return same
