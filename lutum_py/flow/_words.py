"""Words of a text in two ways: exact for what lets pass, loose for what warns.

Exact words differ wherever a program that reads the value might see a difference: only ASCII case,
white space, quotes and punctuation around a word and the writing of numbers do not matter. Loose
words are alike wherever a reader might take them for the same.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from .._text.escaping import without_unseen
from .._text.unicode import sendable

Words = tuple[str, ...]

_QUOTES: Final = "\"'`\u00ab\u00bb\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a"
_BEFORE: Final = _QUOTES + "([{<,;:!?\u00a1\u00bf\u2026"
_BEHIND: Final = _QUOTES + ")]}>,;:!?.\u2026"
_MARKED: Final = re.compile(r"[*_#]*([^\W_](?:.*[^\W_])?)[*_]*")
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_NUMBER: Final = re.compile(
    r"(-?)[$\u20ac\u00a3]?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:(\.[0-9]*?)0*)?[$\u20ac\u00a3]?"
)
_GLUED: Final = re.compile(r"(.*[a-z0-9])\.[A-Z][a-z]*")


def exact(text: str) -> Words:
    """Give the words of a value, each in the one form in which it is compared.

    >>> exact('Send "1,200.00" to Bob@A.com.')
    ('send', '1200', 'to', 'bob@a.com')
    """
    return tuple(map(_form, text.split()))


def said(text: str) -> Iterator[set[str]]:
    """Give each word of a source in all forms in which a value may have it.

    >>> [sorted(forms) for forms in said("Bob's site.com.They")]
    [['bob', "bob's"], ['site.com', 'site.com.they']]
    """
    for word in text.split():
        forms = {_form(word)}
        if not (word.isascii() and word.isalnum()):  # as most are
            bare = word.lstrip(_BEFORE).rstrip(_BEHIND)
            for inner in (_MARKED.fullmatch(bare), _GLUED.fullmatch(bare)):
                forms.update(() if inner is None else (_form(inner[1]),))
            if bare[-2:] in ("'s", "\u2019s"):
                forms.add(_form(bare[:-2]))
        yield forms


def _form(word: str) -> str:
    if word.isascii() and word.isalpha():
        return word.lower()
    bare = (word.lstrip(_BEFORE).rstrip(_BEHIND) or word).translate(_LOWER)
    number = _NUMBER.fullmatch(bare)
    if number is None:
        return bare
    return f"{number[1]}{number[2].replace(',', '')}{(number[3] or '').rstrip('.')}"


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SPACES: Final = {"n": "\n", "r": "\n", "t": "\n"}
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
# Thai, Lao, Burmese, Khmer, kana and ideographs, between whose words no spaces stand.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
)
_LETTERS: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def loose(text: str) -> Words:
    r"""Give the words of a text as somebody might read them: letters and digits alone.

    Where a writing has no spaces, each character is a word.

    >>> loose(r"Ca" + chr(0x200B) + r"t\u0020FOOD!")
    ('cat', 'food')
    """
    if "\\" in text:
        text = sendable(_ESCAPE.sub(_unescaped, text))
    text = _CONTROLS.sub("", text)
    if text.isascii():
        return tuple(_LETTERS.findall(text.lower()))
    text = unicodedata.normalize("NFKC", without_unseen(text)).casefold()
    bare = "".join([char for char in text if not unicodedata.combining(char)])
    return tuple(_LETTERS.findall(without_unseen(bare)))


def _unescaped(found: re.Match[str]) -> str:
    code, char = found.groups()
    return chr(int(code, 16)) if code else _SPACES.get(char, char)


_FILES: Final = re.compile(
    r"7z|bak|bin|bmp|cfg|conf|cpp|css|csv|dat|db|dll|docx?|exe|gif|gz|html?|ico|ini|ipynb|jpe?g|js"
    r"|jsonl?|log|lua|mp[34]|od[pst]|ogg|pdf|png|pptx?|rar|rtf|sql|svg|tar|tex|tmp|toml|tsv|txt"
    r"|wav|webp|xlsx?|xml|ya?ml"
)
"""Ends of file names that no host name ends in."""
# Each alternative begins behind what cannot stand in it, so that long texts take no longer.
_LINK: Final = re.compile(
    r"(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:/|(?:data|file|javascript|mailto|vbscript):|[/\\]{2})"
    r"[^\s<>\"`]+"
    r"|(?<![^\s<>\"`()\[\],;:@])[^\s<>\"`()\[\],;:@]+@[^\s<>\"`()\[\],;:@]+"
    r"|(?<![\w-])(?:[\w-]+\.){1,10}([^\W\d_]{2,})(?:[:/?#\\][^\s<>\"`]*)?"
    r"|(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:[:/][^\s<>\"`]*)?",
    re.IGNORECASE,
)
_MARKS: Final = frozenset("./:@\\")
"""One of these is in each link."""
_DOTS: Final = str.maketrans("\u3002\uff61", "..")


def links(text: str) -> Iterator[tuple[str, bool]]:
    """Give each link, host name and mail address that a reader might see in prose.

    Returns:
        Each with whether it stands in the text just so; file names are left out.

    >>> list(links("Ask bob@a.com, see https://a.com/x and notes.txt."))
    [('bob@a.com', True), ('https://a.com/x', True)]
    """
    read = _CONTROLS.sub("", without_unseen(text)).translate(_DOTS)
    read = without_unseen(unicodedata.normalize("NFKC", read))
    likely = " ".join([word for word in read.split() if not _MARKS.isdisjoint(word)])
    for found in _LINK.finditer(likely):
        link = found[0].rstrip(_BEHIND)
        end = (found[1] or "").lower()
        if not (_FILES.fullmatch(end) and link.lower().endswith(f".{end}")):
            yield link, link in text


class Places:
    """Know where words stand, so that words in a row are found without looking at all of them.

    Example:
        >>> places = Places()
        >>> places.add(3, [{"to"}, {"bob", "bob's"}, {"mail"}])
        >>> places.find(("bob", "mail")), places.find(("mail", "bob"))
        ([3], [])
    """

    def __init__(self) -> None:
        self._next = 0
        self._places: dict[str, dict[int, int]] = {}

    def add(self, number: int, words: Iterable[Iterable[str]]) -> None:
        """Take in the words of one text, each in all of its forms.

        Args:
            number: Names the text.
            words: Its words.
        """
        at = self._next
        for at, forms in enumerate(words, self._next):
            for form in forms:
                self._places.setdefault(form, {})[at] = number
        self._next = at + 2  # no words in a row go from one text into the next

    def find(self, words: Words) -> list[int]:
        """Give the texts that have these words in a row, in order; none for no words."""
        places = [self._places.get(word, {}) for word in words]
        if not all(places):
            return []
        # Of ("to", "bob", "mail") the places of "bob" are looked at, and whether "to" stands before
        # each and "mail" behind it: common words have thousands of places.
        rarest = min(range(len(places)), key=lambda at: len(places[at]), default=0)
        found = {
            number: None
            for at, number in (places[rarest].items() if places else ())
            if all(at - rarest + off in each for off, each in enumerate(places))
        }
        return list(found)
