"""Where values came from: paths in JSON data, rules of edges, the index of a conversation."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from .. import AssistantTurn, Labels, Message, ToolResult
from .._text.escaping import escape_unprintable, without_unseen
from .._text.immutable import dataclass
from .._text.json import compact_json, is_array, is_object, parse_json, sendable
from ..errors import MisuseError
from ..schemas import branches, localized, meant_by_name, types_in
from ..turns import TranscriptItem
from ..typing import AnySelector, JsonSchema

Path = tuple[str, ...]
"""A place: names, `ITEMS` for each item, `KEYS` for each key."""

ITEMS: Final = "[]"
KEYS: Final = "{}"

Keys = tuple[str | int, ...]
"""Where a single value stands: names and numbers."""

Owners = tuple[JsonSchema, ...]
"""The objects that a value is in, the outermost first."""
_STEP: Final = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")


def path_of(text: str) -> Path:
    """Read a path; `written` says how one is written, for the error about a text that is not."""
    return tuple(_STEP.findall(text))


def written(keys: Keys) -> str:
    """Write a path or place, as in `files[0].id`."""
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys]
    return "".join(steps).replace(".[]", "[]").replace(".{}", "{}").removeprefix(".")


def values_at(
    data: object, path: Path, keys: Keys = (), owners: Owners = (), *, whole: bool = False
) -> Iterator[tuple[Keys, object, Owners]]:
    """Yield each value at a path, or below it where that is not a single value.

    Args:
        data: The data.
        path: The path.
        keys: Where the data stands itself.
        owners: In which objects.
        whole: Whether to give what is in the way of the path as well: a text in place of a
            list of texts is not to be overlooked.

    Returns:
        Where each stands, the value, and the objects that it is in, the outermost first. A key
        stands where its value does.
    """
    step, rest = (path[0], path[1:]) if path else (None, ())
    # A list fits `[]` alone, an object any other step. What does not fit is passed over, or with
    # `whole` given as it stands: a model that sends a text for a list must not get by so.
    fits = step == ITEMS if is_array(data) else is_object(data) and step != ITEMS
    if whole and not fits and data is not None:
        step, rest = None, ()
    if is_object(data):
        for key in data:
            if step == KEYS and not rest:
                yield (*keys, key), key, (*owners, data)
            elif step in (None, key, KEYS):
                yield from values_at(data[key], rest, (*keys, key), (*owners, data), whole=whole)
    elif is_array(data):
        for at, value in enumerate(data if step in (None, ITEMS) else ()):
            yield from values_at(value, rest, (*keys, at), owners, whole=whole)
    elif step is None:
        yield keys, data, owners


def text_of(value: object) -> str:
    """Write a single value as a text, as the words of a user would have it."""
    return value if isinstance(value, str) else compact_json(value)


def texts_in(data: object) -> Iterator[str]:
    """Yield all that can be read in JSON data: keys and values."""
    if is_object(data):
        yield from data
        data = [*data.values()]
    if is_array(data):
        for value in data:
            yield from texts_in(value)
    else:
        yield text_of(data)


# A policy that names `files[].id` for a tool without such a place would be silent forever: it is
# told where it is written. A schema that leaves it open says yes, since nothing can be proved. What
# a model knows as `recipient` may stand in data as `payee`, and a policy may have either name.
def paths_in(path: Path, schema: object, *, by_fields: bool = False) -> list[Path]:
    """Return the paths in data that a path of any names of parameters may mean.

    Args:
        path: The path.
        schema: The schema of the data.
        by_fields: Whether the data has the names of fields, not those of the schema.

    Returns:
        The paths, by the keys of the data; none if by the schema nothing can be there. A schema
        that leaves it open has the path as it is.
    """
    root = localized(schema)
    found: list[tuple[Path, list[object]]] = [((), [root])]
    for step in path:
        found = [
            ((*way, key), inner)
            for way, schemas in found
            for key, inner in _below(branches(root, schemas), step, by_fields).items()
        ]
    return [way for way, _ in found]


def is_default(schema: object, value: object) -> bool:
    """Whether a value is the default that its schema says."""
    return is_object(schema) and "default" in schema and _is_same(schema["default"], value)


def _is_same(one: object, other: object) -> bool:
    # By value, since the default of `share: float = 0` is 0, and what a model writes there is 0.0.
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    # In Python 1 == True, and in JSON they are two values.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _below(opened: list[JsonSchema], step: str, by_fields: bool) -> dict[str, list[object]]:
    """Return the keys that a step may mean, each with the schemas of what is there."""
    kind, says = ("array", "items") if step == ITEMS else ("object", "properties")
    is_said = any(says in each for each in opened)
    types = [types_in(each) for each in opened if "type" in each]
    if types and not is_said and not any(kind in each for each in types):
        return {}
    found: dict[str, list[object]] = {}
    for schema in opened:
        named = () if step in (ITEMS, KEYS) else tuple(meant_by_name(schema, step))
        for field, told, inner in named:
            found.setdefault(field if by_fields else told, []).append(inner)
        others = [] if named else [each for each in _others(schema, step) if each is not False]
        if others:
            found.setdefault(step, []).extend(others)
    return found if found or (is_said and kind == "object") else {step: []}


def _others(schema: JsonSchema, step: str) -> Iterator[object]:
    if step == ITEMS:
        found = [schema.get("items"), *schema.get("prefixItems", ())]
    else:
        found = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        found += schema.get("properties", {}).values() if step == KEYS else ()
    yield from (each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class Edge:
    """Say where a value may come from; `USER`, `output(...)` and `argument(...)` are sources.

    Attributes:
        kind: `user`, `output` or `argument`.
        tools: The tools whose outputs or arguments are meant; in a policy their wire names.
        path: The place in them.
        named: The field of the same record that is in the user's words.
        part: Whether words within a text there are meant as well.

    Raises:
        MisuseError: The kind is none of the three, a tool is neither a selector nor a name, or
            `part` is neither True nor False.
    """

    kind: Literal["user", "output", "argument"]
    tools: tuple[AnySelector | str, ...] = ()
    path: str = ""
    named: str | None = None
    part: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("user", "output", "argument"):
            wish = "'user', 'output' or 'argument'"
            raise MisuseError.of_field("An edge", "kind", wish, self.kind)
        if not isinstance(self.tools, tuple) or not all(
            isinstance(each, AnySelector | str) for each in self.tools
        ):
            raise MisuseError.of_field("An edge", "tools", "selectors or wire names", self.tools)
        MisuseError.check("An edge", "part", "True or False", self.part, bool)


USER: Final = Edge("user", part=True)
"""What the messages of user, developer and system say, and no ephemeral one."""


def output(
    *tools: AnySelector | str, path: str = "", named: str | None = None, part: bool = False
) -> Edge:
    """Let a value come from a place in outputs of successful calls.

    Args:
        tools: The tools, as selectors or wire names.
        path: The place: names, `[]` for each item, `{}` for each key; empty for the whole output.
        named: A field of the same record, which has to stand in the user's words, less the end of
            a file's name: so the user chose the record.
        part: Whether words within a text there count, and not its whole alone.

    Example:
        >>> output("find_file", path="[].id", named="filename").path
        '[].id'
    """
    return Edge("output", tools, path, named, part)


def argument(*tools: AnySelector | str, path: str) -> Edge:
    """Let a value come from an argument of an earlier call that succeeded.

    Args:
        tools: The tools, as selectors or wire names; each has a `fill` for that place.
        path: The place in the arguments.

    Example:
        >>> argument("create", path="name").kind
        'argument'
    """
    return Edge("argument", tools, path)


# For example `Rules(fills={("iban",): (USER, output("find", path="iban"))}, sinks=(("to",),))`: an
# account number may come from the user or from `find`, and `to` names who gets to read it all.
class Rules(NamedTuple):
    """Hold what is said of one tool.

    Attributes:
        trusted: Whether nobody from outside writes its results.
        readers: Who may read them; None for everybody.
        fills: For each place the edges by which its values may come.
        texts: For each place of prose the edges of its links, and how many words in a row count.
        sinks: The places that name who gets to read it all; None if it is not a sink.
        is_clean: Whether it is asked about once anything untrusted was read.
    """

    trusted: bool = False
    readers: tuple[str, ...] | None = None
    fills: Mapping[Path, tuple[Edge, ...]] = MappingProxyType({})
    texts: Mapping[Path, tuple[tuple[Edge, ...], int]] = MappingProxyType({})
    sinks: tuple[Path, ...] | None = None
    is_clean: bool = False

    @property
    def edges(self) -> set[Edge]:
        """All edges by which anything may come."""
        of_texts = (edges for edges, _ in self.texts.values())
        return {edge for edges in (*self.fills.values(), *of_texts) for edge in edges}


# Of a tool of which nothing is said.
UNSAID: Final = Rules()


T = TypeVar("T")
Words = tuple[str, ...]

_QUOTES: Final = "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a"
_BEFORE: Final = _QUOTES + "([{<,;:!?\u00a1\u00bf\u2026"
_BEHIND: Final = _QUOTES + ")]}>,;:!?.\u2026"
_MARKED: Final = re.compile(r"[*_#]*([^\W_](?:.*[^\W_])?)[*_]*")
# What separates words; to Python, four characters that nobody sees are spaces as well.
_WORD: Final = re.compile(r"[\S\x1c-\x1f]+")
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_NUMBER: Final = re.compile(
    r"(-?)[$\u20ac\u00a3]?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:(\.[0-9]*?)0*)?[$\u20ac\u00a3]?"
)
_GLUED: Final = re.compile(r"(.*[a-z0-9])\.[A-Z][a-z]*")


def exact(text: str) -> Words:
    """Return the words of a value, each in the one form in which it is compared.

    >>> exact('Send 1,200.00 to "Bob@A.com"')
    ('send', '1200', 'to', '"bob@a.com"')
    """
    return tuple(map(_form, _WORD.findall(text)))


def said(text: str) -> Iterator[set[str]]:
    """Yield each word of a source in all forms in which a value may have it.

    >>> [sorted(forms) for forms in said("Bob's site.com.They")]
    [['bob', "bob's"], ['site.com', 'site.com.they']]
    """
    for word in _WORD.findall(text):
        forms = {_form(word)}
        # A source is text for people, `Pay "Bob's" bill.`, and a value is data, `Bob`. So the
        # punctuation is taken from the words of sources alone: from a value it would be a change of
        # what is run.
        if not (word.isascii() and word.isalnum()):  # as most are
            bare = word.lstrip(_BEFORE).rstrip(_BEHIND)
            # Of `("Jr.",` also `Jr.` and the like: a value is compared with punctuation of its own.
            for start in (word, word.lstrip(_BEFORE)):
                end = len(start.rstrip(_BEHIND))
                forms.update(_form(start[: end + more]) for more in range(not end, 4))
            for inner in (_MARKED.fullmatch(bare), _GLUED.fullmatch(bare)):
                forms.update(() if inner is None else (_form(inner[1]),))
            if bare[-2:] in ("'s", "\u2019s"):
                forms.add(_form(bare[:-2]))
        yield forms


def _form(word: str) -> str:
    if word.isascii() and word.isalpha():
        return word.lower()
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word.translate(_LOWER)
    return f"{number[1]}{number[2].replace(',', '')}{(number[3] or '').rstrip('.')}"


def _bare(word: str) -> str:
    """Take quotes and punctuation from a word; dots after a slash stay, for they name a folder."""
    start = word.lstrip(_BEFORE)
    bare = start.rstrip(_BEHIND)
    return start.rstrip(_BEHIND.replace(".", "")) if bare.endswith(("/", "\\")) else bare


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))|&#?\w{1,31};", re.DOTALL)
_SPACES: Final = {"n": "\n", "r": "\n", "t": "\n"}
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
# Thai, Lao, Burmese, Khmer, kana and ideographs, between whose words no spaces stand.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
)
_LETTERS: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def loose(text: str) -> Words:
    r"""Return the words of a text as somebody might read them: letters and digits alone.

    If a writing has no spaces, each character is a word.

    >>> loose(r"Ca" + chr(0x200B) + r"t\u0020FOOD!")
    ('cat', 'food')
    """
    text = _CONTROLS.sub("", _decoded(text))
    if text.isascii():
        return tuple(_LETTERS.findall(text.lower()))
    text = unicodedata.normalize("NFKD", without_unseen(text)).casefold()
    bare = "".join([char for char in text if not unicodedata.combining(char)])
    return tuple(_LETTERS.findall(without_unseen(bare)))


def _decoded(text: str) -> str:
    """Read the escapes of JSON, Markdown and HTML."""
    return sendable(_ESCAPE.sub(_unescaped, text)) if "\\" in text or "&" in text else text


def _unescaped(found: re.Match[str]) -> str:
    code, char = found.groups()
    if code is char:
        return html.unescape(found[0])
    return chr(int(code, 16)) if code else _SPACES.get(char, char)


# Ends of file names that no host name ends in.
_FILES: Final = re.compile(
    r"7z|bak|bin|bmp|cfg|conf|cpp|css|csv|dat|db|dll|docx?|exe|gif|gz|html?|ico|ini|ipynb|jpe?g|js"
    r"|jsonl?|log|lua|mp[34]|od[pst]|ogg|pdf|png|pptx?|rar|rtf|sql|svg|tar|tex|tmp|toml|tsv|txt"
    r"|wav|webp|xlsx?|xml|ya?ml"
)
# Each alternative begins after what cannot stand in it, so that long texts take no longer.
_LINK: Final = re.compile(
    r"(?:(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]*:/"
    r"|(?:data|file|ftp|https?|javascript|mailto|sms|tel|vbscript|wss?):)|[/\\]{2})[^\s<>\"`]+"
    r"|(?<![^\s<>\"`()\[\],;:@])[^\s<>\"`()\[\],;:@]+@[^\s<>\"`()\[\],;:@]+"
    r"|(?<![\w-])@?(?:[\w-]+\.){1,10}([^\W\d_]{2,})(?:[:/?#\\][^\s<>\"`]*)?"
    r"|(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:[:/?#\\][^\s<>\"`]*)?",
    re.IGNORECASE,
)
# One of these is in each link.
_MARKS: Final = frozenset("./:@\\")
_DOTS: Final = str.maketrans("\u3002\uff61", "..")


def links(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each link, host name and mail address that a reader might see in prose.

    Returns:
        Each with whether it is in the text just so; file names are left out.

    >>> list(links("Ask bob@a.com, see https://a.com/x and notes.txt."))
    [('bob@a.com', True), ('https://a.com/x', True)]
    """
    plain = dict(_links_in(text))
    yield from ((link, True) for link, is_file in plain.items() if not is_file)
    read = _CONTROLS.sub("", without_unseen(_decoded(text))).translate(_DOTS)
    read = without_unseen(unicodedata.normalize("NFKC", read))
    yield from ((link, False) for link in dict(_links_in(read)) if link not in plain)


