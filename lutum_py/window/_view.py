"""`View`: which part of a transcript is sent, what is cut, and how many tokens each item has.

The figures of a provider are exact, but there is one for each turn at most, and what was said since
has none yet. So each item is noted with what is known of it in tokens, or else with the measure of
its text; two reports then tell how many tokens one of those measures stands for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise, zip_longest
from math import ceil
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from .. import AssistantTurn, Message, ToolResult, Transcript
from .._text.clipping import cut_again, head_of, tail_of
from .._text.immutable import with_fields
from .._text.json import compact_json, is_sequence, is_whole, sendable, shorten
from ..errors import InvalidValueError, MisuseError, SavedDataError, ViewError
from ..saved import Form, Saved, dump_saved, open_saved
from ..turns import CompactedPrefix, ReasoningItem, ServerToolItem, ToolCallItem, TranscriptItem
from ..typing import AnySelector, HasTranscript, TranscriptView

Count: TypeAlias = Callable[[str], int]

FILE_TOKENS: Final = 1_500
"""What a file counts for: providers go by pixels, pages and seconds, which nobody knows here."""

USUAL_RATE: Final = 0.25
"""Tokens per byte if nothing is known: English text, and JSON."""

_FRAMING: Final = 16
"""What role, ids and braces of an item weigh, in bytes."""

_ENOUGH: Final = 1_000
"""How many bytes the usual rate weighs against those of two reports: few tell little."""

_PAIRS: Final = 32
"""How many pairs of reports are looked at: the last ones, because conversations change."""

_MOST_PREFIXES: Final = 4
"""Of so many cuts the size is kept: a view that is fitted compares a few."""

_LIGHTEST: Final = 1 / 16
"""No text has fewer tokens per byte: a report with fewer leaves something out, such as a cache."""


class Size(NamedTuple):
    """How much something is: known tokens, and the measure of what has to be estimated."""

    known: int
    estimated: int

    def tokens(self, rate: float) -> float:
        """Estimate it in tokens."""
        return self.known + rate * self.estimated


class Report(NamedTuple):
    """What a provider reported for a turn, and where the turn stands."""

    position: int
    tokens: int


def bytes_of(text: str) -> int:
    """Measure a text in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


