"""Which tool names a provider takes, and what goes out instead of one that it refuses.

A model may call a tool by any name, and a turn that one provider made may go to another. A name
that the next provider refuses would make it refuse the conversation for ever, so another stands for
it on the wire. What is kept is the name as the model sent it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ..._schema.definition import ToolDef
from ..._text.json import digest_of, shorten
from ...errors import ToolDefinitionError
from .._facts import Facts
from .losses import Loss

# A name is made from the name alone, without a table that would have to be kept: so it is the same
# in every request, after a restart too. Every provider takes it: letters, digits and `_`, a letter
# first, a digest of the whole name behind it, so that two names meet nowhere.
_ODD: Final = re.compile(r"[^a-zA-Z0-9]+")
_STEM, _DIGEST = 48, 12


def check_tool_name(facts: Facts, definition: ToolDef) -> None:
    """Refuse a name that the provider refuses.

    Raises:
        ToolDefinitionError: It has other characters, or more of them, than the dialect allows.
    """
    takes, name, prefix = facts.tool_names.fullmatch, definition.name, definition._prefix
    if takes(name) is not None:
        return
    if prefix and (takes(prefix) is None or takes(name.removeprefix(prefix)) is not None):
        remedy = f"Its prefix is {prefix!r}: change `prefix=` where the toolset is nested or made."
    elif "[" in name:  # what pydantic calls a special case of a generic model
        remedy = "Give the tool another name: for `A[int]`, declare a `class AInt(A[int])`."
    else:
        remedy = "Give the tool another name, as in `@tool_fn(name=...)`."
    raise ToolDefinitionError(
        f"The tool name {name!r} is refused by {facts.name}, which takes "
        f"{facts.tool_names_in_words}. {remedy}"
    )


class WireNames:
    """Give each tool the name under which it goes out in one request.

    A name that the provider takes goes out as it is. For any other stands its beginning with a
    digest of the whole: the same in every request and for every provider, and another for every
    name.

    Args:
        facts: What is known of the dialect of the request.
        taken: The names of the tools on offer, which stand for nothing else.

    Attributes:
        facts: What is known of the dialect.

    Example:
        >>> from lutum_py.dialects._facts import facts_of
        >>> names = WireNames(facts_of("openai_chat"), ["add"])
        >>> names.of("add"), names.of("no such tool!")
        ('add', 'no_such_tool_f2391f29c3c4')
    """

    __slots__ = ("_made", "_offered", "facts")

    def __init__(self, facts: Facts, taken: Iterable[Any] = ()) -> None:
        self.facts: Facts = facts
        self._offered = {name for name in taken if isinstance(name, str)}
        self._made: dict[str, str] = {}

    def keep_with(self, taken: Iterable[str]) -> bool:
        """Take other tools for those on offer, if every name goes out as it did before."""
        names = set(taken)
        if self._made and names != self._offered:
            return False
        self._offered = names
        return True

    def takes(self, name: object) -> bool:
        """Tell whether the provider takes a name."""
        return isinstance(name, str) and self.facts.tool_names.fullmatch(name) is not None

    def of(self, name: Any) -> str:
        """Give the name under which a tool goes out.

        Args:
            name: The name as the model sent it; anything, in a request that is broken.
        """
        if self.takes(name):
            return str(name)
        is_text = isinstance(name, str)
        text = name if is_text else shorten(name)
        made = self._made.get(text)
        if made is None:
            stem = _ODD.sub("_", name[:_STEM] if is_text else "").strip("_")
            if not stem[:1].isalpha():
                stem = f"tool_{stem}".rstrip("_")
            number = 0
            while made is None or made in self._offered or made in self._made.values():
                digest = digest_of([text, number] if number else text).removeprefix("sha256:")
                made = f"{stem[:_STEM]}_{digest[:_DIGEST]}"
                number += 1
            self._made[text] = made
        return made

    def send(self, calls: Iterable[dict[str, Any]], position: str, losses: list[Loss]) -> None:
        """Let the calls of a turn go out by these names, and say so where one is not its own.

        Args:
            calls: What holds the name of each call, as the model sent it; a search for tools may
                have none.
            position: Where the turn stands, for the losses.
            losses: Takes a loss where another name stands for one.
        """
        for number, call in enumerate(calls):
            name = call.get("name")
            if name is not None and (made := self.of(name)) != name:
                call["name"] = made
                said = f"{self.facts.name} refuses the tool name {shorten(name)}; it goes out as "
                losses.append(Loss(f"{position}.tool_calls[{number}]", f"{said}{made!r}"))
