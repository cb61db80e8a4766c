"""How one wire writes its blocks: what differs between two wires of which all else is alike.

A call is a block of the assistant, its result a block at the head of what the user says next. On
one wire a block is told by a field, on another by the key that holds all of it:

    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    {"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}

What stands in it, its fields, is named alike but for the id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..._text.json import shorten
from .._facts import Facts

Unfit: TypeAlias = tuple[str, str, str, str]
"""Of what has to go: the rule, the problem, the remedy, and what is done."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockForm:
    """Say how a wire writes its blocks.

    Attributes:
        facts: What is known of the dialect.
        text: Makes the block of a text.
        call: Makes the block of a call, of its fields.
        result: Makes the block of a result that says that something went wrong: of the field with
            the id of its call, if that has one, and of what it says.
        call_in: Gives the fields of a call that the program answers; None of any other block.
        result_in: Gives the fields of the program's answer; None of any other block.
        call_id: The field of a call that has its id.
        answers: The field of a result that has the id of its call.
        inside: The way from a block to the fields of a call.
        text_in: Gives the text of a block; None of a block that is no text.
        unfit: Says what is wrong with an object that is no block of this wire.
        mend: Mends what else is wrong with a block that is kept: the block, its position, the
            mending.
        takes_text: Whether text may stand for the list of blocks.
        needs_ids: Whether each call has to have an id.
        takes_turns: Whether no two messages that follow each other may be of one role.
    """

    facts: Facts
    text: Callable[[str], dict[str, Any]]
    call: Callable[[dict[str, Any]], dict[str, Any]]
    result: Callable[[dict[str, Any], str], dict[str, Any]]
    call_in: Callable[[Any], dict[str, Any] | None]
    result_in: Callable[[Any], dict[str, Any] | None]
    text_in: Callable[[Any], Any]
    call_id: str
    answers: str
    unfit: Callable[[Mapping[str, Any]], Unfit | None]
    mend: Callable[[dict[str, Any], str, Any], None] | None = None
    inside: str = ""
    takes_text: bool = True
    needs_ids: bool = False
    takes_turns: bool = False

    def message(self, text: str) -> dict[str, Any]:
        """Make the message of the user that says a text."""
        return {"role": "user", "content": text if self.takes_text else [self.text(text)]}


def no_block(value: Any, remedy: str) -> Unfit:
    """Say that something is no block."""
    return "unknown_block", f"expected a content block, got {shorten(value)}", remedy, "removed it"
