"""What is looked at, as elements: few tags, and text that is always escaped.

Elements are written in one of two ways. In a notebook each has its style with it and no colours but
for thin marks, for the page around may be light or dark. On a page of ours each has the name of its
kind as a class, and the page has the style sheet. Whatever is shown may come from a model or a
tool: characters that cannot be seen are spelled out.

What was said or done comes as entries, which a notebook, a page and a terminal show alike. An entry
says who, and in which state, and has parts: texts with a word of ours before them. How much of a
long text is seen at once is the only thing in which a notebook and a page differ.

A page of ours is one file, without network and without scripts. It forbids itself everything but
its own style sheet, which is named by its digest, and pictures that are in it. So no text in it can
load or run anything, whatever a browser makes of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias

from .escaping import LINES, escape_unprintable

MARKS: Final = {
    "good": "#2f9e6e",
    "bad": "#d6493f",
    "waiting": "#c98a1b",
    "plain": "#8a8f98",
    "model": "#4d82e0",
}
"""Colours that are seen on white and on black alike; they never carry a meaning alone."""

_TEXT: Final = "white-space:pre-wrap;overflow-wrap:anywhere;max-width:60em"
_CELL: Final = (
    "padding:3px 14px 3px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid rgba(127,127,127,.35)"
)
_KINDS: Final = ("place", "who", "what")
"""The kinds of the cells of an entry."""
_STYLES: Final = {
    "": "",
    "figure": "line-height:1.4",
    "table": "border-collapse:collapse;margin:4px 0;text-align:left",
    **dict.fromkeys(["cell", *_KINDS], _CELL),
    "text": _TEXT,
    "code": f"{_TEXT};min-width:12em;font-family:monospace",
    "name": (
        "white-space:pre-wrap;overflow-wrap:break-word;min-width:3em;max-width:22em;"
        "font-family:monospace"
    ),
    "note": "opacity:.7",
    **{
        f"mark {kind}": f"white-space:nowrap;padding-left:6px;border-left:4px solid {colour}"
        for kind, colour in MARKS.items()
    },
}


class Element(NamedTuple):
    """A tag with what is in it; without a tag, only what is in it.

    Attributes:
        tag: The name of the tag.
        kind: What it is, which decides how it looks.
        content: Texts, whoever wrote them, and elements.
        attributes: Attributes beside its looks; a page has them, a notebook has not.
    """

    tag: str
    kind: str
    content: tuple[Content, ...]
    attributes: tuple[tuple[str, str], ...] = ()


Content: TypeAlias = str | Element
"""What an element holds; a text is never HTML."""


def as_styles(element: Element) -> str:
    """Write an element for a notebook.

    >>> as_styles(mark("<b>", "plain"))[-18:]
    '">&lt;b&gt;</span>'
    """
    return "".join(_written(element, with_style=True))


def as_classes(element: Element) -> str:
    """Write an element for a page that has the style sheet.

    >>> as_classes(note("1 < 2"))
    '<span class="note">1 &lt; 2</span>'
    """
    return "".join(_written(element, with_style=False))


# One tree, written in two ways. Templates would be two texts that have to be kept alike, and each
# place in them would have to remember to escape.
def _written(element: Content, *, with_style: bool) -> Iterator[str]:
    if isinstance(element, str):
        yield escape(escape_unprintable(element, LINES))
        return
    tag, kind, content, attributes = element
    if tag:
        # A notebook drops `class` and keeps `style`; a page with a policy against inline styles
        # does the reverse.
        look = _STYLES[kind] if with_style else kind
        given = [("style" if with_style else "class", look)] if look else []
        given += [] if with_style else attributes
        yield "".join((f"<{tag}", *(f' {name}="{escape(value)}"' for name, value in given), ">"))
    for each in content:
        yield from _written(each, with_style=with_style)
    if tag and tag != "img":
        yield f"</{tag}>"


def cut_text(text: str, limit: int) -> str:
    """Cut a text and say how much is left out, for places that show plain text.

    >>> cut_text("abcdef", 4)
    'abcd… (2 more characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… {left_out(text, limit)}"


