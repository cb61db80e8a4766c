"""The conversation of a request that may be anything: found, repaired by its dialect, put back.

What a pass over it comes to is a `Repairing`: the repaired items, and a note of each breach. Most
requests break no rule. So each is first looked at as it is, by the code that reads items to fix
them, up to the first breach. For that nothing is changed before its breach is noted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from .._text.json import (
    JsonObject,
    compact_json,
    copy_json,
    halves_in,
    is_mapping,
    is_object,
    is_plainly_sendable,
    is_sequence,
    sendable_json,
    shorten,
)
from ._facts import DistinctIds, Facts
from ._findings import NOT_SHOWN, Change, Violation
from ._history import NOTHING_SAID
from ._reading import DUMP, UNREADABLE, send_as_object
from ._schema.nodes import refused_keys, with_keys_sent

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

    def __init__(self, facts: Facts, body: Mapping[str, object], *, is_look: bool = False) -> None:
        self.items: list[Any] = []
        self.body: Mapping[str, object] = body
        self.facts: Facts = facts
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

    def drop_unknown(self, position: str, item: object, roles: Iterable[str]) -> None:
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
    def own(self, item: object) -> Any:
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

    def unanswered(self, position: str, call: object, remedy: str) -> None:
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

    def is_well_written(self, call: Mapping[str, object], key: str) -> bool:
        """Tell whether a call has a name that the provider takes, and arguments that are text."""
        return isinstance(call.get(key), str) and self.takes(call.get("name"))

    def repair_call(self, call: JsonObject, key: str, position: str) -> None:
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

    def text_id(self, holder: JsonObject, key: str, position: str) -> None:
        """Let the id of a call be text, if it is something else."""
        self.note(
            f"{position}.{key}",
            "invalid_call_id",
            f"expected the id of a call, got {shorten(holder[key])}",
            "Send the id as text, the same in the call and in its result",
            "made text of it",
        )
        holder[key] = text_of(holder[key])

    def repair_object(self, call: JsonObject, key: str, position: str) -> None:
        """Let the arguments of a call be an object.

        Args:
            call: What holds them.
            key: Where it holds them.
            position: Where the call is in the request.
        """
        made: JsonObject = {key: call.get(key)}
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

    def repair_name(self, result: JsonObject, name: object, position: str) -> None:
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


def text_of(value: object) -> str:
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
            a list alone comes in its field.
    """

    facts: Facts
    said: Callable[[str], JsonObject]
    fix: Callable[[list[Any], Repairing], None]
    is_in_order: Callable[[list[Any], Repairing], bool] | None = None
    takes_text: bool = False
    takes_one: bool = False
    elsewhere: tuple[str, ...] = ()
    whole: tuple[Callable[[JsonObject, Repairing], None], ...] = ()

    def check(self, request: object) -> list[Violation]:
        """Find what a request breaks of the provider's rules."""
        return [] if self._is_sound(request) else self._repaired(request)[1].violations

    def repair(self, request: object) -> tuple[Any, list[Change]]:
        """Return a repaired copy of a request, and what was changed."""
        if self._is_sound(request):
            return copy_json(request), []
        repaired, repairing = self._repaired(request)
        return repaired, repairing.changes

    def _is_sound(self, request: object) -> bool:
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

    def _repaired(self, request: object) -> tuple[Any, Repairing]:
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
    def _of(self, request: object, repairing: Repairing) -> Any:
        owned = copy_json(request)
        whole: JsonObject | None = owned if is_object(owned) else None
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
        self, body: Mapping[str, object], items: list[object] | None, repairing: Repairing
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

    def _listed(self, request: object) -> tuple[Any, bool]:
        """Return what is in place of the list, and whether there has to be something."""
        if not is_mapping(request):
            return request, True
        is_needed = all(request.get(key) is None for key in self.elsewhere)
        return request.get(self.facts.key), is_needed

    def _items(self, listed: object, is_needed: bool, repairing: Repairing) -> list[Any] | None:
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


def _sendable(request: object, key: str, repairing: Repairing) -> Any:
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


def declared_names(facts: Facts, body: object) -> Iterator[tuple[Any, str | int, str]]:
    """Find the names of the tools on offer, and of those that are asked for.

    Args:
        facts: What is known of the dialect of the request.
        body: A request body, which may be broken.

    Yields:
        What holds a name, where it holds it, and where that is in the body.
    """
    for way in facts.names_at:
        yield from along(way, body)


def along(way: str, body: object) -> Iterator[tuple[Any, str | int, str]]:
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


def _along(steps: list[str], value: object, position: str) -> Iterator[tuple[Any, str | int, str]]:
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


