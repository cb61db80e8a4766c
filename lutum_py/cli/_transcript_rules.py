"""Find everything that is wrong with a saved transcript, and mend what can be mended.

Loading a transcript stops at the first fault; here every fault is found, on the JSON as it was
saved, so that what is not concerned stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from .._text.json import (
    copy_json,
    is_array,
    is_object,
    shorten,
)
from .._transcript.assistant import AssistantTurn
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, dump_result
from .._transcript.saved import Saved
from .._transcript.transcript_json import FORMAT, VERSION, load_item
from ..dialects._repair.violations import Change, Violation
from ..errors import TranscriptError
from ._screen import Failure

__all__ = ["check_transcript", "is_transcript", "repair_transcript"]

_UNKNOWN: Final = '"The transcript holds no result for this call; whether it ran is not known."'


@dataclass(slots=True)
class _Call:
    turn: int
    number: int
    metadata: ToolMetadata
    result: int | None = None

    @property
    def position(self) -> str:
        return f"items[{self.turn}].tool_calls[{self.number}]"


@dataclass(slots=True)
class _Findings:
    items: list[Any] = field(default_factory=list[Any])
    notes: list[tuple[int, Violation, str | None]] = field(
        default_factory=list[tuple[int, Violation, "str | None"]]
    )

    def note(
        self, at: int, position: str, rule: str, problem: str, remedy: str, what: str | None
    ) -> None:
        self.notes.append((at, Violation(position, rule, problem, remedy), what))


def is_transcript(value: Any) -> bool:
    """Whether JSON data says that it is a saved transcript."""
    return is_object(value) and value.get("format") == FORMAT


def check_transcript(value: Any) -> list[Violation]:
    """Find what is wrong with a saved transcript.

    Args:
        value: The JSON that `transcript.dump_json()` gave.

    Returns:
        Every violation, in the order of the items.

    Raises:
        Failure: It is of another version, or has no items.
    """
    return [violation for _, violation, _ in _sorted(_examine(value))]


def repair_transcript(value: Any) -> tuple[Any, list[Change]]:
    """Mend a saved transcript: each call gets exactly one result, in order.

    A call without a result gets one of the status `indeterminate`. A damaged item, and two calls of
    one turn that share an id, are left as they are.

    Args:
        value: The JSON that `transcript.dump_json()` gave; it is not changed.

    Returns:
        The mended copy, and what was changed.

    Raises:
        Failure: It is of another version, or has no items.
    """
    findings = _examine(value)
    changes = [
        Change(violation.position, violation.rule, what)
        for _, violation, what in _sorted(findings)
        if what is not None
    ]
    return {**value, "items": copy_json(findings.items)}, changes


def _sorted(findings: _Findings) -> list[tuple[int, Violation, str | None]]:
    return sorted(findings.notes, key=lambda note: note[0])


def _examine(value: Any) -> _Findings:
    version, items = value.get("version"), value.get("items")
    if type(version) is not int or version != VERSION:
        raise Failure(
            f"The transcript has format version {shorten(version)}; this release reads "
            f"{VERSION}. Use the release that saved it."
        )
    if not is_array(items):
        raise Failure("The transcript has no list of `items`, so it is none.")
    findings = _Findings()
    loaded = [_load(entry, at, findings) for at, entry in enumerate(items)]
    calls = [
        _Call(at, number, metadata)
        for at, item in enumerate(loaded)
        if isinstance(item, AssistantTurn)
        for number, metadata in enumerate(item.tool_calls)
    ]
    _find_twins(calls, findings)
    results = {at: item for at, item in enumerate(loaded) if isinstance(item, ToolResult)}
    _pair(calls, results, findings)
    _find_misplaced(calls, loaded, findings)
    answers: dict[int, list[Any]] = {}
    for call in calls:
        answers.setdefault(call.turn, []).append(_answer(call, items, results, findings))
    for at, entry in enumerate(items):
        if at not in results:
            findings.items += [entry, *answers.get(at, ())]
    return findings


def _load(entry: Any, at: int, findings: _Findings) -> Any:
    try:
        return load_item(Saved(entry, f"items[{at}]", TranscriptError))
    except TranscriptError as error:
        problem = str(error).removesuffix(".")
        remedy = "Mend the item by hand, or take the transcript from where it was saved"
        findings.note(at, f"items[{at}]", "damaged_item", problem, remedy, None)
        return None


def _find_twins(calls: list[_Call], findings: _Findings) -> None:
    seen: set[tuple[int, str]] = set()
    for call in calls:
        key = (call.turn, call.metadata.id)
        if key in seen:
            findings.note(
                call.turn,
                call.position,
                "duplicate_call_id",
                f"two calls of the turn share the id {shorten(call.metadata.id)}",
                "Take the turn as the provider sent it; what it sent is kept, so nothing is mended",
                None,
            )
        seen.add(key)


def _pair(calls: list[_Call], results: dict[int, ToolResult], findings: _Findings) -> None:
    """Give each result to the last call before it that it can answer."""
    for at, result in results.items():
        before = [call for call in calls if call.turn < at and call.metadata.id == result.id]
        # The last turn first; within a turn the calls in their order.
        waiting = sorted((c for c in before if c.result is None), key=lambda c: (-c.turn, c.number))
        if waiting:
            waiting[0].result = at
            continue
        findings.note(
            at,
            f"items[{at}]",
            "duplicate_result" if before else "orphan_result",
            f"the result {shorten(result.id)} answers "
            + ("a call that has a result already" if before else "no call"),
            "Keep exactly one result for each call, with the call's id",
            "removed the result",
        )


def _find_misplaced(calls: list[_Call], loaded: list[Any], findings: _Findings) -> None:
    for turn in sorted({call.turn for call in calls}):
        found = [call.result for call in calls if call.turn == turn and call.result is not None]
        end = turn + 1
        while end < len(loaded) and isinstance(loaded[end], ToolResult):
            end += 1
        for at in found:
            if at >= end:
                findings.note(
                    at,
                    f"items[{at}]",
                    "misplaced_result",
                    f"the result belongs right after items[{turn}], which made the call",
                    "Put the results before anything else is said",
                    f"moved the result to the turn in items[{turn}]",
                )
        near = [at for at in found if at < end]
        for at, right in zip(near, sorted(near), strict=True):
            if at != right:
                findings.note(
                    at,
                    f"items[{at}]",
                    "results_out_of_order",
                    f"the results of items[{turn}] are not in the order of its calls",
                    "Put the results in the order of the calls",
                    "put the result where its call stands",
                )


def _answer(
    call: _Call, items: list[Any], results: dict[int, ToolResult], findings: _Findings
) -> Any:
    """Give the result of a call as it is to be saved."""
    metadata = call.metadata
    if call.result is None:
        findings.note(
            call.turn,
            call.position,
            "call_without_result",
            f"the call {shorten(metadata.id)} of `{metadata.name}` has no result",
            "Put one result for each call right after the turn that made it",
            "added a result of the status `indeterminate`",
        )
        return dump_result(
            ToolResult(
                id=metadata.id,
                name=metadata.name,
                arguments=metadata.arguments,
                result=_UNKNOWN,
                status="indeterminate",
            )
        )
    result, entry = results[call.result], items[call.result]
    if (result.name, result.arguments) == (metadata.name, metadata.arguments):
        return entry
    what = "name" if result.name != metadata.name else "arguments"
    findings.note(
        call.result,
        f"items[{call.result}].{what}",
        "result_of_other_call",
        f"the {what} of the result {shorten(result.id)} are not those of its call",
        "Keep the name and arguments of the call",
        "set the name and arguments of the call",
    )
    return {**entry, "name": metadata.name, "arguments": metadata.arguments}
