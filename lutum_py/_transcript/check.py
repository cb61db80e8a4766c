"""Check that a transcript is one that a provider accepts, and say everything that is wrong.

Each call has exactly one result; the results of a turn stand right behind it, in the order of its
calls. What is wrong is told as a person would mend it: a result belongs to the last call before it
that it can answer, and only what finds no place so is one too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._text.json import shorten
from .assistant import AssistantTurn
from .message import Message
from .metadata import ToolMetadata
from .request import TranscriptItem
from .result import ToolResult


@dataclass(frozen=True, slots=True)
class TranscriptFault:
    """One thing that is wrong with a transcript.

    Attributes:
        at: The number of the item.
        position: Where, as in `items[3].tool_calls[0]`.
        rule: A stable name of what is broken, as in `call_without_result`.
        problem: What is wrong, in words.
        remedy: What to do about it.
        mend: What a repair does about it; None where it can do nothing.
    """

    at: int
    position: str
    rule: str
    problem: str
    remedy: str
    mend: str | None = None

    def __str__(self) -> str:
        return f"{self.position}: {self.problem}. {self.remedy} ({self.rule})."


@dataclass(slots=True)
class CheckedCall:
    """A call, where it stands, and the number of the item that is its result, if it has one."""

    turn: int
    number: int
    metadata: ToolMetadata
    result: int | None = None

    @property
    def position(self) -> str:
        """Where the call stands."""
        return f"items[{self.turn}].tool_calls[{self.number}]"


@dataclass(slots=True)
class Checked:
    """What was found out about a transcript: its calls, and every fault in the order of items."""

    calls: list[CheckedCall] = field(default_factory=list[CheckedCall])
    faults: list[TranscriptFault] = field(default_factory=list[TranscriptFault])


def is_in_order(items: Iterable[TranscriptItem]) -> bool:
    """Tell at a glance that nothing is wrong; False where it takes `checked` to say what."""
    # Calls of the last turn, the next one to be answered at the end: `pop` takes it off in one
    # step. Nearly every transcript that is loaded is right, and is then not looked at by `checked`.
    waiting: list[ToolMetadata] = []
    for item in items:
        if isinstance(item, ToolResult):
            if not (waiting and item.answers(waiting.pop())):
                return False
        elif waiting:
            return False
        elif isinstance(item, AssistantTurn):
            waiting = [*reversed(item.tool_calls)]
            if len(waiting) > 1 and len({call.id for call in waiting}) < len(waiting):
                return False
    return not waiting


def checked(items: Sequence[Any]) -> Checked:
    """Check items that may be anything.

    Example:
        >>> [str(fault) for fault in checked([3]).faults]
        ['items[0]: 3 is no item of a transcript. Take it out (no_item).']
    """
    # In one pass over the items: `waiting` holds the calls without a result, by id, since a
    # provider may use an id again in a later turn.
    found = Checked()
    waiting: dict[str, list[CheckedCall]] = {}
    for at, item in enumerate(items):
        if isinstance(item, AssistantTurn):
            _take_turn(at, item, found, waiting)
        elif isinstance(item, ToolResult):
            _take_result(at, item, found, waiting)
        elif not isinstance(item, Message):
            found.faults.append(
                TranscriptFault(
                    at,
                    f"items[{at}]",
                    "no_item",
                    f"{shorten(item)} is no item of a transcript",
                    "Take it out",
                )
            )
    of_turn: dict[int, list[CheckedCall]] = {}
    for call in found.calls:
        of_turn.setdefault(call.turn, []).append(call)
        _judge_result(call, items, found)
    for turn, calls in of_turn.items():
        results = [call.result for call in calls if call.result is not None]
        _judge_places(turn, results, items, found)
    found.faults.sort(key=lambda fault: fault.at)
    return found


def _take_turn(
    at: int, turn: AssistantTurn, found: Checked, waiting: dict[str, list[CheckedCall]]
) -> None:
    ids: set[str] = set()
    for number, metadata in enumerate(turn.tool_calls):
        call = CheckedCall(at, number, metadata)
        found.calls.append(call)
        waiting.setdefault(metadata.id, []).append(call)
        if metadata.id in ids:
            found.faults.append(
                TranscriptFault(
                    at,
                    call.position,
                    "duplicate_call_id",
                    f"two calls of the turn share the id {shorten(metadata.id)}",
                    "Take the turn as the provider sent it; what it sent is kept, so nothing is "
                    "mended",
                )
            )
        ids.add(metadata.id)


def _take_result(
    at: int, result: ToolResult, found: Checked, waiting: dict[str, list[CheckedCall]]
) -> None:
    """Give a result to the last call before it that it can answer."""
    # Of two turns that both called `c1`, a result behind the second is the second's. A person who
    # mends a conversation reads it like this, and so what is wrong is told in few words.
    calls = waiting.get(result.id)
    if calls:
        # The last turn first; within a turn the calls in their order.
        call = min(calls, key=lambda each: (-each.turn, each.number))
        calls.remove(call)
        call.result = at
        return
    found.faults.append(
        TranscriptFault(
            at,
            f"items[{at}]",
            "orphan_result" if calls is None else "duplicate_result",
            f"the result {shorten(result.id)} answers "
            + ("no call" if calls is None else "a call that has a result already"),
            "Keep exactly one result for each call, with the call's id",
            "removed the result",
        )
    )


def _judge_result(call: CheckedCall, items: Sequence[Any], found: Checked) -> None:
    metadata = call.metadata
    if call.result is None:
        found.faults.append(
            TranscriptFault(
                call.turn,
                call.position,
                "call_without_result",
                f"the call {shorten(metadata.id)} of `{metadata.name}` has no result",
                "Put one result for each call right after the turn that made it",
                "added a result of the status `indeterminate`",
            )
        )
        return
    result: ToolResult = items[call.result]
    if not result.answers(metadata):
        what, verb = ("name", "is") if result.name != metadata.name else ("arguments", "are")
        found.faults.append(
            TranscriptFault(
                call.result,
                f"items[{call.result}].{what}",
                "result_of_other_call",
                f"the {what} of the result {shorten(result.id)} {verb} not as in its call",
                "Keep the name and arguments of the call",
                "set the name and arguments of the call",
            )
        )


def _judge_places(turn: int, results: list[int], items: Sequence[Any], found: Checked) -> None:
    # What stands between `turn` and `end` are the results right behind the turn: those are at least
    # in their place, if not in order.
    end = turn + 1
    while end < len(items) and isinstance(items[end], ToolResult):
        end += 1
    found.faults += [
        TranscriptFault(
            at,
            f"items[{at}]",
            "misplaced_result",
            f"the result belongs right after items[{turn}], which made the call",
            "Put the results before anything else is said",
            f"moved the result to the turn in items[{turn}]",
        )
        for at in results
        if at >= end
    ]
    near = [at for at in results if at < end]
    found.faults += [
        TranscriptFault(
            at,
            f"items[{at}]",
            "results_out_of_order",
            f"the results of items[{turn}] are not in the order of its calls",
            "Put the results in the order of the calls",
            "put the result where its call stands",
        )
        for at, right in zip(near, sorted(near), strict=True)
        if at != right
    ]
