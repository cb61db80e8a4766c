"""The end of a round, whichever way it ends: one pipeline, and this is its order.

1. Faults: every call has exactly one result, and after-hooks reviewed each result of a
   call. If there is a fault, nothing has changed.
2. Edit lines: what people changed in the arguments of a call is said before its result.
3. Final arguments: what a call was run with is said, if it is not what the model sent.
4. Caps: what the model reads of each result is bounded, if its tool says so. What is cut goes into
   the caps' stores, and they are the last that can fail.
5. The joining: turn and results are one from here on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutine
from typing import Any, Final, TypeAlias

from .._call.base_call import CallRecord
from .._call.call import AwaitingCall, Hooks, NotEnded, RejectedCall, SuspendedCall
from .._call.call_state import DecodedCall
from .._call.drivers import HookGenerator
from .._call.history import CallStatus, History
from .._call.outcomes import HandledCall
from .._hooks.pipeline import AfterSaid, after, was_asked_after, write_said
from .._hooks.registered_hook import HookPlaces, RegisteredHook, keyed
from .._text.escaping import escape_unprintable
from .._text.immutable import with_fields
from .._text.json import compact_json, cut, shorten
from .._toolsets.members import Members, members_of
from .._transcript.assistant import ToolMetadata
from .._transcript.result import (
    NOT_RUN,
    ToolResult,
    with_inner_labels,
)
from .._transcript.result_cap import ResultCap
from .._transcript.transcript import CommittedRound, joined
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    HookError,
    LifecycleError,
    MismatchedArguments,
    MismatchedToolName,
    MissingResult,
    MisuseError,
    UnresolvedSuspension,
)
from .decision_records import EditRecord
from .sorted_calls import WAITING, RoundState


def results_of(
    state: RoundState,
    answers: Iterable[ResultLike | NotEnded],
    unfinished: Mapping[str, ToolResult] | None = None,
) -> tuple[ToolResult, ...]:
    """Find the result of each call of the turn, in its order.

    Args:
        state: The state of the round.
        answers: The outcomes that were not recorded in the plan.
        unfinished: Results for calls that have none, by call id, if the round is given up: then
            nothing is waited for.

    Raises:
        CommitError: The results do not answer the calls.
    """
    lists = state.lists
    is_mixed = (
        lists.handled or lists.rejected or lists.suspended or lists.finished or lists.awaiting
    )
    given: Any = answers
    results: tuple[ToolResult, ...]
    # Nearly every round ends so: its calls were run and nothing else, with their results in order.
    is_plain = given.__class__ is list and not (is_mixed or state.call_round.has_retried)
    if is_plain and are_in_order(state.turn.tool_calls, given):
        results = tuple(given)
    else:
        given, unended = as_results(answers)
        ended = [*lists.finished, *given]
        waiting = lists.suspended if unfinished is None else ()
        is_open = lists.handled or lists.rejected or lists.awaiting or waiting or unended
        has_retried = state.call_round.has_retried
        if not (is_open or has_retried) and are_in_order(state.turn.tool_calls, ended):
            results = tuple(ended)
        else:
            results = match_results(state, given, unended, unfinished)
    if RegisteredHook.any_after:
        check_given(state, given)
    return results


def joined_round(state: RoundState, results: tuple[ToolResult, ...]) -> CommittedRound:
    """Join the turn with its results, as they go into a transcript."""
    toolset, inner = state.toolset, state.call_round.inner
    is_capped = members_of(toolset).caps_results
    if inner or is_capped or [1 for call in state.calls if call.is_rewritten]:
        results = as_model_reads(results, state.calls, toolset, inner)
    return joined(state.turn, results)


def as_model_reads(
    results: tuple[ToolResult, ...],
    calls: Sequence[DecodedCall],
    toolset: Any,
    inner: Collection[object] = (),
) -> tuple[ToolResult, ...]:
    """Return results as the model reads them: with edits and final arguments, and capped.

    Args:
        results: The results.
        calls: The calls that they belong to, as far as these could be read.
        toolset: Their toolset.
        inner: The calls that they requested, if any.
    """
    rewritten = [call for call in calls if call.is_rewritten]
    reported_by: dict[str, str] = {}
    for call in calls if inner else ():
        within = [*DecodedCall.among(call.requested_calls())]
        rewritten += [each for each in within if each.is_rewritten]
        reported_by |= {each.id: call.id for each in within}
    if inner:
        results = labelled(results, calls)
    if rewritten:
        edits = [edit for call in rewritten for _, edit in EditRecord.of(call)]
        results = with_edit_lines(results, edits, reported_by)
        results = with_final_arguments(results, rewritten)
    members = members_of(toolset)
    if members.caps_results:
        results = tuple(_capped(each, members) for each in results)
    return results


def labelled(
    results: tuple[ToolResult, ...], calls: Sequence[DecodedCall]
) -> tuple[ToolResult, ...]:
    """Return results with the labels of what they were made of, if calls requested others."""
    made_of = {call.id: [each.known_result() for each in call.requested_calls()] for call in calls}
    return tuple(
        with_inner_labels(each, filter(None, made_of.get(each.id, ()))) for each in results
    )


def _capped(result: ToolResult, members: Members) -> ToolResult:
    """Return a result as the cap of its tool leaves it; a made-up name has no tool, so no cap."""
    selector = members.by_name.get(result.name)
    cap = None if selector is None else selector.options.result_cap
    return cap.apply(result) if isinstance(cap, ResultCap) else result


# What people changed in arguments is told to the model.


_LONGEST = 80


def with_edit_lines(
    results: tuple[ToolResult, ...],
    edits: Iterable[EditRecord],
    reported_by: Mapping[str, str],
) -> tuple[ToolResult, ...]:
    """Say for each call that was edited, before what the model reads of it, what was changed.

    The program's own `result` stays as it is, and so does what a call that was not run came to.

    Args:
        results: The results.
        edits: What was edited.
        reported_by: By the id of a call within another, the call whose result tells of it.
    """
    lines: dict[str, str] = {}
    for edit in edits:
        # Of a field that is shown to nobody (`exclude=True`) the model is told nothing either.
        names = [name for name in edit.changed if name in edit.shown or name in edit.final]
        if names:
            by = reported_by.get(edit.call_id, edit.call_id)
            lines[by] = f"{lines.get(by, '')}{_line(edit, names, is_within=by != edit.call_id)}\n"
    return tuple(
        each
        if each.id not in lines or each.status in NOT_RUN
        else each.with_message(f"{lines[each.id]}{each.model_text}")
        for each in results
    )


def _line(edit: EditRecord, names: Iterable[str], *, is_within: bool) -> str:
    call = f"call {escape_unprintable(edit.call_id)}" if is_within else "this call"
    said = [
        f"{escape_unprintable(name)} = {cut(compact_json(edit.final[name]), _LONGEST)}"
        if name in edit.final
        else f"{escape_unprintable(name)} was left out"
        for name in names
    ]
    return f"[The arguments of {call} were edited: {', '.join(said)}]"


# What a call was run with is said in its result if the program changed the input: by a hook, by an
# edit or by an assignment. What reading the text adds (coercion, defaults) is not said: whoever
# reads the transcript can do that again.


def with_final_arguments(
    results: tuple[ToolResult, ...], rewritten: Iterable[DecodedCall]
) -> tuple[ToolResult, ...]:
    """Say for each call what it was run with if that is not what was sent, secrets masked.

    Args:
        results: The results of a round.
        rewritten: The calls of which the program, a hook or a person replaced the input.
    """
    run = {call.id: call for call in rewritten if call.history.state not in ("handled", "rejected")}
    return tuple(
        _with_ran_with(each, run[each.id])
        if each.id in run and each.status not in NOT_RUN
        else each
        for each in results
    )


def _with_ran_with(result: ToolResult, call: DecodedCall) -> ToolResult:
    final = call.shown
    return result if final is None or _is_as_sent(call) else with_fields(result, ran_with=final)


def _is_as_sent(call: DecodedCall) -> bool:
    """Whether the input is again what the model's text says."""
    sent = call.history[0].detail
    return sent is not None and sent.data == call.described.data


