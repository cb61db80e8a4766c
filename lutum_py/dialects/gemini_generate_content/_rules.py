"""The rules that generateContent sets for a conversation: finding breaches, and mending them.

Contents of one role that follow each other count as one turn. A turn with function calls is
followed at once by a turn of the user that begins with as many function responses, and a response
is an object. A call and its response meet by their id, or by name and order where there is none;
ours is the order of the calls. A conversation is mended in one pass, which notes each breach as it
meets it; `check` reports the notes, `repair` keeps the outcome. (Gemini API: guide to function
calling, and what the API answers to requests that break it.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from ..._text.json import copy_json, shorten
from .._findings import NOT_SHOWN, OUTCOME_UNKNOWN
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pairing import Standing, pair
from .._repair.pieces import Spoken, note_places
from ._facts import FACTS
from ._spoken import Part, read_contents


def _is_in_order(contents: list[Any], mending: Mending) -> bool:
    """Tell whether the responses to each turn stand at the head of the next, and no others."""
    due: list[dict[str, Any]] = []
    answered = 0
    turn = -1
    spoken = read_contents(contents, mending)
    for at, said in enumerate(spoken):
        calls = [part.call for part in said.pieces if part.call]
        if calls:
            # Where the model said something before it, they may have to be one content.
            if answered < len(due) or not at or spoken[at - 1].group == said.group:
                return False
            due, answered, turn = calls, 0, said.group
        for part in said.pieces:
            if part.response is not None:
                if answered == len(due) or said.group != turn + 1 or part.is_behind:
                    return False
                if not _is_answer(part.response, due[answered]):
                    return False
                answered += 1
    return answered == len(due)


def _is_answer(response: dict[str, Any], call: dict[str, Any]) -> bool:
    return (
        response.get("name") == call.get("name")
        and (response.get("id") or None) == (call.get("id") or None)
        and isinstance(response.get("response"), dict)
    )


def _mend(contents: list[Any], mending: Mending) -> None:
    spoken = read_contents(contents, mending)
    calls = [part for said in spoken for part in said.pieces if said.role == "model" and part.call]
    results = [part for said in spoken for part in said.pieces if part.is_result]
    answers, dropped = _answered(calls, results, mending)
    touched: set[int] = set()
    for group, answered in answers.items():
        is_misplaced = note_places(group, answered, "response", mending)
        if is_misplaced or any(result.made for _, result in answered):
            touched.add(group)
            for call, result in answered:
                result.answer(call)
    for part in results:
        _object_only(part, mending)
    _write(spoken, answers, touched, dropped, mending)
    _begin(mending)


def _outcome_unknown(call: Part, mending: Mending) -> Part:
    mending.note(
        call.position,
        "call_without_result",
        f"the call of {shorten(call.name)} has no response",
        "Send as many function responses as there are calls, right after them",
        "added a response that says that its outcome is unknown",
    )
    response = {"name": call.name, "response": {"error": OUTCOME_UNKNOWN}}
    return call.beside({"functionResponse": response})


def _object_only(part: Part, mending: Mending) -> None:
    fields = part.response or {}
    value = fields.get("response")
    if not isinstance(value, dict):
        mending.note(
            part.position,
            "response_not_an_object",
            f"the response is {shorten(value)}, and not an object",
            'Send an object, as in {"output": ...}',
            "put the response into an object, under `output`",
        )
        fields["response"] = {"output": copy_json(value)}


def _write(
    spoken: list[Spoken[Part]],
    answers: dict[int, list[tuple[Part, Part]]],
    touched: set[int],
    dropped: set[Part],
    mending: Mending,
) -> None:
    """Write the contents; responses to a turn with a breach go to the head of the turn after it."""
    # As on the wires of blocks: what is moved is passed over where it stands, and written down
    # behind the last content of its turn.
    moved = dropped | {result for group in touched for _, result in answers[group]}
    run = _Run()
    for index, said in enumerate(spoken):
        kept = [part for part in said.pieces if part not in moved]
        if kept:
            run.add(said, kept, mending)
        following = spoken[index + 1] if index + 1 < len(spoken) else None
        if said.group in touched and (following is None or following.group != said.group):
            # In a content of their own: a content of responses holds nothing else.
            parts = [result.value for _, result in answers[said.group]]
            mending.items.append({"role": "user", "parts": parts})
            run = _Run()


# The API wants a call right behind the user. So [says, says, calls] of the model becomes one
# content once the call comes; until then nobody knows, and the first that says something is
# remembered as the place where the joined one begins.
class _Run:
    """Contents of the model without another between them, of which the first may hold calls."""

    __slots__ = ("_begin", "_group")

    def __init__(self) -> None:
        self._begin: int | None = None
        self._group = -1

    def add(self, said: Spoken[Part], kept: list[Part], mending: Mending) -> None:
        """Write down a content; one with calls is joined to what the model says before it."""
        content = {key: value for key, value in said.message.items() if key != "parts"}
        content = {**copy_json(content), "parts": [part.value for part in kept]}
        mending.items.append(content)
        if said.role != "model":
            self._begin = None
        elif not any(part.call for part in kept):
            if self._begin is None:
                self._begin, self._group = len(mending.items) - 1, said.group
        elif self._begin is not None:
            self._join(said, mending)

    def _join(self, said: Spoken[Part], mending: Mending) -> None:
        joined = mending.items[self._begin :]
        del mending.items[self._begin :]
        parts = [part for content in joined for part in content["parts"]]
        mending.items.append({**joined[0], "parts": parts})
        self._begin = None
        position = f"contents[{said.index}]"
        what = "joined it to what the model says before it"
        if said.group == self._group:
            mending.note(
                position,
                "call_after_model",
                "a function call follows a content of the model that calls nothing",
                "Send what the model says and what it calls in one content",
                what,
            )
        else:
            # They stood well, before what was between them was removed.
            mending.follow_up(position, "call_after_model", what)


def _begin(mending: Mending) -> None:
    first: dict[str, Any] = mending.items[0] if mending.items else {}
    parts: list[dict[str, Any]] = first.get("parts", [])
    keys = {key for part in parts for key in part}
    if first.get("role") == "model" and keys & {"functionCall", "function_call"}:
        mending.note(
            "contents[0]",
            "call_without_user",
            "the first content is a function call",
            "Begin with a content of the user",
            "put a content of the user before it that says that the beginning is missing",
        )
        mending.items.insert(0, {"role": "user", "parts": [{"text": NOT_SHOWN}]})


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "parts": [{"text": text}]},
    mend=_mend,
    is_in_order=_is_in_order,
    takes_one=True,
)


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


def _answered(
    calls: list[Part], results: list[Part], mending: Mending
) -> tuple[dict[int, list[tuple[Part, Part]]], set[Part]]:
    """Find the response to each call: by the id where both have one, else by the tool's name.

    Args:
        calls: The calls, in order.
        results: The responses, in order.
        mending: Takes a note of each call without a response, and of each response that has no
            place, or the wrong name.

    Returns:
        The calls of each turn with their responses, and the responses that have no place.
    """
    matching = _Matching(calls, results)
    for part, rule in matching.dropped.items():
        remedy = "Send as many function responses as there are calls, right after them"
        mending.drop(part.position, rule, remedy, "response")
    answers: dict[int, list[tuple[Part, Part]]] = {}
    for call in calls:
        result = matching.result_of.get(call) or _outcome_unknown(call, mending)
        _same_name(call, result, mending)
        answers.setdefault(call.group, []).append((call, result))
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
