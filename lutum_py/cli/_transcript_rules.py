"""Find everything that is wrong with a saved transcript, and fix what can be repaired.

Loading a transcript stops at the first fault; here every fault is found, on the JSON as it was
saved, so that what is not concerned stays as it is.
"""

from __future__ import annotations

from typing import Any, Final

from .._text.json import copy_json, is_array, shorten
from .._transcript.check import Checked, CheckedCall, TranscriptFault, checked
from .._transcript.request import TranscriptItem
from .._transcript.result import ToolResult, dump_result, make_result
from .._transcript.saved import TRANSCRIPT, Saved
from .._transcript.transcript_json import load_item
from ..dialects import Change, Violation
from ..errors import TranscriptError

_UNKNOWN: Final = '"The transcript holds no result for this call; whether it ran is not known."'


def examine_transcript(value: Any) -> tuple[list[TranscriptItem | None], list[Violation]]:
    """Read what can be read of a saved transcript, and find what is wrong with it.

    Args:
        value: The JSON that `transcript.dump_json()` gave.

    Returns:
        The items, None for each that is damaged, and every violation, in their order.

    Raises:
        TranscriptError: It has another version, or has no items.
    """
    items, found = _examine(value)
    faults = [
        Violation(each.position, each.rule, each.problem, each.remedy) for each in found.faults
    ]
    return [None if isinstance(item, TranscriptError) else item for item in items], faults


def repair_transcript(value: Any) -> tuple[Any, list[Change]]:
    """Fix a saved transcript: each call gets exactly one result, in order.

    A call without a result gets one of the status `indeterminate`. A damaged item, and two calls of
    one turn that share an id, are left as they are.

    Args:
        value: The JSON that `transcript.dump_json()` gave; it is not changed.

    Returns:
        The repaired copy, and what was changed.

    Raises:
        TranscriptError: It has another version, or has no items.
    """
    items, found = _examine(value)
    # Results are put together again after the turn of their calls; every other item stays where it
    # is, as the very JSON that was read.
    loaded, answers = value["items"], dict[int, list[Any]]()
    for call in found.calls:
        answers.setdefault(call.turn, []).append(_answer(call, loaded))
    repaired: list[Any] = []
    for at, item in enumerate(items):
        if not isinstance(item, ToolResult):
            repaired += [loaded[at], *answers.get(at, ())]
    changes = [
        Change(fault.position, fault.rule, fault.fix)
        for fault in found.faults
        if fault.fix is not None
    ]
    return {**value, "items": copy_json(repaired)}, changes


def _examine(value: Any) -> tuple[list[Any], Checked]:
    version, items = value.get("version"), value.get("items")
    if type(version) is not int or version != TRANSCRIPT.version:
        raise TranscriptError(
            f"The transcript has format version {shorten(version)}; this release reads "
            f"{TRANSCRIPT.version}. Use the release that saved it."
        )
    if not is_array(items):
        raise TranscriptError(
            "The transcript has no list of `items`. Is it the text of something else?"
        )
    loaded = [_load(entry, at) for at, entry in enumerate(items)]
    found = checked(loaded)
    for number, fault in enumerate(found.faults):
        if isinstance(loaded[fault.at], TranscriptError):
            found.faults[number] = TranscriptFault(
                fault.at,
                fault.position,
                "damaged_item",
                str(loaded[fault.at]).removesuffix("."),
                "Correct the item by hand, or take the transcript from where it was saved",
            )
    return loaded, found


def _load(entry: Any, at: int) -> Any:
    """Return an item, or the error that says why it is not one."""
    try:
        return load_item(Saved(entry, f"items[{at}]", TranscriptError))
    except TranscriptError as error:
        return error


def _answer(call: CheckedCall, items: list[Any]) -> Any:
    """Return the result of a call as it is to be saved."""
    metadata = call.metadata
    if call.result is not None:
        return {**items[call.result], "name": metadata.name, "arguments": metadata.arguments}
    return dump_result(make_result(metadata, _UNKNOWN, "indeterminate"))