def _next(step: str, value: object, position: str) -> Iterator[tuple[str | int, Any, str]]:
    if step == "[]":
        for index, inner in enumerate(value if is_sequence(value) else ()):
            yield index, inner, f"{position}[{index}]"
    elif is_mapping(value):
        # Gemini takes both ways of writing a key.
        for key in dict.fromkeys((step, _UPPER.sub("_", step).lower())):
            if key in value:
                yield key, value[key], f"{position}.{key}" if position else key


P = TypeVar("P", bound="Piece")


class Piece:
    """One piece of a conversation, and where it stands.

    Args:
        index: The number of its message.
        place: Its number in that; None if it is all that the message says.
        number: Its number among all pieces of the conversation.
        value: The piece.

    Attributes:
        index: As above.
        place: As above.
        number: As above.
        value: As above.
        call: The fields of a call that the program answers; None of any other piece.
        result: The fields of the program's answer; None of any other piece.
        group: The turn that it is in; -1 in instructions.
        is_behind: Whether a piece that is not a result is before it in its turn.
    """

    __slots__ = ("call", "group", "index", "is_behind", "number", "place", "result", "value")

    said_at: ClassVar[str]
    """Where a message has what it says."""
    # Both are known once all of the conversation was read.
    group: int
    is_behind: bool

    def __init__(self, index: int, place: int | None, number: int, value: JsonObject) -> None:
        self.index: int = index
        self.place: int | None = place
        self.number: int = number
        self.value: JsonObject = value
        self.call: JsonObject | None = None
        self.result: JsonObject | None = None

    @property
    def made(self) -> bool:
        """Whether it was made by the repair, and so stands nowhere."""
        return self.number < 0

    @property
    def position(self) -> str:
        """Where it stands, as in `messages[1].content[0]`."""
        said_at = self.said_at % self.index
        return said_at if self.place is None else f"{said_at}[{self.place}]"

    def beside(self, value: JsonObject, result: JsonObject | None) -> Self:
        """Make the result of this call, which nobody sent."""
        made = type(self)(self.index, self.place, -1, value)
        made.call, made.result, made.group = None, result, self.group
        return made


@dataclass(slots=True, eq=False)
class Spoken(Generic[P]):
    """One message of a conversation, as the pieces of it.

    Attributes:
        index: Its number in the conversation.
        message: The message as it was sent.
        role: Who speaks.
        pieces: What is said.
        group: The turn that it is part of.
    """

    index: int
    message: Mapping[str, Any]
    role: str
    pieces: list[P]
    group: int = 0


def read_spoken(
    messages: Iterable[Any],
    said_at: str,
    roles: Mapping[str | None, str],
    pieces_of: Callable[[int, Mapping[str, Any], str, int], list[P]],
    repairing: Repairing,
) -> list[Spoken[P]]:
    """Read the messages of a request, without what says nothing, and number their turns.

    Args:
        messages: The messages.
        said_at: Where one has what it says, by its number.
        roles: By what stands there, the role of who speaks.
        pieces_of: Reads what is said in a message, given the numbers of that and of its first
            piece, and its role.
        repairing: Takes a note of each breach.
    """
    spoken: list[Spoken[P]] = []
    number, facts = 0, repairing.facts
    for index, message in enumerate(messages):
        given = message.get("role") if is_mapping(message) else ""
        role = roles.get(given) if isinstance(given, MAYBE_TEXT) else None
        if not is_mapping(message) or role is None:
            repairing.drop_unknown(f"{facts.key}[{index}]", message, roles.values())
            continue
        pieces = pieces_of(index, message, role, number)
        number += len(pieces)
        if pieces:
            spoken.append(Spoken(index, message, role, pieces))
        else:
            word, remedy = facts.message_word, "Leave it out"
            problem = f"the {word} says nothing"
            repairing.note(said_at % index, f"empty_{word}", problem, remedy, f"removed the {word}")
    number_turns(spoken)
    return spoken


def number_turns(spoken: Iterable[Spoken[Any]]) -> None:
    """Number the turns: messages of one role that follow each other, instructions aside."""
    # Two messages of the user in a row are one turn, as the provider joins them: user, user,
    # assistant has the groups 0, 0, 1. So a result in the second of them is still at the right
    # place.
    group = -1
    role = None
    is_behind = False
    for said in spoken:
        if said.role == "system":
            said.group = group
            # What instructions hold is of no turn: a result there answers nobody.
            for piece in said.pieces:
                piece.group, piece.is_behind = -1, False
            continue
        if said.role != role:
            role = said.role
            group += 1
            is_behind = False
        said.group = group
        for piece in said.pieces:
            piece.group = group
            piece.is_behind = is_behind
            is_behind = is_behind or piece.result is None