# Matching results with calls: every fault is found at once, and nothing is changed by looking.


ResultLike: TypeAlias = ToolResult | HandledCall[Any, Any] | RejectedCall
"""What may be passed where a result is wanted."""


_ANSWERS = (ToolResult, HandledCall, RejectedCall, SuspendedCall, AwaitingCall)


def as_results(
    answers: Iterable[ResultLike | NotEnded],
) -> tuple[list[ToolResult], list[NotEnded]]:
    """Take each answer as a result; what suspended itself, or requested others, has none.

    Raises:
        MisuseError: Something else is among them; the text says what to do with it.
    """
    if answers.__class__ is not list and (
        isinstance(answers, _ANSWERS) or not isinstance(answers, Iterable)
    ):
        raise MisuseError(
            f"Results are passed as a list, also if there is one or none, not as "
            f"{shorten(answers)}. Write `[result]`, or leave them out if no call is pending."
        )
    results: list[ToolResult] = []
    suspended: list[NotEnded] = []
    for answer in answers:
        if isinstance(answer, ToolResult):
            results.append(answer)
        elif isinstance(answer, HandledCall | RejectedCall):
            results.append(answer.result)
        elif isinstance(answer, SuspendedCall | AwaitingCall):
            suspended.append(answer)
        elif iscoroutine(answer):
            answer.close()
            raise MisuseError(
                "A coroutine is no result: it has not been run. Await it first, as in `await "
                "call.call()` or `await asyncio.gather(...)`."
            )
        else:
            raise MisuseError(
                f"{shorten(answer)} is no result. Make one from the call: `call.complete(output)`, "
                "`call.fail(message)`, or `await call.call()`."
            )
    return results, suspended


