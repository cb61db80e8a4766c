"""Which function response answers which function call, in a conversation that may be broken."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..._text.json import shorten
from .._repair.mending import Mending
from .._repair.pairing import Standing, pair
from ._spoken import Part


class Answer:
    """A call, and the response to it.

    Attributes:
        call: The call.
        result: The response, or None where there is none.
    """

    __slots__ = ("call", "result")

    def __init__(self, call: Part, result: Part | None) -> None:
        self.call = call
        self.result = result

    def align(self) -> None:
        """Let the response have the id that the call has, or none, so that nobody has to guess."""
        fields: dict[str, Any] = (self.result and self.result.response) or {}
        fields.pop("id", None)
        if self.call.id is not None:
            fields["id"] = self.call.id


class _Matching:
    """Find responses to calls, one kind of pair after the other.

    Attributes:
        result_of: The response to each call that has one.
        dropped: The responses that have no place, and the rule that they break.
    """

    def __init__(self, calls: list[Part], results: list[Part]) -> None:
        self.result_of: dict[Part, Part] = {}
        self.dropped: dict[Part, str] = {}
        # Three rounds, the surest first: by id; then calls without an id by the name of their tool,
        # and with responses of any id; last what is left on both sides. In one round by name, a
        # response could take the call of another that names it by id.
        named = [call for call in calls if call.id is not None]
        ids = {call.id for call in named}
        with_id = [result for result in results if result.id in ids]
        self._pair(named, with_id, lambda part: str(part.id))
        # A response answers a call of its tool; some clients make up ids for calls without one.
        others = [result for result in results if result.id not in ids]
        nameless = [call for call in calls if call.id is None]
        self._pair(nameless, others, lambda part: str(part.name))
        still_open = [call for call in named if call not in self.result_of]
        left = [result for result in others if result in self.dropped and result.id is None]
        self._pair(still_open, left, lambda part: str(part.name))

    def _pair(
        self, calls: list[Part], results: list[Part], key: Callable[[Part], Hashable]
    ) -> None:
        found = pair(
            (Standing(call.number, key(call), call.group) for call in calls),
            (Standing(result.number, key(result)) for result in results),
        )
        for number, answer in found.result_of.items():
            self.result_of[calls[number]] = results[answer]
            self.dropped.pop(results[answer], None)
        for number in found.orphans:
            self.dropped.setdefault(results[number], "orphan_result")
        for number in found.duplicates:
            self.dropped[results[number]] = "duplicate_result"


def answers_of(
    calls: list[Part], results: list[Part], mending: Mending
) -> tuple[dict[int, list[Answer]], set[Part]]:
    """Find the response to each call: by the id where both have one, else by the tool's name.

    Args:
        calls: The calls, in order.
        results: The responses, in order.
        mending: Takes a note of each response that has no place, or the wrong name.

    Returns:
        The calls of each turn with their responses, and the responses that have no place.
    """
    matching = _Matching(calls, results)
    for part, rule in matching.dropped.items():
        remedy = "Send as many function responses as there are calls, right after them"
        mending.drop(part.position, rule, remedy, "response")
    answers: dict[int, list[Answer]] = {}
    for call in calls:
        result = matching.result_of.get(call)
        if result is not None:
            _same_name(call, result, mending)
        answers.setdefault(call.group, []).append(Answer(call, result))
    return answers, set(matching.dropped)


def _same_name(call: Part, result: Part, mending: Mending) -> None:
    if result.name == call.name:
        return
    mending.note(
        result.position,
        "result_of_other_tool",
        f"the response names {shorten(result.name)}, the call {shorten(call.name)}",
        "Send the name of the tool that was called",
        "set the name of the tool that was called",
    )
    result.rename(call.name)
