"""How a cut is made: where a transcript may be cut, how much has to go, and what that frees."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, zip_longest
from math import ceil
from typing import Any

from .._text.json import is_sequence, is_whole, shorten
from .._transcript.assistant import AssistantTurn, ReasoningItem, ServerToolItem, callers_of
from .._transcript.place import digest_of_item
from .._transcript.request import TranscriptItem
from .._transcript.transcript import Transcript, TranscriptView, kept_of
from ..errors import InvalidValueError, MisuseError, ViewError
from .cut import Cut, CutKind, carried, edited, front_of, is_inside
from .ledger import USUAL_RATE, Count, Ledger, Size, ledger_of, too_light


class Cutting:
    """The cuts of a view, and the transcript as it is now: how heavy, and where it may be cut.

    Each method that makes a cut returns all cuts; the present ones if nothing changes.
    """

    def __init__(
        self,
        cuts: tuple[Cut, ...],
        transcript: Transcript,
        count: Count | None = None,
        overhead: int = 0,
    ) -> None:
        self.cuts = cuts
        self.transcript = transcript
        self.items = transcript._items
        self.front = front_of(transcript, cuts)
        self.sent = TranscriptView(transcript, len(self.items), (), self.front)
        if count is not None and not callable(count):
            raise MisuseError(
                f"`count` takes a function that gives the tokens of a text, not {shorten(count)}."
            )
        self.ledger = ledger_of(transcript, count)
        self.count = count
        self.overhead = at_least_zero("overhead", overhead)
        self.base, self.rate, self.since = self._base()

    # A provider's figure is used only while it counts what is still sent. With turns at 1, 5 and 9,
    # a report of 8,000 tokens at 9, and no cut since, 12 items weigh 8,000 plus an estimate of
    # items 9 to 11. After a cut at 10 that figure is too large, so the cut itself kept what was
    # left of it (`Cut.left`), and counting goes on from there.
    def _base(self) -> tuple[float | None, float, int]:
        """Return the tokens up to a position, as far as reported; the rate, and that position."""
        cuts, ledger = self.cuts, self.ledger
        # Without a figure to go on from, those that were reported say nothing of the rate either:
        # one that is not believed before a cut is not believed after it.
        nothing = (None, USUAL_RATE if self.count is None else 1.0, 0)
        at = cuts[-1].at if cuts else 0
        report = ledger.reports[-1] if ledger.reports else None
        if report is not None and report.position >= at:
            # The test is made in bytes even if a user's function counts: `_LIGHTEST` is tokens a
            # byte.
            in_bytes = ledger if self.count is None else ledger_of(self.transcript)
            if too_light(report.tokens, self._size(in_bytes, report.position)):
                return nothing
            return report.tokens, ledger.rate, report.position
        if cuts and cuts[-1].left is not None:
            return cuts[-1].left, ledger.rate, at
        return nothing

    def _size(self, ledger: Ledger, until: int) -> Size:
        """Return the size of what is sent of the items before a position."""
        front = self.front
        size = ledger.between(front.end, until)
        if not front.end:
            return size
        of_front = ledger.front_size(front, self.items)
        return Size(size.known + of_front.known, size.estimated + of_front.estimated)

    @property
    def tokens(self) -> int:
        """The input tokens of the next request."""
        if self.base is None:
            size = self._size(self.ledger, len(self.items))
            return ceil(self.overhead + size.tokens(self.rate))
        size = self.ledger.between(self.since, len(self.items))
        return ceil(self.base + size.tokens(self.rate))

    def turn_from_end(self, number: int) -> int:
        """Return the position of a turn, counted from the end: nothing is cut from there on.

        The last turn stays where 0 is given, because its results were not answered yet.
        """
        turns = self.ledger.turns
        # With turns at 1, 5 and 9, `older_than=2` gives 5: items 0 to 4 may be cut. With fewer
        # turns than asked for there is nothing before them, hence 0.
        at = len(turns) - max(at_least_zero("older_than", number), 1)
        return turns[at] if at >= 0 else 0

    def edit(
        self,
        kind: CutKind,
        stop: int,
        keep: tuple[str, ...],
        *,
        text: str | None = None,
        max_bytes: int | None = None,
        need: float | None = None,
    ) -> tuple[Cut, ...]:
        """Change what is read of the results before a position, as far as needed."""
        # The span is not known before the results are gone through, so all of them are tried with a
        # cut that begins at 0, and the one that is kept is narrowed to what did change.
        cut = self._cut(kind, 0, max(stop, 1), text, keep=keep, max_bytes=max_bytes)
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
            return self.cuts
        return self._with(replace(cut, start=changed[0], stop=changed[-1] + 1))

    def _sent(self, stop: int) -> Iterable[tuple[int, TranscriptItem]]:
        """Go through what is sent of the items before a position, each with its position."""
        front, sent = self.front, self.sent
        if stop < front.end:
            # What a span stands for is not a result, and all before it is in order.
            return (each for each in sent.numbered(0, len(front.items)) if each[0] < stop)
        return sent.numbered(0, sent.index_of(stop))

    def _tokens_at(self, position: int, item: TranscriptItem) -> float:
        return self.ledger.size_at(position, item, self.items).tokens(self.rate)

    def drop(self, stop: int, notice: str, need: float | None = None) -> tuple[Cut, ...]:
        """Drop the first rounds before a position, as far as needed."""
        turns = self.ledger.turns
        # A summary was paid for with a call of the model, so a drop never takes it in by itself.
        summed_up = [cut.stop for cut in self.cuts if cut.kind == "summary"]
        start = max([turns[0] if turns else len(self.items), *summed_up])
        spans = [(each.start, each.stop - 1) for each in self.cuts if each.is_span]
        spans += self.programs
        # Each place is the end of a round: the turns after `start`, then `stop`. One that lies
        # inside an earlier span is not a place, since a cut may not split another, nor a program.
        places = [
            place
            for place in (*turns[bisect_right(turns, start) : bisect_left(turns, stop)], stop)
            if place > start and not any(first < place <= last for first, last in spans)
        ]
        if not places:
            return self.cuts
        first = len(places) - 1
        if need is not None:
            # Each round is as heavy as it is sent; what a span keeps is made up for below.
            sizes = dict.fromkeys(places, 0.0)
            for position, item in self._sent(places[-1]):
                if position >= start:
                    place = places[bisect_right(places, position)]
                    sizes[place] += self._tokens_at(position, item)
            first = min(bisect_left([*accumulate(sizes.values())], need), first)
        cuts = self.cuts
        # `sizes` says what goes, but not what a span brings: its notice, and the questions it
        # carries. So the first guess may free too little; each further round is tried for real.
        for place in places[first:]:
            cut = self._cut("drop", start, place, notice)
            if self._is_empty(cut):
                continue
            cuts = self._with(cut)
            if need is None or self.tokens - self.like(cuts).tokens >= need:
                break
        return cuts

    def like(self, cuts: tuple[Cut, ...]) -> Cutting:
        """Look at other cuts in the same way."""
        return Cutting(cuts, self.transcript, self.count, self.overhead)

    def replace_span(self, kind: CutKind, span: Any, text: str) -> tuple[Cut, ...]:
        """Put a message in place of a span that somebody chose."""
        start, stop = self._checked(span)
        cut = self._cut(kind, start, stop, text)
        if self._is_empty(cut):
            never = "instructions and the last question"
            raise self._no_span(span, f"holds only what is never cut, {never}")
        for each in self.cuts:
            overlaps = each.is_span and each.start < stop and start < each.stop
            if overlaps and not takes_in(cut, each):
                raise ViewError(
                    f"The span from {start} to {stop} overlaps the {each.kind} of items "
                    f"{each.start} to {each.stop}. Begin at {each.stop}, or end at {each.start}."
                )
        return self._with(cut)

    def _no_span(self, span: Sequence[int], why: str, near: int | None = None) -> ViewError:
        return ViewError(f"The span from {span[0]} to {span[1]} {why}. {self._places(near)}")

    def _cut(self, kind: CutKind, start: int, stop: int, text: str | None, **how: Any) -> Cut:
        """Make a cut of now; what it frees is worked out when it is put in."""
        span: dict[str, Any] = {"start": start, "stop": stop, "lost_from": start}
        return Cut(kind=kind, text=text, at=len(self.items), freed=0, **span, **how)

    def _is_empty(self, cut: Cut) -> bool:
        before, after = carried(self.items, cut)
        return len(before) + len(after) == cut.stop - cut.start

    def _checked(self, span: Any) -> tuple[int, int]:
        """Return the ends of a span, if it may start and end there."""
        if not is_sequence(span) or len(span) != 2:
            raise MisuseError(
                f"A span is a pair of positions, as in `(1, 9)`, not {shorten(span)}."
            )
        start, stop = (whole_number("span", each) for each in span)
        last = self._answered()
        if not 0 <= start < stop <= len(self.items):
            where = f"this transcript of {len(self.items)} items"
            raise self._no_span(span, f"is empty, or not in {where}")
        for name, place in (("begins", start), ("ends", stop)):
            if around := self._around(place):
                why = f"{name} inside of a {around} go or stay together"
                raise self._no_span(span, why, place)
        if stop > last:
            why = f"has what the model has not answered yet, from item {last} on"
            raise self._no_span(span, why, last)
        return start, stop

    @cached_property
    def programs(self) -> list[tuple[int, int]]:
        """The places of the first and the last turn of each program that a provider runs."""
        return programs_in(self.items)

    def _around(self, place: int) -> str | None:
        """Name what a place is inside of, and what of it belongs together; None if no such."""
        if any(first < place <= last for first, last in self.programs):
            return "program: its turns"
        return "round: its turn and results" if is_inside(self.items, place) else None

    def _answered(self) -> int:
        """Return the first position that no model turn has answered, its own round included."""
        turns = self.ledger.turns
        if not turns:
            return 0
        last = self.items[turns[-1]]
        has_calls = isinstance(last, AssistantTurn) and bool(last.tool_calls)
        return turns[-1] if has_calls else turns[-1] + 1

    def _places(self, near: int | None = None) -> str:
        """Name places where a span may start or end."""
        last = self._answered()
        if not last:
            return "No model turn is answered, so there is nothing to cut yet."
        if near is None:
            return f"It may start at 0 or later, and end at {last} or earlier."
        around = self._around
        before = next(place for place in range(min(near, last), -1, -1) if not around(place))
        after = next((place for place in range(near, last + 1) if not around(place)), before)
        both = f"{before}" if after == before else f"{before} and {after}"
        return f"Places that would do: {both}."

    def _with(self, cut: Cut) -> tuple[Cut, ...]:
        """Put in a cut, joined to those of its form beside it, in place of those inside it."""
        for each in self.cuts:
            is_beside = each.start <= cut.stop and cut.start <= each.stop
            if each.form == cut.form and (not cut.is_span or (cut.kind == "drop" and is_beside)):
                start, stop = min(cut.start, each.start), max(cut.stop, each.stop)
                cut = replace(cut, start=start, stop=stop)
        gone = [each for each in self.cuts if takes_in(cut, each)]
        rest = tuple(each for each in self.cuts if each not in gone)
        cut = replace(cut, digest=digest_of_item(self.items[cut.stop - 1]))
        same = [(each.start, each.stop, each.form) for each in gone]
        if same == [(cut.start, cut.stop, cut.form)]:
            return self.cuts
        tried = (*rest, cut)
        then = self.like(tried)
        size, smaller = (each._size(self.ledger, len(self.items)) for each in (self, then))
        freed = round(size.tokens(self.rate) - smaller.tokens(self.rate))
        lost_from = self._first_difference(then)
        if lost_from is None:
            return self.cuts
        cut = replace(
            cut,
            freed=freed + sum(each.freed for each in gone),
            lost_from=lost_from,
            left=None if self.base is None else max(self.tokens - freed, 0),
        )
        made = (*rest, cut)
        # What goes out is the same, whatever the cut says about itself.
        fronts = kept_of(self.transcript).fronts
        fronts.take(tried)
        fronts.put(made, then.front)
        return made

    def _first_difference(self, other: Cutting) -> int | None:
        """Return the position of the first item that another view sends otherwise."""
        end = max(self.front.end, other.front.end)
        mine, theirs = (view.numbered(0, view.index_of(end)) for view in (self.sent, other.sent))
        for one, two in zip_longest(mine, theirs):
            position, item = one or (end, None)
            if item is None or two is None or item != two[1]:
                return position
            if self._is_rethought(other, position, item):
                return position
        return None

    def _is_rethought(self, other: Cutting, position: int, item: TranscriptItem) -> bool:
        """Tell whether the reasoning of a turn is bound to what only one of two views sends."""
        return (
            isinstance(item, AssistantTurn)
            and any(isinstance(each, ReasoningItem) for each in item.items)
            and self.front.is_changed_before(position) != other.front.is_changed_before(position)
        )


def programs_in(items: Sequence[TranscriptItem]) -> list[tuple[int, int]]:
    """Return the places of the first and the last turn of each program that a provider runs.

    One that calls tools goes on through several turns, and no provider takes the later ones without
    the turn in which it begins.
    """
    turns = [(at, item) for at, item in enumerate(items) if isinstance(item, AssistantTurn)]
    ids = {caller for _, turn in turns for caller in callers_of(turn).values()}
    places: dict[str, list[int]] = {id: [] for id in ids}
    for at, turn in turns if ids else ():
        ran = [each.payload for each in turn.items if isinstance(each, ServerToolItem)]
        said = [each.get(key) for each in ran for key in ("call_id", "id", "tool_use_id")]
        named = {*callers_of(turn).values(), *(each for each in said if isinstance(each, str))}
        for id in ids & named:
            places[id].append(at)
    return [(found[0], found[-1]) for found in places.values()]


def takes_in(cut: Cut, other: Cut) -> bool:
    """Tell whether a cut goes in place of another: a summary of anything, a drop of drops."""
    is_inside = cut.start <= other.start and other.stop <= cut.stop
    if cut.is_span:
        kinds = ("drop",) if cut.kind == "drop" else ("drop", "summary")
        return is_inside and other.kind in kinds
    return is_inside and other.form == cut.form


def whole_number(name: str, given: Any) -> int:
    if not is_whole(given):
        raise MisuseError(f"`{name}` takes a whole number, not {shorten(given)}.")
    return given


def at_least_zero(name: str, given: Any) -> int:
    if whole_number(name, given) < 0:
        raise InvalidValueError(f"`{name}` is {given}. Give 0 or more.")
    return given  # type: ignore[no-any-return]