def are_in_order(calls: Sequence[ToolMetadata], answers: Sequence[Any]) -> bool:
    """Tell whether answers are results, one for each call: there is nothing to sort then."""
    if len(answers) != len(calls):
        return False
    index = 0  # counted by hand: a `zip` or `enumerate` costs as much as four calls to compare
    for answer in answers:
        asked = calls[index]
        index += 1  # noqa: SIM113
        if (
            answer.__class__ is not ToolResult
            or answer.id != asked.id
            or answer.name != asked.name
            or answer.arguments != asked.arguments
        ):
            return False
    return True


def match_results(
    state: RoundState,
    given: Sequence[ToolResult],
    suspended: Sequence[NotEnded],
    unfinished: Mapping[str, ToolResult] | None,
) -> tuple[ToolResult, ...]:
    """Find one result for each call of the turn, in its order.

    Args:
        state: The state of the round.
        given: The results that the user gives, in any order.
        suspended: The calls that suspended themselves meanwhile.
        unfinished: Results for calls that have none, by call id, if the round is given up.

    Raises:
        CommitError: The results do not answer the calls, for any number of reasons.
    """
    # A result may come from four places: a hook, the plan (`record`), the caller, and for what
    # could not be used the library itself. Each call needs exactly one, and all that is wrong is
    # gathered before anything is raised, so that one look at the error is enough.
    asked = {call.id: call for call in state.turn.tool_calls}
    found = {call.id: state.entry_of(call) for call in state.all_calls()}
    entries = {id: found[id] for id in asked}
    settled = {id for id, each in entries.items() if each.state in ("handled", "rejected")}
    waiting = {each.call.id for each in suspended if isinstance(each, SuspendedCall)}
    if unfinished is None:
        waiting |= {id for id, each in entries.items() if each.state == "suspended"}
    wanted = tuple(id for id in asked if id not in settled and id not in waiting)
    results: dict[str, ToolResult] = {}
    faults: list[CommitFault] = []
    answers: list[ToolMetadata | ToolResult] = [each.call.metadata for each in suspended]
    for each in (*answers, *given):
        id = each.id
        if id in settled and is_refusal(each, state.find(id)):
            continue
        if id not in asked or id in settled:
            faults.append(ExtraResult(id, each.name, wanted, id in settled))
        elif isinstance(each, ToolResult):
            if entries[id].state == "awaiting":
                faults.append(asking_fault(entries[id].value))
            elif id in results or entries[id].state == "finished":
                faults.append(DuplicateResult(id, asked[id].name))
            elif id not in waiting:  # else it is enough to say that the call waits
                faults += mismatches(each, asked[id], state.find(id))
            results.setdefault(id, each)
    for id, (listed, _, value) in entries.items():
        if listed == "finished":
            results[id] = value
        elif id in settled or (listed == "unusable" and id not in results):
            results[id] = value.result
        elif unfinished is not None and id in unfinished:
            results.setdefault(id, unfinished[id])
        if listed == "awaiting" and id not in results:
            faults.append(asking_fault(value))
        elif id in waiting - settled:
            faults.append(UnresolvedSuspension(id, asked[id].name))
        elif id not in results:
            runs = listed == "pending" and value.status is CallStatus.RUNNING
            faults.append(MissingResult(id, asked[id].name, listed == "in_doubt", is_running=runs))
    if faults:
        place = {id: index for index, id in enumerate(asked)}
        raise CommitError(sorted(faults, key=lambda fault: place.get(fault.id, len(place))))
    return tuple(results[id] for id in asked)


