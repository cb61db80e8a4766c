"""Match results with calls: every fault is found at once, and nothing is changed by looking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import iscoroutine
from typing import Any, TypeAlias

from .._call.call import AnyToolCall
from .._call.line import end_of
from .._call.outcomes import AskingCall, HandledCall, NotEnded, RejectedCall, SuspendedCall
from .._hooks.pipeline import was_asked_after
from .._hooks.places import HookPlaces
from .._hooks.registered_hook import RegisteredHook, keyed
from .._text.json import shorten
from .._text.unicode import sendable
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, make_result, unknown_outcome
from ..errors import (
    CommitError,
    CommitFault,
    DuplicateResult,
    ExtraResult,
    MismatchedArguments,
    MismatchedToolName,
    MissingResult,
    MisuseError,
    UnresolvedSuspension,
)
from .sorted_calls import SortedCalls, inner_in, state_in, state_of, was_begun

ResultLike: TypeAlias = ToolResult | HandledCall[Any, Any] | RejectedCall
"""What may be passed where a result is wanted."""


_ANSWERS = (ToolResult, HandledCall, RejectedCall, SuspendedCall, AskingCall)


def as_results(
    answers: Iterable[ResultLike | NotEnded],
) -> tuple[list[ToolResult], list[NotEnded]]:
    """Take each answer as a result; calls that suspended themselves, or asked, have none yet.

    Raises:
        MisuseError: Something else is among them; the text says what to do with it.
    """
    if answers.__class__ is not list and (
        isinstance(answers, _ANSWERS) or not isinstance(answers, Iterable)
    ):
        raise MisuseError(
            f"Results are passed as a list, also where there is one or none, not as "
            f"{shorten(answers)}. Write `[result]`, or leave them out where no call is pending."
        )
    results: list[ToolResult] = []
    suspended: list[NotEnded] = []
    for answer in answers:
        if isinstance(answer, ToolResult):
            results.append(answer)
        elif isinstance(answer, HandledCall | RejectedCall):
            results.append(answer.result)
        elif isinstance(answer, SuspendedCall | AskingCall):
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
    calls: SortedCalls,
    given: Sequence[ToolResult],
    suspended: Sequence[NotEnded],
    unfinished: Mapping[str, ToolResult] | None,
) -> tuple[ToolResult, ...]:
    """Find one result for each call of the turn, in its order.

    Args:
        calls: The calls.
        given: The results that the user gives, in any order.
        suspended: The calls that suspended themselves meanwhile.
        unfinished: Results for those that have none, by call id, where the round is given up.

    Raises:
        CommitError: The results do not answer the calls, for any number of reasons.
    """
    asked = {call.id: call for call in calls._state.turn.tool_calls}
    every = calls._file()
    filed = {id: every[id] for id in asked}
    settled = {id for id, each in filed.items() if each.state in ("handled", "rejected")}
    waiting = {each.call.id for each in suspended if isinstance(each, SuspendedCall)}
    if unfinished is None:
        waiting |= {id for id, each in filed.items() if each.state == "suspended"}
    wanted = tuple(id for id in asked if id not in settled and id not in waiting)
    results: dict[str, ToolResult] = {}
    faults: list[CommitFault] = []
    answers: list[ToolMetadata | ToolResult] = [each.call.metadata for each in suspended]
    for each in (*answers, *given):
        id = each.id
        if id not in asked or id in settled:
            faults.append(ExtraResult(id, each.name, wanted, id in settled))
        elif isinstance(each, ToolResult):
            if filed[id].state == "asking":
                faults.append(asking_fault(filed[id].entry))
            elif id in results or filed[id].state == "finished":
                faults.append(DuplicateResult(id, asked[id].name))
            elif id not in waiting:  # else that it waits is all that is wrong with it
                faults += mismatches(each, asked[id])
            results.setdefault(id, each)
    for id, (state, _, entry) in filed.items():
        if state == "finished":
            results[id] = entry
        elif id in settled or (state == "unusable" and id not in results):
            results[id] = entry.result
        elif unfinished is not None and id in unfinished:
            results.setdefault(id, unfinished[id])
        if state == "asking" and id not in results:
            faults.append(asking_fault(entry))
        elif id in waiting - settled:
            faults.append(UnresolvedSuspension(id, asked[id].name))
        elif id not in results:
            faults.append(MissingResult(id, asked[id].name, state == "in_doubt"))
    if faults:
        place = {id: index for index, id in enumerate(asked)}
        raise CommitError(sorted(faults, key=lambda fault: place.get(fault.id, len(place))))
    return tuple(results[id] for id in asked)


def asking_fault(call: AnyToolCall) -> MissingResult:
    """Say of a call that asks for others which of these have no result."""
    states = [(each.metadata, state_in(each.line)) for each in inner_in(call._line)]
    open_calls = [
        f"{asked.id!r} of tool {asked.name!r} ({state.replace('_', ' ')})"
        for asked, state in states
        if state in _OPEN
    ]
    return MissingResult(call.id, call.name, within=tuple(open_calls))


_OPEN = ("pending", "in_doubt", "suspended", "asked")


def mismatches(result: ToolResult, asked: ToolMetadata) -> list[CommitFault]:
    """Say in what a result differs from the call that it is to answer."""
    faults: list[CommitFault] = []
    if result.name != asked.name:
        faults.append(MismatchedToolName(result.id, result.name, asked.name))
    if result.arguments != asked.arguments:
        faults.append(MismatchedArguments(result.id, asked.name, asked.arguments, result.arguments))
    return faults


def check_after_hooks(calls: SortedCalls, results: Iterable[ToolResult]) -> None:
    """Make sure that the after-hooks of the plan's hook sets were asked about every result.

    Where nobody ever registered one, and no saved plan owes one, there is nothing to look for. What
    the library itself says of calls that are given up is no result that a hook could look at.

    Raises:
        MisuseError: One was not; nothing has changed.
    """
    remedy = (
        "Write `results = await plan.apply_after_hooks(hooks, results)` before the commit, also "
        "where the round is given up, or `plan.discard()` to forget the turn."
    )
    given = {result.id for result in results}
    open_calls = (*calls.pending, *calls.in_doubt)
    answered = {each.id: each for each in open_calls if each.id in given}
    if calls._owes_after and (answered or calls.finished or calls.handled):
        raise MisuseError(
            "This plan was saved while after-hooks of its hook set had still to be asked, and they "
            f"were not asked since. {remedy}"
        )
    for _, hook, call in _not_asked(calls, answered):
        raise MisuseError(
            f"After-hook `{hook.name}` was not asked about the result of call {call.id!r} of tool "
            f"`{call.name}`. {remedy}"
        )


def check_shown(calls: SortedCalls, call_id: str, hooks: object = None) -> None:
    """Make sure that after-hooks were asked about a call before the one that asked for it goes on.

    Args:
        calls: The plan.
        call_id: The id of the call.
        hooks: Will be asked yet.

    Raises:
        MisuseError: One was not; nothing has changed.
    """
    call = None if call_id not in calls._state._inner else calls._call(call_id)
    if call is None or not (calls._owes_after or RegisteredHook.any_after):
        return
    own = hooks._hooks_for(call.selector, "after") if isinstance(hooks, HookPlaces) else ()
    later = dict(keyed(own))
    not_asked = _not_asked(calls, {call_id: call})
    owed = [hook for key, hook, of in not_asked if of is call and key not in later]
    if owed or calls._owes_after:
        who = f"After-hook `{owed[0].name}` was" if owed else _OF_BEFORE
        raise MisuseError(
            f"{who} not asked about the result of call {call_id!r} of tool "
            f"`{call.name}`, and call {calls._state._inner[call_id].asked_by!r}, which asked for "
            "it, would see it. Write `(result,) = await plan.apply_after_hooks(hooks, [result])` "
            "before `plan.record(result)`, or let `await run(plan, hooks=hooks)` do both."
        )


_OF_BEFORE = "The after-hooks of the hook set that decided before the plan was saved were"


def owes_after_hooks(calls: SortedCalls) -> bool:
    """Whether some after-hook of the plan's hook sets has still to be asked, now or later."""
    waiting = (*(each.call for each in calls.suspended), *calls.asking, *calls.asked)
    still = {call.id: call for call in (*calls.pending, *calls.in_doubt, *waiting)}
    return any(True for _ in _not_asked(calls, still))