def _links_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what looks like a link, and whether it is the name of a file."""
    likely = " ".join([word for word in text.split() if not _MARKS.isdisjoint(word)])
    for found in _LINK.finditer(likely):
        link, end = _bare(found[0]), (found[1] or "").lower()
        yield link, bool(_FILES.fullmatch(end)) and link.lower().endswith(f".{end}")


# How many words are compared in one search, so that no text can make it take minutes.
_MOST: Final = 1_000_000


class Places(Generic[T]):
    """Know where words stand, so that words in a row are found without looking at all of them.

    Example:
        >>> places = Places[str]()
        >>> places.add("note", [{"to"}, {"bob", "bob's"}, {"mail"}])
        >>> list(places.find(("bob", "mail"))), list(places.find(("mail", "bob")))
        (['note'], [])
    """

    def __init__(self) -> None:
        self._next = 0
        self._places: dict[str, dict[int, T]] = {}

    def add(self, of: T, words: Iterable[Iterable[str]]) -> None:
        """Take in the words of one text, each in all of its forms.

        Args:
            of: What the text is of.
            words: Its words.
        """
        at = self._next
        for at, forms in enumerate(words, self._next):
            for form in forms:
                self._places.setdefault(form, {})[at] = of
        self._next = at + 2  # no words in a row go from one text into the next

    # Like the inverted index of a search engine, with places: `{"bob": {1: "note"}, "mail": {2:
    # "note"}}` has `bob mail` at 1, 2. A regular expression over all texts would be slower by the
    # length of the conversation.
    def find(self, words: Words) -> Iterator[T]:
        """Yield what has these words in a row, in order, each once; nothing for no words.

        Words that come again and again are looked for at some of their places only.
        """
        places = [self._places.get(word, {}) for word in words]
        if not places or not all(places):
            return
        # Of ("to", "bob", "mail") the places of "bob" are looked at, and whether "to" is before
        # each and "mail" after it: common words have thousands of places.
        rarest = min(range(len(places)), key=lambda at: len(places[at]))
        found: set[T] = set()
        for at, of in islice(places[rarest].items(), _MOST // len(words)):
            if of not in found and all(
                at - rarest + off in each for off, each in enumerate(places)
            ):
                found.add(of)
                yield of


# How many sources of a value are told.
_MOST_SOURCES: Final = 4
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
        self.items: Sequence[TranscriptItem] = ()
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

    def read(self, items: Sequence[TranscriptItem]) -> None:
        """Take in what is new among the items; they begin with those that were read before."""
        self.items = items
        for position in range(len(self._sources), len(items)):
            self._sources.append(self._take(position, items[position]))

    def _take(self, position: int, item: object) -> Source | None:
        if isinstance(item, Message):
            source = Source(item.role, position)
            self._values[USER].add((), said(item.text))
            self._messages.add(source, zip(_words_of(item), strict=True))
        elif isinstance(item, AssistantTurn) and (given := item.given):
            source = Source("result", position, given[-1]["kind"], trusted=False)
            self.untrusted.append(source)
        elif not isinstance(item, ToolResult) or item.never_ran:
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

    def _arguments_of(self, result: ToolResult) -> object:
        """Return the arguments of a call by the keys that rules go by: others may have been sent.

        What does not fit the tool was answered by hand, and is what was sent.
        """
        data = self._tools[result.name].arguments_of(result)
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
    return tuple(sorted(sources, key=lambda each: (each.trusted, -each.position))[:_MOST_SOURCES])


def _words_of(item: TranscriptItem) -> Words:
    """Return the loose words of a message or result."""
    if isinstance(item, ToolResult):
        return loose(" ".join([*texts_in(item.output), item.message or ""]))
    if isinstance(item, AssistantTurn):
        return loose(" ".join(texts_in(item.given)))
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


def _arguments_of(result: ToolResult) -> object:
    """Return the arguments that a call ran with; nothing of those that are not JSON."""
    with suppress(ValueError, RecursionError):
        return parse_json(result.arguments) if result.ran_with is None else result.ran_with
    return None


def _name_in(owners: Owners, field: str | None) -> Words:
    """Return the words of a field in the innermost record that has it."""
    # The user says "the file notes", and the record `notes.txt`.
    names = [text_of(record[field]) for record in owners if field in record]
    return loose(_END_OF_FILE.sub("", names[-1])) if names else ()