class Ledger:
    """Note down how much each item is; each is looked at once.

    Args:
        count: Gives the tokens of a text; without it, texts are measured in bytes.

    Attributes:
        count: The same.
        turns: The positions of the turns.
        reports: What was reported, in order.
    """

    __slots__ = (
        *("_asked", "_prefixes", "_known", "_lock", "_estimated", "_pairs"),
        *("count", "reports", "turns"),
    )

    def __init__(self, count: Count | None = None) -> None:
        self.count = count
        # Running totals: items of 10, 20 and 5 give [0, 10, 30, 35], so that any span is one
        # subtraction, however long the conversation.
        self._known = [0]
        self._estimated = [0]
        self._lock = Lock()
        self._asked: dict[tuple[int, int], int] = {}
        self._prefixes: dict[CompactedPrefix, Size] = {}
        self._pairs: deque[Size] = deque(maxlen=_PAIRS)
        self.turns: list[int] = []
        self.reports: list[Report] = []

    def read(self, transcript: Transcript) -> None:
        """Note down what is new."""
        with self._lock:
            known = len(self._known) - 1
            for position, item in enumerate(transcript[known:], known):
                size = self.size_of(item)
                if isinstance(item, AssistantTurn):
                    self.turns.append(position)
                    if item.usage is not None and item.usage.input_tokens is not None:
                        self._report(Report(position, item.usage.input_tokens))
                self._estimated.append(self._estimated[-1] + size.estimated)
                self._known.append(self._known[-1] + size.known)

    def _report(self, report: Report) -> None:
        if self.reports:
            last = self.reports[-1]
            size = self.between(last.position, report.position)
            tokens = report.tokens - last.tokens - size.known
            # With fewer tokens than before, something was cut or left out of a report; with more
            # tokens than there is text, other tools were offered. Neither tells the rate.
            if not too_light(tokens, size) and tokens <= size.estimated:
                self._pairs.append(Size(tokens, size.estimated))
        self.reports.append(report)

    def size_of(self, item: TranscriptItem) -> Size:
        """Return the size of one item."""
        if isinstance(item, AssistantTurn):
            goes_back = _output_of(item)
            if goes_back is not None:
                return Size(goes_back, 0)
            return Size(0, self._measured(_said(item)))
        text = item.text if isinstance(item, Message) else item.model_text
        captions = [each.caption for each in item.attachments if each.caption]
        return Size(FILE_TOKENS * len(item.attachments), self._measured([text, *captions]))

    def _measured(self, texts: Iterable[str]) -> int:
        if self.count is None:
            return _FRAMING + sum(map(bytes_of, texts))
        return sum(map(self._counted, texts))

    def _counted(self, text: str) -> int:
        """Ask for the tokens of a text, once: what it says is not kept."""
        # A tokenizer is slow, and the same text may be read again in many views. Only its hash and
        # length are kept, or each long text would stay in memory for as long as the ledger.
        key = (hash(text), len(text))
        tokens = self._asked.get(key)
        if tokens is None and self.count is not None:
            tokens = self.count(text)
            if not isinstance(tokens, int) or tokens < 0:
                raise MisuseError(
                    f"`count` gives the tokens of a text, a whole number from 0 on, not "
                    f"{shorten(tokens)}."
                )
            self._asked[key] = tokens
        return tokens or 0

    def between(self, start: int, stop: int) -> Size:
        """Return the size of the items of a span."""
        known, estimated = self._known, self._estimated
        return Size(known[stop] - known[start], estimated[stop] - estimated[start])

    @property
    def rate(self) -> float:
        """The tokens that one measure stands for, by what came between the last reports."""
        if self.count is not None:
            return 1.0
        # The usual rate goes in as if it had been seen on 1,000 bytes: two short turns hardly move
        # it, and a long conversation outweighs it.
        tokens = sum(pair.known for pair in self._pairs)
        estimated = sum(pair.estimated for pair in self._pairs)
        return (tokens + USUAL_RATE * _ENOUGH) / (estimated + _ENOUGH)

    def front_size(self, front: CompactedPrefix, items: Sequence[TranscriptItem]) -> Size:
        """Return the size of what goes out in place of the first items; added up once."""
        size = self._prefixes.get(front)
        if size is None:
            each = [
                self.size_at(position, item, items)
                for position, item in zip(front.positions, front.items, strict=True)
            ]
            size = Size(sum(one.known for one in each), sum(one.estimated for one in each))
            if len(self._prefixes) == _MOST_PREFIXES:
                self._prefixes.clear()
            self._prefixes[front] = size
        return size

    def size_at(self, position: int, item: TranscriptItem, items: Sequence[TranscriptItem]) -> Size:
        """Return the size of what is sent for a position; what is noted is not measured again."""
        if item is items[position]:
            return self.between(position, position + 1)
        return self.size_of(item)


def too_light(tokens: int, size: Size) -> bool:
    """Tell whether no text of so many bytes could have so few tokens."""
    return tokens < _LIGHTEST * size.estimated


def ledger_of(transcript: Transcript, count: Count | None = None) -> Ledger:
    """Return the ledger of a transcript, with all of its items noted; the last count is kept."""
    ledgers = transcript.cache.ledgers
    ledger: Ledger | None = ledgers.get(count is not None)
    if ledger is None or ledger.count != count:
        ledger = ledgers[count is not None] = Ledger(count)
    ledger.read(transcript)
    return ledger


def _output_of(turn: AssistantTurn) -> int | None:
    """Return the tokens of a turn as far as they go back: reasoning that nobody saw does not."""
    usage = turn.usage
    if usage is None or usage.output_tokens is None:
        return None
    # Reasoning that came as an item is sent back and read again by the model, so it is paid for
    # again.
    if any(isinstance(item, ReasoningItem) for item in turn.items):
        return max(usage.output_tokens, 0)
    return max(usage.output_tokens - (usage.reasoning_tokens or 0), 0)


def _said(turn: AssistantTurn) -> Iterator[str]:
    for item in turn.items:
        if isinstance(item, ToolCallItem):
            yield item.metadata.name
            yield item.metadata.arguments
        elif isinstance(item, ServerToolItem):
            yield compact_json(dict(item.payload))
        else:
            yield item.text


_FORM: Final = Form("lutum_py.view", 1, "view", SavedDataError)
"""How a view is saved."""

CutKind: TypeAlias = Literal["clear", "cap", "drop", "summary"]

