"""A round that is whole: the assistant turn, and one result for each of its calls, in order.

Whoever holds one needs to check nothing: it cannot be made of anything less. `joined` skips the
check for results that a plan has just matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from .._text.immutable import Frozen
from ..errors import InvalidValueError
from .assistant import AssistantTurn
from .request import TranscriptItem
from .result import ToolResult


class _CommittedFields:
    __slots__ = ("results", "turn")

    turn: AssistantTurn
    results: tuple[ToolResult, ...]


class CommittedRound(Frozen, _CommittedFields):
    """Hold a turn and its results; what `plan.resolve(results)` and `plan.commit` give.

    Iterating gives the turn and then the results, as the transcript has them.

    Raises:
        InvalidValueError: The results are not one for each call, in the order of the calls, or two
            calls share an id.
    """

    __slots__ = ()

    def __new__(cls, turn: AssistantTurn, results: Iterable[ToolResult]) -> Self:
        results = tuple(results)
        calls = turn.tool_calls
        asked = [(call.id, call.name, call.arguments) for call in calls]
        given = [(result.id, result.name, result.arguments) for result in results]
        if asked != given or len({call.id for call in calls}) != len(calls):
            raise InvalidValueError(
                f"A committed round has one result for each call, in order, and no id twice. "
                f"Calls: {[call.id for call in calls]}; results: {[each.id for each in results]}. "
                "Let `plan.resolve(results)` make it."
            )
        return joined(turn, results)  # type: ignore[return-value]

    @property
    def items(self) -> tuple[TranscriptItem, ...]:
        """The turn and its results, as the transcript has them."""
        return (self.turn, *self.results)

    def __iter__(self) -> Iterator[TranscriptItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return 1 + len(self.results)


def joined(turn: AssistantTurn, results: tuple[ToolResult, ...]) -> CommittedRound:
    """Join a turn with results that are known to answer it."""
    made = _CommittedFields()
    made.turn = turn
    made.results = results
    made.__class__ = CommittedRound  # immutable from here on, see `frozen`
    return made  # type: ignore[return-value]
