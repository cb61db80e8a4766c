"""What was said, append-only and valid at any time.

There are three ways in: a message, a turn that asks for nothing, and a whole round. None of them
can leave a call without its result, so there is nothing to check afterwards. What is sent of it is
a view, which copies nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar, cast, overload

from .._text.display import Displayed, Listing
from .._text.immutable import Frozen, dataclass
from .._text.json import digest_of, shorten
from ..errors import InvalidValueError, MisuseError
from .assistant import AssistantTurn, Usage
from .message import Message
from .request import TranscriptItem
from .result import ToolResult

V = TypeVar("V")


class _CommittedFields:
    __slots__ = ("results", "turn")

    turn: AssistantTurn
    results: tuple[ToolResult, ...]


class CommittedRound(Frozen, _CommittedFields):
    """Hold a turn and its results; what `plan.resolve(results)` and `plan.commit` give.

    Whoever holds one needs to check nothing: it cannot be made of anything less. Iterating gives
    the turn and then the results, as the transcript has them.

    Raises:
        InvalidValueError: The results are not one for each call, in the order of the calls, or two
            calls share an id.
        MisuseError: It is not a turn, or the results are not `ToolResult`s.
    """

    __slots__ = ()

    def __new__(cls, turn: AssistantTurn, results: Iterable[ToolResult]) -> Self:
        MisuseError.check("CommittedRound", "turn", "an `AssistantTurn`", turn, AssistantTurn)
        listed: tuple[Any, ...] = tuple(results) if isinstance(results, Iterable) else (results,)
        for each in listed:
            if not isinstance(each, ToolResult):
                wish = "a list of `ToolResult`s"
                raise MisuseError.of_field("CommittedRound", "results", wish, results)
        results = listed
        calls = turn.tool_calls
        asked = [(call.id, call.name, call.arguments) for call in calls]
        given = [(result.id, result.name, result.arguments) for result in results]
        if asked != given or len({call.id for call in calls}) != len(calls):
            raise InvalidValueError(
                f"A committed round has one result for each call, in order, and no id twice. "
                f"Calls: {[call.id for call in calls]}; results: {[each.id for each in results]}. "
                "Let `plan.resolve(results)` make it."
            )
        return joined(turn, results)  # type: ignore[return-value]

    @property
    def items(self) -> tuple[TranscriptItem, ...]:
        """The turn and its results, as the transcript has them."""
        return (self.turn, *self.results)

    def __iter__(self) -> Iterator[TranscriptItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return 1 + len(self.results)


def joined(turn: AssistantTurn, results: tuple[ToolResult, ...]) -> CommittedRound:
    """Join a turn with results that are known to answer it."""
    made = _CommittedFields()
    made.turn = turn
    made.results = results
    made.__class__ = CommittedRound  # immutable from here on, see `frozen`
    return made  # type: ignore[return-value]


class Latest(Generic[V]):
    """Keep a few values by key, and let go of the one that was not asked for longest.

    What is taken is gone until it is put back, so that two threads never work on one value.

    Args:
        most: How many are kept.

    Example:
        >>> kept = Latest[int](2)
        >>> for number in range(3):
        ...     kept.put(number, number)
        >>> kept.take(0), kept.take(2), kept.take(2)
        (None, 2, None)
    """

    __slots__ = ("_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[object, V] = {}

    def take(self, key: object) -> V | None:
        """Take a value out; None if there is none."""
        return self._values.pop(key, None)

    def put(self, key: object, value: V) -> None:
        """Put a value in, as the latest."""
        self._values[key] = value
        if len(self._values) > self._most:
            # From a list, which is made at one go: threads that put at once would end an iterator.
            for oldest in list(self._values)[: -self._most]:
                self._values.pop(oldest, None)


# A dialect that renders 200 items for each request would spend most of a turn on what it rendered
# before. Kept here, the next request renders the items that are new.
class TranscriptCache:
    """Hold what was worked out from the items of one transcript, so that nobody does it again.

    A transcript only grows, so all of it holds for good. Nothing of it is saved, copied or
    compared.

    Attributes:
        renderings: What was rendered of it, by dialect and what is in front.
        fronts: What is in front, by view.
        ledgers: How much there is to read in its items: in bytes, and by the function that counted
            last.
        loaded: Which deferred tools it has loaded, by offer.
    """

    __slots__ = ("fronts", "ledgers", "loaded", "renderings")

    def __init__(self) -> None:
        self.renderings: Latest[Any] = Latest(2)
        self.fronts: Latest[Any] = Latest(4)
        # Who makes a toolset for each turn keeps no more of them alive.
        self.loaded: Latest[Any] = Latest(8)
        # Of a type that stands above this folder: one for sizes in bytes, one for counted tokens.
        self.ledgers: dict[bool, Any] = {}


class Transcript(Displayed, Sequence[TranscriptItem]):
    """Hold messages, assistant turns and tool results, oldest first.

    Example:
        >>> transcript = Transcript()
        >>> transcript.push(Message("user", "Hello"))
        >>> len(transcript), transcript[0].text
        (1, 'Hello')
        >>> Transcript.load_json(transcript.dump_json()) == transcript
        True
    """

    __slots__ = ("__weakref__", "_cache", "_items", "_last")

    def __init__(self) -> None:
        self._items: list[TranscriptItem] = []
        self._cache: TranscriptCache | None = None
        self._last: CommittedRound | None = None

    def push(self, message: Message) -> None:
        """Append what someone other than the model says."""
        if not isinstance(message, Message):
            raise MisuseError(
                f"A transcript takes a Message here, not a {type(message).__name__}. Turns and "
                "results come in by `plan.commit(...)`."
            )
        self._items.append(message)

    def append_turn(self, turn: AssistantTurn) -> None:
        """Append a turn that asks for no tools.

        Raises:
            InvalidValueError: The turn has calls; those need their results, so commit a round.
        """
        if not isinstance(turn, AssistantTurn):
            raise MisuseError(f"A turn is an AssistantTurn, not a {type(turn).__name__}.")
        if turn.tool_calls:
            raise InvalidValueError(
                f"The turn has {len(turn.tool_calls)} tool calls, which need their results. Read "
                "it with `Toolset.read_turn(turn)` and commit the round."
            )
        self._items.append(turn)

    def append_round(self, committed: CommittedRound) -> None:
        """Append a turn together with its results.

        Raises:
            InvalidValueError: It was appended just before.
        """
        if not isinstance(committed, CommittedRound):
            raise MisuseError(
                f"A round comes in as a CommittedRound, not a {type(committed).__name__}. Use "
                "`plan.commit(...)`, or append what `plan.resolve(results)` gives."
            )
        if committed is self._last:
            raise InvalidValueError(
                "This round was appended to the transcript already: `plan.commit(session, ...)` "
                "does that. What it returns is for other uses."
            )
        # One call of `extend` with a ready tuple: all of it is there, or nothing.
        self._items.extend((committed.turn, *committed.results))
        self._last = committed

    @property
    def cache(self) -> TranscriptCache:
        """What was worked out from the items; it goes with this very transcript."""
        cache = self._cache
        if cache is None:
            cache = self._cache = TranscriptCache()
        return cache

    def digest_at(self, index: int) -> str:
        """Return what tells an item from another: the same after it was saved and loaded."""
        return digest_of_item(self._items[index])

    def usage(self) -> Usage | None:
        """Add up what the turns cost; None if no turn says.

        What failed or was discarded is in no transcript, and so not in the sum either.
        """
        by_model = self.usage_by_model()
        return sum(by_model.values(), Usage()) if by_model else None

    def usage_by_model(self) -> dict[str | None, Usage]:
        """Add up the same for each model, by the name with which the turns came back."""
        # By the name in the answer, as `gpt-5-2025-08-07`: the name that was asked for is an alias,
        # and prices change after it.
        by_model: dict[str | None, Usage] = {}
        for item in self._items:
            if isinstance(item, AssistantTurn) and item.usage is not None:
                by_model[item.model] = by_model.get(item.model, Usage()) + item.usage
        return by_model

    def view(self) -> TranscriptView:
        """Return what is there now; it stays as it is while the transcript grows."""
        return TranscriptView(self, len(self._items))

    def copy(self) -> Transcript:
        """Return a transcript of its own with the same items."""
        made = Transcript()
        made.__setstate__(self._items)
        return made

    def dump_json(self) -> str:
        """Encode the transcript, with the version of the format.

        Raises:
            TranscriptError: A payload is not JSON data.
        """
        from .transcript_json import dump_transcript

        return dump_transcript(self._items)

    @classmethod
    def load_json(cls, text: str | bytes) -> Transcript:
        """Read what `dump_json` gave.

        Raises:
            TranscriptError: The text is not a transcript, of an unknown version, damaged, or would
                be invalid; the error says where.
        """
        from .transcript_json import load_transcript

        made = cls()
        made.__setstate__(load_transcript(text))
        return made

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[TranscriptItem]:
        return iter(self._items)

    @overload
    def __getitem__(self, index: int) -> TranscriptItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TranscriptItem, ...]: ...
    def __getitem__(self, index: int | slice) -> TranscriptItem | tuple[TranscriptItem, ...]:
        if isinstance(index, slice):
            return tuple(self._items[index])
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self._items == items_of(other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def _listing(self) -> Listing:
        from .display import items_listing

        return items_listing("Transcript", self)

    def __repr__(self) -> str:
        return f"<Transcript of {len(self._items)} items>"

    def __reduce__(self) -> tuple[object, ...]:
        return (Transcript, (), self._items)

    def __setstate__(self, items: Iterable[TranscriptItem]) -> None:
        self._items = list(items)


def items_of(transcript: Transcript) -> Sequence[TranscriptItem]:
    """Return the very list in which the items are: to read many costs no call for each."""
    return transcript._items


class HasTranscript(Protocol):
    """Anything with a transcript, such as a session."""

    @property
    def transcript(self) -> Transcript:
        """The transcript to append to."""
        ...


_NOWHERE: Final = (
    "A round is committed to a Session or a Transcript, not to {}. Without either, use "
    "`plan.resolve(results)`."
)


def transcript_of(target: HasTranscript | Transcript, refusal: str = _NOWHERE) -> Transcript:
    """Find the transcript that is meant.

    Args:
        target: A session, or a transcript itself.
        refusal: Says of anything else, which stands for the braces, that it is neither.

    Raises:
        MisuseError: It is neither a transcript nor has one.
    """
    # Not `isinstance(target, ...)`: of an abstract base that is slow, but for its own instances.
    transcript = getattr(target, "transcript", target)
    if not isinstance(transcript, Transcript):
        raise MisuseError(refusal.format(shorten(target)))
    return transcript


# What is sent of it.


# Compared by identity: what is kept for a front is found without comparing its items.
# For a transcript of ten items of which 2 to 5 became one summary: items (0, 1, summary) at
# positions (0, 1, 2), places (0, 1, 2), and end 6, from where the transcript goes out as it is.
@dataclass(frozen=True, slots=True, eq=False)
class CompactedPrefix:
    """Say what goes out in place of the first items of a transcript.

    Attributes:
        items: What goes out.
        positions: The place in the transcript of each.
        places: Where each counts as standing when an ephemeral message looks for its place: all
            that goes out for a span stands where it began.
        end: The first item of the transcript that goes out as it is, with all after it.
        changed: For each cut its first item, and how long the transcript was when it was made.
    """

    EMPTY: ClassVar[CompactedPrefix]
    """Of a transcript that goes out as it is."""

    items: tuple[TranscriptItem, ...]
    positions: tuple[int, ...]
    places: tuple[int, ...]
    end: int
    changed: tuple[tuple[int, int], ...] = ()

    def is_changed_before(self, position: int) -> bool:
        """Tell whether something before an item was cut after the item was said."""
        return any(start <= position < at for start, at in self.changed)


CompactedPrefix.EMPTY = CompactedPrefix((), (), (), 0)


class TranscriptView(Sequence[TranscriptItem]):
    """The first items of a transcript, with ephemeral ones in between; not a copy.

    A transcript only grows, so a view of its first items never changes.

    Attributes:
        transcript: What it is a view of.
        base_length: How many of its items belong to the view.
        ephemeral: Pairs of a place in the transcript and the item that is before it, in order.
        front: What goes out in place of its first items.
    """

    __slots__ = ("base_length", "ephemeral", "front", "transcript")

    def __init__(
        self,
        transcript: Transcript,
        base_length: int,
        ephemeral: tuple[tuple[int, Message], ...] = (),
        front: CompactedPrefix = CompactedPrefix.EMPTY,
    ) -> None:
        self.transcript: Transcript = transcript
        self.base_length: int = base_length
        self.ephemeral: tuple[tuple[int, Message], ...] = ephemeral
        self.front: CompactedPrefix = front

    @property
    def renderings(self) -> Latest[Any]:
        """What was rendered of the transcript, by a key of the dialect's; it is kept with it."""
        return self.transcript.cache.renderings

    @property
    def base_count(self) -> int:
        """How many items there are, without ephemeral ones."""
        return len(self.front.items) + self.base_length - self.front.end

    def __len__(self) -> int:
        return self.base_count + len(self.ephemeral)

    def lasting(self) -> TranscriptView:
        """Return the same without ephemeral ones."""
        return TranscriptView(self.transcript, self.base_length, (), self.front)

    def index_of(self, place: int) -> int:
        """Return the index, among the items without ephemeral ones, of the first at a place."""
        front = self.front
        if place < front.end:
            return bisect_left(front.places, place)
        return len(front.items) + min(place, self.base_length) - front.end

    def numbered(self, start: int, stop: int) -> Iterator[tuple[int, TranscriptItem]]:
        """Go through a part of the items, ephemeral ones aside; give each with its place."""
        front, items = self.front, items_of(self.transcript)
        known = len(front.items)
        if start < known:
            yield from zip(front.positions[start:stop], front.items[start:stop], strict=True)
        # After the front every index is off by the same: if items 2 to 5 went out as one, index 3
        # is position 6, so `moved` is 3.
        moved = front.end - known
        for position in range(max(start, known) + moved, stop + moved):
            yield position, items[position]

    def __iter__(self) -> Iterator[TranscriptItem]:
        if not self.ephemeral and not self.front.end:
            return islice(items_of(self.transcript), self.base_length)
        return self._merged()

    def _merged(self) -> Iterator[TranscriptItem]:
        start = 0
        for place, message in self.ephemeral:
            stop = self.index_of(place)
            for _, item in self.numbered(start, stop):
                yield item
            yield message
            start = stop
        for _, item in self.numbered(start, self.base_count):
            yield item

    @overload
    def __getitem__(self, index: int) -> TranscriptItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TranscriptItem]: ...
    def __getitem__(self, index: int | slice) -> TranscriptItem | Sequence[TranscriptItem]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        length = len(self)
        position = index + length if index < 0 else index
        if not 0 <= position < length:
            raise IndexError(f"item {index} of {length}")
        # Each ephemeral message moves what follows it by one. There are few, so they are counted.
        for number, (place, message) in enumerate(self.ephemeral):
            at = self.index_of(place) + number
            if position == at:
                return message
            if position < at:
                return self._at(position - number)
        return self._at(position - len(self.ephemeral))

    def _at(self, index: int) -> TranscriptItem:
        front = self.front
        known = len(front.items)
        if index < known:
            return front.items[index]
        return items_of(self.transcript)[index - known + front.end]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        others = cast("Sequence[object]", other)
        return len(self) == len(others) and all(a == b for a, b in zip(self, others, strict=True))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<view of {len(self)} items>"

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))


