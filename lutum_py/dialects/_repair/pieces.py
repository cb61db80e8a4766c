"""The pieces of a conversation: calls, results, and what else is said, and where each stands.

On some wires a message holds several, such as the blocks of Anthropic and the parts of Gemini; on
others a result is a message, and a call is one of a list in its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

P = TypeVar("P", bound="Piece")


class Piece:
    """One piece of a conversation, and where it stands.

    Args:
        index: The number of its message.
        place: Its number in that; None where it is all that the message says.
        number: Its number among all pieces of the conversation.
        value: The piece.

    Attributes:
        index: As above.
        place: As above.
        number: As above.
        value: As above.
        call: The fields of a call that the program answers; None of any other piece.
        result: The fields of the program's answer; None of any other piece.
        group: The turn that it is in; -1 in instructions.
        is_behind: Whether a piece that is not a result is before it in its turn.
    """

    __slots__ = ("call", "group", "index", "is_behind", "number", "place", "result", "value")

    said_at: ClassVar[str]
    """Where a message has what it says."""
    # Both are known once all of the conversation was read.
    group: int
    is_behind: bool

    def __init__(self, index: int, place: int | None, number: int, value: dict[str, Any]) -> None:
        self.index = index
        self.place = place
        self.number = number
        self.value = value
        self.call: dict[str, Any] | None = None
        self.result: dict[str, Any] | None = None

    @property
    def made(self) -> bool:
        """Whether it was made by the repair, and so stands nowhere."""
        return self.number < 0

    @property
    def position(self) -> str:
        """Where it stands, as in `messages[1].content[0]`."""
        said_at = self.said_at % self.index
        return said_at if self.place is None else f"{said_at}[{self.place}]"

    def beside(self, value: dict[str, Any], result: dict[str, Any] | None) -> Self:
        """Make the result of this call, which nobody sent."""
        made = type(self)(self.index, self.place, -1, value)
        made.call, made.result, made.group = None, result, self.group
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
                piece.group, piece.is_behind = -1, False
            continue
        if said.role != role:
            role = said.role
            group += 1
            is_behind = False
        said.group = group
        for piece in said.pieces:
            piece.group = group
            piece.is_behind = is_behind
            is_behind = is_behind or piece.result is None
