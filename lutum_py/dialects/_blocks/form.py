"""How one wire writes its blocks: what differs between two wires of which all else is alike.

A call is a block of the assistant, its result a block at the head of what the user says next. On
one wire a block is told by a field, on another by the key that holds all of it:

    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    {"toolUse": {"toolUseId": "c1", "name": "add", "input": {"a": 1}}}

What is in it, its fields, is named alike but for the id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .._facts import Facts
from .._wire.reading import WireCall, caller_of

Fields: TypeAlias = dict[str, Any] | None
Read: TypeAlias = tuple[Any, Fields, Fields]
"""What a block is: its text, the fields of a call that the program answers, those of its answer. Of
these it is one at most; the others are None."""


# Of one key that does not match, the API refuses all tools: "tools.0.custom.input_schema.properties
# : Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". (anthropics/claude-code#79418,
# decocms/studio#6874, 2026; by the latter the keys of the root alone are looked at.)
PROPERTY_KEYS: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""The keys of a tool's parameters that Anthropic's models take."""

NOTHING: Final[Read] = (None, None, None)
"""What a block is that is neither said, nor called, nor answered."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockForm:
    """Say how a wire writes its blocks.

    Attributes:
        facts: What is known of the dialect.
        text: Makes the block of a text.
        call: Makes the block of a call, of its fields.
        result: Makes the block of a result that says that something went wrong: of the field with
            the id of its call, if that has one, and of what it says.
        read: Says what an object is; None for what is not a block of this wire.
        is_reasoning: Tells a block that only the model that made it can read.
        declined: Finds the places of blocks that count no more, since the model that made them
            declined to go on, and another one did.
        unpaired: Finds what the provider ran and has no result, and the results of nothing that it
            ran, of a list of messages: by message and place, the rule, and what is wrong.
        block_looks: What a block of this wire looks like, for people.
        call_id: The field of a call that has its id.
        answers: The field of a result that has the id of its call.
        inside: The way from a block to the fields of a call.
        fix: Fixes what else is wrong with a block that is kept: the block, its position, the
            repairing.
        caller: The field of a call that says which program of the provider's made it, if that is
            so: the results of its turn stand alone in their message.
        takes_text: Whether text may stand for the list of blocks.
        needs_ids: Whether each call has to have an id.
        takes_turns: Whether no two messages that follow each other may be of one role.
    """

    facts: Facts
    text: Callable[[str], dict[str, Any]]
    call: Callable[[dict[str, Any]], dict[str, Any]]
    result: Callable[[dict[str, Any], str], dict[str, Any]]
    read: Callable[[Any], Read | None]
    is_reasoning: Callable[[Mapping[str, Any]], bool]
    block_looks: str
    call_id: str
    answers: str
    declined: Callable[[Sequence[Any]], Collection[int]] = lambda _: ()
    unpaired: Callable[[Sequence[Any]], Mapping[tuple[int, int], tuple[str, str]]] = lambda _: {}
    fix: Callable[[dict[str, Any], str, Any], None] | None = None
    inside: str = ""
    caller: str = ""
    takes_text: bool = True
    needs_ids: bool = False
    takes_turns: bool = False

    def message(self, text: str) -> dict[str, Any]:
        """Make the message of the user that says a text."""
        return {"role": "user", "content": text if self.takes_text else [self.text(text)]}

    def is_of_program(self, call: dict[str, Any]) -> bool:
        """Tell the fields of a call that a program of the provider's made."""
        return self.caller in call and caller_of(call) is not None

    def calls_in(self, content: Any) -> Iterator[WireCall]:
        """Yield the calls of what the assistant says, in order."""
        declined = self.declined(content)
        for place, block in enumerate(content):
            fields = None if place in declined else self.call_in(block)
            if fields is not None:
                yield WireCall(fields, self.call_id, fields, "input")

    # One `read` for all three, and not three functions a wire: telling a block is the same look at
    # its `type` or its keys each time, and the three answers can then never disagree.
    def text_in(self, block: Any) -> Any:
        """Return the text of a block; None for any other."""
        return (self.read(block) or NOTHING)[0]

    def call_in(self, block: Any) -> Fields:
        """Return the fields of a call that the program answers; None for any other block."""
        return (self.read(block) or NOTHING)[1]

    def result_in(self, block: Any) -> Fields:
        """Return the fields of the program's answer; None for any other block."""
        return (self.read(block) or NOTHING)[2]
