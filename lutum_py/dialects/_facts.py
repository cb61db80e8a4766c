"""What is known of a dialect beside how it is read and written: one record for each.

The record of a dialect is in its folder, in `_decode.py`. The code that dialects share is given
the record and never asks for a name, so a new dialect changes none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from .._text.json import JsonObject, digest_of, is_array, is_object, is_whole_json, shorten
from .._text.names import stand_in
from ..turns import AssistantItem, ToolCallItem
from ..typing import Caller, CutOff, JsonSchema
from . import DIALECTS
from ._schema.nodes import SchemaLoss
from ._schema.strict import Strictness


# Compared by identity, so that what is kept for a dialect is found without hashing its facts.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """Hold what is known of one dialect.

    Attributes:
        name: The dialect's name.
        key: The field of a request body that holds the conversation.
        tool_names: The names of tools that the provider takes.
        tool_names_in_words: The same for people.
        model_at: The field of a response that names its model.
        message_word: What it calls a message of a conversation.
        result_word: What it calls the result of a call.
        names_at: The ways to names of tools in a body, outside of its conversation; `[]` goes
            through a list.
        truncated: The finish reasons that say that a limit on tokens ended the turn.
        refused: The finish reasons that say that the model refused, or that a filter or guardrail
            spoke in its place; none by default. What stands after a colon does not count.
        call_ids: The ids of calls that the provider takes.
        call_ids_in_words: The same for people.
        made_ids: What an id begins with that is made for a call whose own is refused.
        id_digits: How many digits follow in it.
        takes_own_ids: Whether it takes all ids that came from it, such as longer ones.
        repeats_own_ids: Whether calls of several turns that came from it may have one id.
        empty_is_missing: Whether `{}` may stand for arguments that a limit cut off, as in a format
            that holds them as an object.
        strictness: What the strict mode of a tool takes; None if a tool has none.
        property_keys: The keys of a tool's parameters that the provider takes; None for any.
        schemas_at: The ways to the schemas of tools in a body.
        callers: Its words for who may call a tool, if it runs programs that call tools.
        calls_strictly: Whether a program may call a tool that is in strict mode.
        rewrite: Rewrites the schema of each tool: its name, its schema, what takes the losses.
        is_own_item: Tells an item of a conversation that no other dialect has.
        is_own_body: Tells a request body with a field that no other dialect has.
    """

    name: str
    key: str
    names_at: tuple[str, ...]
    truncated: frozenset[str]
    model_at: str = "model"
    message_word: str = "message"
    result_word: str = "result"
    refused: frozenset[str] = frozenset()
    tool_names: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    tool_names_in_words: str = "letters, digits, `_` and `-`, at most 64 characters"
    call_ids: re.Pattern[str] = re.compile(r".+", re.DOTALL)
    call_ids_in_words: str = "at least one character"
    made_ids: str = "call_"
    id_digits: int = 24
    takes_own_ids: bool = False
    repeats_own_ids: bool = False
    empty_is_missing: bool = False
    strictness: Strictness | None = None
    property_keys: re.Pattern[str] | None = None
    schemas_at: tuple[str, ...] = ()
    callers: Mapping[Caller, str] = field(default_factory=dict[Caller, str])
    calls_strictly: bool = True
    rewrite: Callable[[str, JsonSchema, list[SchemaLoss]], JsonSchema] | None = None
    is_own_item: Callable[[Mapping[str, object]], bool] = lambda _: False
    is_own_body: Callable[[Mapping[str, object]], bool] = lambda _: False

    def takes_name(self, name: object) -> bool:
        """Tell whether the provider takes a name of a tool."""
        return isinstance(name, str) and self.tool_names.fullmatch(name) is not None

    def wire_name(self, name: object) -> str:
        """Return the name under which a tool goes out: its own, or its stand-in.

        Args:
            name: The tool's own name; anything, in a request that is broken.
        """
        if self.takes_name(name):
            return str(name)
        return stand_in(name if isinstance(name, str) else shorten(name))

    def takes_id(self, given: object) -> bool:
        """Tell whether the provider takes the id of a call from another."""
        return self.call_ids.fullmatch(str(given)) is not None

    def made_id(self, given: str, number: int = 0) -> str:
        """Make an id that the provider takes, of one that it refuses, or that others have."""
        # Of the refused id alone, as in "call_3f2a…": the call and its result meet by it, and each
        # is rendered without the other. A number comes in only where two ids would become one.
        digest = digest_of([given, number] if number else given).removeprefix("sha256:")
        return f"{self.made_ids}{digest[: self.id_digits]}"

    def fitting_id(self, given: str) -> str:
        """Return an id as it is, or one that is made of it where the provider refuses it."""
        return given if self.takes_id(given) else self.made_id(given)

    def send_names(self, calls: Iterable[JsonObject]) -> None:
        """Let the calls of a turn go out under names that the provider takes.

        Args:
            calls: What holds the name of each call; a search for tools may have none.
        """
        for call in calls:
            name = call.get("name")
            if name is not None and not self.takes_name(name):
                call["name"] = self.wire_name(name)

    def cut_off(self, items: Iterable[AssistantItem]) -> CutOff:
        """Say what was cut off of a turn that a limit on tokens ended."""
        # Only the last call can be cut off: those before it were written to their end.
        calls = [
            item.metadata.arguments.strip() for item in items if isinstance(item, ToolCallItem)
        ]
        if not calls:
            return "answer"
        is_missing = self.empty_is_missing and calls[-1] == "{}"
        # "arguments" is what the text alone shows, as in {"path": "/etc" that was to be "/etc/app".
        # An "answer" that is cut may still be read. That no last call runs is a rule of the round.
        return "arguments" if is_missing or not is_whole_json(calls[-1]) else "answer"


# A thousand calls "a" are a, a_2, a_3, ..., each in one step: to count from 2 each time would try
# every number again, and a response could make that slow on purpose. An id like "a_2" may be there
# by chance, and then the count goes on.
class DistinctIds:
    """Give each call of a turn an id that no call before it has.

    Args:
        fit: Gives an id that the provider takes for one that it may refuse.
        known: Ids that none with a number may be.

    Example:
        >>> list(map(DistinctIds(str).of, ["a", "b", "a", "a_2"]))
        ['a', 'b', 'a_2', 'a_2_2']
    """

    __slots__ = ("_counts", "_fit", "_known", "_seen")

    def __init__(self, fit: Callable[[str], str] = str, known: Collection[str | None] = ()) -> None:
        self._fit = fit
        self._known = known
        self._seen: set[str] = set()
        self._counts: dict[str, int] = {}

    def of(self, given: str) -> str:
        """Return the id of the next call, of the one that it came with."""
        made = given
        while made in self._seen:
            count = self._counts[given] = self._counts.get(given, 1) + 1
            numbered = f"{given}_{count}"
            made = made if numbered in self._known else self._fit(numbered)
        self._seen.add(made)
        return made


def facts_of(name: str) -> Facts:
    """Return the facts of a dialect in the list."""
    found: Facts = import_module(DIALECTS[name]).DIALECT.facts
    return found


def recognize(request: object) -> list[str]:
    """Find the dialects that a request body, or a list of messages, may be of.

    Args:
        request: The JSON of a request or of its conversation.

    Returns:
        Their names, as in `DIALECTS`: one where something in it is of one dialect alone, and none
        if it is neither an object nor a list.

    Example:
        >>> recognize({"contents": []})
        ['gemini_generate_content']
        >>> recognize({"messages": [{"role": "user", "content": "Hello"}]})
        ['openai_chat', 'anthropic_messages', 'bedrock_converse']
    """
    if not is_array(request) and not is_object(request):
        return []
    # First by the key of the messages: `contents` is of one dialect, `messages` of several. Then by
    # what only one of them has in a body or an item. An empty list of messages may be of any.
    every = [facts_of(name) for name in DIALECTS]
    if is_object(request):
        every = [facts for facts in every if facts.key in request] or every
    return [facts.name for facts in every if _is_own(request, facts)] or [f.name for f in every]


def _is_own(request: object, facts: Facts) -> bool:
    """Whether something in a body, or in a list of messages, is only of one dialect."""
    if is_object(request) and facts.is_own_body(request):
        return True
    items = request.get(facts.key) if is_object(request) else request
    listed = items if is_array(items) else ()
    return any(is_object(item) and facts.is_own_item(item) for item in listed)