# `Place(4, digest="sha256:…")`: after four items, the last of which is this one. A reference to
# the transcript would not outlive a save, and the number alone would take any conversation of four
# items for this one.
class Place:
    """Say where in a transcript a round was opened.

    Attributes:
        length: How many items there were.
    """

    # The last item, as long as nobody asked for its digest: most rounds end where they began.
    __slots__ = ("_digest", "_last", "length")

    def __init__(
        self, length: int, last: TranscriptItem | None = None, digest: str | None = None
    ) -> None:
        self.length: int = length
        self._last = last
        self._digest = digest

    @property
    def digest(self) -> str:
        """The digest of the last item; empty if there was none."""
        if self._digest is None:
            self._digest = "" if self._last is None else digest_of_item(self._last)
        return self._digest

    def is_behind(
        self, items: Sequence[TranscriptItem], said: Sequence[TranscriptItem] | None = None
    ) -> bool:
        """Whether these items begin with those that the round is behind.

        Args:
            items: The items of a conversation.
            said: Those of the conversation in which the round was opened, if they are at hand:
                without them, only the last one is compared.
        """
        if not self.length or items is said:
            return True
        if len(items) < self.length:
            return False
        # The same object, nearly always; after loading, an equal one, which is told by its digest.
        last = items[self.length - 1]
        if not (last is self._last or digest_of_item(last) == self.digest):
            return False
        return said is None or all(map(_are_alike, said[: self.length], items))

    def __reduce__(self) -> tuple[object, ...]:
        return (Place, (self.length, None, self.digest))


def _are_alike(one: TranscriptItem, other: TranscriptItem) -> bool:
    return one is other or digest_of_item(one) == digest_of_item(other)


def digest_of_item(item: TranscriptItem) -> str:
    """Return what tells an item from another: the same after it was saved and loaded."""
    if isinstance(item, Message):
        # Without payload and usage: some stores change these, and the place stays the same.
        return digest_of([item.role, item.text])
    if isinstance(item, ToolResult):
        answered = (item.id, item.name, item.arguments)
        return digest_of([*answered, item.result, item.status, item.message])
    return digest_of(
        [item.text, [[call.id, call.name, call.arguments] for call in item.tool_calls]]
    )
