"""Whether a turn goes back as it came, or in the neutral view, and what that costs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

from .. import AssistantTurn, Attachment, Message, ToolMetadata, ToolResult
from .._text.json import JsonObject, is_mapping
from ..errors import InvalidValueError, MisuseError
from ..turns import ReasoningItem, ServerToolItem, TranscriptItem
from ..typing import TranscriptView
from ._facts import Facts
from ._findings import Loss
from ._reading import UNREADABLE, arguments_object, named_text, rendered_items

# A provider takes back what it sent and little else: signatures and encrypted reasoning cover the
# turn as it came. So the payload of the same dialect is sent again; the neutral items are for
# foreign turns only, and what they cannot say is a loss that is told.


LED_NOWHERE: Final = "its reasoning led to nothing, and the provider refuses reasoning alone"
"""Why the reasoning at the end of a turn is left out."""


def own_payload(turn: AssistantTurn, dialect: str) -> Mapping[str, Any] | None:
    """Return the payload of a turn that the dialect itself decoded; None for any other turn."""
    payload = turn.payload
    if turn.dialect == dialect and is_mapping(payload):
        return payload
    return None


def foreign_losses(position: str, turn: AssistantTurn, dialect: str) -> Iterator[Loss]:
    """Say what the neutral view of a turn leaves out; nothing if it leaves out nothing."""
    lost: list[str] = []
    if any(isinstance(item, ReasoningItem) for item in turn.items):
        lost.append("its reasoning")
    kinds = [item.kind for item in turn.items if isinstance(item, ServerToolItem)]
    if kinds:
        lost.append(f"what the provider ran itself ({', '.join(dict.fromkeys(kinds))})")
    foreign = turn.payload is not None and turn.dialect != dialect
    if foreign:
        lost.append(f"the form that only {turn.dialect or 'its own dialect'} understands")
    if lost:
        *others, last = lost
        without = f"{', '.join(others)} and {last}" if others else last
        yield Loss(position, f"{dialect} gets the neutral view of this turn, without {without}")


ModelNames: TypeAlias = str | Iterable[str] | None
"""The name of a model, or all names that one model is known by."""

# A date in the ways of the providers, the word for the newest, a revision: of recorded traffic,
# `gpt-5-2025-08-07`, `claude-sonnet-4-0`, `claude-haiku-4-5@20251001`, `gemini-2.0-flash-001`.
_NO_DIFFERENCE: Final = re.compile(
    r"(?:[-@:](?:latest|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{8}|\d{4}|00\d|0|v\d+(?::\d+)?))++$"
)
# `models/` of Gemini, also after the path of a project; the vendor in the names of Bedrock.
_IN_FRONT: Final = re.compile(r"^(?:.*\bmodels/|(?:[a-z-]+\.)?anthropic\.)")
_WORDS: Final = re.compile(r"[-._@: ]+")


@lru_cache(maxsize=512)
def _plain(name: str) -> tuple[str, ...]:
    """Return what tells a model: hosts write its words in one order or another.

    >>> _plain("anthropic/claude-sonnet-4-5") == _plain("anthropic/claude-4.5-sonnet-20250929")
    True
    """
    core = _NO_DIFFERENCE.sub("", _IN_FRONT.sub("", name.lower()))
    return tuple(sorted(_WORDS.split(core)))


def names_of(model: ModelNames) -> tuple[str, ...]:
    """Take one name, or several, or none.

    Raises:
        MisuseError: It is something else.
    """
    if model is None:
        return ()
    names = model if isinstance(model, Iterable) and not isinstance(model, str) else (model,)
    listed: tuple[Any, ...] = tuple(names)
    if not all(isinstance(name, str) for name in listed):
        wish = "the name of a model, a list of them or None"
        raise MisuseError.of_field("encode_request", "model", wish, model)
    return listed


def told_apart(turn: AssistantTurn, names: tuple[str, ...]) -> bool:
    """Tell whether a turn belongs to another model; if one of them is not known, it is the same.

    Example:
        >>> turn = AssistantTurn(text="Hi", model="gpt-5-2025-08-07")
        >>> told_apart(turn, ("gpt-5",)), told_apart(turn, ("gpt-5-mini",))
        (False, True)
    """
    if not names or turn.model is None or turn.model in names:
        return False
    made_by = _plain(turn.model)
    return all(_plain(name) != made_by for name in names)


class Plan(NamedTuple):
    """Where the objects and lists in plain JSON data stand.

    Attributes:
        way: Goes from each one to the only one that it holds.
        parts: Where the last of them holds others, and their plans; none, or at least two.
    """

    way: tuple[str | int, ...] = ()
    parts: tuple[tuple[str | int, Plan], ...] = ()


FLAT = Plan()
"""The plan of what holds texts and numbers only: its `copy` is one."""


def plan_of(value: Any) -> Plan:
    """Find the objects and lists in plain JSON data.

    Example:
        >>> plan_of({"role": "user", "content": [{"type": "text", "text": "Hi"}]})
        Plan(way=('content', 0), parts=())
    """
    # Most values hold one object in another, as a message its list of one block. A way of keys says
    # that without a plan inside a plan for each step.
    way: list[str | int] = []
    while True:
        found = _held(value)
        if not (found or way):
            return FLAT
        if len(found) != 1:
            return Plan(tuple(way), tuple([(key, plan_of(part)) for key, part in found]))
        key, value = found[0]
        way.append(key)


def _held(value: JsonObject | list[object]) -> list[tuple[str | int, object]]:
    entries: Iterable[tuple[str | int, object]]
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return [(key, part) for key, part in entries if part.__class__ in (dict, list)]


def copied(value: Any, plan: Plan) -> Any:
    """Copy plain JSON data by its plan; texts and numbers are shared."""
    way, parts = plan
    made = last = value.copy()
    for key in way:
        part = last[key].copy()
        last[key] = part
        last = part
    for key, inner in parts:
        last[key] = copied(last[key], inner)
    return made


class WireIds:
    """Give each call of a request an id that no other has, and that the provider takes.

    A turn that one provider made may go to another, which takes other characters, or fewer of them;
    and hosts that number the calls of each turn again give many calls of a conversation one id.
    What is kept is the id as it came.

    An id that fits goes out as it is. For any other stands a digest of it, and of how many calls
    had it before: the same in every later request.

    Args:
        facts: What is known of the dialect of the request.

    Example:
        >>> from lutum_py.dialects._facts import facts_of
        >>> ids = WireIds(facts_of("openai_responses"))
        >>> ids.of("c1"), ids.of("c1")
        ('c1', 'call_b32a2bd4df0aed7e435a79c9')
    """

    __slots__ = ("_facts", "made", "taken")

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.taken: dict[str, bool] = {}  # whether all that have an id came from the provider
        self.made: dict[str, int] = {}  # how many were made for one

    def copy(self) -> Self:
        """Return another that goes on from here."""
        made = type(self)(self._facts)
        made.taken = self.taken.copy()
        made.made = self.made.copy()
        return made

    def send(self, call: JsonObject, key: str, *, is_own: bool) -> None:
        """Let a call go out by an id of its own, if its host made any.

        Args:
            call: The call in the form of the wire.
            key: Where its id stands.
            is_own: Whether the provider of the request made it.
        """
        given = call.get(key)
        # A host that made no id gets none back.
        if isinstance(given, str) and (given or not is_own):
            call[key] = self.of(given, is_own=is_own)

    def of(self, given: str, *, is_own: bool = False) -> str:
        """Return the id under which the next call goes out.

        Args:
            given: Its id, as it came.
            is_own: Whether the provider of the request made it.
        """
        facts = self._facts
        fits = facts.takes_id(given) or (is_own and facts.takes_own_ids)
        again = is_own and facts.repeats_own_ids
        made = given
        if not fits or (given in self.taken and not (again and self.taken[given])):
            made, number = given, self.made.get(given, 0)
            # Made of the id and of how many had it before, and not of a counter of all calls: what
            # is cut or added elsewhere then changes no id, and the beginning of the request stays
            # in the cache.
            while made == given or made in self.taken:
                made = facts.made_id(given, number)
                number += 1
            self.made[given] = number
        self.taken[made] = again and self.taken.get(made, True)
        return made


class Rendering(ABC):
    """Collect what was said, and what was lost.

    Args:
        model: The model that is asked, if it is known.
        found: What the results of searches may name; None if deferred tools go out as others.

    Attributes:
        said: What everybody said, in the form of the wire.
        losses: What was lost.
        ids: The ids under which calls go out.
        model: The names of the model that is asked; none if it is not known.
        found: As above.
        loaded: The names of deferred tools that results have named.
        whole: Whether turns go back whole, whatever was cut before them.
        is_changed_before: Whether something before the next item was cut after that was said.
    """

    facts: ClassVar[Facts]
    joins_messages: ClassVar[bool] = False
    """Whether what is between two turns of the model is one message."""
    growing: ClassVar[tuple[str, ...]] = ("said", "losses", "ids", "loaded")
    """What a fork has a copy of, since it goes on growing here."""

    def __init__(self, model: ModelNames = None, found: object = None) -> None:
        self.said: list[JsonObject] = []
        self.losses: list[Loss] = []
        self.ids: WireIds = WireIds(self.facts)
        self.model: tuple[str, ...] = names_of(model)
        self.found = found
        self.loaded: set[str] = set()
        self.whole = False
        self.is_changed_before: bool = False
        # Of the last turn: the fields by which a result says which call it answers, by our id.
        self._answers: dict[str, JsonObject] = {}
        self.taken: int = 0
        self.started = False
        self._plans: list[Plan] = []
        self._alike = {FLAT: FLAT}

    @classmethod
    def of(
        cls,
        items: Iterable[TranscriptItem],
        model: ModelNames = None,
        found: object = None,
        start: int = 0,
        whole: bool = False,
    ) -> Self:
        """Render messages, turns and results; what is said is the caller's to change.

        Args:
            items: The items, oldest first.
            model: The model that is asked, if it is known.
            found: What the results of searches may name; equal ones are rendered alike.
            start: How many of the first items go out in another way.
            whole: Whether turns go back whole, whatever was cut before them.

        Raises:
            MisuseError: An item is not a message, a turn or a result.
        """
        made = cls(model, found)
        made.whole = whole
        made.taken = start
        # What was left out at the beginning counts as said: an instruction after it has moved.
        made.started = start > 0
        if isinstance(items, TranscriptView):
            return made.of_view(items, start)
        for position, item in rendered_items(items, start):
            made.take(item, position)
        made.finish()
        return made

    def of_view(self, items: TranscriptView, start: int) -> Self:
        """Go on with what is kept of the transcript, and keep it for the next request."""
        kept = items.renderings
        # All that decides how an item is rendered. One that differs begins again, which is right
        # and slow.
        key = (type(self), items.front, self.model, self.found, start, self.whole)
        count = items.base_count
        ephemeral = [(items.index_of(place), said) for place, said in items.ephemeral]
        until = max(ephemeral[0][0] if ephemeral else count, start)
        known: Self | None = kept.take(key)
        # It has gone further than this request: another branch of the same transcript, or an
        # ephemeral message that is before what was rendered. What is written down cannot be
        # taken back.
        if known is None or known.taken > until:
            known = self
        known.take_all(items, until)
        # What is kept stops before the first ephemeral message; a fork goes on with that and the
        # rest.
        rendering, own = known.fork(), known.copies()
        kept.put(key, known)
        for number, (index, message) in enumerate(ephemeral):
            place = f"ephemeral[{number}]"
            if index < start:
                text = "it stands among what the cached content has, and is not sent"
                rendering.losses.append(Loss(place, text))
                continue
            rendering.take_all(items, index)
            rendering.take_ephemeral(message, place)
        rendering.take_all(items, count)
        rendering.finish()
        own += [copied(said, plan_of(said)) for said in rendering.said[len(own) :]]
        rendering.said = own
        return rendering

    def take_all(self, items: TranscriptView, until: int) -> None:
        """Render the items up to one of them."""
        for position, item in items.numbered(self.taken, until):
            self.is_changed_before = items.front.is_changed_before(position)
            self.take(item, f"items[{position}]")
        self.taken = max(self.taken, until)

    def copies(self) -> list[JsonObject]:
        """Copy what was said, but for the last, which may still become another."""
        # Most of it is alike: the plans take next to no room.
        for said in self.said[len(self._plans) : -1]:
            plan = plan_of(said)
            self._plans.append(self._alike.setdefault(plan, plan))
        return [
            said.copy() if plan is FLAT else copied(said, plan)
            for plan, said in zip(self._plans, self.said, strict=False)
        ]

    def fork(self) -> Self:
        """Return a rendering that goes on from here and leaves this one as it is."""
        made = copy(self)
        for name in self.growing:
            setattr(made, name, getattr(self, name).copy())
        return made

    def take(self, item: TranscriptItem, position: str) -> None:
        """Render the next item.

        Nothing that was written down before is changed in place. The last of it may be replaced.

        Args:
            item: The item.
            position: Where it stands, for the losses.
        """
        if isinstance(item, AssistantTurn):
            self._turn(item, position)
        elif isinstance(item, ToolResult):
            self._result(item, position)
        else:
            self._message(item, position)

    @abstractmethod
    def _turn(self, turn: AssistantTurn, position: str) -> None:
        """Render a turn of the model."""

    @abstractmethod
    def _result(self, result: ToolResult, position: str) -> None:
        """Render a result."""

    @abstractmethod
    def _message(self, message: Message, position: str) -> None:
        """Render what somebody else says."""

    def take_ephemeral(self, message: Message, position: str) -> None:
        """Render a message that no later request has."""
        self.take(message, position)

    def finish(self) -> None:
        """Write down what waits for the items that come next."""
        return

    def payload_of(self, turn: AssistantTurn, position: str) -> Mapping[str, Any] | None:
        """Return what a turn goes back from as it came; None if its neutral view goes out."""
        payload = own_payload(turn, self.facts.name)
        if payload is None:
            self.losses.extend(foreign_losses(position, turn, self.facts.name))
        return payload

    def keep_back(self, turn: AssistantTurn, position: str, what: str) -> None:
        """Note what of a turn goes to no other model than the one that made it."""
        text = f"{what} of {turn.model} is for that model alone: not sent to {self.model[0]}"
        self.losses.append(Loss(position, text))

    def lose_files(self, attachments: Sequence[Attachment], position: str, taker: str) -> None:
        """Note the files of what takes none."""
        for index, attachment in enumerate(attachments):
            text = f"{taker} takes no {attachment.media_type} in {self.facts.name}"
            self.losses.append(Loss(f"{position}.attachments[{index}]", text))

    def parts_of(
        self,
        text: str,
        attachments: Iterable[Attachment],
        position: str,
        takes_files: bool = True,
        attached: Callable[[Attachment], JsonObject | None] | None = None,
    ) -> list[JsonObject]:
        """Make the parts of a text and its attachments, each after its caption.

        Args:
            text: The text.
            attachments: The files; what has no part is a loss.
            position: Where this stands.
            takes_files: Whether files have a place there.
            attached: Makes the part of a file; that of messages if not given.
        """
        parts = [self._text(text)] if self._is_said(text) else []
        # A caption goes out as a text of its own before its file, since no part has a field for it;
        # what reads a history back takes a text right before a second file for a caption again.
        for index, attachment in enumerate(attachments):
            part = (attached or self._attached)(attachment) if takes_files else None
            if part is None:
                kind = f"{attachment.media_type} ({attachment.mime_type})"
                where = f"{position}.attachments[{index}]"
                self.losses.append(Loss(where, f"this {kind} has no place in {self.facts.name}"))
                continue
            if attachment.caption and self._is_said(attachment.caption):
                parts.append(self._text(attachment.caption))
            parts.append(part)
        return parts

    def parts_of_result(self, result: ToolResult, position: str) -> list[JsonObject]:
        """Make the parts of a result: its text names the files that have no part."""
        if not result.attachments:
            return self.parts_of(result.model_text, (), position)
        attached = self._attached_to_result
        unshown = (each for each in result.attachments if attached(each) is None)
        text = named_text(result, unshown)
        return self.parts_of(text, result.attachments, position, attached=attached)

    def _attached(  # noqa: B027 - a wire may take no files
        self, attachment: Attachment
    ) -> JsonObject | None:
        """Make the part of a file; None if the wire has none, as by default."""

    def _attached_to_result(self, attachment: Attachment) -> JsonObject | None:
        """Make the part of a file of a result, which may have fewer kinds than a message."""
        return self._attached(attachment)

    def _is_said(self, text: str) -> bool:
        """Tell which texts have a part."""
        return bool(text)

    def _text(self, text: str) -> JsonObject:
        """Make the part of a text."""
        return {"type": "text", "text": text}


class FrontRendering(Rendering):
    """Collect what was said, the texts that belong in front of it, and what was lost.

    Attributes:
        system: The texts of system and developer, in order.
        lasting: Where the first ephemeral message of the user stands, as the index of its message
            and of its first block in that; None if there is none.
        stand_alone: Whether nothing may be beside the results of the last turn: what the user
            says goes out after the next turn.
        lasting_system: How many texts of `system` stand before the first ephemeral one; None if
            there is none.
    """

    joins_messages: ClassVar[bool] = True
    # What waits for the next turn as well: it is finished for this request, and goes on waiting in
    # the rendering that is kept.
    growing: ClassVar[tuple[str, ...]] = (*Rendering.growing, "system", "_results", "_of_user")

    def __init__(self, model: ModelNames = None, found: object = None) -> None:
        super().__init__(model, found)
        self.system: list[str] = []
        self._results: list[JsonObject] = []
        self._of_user: list[JsonObject] = []
        self.stand_alone = False
        self.lasting: tuple[int, int] | None = None
        self.lasting_system: int | None = None

    @property
    def system_end(self) -> int:
        """How many texts of `system` stand before the first ephemeral one."""
        return len(self.system) if self.lasting_system is None else self.lasting_system

    def take(self, item: TranscriptItem, position: str) -> None:
        """Render the next item."""
        if isinstance(item, Message) and item.role != "user":
            self._instruct(item, position)
            return
        self.started = True
        if isinstance(item, AssistantTurn):
            self.finish()
        super().take(item, position)

    def finish(self) -> None:
        """Write down what was collected since the last turn."""
        # While a program of the provider runs, its results go back alone: [result, "and hurry"]
        # would be refused. So what the user said waits for one more turn: [result], turn, ["and
        # hurry"].
        waiting: list[JsonObject] = []
        if self.stand_alone and self._results:
            waiting, self._of_user = self._of_user, []
        self._write(self._results, self._of_user)
        self._results = []
        self._of_user = waiting

    # A marker of the cache has to stand before what only this request has, else the provider keeps
    # a beginning that no later request shares. So the place of the first such message is noted.
    def take_ephemeral(self, message: Message, position: str) -> None:
        """Render a message that no later request has, and note what is before the first."""
        if message.role != "user":
            if self.lasting_system is None:
                self.lasting_system = len(self.system)
        elif self.lasting is None:
            # The message will be the next that is written, and in it this block comes after what
            # waits: (4, 2) is block 2 of message 4.
            self.lasting = (len(self.said), len(self._results) + len(self._of_user))
        self.take(message, position)

    def to_send(self) -> list[JsonObject]:
        """Return what was said, for a request.

        Raises:
            InvalidValueError: The API refuses how it begins.
        """
        if self.said and not self._is_refused_first(self.said[0]):
            return self.said
        begin = "it begins with what the model said" if self.said else "nobody says anything in it"
        raise InvalidValueError(
            f"{self.facts.name} refuses this conversation: {begin}, and the API wants to hear the "
            "user first. Let the user say something before it, as in `session.push_user(...)`."
        )

    def _called_with(
        self, turn: AssistantTurn, position: str
    ) -> Iterator[tuple[ToolMetadata, JsonObject]]:
        """Yield each call of a turn with its arguments as the object that the API takes."""
        for number, call in enumerate(turn.tool_calls):
            value, is_read = arguments_object(call.arguments)
            if not is_read:
                where = f"{position}.tool_calls[{number}]"
                text = f"the arguments are not a JSON object; their text goes out as {UNREADABLE}"
                self.losses.append(Loss(where, text))
            yield call, value

    def _instruct(self, message: Message, position: str) -> None:
        name = self.facts.name
        if message.text.strip():
            self.system.append(message.text)
            if self.started:
                text = f"{name} has one place for instructions: this one moves to the front"
                self.losses.append(Loss(position, text))
        self.lose_files(message.attachments, position, "an instruction")

    @abstractmethod
    def _is_refused_first(self, said: JsonObject) -> bool:
        """Tell whether the API refuses a conversation that begins so."""

    @abstractmethod
    def _write(self, results: list[JsonObject], of_user: list[JsonObject]) -> None:
        """Write down the results after a turn, and what the user says after them."""
