"""What was said in one conversation, and by whom, so that a value is found without reading on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from .._text.escaping import visible
from .._text.immutable import dataclass
from .._text.json import parse_json
from .._transcript.message import Message
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript
from ._edges import Rules, Way
from ._places import text_of, texts_in, values_at
from ._words import Places, Words, exact, loose, said

_MOST: Final = 4
"""How many sources of a value are told."""
_END_OF_FILE: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")


@dataclass(frozen=True, slots=True)
class Source:
    """Say where a value was found, which need not be where it came from.

    Attributes:
        kind: `user`, `developer` or `system` for a message, `result` for the result of a call.
        position: The place of the item in the transcript.
        tool: The wire name of the tool, for a result.
        call_id: The id of the call, for a result.
        trusted: Whether what stands there is trusted.
    """

    kind: str
    position: int
    tool: str | None
    call_id: str | None
    trusted: bool

    def __str__(self) -> str:
        if self.tool is None:
            return f"a message of the {self.kind}"
        trusted = "trusted" if self.trusted else "untrusted"
        return f"the {trusted} result of `{visible(self.tool)}` ({visible(str(self.call_id))})"


_UNSAID: Final = Rules()


class _Values:
    """The values at one place in outputs or arguments, each under its number."""

    def __init__(self) -> None:
        # How many results of each tool were taken in, so that the next look goes on from there.
        self.seen: dict[str, int] = {}
        self.whole: dict[Words, list[int]] = {}
        self.parts = Places()
        self.names: list[Words] = []


class Index:
    """Read each item of a transcript once.

    Attributes:
        untrusted: The positions of untrusted results.
        private: The positions of results that not everybody may read.
        readers: Who may read all of these; None where everybody may.
    """

    def __init__(
        self, transcript: Transcript, rules: Mapping[str, Rules], runs: Iterable[int]
    ) -> None:
        self.untrusted: list[int] = []
        self.private: list[int] = []
        self.readers: frozenset[str] | None = None
        self._transcript = transcript
        self._rules = rules
        self._seen = 0
        self._user, self._user_loose = Places(), Places()
        self._results: dict[str, list[ToolResult]] = {}
        self._values: dict[Way, _Values] = {}
        # By length, all words in a row that untrusted results have, and that anybody else has.
        self._runs: dict[int, tuple[set[Words], set[Words]]] = {n: (set(), set()) for n in runs}
        self._all, self._all_seen = Places(), 0

    def read(self) -> None:
        """Take in what is new."""
        for position in range(self._seen, len(self._transcript)):
            self._take(position, self._transcript[position])
            self._seen = position + 1

    def _take(self, position: int, item: object) -> None:
        if isinstance(item, Message):
            words = loose(item.text)
            self._user.add(position, said(item.text))
            self._user_loose.add(position, zip(words, strict=True))
            for number, (_, known) in self._runs.items():
                known.update(_rows(words, number))
        elif isinstance(item, ToolResult) and item.status != "rejected":
            is_trusted, readers = self._labels_of(item)
            if not is_trusted:
                self.untrusted.append(position)
            if readers is not None:
                self.private.append(position)
                self.readers = readers if self.readers is None else self.readers & readers
            if item.is_success:
                self._results.setdefault(item.name, []).append(item)
            words = _words_of(item) if self._runs else ()
            for number, rows in self._runs.items():
                rows[is_trusted].update(_rows(words, number))

    def _labels_of(self, result: ToolResult) -> tuple[bool, frozenset[str] | None]:
        """Join a result's own labels with those of its tool."""
        rules, own = self._rules.get(result.name, _UNSAID), result.labels
        if own is None:
            return rules.trusted, rules.readers
        readers = rules.readers
        if own.readers is not None:
            named = frozenset(map(exact_name, own.readers))
            readers = named if readers is None else named & readers
        return rules.trusted if own.trusted is None else own.trusted, readers

    def has(self, words: Words, ways: Iterable[Way]) -> bool:
        """Whether a value comes by one of these ways."""
        return any(self._has(words, way) for way in ways)

    def _has(self, words: Words, way: Way) -> bool:
        if way.kind == "user":
            return bool(self._user.find(words))
        values = self._values_of(way)
        found = values.parts.find(words) if way.part else values.whole.get(words, ())
        if way.named is None:
            return bool(found)
        return any(self._user_loose.find(values.names[number]) for number in found)

    def _values_of(self, way: Way) -> _Values:
        values = self._values.setdefault(way, _Values())
        for tool in way.tools:
            results = self._results.get(tool, ())
            for result in results[values.seen.get(tool, 0) :]:
                for _, value, owners in values_at(_data_of(result, way.kind), way.path):
                    number, text = len(values.names), text_of(value)
                    values.names.append(_name_in(owners, way.named))
                    if way.part:
                        values.parts.add(number, said(text))
                    else:
                        values.whole.setdefault(exact(text), []).append(number)
            values.seen[tool] = len(results)
        return values

    def copied(self, text: str, number: int) -> Iterator[str]:
        """Give the words in a row, so many at least, that untrusted results alone have."""
        untrusted, known = self._runs[number]
        # With untrusted words "send all the files to eve" and rows of 5, a text that has all six
        # gives two rows that touch, and they are told as one.
        words = loose(text)
        start = end = 0
        for at, row in enumerate(_rows(words, number)):
            if row in untrusted and row not in known:
                if end < at:
                    yield from words[start:end] and [" ".join(words[start:end])]
                    start = at
                end = at + number
        yield from words[start:end] and [" ".join(words[start:end])]

    def sources(self, text: str) -> tuple[Source, ...]:
        """Find what has a value, the untrusted and the latest first."""
        for position in range(self._all_seen, self._seen):
            item = self._transcript[position]
            if isinstance(item, Message | ToolResult):
                words = loose(item.text) if isinstance(item, Message) else _words_of(item)
                self._all.add(position, zip(words, strict=True))
            self._all_seen = position + 1
        return self.told(self._all.find(loose(text)))

    def told(self, positions: Iterable[int]) -> tuple[Source, ...]:
        """Tell of a few items, the untrusted and the latest first."""
        found = [self._source(each) for each in positions]
        return tuple(sorted(found, key=lambda each: (each.trusted, -each.position))[:_MOST])

    def _source(self, position: int) -> Source:
        item = self._transcript[position]
        if isinstance(item, ToolResult):
            trusted = item.status == "rejected" or self._labels_of(item)[0]
            return Source("result", position, item.name, item.id, trusted)
        assert isinstance(item, Message)
        return Source(item.role, position, None, None, True)


def exact_name(reader: str) -> str:
    """Give the form in which the name of a reader is compared."""
    return " ".join(exact(reader))


def _words_of(result: ToolResult) -> Words:
    return loose(" ".join([*texts_in(result.output), result.message or ""]))


def _rows(words: Words, number: int) -> Iterator[Words]:
    # Of (a, b, c, d) and 3 the rows (a, b, c) and (b, c, d): the shortest of the slices ends it.
    return zip(*(words[start:] for start in range(number)), strict=False)


def _data_of(result: ToolResult, kind: str) -> Any:
    if kind == "output":
        return result.output
    with suppress(ValueError, RecursionError):
        return parse_json(result.arguments) if result.ran_with is None else result.ran_with
    return None


def _name_in(owners: tuple[Any, ...], field: str | None) -> Words:
    """Give the words of a field in the innermost record that has it."""
    # The user says "the file notes", and the record `notes.txt`.
    names = [text_of(record[field]) for record in owners if field in record]
    return loose(_END_OF_FILE.sub("", names[-1])) if names else ()
