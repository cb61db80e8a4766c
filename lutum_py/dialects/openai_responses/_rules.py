"""The rules that OpenAI Responses sets for its input: finding breaches, and mending them.

Every call that the program answers has one output with its call id, after it; the outputs come in
the order of the calls. Reasoning is followed by what it led to. An item id stands once. Where the
conversation goes on from one that the provider keeps, an output may answer a call of that one.
(OpenAI API reference: "Create a model response", input; guides "Function calling" and "Reasoning
models".)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import shorten
from .._findings import OUTCOME_UNKNOWN
from .._repair.conversation import Form
from .._repair.mending import Mending
from .._repair.pairing import Pairing, Standing, distinct_ids, pair
from .._wire.reading import caller_of
from ._facts import FACTS
from ._spoken import ANSWERS, Item, output_of, read_item, repeated_in

# With these the provider knows what was said before.
_KEPT = ("previous_response_id", "conversation")


def _is_in_order(given: list[Any], mending: Mending) -> bool:
    """Tell whether the results stand behind their calls in order, and nothing comes twice."""
    # The quick way for what is in order, in one pass. `calls` grows, and `answered` runs behind it:
    # results come in the order of the calls, so the next one must answer `calls[answered]`.
    ids: list[str] = []
    calls: list[Item] = []
    answered = 0
    is_led_up_to = False
    for item in _read(given, mending):
        if item.is_result:
            if answered == len(calls):
                return False
            call = calls[answered]
            answered += 1
            if call.key != item.key or item.kind not in ANSWERS[call.kind]:
                return False
            if "caller" in call.fields and not _says_caller(call, item):
                return False
        elif item.kind == "reasoning":
            is_led_up_to = True
        elif is_led_up_to and item.is_said_to_model:
            return False
        else:
            is_led_up_to = False
            if item.is_call:
                calls.append(item)
        item_id = item.fields.get("id")
        if isinstance(item_id, str) and item.kind != "item_reference":
            ids.append(item_id)
    keys = {call.key for call in calls}
    is_answered = answered == len(calls) == len(keys)
    is_answered = is_answered and all(key is None or FACTS.takes_id(key) for key in keys)
    return is_answered and not is_led_up_to and len(set(ids)) == len(ids)


def _read(given: list[Any], mending: Mending) -> list[Item]:
    read = (read_item(index, item, mending) for index, item in enumerate(given))
    return [item for item in read if item is not None]


def _mend(given: list[Any], mending: Mending) -> None:
    items = _read(given, mending)
    items = _once(items, mending)
    items = _led_somewhere(items, mending)
    # Calls may stand where this input does not show them.
    goes_on = any(mending.body.get(key) is not None for key in _KEPT) or any(
        item.kind == "item_reference" for item in items
    )
    mending.items = [item.fields for item in _answered(items, goes_on, mending)]


def _once(items: list[Item], mending: Mending) -> list[Item]:
    # An id that comes twice is mostly one response that was put in twice, so the second item goes.
    # A call or a result stays, without the id, for the other half of its pair counts on it.
    seen: set[str] = set()
    kept: list[Item] = []
    for item in items:
        item_id = item.fields.get("id")
        if not isinstance(item_id, str) or item.kind == "item_reference" or item_id not in seen:
            if isinstance(item_id, str) and item.kind != "item_reference":
                seen.add(item_id)
            kept.append(item)
            continue
        is_needed = item.is_call or item.is_result
        mending.note(
            f"input[{item.index}].id",
            "duplicate_item_id",
            f"an earlier item has the id {item_id!r} too",
            "Send each item of a response once",
            "removed the id" if is_needed else "removed the item",
        )
        if is_needed:
            del item.fields["id"]
            kept.append(item)
    return kept


def _led_somewhere(items: list[Item], mending: Mending) -> list[Item]:
    """Leave out reasoning that nothing of the model follows."""
    kept: list[Item] = []
    leads = False
    # From the end, because reasoning is judged by what follows it.
    for item in reversed(items):
        if item.kind != "reasoning":
            # A result may stand in a wrong place, from which it is moved later on.
            leads = leads if item.is_result else not item.is_said_to_model
        elif not leads:
            mending.note(
                f"input[{item.index}]",
                "reasoning_without_item",
                "the reasoning is not followed by the message or call that it led to",
                "Send the items of a response together and in their order",
                "removed the reasoning",
            )
            continue
        kept.append(item)
    return kept[::-1]


def _answered(items: list[Item], goes_on: bool, mending: Mending) -> list[Item]:
    calls: list[Item] = []
    results: list[Item] = []
    # There are no messages that hold calls together here. So a group, in which results are looked
    # for, is what stands between two results: call, call, result, result is group 0, the next call
    # 1.
    standings: list[Standing] = []
    group = 0
    after_result = False
    for item in items:
        if item.is_call:
            group += after_result
            after_result = False
            calls.append(item)
            standings.append(Standing(item.index, item.key, group))
        elif item.is_result:
            after_result = True
            results.append(item)
    pairing = pair(standings, (Standing(item.index, item.key) for item in results))
    if goes_on:  # of those that answer a call elsewhere, the first is kept
        elsewhere = list(pairing.orphans)
        pairing.orphans.clear()
        # Backward, so that of two results of one key the first is what stays in the dict.
        first = {results[number].key: number for number in reversed(elsewhere)}
        pairing.duplicates += (n for n in elsewhere if first[results[n].key] != n)
    remedy = "Send exactly one output for each call, with its call id"
    places = [f"input[{result.index}]" for result in results]
    dropped = mending.drop_unpaired(pairing, places, remedy)
    gone = {results[number].index for number in dropped}
    placed, due = _in_order(items, calls, results, pairing, gone, mending)
    answers = {id(calls[call]): results[number] for call, number in pairing.result_of.items()}
    answers.update((id(call), result) for call, result in due)
    groups = [standing.group for standing in standings]
    placed = _with_due(placed, due, calls, groups, results, pairing)
    _twice(placed, answers, mending)
    return placed


def _in_order(
    items: list[Item],
    calls: list[Item],
    results: list[Item],
    pairing: Pairing,
    gone: set[int],
    mending: Mending,
) -> tuple[list[Item], list[tuple[Item, Item]]]:
    """Put results where they belong; give those that have no place yet with their calls."""
    due: list[tuple[Item, Item]] = []
    rightly: list[tuple[int, Item]] = []
    for number, call in enumerate(calls):
        found = pairing.result_of.get(number)
        if found is None:
            due.append((call, _unanswered(call, mending)))
            continue
        result = results[found]
        _of_right_type(call, result, mending)
        if result.index > call.index:
            rightly.append((number, result))
            continue
        gone.add(result.index)
        due.append((call, result))
        mending.note(
            f"input[{result.index}]",
            "misplaced_result",
            f"the result stands before its call in input[{call.index}]",
            "Send each result after its call",
            "moved the result behind its call",
        )
    # Results in the wrong order change places among themselves: those of calls 0, 1, 2 that stand
    # at 7, 5, 9 are put at 5, 7, 9. So nothing else in the conversation moves.
    slots = sorted(result.index for _, result in rightly)
    instead: dict[int, Item] = {}
    for slot, (_, result) in zip(slots, rightly, strict=True):
        instead[slot] = result
        if slot != result.index:
            mending.out_of_order(f"input[{result.index}]")
    placed = [instead.get(item.index, item) for item in items if item.index not in gone]
    return placed, due


def _with_due(
    placed: list[Item],
    due: list[tuple[Item, Item]],
    calls: list[Item],
    groups: list[int],
    results: list[Item],
    pairing: Pairing,
) -> list[Item]:
    """Put in the results that have no place: behind those of earlier calls, before later ones.

    A result stands before what is said to the model next, and before the calls of the next round,
    where that does not part it from the results of earlier calls.
    """
    # A result goes behind its call and the results of earlier calls (`slot`), before the next
    # result that stands (`end`), and before somebody speaks to the model (`said_from`). The bounds
    # are worked out once, from the end: trying each place would be quadratic in long inputs.
    at_of = {id(item): at for at, item in enumerate(placed)}
    number_of = {id(call): number for number, call in enumerate(calls)}
    said_from = [len(placed)] * (len(placed) + 1)
    for at in reversed(range(len(placed))):
        said_from[at] = at if placed[at].is_said_to_model else said_from[at + 1]
    # Standing results are in the order of their calls by now.
    standing = [
        (number, at_of[id(results[found])])
        for number, found in sorted(pairing.result_of.items())
        if id(results[found]) in at_of
    ]
    next_round = [len(placed)] * len(calls)
    for number in reversed(range(len(calls) - 1)):
        is_last = groups[number + 1] != groups[number]
        next_round[number] = at_of[id(calls[number + 1])] if is_last else next_round[number + 1]
    slots: dict[int, list[Item]] = {}
    slot = passed = 0
    for call, result in due:
        while passed < len(standing) and standing[passed][0] < number_of[id(call)]:
            slot = max(slot, standing[passed][1] + 1)
            passed += 1
        end = standing[passed][1] if passed < len(standing) else len(placed)
        slot = max(slot, at_of[id(call)] + 1)
        bound = next_round[number_of[id(call)]]
        slot = min(said_from[slot], end, bound if bound >= slot else end)
        slots.setdefault(slot, []).append(result)
    return [
        each
        for at, item in enumerate([*placed, None])
        for each in (*slots.get(at, ()), item)
        if each is not None
    ]


def _unanswered(call: Item, mending: Mending) -> Item:
    mending.unanswered(
        f"input[{call.index}]",
        call.fields.get("call_id", call.fields.get("name")),
        "Send one output for each call, with its call id",
    )
    same = repeated_in(call.fields)
    return Item(-1, {"type": ANSWERS[call.kind][0], **same, "output": OUTCOME_UNKNOWN})


def _says_caller(call: Item, result: Item) -> bool:
    """Tell whether a result says who called, where that was a program of the provider's."""
    return caller_of(call.fields) in (None, caller_of(result.fields))


