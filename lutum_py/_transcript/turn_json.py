"""The saved form of a turn, and whether it says what its payload says: it may have been edited.

A payload is what goes back to its provider, and results answer the calls of the turn. Where the two
differ, the program and the provider would go on in two conversations.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from .._schema.stand_in import own_name
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
    Usage,
    callers_of,
)
from .metadata import dump_metadata, load_metadata
from .payload import read_payload
from .saved import Saved

_WITH_TEXT: dict[str, Any] = {
    "text": TextItem,
    "reasoning": ReasoningItem,
    "refusal": RefusalItem,
}
_KIND_OF = {kind: name for name, kind in _WITH_TEXT.items()}
_counts_of = attrgetter(*USAGE)


def dump_turn(turn: AssistantTurn) -> dict[str, Any]:
    """Return a turn as plain data."""
    usage = turn.usage
    data: dict[str, Any] = {
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


def _dump_part(part: AssistantItem) -> dict[str, Any]:
    if isinstance(part, ToolCallItem):
        data: dict[str, Any] = {"type": "tool_call", **dump_metadata(part.metadata)}
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
    try:
        # What counts is the payload, since that is what goes back. If the saved turn says anything
        # else, somebody has edited one of the two.
        said: AssistantTurn | None = read_payload(payload, dialect)
    except ValueError as error:
        raise saved.wrong("payload", str(error)) from None
    # Most turns were made of their payload, which makes the same turn today: then that is it.
    if said is not None and dump_turn(said) == saved.data:
        return said
    usage = saved.inner_or_none("usage")
    turn = AssistantTurn(
        items=[_load_part(part) for part in saved.each("items")],
        finish_reason=saved.get("finish_reason", str, None),
        usage=None if usage is None else Usage(**{n: usage.get(n, int, None) for n in USAGE}),
        model=saved.get("model", str, None),
        request_id=saved.get("request_id", str, None),
        dialect=dialect,
        payload=payload if said is None else said.payload,
        cut_off=None if saved.data.get("cut_off") is None else saved.member("cut_off", CutOff),
    )
    if said is not None:
        try:
            _check_payload(turn, said)
        except ValueError as error:
            raise saved.wrong("payload", str(error)) from None
    return turn


def _load_part(saved: Saved) -> AssistantItem:
    kind = saved.get("type", str)
    if kind in _WITH_TEXT:
        part: AssistantItem = _WITH_TEXT[kind](saved.get("text", str))
        return part
    if kind == "tool_call":
        return ToolCallItem(load_metadata(saved), saved.get("caller", str, None))
    if kind == "server_tool":
        return ServerToolItem(saved.get("kind", str), saved.inner("payload").data)
    raise saved.wrong("type", f"{kind!r} is not a known part of a turn")


def _check_payload(turn: AssistantTurn, said: AssistantTurn) -> None:
    """Compare a saved turn with the turn that its payload makes.

    What differs is named and not quoted: it may be secret.

    Raises:
        ValueError: They make other calls, or say another text.
    """
    asked, found = ([(call.id, call.name) for call in each.tool_calls] for each in (turn, said))
    if len(asked) != len(found) or not all(map(_is_same, asked, found)):
        raise ValueError(f"the turn makes the calls {asked}, and its payload makes {found}")
    for call, other in zip(turn.tool_calls, said.tool_calls, strict=True):
        if call.arguments != other.arguments:
            raise ValueError(f"call {call.id!r} of the turn has other arguments than its payload")
    if (turn.text, turn.refusal) != (said.text, said.refusal):
        raise ValueError("the turn says another text than its payload")
    # Texts of earlier releases say no callers.
    if callers_of(turn).items() - callers_of(said).items():
        raise ValueError("the calls of the turn have other callers than those of its payload")


def _is_same(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Tell whether two calls are one: a tool may have gone out under the stand-in of its name."""
    (id, name), (other_id, other_name) = one, other
    is_same = own_name(name, [other_name]) == other_name or own_name(other_name, [name]) == name
    return id == other_id and is_same
