"""The rules that OpenAI Responses sets for its input: finding breaches, and mending them.

Every call that the program answers has one output with its call id, after it; the outputs come in
the order of the calls. Reasoning is followed by what it led to. An item id stands once. Where the
conversation goes on from one that the provider keeps, an output may answer a call of that one.
(OpenAI API reference: "Create a model response", input; guides "Function calling" and "Reasoning
models".)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._json import copy_json, shorten
from ._mending import Mending
from ._pairing import Pairing, Standing, pair, unused_id
from ._reading import is_object
from ._violations import NOT_EXECUTED, Change, Violation, items_of, with_items

__all__ = ["check", "repair"]

# Which outputs answer which call; the first is what a repair sends. A search for tools that the
# program runs may be answered like a function. Other calls are the provider's own.
_ANSWERS: Mapping[str, tuple[str, ...]] = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "tool_search_call": ("function_call_output", "tool_search_output"),
}
_OUTPUTS = frozenset(output for outputs in _ANSWERS.values() for output in outputs)
_SAID_TO_MODEL = frozenset({"system", "developer", "user"})


def check(request: Any) -> list[Violation]:
    """Find what an input breaks of the provider's rules.

    Args:
        request: A request body, or its list of input items.

    Returns:
        Every violation, in the order of the items; none for a request that is well formed.

    Raises:
        TypeError: The request is neither.

    Example:
        >>> output = {"type": "function_call_output", "call_id": "c1", "output": "3"}
        >>> [violation.rule for violation in check([output])]
        ['orphan_result']
    """
    return _mend(request).violations


def repair(request: Any) -> tuple[Any, list[Change]]:
    """Mend an input so that `check` finds nothing.

    A call that nobody answered gets an output that says that it was not executed.

    Args:
        request: A request body, or its list of input items; it is not changed.

    Returns:
        A mended copy of the same shape, and what was changed.

    Raises:
        TypeError: The request is neither.

    Example:
        >>> call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
        >>> mended, changes = repair([call])
        >>> mended[1]["output"]
        'Not executed: the conversation holds no result for this call.'
    """
    mending = _mend(request)
    return with_items(request, "input", mending.items), mending.changes


class _Item:
    """An input item on its way through a repair, and where it stood."""

    __slots__ = ("fields", "index")

    def __init__(self, index: int, fields: dict[str, Any]) -> None:
        self.index = index
        self.fields = fields

    @property
    def kind(self) -> str:
        return str(self.fields.get("type") or "message")

    @property
    def key(self) -> str | None:
        call_id = self.fields.get("call_id")
        return str(call_id) if call_id else None

    @property
    def is_call(self) -> bool:
        # The provider answers its own search for tools.
        is_own = self.kind == "tool_search_call" and self.fields.get("execution") != "client"
        return self.kind in _ANSWERS and not is_own

    @property
    def is_result(self) -> bool:
        is_own = self.kind == "tool_search_output" and self.fields.get("execution") == "server"
        return self.kind in _OUTPUTS and not is_own

    @property
    def is_said_to_model(self) -> bool:
        return self.kind == "message" and self.fields.get("role") in _SAID_TO_MODEL


def _mend(request: Any) -> Mending:
    mending = Mending()
    items: list[_Item] = []
    for index, item in enumerate(items_of(request, "input")):
        if is_object(item):
            items.append(_Item(index, copy_json(item)))
        else:
            mending.note(
                f"input[{index}]",
                "not_an_item",
                f"expected an object, got {shorten(item)}",
                "Send only input items",
                "removed what is no item",
            )
    items = _once(items, mending)
    items = _led_somewhere(items, mending)
    mending.items = [item.fields for item in _answered(items, _goes_on(request, items), mending)]
    return mending


def _goes_on(request: Any, items: list[_Item]) -> bool:
    """Tell whether calls may stand where this input does not show them."""
    body: Mapping[str, Any] = request if is_object(request) else {}
    kept = any(body.get(key) is not None for key in ("previous_response_id", "conversation"))
    return kept or any(item.kind == "item_reference" for item in items)


def _once(items: list[_Item], mending: Mending) -> list[_Item]:
    seen: set[str] = set()
    kept: list[_Item] = []
    for item in items:
        item_id = item.fields.get("id")
        if not isinstance(item_id, str) or item_id not in seen or item.kind == "item_reference":
            if isinstance(item_id, str):
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


def _led_somewhere(items: list[_Item], mending: Mending) -> list[_Item]:
    """Leave out reasoning that nothing of the model follows."""
    kept: list[_Item] = []
    leads = False
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


def _answered(items: list[_Item], goes_on: bool, mending: Mending) -> list[_Item]:
    calls: list[_Item] = []
    results: list[_Item] = []
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
    gone: set[int] = set()
    for number in pairing.duplicates:
        gone.add(_drop(mending, results[number], "duplicate_result", "its call has one already"))
    remote: set[str | None] = set()
    for number in pairing.orphans:
        result = results[number]
        if not goes_on:
            gone.add(_drop(mending, result, "orphan_result", "it answers no call"))
        elif result.key in remote:
            gone.add(_drop(mending, result, "duplicate_result", "its call has one already"))
        remote.add(result.key)
    placed, due = _in_order(items, calls, results, pairing, gone, mending)
    answers = {id(calls[call]): results[number] for call, number in pairing.result_of.items()}
    for call, result in due:
        answers[id(call)] = result
        placed.insert(_place(placed, call, calls, results, pairing), result)
    _twice(placed, answers, mending)
    return placed


def _in_order(
    items: list[_Item],
    calls: list[_Item],
    results: list[_Item],
    pairing: Pairing,
    gone: set[int],
    mending: Mending,
) -> tuple[list[_Item], list[tuple[_Item, _Item]]]:
    """Put results where they belong; give those that have no place yet with their calls."""
    due: list[tuple[_Item, _Item]] = []
    rightly: list[tuple[int, _Item]] = []
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
    slots = sorted(result.index for _, result in rightly)
    instead: dict[int, _Item] = {}
    for slot, (_, result) in zip(slots, rightly, strict=True):
        instead[slot] = result
        if slot != result.index:
            mending.note(
                f"input[{result.index}]",
                "results_out_of_order",
                "the results are not in the order of their calls",
                "Send the results in the order of the calls",
                "put the result where its call stands in the order",
            )
    placed = [instead.get(item.index, item) for item in items if item.index not in gone]
    return placed, due


def _place(
    placed: list[_Item],
    call: _Item,
    calls: list[_Item],
    results: list[_Item],
    pairing: Pairing,
) -> int:
    """Find the place of a result: behind those of earlier calls, before those of later ones."""
    number_of = {id(results[result]): number for result, number in pairing.call_of.items()}
    own = calls.index(call)
    begin = next(at for at, item in enumerate(placed) if item is call) + 1
    end: int | None = None
    for at in range(begin, len(placed)):
        item = placed[at]
        of_call = number_of.get(id(item))
        if of_call is not None and of_call > own:
            return at if end is None else end
        if of_call is not None or (item.is_result and item.index < 0):
            end = None
        elif end is None and item.is_said_to_model:
            end = at
    return len(placed) if end is None else end


def _unanswered(call: _Item, mending: Mending) -> _Item:
    mending.note(
        f"input[{call.index}]",
        "call_without_result",
        f"the call {shorten(call.fields.get('call_id', call.fields.get('name')))} has no result",
        "Send one output for each call, with its call id",
        "added a result that says that the call was not executed",
    )
    same = {"call_id": call.fields["call_id"]} if "call_id" in call.fields else {}
    return _Item(-1, {"type": _ANSWERS[call.kind][0], **same, "output": NOT_EXECUTED})


def _of_right_type(call: _Item, result: _Item, mending: Mending) -> None:
    right = _ANSWERS[call.kind]
    if result.kind in right:
        return
    mending.note(
        f"input[{result.index}].type",
        "result_of_other_type",
        f"a {call.kind} is not answered by a {result.kind}",
        f"Send a {right[0]}",
        f"made it a {right[0]}",
    )
    output = result.fields.get("output", "")
    result.fields = {"type": right[0], "call_id": call.fields["call_id"], "output": output}


def _drop(mending: Mending, result: _Item, rule: str, why: str) -> int:
    mending.note(
        f"input[{result.index}]",
        rule,
        f"the result has no place: {why}",
        "Send exactly one output for each call, with its call id",
        f"removed the result, because {why}",
    )
    return result.index


def _twice(placed: list[_Item], answers: Mapping[int, _Item], mending: Mending) -> None:
    """Give a call that has the id of one that is still unanswered, and its result, a new id."""
    taken = [item.key for item in placed]
    waiting: set[str | None] = set()
    for item in placed:
        call_id = item.key
        if item.is_result:
            waiting.discard(call_id)
        if not item.is_call or call_id is None:
            continue
        if call_id in waiting:
            fresh = unused_id(call_id, taken)
            taken.append(fresh)
            mending.note(
                f"input[{item.index}].call_id",
                "duplicate_call_id",
                f"an unanswered call before it has the id {call_id!r} too",
                "Give each call an id of its own, and its result the same",
                f"gave the call and its result the id {fresh!r}",
            )
            item.fields["call_id"] = answers[id(item)].fields["call_id"] = call_id = fresh
        waiting.add(call_id)
