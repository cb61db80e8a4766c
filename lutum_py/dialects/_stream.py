"""What every stream decoder has in common: numbering, breaking, ending once, reporting each call.

A decoder of a dialect fills in three methods: `_take` reads one event, `_end` makes the turn when
the wire is done, `_so_far` makes the neutral turn of what came before a break. It sets `_over` on
the event that the wire ends a turn with; `_done` says that `[DONE]` came. An event of a type that
it does not know goes to `_keep`, and is in the payload apart from all that makes up the turn.
What most events are, more text and nothing else, `_quick` may read at a glance.

Hosts leave out events, send some twice, and cut surrogate pairs in two. `CallReports` lets each
call be started and completed exactly once, `Pairs` holds the first half of a pair back until the
delta that completes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeAlias

from pydantic_core import from_json

from .. import AssistantTurn, ToolMetadata
from .._text.json import JsonObject, PartialJson, copy_json, sendable
from ..errors import DialectError
from ..streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from ..turns import AssistantItem
from ._arguments import BrokenStream
from ._facts import DistinctIds, facts_of
from ._reading import UNKNOWN_EVENTS, Place, fault, read_event, text_or_none, with_nulls
from .sse import ObjectSplitter

_OF_NO_CALL: Final = frozenset({TextDelta, ReasoningDelta, RefusalDelta, UsageReported})


# A dialect numbers a call when it first hears of it; only the whole turn knows the order for sure.
# So the calls of the turn look up their numbers in the end: by id first, which hosts keep, and only
# then by place. A number that was told is never given to another call.
class CallReports:
    """Remember what was reported of each call, and fill in what was left out.

    Args:
        fit: Gives an id that the provider takes, as of `DistinctIds`.

    Example:
        >>> reports = CallReports()
        >>> [reports.of([CallStarted(0, "c1", "add")]) for _ in range(2)]
        [[CallStarted(index=0, id='c1', name='add')], []]
        >>> call = ToolMetadata(id="c1", name="add", arguments="{}")
        >>> [type(event).__name__ for event in reports.missing([call])]
        ['ArgumentsDelta', 'CallCompleted']
    """

    __slots__ = ("_completed", "_distinct", "_of_id", "_started", "_written")

    def __init__(self, fit: Callable[[str], str] = str) -> None:
        self._distinct = DistinctIds(fit)
        self._of_id: dict[str, int] = {}
        self._started: dict[int, str] = {}
        self._written: set[int] = set()
        self._completed: set[int] = set()

    def of(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        """Report events: each after what belongs before it, and not a second time.

        Args:
            events: What a dialect read. A completed call may come alone.
        """
        reported: list[StreamEvent] = []
        for event in events:
            if event.__class__ in _OF_NO_CALL:
                pass
            elif isinstance(event, ArgumentsDelta):
                self._written.add(event.index)
            elif isinstance(event, CallStarted):
                if event.index in self._started:
                    continue
                call_id = self._begin(event.index, event.id)
                if call_id != event.id:
                    event = CallStarted(event.index, call_id, event.name)  # noqa: PLW2901
            elif isinstance(event, CallCompleted):
                if event.index in self._completed:
                    continue
                self._completed.add(event.index)
                reported.extend(self._before(event.index, event.metadata))
                # It came with the id of another call: its own is the one that it began with.
                if self._of_id.get(event.metadata.id, event.index) != event.index:
                    own = replace(event.metadata, id=self._started[event.index])
                    event = CallCompleted(event.index, own)  # noqa: PLW2901
            reported.append(event)
        return reported

    def wrote(self, index: int) -> None:
        """Note that argument text of a call that has started is reported elsewhere."""
        self._written.add(index)

    def missing(self, calls: Sequence[ToolMetadata]) -> list[StreamEvent]:
        """Report what was not reported of the calls of the whole turn."""
        if not calls:
            return []
        return self.of([CallCompleted(*each) for each in self._numbered(calls)])

    def _before(self, index: int, call: ToolMetadata) -> Iterator[StreamEvent]:
        """Yield what was not reported of a call that is complete."""
        if index not in self._started:
            yield CallStarted(index, self._begin(index, call.id), call.name)
        if index not in self._written and call.arguments:
            yield ArgumentsDelta.of(index, call.arguments, PartialJson())

    def _begin(self, index: int, given: str) -> str:
        """Begin a call, and return its id, which no other has."""
        call_id = self._started[index] = self._distinct.of(given)
        self._of_id[call_id] = index
        return call_id

    def _numbered(self, calls: Sequence[ToolMetadata]) -> Iterable[tuple[int, ToolMetadata]]:
        """Give each call the number under which it was reported: by its id, else by its place."""
        if self._started == {place: call.id for place, call in enumerate(calls)}:  # nearly always
            return enumerate(calls)
        found = [self._of_id.get(call.id, -1) for call in calls]
        taken = set(found)
        beyond = max(taken) + 1
        for place, known in enumerate(found):
            if known < 0:
                # The id came late, or the whole call did.
                found[place] = place if place not in taken else beyond
                beyond = max(beyond, found[place] + 1)
                taken.add(found[place])
        return list(zip(found, calls, strict=True))


_Delta: TypeAlias = TextDelta | ReasoningDelta | RefusalDelta | ArgumentsDelta
_DELTAS = (TextDelta, ReasoningDelta, RefusalDelta, ArgumentsDelta)


class Pairs:
    r"""Let every delta be text that can be shown and sent.

    Attributes:
        waiting: The first halves that wait for the second.

    Example:
        >>> pairs = Pairs()
        >>> pairs.of([TextDelta("a\ud83d")]), pairs.of([TextDelta("\ude00")])
        ([TextDelta(text='a')], [TextDelta(text='😀')])
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        # By kind and call: {(ArgumentsDelta, 1): ...}. Two calls may be written in turns, and the
        # half of one must not be joined to the text of the other.
        self.waiting: dict[tuple[type, int], _Delta] = {}

    def of(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Return events with whole characters only."""
        # Nearly every event: the same list goes back, and nothing is made.
        if not self.waiting and all(map(_is_whole, events)):
            return events
        given: list[StreamEvent] = []
        for event in events:
            if isinstance(event, _DELTAS):
                given.extend(self._whole(event))
                continue
            if isinstance(event, CallCompleted):
                given.extend(self._left(_key(event, ArgumentsDelta)))
            given.append(event)
        return given

    def rest(self) -> list[StreamEvent]:
        """Return what still waits, at the end of the stream: nothing completes it."""
        return [event for key in list(self.waiting) for event in self._left(key)]

    def _whole(self, event: _Delta) -> Iterator[StreamEvent]:
        key = _key(event, type(event))
        before = self.waiting.pop(key, None)
        text = event.text if before is None else before.text + event.text
        half = text[-1:]
        if "\ud800" <= half <= "\udbff":  # which what comes next may complete
            self.waiting[key] = replace(event, text=half)
            text = text[:-1]
        if text:
            yield replace(event, text=sendable(text))

    def _left(self, key: tuple[type, int]) -> Iterator[StreamEvent]:
        event = self.waiting.pop(key, None)
        if event is not None:
            yield replace(event, text=sendable(event.text))


def _is_whole(event: StreamEvent) -> bool:
    return not isinstance(event, _DELTAS) or sendable(event.text) is event.text


def _key(event: ArgumentsDelta | CallCompleted | _Delta, kind: type) -> tuple[type, int]:
    return kind, getattr(event, "index", 0)


_DATA: Final = frozenset({"data", b"data"})
_CUTS: Final = ("\u2028", "\u2029", "\x85")
_PASSED: Final = frozenset({"", b"", "event", b"event", "id", b"id", "retry", b"retry"})


# Three states, and no way back: reading; broken (`_error`, raised again by every later call); ended
# (`_turn`, after which events are passed over). Whoever feeds may stop anywhere and still learns
# what had been read: an error carries the neutral turn so far.
class StreamReader(ABC):
    """Read the events of one streamed turn.

    Feed every event in order, then call `close` for the last events, or `finish` for the turn
    alone. An instance reads one turn.
    """

    __slots__ = (
        "_cut",
        "_done",
        "_error",
        "_is_own",
        "_number",
        "_over",
        "_pairs",
        "_reports",
        "_splitter",
        "_turn",
        "_unknown",
    )

    dialect: ClassVar[str]

    def __init__(self) -> None:
        self._number = 0
        self._done = False
        self._over = False
        self._turn: AssistantTurn | None = None
        self._error: DialectError | None = None
        self._reports = CallReports(self._fit_id)
        self._pairs = Pairs()
        self._unknown: list[object] = []
        # The lines of an event that was cut at what is no end of a line.
        self._cut: list[str] | None = None
        self._splitter = ObjectSplitter(in_array=False)
        # Whether the event was parsed here, so that nobody else can change what it holds.
        self._is_own = False

    def feed(self, event: Mapping[str, object] | str | bytes) -> list[StreamEvent]:
        """Read one event.

        Args:
            event: The event's JSON as a dict, or the text of its `data:` field; `[DONE]` ends
                the stream, blank text is passed over.

        Returns:
            What the event adds to the turn; often one event, sometimes none or several.

        Raises:
            DialectError: The event is broken, or is an error event; `where` says which event it
                was, and `turn` holds what had been read, without calls that were not complete.
        """
        # A stream that broke raises the same again and is never read on: what comes after a broken
        # event may belong to a call whose beginning is lost.
        if self._error is not None:
            raise self._error
        if self._turn is not None:
            return []
        fields: object = event
        if isinstance(event, (str, bytes)):
            try:
                fields = from_json(event, allow_inf_nan=False)
            except (TypeError, ValueError):
                stripped = event.strip()
                if stripped in ("[DONE]", b"[DONE]"):
                    self._done = True
                    return self.close()
                if not stripped:
                    return []
        return self._read(fields, event)

    def _read(self, fields: Any, event: object) -> list[StreamEvent]:
        number = self._number
        self._number = number + 1
        self._is_own = fields is not event
        try:
            events = self._quick(fields) if fields.__class__ is dict else None
            if events is None:
                said = self._take(read_event(self.dialect, fields, number))
                events = self._reports.of(said) if said else []
            # The parser takes no half of a pair.
            if not self._is_own or self._pairs.waiting:
                events = self._pairs.of(events)
        except DialectError as error:
            raise self.failed(error) from None
        except BrokenStream as broken:
            place = Place(self.dialect, fields, None, f"event {number}")
            raise self.failed(place.error(str(broken))) from None
        except TypeError:
            place = Place(self.dialect, fields, None, f"event {number}")
            raise self.failed(fault(place)) from None
        except RecursionError:
            place = Place(self.dialect, event, None, f"event {number}")
            raise self.failed(place.error("it is nested too deeply to be read")) from None
        return [*events, *self.close()] if self._over else events

    def feed_line(self, line: str | bytes) -> list[StreamEvent]:
        """Read one line of a response of server-sent events, as it came over HTTP.

        Args:
            line: A line, with its line feed or without. A blank one, a comment, and what names an
                event are passed over; one that is not a line of such a response is read as the JSON
                of an event. `str.splitlines`, and with it `response.iter_lines()` of httpx, cuts
                lines at U+2028, U+2029 and U+0085 too, which may stand in a text: the pieces are
                joined, by U+2028 where the end of a line does not say by what.

        Returns:
            What `feed` gives for the event that the line holds.

        Raises:
            DialectError: As of `feed`.
        """
        name: str | bytes
        value: str | bytes
        given: Any = line
        if isinstance(given, str):
            name, _, value = given.partition(":")
        elif isinstance(given, bytes):
            name, _, value = given.partition(b":")
        else:
            return self.feed(given)  # an event that was parsed already, or what is none
        is_data = name in _DATA
        if self._cut is not None:
            # Only the beginning of an event ends one that is cut, and bytes, which are never cut.
            return self._all_cut() if is_data or isinstance(line, bytes) else self._uncut(line)
        if not is_data:
            value = line
            if name.rstrip() in _PASSED:
                return []
        # Each provider writes an event on one line, so none waits for the blank line after.
        return self._uncut(value) if isinstance(value, str) else self.feed(value)

    def _all_cut(self) -> list[StreamEvent]:
        """Read an event that was cut; an error where it never came to its end."""
        whole, self._cut = "".join(self._cut or ()), None
        return self.feed(whole)

    # `splitlines`, and `iter_lines` of httpx, cut at U+2028 and its like, which may stand in the
    # texts of JSON. What is open at the end of such a line goes on in the next.
    def _uncut(self, text: str) -> list[StreamEvent]:
        """Read the data of a line, or more of them; hold what is cut in the middle."""
        if self._error is not None or self._turn is not None:
            return self.feed(text)
        if self._cut is None:
            try:
                return self._read(from_json(text, allow_inf_nan=False), text)
            except ValueError:
                self._cut, self._splitter = [], ObjectSplitter(in_array=False)
        self._cut.append(text)
        try:
            is_whole = any(self._splitter.feed(text))
        except ValueError:
            is_whole = True
        if self._splitter.is_in_text and not (is_whole or text.endswith(("\n", "\r"))):
            if not text.endswith(_CUTS):
                self._cut.append(_CUTS[0])
            return []
        return self._all_cut()

    def close(self) -> list[StreamEvent]:
        """Say that the wire is done, and give the last events; a second call gives none.

        Raises:
            DialectError: The stream broke off before the turn was whole; `turn` holds what had
                been read.
        """
        if self._error is not None:
            raise self._error
        if self._turn is not None:
            return []
        if self._cut is not None:
            return self._all_cut()
        try:
            turn = self._end()
        except BrokenStream as broken:
            text = f"{self.dialect} {self.position}: {broken}."
            error = DialectError(text, dialect=self.dialect, where=self.position)
            raise self.failed(error) from None
        except DialectError as error:
            raise self.failed(error) from None
        self._turn = turn
        last = self._pairs.of(self._reports.missing(turn.tool_calls))
        return [*last, *self._pairs.rest(), TurnFinished(turn)]

    def finish(self) -> AssistantTurn:
        """Return the whole turn, the same that `decode` gives for the response in one piece.

        Raises:
            DialectError: The stream broke off before the turn was whole, or had broken before.
        """
        self.close()
        assert self._turn is not None
        return self._turn

    @property
    def position(self) -> str:
        """Where the stream stands, for an error about its end."""
        return f"after event {self._number - 1}" if self._number else "before the first event"

    def _fit_id(self, given: str) -> str:
        return facts_of(self.dialect).fitting_id(given)

    def failed(self, error: DialectError) -> DialectError:
        """Keep the error that ends the stream, with what had been read before it."""
        # Whoever catches the error may want to show what came; that it cannot be read either must
        # not hide the first error, which says why.
        with suppress(BrokenStream, DialectError, RecursionError):
            error.turn = self._so_far()
        self._error = error
        return error

    def _neutral(
        self, items: Iterable[AssistantItem], model: object, request_id: object
    ) -> AssistantTurn:
        return AssistantTurn(
            items=items,
            model=text_or_none(model),
            request_id=text_or_none(request_id),
            dialect=self.dialect,
        )

    def _kept(self, value: object) -> Any:
        """Return what is in the present event as the turn may keep it: nobody else changes it."""
        return value if self._is_own else copy_json(value)

    def _keep(self, event: Place) -> None:
        self._unknown.append(with_nulls(event.value))

    def _payload(self, response: JsonObject) -> JsonObject:
        """Return the response that was put together, with the unknown events beside it."""
        return {**response, UNKNOWN_EVENTS: self._unknown} if self._unknown else response

    def _quick(
        self,
        fields: JsonObject,  # noqa: ARG002 - by those who have one
    ) -> list[StreamEvent] | None:
        """Read an event that holds more text and nothing odd; None if `_take` has to read it.

        Nothing may be taken of an event that is left to `_take`. A piece of a call is noted in
        `_reports`, which does not see it.
        """
        return None

    @abstractmethod
    def _take(self, event: Place) -> Iterable[StreamEvent]:
        """Read one event; raise a `DialectError` of its place for one that is an error."""

    @abstractmethod
    def _end(self) -> AssistantTurn:
        """Return the turn; raise `BrokenStream` where it is not whole."""

    @abstractmethod
    def _so_far(self) -> AssistantTurn:
        """Make a neutral turn, without payload, of what was read; only calls that are complete."""
