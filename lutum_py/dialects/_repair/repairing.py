"""The conversation of a request that may be anything: found, repaired by its dialect, put back.

What a pass over it comes to is a `Repairing`: the repaired items, and a note of each breach. Most
requests break no rule. So each is first looked at as it is, by the code that reads items to fix
them, up to the first breach. For that nothing is changed before its breach is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Final

from ..._text.json import compact_json, copy_json, is_mapping, is_object, is_sequence, shorten
from ..._text.unicode import halves_in, is_plainly_sendable, sendable_json
from .._facts import Facts
from .._findings import NOT_SHOWN, Change, Violation
from .._wire.history import NOTHING_SAID
from .._wire.reading import DUMP
from .._wire.rendered_items import UNREADABLE, send_as_object

MAYBE_TEXT: Final = (str, NoneType)
"""What `isinstance` asks of an id, which is text or absent."""

_STEPS: Final = re.compile(r"\[(\d+)\]")
_FIELD: Final = re.compile(r"[^.\[]*")


class Repairing:
    """Collect the repaired items and the notes.

    Args:
        facts: What is known of the dialect.
        body: The request body; empty if only its list was given.
        is_look: Whether this is the first look, at the request itself.

    Attributes:
        items: The items as they are to be sent.
    """

    __slots__ = ("_changes", "_is_look", "_taken", "_violations", "body", "facts", "items")

    def __init__(self, facts: Facts, body: Mapping[str, Any], *, is_look: bool = False) -> None:
        self.items: list[Any] = []
        self.body = body
        self.facts = facts
        self._is_look = is_look
        # The names that were looked at: the same few come again in every turn, and a pattern is
        # slower.
        self._taken: set[str] = set()
        self._violations: list[Violation] = []
        self._changes: list[Change] = []

    def note(
        self,
        position: str,
        rule: str,
        problem: str,
        remedy: str,
        what: str,
        *,
        is_repaired: bool = True,
    ) -> None:
        """Note a breach, and what is done about it; only then may it be done.

        Raises:
            Breach: It ends the first look.
        """
        # The order of the lines matters everywhere: note, then fix. On the first look the item is
        # the caller's own, and nothing of it may have changed when this raises.
        if self._is_look:
            raise Breach
        self._violations.append(Violation(position, rule, problem, remedy))
        self._changes.append(Change(position, rule, what, is_repaired))

    def drop_unknown(self, position: str, item: Any, roles: Iterable[str]) -> None:
        """Note a message whose role is unknown.

        Args:
            position: Where it stands.
            item: What is there.
            roles: The known ones.
        """
        word = self.facts.message_word
        self.note(
            position,
            "unknown_role",
            f"expected a {word} with a known role, got {shorten(item)}",
            f"Give it one of {', '.join(sorted({*roles}))}" if is_mapping(item) else DUMP,
            f"removed the {word}",
        )

    # The first look reads what the caller holds, and may not copy it: that is what it saves. As it
    # ends with the first breach, before anything is repaired, it needs no copy either.
    def own(self, item: Any) -> Any:
        """Return an item as a breach in it may be repaired: a copy, but for the first look."""
        return item if self._is_look else copy_json(item)

    def takes(self, name: Any) -> bool:
        """Tell whether the provider takes the name of a tool; of a known one, at once."""
        if name.__class__ is str and name in self._taken:
            return True
        if not self.facts.takes_name(name):
            return False
        self._taken.add(name)
        return True

    def drop(self, position: str, rule: str, remedy: str) -> None:
        """Note a result that has no place.

        Args:
            position: Where it stands.
            rule: `orphan_result` or `duplicate_result`.
            remedy: What to send.
        """
        word, is_orphan = self.facts.result_word, rule == "orphan_result"
        why = "it answers no call" if is_orphan else f"its call has a {word} already"
        what = f"removed the {word}, because {why}"
        self.note(position, rule, f"the {word} has no place: {why}", remedy, what)

    def out_of_order(self, position: str) -> None:
        """Note a result that stands where that of another call belongs."""
        word = self.facts.result_word
        self.note(
            position,
            "results_out_of_order",
            f"the {word}s are not in the order of their calls",
            f"Send the {word}s in the order of the calls",
            f"put the {word} where its call stands",
        )

    def unanswered(self, position: str, call: Any, remedy: str) -> None:
        """Note a call that nobody answered, which gets a result that says so.

        Args:
            position: Where the call stands.
            call: Its id, or its name.
            remedy: What to send.
        """
        word = self.facts.result_word
        self.note(
            position,
            "call_without_result",
            f"the call {shorten(call)} has no {word}",
            remedy,
            f"added a {word} that says that its outcome is unknown",
        )

    def follow_up(self, position: str, rule: str, what: str) -> None:
        """Note what has to be done only because of other changes."""
        self._changes.append(Change(position, rule, what))

    def rename(self, holder: Any, key: str | int, position: str) -> None:
        """Let a tool have a name that the provider takes.

        Args:
            holder: The object, or the list, that holds the name.
            key: Where it holds it.
            position: Where that is in the request.
        """
        name = holder.get(key) if isinstance(key, str) else holder[key]
        if self.takes(name):
            return
        made = self.facts.wire_name(name)
        self.note(
            position,
            "invalid_tool_name",
            f"the provider refuses the tool name {shorten(name)}",
            f"Send a name of {self.facts.tool_names_in_words}, the same everywhere",
            f"the tool is named {made!r} everywhere in the request",
        )
        holder[key] = made

    def is_well_written(self, call: Mapping[str, Any], key: str) -> bool:
        """Tell whether a call has a name that the provider takes, and arguments that are text."""
        return isinstance(call.get(key), str) and self.takes(call.get("name"))

    def repair_call(self, call: dict[str, Any], key: str, position: str) -> None:
        """Let a call have a name that the provider takes, and arguments that are text.

        Args:
            call: What holds both.
            key: Where it holds the arguments: `arguments`, or `input` where any text is taken.
            position: Where that is in the request.
        """
        self.rename(call, "name", f"{position}.name")
        value = call.get(key)
        if isinstance(value, str):
            return
        self.note(
            f"{position}.{key}",
            "arguments_not_text",
            f"expected the text that the model wrote, got {shorten(value)}",
            "Send the arguments as text",
            "made text of them",
        )
        empty = "{}" if key == "arguments" else ""
        call[key] = empty if value is None else text_of(value)

    def text_id(self, holder: dict[str, Any], key: str, position: str) -> None:
        """Let the id of a call be text, if it is something else."""
        self.note(
            f"{position}.{key}",
            "invalid_call_id",
            f"expected the id of a call, got {shorten(holder[key])}",
            "Send the id as text, the same in the call and in its result",
            "made text of it",
        )
        holder[key] = text_of(holder[key])

    def repair_object(self, call: dict[str, Any], key: str, position: str) -> None:
        """Let the arguments of a call be an object.

        Args:
            call: What holds them.
            key: Where it holds them.
            position: Where the call is in the request.
        """
        made: dict[str, Any] = {key: call.get(key)}
        send_as_object(made, key)
        sent = made[key]
        what = f"put them into an object, under `{UNREADABLE}`"
        if UNREADABLE not in sent:
            what = "read the object in their text" if sent else "made an empty object"
        self.note(
            f"{position}.{key}",
            f"{key}_not_an_object",
            f"expected the arguments as an object, got {shorten(call.get(key))}",
            "Send the arguments as an object",
            what,
        )
        call[key] = sent

    def repair_name(self, result: dict[str, Any], name: Any, position: str) -> None:
        """Let a result have the name of the tool that was called.

        Args:
            result: What holds its name.
            name: The name in the call.
            position: Where the result is in the request.
        """
        word = self.facts.result_word
        self.note(
            position,
            "result_of_other_tool",
            f"the {word} names {shorten(result.get('name'))}, the call {shorten(name)}",
            "Send the name of the tool that was called",
            "set the name of the tool that was called",
        )
        result["name"] = name

    @property
    def violations(self) -> list[Violation]:
        """Every breach, in the order of the items."""
        return sorted(self._violations, key=_order)

    @property
    def changes(self) -> list[Change]:
        """Everything that was done, in the order of the items."""
        return sorted(self._changes, key=_order)


class Breach(Exception):
    """Ends the first look at a request: there is something to be repaired."""


def text_of(value: Any) -> str:
    """Return anything that stands where text belongs as text."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else compact_json(value)
    except (TypeError, ValueError):
        return shorten(value)