def left_out(text: str, limit: int) -> str:
    """Say how much of a text is not shown."""
    return f"({len(text) - limit:,} more characters)"


def _tag(tag: str, kind: str, *content: Content, **attributes: str) -> Element:
    return Element(tag, kind, content, tuple(attributes.items()))


def group(*content: Content) -> Element:
    """Put elements after each other."""
    return _tag("", "", *content)


def note(text: str) -> Element:
    """Show a text as less important."""
    return _tag("span", "note", text)


def mark(text: str, kind: str) -> Element:
    """Show a word with a coloured mark before it."""
    return _tag("span", f"mark {kind}", text)


def paragraph(text: str, limit: int = 600, *, code: bool = False, label: str = "") -> Element:
    """Show a text of its own lines, cut where it is long.

    Args:
        text: The text, whoever wrote it.
        limit: Characters that are shown.
        code: Whether it is set in a fixed width.
        label: A word of ours before it.
    """
    before = [note(f"{label}: ")] if label else []
    return _tag("div", "code" if code else "text", *before, *_cut(text, limit))


def named(text: str) -> Element:
    """Show an id or the name of a tool, which is broken only if it is very long."""
    return _tag("div", "name", *_cut(text, 80))


def _cut(text: str, limit: int) -> Iterator[Content]:
    yield text[:limit]
    if len(text) > limit:
        yield note(f" … {left_out(text, limit)}")


def table(
    head: Sequence[str], rows: Iterable[Sequence[Content]], kinds: Sequence[str] = ()
) -> Element:
    """Lay out rows of cells.

    Args:
        head: What the columns are.
        rows: The cells of each row.
        kinds: The kinds of the cells of a row, where they are not all alike.
    """
    kinds = kinds or ["cell"] * len(head)
    top = _tag("tr", "", *(_tag("th", "cell", each) for each in head))
    lines: list[Element] = []
    for row in rows:
        cells = [_tag("td", kind, each) for kind, each in zip(kinds, row, strict=False)]
        lines.append(_tag("tr", "", *cells))
    return _tag("table", "table", _tag("thead", "", top), _tag("tbody", "", *lines))


def figure(title: str, about: str, *content: Element) -> Element:
    """Put a title, a remark and what is to be shown together."""
    heading = _tag("div", "", _tag("strong", "", title), note(f" {about}"))
    return _tag("div", "figure", heading, *content)


PartKind: TypeAlias = Literal["text", "code", "call", "hidden", "problem", "picture"]

_PARTS: Final = 12
_FOLDED_AFTER: Final = 24
_PREVIEW_LINES: Final = 12
_PREVIEW: Final = 1200