_GROUP: Final[Callable[[Any], int]] = attrgetter("group")
_NUMBER: Final[Callable[[Any], int]] = attrgetter("number")


class Pairing(Generic[P]):
    """Find the result of each call.

    Attributes:
        result_of: From a call to its result.
        dropped: The results that have no place, and the rule that each breaks.
    """

    __slots__ = ("dropped", "result_of")

    def __init__(self) -> None:
        self.result_of: dict[P, P] = {}
        self.dropped: dict[P, str] = {}

    def pair(
        self,
        calls: Iterable[P],
        results: Iterable[P],
        key: Callable[[P], Hashable],
        round_of: Callable[[P], int] = _GROUP,
    ) -> None:
        """Pair calls and results, both in the order in which they stand.

        If several things may join them, this is called for one after the other, the surest
        first, each time with what is left.

        Args:
            calls: The calls.
            results: The results.
            key: What joins a call and its result.
            round_of: The round of a call.
        """
        # Of each key the latest round so far, with its calls that have no result yet, and the
        # results that came before any call. Ids may repeat: thousands of calls may share one, and
        # all of them are paired in one pass.
        latest: dict[Hashable, tuple[int, deque[P]]] = {}
        early: dict[Hashable, deque[P]] = {}
        for piece in merge(calls, results, key=_NUMBER):
            name = key(piece)
            before = early.setdefault(name, deque())
            if piece.call is not None:
                if name not in latest or latest[name][0] != round_of(piece):
                    latest[name] = (round_of(piece), deque())
                if before:
                    self._join(piece, before.popleft())
                else:
                    latest[name][1].append(piece)
            elif name not in latest:
                before.append(piece)
            elif latest[name][1]:
                self._join(latest[name][1].popleft(), piece)
            else:
                self.dropped[piece] = "duplicate_result"
        for name, left in early.items():
            for result in left:
                if name in latest:
                    self.dropped[result] = "duplicate_result"
                else:
                    self.dropped.setdefault(result, "orphan_result")

    def _join(self, call: P, result: P) -> None:
        self.result_of[call] = result
        self.dropped.pop(result, None)

    def answers(
        self,
        calls: Iterable[P],
        remedy: str,
        made: Callable[[Repairing, P], P],
        repairing: Repairing,
        *,
        fit: Callable[[Repairing, P, P], None] | None = None,
    ) -> dict[int, list[tuple[P, P]]]:
        """Return the calls of each turn with their results, and note the results without a place.

        Args:
            calls: All calls, in order.
            remedy: What to send in the place of a result that has no place.
            made: Makes the result of a call that nobody answered, and notes that.
            repairing: Takes the notes.
            fit: Fixes what in a result that was found is not of its call.
        """
        for result, rule in self.dropped.items():
            repairing.drop(result.position, rule, remedy)
        answers: dict[int, list[tuple[P, P]]] = {}
        for call in calls:
            found = self.result_of.get(call)
            if found is not None and fit is not None:
                fit(repairing, call, found)
            answers.setdefault(call.group, []).append((call, found or made(repairing, call)))
        return answers


def note_places(group: int, answered: Iterable[tuple[Piece, Piece]], repairing: Repairing) -> bool:
    """Note each result that does not stand at the head of the next turn, in the calls' order.

    Args:
        group: The turn that made the calls.
        answered: Its calls and their results, in order.
        repairing: Takes a note of each breach.

    Returns:
        Whether the results have to be written again: one of them is misplaced, or was made.
    """
    # `near` has the results that stand in the right turn, in the order of their calls: [3, 1, 2] by
    # place. What should be there is the same sorted, [1, 2, 3].
    is_touched, word = False, repairing.facts.result_word
    near: list[Piece] = []
    for call, result in answered:
        if result.group == group + 1:
            near.append(result)
            continue
        is_touched = True
        if not result.made:
            repairing.note(
                result.position,
                "misplaced_result",
                f"the {word} belongs right after {call.position}, the call",
                f"Send the {word}s at the head of what follows the calls",
                f"moved the {word} to the turn after {call.position}",
            )
    # Where they stand, sorted, is where they should be in the order of the calls: each that
    # differs is noted, and the others are not, though all are written again.
    for result, right in zip(near, sorted(near, key=lambda piece: piece.number), strict=True):
        if result is not right:
            is_touched = True
            repairing.out_of_order(result.position)
        elif result.is_behind:
            is_touched = True
            repairing.note(
                result.position,
                "result_after_content",
                f"something else is before the {word}",
                f"Send the {word}s first, then text and files",
                f"moved the {word} to the head of the turn",
            )
    return is_touched


