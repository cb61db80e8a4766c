"""Match results with calls: every fault is found at once, and nothing is changed by looking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from inspect import iscoroutine
from typing import Any, TypeAlias

from .._call.call import AnyToolCall
from .._call.outcomes import HandledCall, RejectedCall, SuspendedCall
from .._text.json import shorten
from .._text.unicode import sendable
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, make_result
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

__all__ = ["Answer", "are_in_order", "as_results", "match_results", "unfinished"]

Answer: TypeAlias = ToolResult | HandledCall[Any, Any] | RejectedCall
"""What may be passed where a result is wanted."""


_ANSWERS = (ToolResult, HandledCall, RejectedCall, SuspendedCall)


def as_results(answers: Iterable[Answer]) -> list[ToolResult]:
    """Take each answer as a result.

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
    for answer in answers:
        if isinstance(answer, ToolResult):
            results.append(answer)
        elif isinstance(answer, HandledCall | RejectedCall):
            results.append(answer.result)
        elif isinstance(answer, SuspendedCall):
            raise MisuseError(
                f"Call {answer.call.id!r} is suspended, so there is no result yet. Give it to "
                "`plan.suspend(outcome)`."
            )
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
    return results


def are_in_order(calls: Sequence[ToolMetadata], results: Sequence[ToolResult]) -> bool:
    """Tell whether results answer the calls one for one, as most do: there is nothing to sort."""
    if len(results) != len(calls):
        return False
    for index, asked in enumerate(calls):
        result = results[index]
        if (
            result.id != asked.id
            or result.name != asked.name
            or result.arguments != asked.arguments
        ):
            return False
    return True


def match_results(
    calls: Sequence[ToolMetadata],
    results: Iterable[ToolResult],
    *,
    settled: Mapping[str, ToolResult],
    replaceable: Mapping[str, ToolResult],
    suspended: Collection[str] = (),
) -> tuple[ToolResult, ...]:
    """Return one result for each call, in the order of the calls.

    Args:
        calls: The calls of the turn, in order.
        results: The results that the user gives, in any order.
        settled: Results of handled and rejected calls, by call id; nobody else may give one.
        replaceable: Results that stand where the user gives none.
        suspended: The ids of calls that wait for a decision.

    Raises:
        CommitError: The results do not answer the calls, for any number of reasons.
    """
    by_id = {call.id: call for call in calls}
    suspended = frozenset(suspended)
    given: dict[str, ToolResult] = {}
    faults: list[CommitFault] = []
    for result in results:
        call = by_id.get(result.id)
        if call is None or call.id in settled:
            faults.append(_extra(result, calls, settled, suspended))
        elif result.id in given:
            faults.append(DuplicateResult(result.id, call.name))
        else:
            given[result.id] = result
            if result.name != call.name:
                faults.append(MismatchedToolName(result.id, result.name, call.name))
            if result.arguments != call.arguments:
                faults.append(
                    MismatchedArguments(result.id, call.name, call.arguments, result.arguments)
                )
    matched: list[ToolResult] = []
    for call in calls:
        result_or_none = settled.get(call.id) or given.get(call.id)
        if call.id in suspended:
            faults.append(UnresolvedSuspension(call.id, call.name))
        elif result_or_none is None:
            result_or_none = replaceable.get(call.id)
            if result_or_none is None:
                faults.append(MissingResult(call.id, call.name))
        if result_or_none is not None:
            matched.append(result_or_none)
    if faults:
        place = {call.id: index for index, call in enumerate(calls)}
        raise CommitError(sorted(faults, key=lambda fault: place.get(fault.id, len(place))))
    return tuple(matched)


def _extra(
    result: ToolResult,
    calls: Sequence[ToolMetadata],
    settled: Mapping[str, ToolResult],
    suspended: Collection[str],
) -> ExtraResult:
    waiting = tuple(c.id for c in calls if c.id not in settled and c.id not in suspended)
    return ExtraResult(result.id, result.name, waiting, result.id in settled)


def unfinished(call: AnyToolCall, was_started: bool, reason: str) -> ToolResult:
    """Make the honest result of a call that was given up: nobody knows more of it than this."""
    if was_started:
        text = f"Outcome unknown: the tool was started, and nobody knows what it did. {reason}"
        return make_result(call.metadata, "null", "indeterminate", sendable(text))
    return make_result(call.metadata, "null", "cancelled", sendable(f"Not executed: {reason}"))
