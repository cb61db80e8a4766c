"""`View`: what of a transcript is sent, as a value beside it; the transcript is never changed.

A view is a few cuts. What goes out in place of the items that they concern is worked out once for
each view, and what follows them goes out as it is: so between two cuts every request is the last
one with something at its end, and costs no more for a longer transcript.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final, TypeAlias

from .._call.selector import AnySelector
from .._declare.offer import Named
from .._text.json import is_sequence, shorten
from .._transcript.message import Message
from .._transcript.saved import VIEW, dump_saved, open_saved
from .._transcript.transcript import HasTranscript, Transcript, TranscriptView, transcript_of
from ..errors import InvalidValueError, MisuseError, SavedDataError, ViewError
from .cut import LEAST_BYTES, Cut, front_of, is_inside, load_cut
from .cutting import Cutting, at_least_zero, takes_in, whole_number
from .ledger import Count

Target: TypeAlias = "HasTranscript | Transcript"

CLEARED: Final = "[This result was removed to save room. Call the tool again if it is needed.]"
_NEITHER: Final = "A view is of a Session or a Transcript, not of {}. Pass the session."
DROPPED: Final = "[Earlier parts of this conversation were left out to save room.]"


@dataclass(frozen=True, slots=True)
class View:
    """Tell which part of a transcript is sent; each method that cuts returns a new view.

    Keep one beside its transcript, as in `view = view.fit(session.transcript, ...)` before each
    turn, and pass it on with `.view(view)`. It is valid for its transcript when that grows, for its
    branches, and after loading.

    Args:
        cuts: Where it differs from the transcript, the newest last; the methods make them.

    Example:
        >>> from lutum_py import AssistantTurn, Message, Transcript
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
        if not (isinstance(self.cuts, tuple) and all(isinstance(cut, Cut) for cut in self.cuts)):
            raise MisuseError.of_field("View", "cuts", "a tuple of `Cut`s", self.cuts)

    def of(self, target: Target, ephemeral: Iterable[tuple[int, Message]] = ()) -> TranscriptView:
        """Return what is sent, for a dialect's `messages(...)` or the items of a `TurnRequest`.

        Args:
            target: A session or transcript; what it has now is meant, whatever comes to it later.
            ephemeral: Pairs of a place in the transcript and a message that is said before the item
                there, in this request alone. One inside a cut follows it.

        Returns:
            A sequence that copies nothing of the transcript. Pass on this object; a list of its
            items does not tell where it was cut.

        Raises:
            ViewError: The view was made for another transcript, or an ephemeral message would stand
                inside of a round.
            MisuseError: `ephemeral` holds something else.
        """
        transcript = transcript_of(target, _NEITHER)
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
            keep: Tools whose results stay, by selector or wire name. A selector stands for its own
                wire name: one of an inner toolset not for that with a prefix of an outer one.
            text: What the model reads instead. A result that is no longer than it stays.

        Raises:
            InvalidValueError: The text is blank, or `older_than` below 0.
            ViewError: The view was made for another transcript.
        """
        cutting = self._cutting(target)
        stop = cutting.turn_from_end(older_than)
        text = _not_blank("clear_results", text)
        return self._with(cutting.edit("clear", stop, _names_of(keep), text=text))

    def cap_results(
        self, target: Target, *, max_bytes: int, older_than: int = 0, keep: Iterable[Named] = ()
    ) -> View:
        """Let longer results read their head and tail.

        Args:
            target: The session or transcript.
            max_bytes: How much of a result is read at most, in bytes of UTF-8; at least 200.
            older_than: How many model turns from the end keep their results, and all after them.
            keep: Tools whose results stay, by selector or wire name. A selector stands for its own
                wire name: one of an inner toolset not for that with a prefix of an outer one.

        Raises:
            InvalidValueError: `max_bytes` is below 200, or `older_than` below 0.
            ViewError: The view was made for another transcript.
        """
        if whole_number("max_bytes", max_bytes) < LEAST_BYTES:
            raise InvalidValueError(
                f"`max_bytes` is {max_bytes}, which leaves no room beside the notice that the "
                f"result was cut. Give {LEAST_BYTES} at least."
            )
        cutting = self._cutting(target)
        stop = cutting.turn_from_end(older_than)
        return self._with(cutting.edit("cap", stop, _names_of(keep), max_bytes=max_bytes))

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
                model turn, or after the last summary.
            span: The first item to drop and the first after them, instead.
            notice: What the model reads, as a user message.

        Raises:
            ViewError: The span is empty, splits a round, overlaps another cut that it cannot take
                in, or has what the model has not answered yet; or the view belongs to another
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
        cutting = self._cutting(target)
        if older_than is None:
            return self._with(cutting.replace_span("drop", span, notice))
        stop = cutting.turn_from_end(older_than)
        return self._with(cutting.drop(stop, notice))

    def summarise(self, target: Target, span: tuple[int, int], text: str) -> View:
        """Put a summary in place of a span; you write it, or let a model write it.

        Instructions in the span stay, before the summary. Drops and summaries that lie inside it
        are taken in.

        Args:
            target: The session or transcript.
            span: The first item that it stands for, and the first after them.
            text: The summary, which the model reads as a user message.

        Raises:
            ViewError: As in `drop_rounds`.
            InvalidValueError: The text is blank.
        """
        text = _not_blank("summarise", text)
        return self._with(self._cutting(target).replace_span("summary", span, text))

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
        far as needed to free `at_least`. If that cannot be freed, nothing is cut: a small cut
        would cost the provider's cache and come again at once.

        Args:
            target: The session or transcript.
            limit_tokens: What the next request may have.
            at_least: What a cut has to free below the limit, in tokens.
            keep_last: How many model turns from the end stay whole, and all after them.
            keep: Tools whose results are not cleared, by selector or wire name, as in
                `clear_results`. They go with their rounds, if these are dropped.
            count: As in `tokens`.
            overhead: As in `tokens`.

        Returns:
            A new view, or this one. Ask `tokens` whether it is enough.

        Raises:
            InvalidValueError: `at_least` is not between 0 and the limit, or another number is below
                what it can be.
            ViewError: The view was made for another transcript.
        """
        if not 0 <= whole_number("at_least", at_least) < whole_number("limit_tokens", limit_tokens):
            raise InvalidValueError(
                f"`at_least` is {at_least} of `limit_tokens` {limit_tokens}. Give what a cut has "
                "to free, from 0 to less than the limit."
            )
        at_least_zero("keep_last", keep_last)
        before = self._cutting(target, count, overhead)
        if before.tokens <= limit_tokens:
            return self
        goal = limit_tokens - at_least
        stop = before.turn_from_end(keep_last)
        need = before.tokens - goal
        # Clearing comes first because it loses least: the model still sees that it called, and with
        # what, and can call again. A dropped round leaves no trace of either.
        after = before.like(before.edit("clear", stop, _names_of(keep), text=CLEARED, need=need))
        if after.tokens > goal:
            need = after.tokens - goal
            after = before.like(after.drop(stop, DROPPED, need=need))
        return self if before.tokens - after.tokens < max(at_least, 1) else View(after.cuts)

    def tokens(self, target: Target, *, count: Count | None = None, overhead: int = 0) -> int:
        """Estimate the input tokens of the next request.

        The provider's report of the last turn is used as it is. What came after it is estimated
        from the tokens per byte of this conversation since its last cut, or as a quarter of the
        bytes.

        Args:
            target: The session or transcript.
            count: Counts the tokens of a text instead, once for each text; pass the same function
                every time.
            overhead: What tools and framing take, for as long as no usage is known.

        Raises:
            ViewError: The view was made for another transcript.
        """
        return self._cutting(target, count, overhead).tokens

    def since(self, old: View) -> tuple[Cut, ...]:
        """Return the cuts that are new; what a cut freed before is not counted again.

        Raises:
            MisuseError: `old` is not a view.
        """
        MisuseError.check(
            "View.since", "old", "a View", old, View, "Before the first cut that is `View()`."
        )
        new: list[Cut] = []
        gone = [cut for cut in old.cuts if cut not in self.cuts]
        for cut in self.cuts:
            if cut not in old.cuts:
                # A cut that took others in counts what they freed too. Who adds up the savings of
                # each step, as in `sum(cut.freed for cut in new.since(old))`, would count that
                # twice.
                inside = [each for each in gone if takes_in(cut, each)]
                new.append(replace(cut, freed=cut.freed - sum(each.freed for each in inside)))
        return tuple(new)

    def _cutting(self, target: Target, count: Count | None = None, overhead: int = 0) -> Cutting:
        return Cutting(self.cuts, transcript_of(target, _NEITHER), count, overhead)

    def _with(self, cuts: tuple[Cut, ...]) -> View:
        return self if cuts is self.cuts else View(cuts)

    def dump_json(self) -> str:
        """Encode the view; it is small, however long its transcript."""
        data = {"format": VIEW.name, "version": VIEW.version, "cuts": [*map(asdict, self.cuts)]}
        return dump_saved(data, SavedDataError, "The view")

    @classmethod
    def load_json(cls, text: str | bytes) -> View:
        """Read what `dump_json` gave.

        Raises:
            SavedDataError: The text is not a view, of an unknown version, or damaged.
        """
        saved = open_saved(text, VIEW)
        cuts = tuple(map(load_cut, saved.each("cuts")))
        # Cuts that change results may lie on each other; spans may not, or an item would go out
        # twice.
        spans = sorted((cut.start, cut.stop) for cut in cuts if cut.is_span)
        for (_, before), (start, _) in pairwise(spans):
            if start < before:
                raise saved.wrong("cuts", f"two spans have item {start}")
        return cls(cuts)