LEAST_BYTES: Final = 200
"""The least that capping leaves of a result: the notice takes a quarter of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Say how what a view sends differs from the transcript.

    Positions are those of the transcript.

    Attributes:
        kind: `clear` and `cap` change what the model reads of results; `drop` and `summary` put a
            user message in place of whole rounds.
        start: The first item that is concerned.
        stop: The first item after them.
        text: What is read instead; None for `cap`.
        at: How long the transcript was when the cut was made.
        freed: How many tokens it freed, estimated; below 0 if its text is longer than what went.
        lost_from: The first item that is sent in another form: a provider's cache is lost from
            there.
        keep: The wire names of tools whose results stay as they are.
        max_bytes: How much stays of a result, for `cap`.
        left: How many tokens were left of the request, as far as a provider's figures tell.
        digest: Identifies the last item concerned, so that another transcript is noticed.

    Example:
        >>> print(Cut(kind="drop", start=1, stop=41, text="...", at=60, freed=52_000, lost_from=1))
        Items 1 to 40 are dropped: about 52,000 tokens less. Caches are lost from item 1 on.
    """

    kind: CutKind
    start: int
    stop: int
    text: str | None
    at: int
    freed: int
    lost_from: int
    keep: tuple[str, ...] = ()
    max_bytes: int | None = None
    left: int | None = None
    # A view is saved apart from its transcript. The digest is what shows, on loading, that somebody
    # put it beside another one.
    digest: str = ""

    def __post_init__(self) -> None:
        """Put U+FFFD for half of a surrogate pair in the text, which could not be sent."""
        if self.text is not None:
            object.__setattr__(self, "text", sendable(self.text))

    @property
    def form(self) -> tuple[object, ...]:
        """What has to be equal for two cuts that are joined into one."""
        return (self.kind, self.text, self.keep, self.max_bytes)

    @property
    def is_span(self) -> bool:
        """Whether a message is in place of the items."""
        return self.kind in ("drop", "summary")

    def __str__(self) -> str:
        last = self.stop - 1
        one = self.start == last
        where = f"item {last}" if one else f"items {self.start} to {last}"
        said = {
            "clear": f"The results in {where} are cleared",
            "cap": f"The long results in {where} are capped",
            "drop": f"I{where[1:]} {'is' if one else 'are'} dropped",
            "summary": f"I{where[1:]} {'is' if one else 'are'} summarised",
        }[self.kind]
        less = "less" if self.freed >= 0 else "more"
        return (
            f"{said}: about {abs(self.freed):,} tokens {less}. Caches are lost from item "
            f"{self.lost_from} on."
        )


def load_cut(saved: Saved) -> Cut:
    """Read the fields of a cut, and refuse one that no view could have."""
    made = Cut(
        kind=saved.member("kind", CutKind),
        text=saved.get("text", str, None),
        keep=saved.texts("keep"),
        digest=saved.get("digest", str),
        **saved.some(int, "start", "stop", "at", "freed", "lost_from"),
        **saved.some(int, "max_bytes", "left", default=None),
    )
    # The rest of the folder indexes with these numbers and never asks again, so saved text that was
    # edited by hand has to fail here.
    if not 0 <= made.start < made.stop <= made.at:
        raise saved.wrong("stop", f"items {made.start} to {made.stop} of {made.at} are not a span")
    if made.kind == "cap":
        if made.max_bytes is None or made.max_bytes < LEAST_BYTES:
            raise saved.wrong("max_bytes", f"a cap leaves {LEAST_BYTES} bytes at least")
    elif not (made.text or "").strip():
        raise saved.wrong("text", "it is blank")
    return made


# What goes out.

_LEFT_OUT: Final = "\n[... {} of {} bytes left out ...]\n"


def front_of(transcript: Transcript, cuts: tuple[Cut, ...]) -> CompactedPrefix:
    """Return what goes out in place of the first items; made once for each tuple of cuts.

    Raises:
        ViewError: The cuts were made for another transcript.
    """
    if not cuts:
        return CompactedPrefix.EMPTY
    fronts = transcript.cache.fronts
    front: CompactedPrefix | None = fronts.take(cuts)
    if front is None:
        _check_own(transcript, cuts)
        front = _made(transcript, cuts)
    fronts.put(cuts, front)
    return front


def _check_own(transcript: Transcript, cuts: Iterable[Cut]) -> None:
    for cut in cuts:
        if (
            cut.at > len(transcript)
            or transcript.digest_at(cut.stop - 1) != cut.digest
            or (cut.is_span and any(is_inside(transcript, end) for end in (cut.start, cut.stop)))
        ):
            raise ViewError(
                f"This view was made for another transcript: item {cut.stop - 1}, the last one of "
                f"a cut, is not the same in this one of {len(transcript)} items, or no round ends "
                "where the cut does. Use a view with its transcript, or what that grew into; start "
                "with `View()` for another."
            )


def is_inside(items: Sequence[TranscriptItem], place: int) -> bool:
    """Tell whether a place is inside of a round, if a transcript or view was edited."""
    return place < len(items) and isinstance(items[place], ToolResult)