def is_refusal(answer: object, call: CallRecord | None) -> bool:
    """Whether an answer is that with which a call refused to start: the call has it already."""
    end = None if call is None else call.history.end
    if call is None or end is None or not end.is_refusal:
        return False
    return call.known_result() == answer


def asking_fault(call: CallRecord) -> MissingResult:
    """Say which of the calls that a call requested have no result."""
    states = [(each, each.history.state) for each in call.requested_calls()]
    open_calls = [
        f"{asked.id!r} of tool {asked.name!r} ({state.replace('_', ' ')})"
        for asked, state in states
        if state in _OPEN
    ]
    return MissingResult(call.id, call.name, nested=tuple(open_calls))


_OPEN = ("pending", "in_doubt", "suspended", "unreviewed")


def mismatches(
    result: ToolResult, asked: ToolMetadata, call: CallRecord | None = None
) -> list[CommitFault]:
    """Name how a result differs from the call that it should answer."""
    faults: list[CommitFault] = []
    if call is not None and _is_of_earlier_try(call.history, result):
        faults.append(DuplicateResult(result.id, asked.name))
    if result.name != asked.name:
        faults.append(MismatchedToolName(result.id, result.name, asked.name))
    if result.arguments != asked.arguments:
        faults.append(MismatchedArguments(result.id, asked.name, asked.arguments, result.arguments))
    return faults


def _is_of_earlier_try(history: History, result: ToolResult) -> bool:
    """Whether a result is that of a try before the present one, which ended with another."""
    tried = history.this_try
    if len(tried) == len(history) or not (end := history.end) or end.detail == result:
        return False
    earlier = history[: len(history) - len(tried)]
    return any(step.kind in ("ended", "recorded") and step.detail == result for step in earlier)


def check_given(state: RoundState, results: Iterable[ToolResult]) -> None:
    """Make sure that after-hooks saw what is given.

    If nobody ever registered one, there is nothing to look for. What the library itself says about
    calls that are given up is not a result that a hook could look at.

    Raises:
        MisuseError: Some did not.
    """
    given = {result.id: result for result in results}
    open_calls = (*state.lists.pending, *state.lists.in_doubt)
    answered = {each.id: each for each in open_calls if each.id in given}
    for _, hook, call in _not_asked(state, answered):
        raise MisuseError(
            f"After-hook `{hook.name}` has not seen the result of call {call.id!r} of tool "
            f"`{call.name}`. Write `results = await plan.apply_after_hooks(hooks, results)` before "
            "the commit, also if the round is given up, or `plan.discard()` to forget the turn."
        )
    for call in answered.values():
        check_as_left(call, given[call.id])


def check_as_left(call: CallRecord, result: ToolResult) -> None:
    """Refuse a result of a call in whose place an after-hook put another.

    Raises:
        MisuseError: It is one; nothing has changed.
    """
    # `"secret"`, which a hook made `"***"`: passed on all the same, the secret would be told.
    made = [step for step in call.history.this_try if step.verdict == "replaced"]
    end = call.history.end
    if not made or end is None or result == made[-1].detail[1]:
        return
    if result in (end.detail, *(step.detail[1] for step in made)):
        raise MisuseError(
            f"After-hook `{made[-1].by}` put another result of call {call.id!r} of tool "
            f"`{call.name}` in the place of this one. Pass on what `plan.apply_after_hooks` "
            "returned, as in `results = await plan.apply_after_hooks(hooks, results)`."
        )


def check_shown(state: RoundState, call_id: str, hooks: object = None) -> None:
    """Make sure that after-hooks saw a call before the call that requested it goes on.

    Args:
        state: The state of the round.
        call_id: The id of the call.
        hooks: The hooks that will still see it, if any.

    Raises:
        MisuseError: One was not; nothing has changed.
    """
    if call_id not in state.call_round.inner or not RegisteredHook.any_after:
        return
    call = state.find_decoded(call_id)
    if call is None:
        return
    own = hooks._hooks_for(call.selector, "after") if isinstance(hooks, HookPlaces) else ()
    later = dict(keyed(own))
    for key, hook, of in _not_asked(state, {call_id: call}):
        if of is call and key not in later:
            raise MisuseError(
                f"After-hook `{hook.name}` has not seen the result of call {call_id!r} of tool "
                f"`{call.name}`, and call {call.requested_by!r}, which requested it, would see it. "
                "Write `(result,) = await plan.apply_after_hooks(hooks, [result])` before "
                "`plan.record(result)`, or let `await run(plan, hooks=hooks)` do both."
            )


