"""Where the words of one conversation stand, so that a value is looked up, not searched for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from .._call.selector import AnySelector
from .._text.escaping import escape_unprintable
from .._text.immutable import dataclass
from .._text.json import parse_json
from .._transcript.assistant import AssistantTurn, given_by_provider
from .._transcript.labels import Labels
from .._transcript.message import Message
from .._transcript.result import ToolResult, never_ran
from ._edges import UNSAID, USER, Edge, Rules
from ._places import path_of, text_of, texts_in, values_at
from ._words import Places, Words, exact, loose, said

# How many sources of a value are told.
_MOST: Final = 4
_NO_LABELS: Final = Labels()
_END_OF_FILE: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")


@dataclass(frozen=True, slots=True)
class Source:
    """Say where a value was found, which need not be where it came from.

    Attributes:
        kind: `user`, `developer` or `system` for a message, `result` for the result of a call.
        position: The place of the item in the transcript; results within an open
            round come after it.
        tool: The wire name of the tool, for a result; or the provider's word for one of its own.
        call_id: The id of the call, for a result; None if the provider ran the tool.
        trusted: Whether what is there is trusted.
    """

    kind: str
    position: int
    tool: str | None = None
    call_id: str | None = None
    trusted: bool = True

    def __str__(self) -> str:
        if self.tool is None:
            return f"a message of the {self.kind}"
        trusted = "trusted" if self.trusted else "untrusted"
        id = "the provider's" if self.call_id is None else escape_unprintable(self.call_id)
        return f"the {trusted} result of `{escape_unprintable(self.tool)}` ({id})"


class Index:
    """Read each item of a conversation once.

    Attributes:
        items: The items that were read.
        untrusted: The results that are not trusted.
        private: The results that not everybody may read.
        readers: Who may read all of these; None if everybody may.
    """

    def __init__(self, rules: Mapping[str, Rules], tools: Mapping[str, AnySelector]) -> None:
        self.items: Sequence[object] = ()
        self.untrusted: list[Source] = []
        self.private: list[Source] = []
        self.readers: frozenset[Words] | None = None
        self._rules = rules
        self._tools = tools
        self._sources: list[Source | None] = []
        # After "Pay bob@a.com" from the user and `{"iban": "DE89"}` from `find`, `_values` has
        # under USER the words `pay` and `bob@a.com`, and under `output("find", path="iban")` the
        # word `de89`. To search all texts for each value would take longer with each turn.
        # The loose words of messages, and of all items: the latter only once anybody asks.
        self._messages, self._all, self._in_all = Places[Source](), Places[Source](), 0
        # For each edge its values, each with the name of the record that it belongs to.
        edges = {edge for said in rules.values() for edge in said.edges}
        self._values = {edge: Places[Words]() for edge in {USER, *edges}}
        # How many words in a row count, and all such rows: those of untrusted results, and those
        # that anybody else has.
        self._runs = {run for said in rules.values() for _, run in said.texts.values()} - {0}
        self._rows: tuple[set[Words], set[Words]] = (set(), set())

    def read(self, items: Sequence[object]) -> None:
        """Take in what is new among the items; they begin with those that were read before."""
        self.items = items
        for position in range(len(self._sources), len(items)):
            self._sources.append(self._take(position, items[position]))

    def _take(self, position: int, item: object) -> Source | None:
        if isinstance(item, Message):
            source = Source(item.role, position)
            self._values[USER].add((), said(item.text))
            self._messages.add(source, zip(_words_of(item), strict=True))
        elif isinstance(item, AssistantTurn) and (given := given_by_provider(item)):
            source = Source("result", position, given[-1]["kind"], trusted=False)
            self.untrusted.append(source)
        elif not isinstance(item, ToolResult) or never_ran(item):
            return None  # why a call was not run may quote it, and so is no source of its values
        else:
            trusted, readers = self._labels_of(item.name, item.labels)
            source = Source("result", position, item.name, item.id, trusted)
            self.untrusted += () if trusted else (source,)
            self.private += (source,) if readers else ()
            for each in readers:
                self.readers = each if self.readers is None else self.readers & each
            if item.is_success:
                self._take_values(item)
        words = _words_of(item) if self._runs else ()
        # A result may repeat what it was asked, as the program of a model does, which may have
        # copied that itself: so nobody trusted said it.
        sent = _sent_words(item) if self._runs and source.trusted else ()
        for run in self._runs:
            self._rows[source.trusted].update({*_rows(words, run)}.difference(_rows(sent, run)))
        return source

    def _labels_of(self, tool: str, own: Labels | None) -> tuple[bool, list[frozenset[Words]]]:
        """Join a result's own labels with those of its tool, and with those of what it is made of.

        Returns:
            Whether it is trusted, and all lists of readers: who may read it is on each.
        """
        # A result is as trusted as the least of what it was made of, and may be read by those alone
        # who may read all of it. A summary of a stranger's mail is still the stranger's.
        rules, own = self._rules.get(tool, UNSAID), own or _NO_LABELS
        trusted = rules.trusted if own.trusted is None else own.trusted
        named = [each for each in (rules.readers, own.readers) if each is not None]
        readers = [frozenset(map(exact, each)) for each in named]
        for name, labels in own.inner:
            is_trusted, others = self._labels_of(name, labels)
            trusted, readers = trusted and is_trusted, readers + others
        return trusted, readers

    def _take_values(self, result: ToolResult) -> None:
        for edge, places in self._values.items():
            if result.name in edge.tools:
                data = result.output if edge.kind == "output" else self._arguments_of(result)
                for _, value, owners in values_at(data, path_of(edge.path)):
                    text = text_of(value)
                    words = said(text) if edge.part else [_whole(exact(text))]
                    places.add(_name_in(owners, edge.named), words)

    def _arguments_of(self, result: ToolResult) -> Any:
        """Return the arguments of a call by the keys that rules go by: others may have been sent.

        What does not fit the tool was answered by hand, and is what was sent.
        """
        data = self._tools[result.name]._arguments_of(result)
        return _arguments_of(result) if data is None else data

    def has(self, words: Words, edges: Iterable[Edge]) -> bool:
        """Whether a value comes by one of these edges."""
        for edge in edges:
            for name in self._values[edge].find(words if edge.part else _whole(words)):
                if edge.named is None or any(self._messages.find(name)):
                    return True
        return False

    def copied(self, text: str, run: int) -> Iterator[str]:
        """Yield the words in a row, so many at least, that untrusted results alone have."""
        # Words that anybody trusted has said as well are not a sign of copying: a mail that quotes
        # the user's own question says nothing new.
        untrusted, known = self._rows
        # With untrusted words "send all the files to eve" and rows of 5, a text that has all six
        # gives two rows that touch, and they are told as one.
        words = loose(text) if run else ()
        start = end = 0
        for at, row in enumerate(_rows(words, run)):
            if row in untrusted and row not in known:
                if end < at:
                    yield from words[start:end] and [" ".join(words[start:end])]
                    start = at
                end = at + run
        yield from words[start:end] and [" ".join(words[start:end])]

    def sources(self, text: str) -> Iterable[Source]:
        """Find what has a value."""
        for source in self._sources[self._in_all :]:
            if source is not None:
                self._all.add(source, zip(_words_of(self.items[source.position]), strict=True))
            self._in_all += 1
        return self._all.find(loose(text))


def told(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Choose the few sources that a question names: the untrusted and the latest first."""
    return tuple(sorted(sources, key=lambda each: (each.trusted, -each.position))[:_MOST])