def _order(note: Violation | Change) -> tuple[str, list[int]]:
    field = _FIELD.match(note.position)
    # By numbers, as in ("messages", [10, 0]): as text, messages[10] would come before messages[9].
    return field[0] if field else "", [int(step) for step in _STEPS.findall(note.position)]


_STAND_IN = "put a message of the user there that says that the beginning is missing"


@dataclass(frozen=True, slots=True)
class Form:
    """Say how a dialect's requests hold their conversation, and check and repair them.

    Attributes:
        facts: What is known of the dialect.
        said: Makes the item of a text of the user.
        fix: Fixes the items of one request, and notes each breach.
        is_in_order: Reads the items as they are, without a copy, and tells whether each result
            stands where nothing has to be looked for; False if it takes `fix` to know. None
            if it always does, which is right and slower.
        takes_text: Whether a text may stand for the list.
        takes_one: Whether one item may stand for the list.
        elsewhere: Fields of a body that let the list be empty, or absent.
        whole: Fix what is wrong with the request as a whole, its own copy, and note each breach;
            a list alone comes in its field. See `whole.py`.
    """

    facts: Facts
    said: Callable[[str], dict[str, Any]]
    fix: Callable[[list[Any], Repairing], None]
    is_in_order: Callable[[list[Any], Repairing], bool] | None = None
    takes_text: bool = False
    takes_one: bool = False
    elsewhere: tuple[str, ...] = ()
    whole: tuple[Callable[[dict[str, Any], Repairing], None], ...] = ()

    def check(self, request: Any) -> list[Violation]:
        """Find what a request breaks of the provider's rules."""
        return [] if self._is_sound(request) else self._repaired(request)[1].violations

    def repair(self, request: Any) -> tuple[Any, list[Change]]:
        """Return a repaired copy of a request, and what was changed."""
        if self._is_sound(request):
            return copy_json(request), []
        repaired, repairing = self._repaired(request)
        return repaired, repairing.changes

    def _is_sound(self, request: Any) -> bool:
        """Tell without a copy whether nothing is broken; False if it takes a closer look."""
        is_in_order = self.is_in_order
        if is_in_order is None or not (is_mapping(request) or is_sequence(request)):
            return False
        if not is_plainly_sendable(request):
            return False
        body: Mapping[str, Any] = request if is_mapping(request) else {}
        # Nearly every request is sound, and is checked before each call of a model. So it is read
        # once without a copy, and the first breach ends that by an exception; only then is it
        # copied and gone through whole.
        look = Repairing(self.facts, body, is_look=True)
        try:
            for holder, key, position in declared_names(self.facts, body):
                look.rename(holder, key, position)
            items = self._items(*self._listed(request), look)
            self._fix_whole(body, items, look)
            return items is None or is_in_order(items, look)
        except (Breach, RecursionError):
            return False

    def _repaired(self, request: Any) -> tuple[Any, Repairing]:
        body: Mapping[str, Any] = request if is_mapping(request) else {}
        if is_mapping(request) or is_sequence(request):
            repairing = Repairing(self.facts, body)
            try:
                # First of all: what is noted below quotes the request, and the notes have to be
                # sendable too.
                request = _sendable(request, self.facts.key, repairing)
                return self._of(request, repairing), repairing
            except RecursionError:
                problem = "objects and lists stand in each other more deeply than can be read"
                fault = ("too_deep", problem, "Send flatter data")
        else:
            problem = f"expected a request body with {self.facts.key!r}, or the list itself, got "
            problem += shorten(request)
            fault = ("not_a_request", problem, "Pass the body as a dict, or its list")
        repairing = Repairing(self.facts, body)
        what = "left the request as it is, because there is no conversation that can be read"
        repairing.note("request", *fault, what, is_repaired=False)
        return request, repairing

    # The list is repaired first and the body around it last, because a repair may leave the list as
    # it was: then what goes back is a plain copy, equal to what came, and nobody has to wonder what
    # was changed.
    def _of(self, request: Any, repairing: Repairing) -> Any:
        owned = copy_json(request)
        whole: dict[str, Any] | None = owned if is_object(owned) else None
        listed, is_needed = self._listed(owned)
        items = self._items(listed, is_needed, repairing)
        # Before the list, of which positions then are those of what was given.
        self._fix_whole({} if whole is None else whole, items, repairing)
        if items is not None:
            self.fix(items, repairing)
            if is_needed and not repairing.items:
                repairing.items.append(self.said(NOT_SHOWN))
                if items:
                    repairing.follow_up(self.facts.key, NOTHING_SAID, _STAND_IN)
        if whole is None:
            return repairing.items if repairing.changes else owned
        for holder, key, position in declared_names(self.facts, whole):
            repairing.rename(holder, key, position)
        if items is not None and repairing.changes:
            whole[self.facts.key] = repairing.items
        return whole

    def _fix_whole(
        self, body: Mapping[str, Any], items: list[Any] | None, repairing: Repairing
    ) -> None:
        if not self.whole:
            return
        key = self.facts.key
        request = {**body, key: items or []}
        for rule in self.whole:
            rule(request, repairing)
        if isinstance(body, dict) and repairing.changes:
            del request[key]
            for field in body.keys() - request.keys() - {key}:
                del body[field]
            body.update(request)

    def _listed(self, request: Any) -> tuple[Any, bool]:
        """Return what is in place of the list, and whether there has to be something."""
        if not is_mapping(request):
            return request, True
        is_needed = all(request.get(key) is None for key in self.elsewhere)
        return request.get(self.facts.key), is_needed

    def _items(self, listed: Any, is_needed: bool, repairing: Repairing) -> list[Any] | None:
        """Return the items as a list; None if there is nothing to look at, and no need of it."""
        if is_sequence(listed):
            if listed or not is_needed:
                return list(listed)
            rule, problem = NOTHING_SAID, "there is nothing in it"
        elif listed is None:
            if not is_needed:
                return None
            rule, problem = "missing_conversation", f"the request has no {self.facts.key!r}"
        elif self.takes_text and isinstance(listed, str):
            return None
        elif self.takes_one and is_mapping(listed):
            return [listed]
        else:
            text = listed.strip() if isinstance(listed, str) else ""
            items = [listed] if is_mapping(listed) else [self.said(text)] if text else []
            repairing.note(
                self.facts.key,
                "not_a_list",
                f"expected a list, got {shorten(listed)}",
                "Send a list, even if there is only one",
                "put it into a list" if items else _STAND_IN,
            )
            return items
        repairing.note(self.facts.key, rule, problem, "Send at least what the user says", _STAND_IN)
        return []


