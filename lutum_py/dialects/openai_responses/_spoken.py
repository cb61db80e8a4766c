"""Input items of OpenAI Responses, each mended by itself: its type, its content, its call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import is_mapping, is_sequence, shorten
from .._repair.mending import MAYBE_TEXT, Mending, text_of
from .._repair.pieces import Piece
from .._wire.reading import DUMP
from ._decode import CALLS, OUTPUTS, SEARCH_CALL, SEARCH_OUTPUT, is_run_by_provider

# Which outputs answer which call; the first is what a repair sends. A search for tools that the
# program runs may be answered like a function. Other calls are the provider's own.
ANSWERS: Final[Mapping[str, tuple[str, ...]]] = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    SEARCH_CALL: ("function_call_output", "tool_search_output"),
}
_SEARCHES: Final = frozenset({SEARCH_CALL, SEARCH_OUTPUT})
_WITH_OUTPUT: Final = OUTPUTS - _SEARCHES
_SAID_TO_MODEL: Final = frozenset({"system", "developer", "user"})
_ROLES: Final = _SAID_TO_MODEL | {"assistant"}


def repeated_in(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the output of a call repeats: its id, and who made it where no model did."""
    return {key: call[key] for key in ("call_id", "caller") if key in call}


class Item(Piece):
    """An input item on its way through a repair, and where it stood.

    Attributes:
        kind: Its type; an item without one is a message, or refers to an item by its id alone.
    """

    __slots__ = ("kind",)

    def __init__(self, number: int, value: dict[str, Any]) -> None:
        self.number = number
        self.become(value)

    def become(self, value: dict[str, Any]) -> None:
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


def read_item(index: int, given: Any, mending: Mending) -> Item | None:
    """Read an item, and mend it as far as that needs no other; None where it is not one.

    Args:
        index: Its number in the input.
        given: The item.
        mending: Takes a note of each breach.
    """
    if not is_mapping(given) or not isinstance(given.get("type"), MAYBE_TEXT):
        mending.note(
            f"input[{index}]",
            "not_an_item",
            f"expected an object with a type, got {shorten(given)}",
            "Send only input items" if is_mapping(given) else DUMP,
            "removed what is not an item",
        )
        return None
    item = Item(index, mending.own(given))
    fields, kind = item.value, item.kind
    if kind == "message":
        role = fields.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            remedy = f"Give it one of {', '.join(sorted(_ROLES))}"
            mending.drop_unknown(f"input[{index}]", "message", given, remedy)
            return None
        if not _is_said(fields.get("content")):
            remedy = "Send what is said, or leave the message out"
            _let_say(fields, "content", f"input[{index}]", "message", remedy, mending)
        return item
    if (item.call or item.result) and not isinstance(fields.get("call_id"), MAYBE_TEXT):
        mending.text_id(fields, "call_id", f"input[{index}]")
    if kind in CALLS and not mending.is_well_written(fields, CALLS[kind]):
        mending.mend_call(fields, CALLS[kind], f"input[{index}]")
    if kind in _WITH_OUTPUT and not _is_said(fields.get("output")):
        remedy = 'Send text; `""` where there is nothing to say'
        _let_say(fields, "output", f"input[{index}]", "result", remedy, mending)
    return item


def _is_said(content: Any) -> bool:
    """Tell text, or a list of parts."""
    return isinstance(content, str) or (is_sequence(content) and all(map(is_mapping, content)))


def _let_say(
    fields: dict[str, Any], key: str, position: str, word: str, remedy: str, mending: Mending
) -> None:
    """Give a message or result text where it has none, or what is not a list of parts."""
    said = fields.get(key)
    mending.note(
        f"{position}.{key}",
        f"{word}_without_content" if said is None else "invalid_content",
        f"expected text or a list of parts, got {shorten(said)}",
        remedy,
        "made text of it",
    )
    fields[key] = text_of(said)


def output_of(fields: Mapping[str, Any]) -> Any:
    """Return what a result says, as text or as a list of parts."""
    output = fields.get("output")
    return output if _is_said(output) else text_of(output)