def _of_right_type(call: Item, result: Item, mending: Mending) -> None:
    right = ANSWERS[call.kind]
    if result.kind in right:
        if not _says_caller(call, result):
            mending.note(
                f"input[{result.index}].caller",
                "result_for_other_caller",
                f"it is not the caller of input[{call.index}], the call",
                "Repeat the `caller` of the call in its output",
                "put the caller of the call there",
            )
            result.fields.pop("caller", None)
            result.fields.update(repeated_in(call.fields))
        return
    mending.note(
        f"input[{result.index}].type",
        "result_of_other_type",
        f"a {call.kind} is not answered by a {result.kind}",
        f"Send a {right[0]}",
        f"made it a {right[0]}",
    )
    output = output_of(result.fields)
    same = repeated_in(call.fields)
    result.become({"type": right[0], **same, "output": output})


def _twice(placed: list[Item], answers: Mapping[int, Item], mending: Mending) -> None:
    """Give a call whose id an earlier one has, or that is too long, and its result, a new id."""
    calls = [item for item in placed if item.is_call]
    ids = [item.key for item in calls]
    taken = (item.key for item in placed)
    for number, made, is_long in distinct_ids(ids, taken, FACTS.fitting_id):
        item = calls[number]
        shown = shorten(ids[number])
        mending.note(
            f"input[{item.index}].call_id",
            "invalid_call_id" if is_long else "duplicate_call_id",
            f"the id {shown} is too long"
            if is_long
            else f"a call before it has the id {shown} too",
            "Give each call an id of its own of at most 64 characters, and its result the same",
            f"gave the call and its result the id {made!r}",
        )
        item.fields["call_id"] = answers[id(item)].fields["call_id"] = made


FORM: Final = Form(
    facts=FACTS,
    said=lambda text: {"role": "user", "content": text},
    mend=_mend,
    is_in_order=_is_in_order,
    takes_text=True,
    elsewhere=(*_KEPT, "prompt"),
)
