"""The rules that Chat Completions sets for a conversation: finding breaches, and mending them.

A turn with calls is followed at once by one result for each call. The API takes the results of one
turn in any order; hosts behind it do not, so ours is the order of the calls. A conversation is
mended in one pass, which notes each breach as it meets it; `check` reports the notes, `repair`
keeps the outcome. (OpenAI API reference: "Create chat completion", messages.)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from ..._text.json import shorten
from .._findings import OUTCOME_UNKNOWN
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pairing import Pairing, Standing, distinct_ids, pair
from ._facts import FACTS
from ._spoken import RESULTS, read_message

_ONE_EACH: Final = "Send exactly one result for each call, with the call's id"


class _Call:
    """A call, and where it stands; the older form, of which a turn has one, has no number."""

    __slots__ = ("id", "id_text", "index", "name", "number")

    def __init__(self, index: int, number: int | None, name: Any, call_id: Any = None) -> None:
        self.index = index
        self.number = number
        self.name = name
        self.id = call_id
        self.id_text = _text(call_id)

    @property
    def key(self) -> Hashable:
        return ("function", str(self.name)) if self.number is None else self.id_text

    @property
    def position(self) -> str:
        place = "function_call" if self.number is None else f"tool_calls[{self.number}]"
        return f"messages[{self.index}].{place}"

    @property
    def form(self) -> dict[str, Any]:
        if self.number is None:
            return {"role": "function", "name": self.name}
        same = {} if self.id is None else {"tool_call_id": self.id}
        return {"role": "tool", **same}


def _is_in_order(messages: list[Any], mending: Mending) -> bool:
    """Tell whether each call has its result at once, in order, and no other result is there."""
    # The quick way, which most conversations take: results come right behind their turn in the
    # order of its calls, so `answered` says which call the next one has to be of.
    due: list[_Call] = []
    answered = 0
    for index, given in enumerate(messages):
        message = read_message(index, given, mending)
        if message is not None and message["role"] in RESULTS:
            if answered == len(due):
                return False
            call = due[answered]
            answered += 1
            if call.key != _key(message) or message.get("name") not in (None, call.name):
                return False
        elif message is None or answered < len(due):
            return False
        elif message["role"] == "assistant":
            due = _calls(index, message)
            answered = 0
            if len(due) > 1 and _shared_ids(due):
                return False
        elif due:
            due = []
            answered = 0
    return answered == len(due)


def _shared_ids(calls: list[_Call]) -> bool:
    ids = [call.id_text for call in calls if call.id_text is not None]
    return len(set(ids)) < len(ids)


def _mend(messages: list[Any], mending: Mending) -> None:
    kept = [read_message(index, message, mending) for index, message in enumerate(messages)]
    calls = [
        call
        for index, message in enumerate(kept)
        if message is not None and message["role"] == "assistant"
        for call in _calls(index, message)
    ]
    rounds = _rounds(kept)
    results = [
        (index, message)
        for index, message in enumerate(kept)
        if message is not None and message["role"] in RESULTS
    ]
    pairing = pair(
        (Standing(call.index, call.key, rounds[call.index]) for call in calls),
        (Standing(index, _key(message)) for index, message in results),
    )
    orphans = _take_by_name(calls, results, rounds, pairing, mending)
    pairing.orphans = orphans
    mending.drop_unpaired(pairing, [f"messages[{index}]" for index, _ in results], _ONE_EACH)
    answers: dict[int, list[dict[str, Any]]] = {}
    due: dict[int, list[int]] = {}
    for number, call in enumerate(calls):
        found = pairing.result_of.get(number)
        if found is None:
            remedy = "Send one result for each call, right after the turn that made it"
            mending.unanswered(call.position, call.name if call.id is None else call.id, remedy)
            result = {**call.form, "content": OUTCOME_UNKNOWN}
        else:
            index, result = results[found]
            due.setdefault(call.index, []).append(index)
            result = _named_right(index, result, call, mending)
        answers.setdefault(call.index, []).append(result)
    _places(due, kept, mending)
    _twice(calls, answers, kept, mending)
    for index, message in enumerate(kept):
        if message is not None and message["role"] not in RESULTS:
            mending.items.append(message)
            mending.items.extend(answers.get(index, ()))


def _rounds(kept: list[Any]) -> list[int]:
    """Say for each message where its round begins: one round may be split over several messages."""
    # Hosts split one turn of three calls into three messages, with the results behind the last: [0,
    # 1, 1, 1, 4, 5] says that messages 1 to 3 are one round, so that ids that come again in it are
    # doubles.
    begins: list[int] = []
    for index, message in enumerate(kept):
        is_turn = message is not None and message["role"] == "assistant"
        is_more = is_turn and index and kept[index - 1] is not None
        is_same = is_more and kept[index - 1]["role"] == "assistant"
        begins.append(begins[-1] if is_same else index)
    return begins


def _take_by_name(
    calls: list[_Call],
    results: list[tuple[int, dict[str, Any]]],
    rounds: list[int],
    pairing: Pairing,
    mending: Mending,
) -> list[int]:
    """Let results of the older form, which go by name, answer calls that have an id.

    Returns:
        The results that are left without a call.
    """
    # Only what is left over by now: where a call and a result share an id, no name is looked at.
    open_calls = [number for number in range(len(calls)) if number not in pairing.result_of]
    by_name = [n for n in pairing.orphans if results[n][1]["role"] == "function"]
    waiting = [calls[n] for n in open_calls]
    found = pair(
        (Standing(c.index, ("function", str(c.name)), rounds[c.index]) for c in waiting),
        (Standing(results[n][0], _key(results[n][1])) for n in by_name),
    )
    for place, at in found.call_of.items():
        number, call = by_name[place], calls[open_calls[at]]
        index, result = results[number]
        pairing.result_of[open_calls[at]] = number
        results[number] = (index, {**call.form, "content": result.get("content")})
        mending.note(
            f"messages[{index}].role",
            "result_of_older_form",
            f"the result goes by the name {shorten(call.name)}, its call by an id",
            "Send it with the role 'tool' and the id of the call",
            f"made it the result of the call {_named(call)}",
        )
    taken = {by_name[place] for place in found.call_of}
    return [number for number in pairing.orphans if number not in taken]


def _calls(index: int, message: Mapping[str, Any]) -> list[_Call]:
    found: list[_Call] = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        inner = call["custom" if call.get("type") == "custom" else "function"]
        found.append(_Call(index, number, inner["name"], call.get("id")))
    old = message.get("function_call")
    if old is not None:
        found.append(_Call(index, None, old["name"]))
    return found


def _key(message: Mapping[str, Any]) -> Hashable:
    if message["role"] == "function":
        return ("function", str(message.get("name")))
    return _text(message.get("tool_call_id"))


def _text(call_id: Any) -> str | None:
    # Hosts that send no id, or "", get none back: such calls and results meet by their order.
    return str(call_id) if call_id else None


def _named(call: _Call) -> str:
    return shorten(call.name if call.id is None else call.id)


def _named_right(
    index: int, result: dict[str, Any], call: _Call, mending: Mending
) -> dict[str, Any]:
    if result.get("name") in (None, call.name):
        return result
    mending.note(
        f"messages[{index}].name",
        "result_of_other_tool",
        f"the result names {shorten(result['name'])}, the call {shorten(call.name)}",
        "Send the name of the tool that was called, or none",
        "set the name of the tool that was called",
    )
    return {**result, "name": call.name}


def _places(due: Mapping[int, list[int]], kept: list[Any], mending: Mending) -> None:
    """Note each result that does not follow its turn at once, or not in the order of the calls."""
    for turn, indexes in due.items():
        end = turn + 1
        while end < len(kept) and (kept[end] is None or kept[end]["role"] in RESULTS):
            end += 1
        # With calls in message 2 and results in 4, 3 and 9, 4 and 3 are near: they come at once,
        # but in the wrong order, and 9 is elsewhere.
        near = [index for index in indexes if turn < index < end]
        for index in sorted(set(indexes) - set(near)):
            mending.note(
                f"messages[{index}]",
                "misplaced_result",
                f"the result belongs right after messages[{turn}], which made the call",
                "Send the results before anything else is said",
                f"moved the result to the turn in messages[{turn}]",
            )
        for index, right in zip(near, sorted(near), strict=True):
            if index != right:
                mending.out_of_order(f"messages[{index}]")


def _twice(
    calls: list[_Call],
    answers: Mapping[int, list[dict[str, Any]]],
    kept: list[Any],
    mending: Mending,
) -> None:
    """Give the second of two calls of one turn that share an id, and its result, a new id."""
    # Only within a turn: over turns hosts repeat ids, "call_0" in each, and take them back so.
    turns: dict[int, list[_Call]] = {}
    for call in calls:
        if call.number is not None:
            turns.setdefault(call.index, []).append(call)
    for index, called in turns.items():
        ids = [call.id_text for call in called]
        for number, made, _ in distinct_ids(ids, ids, str):
            mending.note(
                called[number].position,
                "duplicate_call_id",
                f"two calls of one turn share the id {ids[number]!r}",
                "Give each call an id of its own, and its result the same",
                f"gave the call and its result the id {made!r}",
            )
            kept[index]["tool_calls"][number]["id"] = made
            answers[index][number]["tool_call_id"] = made


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "content": text},
    mend=_mend,
    is_in_order=_is_in_order,
)
