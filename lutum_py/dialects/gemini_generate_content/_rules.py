"""The rules that generateContent sets for a conversation: finding breaches, and mending them.

Contents of one role that follow each other count as one turn. A turn with function calls is
followed at once by a turn of the user that begins with as many function responses, and a response
is an object. A call and its response meet by their id, or by name and order where there is none;
ours is the order of the calls. A conversation is mended in one pass, which notes each breach as it
meets it; `check` reports the notes, `repair` keeps the outcome. (Gemini API: guide to function
calling, and what the API answers to requests that break it.)
"""

from __future__ import annotations

from typing import Any, Final

from ..._text.json import copy_json, shorten
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pieces import Spoken, note_places
from .._repair.violations import NOT_SHOWN, OUTCOME_UNKNOWN
from ._facts import FACTS
from ._rules_pairing import Answer, answers_of
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
    answers, dropped = answers_of(calls, results, mending)
    touched: set[int] = set()
    for group, answered in answers.items():
        for answer in answered:
            if answer.result is None:
                touched.add(group)
                answer.result = _outcome_unknown(answer.call, mending)
        results_of = [(each.call, each.result) for each in answered if each.result is not None]
        if note_places(group, results_of, "response", mending):
            touched.add(group)
        if group in touched:
            for answer in answered:
                answer.align()
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
    answers: dict[int, list[Answer]],
    touched: set[int],
    dropped: set[Part],
    mending: Mending,
) -> None:
    """Write the contents; responses to a turn with a breach go to the head of the turn after it."""
    moved = dropped | {
        answer.result
        for group in touched
        for answer in answers.get(group, ())
        if answer.result is not None
    }
    run = _Run()
    for index, said in enumerate(spoken):
        kept = [part for part in said.pieces if part not in moved]
        if kept:
            run.add(said, kept, mending)
        following = spoken[index + 1] if index + 1 < len(spoken) else None
        if said.group in touched and (following is None or following.group != said.group):
            # In a content of their own: a content of responses holds nothing else.
            parts = [answer.result.value for answer in answers[said.group] if answer.result]
            mending.items.append({"role": "user", "parts": parts})
            run = _Run()


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
