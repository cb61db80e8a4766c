"""Check that a transcript is one that a provider accepts, and say everything that is wrong.

Each call has exactly one result; the results of a turn stand right after it, in the order of its
calls. What is wrong is told as a person would fix it: a result belongs to the last call before it
that it can answer, and only what finds no place so is one too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .._text.json import shorten
from ..errors import TranscriptError
from .assistant import AssistantTurn, ToolMetadata
from .message import Message
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
        fix: What a repair does about it; None if it can do nothing.
    """

    at: int
    position: str
    rule: str
    problem: str
    remedy: str
    fix: str | None = None

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


# Of each rule what is wrong, what to do about it, and what a repair does, if it can do anything.
_RULES: Final[Mapping[str, tuple[str, str, str | None]]] = {
    "no_item": ("{} is not an item of a transcript", "Take it out", None),
    "damaged_item": (
        "{}",
        "Correct the item by hand, or take the transcript from where it was saved",
        None,
    ),
    "duplicate_call_id": (
        "two calls of the turn share the id {}",
        "Take the turn as the provider sent it; what it sent is kept, so nothing is repaired",
        None,
    ),
    "orphan_result": (
        "the result {} answers no call",
        "Keep exactly one result for each call, with the call's id",
        "removed the result",
    ),
    "duplicate_result": (
        "the result {} answers a call that has a result already",
        "Keep exactly one result for each call, with the call's id",
        "removed the result",
    ),
    "call_without_result": (
        "the call {} of `{}` has no result",
        "Put one result for each call right after the turn that made it",
        "added a result of the status `indeterminate`",
    ),
    "result_of_other_call": (
        "the {} of the result {} not as in its call",
        "Keep the name and arguments of the call",
        "set the name and arguments of the call",
    ),
    "misplaced_result": (
        "the result belongs right after items[{0}], which made the call",
        "Put the results before anything else is said",
        "moved the result to the turn in items[{0}]",
    ),
    "results_out_of_order": (
        "the results of items[{0}] are not in the order of its calls",
        "Put the results in the order of the calls",
        "put the result where its call stands",
    ),
}


@dataclass(slots=True)
class Checked:
    """What was found out about a transcript: its calls, and every fault in the order of items."""

    calls: list[CheckedCall] = field(default_factory=list[CheckedCall])
    faults: list[TranscriptFault] = field(default_factory=list[TranscriptFault])

    def blame(self, at: int, rule: str, *words: object, position: str = "") -> None:
        """Note that an item breaks a rule; the words go into what is said of it."""
        problem, remedy, fix = _RULES[rule]
        problem, fix = problem.format(*words), fix and fix.format(*words)
        where = position or f"items[{at}]"
        self.faults.append(TranscriptFault(at, where, rule, problem, remedy, fix))


def is_whole(items: Iterable[object]) -> bool:
    """Whether each call has its result after it: nearly all have, so no more is asked at first."""
    # The results of a turn stand after it in the order of its calls, so the calls that wait are a
    # queue: ["c1", "c2"], of which each result has to answer the first.
    waiting: list[ToolMetadata] = []
    for item in items:
        if isinstance(item, ToolResult):
            if not waiting or not item.answers(waiting.pop(0)):
                return False
        elif waiting:
            return False
        elif isinstance(item, AssistantTurn):
            waiting = list(item.tool_calls)
            if len(waiting) > 1 and len({call.id for call in waiting}) < len(waiting):
                return False
        elif not isinstance(item, Message):
            return False
    return not waiting


def faults_in(items: Sequence[Any]) -> list[TranscriptFault]:
    """List what is wrong with items that may be anything, as a provider would refuse them."""
    return [] if is_whole(items) else checked(items).faults


def checked(items: Sequence[Any]) -> Checked:
    """Check items that may be anything.

    Example:
        >>> [str(fault) for fault in checked([3]).faults]
        ['items[0]: 3 is not an item of a transcript. Take it out (no_item).']
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
        elif isinstance(item, TranscriptError):  # what reading it raised
            found.blame(at, "damaged_item", str(item).removesuffix("."))
        elif not isinstance(item, Message):
            found.blame(at, "no_item", shorten(item))
    answered: dict[int, list[int]] = {}
    for call in found.calls:
        metadata = call.metadata
        if call.result is None:
            words = shorten(metadata.id), metadata.name
            found.blame(call.turn, "call_without_result", *words, position=call.position)
            continue
        answered.setdefault(call.turn, []).append(call.result)
        result: ToolResult = items[call.result]
        if not result.answers(metadata):
            what, verb = ("name", "is") if result.name != metadata.name else ("arguments", "are")
            words, position = (what, f"{shorten(result.id)} {verb}"), f"items[{call.result}].{what}"
            found.blame(call.result, "result_of_other_call", *words, position=position)
    for turn, results in answered.items():
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
            found.blame(at, "duplicate_call_id", shorten(metadata.id), position=call.position)
        ids.add(metadata.id)


def _take_result(
    at: int, result: ToolResult, found: Checked, waiting: dict[str, list[CheckedCall]]
) -> None:
    """Give a result to the last call before it that it can answer."""
    # Of two turns that both called `c1`, a result after the second is the second's. A person who
    # fixes a conversation reads it like this, and so what is wrong is told in few words.
    calls = waiting.get(result.id)
    if calls:
        # The last turn first; within a turn the calls in their order.
        call = min(calls, key=lambda each: (-each.turn, each.number))
        calls.remove(call)
        call.result = at
        return
    rule = "orphan_result" if calls is None else "duplicate_result"
    found.blame(at, rule, shorten(result.id))


def _judge_places(turn: int, results: list[int], items: Sequence[Any], found: Checked) -> None:
    # What is between `turn` and `end` are the results right after the turn: those are at least
    # in their place, if not in order.
    end = turn + 1
    while end < len(items) and isinstance(items[end], ToolResult):
        end += 1
    near = [at for at in results if at < end]
    right = iter(sorted(near))
    for at in results:
        if at >= end:
            found.blame(at, "misplaced_result", turn)
        elif at != next(right):
            found.blame(at, "results_out_of_order", turn)
