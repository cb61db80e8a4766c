"""Which result answers which call, in a conversation that may be broken, and what is wrong there.

A conversation is taken as pieces: calls, results, and what else is said. On some wires a message
holds several, such as the blocks of Anthropic and the parts of Gemini; on others a result is a
message, and a call is one of a list in its turn.

A call and a result meet by a key, which is the call id. Ids may come again in later rounds, so a
result belongs to the nearest round before it that has a call of its key; only if there is none,
to the first call after it. One pass, whatever is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from ..._text.json import is_mapping, shorten
from .repairing import MAYBE_TEXT, Repairing

P = TypeVar("P", bound="Piece")


class Piece:
    """One piece of a conversation, and where it stands.

    Args:
        index: The number of its message.
        place: Its number in that; None if it is all that the message says.
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


def read_spoken(
    messages: Iterable[Any],
    said_at: str,
    roles: Mapping[str | None, str],
    pieces_of: Callable[[int, Mapping[str, Any], str, int], list[P]],
    repairing: Repairing,
) -> list[Spoken[P]]:
    """Read the messages of a request, without what says nothing, and number their turns.

    Args:
        messages: The messages.
        said_at: Where one has what it says, by its number.
        roles: By what stands there, the role of who speaks.
        pieces_of: Reads what is said in a message, given the numbers of that and of its first
            piece, and its role.
        repairing: Takes a note of each breach.
    """
    spoken: list[Spoken[P]] = []
    number, facts = 0, repairing.facts
    for index, message in enumerate(messages):
        given = message.get("role") if is_mapping(message) else ""
        role = roles.get(given) if isinstance(given, MAYBE_TEXT) else None
        if not is_mapping(message) or role is None:
            repairing.drop_unknown(f"{facts.key}[{index}]", message, roles.values())
            continue
        pieces = pieces_of(index, message, role, number)
        number += len(pieces)
        if pieces:
            spoken.append(Spoken(index, message, role, pieces))
        else:
            word, remedy = facts.message_word, "Leave it out"
            problem = f"the {word} says nothing"
            repairing.note(said_at % index, f"empty_{word}", problem, remedy, f"removed the {word}")
    number_turns(spoken)
    return spoken


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


_GROUP: Final[Callable[[Any], int]] = attrgetter("group")
_NUMBER: Final[Callable[[Any], int]] = attrgetter("number")


class Pairing(Generic[P]):
    """Find the result of each call.

    Attributes:
        result_of: From a call to its result.
        dropped: The results that have no place, and the rule that each breaks.
    """

    __slots__ = ("dropped", "result_of")

    def __init__(self) -> None:
        self.result_of: dict[P, P] = {}
        self.dropped: dict[P, str] = {}

    def pair(
        self,
        calls: Iterable[P],
        results: Iterable[P],
        key: Callable[[P], Hashable],
        round_of: Callable[[P], int] = _GROUP,
    ) -> None:
        """Pair calls and results, both in the order in which they stand.

        If several things may join them, this is called for one after the other, the surest
        first, each time with what is left.

        Args:
            calls: The calls.
            results: The results.
            key: What joins a call and its result.
            round_of: The round of a call.
        """
        # Of each key the latest round so far, with its calls that have no result yet, and the
        # results that came before any call. Ids may repeat: thousands of calls may share one, and
        # all of them are paired in one pass.
        latest: dict[Hashable, tuple[int, deque[P]]] = {}
        early: dict[Hashable, deque[P]] = {}
        for piece in merge(calls, results, key=_NUMBER):
            name = key(piece)
            before = early.setdefault(name, deque())
            if piece.call is not None:
                if name not in latest or latest[name][0] != round_of(piece):
                    latest[name] = (round_of(piece), deque())
                if before:
                    self._join(piece, before.popleft())
                else:
                    latest[name][1].append(piece)
            elif name not in latest:
                before.append(piece)
            elif latest[name][1]:
                self._join(latest[name][1].popleft(), piece)
            else:
                self.dropped[piece] = "duplicate_result"
        for name, left in early.items():
            for result in left:
                if name in latest:
                    self.dropped[result] = "duplicate_result"
                else:
                    self.dropped.setdefault(result, "orphan_result")

    def _join(self, call: P, result: P) -> None:
        self.result_of[call] = result
        self.dropped.pop(result, None)

    def answers(
        self,
        calls: Iterable[P],
        remedy: str,
        made: Callable[[Repairing, P], P],
        repairing: Repairing,
        *,
        fit: Callable[[Repairing, P, P], None] | None = None,
    ) -> dict[int, list[tuple[P, P]]]:
        """Return the calls of each turn with their results, and note the results without a place.

        Args:
            calls: All calls, in order.
            remedy: What to send in the place of a result that has no place.
            made: Makes the result of a call that nobody answered, and notes that.
            repairing: Takes the notes.
            fit: Fixes what in a result that was found is not of its call.
        """
        for result, rule in self.dropped.items():
            repairing.drop(result.position, rule, remedy)
        answers: dict[int, list[tuple[P, P]]] = {}
        for call in calls:
            found = self.result_of.get(call)
            if found is not None and fit is not None:
                fit(repairing, call, found)
            answers.setdefault(call.group, []).append((call, found or made(repairing, call)))
        return answers


