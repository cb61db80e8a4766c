"""The rules that OpenAI Responses sets for its input: finding breaches, and repairing them.

Every call that the program answers has one output with its call id, after it; the outputs come in
the order of the calls. Reasoning is followed by what it led to. An item id stands once. If the
conversation goes on from one that the provider keeps, an output may answer a call of that one.
(OpenAI API reference: "Create a model response", input; guides "Function calling" and "Reasoning
models".)
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import Final

from ..._text.json import JsonObject, copy_json, is_mapping, is_sequence, shorten
from .._findings import OUTCOME_UNKNOWN
from .._reading import DUMP, caller_of
from .._repair import MAYBE_TEXT, Form, Pairing, Piece, Repairing, distinct_ids, text_of
from ._decode import (
    ANSWERS,
    CALLS,
    FACTS,
    OUTPUTS,
    PROGRAM_CALLS,
    REQUIRED,
    SEARCH_CALL,
    SEARCH_OUTPUT,
    answer_of,
    is_id_refused,
    is_run_by_provider,
    made_answer,
    repeated_in,
    unanswered,
)

_SEARCHES: Final = frozenset({SEARCH_CALL, SEARCH_OUTPUT})
_WITH_OUTPUT: Final = OUTPUTS - _SEARCHES
_SAID_TO_MODEL: Final = frozenset({"system", "developer", "user"})
_ROLES: Final = _SAID_TO_MODEL | {"assistant"}


class Item(Piece):
    """An input item on its way through a repair, and where it stood.

    Attributes:
        kind: Its type; an item without one is a message, or refers to an item by its id alone.
    """

    __slots__ = ("kind",)

    def __init__(self, number: int, value: JsonObject) -> None:
        self.number = number
        self.become(value)

    def become(self, value: JsonObject) -> None:
        """Let it have other fields."""
        self.value = value
        kind = value.get("type")
        if kind:
            kind = kind if kind.__class__ is str else str(kind)
        else:
            # {"id": "msg_1"} alone is the API's short form of a reference to an item that it keeps.
            refers = value.get("id") and not value.keys() & {"role", "content"}
            kind = "item_reference" if refers else "message"
        self.kind: str = kind
        # Worked out once, and again by `become`: whether an item is a call or its answer is asked
        # many times on the way through a repair, and only here is it decided.
        told = None if kind in _SEARCHES and is_run_by_provider(value) else value
        self.call = told if kind in ANSWERS else None
        self.result = told if kind in OUTPUTS else None

    @property
    def position(self) -> str:
        """Where it stands, as in `input[1]`."""
        return f"input[{self.number}]"

    @property
    def key(self) -> str | None:
        """The id of the call that it is or answers."""
        call_id = self.value.get("call_id")
        return call_id if isinstance(call_id, str) and call_id else None

    @property
    def is_said_to_model(self) -> bool:
        """Whether it is a message that is not the model's own."""
        return self.kind == "message" and self.value.get("role") in _SAID_TO_MODEL


def read_item(index: int, given: object, repairing: Repairing) -> Item | None:
    """Read an item, and fix it as far as that needs no other; None if it is not one.

    Args:
        index: Its number in the input.
        given: The item.
        repairing: Takes a note of each breach.
    """
    if not is_mapping(given) or not isinstance(given.get("type"), MAYBE_TEXT):
        repairing.note(
            f"input[{index}]",
            "not_an_item",
            f"expected an object with a type, got {shorten(given)}",
            "Send only input items" if is_mapping(given) else DUMP,
            "removed what is not an item",
        )
        return None
    item = Item(index, repairing.own(given))
    fields, kind = item.value, item.kind
    if kind == "message":
        role = fields.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            repairing.drop_unknown(f"input[{index}]", given, _ROLES)
            return None
        if not _is_said(fields.get("content")):
            _let_say(fields, "content", f"input[{index}]", repairing)
        return item
    if kind != "item_reference":
        _fields(fields, kind, f"input[{index}]", repairing)
    if (item.call or item.result) and not isinstance(fields.get("call_id"), MAYBE_TEXT):
        repairing.text_id(fields, "call_id", f"input[{index}]")
    if kind in CALLS and not repairing.is_well_written(fields, CALLS[kind]):
        repairing.repair_call(fields, CALLS[kind], f"input[{index}]")
    if kind in _WITH_OUTPUT and not _is_said(fields.get("output")):
        _let_say(fields, "output", f"input[{index}]", repairing)
    return item


