"""A page of its own around what notebooks show: one file, without network and without scripts.

The page forbids itself everything but its own style sheet, which is named by its digest, and
pictures that are in it. So no text in it can load or run anything, whatever a browser makes of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from .escaping import visible
from .html import Element, Entry, as_classes, group, whole_table


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
    shown = as_classes(
        Element(
            "main",
            "",
            (_header(title, about, facts), *map(_remark, remarks), *map(_section, sections)),
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(visible(title))}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{shown}\n</body>\n</html>\n"
    )


def _header(title: str, about: str, facts: Iterable[tuple[str, str]]) -> Element:
    counted = tuple(
        Element("div", "", (Element("dt", "", (word,)), Element("dd", "", (value,))))
        for word, value in facts
    )
    return Element(
        "header",
        "",
        (
            Element("p", "kind", (about,)),
            Element("h1", "", (title,)),
            *((Element("dl", "facts", counted),) if counted else ()),
        ),
    )


def _remark(remark: Remark) -> Element:
    title = Element("b", "", (remark.title,))
    if remark.place:
        title = Element("a", "", (title,), (("href", f"#{remark.place}"),))
    text = Element("div", "text", (remark.text,))
    return Element("aside", f"remark {remark.kind}", (title, text))


def _section(section: Section) -> Element:
    shown = whole_table(section.head, section.entries, section.name)
    if section.is_folded:
        opened = Element("summary", "", (Element("h2", "", (section.title,)),))
        return Element("details", "section", (opened, shown))
    heading = (Element("h2", "", (section.title,)),) if section.title else ()
    return Element("section", "", (group(*heading), shown))