def _placed(
    transcript: Transcript, ephemeral: Iterable[tuple[int, Message]]
) -> tuple[tuple[int, Message], ...]:
    """Take ephemeral messages in the order of their places."""
    items = transcript._items
    given: tuple[Any, ...] = tuple(ephemeral) if isinstance(ephemeral, Iterable) else (ephemeral,)
    for each in given:
        if not (is_sequence(each) and len(each) == 2 and isinstance(each[1], Message)):
            raise MisuseError(
                "`ephemeral` takes pairs of a place and a Message, as in "
                f'`[(len(transcript), Message("user", "..."))]`, not {shorten(each)}.'
            )
        place = whole_number("ephemeral", each[0])
        if not 0 <= place <= len(items) or is_inside(items, place):
            raise ViewError(
                f"An ephemeral message cannot stand at {shorten(place)}: that is inside of a "
                f"round, or not in this transcript of {len(items)} items. `len(transcript)` is its "
                "end."
            )
    return tuple(sorted(given, key=lambda pair: pair[0]))


def _names_of(keep: Any) -> tuple[str, ...]:
    listed = [keep] if isinstance(keep, str | AnySelector) else keep
    try:
        return tuple(sorted({each if isinstance(each, str) else each.name for each in listed}))
    except (AttributeError, TypeError):
        raise MisuseError(
            f"`keep` takes tools, by selector or wire name, as in `[AppTools.get_user]`, not "
            f"{shorten(keep)}."
        ) from None


def _not_blank(method: str, text: Any) -> str:
    if not isinstance(text, str):
        raise MisuseError(f"`{method}` takes a text that the model reads, not {shorten(text)}.")
    if not text.strip():
        raise InvalidValueError(
            f"`{method}` got a blank text, which some providers refuse and which tells the model "
            "nothing. Say what is missing."
        )
    return text