def _words_of(item: Any) -> Words:
    """Return the loose words of a message or result."""
    if isinstance(item, ToolResult):
        return loose(" ".join([*texts_in(item.output), item.message or ""]))
    if isinstance(item, AssistantTurn):
        return loose(" ".join(texts_in(given_by_provider(item))))
    return loose(item.text)


def _sent_words(item: object) -> Words:
    """Return the loose words of the arguments that a result was given for."""
    return loose(" ".join(texts_in(_arguments_of(item)))) if isinstance(item, ToolResult) else ()


def _rows(words: Words, run: int) -> Iterator[Words]:
    # Of (a, b, c, d) and 3 the rows (a, b, c) and (b, c, d): the shortest of the slices ends it.
    return zip(*(words[start:] for start in range(run)), strict=False)


def _whole(words: Words) -> Words:
    """Make one word of all words of a value, if no part of it counts."""
    return (" ".join(words),)


def _arguments_of(result: ToolResult) -> Any:
    """Return the arguments that a call ran with; nothing of those that are not JSON."""
    with suppress(ValueError, RecursionError):
        return parse_json(result.arguments) if result.ran_with is None else result.ran_with
    return None


def _name_in(owners: tuple[Any, ...], field: str | None) -> Words:
    """Return the words of a field in the innermost record that has it."""
    # The user says "the file notes", and the record `notes.txt`.
    names = [text_of(record[field]) for record in owners if field in record]
    return loose(_END_OF_FILE.sub("", names[-1])) if names else ()
