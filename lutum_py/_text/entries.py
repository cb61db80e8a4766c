"""What was said or done, as entries that a notebook, a page and a terminal show alike.

An entry says who, and in which state, and has parts: texts with a word of ours before them. How
much of a long text is seen at once is the only thing in which a notebook and a page differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from .html import Content, Element, group, mark, named, note, paragraph, table

PartKind: TypeAlias = Literal["text", "code", "call", "hidden", "problem", "picture"]

_PARTS: Final = 12
_KINDS: Final = ("place", "who", "what")
_FOLDED_AFTER: Final = 24
_PREVIEW_LINES: Final = 12
_PREVIEW: Final = 1200


class Part(NamedTuple):
    """A piece of an entry.

    Attributes:
        label: What it is, if that is not plain.
        text: The text; of a call, the name of its tool.
        kind: How it is set: `hidden` is folded on a page, `problem` is something to be mended, of a
            `picture` the text describes it.
        about: What is said behind the text of a call: its id.
        source: The `data:` URL of a picture.
    """

    label: str
    text: str
    kind: PartKind = "text"
    about: str = ""
    source: str = ""


class Entry(NamedTuple):
    """One thing that was said or done.

    Attributes:
        place: Its number, or its id.
        who: Who said it, or which tool it is of.
        state: How it stands; empty where nothing is to be said of that.
        kind: The kind of mark that it has.
        about: Remarks, such as the model.
        parts: What was said.
    """

    place: str
    who: str
    state: str
    kind: str
    about: tuple[str, ...]
    parts: tuple[Part, ...]


def brief_table(
    head: Sequence[str], entries: Iterable[Entry], text_limit: int, code_limit: int
) -> Element:
    """Lay out entries for a notebook: long texts are cut, as are long lists of parts."""

    def shown(part: Part) -> Element:
        if part.kind == "call":
            words = " ".join(filter(None, (part.text, part.about)))
            return paragraph(words, code_limit, code=True, label=part.label)
        is_code = part.kind == "code"
        limit = code_limit if is_code else text_limit
        return paragraph(part.text, limit, code=is_code, label=part.label)

    rows: list[Sequence[Content]] = []
    for entry in entries:
        parts = [shown(part) for part in entry.parts[:_PARTS]]
        if len(entry.parts) > _PARTS:
            parts.append(note(f"{len(entry.parts) - _PARTS} more parts are not shown"))
        about = [paragraph(each, 80) for each in entry.about]
        place = named(entry.place) if entry.state else entry.place
        rows.append((place, _who(entry, about), group(*parts)))
    return table(head, rows, _KINDS)


def whole_table(head: Sequence[str], entries: Iterable[Entry], name: str) -> Element:
    """Lay out entries for a page, whole: what is long is folded.

    Args:
        head: What the columns are.
        entries: The entries.
        name: What the places begin with that can be gone to.
    """
    rows: list[Sequence[Content]] = []
    for number, entry in enumerate(entries):
        place = Element(
            "div",
            "number" if entry.place.isdigit() else "id",
            (entry.place,),
            (("id", f"{name}{number}"),),
        )
        about = [Element("div", "about", (each,)) for each in entry.about]
        rows.append((place, _who(entry, about), group(*map(_whole, entry.parts))))
    return table(head, rows, _KINDS)


def _who(entry: Entry, about: Iterable[Element]) -> Element:
    if not entry.state:
        return group(mark(entry.who, entry.kind), *about)
    return group(named(entry.who), mark(entry.state, entry.kind), *about)


def _whole(part: Part) -> Element:
    label = (Element("span", "label", (part.label,)),) if part.label else ()
    if part.kind == "call":
        about = (note(part.about),) if part.about else ()
        return Element("div", "call", (*label, Element("b", "tool", (part.text,)), *about))
    if part.kind == "problem":
        return Element("div", "problem", (*label, Element("div", "text", (part.text,))))
    if part.kind == "picture":
        return _picture(part)
    # Without a script, `details` and `summary` fold: the preview is the summary, and the whole
    # inside.
    preview = "" if part.kind == "hidden" else preview_of(part.text)
    set_as = "text" if part.kind == "hidden" else part.kind
    whole = Element("div", set_as, (part.text,))
    if preview == part.text and (part.text or not label):
        return Element("div", "part", (*label, whole))
    more = f"show all {len(part.text):,} characters"
    seen = (Element("div", f"{set_as} seen", (preview,)),) if preview else ()
    summary = Element("summary", "", (*label, *seen, Element("span", "more", (more,))))
    return Element("details", "part", (summary, whole))


def _picture(part: Part) -> Element:
    attributes = (("src", part.source), ("alt", part.text), ("loading", "lazy"))
    image = Element("img", "", (), attributes)
    return Element("figure", "picture", (image, Element("figcaption", "", (part.text,))))


def preview_of(text: str) -> str:
    """Give the beginning of a text that is too long to be read at once; a short one whole."""
    lines = text.split("\n", _FOLDED_AFTER)
    # Folded only where much is saved: a text of 13 lines with 12 of them shown would cost a click
    # for one.
    is_long = len(lines) > _FOLDED_AFTER or len(text) > 2 * _PREVIEW
    return "\n".join(lines[:_PREVIEW_LINES])[:_PREVIEW] if is_long else text
