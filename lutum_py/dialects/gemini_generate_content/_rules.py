"""The rules that generateContent sets for a conversation: finding breaches, and repairing them.

Contents of one role that follow each other count as one turn. A turn with function calls is
followed at once by a turn of the user that begins with as many function responses, and a response
is an object. A call and its response meet by their id, or by name and order where there is none;
ours is the order of the calls. A conversation is repaired in one pass, which notes each breach as
it meets it; `check` reports the notes, `repair` keeps the outcome. (Gemini API: guide to function
calling, and what the API answers to requests that break it.)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any, Final

from ..._text.json import JsonObject, copy_json, is_mapping, is_object, is_sequence, shorten
from .._findings import NOT_SHOWN, OUTCOME_UNKNOWN
from .._repair import MAYBE_TEXT, Form, Pairing, Piece, Repairing, Spoken, note_places, read_spoken
from ._decode import FACTS

# Content without a role is the user's; `function` is an older word for who sends responses.
_ROLES = {"user": "user", None: "user", "function": "user", "model": "model"}
# The API takes both ways of writing a key.
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_PAIRED = frozenset((*_CALL, *_RESPONSE))
_MAYBE_OBJECT = (dict, NoneType)


class Part(Piece):
    """One part of a content."""

    __slots__ = ()

    said_at = "contents[%d].parts"

    def __init__(self, index: int, place: int | None, number: int, value: JsonObject) -> None:
        super().__init__(index, place, number, value)
        # The inner object itself and no copy, whichever way its key is written: what is repaired in
        # `call` is repaired in `value`, and that goes out.
        self.call = _inner(value, *_CALL)
        self.result = _inner(value, *_RESPONSE)

    @property
    def name(self) -> Any:
        """The name of the tool that is called, or that answers."""
        return (self.call or self.result or {}).get("name")

    @property
    def id(self) -> Any:
        """The id of the call that is made or answered, if there is one."""
        return (self.call or self.result or {}).get("id") or None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it, or the key of a call or a response and nothing that is one."""
        value = self.value
        for key in value:
            if key in _PAIRED and not is_mapping(value[key]):
                return True
        return not value

    def answer(self, call: Part) -> None:
        """Let a response have the id that its call has, or none, so that nobody has to guess."""
        fields = self.result or {}
        fields.pop("id", None)
        if call.id is not None:
            fields["id"] = call.id


def _inner(value: Mapping[str, object], key: str, other: str) -> JsonObject | None:
    found = value.get(key)
    if is_object(found):
        return found
    found = value.get(other)
    return found if is_object(found) else None


def read_contents(contents: list[Any], repairing: Repairing) -> list[Spoken[Part]]:
    """Read the contents of a request, without what says nothing, and number their turns."""
    pieces_of = partial(_parts, repairing)
    return read_spoken(contents, Part.said_at, _ROLES, pieces_of, repairing)


def _parts(
    repairing: Repairing, index: int, content: Mapping[str, object], role: str, number: int
) -> list[Part]:
    read: list[Part] = []
    parts = content.get("parts")
    # The API takes one part where a list belongs.
    listed = parts if is_sequence(parts) else [parts] if is_mapping(parts) else ()
    for place, value in enumerate(listed):
        part = None
        if is_mapping(value):
            part = Part(index, place, number + len(read), repairing.own(value))
            if part.call is not None and part.result is not None:
                _leave_one(part, role, repairing)
        if part is None or part.is_empty:
            repairing.note(
                f"contents[{index}].parts[{place}]",
                "empty_part",
                f"expected a part, got {shorten(value)}",
                "Send an object with `text`, or with another kind of data",
                "removed the part",
            )
        elif part.call is not None and role != "model":
            repairing.note(
                part.position,
                "misplaced_call",
                "a function call is in a content of the user",
                "Send function calls in contents of the model only",
                "removed the call",
            )
        else:
            if part.call is not None:
                _named(part, part.call, "functionCall", repairing)
                if not isinstance(part.call.get("args"), _MAYBE_OBJECT):
                    repairing.repair_object(part.call, "args", f"{part.position}.functionCall")
            if part.result is not None:
                _named(part, part.result, "functionResponse", repairing)
            read.append(part)
    return read


def _leave_one(part: Part, role: str, repairing: Repairing) -> None:
    kind, gone = ("call", _RESPONSE) if role == "model" else ("response", _CALL)
    repairing.note(
        part.position,
        "part_of_two_kinds",
        "the part is a function call and a function response at once",
        "Send one kind of data in a part",
        f"left the function {kind}, which is what the {role} may send",
    )
    for key in gone:
        part.value.pop(key, None)
    if role == "model":
        part.result = None
    else:
        part.call = None


def _named(part: Part, fields: JsonObject, kind: str, repairing: Repairing) -> None:
    if not repairing.takes(fields.get("name")):
        repairing.rename(fields, "name", f"{part.position}.{kind}.name")
    if not isinstance(fields.get("id"), MAYBE_TEXT):
        repairing.text_id(fields, "id", f"{part.position}.{kind}")


_AS_MANY: Final = "Send as many function responses as there are calls, right after them"


def _is_in_order(contents: list[Any], repairing: Repairing) -> bool:
    """Tell whether the responses to each turn stand at the head of the next, and no others."""
    due: list[JsonObject] = []
    answered = 0
    turn = -1
    spoken = read_contents(contents, repairing)
    for at, said in enumerate(spoken):
        calls = [part.call for part in said.pieces if part.call]
        if calls:
            # Where the model said something before it, they may have to be one content.
            if answered < len(due) or not at or spoken[at - 1].group == said.group:
                return False
            due, answered, turn = calls, 0, said.group
        for part in said.pieces:
            if part.result is not None:
                if answered == len(due) or said.group != turn + 1 or part.is_behind:
                    return False
                if not _is_answer(part.result, due[answered]):
                    return False
                answered += 1
    return answered == len(due)