def _fields(fields: JsonObject, kind: str, position: str, repairing: Repairing) -> None:
    """Let an item have the fields that requests have, which are not those of responses."""
    item_id = fields.get("id")
    if isinstance(item_id, str) and is_id_refused(item_id):
        repairing.note(
            f"{position}.id",
            "invalid_item_id",
            f"the provider does not take {item_id!r} as the id of an item",
            "Send the id that the item came with, which is not that of its call, or none",
            "removed the id",
        )
        del fields["id"]
    if "created_by" in fields:
        remedy = "Leave `created_by` out"
        problem = "requests have no field that says who created an item"
        repairing.note(f"{position}.created_by", "response_field", problem, remedy, "removed it")
        del fields["created_by"]
    for key, empty in REQUIRED.get(kind, {}).items():
        if key not in fields or (fields[key] is None and empty is not None):
            repairing.note(
                f"{position}.{key}",
                "missing_field",
                f"a {kind} needs `{key}`, if only empty",
                f"Send `{key}` as it came",
                "put the empty one there",
            )
            fields[key] = copy_json(empty)


def _is_said(content: object) -> bool:
    """Tell text, or a list of parts."""
    return isinstance(content, str) or (is_sequence(content) and all(map(is_mapping, content)))


_SAY: Final = {
    "content": ("message", "Send what is said, or leave the message out"),
    "output": ("result", 'Send text; `""` if there is nothing to say'),
}


def _let_say(fields: JsonObject, key: str, position: str, repairing: Repairing) -> None:
    """Give a message or result text where it has none, or what is not a list of parts."""
    said, (word, remedy) = fields.get(key), _SAY[key]
    repairing.note(
        f"{position}.{key}",
        f"{word}_without_content" if said is None else "invalid_content",
        f"expected text or a list of parts, got {shorten(said)}",
        remedy,
        "made text of it",
    )
    fields[key] = text_of(said)


# With these the provider knows what was said before.
_KEPT = ("previous_response_id", "conversation")


def _is_in_order(given: list[object], repairing: Repairing) -> bool:
    """Tell whether the results stand after their calls in order, and nothing comes twice."""
    # The quick way for what is in order, in one pass. `calls` grows, and `answered` runs after it:
    # results come in the order of the calls, so the next one must answer `calls[answered]`.
    ids: list[str] = []
    calls: list[Item] = []
    answered = 0
    is_led_up_to = False
    items = _read(given, repairing)
    if unanswered(item.value for item in items):
        return False
    for item in items:
        if item.result:
            if answered == len(calls):
                return False
            call = calls[answered]
            answered += 1
            if call.key != item.key or item.kind not in ANSWERS[call.kind]:
                return False
            if "caller" in call.value and not _says_caller(call, item):
                return False
        elif item.kind == "reasoning":
            is_led_up_to = True
        elif is_led_up_to and item.is_said_to_model:
            return False
        else:
            is_led_up_to = False
            if item.call:
                calls.append(item)
        item_id = item.value.get("id")
        if isinstance(item_id, str) and item.kind != "item_reference":
            ids.append(item_id)
    keys = {call.key for call in calls}
    is_answered = answered == len(calls) == len(keys)
    is_taken = all(map(FACTS.call_ids.fullmatch, filter(None, keys)))
    return is_answered and is_taken and not is_led_up_to and len(set(ids)) == len(ids)


def _read(given: list[object], repairing: Repairing) -> list[Item]:
    read = (read_item(index, item, repairing) for index, item in enumerate(given))
    return [item for item in read if item is not None]


