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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._call.call import AnyToolCall, Hooks
from .._call.outcomes import NotEnded
from .._call.selector import AnySelector
from .._call.steps import Steps
from .._hooks.pipeline import AfterSaid, after
from .._hooks.places import HookPlaces
from .._hooks.registered_hook import RegisteredHook
from .._text.json import shorten
from .._text.once import ONCE
from .._transcript.committed import CommittedRound, joined
from .._transcript.result import NOT_RUN, ToolResult, with_inner_labels, with_ran_with
from .._transcript.result_cap import ResultCap
from ..errors import HookError, LutumError
from .commit import ResultLike, are_in_order, as_results, check_after_hooks, match_results
from .edits import edits_of, with_edit_lines
from .sorted_calls import SortedCalls, inner_in, result_in, state_of


def end_round(
    calls: SortedCalls,
    answers: Iterable[ResultLike | NotEnded],
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
    is_mixed = lists.handled or lists.rejected or lists.suspended or lists.finished or lists.asking
    given: Any = answers
    results: tuple[ToolResult, ...]
    # Nearly every round ends so: its calls were run and nothing else, with their results in order.
    if not is_mixed and given.__class__ is list and are_in_order(state.turn.tool_calls, given):
        results = tuple(given)
    else:
        given, results = _matched(calls, answers, unfinished)
    if calls._owes_after or RegisteredHook.any_after:
        check_after_hooks(calls, given)
    toolset, inner = calls.toolset, state._inner
    if inner or toolset._caps_results or [1 for call in calls._calls if call._is_rewritten]:
        results = as_told(results, calls._calls, toolset, inner)
    return joined(state.turn, results)


def as_told(
    results: tuple[ToolResult, ...],
    calls: Sequence[AnyToolCall],
    toolset: Any,
    inner: Collection[object] = (),
) -> tuple[ToolResult, ...]:
    """Give results as a model is told of them: with what was edited and run, and capped.

    Args:
        results: The results.
        calls: The calls that they are of, as far as these could be read.
        toolset: Their toolset.
        inner: Empty where none of them asked for other calls.
    """
    rewritten = [call for call in calls if call._is_rewritten]
    told_by: dict[str, str] = {}
    for call in calls if inner else ():
        within = [each.call for each in inner_in(call._line) if each.call is not None]
        rewritten += [each for each in within if each._is_rewritten]
        told_by |= {each.id: call.id for each in within}
    if inner:
        results = labelled(results, calls)
    if rewritten:
        edits = [edit for call in rewritten for _, edit in edits_of(call)]
        results = with_edit_lines(results, edits, told_by)
        results = with_final_arguments(results, rewritten)
    if toolset._caps_results:
        results = tuple(_capped(each, toolset._by_name) for each in results)
    return results


def labelled(
    results: tuple[ToolResult, ...], calls: Sequence[AnyToolCall]
) -> tuple[ToolResult, ...]:
    """Give results with the labels of what they were made of, where calls asked for others."""
    made_of = {call.id: [each.result for each in inner_in(call._line)] for call in calls}
    return tuple(
        with_inner_labels(each, filter(None, made_of.get(each.id, ()))) for each in results
    )


def _capped(result: ToolResult, tools: Mapping[str, AnySelector]) -> ToolResult:
    """Give a result as the cap of its tool leaves it; a name that is made up has no tool."""
    selector = tools.get(result.name)
    cap = None if selector is None else selector.options.result_cap
    return cap.apply(result) if isinstance(cap, ResultCap) else result


def _matched(
    calls: SortedCalls,
    answers: Iterable[ResultLike | NotEnded],
    unfinished: Mapping[str, ToolResult] | None,
) -> tuple[list[ToolResult], tuple[ToolResult, ...]]:
    """Take answers as results, and find one for each call, or every fault."""
    asked = calls._state.turn.tool_calls
    given, suspended = as_results(answers)
    results = [*calls.finished, *given]
    waiting = calls.suspended if unfinished is None else ()
    is_mixed = calls.handled or calls.rejected or calls.asking or waiting or suspended
    if not is_mixed and are_in_order(asked, results):
        return given, tuple(results)
    return given, match_results(calls, given, suspended, unfinished)


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
    run = {call.id: call for call in rewritten if state_of(call) not in ("handled", "rejected")}
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
        same: bool = data(sent._input) == call.final_arguments
    except (LutumError, ValueError):
        return False
    return same


# After-hooks: each is shown each result once.


def show_results(
    calls: SortedCalls, hooks: Hooks, answers: Iterable[ResultLike | NotEnded]
) -> Steps[list[ToolResult | NotEnded]]:
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
    shown: list[ToolResult | NotEnded] = []
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
                call._append("ended", said=result.status, detail=result)
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
    for where in ("finished", "handled"):
        for call in calls._every:
            result = result_in(call._line)
            if state_of(call) == where and result is not None:
                yield call, result