def _not_asked(
    calls: SortedCalls, open_calls: dict[str, AnyToolCall]
) -> Iterator[tuple[str, RegisteredHook, AnyToolCall]]:
    """Find after-hooks, by key, that were not asked about these calls, nor those answered."""
    answered = {c.id: c for c in calls._every if state_of(c) in ("finished", "handled")}
    for hooks in dict.fromkeys((*calls._hook_sets, *calls._state._hook_sets)):
        for call in (open_calls | answered).values():
            for key, hook in keyed(hooks._hooks_for(call.selector, "after")):
                if not was_asked_after(call, key):
                    yield key, hook, call


def unfinished(call: AnyToolCall, was_started: bool, reason: str, more: str = "") -> ToolResult:
    """Make the honest result of a call that was given up: nobody knows more of it than this.

    Raises:
        MisuseError: The reason is no text.
    """
    if not isinstance(reason, str):
        raise MisuseError.of_field("abort", "reason", "a text", reason, "The model reads it.")
    if was_started:
        why = f"the tool was started, and nobody knows what it did. {reason}{more}"
        return unknown_outcome(call.metadata, why)
    return make_result(call.metadata, "null", "cancelled", sendable(f"Not executed: {reason}"))


def ended_within(call: AnyToolCall, results: Mapping[str, ToolResult]) -> str:
    """Say how each call ended that a call which is given up asked for, for its result.

    Args:
        call: The call.
        results: What calls came to that the plan was not told of, by id.
    """
    said: list[str] = []
    for inner in inner_in(call._line):
        given = results.get(inner.metadata.id)
        ended = end_of(inner.line)
        if given is not None:
            how = str(given.status)
        elif ended is not None:
            how = str(ended.said)
        elif inner.call is not None and was_begun(inner.call):
            how = "indeterminate"
        else:
            how = "not executed"
        said.append(f"{inner.metadata.id} of tool {inner.metadata.name}: {how}")
    return f" Within it, {'; '.join(said)}." if said else ""