def note_places(group: int, answered: Iterable[tuple[Piece, Piece]], repairing: Repairing) -> bool:
    """Note each result that does not stand at the head of the next turn, in the calls' order.

    Args:
        group: The turn that made the calls.
        answered: Its calls and their results, in order.
        repairing: Takes a note of each breach.

    Returns:
        Whether the results have to be written again: one of them is misplaced, or was made.
    """
    # `near` has the results that stand in the right turn, in the order of their calls: [3, 1, 2] by
    # place. What should be there is the same sorted, [1, 2, 3].
    is_touched, word = False, repairing.facts.result_word
    near: list[Piece] = []
    for call, result in answered:
        if result.group == group + 1:
            near.append(result)
            continue
        is_touched = True
        if not result.made:
            repairing.note(
                result.position,
                "misplaced_result",
                f"the {word} belongs right after {call.position}, the call",
                f"Send the {word}s at the head of what follows the calls",
                f"moved the {word} to the turn after {call.position}",
            )
    # Where they stand, sorted, is where they should be in the order of the calls: each that
    # differs is noted, and the others are not, though all are written again.
    for result, right in zip(near, sorted(near, key=lambda piece: piece.number), strict=True):
        if result is not right:
            is_touched = True
            repairing.out_of_order(result.position)
        elif result.is_behind:
            is_touched = True
            repairing.note(
                result.position,
                "result_after_content",
                f"something else is before the {word}",
                f"Send the {word}s first, then text and files",
                f"moved the {word} to the head of the turn",
            )
    return is_touched


def distinct_ids(
    answered: Sequence[tuple[P, P]],
    keys: tuple[str, str],
    fit: Callable[[str], str],
    repairing: Repairing,
    *,
    taken: Iterable[str | None] = (),
    at: str = "",
    is_needed: bool = False,
) -> None:
    """Give each call whose id is refused, or that of a call before it, another, and its result too.

    Args:
        answered: The calls, and their results.
        keys: Where a call has its id, and where a result has that of its call.
        fit: Gives an id that the provider takes for one that it may refuse.
        repairing: Takes a note of each breach.
        taken: Ids that none that is made may be, beside those of the calls.
        at: The way from a call to its id, for the notes.
        is_needed: Whether each call has to have an id.
    """
    of_call, of_result = keys
    fields = [(call, call.call or {}, result.result or {}) for call, result in answered]
    known = {str(called[of_call]) for _, called, _ in fields if called.get(of_call)}.union(taken)
    seen: set[str] = set()
    counts: dict[str, int] = {}
    for call, called, answer in fields:
        shown = called.get(of_call)
        # The position is not an id that a provider takes, and so is replaced like any other odd id.
        given = shown or (call.position if is_needed else None)
        if given is None:
            continue
        made = fitting = fit(str(given))
        # A thousand calls "a" get a_2, a_3, ..., each in one step: to count from 2 each time would
        # try every number again, and a broken request could make that slow on purpose. An id like
        # "a_2" may be there by chance, and then the count goes on.
        while made in seen:
            counts[fitting] = counts.get(fitting, 1) + 1
            numbered = f"{fitting}_{counts[fitting]}"
            made = made if numbered in known else fit(numbered)
        seen.add(made)
        if made != given:
            is_odd = fitting != given
            repairing.note(
                f"{call.position}{at}",
                "invalid_call_id" if is_odd else "duplicate_call_id",
                f"the provider does not take the id {shorten(shown)}"
                if is_odd
                else f"a call before it has the id {shorten(shown)} too",
                "Give each call an id of its own, of "
                f"{repairing.facts.call_ids_in_words}, and its result the same",
                f"gave the call and its result the id {made!r}",
            )
            called[of_call] = answer[of_result] = made
