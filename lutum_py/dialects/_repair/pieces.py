"""The pieces of a conversation whose messages hold several, and where results stand among them.

Both Anthropic's blocks and Gemini's parts are such pieces: the results of a turn's calls stand at
the head of the next turn, in the order of the calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from .mending import Mending

P = TypeVar("P")


class Piece(ABC):
    """One piece of a message, and where it stands.

    Args:
        index: The number of its message.
        place: Its number in that; None where it is all that the message says.
        number: Its number among all pieces of the conversation.
        value: The piece.

    Attributes:
        number: As above.
        group: The turn that it is in; -1 in instructions.
        value: As above.
        is_behind: Whether a piece that is no result stands before it in its turn.
        made: Whether it was made by the repair.
    """

    __slots__ = ("_index", "_place", "group", "is_behind", "made", "number", "value")

    said_at: ClassVar[str]
    """Where a message has what it says."""

    def __init__(self, index: int, place: int | None, number: int, value: dict[str, Any]) -> None:
        self._index = index
        self._place = place
        self.number = number
        self.value = value
        self.group = 0
        self.is_behind = False
        self.made = False

    @property
    @abstractmethod
    def is_result(self) -> bool:
        """Whether it answers a call."""

    @property
    def position(self) -> str:
        """Where it stands, as in `messages[1].content[0]`."""
        said_at = self.said_at % self._index
        return said_at if self._place is None else f"{said_at}[{self._place}]"

    def beside(self, value: dict[str, Any]) -> Self:
        """Make a new piece that belongs to this one."""
        made = type(self)(self._index, self._place, self.number, value)
        made.group = self.group
        made.made = True
        return made


@dataclass(slots=True, eq=False)
class Spoken(Generic[P]):
    """One message of a conversation, as the pieces of it.

    Attributes:
        index: Its number in the conversation.
        message: The message as it was sent.
        role: Who speaks.
        pieces: What is said.
        group: The turn that it is part of.
    """

    index: int
    message: Mapping[str, Any]
    role: str
    pieces: list[P]
    group: int = 0


def number_turns(spoken: Iterable[Spoken[Any]]) -> None:
    """Number the turns: messages of one role that follow each other, instructions aside."""
    # Two messages of the user in a row are one turn, as the provider joins them: user, user,
    # assistant has the groups 0, 0, 1. So a result in the second of them is still at the right
    # place.
    group = -1
    role = None
    is_behind = False
    for said in spoken:
        if said.role == "system":
            said.group = group
            # What instructions hold is of no turn: a result there answers nobody.
            for piece in said.pieces:
                piece.group = -1
            continue
        if said.role != role:
            role = said.role
            group += 1
            is_behind = False
        said.group = group
        for piece in said.pieces:
            piece.group = group
            piece.is_behind = is_behind
            is_behind = is_behind or not piece.is_result


def note_places(
    group: int, answered: Iterable[tuple[Piece, Piece]], word: str, mending: Mending
) -> bool:
    """Note each result that does not stand at the head of the next turn, in the calls' order.

    Args:
        group: The turn that made the calls.
        answered: Its calls and their results, in order.
        word: What the provider calls a result.
        mending: Takes a note of each breach.

    Returns:
        Whether there was any.
    """
    # `near` has the results that stand in the right turn, in the order of their calls: [3, 1, 2] by
    # place. What should be there is the same sorted, [1, 2, 3].
    noted = False
    near: list[Piece] = []
    for call, result in answered:
        if result.group == group + 1:
            near.append(result)
        elif not result.made:
            noted = True
            mending.note(
                result.position,
                "misplaced_result",
                f"the {word} belongs right after {call.position}, the call",
                f"Send the {word}s at the head of what follows the calls",
                f"moved the {word} to the turn after {call.position}",
            )
    # Where they stand, sorted, is where they should stand in the order of the calls: each that
    # differs is noted, and the others are not, though all are written anew.
    for result, right in zip(near, sorted(near, key=lambda piece: piece.number), strict=True):
        if result is not right:
            noted = True
            mending.out_of_order(result.position, word)
        elif result.is_behind:
            noted = True
            mending.note(
                result.position,
                "result_after_content",
                f"something else stands before the {word}",
                f"Send the {word}s first, then text and files",
                f"moved the {word} to the head of the turn",
            )
    return noted