def _sendable(request: Any, key: str, repairing: Repairing) -> Any:
    """Take out of a request what UTF-8 cannot carry; give it back itself where there is nothing."""
    found = list(halves_in(request, key if is_sequence(request) else ""))
    for position in found:
        repairing.note(
            position,
            "half_surrogate_pair",
            "the text holds half of a surrogate pair, which no client can send",
            "Send U+FFFD in its place, or the whole character",
            "put U+FFFD in its place",
        )
    return sendable_json(request) if found else request


_STEP: Final = re.compile(r"\w+|\[\]")
_UPPER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def declared_names(facts: Facts, body: Any) -> Iterator[tuple[Any, str | int, str]]:
    """Find the names of the tools on offer, and of those that are asked for.

    Args:
        facts: What is known of the dialect of the request.
        body: A request body, which may be broken.

    Yields:
        What holds a name, where it holds it, and where that is in the body.
    """
    for way in facts.names_at:
        yield from along(way, body)


def along(way: str, body: Any) -> Iterator[tuple[Any, str | int, str]]:
    """Follow a way through a body, which may be broken.

    Args:
        way: The names of fields; `[]` goes through a list.
        body: A request body.

    Yields:
        What holds a value that the way leads to, where it holds it, and where that is in the body.

    Example:
        >>> [position for _, _, position in along("tools[].name", {"tools": [{"name": "f"}, 1]})]
        ['tools[0].name']
    """
    # "tools[].function.name" is the steps tools, [], function, name.
    return _along(_STEP.findall(way), body, "")


def _along(steps: list[str], value: Any, position: str) -> Iterator[tuple[Any, str | int, str]]:
    # A way is followed as it was written, without knowing what is there: what is broken on it,
    # as a list in place of an object, gives nothing and is noted by whoever fixes that part.
    for key, inner, where in _next(steps[0], value, position):
        if len(steps) == 1:
            yield value, key, where
        elif steps[1] == "[]" and len(steps) > 2 and is_mapping(inner):
            # Gemini takes one object where a list belongs.
            yield from _along(steps[2:], inner, where)
        else:
            yield from _along(steps[1:], inner, where)


def _next(step: str, value: Any, position: str) -> Iterator[tuple[str | int, Any, str]]:
    if step == "[]":
        for index, inner in enumerate(value if is_sequence(value) else ()):
            yield index, inner, f"{position}[{index}]"
    elif is_mapping(value):
        # Gemini takes both ways of writing a key.
        for key in dict.fromkeys((step, _UPPER.sub("_", step).lower())):
            if key in value:
                yield key, value[key], f"{position}.{key}" if position else key
