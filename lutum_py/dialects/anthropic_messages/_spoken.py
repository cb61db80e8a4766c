"""Messages of the Messages API as blocks in turns, read from a request that may be broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._text.json import is_mapping, is_sequence, shorten
from .._repair.mending import Mending
from .._repair.pieces import Piece, Spoken, number_turns
from .._wire.reading import DUMP
from .._wire.rendered_items import UNREADABLE

_ROLES = frozenset({"user", "assistant", "system"})


class Block(Piece):
    """One content block."""

    __slots__ = ()

    said_at = "messages[%d].content"

    @property
    def kind(self) -> Any:
        """The type of the block."""
        return self.value.get("type")

    @property
    def is_result(self) -> bool:
        """Whether it answers a call."""
        return bool(self.value.get("type") == "tool_result")


def read_messages(messages: list[Any], mending: Mending) -> list[Spoken[Block]]:
    """Read the messages of a request, without what says nothing, and number their turns."""
    spoken: list[Spoken[Block]] = []
    number = 0
    for index, message in enumerate(messages):
        role = message.get("role") if is_mapping(message) else None
        if not is_mapping(message) or not isinstance(role, str) or role not in _ROLES:
            mending.note(
                f"messages[{index}]",
                "unknown_role",
                f"expected a message with a known role, got {shorten(message)}",
                "Give it the role `user` or `assistant`" if is_mapping(message) else DUMP,
                "removed the message",
            )
            continue
        blocks = _blocks(index, message, number, mending)
        number += len(blocks)
        if blocks:
            spoken.append(Spoken(index, message, role, blocks))
        else:
            mending.note(
                f"messages[{index}].content",
                "empty_message",
                "the message says nothing",
                "Leave it out",
                "removed the message",
            )
    number_turns(spoken)
    return spoken


def _blocks(index: int, message: Mapping[str, Any], number: int, mending: Mending) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        block = Block(index, None, number, {"type": "text", "text": content})
        return [block] if content.strip() else []
    if content is not None and not is_sequence(content):
        mending.note(
            f"messages[{index}].content",
            "invalid_content",
            f"expected text or a list of blocks, got {shorten(content)}",
            "Send text, or a list of blocks, also where there is only one",
            "put it into a list" if is_mapping(content) else "removed it",
        )
        content = [content] if is_mapping(content) else ()
    blocks: list[Block] = []
    role = message["role"]
    for place, value in enumerate(content or ()):
        unfit = _unfit(value, role)
        if unfit is not None:
            mending.note(f"messages[{index}].content[{place}]", *unfit)
            continue
        block = Block(index, place, number + len(blocks), mending.own(value))
        if block.kind == "tool_use":
            _call(block, mending)
        blocks.append(block)
    return blocks


def _unfit(value: Any, role: str) -> tuple[str, str, str, str] | None:
    """Say what is wrong with what is no block that this role may send."""
    kind = value.get("type") if is_mapping(value) else None
    if not isinstance(kind, str):
        problem = f"expected a content block, got {shorten(value)}"
        return "unknown_block", problem, "Send an object with a `type`", "removed it"
    if kind == "text" and not str(value.get("text") or "").strip():
        return "empty_text", "the text is blank", "Leave the block out", "removed the block"
    if kind == "tool_use" and role != "assistant":
        problem = f"a call stands in a message of the {role}"
        remedy = "Send calls in messages of the assistant only"
        return "misplaced_call", problem, remedy, "removed the call"
    return None


def _call(block: Block, mending: Mending) -> None:
    value = block.value.get("input")
    if not mending.takes(block.value.get("name")):
        mending.rename(block.value, "name", f"{block.position}.name")
    if not isinstance(value, dict):
        mending.note(
            f"{block.position}.input",
            "input_not_an_object",
            f"the input is {shorten(value)}, and not an object",
            "Send the arguments as an object",
            f"put it into an object, under `{UNREADABLE}`" if value else "made it an empty object",
        )
        block.value["input"] = {UNREADABLE: value} if value else {}
