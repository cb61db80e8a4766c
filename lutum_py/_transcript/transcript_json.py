"""The stored form of a transcript: `{"format": ..., "version": ..., "items": [...]}`.

The form of a message or a result is beside it. That of a turn is here, and whether it says what its
payload says: it may have been edited. A payload is what goes back to its provider, and results
answer the calls of the turn. Where the two differ, the program and the provider would go on in two
conversations.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from .._text.json import JsonObject, is_object
from ..errors import DialectError, TranscriptError
from .assistant import (
    USAGE,
    AssistantItem,
    AssistantTurn,
    CutOff,
    ReasoningItem,
    RefusalItem,
    ServerToolItem,
    TextItem,
    ToolCallItem,
    ToolMetadata,
    Usage,
    contradiction,
    dialect_named,
    dump_metadata,
    load_metadata,
)
from .message import Message, dump_message, load_message
from .request import TranscriptItem
from .result import ToolResult, dump_result, load_result, make_result
from .saved import LIST, TRANSCRIPT, Saved, dump_saved, open_saved, saved_in

if TYPE_CHECKING:
    from .check import TranscriptFault

_counts_of = attrgetter(*USAGE)


def dump_transcript(items: Iterable[TranscriptItem]) -> str:
    """Encode items, with the version of the format."""
    data: JsonObject = {"format": TRANSCRIPT.name, "version": TRANSCRIPT.version}
    data["items"] = [_dump_item(item) for item in items]
    return dump_saved(data, TranscriptError, "The transcript")


def load_transcript(text: str | bytes) -> list[TranscriptItem]:
    """Read what `dump_transcript` gave, and refuse what would be invalid."""
    from .check import checked, is_whole  # only where something is loaded

    saved = open_saved(text, TRANSCRIPT)
    items: list[TranscriptItem] = []
    # The calls of the last turn, the next one to be answered at the end: `pop` takes it off in one
    # step.
    waiting: list[ToolMetadata] = []
    for entry in saved.each("items"):
        item = load_item(entry, waiting.pop() if waiting else None)
        items.append(item)
        if isinstance(item, AssistantTurn):
            waiting = [*reversed(item.tool_calls)]
    # An invalid transcript would be refused by a provider at the next request, with a message about
    # a position in a body. Here the place in the text is known, and what to do.
    if not is_whole(items):
        faults = checked(items).faults
        first, more = faults[0], len(faults) - 1
        others = f" ({more} more of its items {'is' if more == 1 else 'are'} wrong)" if more else ""
        raise TranscriptError(
            f"This transcript would be invalid: {first.position}: {first.problem}{others}. "
            f"A provider would refuse it. {first.remedy}; `lutum repair` does what can be done."
        )
    return items


def _dump_item(item: TranscriptItem) -> JsonObject:
    if isinstance(item, Message):
        return dump_message(item)
    return dump_result(item) if isinstance(item, ToolResult) else dump_turn(item)


def load_item(saved: Saved, call: ToolMetadata | None = None) -> TranscriptItem:
    """Read an item of any kind; with the call that has to be answered next, if there is one."""
    kind = saved.data.get("type")
    if kind == "tool_result":
        return load_result(saved, call)
    if kind == "assistant":
        return load_turn(saved)
    if kind == "message":
        return load_message(saved)
    kind = saved.get("type", str)  # which says so where it is not text
    raise saved.wrong("type", f"{kind!r} is none of message, assistant, tool_result")


# What is wrong with a saved transcript. Loading one stops at the first fault; here every fault is
# found, on the JSON as it was saved, so that what is not concerned stays as it is.

_UNKNOWN: Final = '"The transcript holds no result for this call; whether it ran is not known."'


def examine(value: object) -> tuple[list[TranscriptItem | None], list[TranscriptFault]]:
    """Read what can be read of a saved transcript, and find all that is wrong with it.

    Args:
        value: The JSON that `transcript.dump_json()` gave, parsed.

    Returns:
        The items, None for each that is damaged, and every fault, in their order.

    Raises:
        TranscriptError: It is not a saved transcript, or one of another version.

    Example:
        >>> from lutum_py.saved import examine
        >>> value = {"format": "lutum_py.transcript", "version": 1, "items": [3]}
        >>> items, faults = examine(value)
        >>> items, [fault.rule for fault in faults]
        ([None], ['damaged_item'])
    """
    from .check import checked

    _, loaded = _loaded(value)
    read = [None if isinstance(item, TranscriptError) else item for item in loaded]
    return read, checked(loaded).faults


def repair(value: object) -> tuple[dict[str, Any], list[TranscriptFault]]:
    """Fix a saved transcript: each call gets exactly one result, in order.

    A call without a result gets one of the status `indeterminate`. A damaged item, and two calls of
    one turn that share an id, are left as they are.

    Args:
        value: The JSON that `transcript.dump_json()` gave, parsed; it is not changed.

    Returns:
        The repaired copy, and the faults that were repaired.

    Raises:
        TranscriptError: It is not a saved transcript, or one of another version.

    Example:
        >>> import json
        >>> from lutum_py import Transcript
        >>> from lutum_py.saved import repair
        >>> repaired, faults = repair(json.loads(Transcript().dump_json()))
        >>> repaired["items"], faults
        ([], [])
    """
    from .check import checked

    saved, loaded = _loaded(value)
    entries, found = saved["items"], checked(loaded)
    # Results are put together again after the turn of their calls; every other item stays where it
    # is, as the very JSON that was read.
    results: dict[int, list[JsonObject]] = {}
    for call in found.calls:
        metadata = call.metadata
        if call.result is None:
            result = dump_result(make_result(metadata, _UNKNOWN, "indeterminate"))
        else:
            result = {**entries[call.result], "name": metadata.name}
            result["arguments"] = metadata.arguments
        results.setdefault(call.turn, []).append(result)
    repaired: list[object] = []
    for at, item in enumerate(loaded):
        if not isinstance(item, ToolResult):
            repaired += [entries[at], *results.get(at, ())]
    return {**saved, "items": repaired}, [each for each in found.faults if each.fix is not None]


def _loaded(value: object) -> tuple[JsonObject, list[TranscriptItem | TranscriptError]]:
    """Load each item of a transcript, or put the error that reading it raised in its place."""
    saved = saved_in(value, TRANSCRIPT)
    entries = saved.get("items", LIST)
    loaded: list[TranscriptItem | TranscriptError] = []
    for at, entry in enumerate(entries):
        try:
            loaded.append(load_item(Saved(entry, f"items[{at}]", TranscriptError)))
        except TranscriptError as error:
            loaded.append(error)
    return saved.data, loaded


# A turn.

_WITH_TEXT: dict[str, type[TextItem | ReasoningItem | RefusalItem]] = {
    "text": TextItem,
    "reasoning": ReasoningItem,
    "refusal": RefusalItem,
}
_KIND_OF = {kind: name for name, kind in _WITH_TEXT.items()}


def dump_turn(turn: AssistantTurn) -> JsonObject:
    """Return a turn as plain data."""
    usage = turn.usage
    data: JsonObject = {
        "type": "assistant",
        "items": [_dump_part(part) for part in turn.items],
        "finish_reason": turn.finish_reason,
        "usage": None if usage is None else dict(zip(USAGE, _counts_of(usage), strict=True)),
        "model": turn.model,
        "request_id": turn.request_id,
        "dialect": turn.dialect,
        "payload": turn.payload,
    }
    if turn.cut_off is not None:
        data["cut_off"] = turn.cut_off
    return data


def _dump_part(part: AssistantItem) -> JsonObject:
    if isinstance(part, ToolCallItem):
        data: JsonObject = {"type": "tool_call", **dump_metadata(part.metadata)}
        if part.caller is not None:
            data["caller"] = part.caller
        return data
    if isinstance(part, ServerToolItem):
        return {"type": "server_tool", "kind": part.kind, "payload": dict(part.payload)}
    return {"type": _KIND_OF[type(part)], "text": part.text}


def load_turn(saved: Saved) -> AssistantTurn:
    """Read what `dump_turn` gave, and refuse a turn that contradicts its payload."""
    dialect = saved.get("dialect", str, None)
    payload = saved.data.get("payload")
    # What counts is the payload, since that is what goes back. If the saved turn says anything
    # else, somebody has edited one of the two. A turn made by hand, or by a dialect of your own,
    # goes out in the neutral form, and has no second half that could differ.
    said: AssistantTurn | None = None
    if (module := dialect_named(dialect)) is not None and is_object(payload):
        try:
            said = module.DIALECT.decode_saved(payload)
        except DialectError as error:
            why = f"it is not a response of the turn's dialect ({error})"
            raise saved.wrong("payload", why) from None
    # Most turns were made of their payload, which makes the same turn today: then that is it.
    if said is not None and dump_turn(said) == saved.data:
        return said
    usage = saved.inner_or_none("usage")
    turn = AssistantTurn(
        items=[_load_part(part) for part in saved.each("items")],
        usage=None if usage is None else Usage(**usage.some(int, *USAGE, default=None)),
        **saved.some(str, "finish_reason", "model", "request_id", default=None),
        dialect=dialect,
        cut_off=None if saved.data.get("cut_off") is None else saved.member("cut_off", CutOff),
    )
    if said is not None and (reason := contradiction(turn, said)) is not None:
        raise saved.wrong("payload", reason)
    return turn.with_payload(payload if said is None else said.payload)


def _load_part(saved: Saved) -> AssistantItem:
    kind = saved.get("type", str)
    if kind in _WITH_TEXT:
        return _WITH_TEXT[kind](saved.get("text", str))
    if kind == "tool_call":
        return ToolCallItem(load_metadata(saved), saved.get("caller", str, None))
    if kind == "server_tool":
        return ServerToolItem(saved.get("kind", str), saved.inner("payload").data)
    raise saved.wrong("type", f"{kind!r} is not a known part of a turn")