class Part(NamedTuple):
    """A piece of an entry.

    Attributes:
        label: What it is, if that is not plain.
        text: The text; of a call, the name of its tool.
        kind: How it is set: `hidden` is folded on a page, `problem` is something to be repaired, of
            a `picture` the text describes it.
        about: What is said after the text of a call: its id.
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
        who: Who said it, or which tool it belongs to.
        state: How it stands; empty if nothing is to be said about that.
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
        is_code = part.kind in ("code", "call")
        words = " ".join(filter(None, (part.text, part.about)))
        limit = code_limit if is_code else text_limit
        return paragraph(words, limit, code=is_code, label=part.label)

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
        kind = "number" if entry.place.isdigit() else "id"
        place = _tag("div", kind, entry.place, id=f"{name}{number}")
        about = [_tag("div", "about", each) for each in entry.about]
        rows.append((place, _who(entry, about), group(*map(_whole, entry.parts))))
    return table(head, rows, _KINDS)


def _who(entry: Entry, about: Iterable[Element]) -> Element:
    if not entry.state:
        return group(mark(entry.who, entry.kind), *about)
    return group(named(entry.who), mark(entry.state, entry.kind), *about)


def _whole(part: Part) -> Element:
    label = [_tag("span", "label", part.label)] if part.label else []
    if part.kind == "call":
        about = [note(part.about)] if part.about else []
        return _tag("div", "call", *label, _tag("b", "tool", part.text), *about)
    if part.kind == "problem":
        return _tag("div", "problem", *label, _tag("div", "text", part.text))
    if part.kind == "picture":
        return _picture(part)
    # Without a script, `details` and `summary` fold: the preview is the summary, and the whole
    # inside.
    preview = "" if part.kind == "hidden" else preview_of(part.text)
    set_as = "text" if part.kind == "hidden" else part.kind
    whole = _tag("div", set_as, part.text)
    if preview == part.text and (part.text or not label):
        return _tag("div", "part", *label, whole)
    more = f"show all {len(part.text):,} characters"
    seen = [_tag("div", f"{set_as} seen", preview)] if preview else []
    summary = _tag("summary", "", *label, *seen, _tag("span", "more", more))
    return _tag("details", "part", summary, whole)


def _picture(part: Part) -> Element:
    image = _tag("img", "", src=part.source, alt=part.text, loading="lazy")
    return _tag("figure", "picture", image, _tag("figcaption", "", part.text))


def preview_of(text: str) -> str:
    """Return the beginning of a text that is too long to be read at once; a short one whole."""
    lines = text.split("\n", _FOLDED_AFTER)
    # Folded only where much is saved: a text of 13 lines with 12 of them shown would cost a click
    # for one.
    is_long = len(lines) > _FOLDED_AFTER or len(text) > 2 * _PREVIEW
    return "\n".join(lines[:_PREVIEW_LINES])[:_PREVIEW] if is_long else text


# A page of its own.


class Remark(NamedTuple):
    """Something that is said about what is shown.

    Attributes:
        kind: The kind of its mark: `bad` for what is wrong, `plain` else.
        title: What it is, in a word or two.
        text: The remark.
        place: The id of the entry that it is about, if any.
    """

    kind: str
    title: str
    text: str
    place: str = ""


class Section(NamedTuple):
    """A part of the page.

    Attributes:
        name: What the ids of its entries begin with.
        title: What is above it.
        head: What the columns of its entries are.
        entries: The entries.
        is_folded: Whether it is opened by hand.
    """

    name: str
    title: str
    head: Sequence[str]
    entries: Sequence[Entry]
    is_folded: bool = False


def page(
    title: str,
    about: str,
    facts: Iterable[tuple[str, str]],
    remarks: Iterable[Remark],
    sections: Iterable[Section],
) -> str:
    """Write the page.

    Args:
        title: What is shown, such as the name of a file.
        about: What it is.
        facts: Counts and other facts: a word and a value each.
        remarks: What is to be said first.
        sections: What is shown.
    """
    style = files("lutum_py._text").joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # `default-src 'none'` with the digest of our own style: a script, an image from the network or
    # a style in shown text does nothing, even if it came through the escaping.
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    header = _header(title, about, facts)
    shown = as_classes(_tag("main", "", header, *map(_remark, remarks), *map(_section, sections)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(escape_unprintable(title))}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{shown}\n</body>\n</html>\n"
    )


def _header(title: str, about: str, facts: Iterable[tuple[str, str]]) -> Element:
    counted = [
        _tag("div", "", _tag("dt", "", word), _tag("dd", "", value)) for word, value in facts
    ]
    shown = [_tag("dl", "facts", *counted)] if counted else []
    return _tag("header", "", _tag("p", "kind", about), _tag("h1", "", title), *shown)


def _remark(remark: Remark) -> Element:
    title = _tag("b", "", remark.title)
    if remark.place:
        title = _tag("a", "", title, href=f"#{remark.place}")
    return _tag("aside", f"remark {remark.kind}", title, _tag("div", "text", remark.text))


def _section(section: Section) -> Element:
    shown = whole_table(section.head, section.entries, section.name)
    if section.is_folded:
        opened = _tag("summary", "", _tag("h2", "", section.title))
        return _tag("details", "section", opened, shown)
    heading = [_tag("h2", "", section.title)] if section.title else []
    return _tag("section", "", group(*heading), shown)
