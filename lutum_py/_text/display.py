"""What is shown of a value: at a prompt, in a notebook, on a page and as plain text.

A value names what it holds once: an entry for each tool, call or item, and in it the parts that
somebody reads. The same lines are made of that everywhere, and rich colours them where it is
installed. Whatever is shown may come from a model or a tool: what does not print is spelled out
here, in one place.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .escaping import LINES, escape_unprintable

if TYPE_CHECKING:
    from rich.text import Text

# Seen on white and on black alike; none carries a meaning alone.
GOOD: Final = "#2f9e6e"
BAD: Final = "#d6493f"
WAITING: Final = "#c98a1b"
MODEL: Final = "#4d82e0"

_LIMIT: Final = 600
_MOST_ENTRIES: Final = 100
_MOST_PARTS: Final = 12


class Part(NamedTuple):
    """A text of an entry.

    Attributes:
        label: What it is, if that is not plain.
        text: The text, whoever wrote it.
        style: Its style in rich's words.
    """

    label: str
    text: str
    style: str = ""


class Entry(NamedTuple):
    """A tool, a call, or an item of a conversation.

    Attributes:
        place: Its number, or its id.
        who: Who said it, or which tool it belongs to.
        state: How it stands, if there is anything to say about that.
        style: The style of both in rich's words.
        about: A remark, such as the model.
        parts: What it holds.
    """

    place: str
    who: str
    state: str = ""
    style: str = ""
    about: str = ""
    parts: tuple[Part, ...] = ()


class Listing(NamedTuple):
    """What is shown of a value.

    Attributes:
        title: What it is.
        about: How much there is of it.
        entries: What it holds.
        parts: What is said before them.
    """

    title: str
    about: str
    entries: Sequence[Entry]
    parts: Sequence[Part] = ()


class Displayed:
    """Shows itself at a prompt with rich, and in notebooks; without rich, these show plain text."""

    __slots__ = ()

    @abstractmethod
    def _listing(self) -> Listing: ...

    def __rich__(self) -> Text:
        return rich_text([_bounded(self._listing())], _LIMIT)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            shown = self.__rich__()
        except ImportError:
            return {"text/plain": plain_text(_bounded(self._listing()), _LIMIT)}
        return shown._repr_mimebundle_(include, exclude)


def _bounded(listing: Listing) -> Listing:
    """Leave out what is too much for a screen, and count it."""
    entries = [
        each._replace(parts=(*each.parts[:_MOST_PARTS], Part("…", f"{left:,} more parts")))
        if (left := len(each.parts) - _MOST_PARTS) > 0
        else each
        for each in listing.entries[:_MOST_ENTRIES]
    ]
    if (left := len(listing.entries) - _MOST_ENTRIES) > 0:
        entries.append(Entry("…", f"{left:,} more"))
    return listing._replace(entries=entries)


def rich_text(listings: Iterable[Listing], limit: int | None = None) -> Text:
    """Make the text for rich, which wraps it for a terminal and writes it as HTML.

    Args:
        listings: What is shown.
        limit: How many characters of each text are shown; None for all.

    Raises:
        ImportError: `rich` is not installed.
    """
    from rich.text import Text

    return Text.assemble(*_pieces(listings, limit))


def plain_text(listing: Listing, limit: int | None = None) -> str:
    """Make the same text without colours."""
    return "".join(words for words, _ in _pieces([listing], limit))


def cut_text(text: str, limit: int | None) -> str:
    """Cut a text that is too long, and count what is left out.

    >>> cut_text("abcdef", 4)
    'abcd… (2 more characters)'
    """
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _pieces(listings: Iterable[Listing], limit: int | None) -> Iterator[tuple[str, str]]:
    """Yield the text piece by piece, each with its style."""
    before = ""
    for title, about, entries, parts in listings:
        yield before, ""
        yield from _heading(limit, (title, "bold"), (about, "dim"))
        yield from _lines(parts, limit)
        for place, who, state, style, remark, inside in entries:
            yield "\n\n", ""
            named = (who, f"bold {style}"), (state, style), (remark, "dim")
            yield from _heading(limit, (place, "dim"), *named)
            yield from _lines(inside, limit)
        before = "\n\n"


def _heading(limit: int | None, *words: tuple[str, str]) -> Iterator[tuple[str, str]]:
    gap = ""
    for text, style in words:
        if text:
            yield gap + escape_unprintable(cut_text(text, limit)), style
            gap = "  "


def _lines(parts: Iterable[Part], limit: int | None) -> Iterator[tuple[str, str]]:
    for label, text, style in parts:
        shown = escape_unprintable(cut_text(text, limit), LINES)
        if label:
            gap = "\n" if "\n" in shown else " "
            shown = f"{escape_unprintable(label)}:{gap}{shown}"
        yield f"\n{shown}".replace("\n", "\n  "), style