def _not_asked(
    state: RoundState, open_calls: dict[str, DecodedCall]
) -> Iterator[tuple[str, RegisteredHook, DecodedCall]]:
    """Find after-hooks that have not seen results of these calls, or of ended ones: with keys."""
    answered = {c.id: c for c in state.decoded if c.history.state in ("finished", "handled")}
    for hooks in [*state.hook_sets.values()]:
        for call in (open_calls | answered).values():
            for key, hook in keyed(hooks._hooks_for(call.selector, "after")):
                if not was_asked_after(call, key):
                    yield key, hook, call


_MOST_WITHIN: Final = 50


def ended_within(calls: Iterable[CallRecord], results: Mapping[str, ToolResult]) -> str:
    """Tell in the result of a call that fails, or is given up, how calls that it requested ended.

    Args:
        calls: The calls that it requested.
        results: The outcomes that were not recorded in the plan, by call id.
    """
    said: list[str] = []
    # The model sees the outer call alone, and is to know which parts of it were done. For example,
    # it reads "Within it, c1/1 of tool pay: success; c1/2 of tool mail: not executed."
    for inner in calls:
        given, ended = results.get(inner.id), inner.history.end
        begun = inner.history.was_started
        if given is not None:
            how = str(given.status)
        elif ended is not None:
            how = str(ended.verdict)
        else:
            how = "indeterminate" if begun else "cancelled"
        if how == "cancelled" and not begun:
            how = "not executed"
        said.append(f"{inner.id} of tool {inner.name}: {how}")
    if len(said) > _MOST_WITHIN:
        said[_MOST_WITHIN:] = [f"and {len(said) - _MOST_WITHIN:,} more calls"]
    return f" Within it, {'; '.join(said)}." if said else ""


# After-hooks: each is shown each result once.


def show_results(
    state: RoundState, hooks: Hooks, answers: Iterable[ResultLike | NotEnded]
) -> HookGenerator[list[ToolResult | NotEnded]]:
    """Show results to the after-hooks; see `ToolRoundPlan.apply_after_hooks`.

    The plan changes when all have run: if a hook raises, it is as it was.
    """
    hook_set: Any = hooks
    if not isinstance(hooks, HookPlaces):
        raise HookError(f"After-hooks are those of a HookSet, not of {shorten(hooks)}.")
    results, suspended = as_results(answers)
    said: list[AfterSaid] = []
    answered = list(_answered(state))
    open_calls = {call.id: call for call in (*state.lists.pending, *state.lists.in_doubt)}
    shown: list[ToolResult | NotEnded] = []
    ends: list[tuple[DecodedCall, ToolResult]] = []
    for result in results:
        call = open_calls.get(result.id)
        if call is None:  # of no call of ours, or of one that was never decoded
            shown.append(result)
            continue
        if not call.stage.is_end:  # else it is no end of a try that begins meanwhile
            ends.append((call, result))
        # The plan does not hold this result, so the hooks are asked each time that it is passed.
        shown.append((yield from after(call, result, hook_set, said, again=True)))
    for call, result in answered:
        yield from after(call, result, hook_set, said)
    # Made elsewhere, or by hand: it is the end of the call here, too. One that waits by now has
    # none, and whoever passes the result on finds out.
    for call, result in ends:
        stage = call.stage
        if stage.may_end and stage.name not in WAITING and result.answers(call):
            call.append("ended", verdict=result.status, detail=result)
    retried = write_said(said)
    state.note_hooks_of_before(hook_set)
    for call in retried:
        raise LifecycleError(
            f"Call {call.id!r} of tool `{call.name}` was tried again while after-hooks looked at "
            "its result: what they said about it does not count. Show them the result of the last "
            "try; what they said about other calls is in the plan."
        )
    return [*shown, *suspended]


def _answered(state: RoundState) -> Iterator[tuple[DecodedCall, ToolResult]]:
    """Yield each call whose result the plan has, with that: first those that were run."""
    for listed in ("finished", "handled"):
        for call in state.decoded:
            result = call.history.result
            if call.history.state == listed and result is not None:
                yield call, result
