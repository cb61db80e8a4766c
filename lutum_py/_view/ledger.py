"""How many tokens the items of a transcript have, measured once for each item.

The figures of a provider are exact, but there is one for each turn at most, and what was said since
has none yet. So each item is noted with what is known of it in tokens, or else with the measure of
its text; two reports then tell how many tokens one of those measures stands for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from .._text.json import compact_json, shorten
from .._transcript.assistant import AssistantTurn, ReasoningItem, ServerToolItem, ToolCallItem
from .._transcript.message import Message
from .._transcript.request import TranscriptItem
from .._transcript.transcript import Front, Latest, Transcript, kept_of
from ..errors import MisuseError

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
        *("_asked", "_fronts", "_known", "_lock", "_estimated", "_pairs"),
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
        self._fronts: Latest[Size] = Latest(4)
        self._pairs: deque[Size] = deque(maxlen=_PAIRS)
        self.turns: list[int] = []
        self.reports: list[Report] = []

    def read(self, transcript: Transcript) -> None:
        """Note down what is new."""
        items = transcript._items
        with self._lock:
            for position in range(len(self._known) - 1, len(items)):
                item = items[position]
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

    def front_size(self, front: Front, items: Sequence[TranscriptItem]) -> Size:
        """Return the size of what goes out in place of the first items; added up once."""
        size = self._fronts.take(front)
        if size is None:
            each = [
                self.size_at(position, item, items)
                for position, item in zip(front.positions, front.items, strict=True)
            ]
            size = Size(sum(one.known for one in each), sum(one.estimated for one in each))
        self._fronts.put(front, size)
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
    kept = kept_of(transcript)
    ledger: Ledger | None = kept.ledgers.get(count is not None)
    if ledger is None or ledger.count != count:
        ledger = kept.ledgers[count is not None] = Ledger(count)
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