def _made(transcript: Transcript, cuts: tuple[Cut, ...]) -> CompactedPrefix:
    items = transcript
    edits = [cut for cut in cuts if not cut.is_span]
    sent: list[tuple[TranscriptItem, int, int]] = []
    # Rows of an item, its position, and the place that it goes out at. With a drop of items 1 to 8
    # that carries the question at 7, they are (system, 0, 0), (notice, 1, 1), (question, 7, 1).
    start = 0

    def as_they_are(stop: int) -> None:
        for position in range(start, stop):
            sent.append((edited(items[position], position, edits), position, position))

    for span in sorted((cut for cut in cuts if cut.is_span), key=lambda cut: cut.start):
        as_they_are(span.start)
        before, after = carried(items, span)
        sent += ((items[position], position, span.start) for position in before)
        sent.append((Message("user", span.text or ""), span.start, span.start))
        sent += ((items[position], position, span.start) for position in after)
        start = span.stop
    end = max(cut.stop for cut in cuts)
    as_they_are(end)
    one, two, three = zip(*sent, strict=True)
    return CompactedPrefix(one, two, three, end, tuple((cut.start, cut.at) for cut in cuts))


# The question stays because what follows the span may be rounds that work on it: a notice alone
# would leave the model with results and no task. User messages in a row are one question.
def carried(items: Sequence[TranscriptItem], span: Cut) -> tuple[list[int], list[int]]:
    """Return the positions that a span never cuts: what goes before its message, and after it."""
    before: list[int] = []
    asked: list[int] = []
    is_last = False
    for position in range(span.start, span.stop):
        item = items[position]
        if not isinstance(item, Message):
            is_last = False
        elif item.role != "user":
            before.append(position)
        else:
            asked = [*asked, position] if is_last else [position]
            is_last = True
    if span.kind == "summary" or _asks(items, span):
        asked = []
    return before, asked


def _asks(items: Sequence[TranscriptItem], span: Cut) -> bool:
    """Tell whether a question stood right after a span when the cut was made."""
    # Up to `at` only: would it look further, a question that is asked later would take away what an
    # older request carried, and the front of the same view would change.
    for position in range(span.stop, span.at):
        item = items[position]
        if not isinstance(item, Message):
            return False
        if item.role == "user":
            return True
    return False


def edited(item: TranscriptItem, position: int, edits: Iterable[Cut]) -> TranscriptItem:
    """Return an item as cuts leave it; what is not a result, or kept, stays the same object."""
    if not isinstance(item, ToolResult):
        return item
    for cut in edits:
        if cut.start <= position < cut.stop and item.name not in cut.keep:
            if cut.max_bytes is not None:
                item = _capped(item, cut.max_bytes)
            elif bytes_of(item.model_text) > bytes_of(cut.text or "") or item.attachments:
                item = item.with_message(cut.text or "", ())
    return item


