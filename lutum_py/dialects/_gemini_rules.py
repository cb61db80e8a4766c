"""The rules that generateContent sets for a conversation: finding breaches, and mending them.

Contents of one role that follow each other count as one turn. A turn with function calls is
followed at once by a turn of the user that begins with as many function responses, and a response
is an object. A call and its response meet by their id, or by name and order where there is none;
ours is the order of the calls. A conversation is mended in one pass, which notes each breach as it
meets it; `check` reports the notes, `repair` keeps the outcome. (Gemini API: guide to function
calling, and what the API answers to requests that break it.)
"""

from __future__ import annotations

from typing import Any

from .._json import copy_json, shorten
from ._gemini_pairing import Answer, answers_of
from ._gemini_spoken import Part, Spoken, read_contents
from ._mending import Mending
from ._violations import NOT_EXECUTED, Change, Violation, items_of, with_items

__all__ = ["check", "repair"]

_MISSING_START = "The beginning of this conversation is not shown."


def check(request: Any) -> list[Violation]:
    """Find what a conversation breaks of the provider's rules.

    Args:
        request: A request body, or its list of contents.

    Returns:
        Every violation, in the order of the contents; none for a request that is well formed.

    Raises:
        TypeError: The request is neither.

    Example:
        >>> part = {"functionResponse": {"name": "add", "response": {"output": 3}}}
        >>> [violation.rule for violation in check([{"role": "user", "parts": [part]}])]
        ['orphan_result']
    """
    return _mend(items_of(request, "contents")).violations


def repair(request: Any) -> tuple[Any, list[Change]]:
    """Mend a conversation so that `check` finds nothing.

    A call that nobody answered gets an error response that says that it was not executed.

    Args:
        request: A request body, or its list of contents; it is not changed.

    Returns:
        A mended copy of the same shape, and what was changed.

    Raises:
        TypeError: The request is neither.

    Example:
        >>> asked = {"role": "user", "parts": [{"text": "Go"}]}
        >>> call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
        >>> mended, changes = repair([asked, call])
        >>> list(mended[2]["parts"][0]["functionResponse"]["response"]), changes[0].rule
        (['error'], 'call_without_result')
    """
    mending = _mend(items_of(request, "contents"))
    return with_items(request, "contents", mending.items), mending.changes


def _mend(contents: list[Any]) -> Mending:
    mending = Mending()
    spoken = read_contents(contents, mending)
    calls = [part for said in spoken for part in said.parts if said.role == "model" and part.call]
    results = [part for said in spoken for part in said.parts if part.response is not None]
    answers, dropped = answers_of(calls, results, mending)
    touched: set[int] = set()
    for group, answered in answers.items():
        for answer in answered:
            if answer.result is None:
                touched.add(group)
                answer.result = _not_executed(answer.call, mending)
        if _places(group, answered, mending):
            touched.add(group)
        if group in touched:
            for answer in answered:
                answer.align()
    for part in results:
        _object_only(part, mending)
    _write(spoken, answers, touched, dropped, mending)
    _begin(mending)
    return mending


def _not_executed(call: Part, mending: Mending) -> Part:
    mending.note(
        call.position,
        "call_without_result",
        f"the call of {shorten(call.name)} has no response",
        "Send as many function responses as there are calls, right after them",
        "added a response that says that the call was not executed",
    )
    response = {"name": call.name, "response": {"error": NOT_EXECUTED}}
    return call.beside({"functionResponse": response})


def _places(group: int, answered: list[Answer], mending: Mending) -> bool:
    """Note each response that does not stand at the head of the next turn, in the calls' order."""
    noted = False
    results = [(answer.call, answer.result) for answer in answered if answer.result is not None]
    near = [result for _, result in results if result.group == group + 1]
    for call, result in results:
        if not result.made and result.group != group + 1:
            noted = True
            mending.note(
                result.position,
                "misplaced_result",
                f"the response belongs right after {call.position}, the call",
                "Send the responses in the content that follows the calls",
                f"moved the response to the turn after {call.position}",
            )
    for result, right in zip(near, sorted(near, key=lambda part: part.number), strict=True):
        if result is not right:
            noted = True
            mending.note(
                result.position,
                "results_out_of_order",
                "the responses are not in the order of the calls",
                "Send the responses in the order of the calls",
                "put the response where its call stands",
            )
        elif result.is_behind:
            noted = True
            mending.note(
                result.position,
                "result_after_content",
                "something else stands before the response",
                "Send the responses first, then text and files",
                "moved the response to the head of the turn",
            )
    return noted


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
    spoken: list[Spoken],
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
    for index, said in enumerate(spoken):
        kept = [part for part in said.parts if part not in moved]
        if kept:
            mending.items.append(said.with_parts(kept))
        following = spoken[index + 1] if index + 1 < len(spoken) else None
        if said.group in touched and (following is None or following.group != said.group):
            # In a content of their own: a content of responses holds nothing else.
            parts = [answer.result.value for answer in answers[said.group] if answer.result]
            mending.items.append({"role": "user", "parts": parts})


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
        mending.items.insert(0, {"role": "user", "parts": [{"text": _MISSING_START}]})
