"""Which ids of calls a provider takes, and what goes out instead of one that it refuses.

A turn that one provider made may go to another, which takes other characters, or fewer of them; and
hosts that number the calls of each turn anew give many calls of a conversation one id. What is kept
is the id as it came.
"""

from __future__ import annotations

from typing import Any, Final, Self

from ..._text.json import digest_of
from .._facts import Facts

_DIGITS: Final = 24


class WireIds:
    """Give each call of a request an id that no other has, and that the provider takes.

    An id that fits goes out as it is. For any other stands a digest of it, and of how many calls
    had it before: the same in every later request.

    Args:
        facts: What is known of the dialect of the request.

    Example:
        >>> from lutum_py.dialects._facts import facts_of
        >>> ids = WireIds(facts_of("openai_responses"))
        >>> ids.of("c1"), ids.of("c1")
        ('c1', 'call_b32a2bd4df0aed7e435a79c9')
    """

    __slots__ = ("_facts", "_made", "_taken")

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._taken: dict[str, bool] = {}  # whether all that have an id came from the provider
        self._made: dict[str, int] = {}  # how many were made for one

    def copy(self) -> Self:
        """Give another that goes on from here."""
        made = type(self)(self._facts)
        made._taken = self._taken.copy()
        made._made = self._made.copy()
        return made

    def send(self, call: dict[str, Any], key: str, *, is_own: bool) -> None:
        """Let a call go out by an id of its own, if it has any.

        Args:
            call: The call in the form of the wire.
            key: Where its id stands.
            is_own: Whether the provider of the request made it.
        """
        given = call.get(key)
        if isinstance(given, str) and given:
            call[key] = self.of(given, is_own=is_own)

    def of(self, given: str, *, is_own: bool = False) -> str:
        """Give the id under which the next call goes out.

        Args:
            given: Its id, as it came.
            is_own: Whether the provider of the request made it.
        """
        facts = self._facts
        fits = takes_id(facts, given) or (is_own and facts.takes_own_ids)
        again = is_own and facts.repeats_own_ids
        made = given
        if not fits or (given in self._taken and not (again and self._taken[given])):
            made, number = given, self._made.get(given, 0)
            # Made of the id and of how many had it before, and not of a counter of all calls: what
            # is cut or added elsewhere then changes no id, and the beginning of the request stays
            # in the cache.
            while made == given or made in self._taken:
                made = made_id(facts, given, number)
                number += 1
            self._made[given] = number
        self._taken[made] = again and self._taken.get(made, True)
        return made


def made_id(facts: Facts, given: str, number: int = 0) -> str:
    """Make an id that the provider takes, of one that it refuses, or that others have."""
    digest = digest_of([given, number] if number else given).removeprefix("sha256:")
    return f"{facts.made_ids}{digest[:_DIGITS]}"


def fitting_id(facts: Facts, given: str) -> str:
    """Give an id as it is, or one that is made of it where the provider refuses it."""
    return given if takes_id(facts, given) else made_id(facts, given)


def takes_id(facts: Facts, given: Any) -> bool:
    """Whether a provider takes an id from another."""
    return facts.call_ids.fullmatch(str(given)) is not None