def _fix(given: list[object], repairing: Repairing) -> None:
    items = _with_answers(_read(given, repairing), repairing)
    items = _led_somewhere(_once(items, repairing), repairing)
    calls, results = _calls_and_results(items)
    pairing: Pairing[Item] = Pairing()
    pairing.pair(calls, results, attrgetter("key"))
    # Calls may stand where this input does not show them.
    if any(repairing.body.get(key) is not None for key in _KEPT) or any(
        item.kind == "item_reference" for item in items
    ):
        _answer_elsewhere(pairing)
    remedy = "Send exactly one output for each call, with its call id"
    answers = pairing.answers(calls, remedy, _unanswered, repairing, fit=_of_right_type)
    answered = [each for group in answers.values() for each in group]
    placed = _placed(items, answered, set(pairing.dropped), repairing)
    taken = (item.key for item in placed)
    distinct_ids(answered, ("call_id", "call_id"), repairing, taken=taken, at=".call_id")
    repairing.items = [item.value for item in placed]


def _with_answers(items: list[Item], repairing: Repairing) -> list[Item]:
    """Answer the calls of the program that are no functions, where nobody did."""
    places = unanswered(item.value for item in items)
    answers: dict[int, list[Item]] = {}
    for place in places:
        item = items[place]
        made, is_known = made_answer(item.value), item.kind in PROGRAM_CALLS
        what = "added an answer that says that nobody answered"
        if made is None:
            what = "removed the call, because its answer cannot be made up"
            what = what if is_known else "left the call, because nobody knows what answers it"
        repairing.note(
            item.position,
            "call_without_result" if is_known else "unknown_call",
            f"the {item.kind} has no answer",
            f"Send a {answer_of(item.kind)} for it",
            what,
            is_repaired=is_known,
        )
        answers[place] = [item, Item(-1, made)] if made is not None else [] if is_known else [item]
    if not answers:
        return items
    return [each for at, item in enumerate(items) for each in answers.get(at, (item,))]


def _once(items: list[Item], repairing: Repairing) -> list[Item]:
    # An id that comes twice is mostly one response that was put in twice, so the second item goes.
    # A call or a result stays, without the id, for the other half of its pair counts on it.
    seen: set[str] = set()
    kept: list[Item] = []
    for item in items:
        item_id = item.value.get("id")
        if isinstance(item_id, str) and item.kind != "item_reference":
            if item_id in seen:
                is_needed = item.call is not None or item.result is not None
                repairing.note(
                    f"{item.position}.id",
                    "duplicate_item_id",
                    f"an earlier item has the id {item_id!r} too",
                    "Send each item of a response once",
                    "removed the id" if is_needed else "removed the item",
                )
                if not is_needed:
                    continue
                del item.value["id"]
            seen.add(item_id)
        kept.append(item)
    return kept


def _led_somewhere(items: list[Item], repairing: Repairing) -> list[Item]:
    """Leave out reasoning that nothing of the model follows."""
    kept: list[Item] = []
    leads = False
    # From the end, because reasoning is judged by what follows it.
    for item in reversed(items):
        if item.kind != "reasoning":
            # A result may stand in a wrong place, from which it is moved later on.
            leads = leads if item.result else not item.is_said_to_model
        elif not leads:
            repairing.note(
                item.position,
                "reasoning_without_item",
                "the reasoning is not followed by the message or call that it led to",
                "Send the items of a response together and in their order",
                "removed the reasoning",
            )
            continue
        kept.append(item)
    return kept[::-1]


def _calls_and_results(items: list[Item]) -> tuple[list[Item], list[Item]]:
    calls: list[Item] = []
    results: list[Item] = []
    # There are no messages that hold calls together here. So a group, in which results are looked
    # for, is what is between two results: call, call, result, result is group 0, the next call
    # 1.
    group = 0
    after_result = False
    for item in items:
        if item.call is not None:
            group += after_result
            after_result = False
            item.group = group
            calls.append(item)
        elif item.result is not None:
            after_result = True
            results.append(item)
    return calls, results


def _answer_elsewhere(pairing: Pairing[Item]) -> None:
    """Keep the results without a call, of which one of each key may answer a call elsewhere."""
    known: set[str | None] = set()
    for result, rule in [*pairing.dropped.items()]:
        if rule == "orphan_result":
            if result.key in known:
                pairing.dropped[result] = "duplicate_result"
            else:
                del pairing.dropped[result]
            known.add(result.key)