def _is_answer(response: JsonObject, call: JsonObject) -> bool:
    return (
        response.get("name") == call.get("name")
        and (response.get("id") or None) == (call.get("id") or None)
        and isinstance(response.get("response"), dict)
    )


def _fix(contents: list[Any], repairing: Repairing) -> None:
    spoken = read_contents(contents, repairing)
    calls = [part for said in spoken for part in said.pieces if said.role == "model" and part.call]
    results = [part for said in spoken for part in said.pieces if part.result is not None]
    pairing = _paired(calls, results)
    answers = pairing.answers(calls, _AS_MANY, _outcome_unknown, repairing, fit=_same_name)
    touched = {group for group, each in answers.items() if note_places(group, each, repairing)}
    # Where one is moved, another without an id could be taken for it, also in a turn that is well.
    for call, result in chain.from_iterable(answers.values()) if touched else ():
        result.answer(call)
    for part in results:
        _object_only(part, repairing)
    _write(spoken, answers, touched, set(pairing.dropped), repairing)
    _begin(repairing)


def _paired(calls: list[Part], results: list[Part]) -> Pairing[Part]:
    """Find responses to calls, one kind of pair after the other."""
    # The surest first: by id; then calls without an id by the name of their tool, and with
    # responses of any id, which some clients make up; last what is left on both sides. In one round
    # by name, a response could take the call of another that names it by id.
    pairing: Pairing[Part] = Pairing()
    named = [call for call in calls if call.id is not None]
    ids = {call.id for call in named}
    others = [result for result in results if result.id not in ids]
    pairing.pair(named, (each for each in results if each.id in ids), lambda part: str(part.id))
    pairing.pair((call for call in calls if call.id is None), others, lambda part: str(part.name))
    still_open = [call for call in named if call not in pairing.result_of]
    left = [result for result in others if result in pairing.dropped and result.id is None]
    pairing.pair(still_open, left, lambda part: str(part.name))
    return pairing


def _object_only(part: Part, repairing: Repairing) -> None:
    fields = part.result or {}
    value = fields.get("response")
    if not isinstance(value, dict):
        repairing.note(
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
    repairing: Repairing,
) -> None:
    """Write the contents; responses to a turn with a breach go to the head of the turn after it."""
    # As on the wires of blocks: what is moved is passed over where it stands, and written down
    # after the last content of its turn.
    moved = dropped | {result for group in touched for _, result in answers[group]}
    # The API wants a call right after the user. So [says, says, calls] of the model becomes one
    # content once the call comes; until then nobody knows, and where the first that says something
    # was written is remembered, with its turn.
    started: tuple[int, int] | None = None
    ends = {said.group: said for said in spoken}
    for said in spoken:
        kept = [part for part in said.pieces if part not in moved]
        if kept:
            content = {key: value for key, value in said.message.items() if key != "parts"}
            content = {**copy_json(content), "parts": [part.value for part in kept]}
            if said.role != "model":
                started = None
            elif not any(part.call for part in kept):
                started = started or (len(repairing.items), said.group)
            elif started is not None:
                content = _joined(content, *started, said, repairing)
                started = None
            repairing.items.append(content)
        if said.group in touched and ends[said.group] is said:
            # In a content of their own: a content of responses holds nothing else.
            parts = [result.value for _, result in answers[said.group]]
            repairing.items.append({"role": "user", "parts": parts})
            started = None


def _joined(
    content: JsonObject, begin: int, group: int, said: Spoken[Part], repairing: Repairing
) -> JsonObject:
    """Take back what the model said before a content with calls, and give both as one."""
    before = repairing.items[begin:]
    del repairing.items[begin:]
    rule, what = "call_after_model", "joined it to what the model says before it"
    if said.group == group:
        repairing.note(
            f"contents[{said.index}]",
            rule,
            "a function call follows a content of the model that calls nothing",
            "Send what the model says and what it calls in one content",
            what,
        )
    else:
        # They stood well, before what was between them was removed.
        repairing.follow_up(f"contents[{said.index}]", rule, what)
    return {**before[0], "parts": [part for each in (*before, content) for part in each["parts"]]}


def _begin(repairing: Repairing) -> None:
    first: JsonObject = repairing.items[0] if repairing.items else {}
    parts: list[JsonObject] = first.get("parts", [])
    keys = {key for part in parts for key in part}
    if first.get("role") == "model" and keys & {"functionCall", "function_call"}:
        repairing.note(
            "contents[0]",
            "call_without_user",
            "the first content is a function call",
            "Begin with a content of the user",
            "put a content of the user before it that says that the beginning is missing",
        )
        repairing.items.insert(0, {"role": "user", "parts": [{"text": NOT_SHOWN}]})


def _outcome_unknown(repairing: Repairing, call: Part) -> Part:
    repairing.unanswered(call.position, call.name, _AS_MANY)
    result = {"name": call.name, "response": {"error": OUTCOME_UNKNOWN}}
    return call.beside({"functionResponse": result}, result)


def _same_name(repairing: Repairing, call: Part, result: Part) -> None:
    if result.name != call.name:
        repairing.repair_name(result.result or {}, call.name, result.position)


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "parts": [{"text": text}]},
    fix=_fix,
    is_in_order=_is_in_order,
    takes_one=True,
)
