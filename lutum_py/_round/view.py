"""`View`: what of a transcript is sent, as a value beside it; the transcript is never changed.

A view is a few cuts. What goes out in place of the items that they concern is worked out once for
each view, and what is behind them goes out as it is: so between two cuts every request is the last
one with something at its end, and costs no more for a longer transcript.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from math import ceil
from typing import Any, Final, TypeAlias

from .._call.selector import AnySelector
from .._text.json import is_sequence, shorten
from .._transcript.assistant import AssistantTurn, ReasoningItem
from .._transcript.message import Message
from .._transcript.request import TranscriptItem
from .._transcript.saved import dump_saved, open_saved
from .._transcript.transcript import HasTranscript, Transcript
from .._transcript.transcript_view import TranscriptView
from ..errors import InvalidValueError, MisuseError, SavedDataError, ViewError
from .cut import LEAST_BYTES, Cut, CutKind, digest_of_item, dump_cut, load_cut
from .front import carried, edited, front_of, is_inside
from .ledger import USUAL_RATE, Count, Ledger, Size, ledger_of, too_light

__all__ = ["View"]

Target: TypeAlias = "HasTranscript | Transcript"
Named: TypeAlias = "AnySelector | str"

CLEARED: Final = "[This result was removed to save room. Call the tool again if it is needed.]"
DROPPED: Final = "[Earlier parts of this conversation were left out to save room.]"

_FORMAT: Final = "lutum_py.view"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class View:
    """Say what of a transcript is sent; each method that cuts gives a new view.

    Keep one beside its transcript, as in `view = view.fit(session.transcript, ...)` before each
    turn, and pass it on with `.view(view)`. It holds for its transcript and what that grows into,
    a branch or a reloaded one too.

    Args:
        cuts: What goes out otherwise, the newest last; the methods make them.

    Example:
        >>> from lutum_py import Transcript
        >>> transcript = Transcript()
        >>> for text in ("one", "two"):
        ...     transcript.push(Message("user", text))
        ...     transcript.append_turn(AssistantTurn(text=f"{text} it is"))
        >>> view = View().summarise(transcript, (0, 2), "They counted to one.")
        >>> [item.text for item in view.of(transcript)]
        ['They counted to one.', 'two', 'two it is']
        >>> len(transcript)
        4
    """

    cuts: tuple[Cut, ...] = ()

    def __post_init__(self) -> None:
        cuts: object = self.cuts
        if not isinstance(cuts, tuple) or not all(isinstance(cut, Cut) for cut in cuts):
            raise MisuseError.of_field("View", "cuts", "a tuple of `Cut`s", cuts)

    def of(self, target: Target, ephemeral: Iterable[tuple[int, Message]] = ()) -> TranscriptView:
        """Give what is sent, for a dialect's `messages(...)` or the items of a `TurnRequest`.

        Args:
            target: A session or transcript; what it has now is meant, whatever comes to it later.
            ephemeral: Pairs of a place in the transcript and a message that is said before the item
                there, in this request alone. One inside a cut follows it.

        Returns:
            A sequence that copies nothing of the transcript. Pass it on as it is; a list of its
            items does not know where was cut.

        Raises:
            ViewError: The view was made for another transcript, or an ephemeral message would stand
                inside of a round.
            MisuseError: `ephemeral` holds something else.
        """
        transcript = _transcript_of(target)
        front = front_of(transcript, self.cuts)
        placed = _placed(transcript, ephemeral) if ephemeral else ()
        return TranscriptView(transcript, len(transcript._items), placed, front)

    def clear_results(
        self,
        target: Target,
        *,
        older_than: int,
        keep: Iterable[Named] = (),
        text: str = CLEARED,
    ) -> View:
        """Let older results read a short text; ids, names, arguments and statuses stay.

        Args:
            target: The session or transcript.
            older_than: How many model turns from the end keep their results, and all after them.
            keep: Tools whose results stay, by selector or wire name.
            text: What the model reads instead. A result that is no longer than it stays.

        Raises:
            InvalidValueError: The text is blank, or `older_than` below 0.
            ViewError: The view was made for another transcript.
        """
        step = _Step(self, target)
        stop = step.turn_from_end(older_than)
        return step.edit("clear", stop, names_of(keep), text=_not_blank("clear_results", text))

    def cap_results(
        self, target: Target, *, max_bytes: int, older_than: int = 0, keep: Iterable[Named] = ()
    ) -> View:
        """Let longer results read their head and tail.

        Args:
            target: The session or transcript.
            max_bytes: How much of a result is read at most, in bytes of UTF-8; at least 200.
            older_than: How many model turns from the end keep their results, and all after them.
            keep: Tools whose results stay, by selector or wire name.

        Raises:
            InvalidValueError: `max_bytes` is below 200, or `older_than` below 0.
            ViewError: The view was made for another transcript.
        """
        if _number("max_bytes", max_bytes) < LEAST_BYTES:
            raise InvalidValueError(
                f"`max_bytes` is {max_bytes}, which leaves no room beside the notice that the "
                f"result was cut. Give {LEAST_BYTES} at least."
            )
        step = _Step(self, target)
        stop = step.turn_from_end(older_than)
        return step.edit("cap", stop, names_of(keep), max_bytes=max_bytes)

    def drop_rounds(
        self,
        target: Target,
        *,
        older_than: int | None = None,
        span: tuple[int, int] | None = None,
        notice: str = DROPPED,
    ) -> View:
        """Put a notice in place of older rounds, and of what was said between them.

        What stays of a span: instructions, which go before the notice, and the last question before
        what is kept, which goes after it.

        Args:
            target: The session or transcript.
            older_than: How many model turns from the end stay. The span then begins at the first
                model turn, or behind the last summary.
            span: The first item to drop and the first behind them, instead.
            notice: What the model reads, as a user message.

        Raises:
            ViewError: The span is empty, splits a round, overlaps another cut that it cannot take
                in, or has what the model has not answered yet; or the view is of another
                transcript.
            InvalidValueError: The notice is blank.
            MisuseError: Neither `older_than` nor `span` is given, or both.
        """
        if (older_than is None) is (span is None):
            raise MisuseError(
                "`drop_rounds` takes either `older_than=`, a number of model turns, or `span=`, a "
                "pair of positions."
            )
        notice = _not_blank("drop_rounds", notice)
        step = _Step(self, target)
        if older_than is None:
            return step.replace_span("drop", span, notice)
        stop = step.turn_from_end(older_than)
        start = step.droppable_from()
        return step.drop(start, stop, notice) or self

    def summarise(self, target: Target, span: tuple[int, int], text: str) -> View:
        """Put a summary in place of a span; who writes it is your business.

        Instructions in the span stay, before the summary. Drops and summaries that lie inside it
        are taken in.

        Args:
            target: The session or transcript.
            span: The first item that it stands for, and the first behind them.
            text: The summary, which the model reads as a user message.

        Raises:
            ViewError: As in `drop_rounds`.
            InvalidValueError: The text is blank.
        """
        return _Step(self, target).replace_span("summary", span, _not_blank("summarise", text))

    def fit(
        self,
        target: Target,
        *,
        limit_tokens: int,
        at_least: int,
        keep_last: int = 3,
        keep: Iterable[Named] = (),
        count: Count | None = None,
        overhead: int = 0,
    ) -> View:
        """Cut what is needed to stay within a limit, and nothing while the request does.

        Above the limit, results are cleared, the oldest first, then the oldest rounds dropped, as
        far as needed to free `at_least`. Where that cannot be freed, nothing is cut: a small cut
        would cost the provider's cache and come again at once.

        Args:
            target: The session or transcript.
            limit_tokens: What the next request may have.
            at_least: What a cut has to free below the limit, in tokens.
            keep_last: How many model turns from the end stay whole, and all after them.
            keep: Tools whose results are not cleared, by selector or wire name.
            count: As in `tokens`.
            overhead: As in `tokens`.

        Returns:
            A new view, or this one. Whether it is enough, `tokens` tells.

        Raises:
            InvalidValueError: `at_least` is not between 0 and the limit, or another number is below
                what it can be.
            ViewError: The view was made for another transcript.
        """
        if not 0 <= _number("at_least", at_least) < _number("limit_tokens", limit_tokens):
            raise InvalidValueError(
                f"`at_least` is {at_least} of `limit_tokens` {limit_tokens}. Give what a cut has "
                "to free, from 0 to less than the limit."
            )
        _at_least_zero("keep_last", keep_last)
        step = _Step(self, target, count, overhead)
        if step.tokens <= limit_tokens:
            return self
        goal = limit_tokens - at_least
        stop = step.turn_from_end(keep_last)
        view = step.edit("clear", stop, names_of(keep), text=CLEARED, need=step.tokens - goal)
        then = _Step(view, target, count, overhead)
        if then.tokens > goal:
            view = then.drop(then.droppable_from(), stop, DROPPED, need=then.tokens - goal) or view
            then = _Step(view, target, count, overhead)
        return self if step.tokens - then.tokens < max(at_least, 1) else view

    def tokens(self, target: Target, *, count: Count | None = None, overhead: int = 0) -> int:
        """Estimate the input tokens of the next request.

        What the provider reported for the last turn is taken as it is. What came after is estimated
        by the tokens a byte of this conversation since its last cut, or a quarter.

        Args:
            target: The session or transcript.
            count: Counts the tokens of a text instead, once for each text; pass the same function
                every time.
            overhead: What tools and framing take, for as long as no usage is known.

        Raises:
            ViewError: The view was made for another transcript.
        """
        return _Step(self, target, count, overhead).tokens

    def since(self, old: View) -> tuple[Cut, ...]:
        """Give the cuts that are new; what a cut freed before is not counted again."""
        new: list[Cut] = []
        gone = [cut for cut in old.cuts if cut not in self.cuts]
        for cut in self.cuts:
            if cut not in old.cuts:
                inside = [each for each in gone if _takes_in(cut, each)]
                new.append(replace(cut, freed=cut.freed - sum(each.freed for each in inside)))
        return tuple(new)

    def dump_json(self) -> str:
        """Encode the view; it is small, however long its transcript."""
        data = {"format": _FORMAT, "version": _VERSION, "cuts": [*map(dump_cut, self.cuts)]}
        return dump_saved(data, SavedDataError, "The view")

    @classmethod
    def load_json(cls, text: str | bytes) -> View:
        """Read what `dump_json` gave.

        Raises:
            SavedDataError: The text is no view, of an unknown version, or damaged.
        """
        saved = open_saved(
            text, form=_FORMAT, versions=(_VERSION,), error=SavedDataError, what="view"
        )
        cuts = tuple(map(load_cut, saved.each("cuts")))
        spans = sorted((cut.start, cut.stop) for cut in cuts if cut.is_span)
        for (_, before), (start, _) in pairwise(spans):
            if start < before:
                raise saved.wrong("cuts", f"two spans have item {start}")
        return cls(cuts)


class _Step:
    """A view and the transcript as it is now: how heavy, and where it may be cut."""

    def __init__(
        self, view: View, target: Target, count: Count | None = None, overhead: int = 0
    ) -> None:
        self.view = view
        self.transcript = transcript = _transcript_of(target)
        self.items = transcript._items
        self.front = front_of(transcript, view.cuts)
        if count is not None and not callable(count):
            raise MisuseError(
                f"`count` takes a function that gives the tokens of a text, not {shorten(count)}."
            )
        self.ledger = ledger_of(transcript, count)
        self.count = count
        self.overhead = _at_least_zero("overhead", overhead)
        self.base, self.rate, self.since = self._base()

    def _base(self) -> tuple[float | None, float, int]:
        """Give the tokens up to a position, as far as reported; the rate, and that position."""
        cuts, ledger = self.view.cuts, self.ledger
        at = cuts[-1].at if cuts else 0
        report = ledger.last_report(at)
        if report is not None:
            in_bytes = ledger if self.count is None else ledger_of(self.transcript)
            if too_light(report.tokens, self._size(in_bytes, report.position)):
                return None, USUAL_RATE if self.count is None else 1.0, 0
            return report.tokens, ledger.rate, report.position
        if cuts and cuts[-1].left is not None:
            return cuts[-1].left, ledger.rate, at
        return None, ledger.rate, 0

    def _size(self, ledger: Ledger, until: int) -> Size:
        """Give the size of what is sent of the items before a position."""
        front = self.front
        size = ledger.between(front.end, until)
        if not front.end:
            return size
        of_front = ledger.front_size(front, self.items)
        return Size(size.known + of_front.known, size.loose + of_front.loose)

    @property
    def tokens(self) -> int:
        """The input tokens of the next request."""
        if self.base is None:
            size = self._size(self.ledger, len(self.items))
            return ceil(self.overhead + size.tokens(self.rate))
        size = self.ledger.between(self.since, len(self.items))
        return ceil(self.base + size.tokens(self.rate))

    def turn_from_end(self, number: int) -> int:
        """Give the position of a turn, counted from the end: nothing is cut from there on.

        The last turn stays where 0 is given, because its results were not answered yet.
        """
        turns = self.ledger.turns
        at = len(turns) - max(_at_least_zero("older_than", number), 1)
        return turns[at] if at >= 0 else 0

    def droppable_from(self) -> int:
        """Give the first position that rounds are dropped from."""
        turns = self.ledger.turns
        first = turns[0] if turns else len(self.items)
        return max([first, *(cut.stop for cut in self.view.cuts if cut.kind == "summary")])

    def edit(
        self,
        kind: CutKind,
        stop: int,
        keep: tuple[str, ...],
        *,
        text: str | None = None,
        max_bytes: int | None = None,
        need: float | None = None,
    ) -> View:
        """Change what is read of the results before a position, as far as needed."""
        cut = Cut(
            kind=kind,
            start=0,
            stop=max(stop, 1),
            text=text,
            at=len(self.items),
            freed=0,
            lost_from=0,
            keep=keep,
            max_bytes=max_bytes,
        )
        changed: list[int] = []
        freed = 0.0
        for position, item in self._sent(stop):
            new = edited(item, position, [cut])
            if new is item:
                continue
            changed.append(position)
            if need is not None:
                freed += self._tokens_at(position, item) - self._tokens_at(position, new)
                if freed >= need:
                    break
        if not changed:
            return self.view
        joined = [each for each in self.view.cuts if each.form == cut.form]
        start = min([changed[0], *(each.start for each in joined)])
        stop = max([changed[-1] + 1, *(each.stop for each in joined)])
        return self._with(replace(cut, start=start, stop=stop), joined)

    def _sent(self, stop: int) -> Iterable[tuple[int, TranscriptItem]]:
        """Go through what is sent of the items before a position, each with its position."""
        sent = TranscriptView(self.transcript, len(self.items), (), self.front)
        positions = self.front.positions
        if stop < self.front.end:
            # What a span stands for is no result, and all before it is in order.
            return (each for each in sent.numbered(0, len(positions)) if each[0] < stop)
        return sent.numbered(0, sent.index_of(stop))

    def _tokens_at(self, position: int, item: TranscriptItem) -> float:
        return self.ledger.size_at(position, item, self.items).tokens(self.rate)

    def drop(self, start: int, stop: int, notice: str, need: float | None = None) -> View | None:
        """Drop rounds from a position on, as far as needed; None where nothing is to drop."""
        turns = self.ledger.turns
        spans = [each for each in self.view.cuts if each.is_span]
        places = [
            place
            for place in (*turns[bisect_right(turns, start) : bisect_left(turns, stop)], stop)
            if place > start and not any(each.start < place < each.stop for each in spans)
        ]
        if not places:
            return None
        first = 0 if need is not None else len(places) - 1
        if need is not None:
            # Each round is as heavy as it is sent; what a span keeps is made up for below.
            sizes = dict.fromkeys(places, 0.0)
            for position, item in self._sent(places[-1]):
                if position >= start:
                    place = places[bisect_right(places, position)]
                    sizes[place] += self._tokens_at(position, item)
            first = min(bisect_left([*accumulate(sizes.values())], need), len(places) - 1)
        view = None
        for place in places[first:]:
            cut = self._span("drop", start, place, notice)
            if self._is_empty(cut):
                continue
            view = self._replaced(cut)
            if need is None or self.tokens - self.like(view).tokens >= need:
                return view
        return view

    def like(self, view: View) -> _Step:
        """Look at another view in the same way."""
        return _Step(view, self.transcript, self.count, self.overhead)

    def replace_span(self, kind: CutKind, span: Any, text: str) -> View:
        """Put a message in place of a span that somebody chose."""
        start, stop = self._checked(span)
        cut = self._span(kind, start, stop, text)
        if self._is_empty(cut):
            raise ViewError(
                f"The span from {start} to {stop} is empty: it has nothing but what is never cut, "
                f"instructions and the last question. {self._places()}"
            )
        for each in self.view.cuts:
            overlaps = each.is_span and each.start < stop and start < each.stop
            if overlaps and not _takes_in(cut, each):
                raise ViewError(
                    f"The span from {start} to {stop} overlaps the {each.kind} of items "
                    f"{each.start} to {each.stop}. Begin at {each.stop}, or end at {each.start}."
                )
        return self._replaced(cut)

    def _span(self, kind: CutKind, start: int, stop: int, text: str) -> Cut:
        at = len(self.items)
        return Cut(kind=kind, start=start, stop=stop, text=text, at=at, freed=0, lost_from=start)

    def _is_empty(self, cut: Cut) -> bool:
        before, after = carried(self.items, cut)
        return len(before) + len(after) == cut.stop - cut.start

    def _checked(self, span: Any) -> tuple[int, int]:
        """Give the ends of a span, if it may begin and end there."""
        if not is_sequence(span) or len(span) != 2:
            raise MisuseError(
                f"A span is a pair of positions, as in `(1, 9)`, not {shorten(span)}."
            )
        start, stop = (_number("span", each) for each in span)
        last = self._answered()
        if not 0 <= start < stop <= len(self.items):
            raise ViewError(
                f"The span from {start} to {stop} is empty, or not in this transcript of "
                f"{len(self.items)} items. {self._places()}"
            )
        for name, place in (("begins", start), ("ends", stop)):
            if not self._is_place(place):
                raise ViewError(
                    f"The span from {start} to {stop} {name} inside of a round: its turn and "
                    f"results go or stay together. {self._places(place)}"
                )
        if stop > last:
            raise ViewError(
                f"The span from {start} to {stop} has what the model has not answered yet, from "
                f"item {last} on. {self._places(last)}"
            )
        return start, stop

    def _answered(self) -> int:
        """Give the first position that no model turn has answered, its own round included."""
        turns = self.ledger.turns
        if not turns:
            return 0
        last = self.items[turns[-1]]
        has_calls = isinstance(last, AssistantTurn) and bool(last.tool_calls)
        return turns[-1] if has_calls else turns[-1] + 1

    def _is_place(self, place: int) -> bool:
        return not is_inside(self.items, place)

    def _places(self, near: int | None = None) -> str:
        """Name places where a span may begin or end."""
        last = self._answered()
        if not last:
            return "No model turn is answered, so there is nothing to cut yet."
        if near is None:
            return f"It may begin at 0 or later, and end at {last} or earlier."
        before = next(place for place in range(min(near, last), -1, -1) if self._is_place(place))
        after = next((at for at in range(near, last + 1) if self._is_place(at)), None)
        both = f"{before}" if after in (None, before) else f"{before} and {after}"
        return f"Places that would do: {both}."

    def _replaced(self, cut: Cut) -> View:
        """Put in a span, with the spans inside it, and those beside it that say the same."""
        gone = [each for each in self.view.cuts if _takes_in(cut, each)]
        for each in self.view.cuts:
            if each.form == cut.form == ("drop", cut.text, (), None) and each not in gone:
                if each.stop == cut.start:
                    cut, gone = replace(cut, start=each.start), [*gone, each]
                elif cut.stop == each.start:
                    cut, gone = replace(cut, stop=each.stop), [*gone, each]
        return self._with(cut, gone)

    def _with(self, cut: Cut, gone: list[Cut]) -> View:
        """Give the view with a new cut in place of others, or the same where nothing changes."""
        rest = tuple(each for each in self.view.cuts if each not in gone)
        cut = replace(cut, digest=digest_of_item(self.items[cut.stop - 1]))
        same = [(each.start, each.stop, each.form) for each in gone]
        if same == [(cut.start, cut.stop, cut.form)]:
            return self.view
        tried = View((*rest, cut))
        then = self.like(tried)
        size, smaller = (each._size(self.ledger, len(self.items)) for each in (self, then))
        freed = round(size.tokens(self.rate) - smaller.tokens(self.rate))
        lost_from = self._first_difference(then)
        if lost_from is None:
            return self.view
        cut = replace(
            cut,
            freed=freed + sum(each.freed for each in gone),
            lost_from=lost_from,
            left=None if self.base is None else max(self.tokens - freed, 0),
        )
        made = View((*rest, cut))
        # What goes out is the same, whatever the cut says of itself.
        fronts = self.transcript.kept.fronts
        fronts.take(tried.cuts)
        fronts.put(made.cuts, then.front)
        return made

    def _first_difference(self, other: _Step) -> int | None:
        """Give the position of the first item that another view sends otherwise."""
        end = max(self.front.end, other.front.end)
        views = [
            TranscriptView(self.transcript, len(self.items), (), each.front)
            for each in (self, other)
        ]
        mine, theirs = (view.numbered(0, view.index_of(end)) for view in views)
        for one, two in zip_longest(mine, theirs):
            position, item = one or (end, None)
            if item is None or two is None or item != two[1]:
                return position
            if self._is_rethought(other, position, item):
                return position
        return None

    def _is_rethought(self, other: _Step, position: int, item: TranscriptItem) -> bool:
        """Tell whether the reasoning of a turn is bound to what only one of two views sends."""
        return (
            isinstance(item, AssistantTurn)
            and any(isinstance(each, ReasoningItem) for each in item.items)
            and self.front.is_changed_before(position) != other.front.is_changed_before(position)
        )


def _takes_in(cut: Cut, other: Cut) -> bool:
    """Tell whether a cut goes in place of another: a summary of anything, a drop of drops."""
    is_inside = cut.start <= other.start and other.stop <= cut.stop
    if cut.is_span:
        kinds = ("drop",) if cut.kind == "drop" else ("drop", "summary")
        return is_inside and other.kind in kinds
    return is_inside and other.form == cut.form


def _transcript_of(target: Any) -> Transcript:
    transcript = getattr(target, "transcript", target)
    if not isinstance(transcript, Transcript):
        raise MisuseError(f"A view is of a Session or a Transcript, not of {shorten(target)}.")
    return transcript


def _placed(
    transcript: Transcript, ephemeral: Iterable[tuple[int, Message]]
) -> tuple[tuple[int, Message], ...]:
    """Take ephemeral messages in the order of their places."""
    items, given = transcript._items, tuple(ephemeral)
    for each in given:
        if not (is_sequence(each) and len(each) == 2 and isinstance(each[1], Message)):
            raise MisuseError(
                "`ephemeral` takes pairs of a place and a Message, as in "
                f'`[(len(transcript), Message("user", "..."))]`, not {shorten(each)}.'
            )
        place = _number("ephemeral", each[0])
        if not 0 <= place <= len(items) or is_inside(items, place):
            raise ViewError(
                f"An ephemeral message cannot stand at {shorten(place)}: that is inside of a "
                f"round, or not in this transcript of {len(items)} items. `len(transcript)` is its "
                "end."
            )
    return tuple(sorted(given, key=lambda pair: pair[0]))


def names_of(keep: Any) -> tuple[str, ...]:
    """Give the wire names of tools."""
    listed = [keep] if isinstance(keep, str | AnySelector) else keep
    try:
        return tuple(sorted({each if isinstance(each, str) else each.name for each in listed}))
    except (AttributeError, TypeError):
        raise MisuseError(
            f"`keep` takes tools, by selector or wire name, as in `[AppTools.get_user]`, not "
            f"{shorten(keep)}."
        ) from None


def _number(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise MisuseError(f"`{name}` takes a whole number, not {shorten(given)}.")
    return given


def _at_least_zero(name: str, given: Any) -> int:
    if _number(name, given) < 0:
        raise InvalidValueError(f"`{name}` is {given}. Give 0 or more.")
    return given  # type: ignore[no-any-return]


def _not_blank(method: str, text: Any) -> str:
    if not isinstance(text, str):
        raise MisuseError(f"`{method}` takes a text that the model reads, not {shorten(text)}.")
    if not text.strip():
        raise InvalidValueError(
            f"`{method}` got a blank text, which some providers refuse and which tells the model "
            "nothing. Say what is missing."
        )
    return text