def _capped(result: ToolResult, most: int) -> ToolResult:
    text = result.model_text
    total = bytes_of(text)
    if total <= most:
        return result
    if result.handle is not None and (again := cut_again(text, result.handle, most)) is not None:
        return with_fields(result, message=again)
    room = most - len(_LEFT_OUT.format(total, total))
    head, tail = head_of(text, room - room // 2), tail_of(text, room // 2)
    left_out = total - bytes_of(head) - bytes_of(tail)
    return result.with_message(f"{head}{_LEFT_OUT.format(left_out, total)}{tail}")


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
        self.items = transcript
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
            if too_light(report.tokens, self.size(in_bytes, report.position)):
                return nothing
            return report.tokens, ledger.rate, report.position
        if cuts and cuts[-1].left is not None:
            return cuts[-1].left, ledger.rate, at
        return nothing

    def size(self, ledger: Ledger, until: int) -> Size:
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
            size = self.size(self.ledger, len(self.items))
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

    def clearing(self, stop: int, keep: tuple[str, ...], text: str) -> Cut:
        """Make a cut that puts a text in the place of the results before a position."""
        return self._cut("clear", 0, stop, text, keep=keep)

    def capping(self, stop: int, keep: tuple[str, ...], max_bytes: int) -> Cut:
        """Make a cut that shortens the results before a position."""
        return self._cut("cap", 0, stop, None, keep=keep, max_bytes=max_bytes)

    def edit(self, cut: Cut, need: float | None = None) -> tuple[Cut, ...]:
        """Change what is read of results by a cut, as far as needed."""
        # The span is not known before the results are gone through, so all of them are tried with a
        # cut that begins at 0, and the one that is kept is narrowed to what did change.
        changed: list[int] = []
        freed = 0.0
        for position, item in self._sent(cut.stop):
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

    def replace_span(self, kind: CutKind, span: object, text: str) -> tuple[Cut, ...]:
        """Put a message in place of a span that somebody chose."""
        start, stop = self._checked(span)
        cut = self._cut(kind, start, stop, text)
        if self._is_empty(cut):
            never = "instructions and the last question"
            raise self._no_span((start, stop), f"holds only what is never cut, {never}")
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

    def _checked(self, span: object) -> tuple[int, int]:
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
        cut = replace(cut, digest=self.transcript.digest_at(cut.stop - 1))
        same = [(each.start, each.stop, each.form) for each in gone]
        if same == [(cut.start, cut.stop, cut.form)]:
            return self.cuts
        tried = (*rest, cut)
        then = self.like(tried)
        size, smaller = (each.size(self.ledger, len(self.items)) for each in (self, then))
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
        fronts = self.transcript.cache.fronts
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
    ids = {caller for _, turn in turns for caller in turn.callers.values()}
    places: dict[str, list[int]] = {id: [] for id in ids}
    for at, turn in turns if ids else ():
        ran = [each.payload for each in turn.items if isinstance(each, ServerToolItem)]
        said = [each.get(key) for each in ran for key in ("call_id", "id", "tool_use_id")]
        named = {*turn.callers.values(), *(each for each in said if isinstance(each, str))}
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


def whole_number(name: str, given: object) -> int:
    if not is_whole(given):
        raise MisuseError(f"`{name}` takes a whole number, not {shorten(given)}.")
    return given


def at_least_zero(name: str, given: object) -> int:
    number = whole_number(name, given)
    if number < 0:
        raise InvalidValueError(f"`{name}` is {number}. Give 0 or more.")
    return number


Target: TypeAlias = "HasTranscript | Transcript"

CLEARED: Final = "[This result was removed to save room. Call the tool again if it is needed.]"
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
        transcript = _transcript_of(target)
        front = front_of(transcript, self.cuts)
        placed = _placed(transcript, ephemeral) if ephemeral else ()
        return TranscriptView(transcript, len(transcript), placed, front)

    def clear_results(
        self,
        target: Target,
        *,
        older_than: int,
        keep: Iterable[AnySelector | str] = (),
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
        return self._with(cutting.edit(cutting.clearing(stop, _names_of(keep), text)))

    def cap_results(
        self,
        target: Target,
        *,
        max_bytes: int,
        older_than: int = 0,
        keep: Iterable[AnySelector | str] = (),
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
        return self._with(cutting.edit(cutting.capping(stop, _names_of(keep), max_bytes)))

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
        keep: Iterable[AnySelector | str] = (),
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
        after = before.like(before.edit(before.clearing(stop, _names_of(keep), CLEARED), need))
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
        return Cutting(self.cuts, _transcript_of(target), count, overhead)

    def _with(self, cuts: tuple[Cut, ...]) -> View:
        return self if cuts is self.cuts else View(cuts)

    def dump_json(self) -> str:
        """Encode the view; it is small, however long its transcript."""
        data = {"format": _FORM.name, "version": _FORM.version, "cuts": [*map(asdict, self.cuts)]}
        return dump_saved(data, SavedDataError, "The view")

    @classmethod
    def load_json(cls, text: str | bytes) -> View:
        """Read what `dump_json` gave.

        Raises:
            SavedDataError: The text is not a view, of an unknown version, or damaged.
        """
        saved = open_saved(text, _FORM)
        cuts = tuple(map(load_cut, saved.each("cuts")))
        # Cuts that change results may lie on each other; spans may not, or an item would go out
        # twice.
        spans = sorted((cut.start, cut.stop) for cut in cuts if cut.is_span)
        for (_, before), (start, _) in pairwise(spans):
            if start < before:
                raise saved.wrong("cuts", f"two spans have item {start}")
        return cls(cuts)


def _transcript_of(target: object) -> Transcript:
    transcript = getattr(target, "transcript", target)
    if not isinstance(transcript, Transcript):
        raise MisuseError(
            f"A view is of a Session or a Transcript, not of {shorten(target)}. Pass the session."
        )
    return transcript


def _placed(
    transcript: Transcript, ephemeral: Iterable[tuple[int, Message]]
) -> tuple[tuple[int, Message], ...]:
    """Take ephemeral messages in the order of their places."""
    items = transcript
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


def _not_blank(method: str, text: object) -> str:
    if not isinstance(text, str):
        raise MisuseError(f"`{method}` takes a text that the model reads, not {shorten(text)}.")
    if not text.strip():
        raise InvalidValueError(
            f"`{method}` got a blank text, which some providers refuse and which tells the model "
            "nothing. Say what is missing."
        )
    return text