def distinct_ids(
    answered: Sequence[tuple[P, P]],
    keys: tuple[str, str],
    repairing: Repairing,
    *,
    taken: Iterable[str | None] = (),
    at: str = "",
    is_needed: bool = False,
) -> None:
    """Give each call whose id is refused, or that of a call before it, another, and its result too.

    Args:
        answered: The calls, and their results.
        keys: Where a call has its id, and where a result has that of its call.
        repairing: Takes a note of each breach.
        taken: Ids that none that is made may be, beside those of the calls.
        at: The way from a call to its id, for the notes.
        is_needed: Whether each call has to have an id.
    """
    of_call, of_result = keys
    facts = repairing.facts
    fit = str if facts.takes_own_ids else facts.fitting_id
    fields = [(call, call.call or {}, result.result or {}) for call, result in answered]
    known = {str(called[of_call]) for _, called, _ in fields if called.get(of_call)}.union(taken)
    distinct = DistinctIds(fit, known)
    for call, called, answer in fields:
        shown = called.get(of_call)
        # The position is not an id that a provider takes, and so is replaced like any other odd id.
        given = shown or (call.position if is_needed else None)
        if given is None:
            continue
        fitting = fit(str(given))
        made = distinct.of(fitting)
        if made != given:
            is_odd = fitting != given
            repairing.note(
                f"{call.position}{at}",
                "invalid_call_id" if is_odd else "duplicate_call_id",
                f"the provider does not take the id {shorten(shown)}"
                if is_odd
                else f"a call before it has the id {shorten(shown)} too",
                "Give each call an id of its own, of "
                f"{facts.call_ids_in_words}, and its result the same",
                f"gave the call and its result the id {made!r}",
            )
            called[of_call] = answer[of_result] = made


MOST_MARKS: Final = 4
"""How many marks of the prompt cache a request may have: "A maximum of 4 blocks with cache_control
may be provided. Found 5." (anthropics/claude-code and many others, 2024 to 2026.)"""


def property_keys(facts: Facts) -> Callable[[JsonObject, Repairing], None]:
    """Make the rule that the keys of tools' parameters are those that the provider takes."""

    def rule(request: JsonObject, repairing: Repairing) -> None:
        for way in facts.schemas_at:
            for holder, key, position in along(way, request):
                refused = refused_keys(holder[key], facts.property_keys)
                for name, sent in refused.items():
                    repairing.note(
                        f"{position}.properties",
                        "invalid_property_key",
                        f"the provider refuses all tools because of the key {shorten(name)}",
                        "Send keys of letters, digits, `_`, `.` and `-`, at most 64 characters",
                        f"the key is {sent!r} in the request",
                    )
                holder[key] = with_keys_sent(holder[key], refused)

    return rule


def cache_marks(marker: str, *ways: str) -> Callable[[JsonObject, Repairing], None]:
    """Make the rule that a request has at most four marks of the prompt cache.

    Args:
        marker: The field that is a mark.
        ways: The ways to the blocks that may have it; those of the conversation last.
    """

    def rule(request: JsonObject, repairing: Repairing) -> None:
        found = marks_in(request, marker, ways)
        surplus = len(found) + (marker in request) - MOST_MARKS
        if surplus <= 0:
            return
        # What stands earlier in the conversation is in the beginning that a later mark keeps;
        # tools and instructions change less, and their entries serve other conversations too.
        key = repairing.facts.key
        found.sort(key=lambda mark: not mark[2].startswith(key))
        gone: list[tuple[list[Any], Any]] = []
        for holder, place, position in found[:surplus]:
            repairing.note(
                f"{position}.{marker}",
                "too_many_cache_marks",
                f"the request has more than {MOST_MARKS} marks of the prompt cache",
                f"Mark at most {MOST_MARKS} places",
                "removed the mark",
            )
            block = holder[place]
            if len(block) > 1:
                del block[marker]
            else:
                gone.append((holder, block))
        for holder, block in gone:
            holder[:] = [each for each in holder if each is not block]

    return rule


def marks_in(request: object, marker: str, ways: tuple[str, ...]) -> list[tuple[Any, Any, str]]:
    """Find the blocks with a mark: what holds each, where, and where that is in the request."""
    return [
        (holder, place, position)
        for way in ways
        for holder, place, position in along(way, request)
        if is_mapping(holder[place]) and holder[place].get(marker) is not None
    ]
