"""Messages as blocks in turns, read from a request that may be broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._text.json import is_mapping, is_sequence, shorten
from .._repair.mending import Mending
from .._repair.pieces import Piece, Spoken, number_turns
from .._wire.rendered_items import UNREADABLE
from .form import NOTHING, BlockForm, Read

_ROLES: Final = frozenset({"user", "assistant", "system"})


class Block(Piece):
    """One content block."""

    __slots__ = ()

    said_at = "messages[%d].content"


def read_messages(messages: list[Any], form: BlockForm, mending: Mending) -> list[Spoken[Block]]:
    """Read the messages of a request, without what says nothing, and number their turns."""
    spoken: list[Spoken[Block]] = []
    number = 0
    for index, message in enumerate(messages):
        role = message.get("role") if is_mapping(message) else None
        if not is_mapping(message) or not isinstance(role, str) or role not in _ROLES:
            remedy = "Give it the role `user` or `assistant`"
            mending.drop_unknown(f"messages[{index}]", "message", message, remedy)
            continue
        blocks = _blocks(index, message, number, form, mending)
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


def _blocks(
    index: int, message: Mapping[str, Any], number: int, form: BlockForm, mending: Mending
) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str) and (form.takes_text or not content.strip()):
        return [Block(index, None, number, form.text(content))] if content.strip() else []
    if content is not None and not is_sequence(content):
        listed = [form.text(content)] if isinstance(content, str) else [content]
        is_kept = is_mapping(listed[0])
        said = "text or a list" if form.takes_text else "a list"
        mending.note(
            f"messages[{index}].content",
            "invalid_content",
            f"expected {said} of blocks, got {shorten(content)}",
            f"Send {said} of blocks, also where there is only one",
            "put it into a list" if is_kept else "removed it",
        )
        content = listed if is_kept else ()
    blocks: list[Block] = []
    role = message["role"]
    for place, value in enumerate(content or ()):
        read = form.read(value) if is_mapping(value) else None
        if read is None:
            mending.note(
                f"messages[{index}].content[{place}]",
                "unknown_block",
                f"expected a content block, got {shorten(value)}",
                f"Send {form.block_looks}",
                "removed it",
            )
            continue
        unfit = _unfit(read, role)
        if unfit is not None:
            mending.note(f"messages[{index}].content[{place}]", *unfit)
            continue
        owned = mending.own(value)
        # `own` gives the block itself, or a copy to change. `read` points into the block, so it has
        # to be read again from a copy: mending would change the caller's block otherwise.
        block = Block(index, place, number + len(blocks), owned)
        _, block.call, block.result = read if owned is value else form.read(owned) or NOTHING
        if block.call is not None:
            _call(block, block.call, form, mending)
        if form.mend is not None:
            form.mend(owned, block.position, mending)
        blocks.append(block)
    return blocks


def _unfit(read: Read, role: str) -> tuple[str, str, str, str] | None:
    """Say what is wrong with a block that this role may not send."""
    text, call, _ = read
    if text is not None and not str(text).strip():
        return "empty_text", "the text is blank", "Leave the block out", "removed the block"
    if call is not None and role != "assistant":
        problem = f"a call is in a message of the {role}"
        remedy = "Send calls in messages of the assistant only"
        return "misplaced_call", problem, remedy, "removed the call"
    return None


def _call(block: Block, call: dict[str, Any], form: BlockForm, mending: Mending) -> None:
    value = call.get("input")
    if not mending.takes(call.get("name")):
        mending.rename(call, "name", f"{block.position}.{form.inside}name")
    if not isinstance(value, dict):
        mending.note(
            f"{block.position}.{form.inside}input",
            "input_not_an_object",
            f"the input is {shorten(value)}, and not an object",
            "Send the arguments as an object",
            f"put it into an object, under `{UNREADABLE}`" if value else "made it an empty object",
        )
        call["input"] = {UNREADABLE: value} if value else {}