def _placed(
    items: list[Item], answered: list[tuple[Item, Item]], gone: set[Item], repairing: Repairing
) -> list[Item]:
    """Put results where they belong."""
    due: dict[Item, Item] = {}
    rightly: list[Item] = []
    for call, result in answered:
        if result.number > call.number:
            rightly.append(result)
            continue
        gone.add(result)
        due[call] = result
        if not result.made:
            repairing.note(
                result.position,
                "misplaced_result",
                f"the result is before its call in {call.position}",
                "Send each result after its call",
                "moved the result after its call",
            )
    # Results in the wrong order change places among themselves: those of calls 0, 1, 2 that stand
    # at 7, 5, 9 are put at 5, 7, 9. So nothing else in the conversation moves.
    instead = dict(zip(sorted(result.number for result in rightly), rightly, strict=True))
    for slot, result in instead.items():
        if slot != result.number:
            repairing.out_of_order(result.position)
    placed = [instead.get(item.number, item) for item in items if item not in gone]
    return _with_due(placed, answered, due)


def _with_due(
    placed: list[Item], answered: list[tuple[Item, Item]], due: dict[Item, Item]
) -> list[Item]:
    """Put in the results that have no place: after those of earlier calls, before later ones.

    A result is before what is said to the model next, and before the calls of the next round,
    if that does not part it from the results of earlier calls.
    """
    number_of = {call: number for number, (call, _) in enumerate(answered)}
    # The results that stand, in the order of their calls by now, by the numbers of these.
    standing = deque(number_of[call] for call, _ in answered if call not in due)
    stands = {result for call, result in answered if call not in due}
    waiting: deque[Item] = deque()
    written: list[Item] = []
    group = 0
    # One pass with a queue: the results of calls that were met wait in it for the latest place that
    # they may have. To try each place would be quadratic in long inputs.
    for item in [*placed, None]:
        is_end = item is None or item in stands or item.is_said_to_model
        is_next_round = item is not None and item.call is not None and item.group != group
        bound = standing[0] if standing else len(answered)
        while (
            waiting
            and (is_end or (is_next_round and waiting[0].group == group))
            and number_of[waiting[0]] < bound
        ):
            written.append(due[waiting.popleft()])
        if item is None:
            continue
        written.append(item)
        if item in stands:
            standing.popleft()
        elif item.call is not None:
            group = item.group
            if item in due:
                waiting.append(item)
    return written


def _unanswered(repairing: Repairing, call: Item) -> Item:
    shown = call.value.get("call_id", call.value.get("name"))
    remedy = "Send one output for each call, with its call id"
    repairing.unanswered(call.position, shown, remedy)
    same = repeated_in(call.value)
    return Item(-1, {"type": ANSWERS[call.kind][0], **same, "output": OUTCOME_UNKNOWN})


def _says_caller(call: Item, result: Item) -> bool:
    """Tell whether a result says who called, if that was a program of the provider's."""
    return caller_of(call.value) in (None, caller_of(result.value))


def _of_right_type(repairing: Repairing, call: Item, result: Item) -> None:
    right = ANSWERS[call.kind]
    if result.kind in right:
        if not _says_caller(call, result):
            repairing.note(
                f"{result.position}.caller",
                "result_for_other_caller",
                f"it is not the caller of {call.position}, the call",
                "Repeat the `caller` of the call in its output",
                "put the caller of the call there",
            )
            result.value.pop("caller", None)
            result.value.update(repeated_in(call.value))
        return
    repairing.note(
        f"{result.position}.type",
        "result_of_other_type",
        f"a {call.kind} is not answered by a {result.kind}",
        f"Send a {right[0]}",
        f"made it a {right[0]}",
    )
    output = result.value.get("output")
    said = output if _is_said(output) else text_of(output)
    result.become({"type": right[0], **repeated_in(call.value), "output": said})


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "content": text},
    fix=_fix,
    is_in_order=_is_in_order,
    takes_text=True,
    elsewhere=(*_KEPT, "prompt"),
)
