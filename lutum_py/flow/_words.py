"""Words of a text in two ways: exact for what lets pass, loose for what warns.

Exact words differ wherever a program that reads the value might see a difference: only ASCII case,
white space, the writing of numbers, and quotes and punctuation around a word of the source do not
matter. Loose words are alike wherever a reader might take them for the same.
"""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from .._text.escaping import without_unseen
from .._text.unicode import sendable

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
