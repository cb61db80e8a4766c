"""A page of its own around what notebooks show: one file, without network and without scripts.

The page forbids itself everything but its own style sheet, which is named by its digest, and
pictures that are in it. So no text in it can load or run anything, whatever a browser makes of it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from .entries import Entry, whole_table
from .escaping import visible
from .html import Element, as_classes, group


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
        title: What stands above it.
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
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
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
        f"<title>{escape(visible(title))}</title>\n<style>{_STYLE}</style>\n</head>\n"
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


_STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--text:#1c2024;--soft:#5b636d;--line:#e2e5e9;
--card:#f5f6f8;--good:#18794e;--bad:#c4281c;--bad-bg:#fdf0ef;--waiting:#8a5a00;--link:#2450a8}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--text:#e3e6e9;--soft:#9aa3ad;--line:#2c3237;
--card:#1d2125;--good:#4cc38a;--bad:#ff8b80;--bad-bg:#331c1a;--waiting:#e5b454;--link:#8ab4ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:16px/1.55 system-ui,sans-serif}
main{max-width:68rem;margin:0 auto;padding:2.5rem 1.5rem 5rem}
header{margin-bottom:1.75rem}
.kind{margin:0;color:var(--soft);font-size:.875rem}
h1{margin:.1rem 0 0;font-size:1.6rem;line-height:1.25;overflow-wrap:anywhere}
h2{margin:2.5rem 0 .75rem;font-size:1.1rem}
.facts{display:flex;flex-wrap:wrap;gap:.5rem 2.25rem;margin:1.1rem 0 0}
.facts dt{color:var(--soft);font-size:.8125rem}
.facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
.remark{margin:.6rem 0;padding:.6rem .9rem;border-left:4px solid var(--line);background:var(--card);
font-size:.9375rem}
.remark.bad{border-color:var(--bad);background:var(--bad-bg)}
a{color:var(--link)}
table,tbody{display:block}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{display:grid;grid-template-columns:11.5rem minmax(0,1fr);grid-template-rows:auto 1fr;
gap:.1rem 1.5rem;padding:1.05rem 0;border-top:1px solid var(--line);
content-visibility:auto;contain-intrinsic-size:auto 7rem}
td{display:block;padding:0;text-align:left}
.who{grid-column:1;grid-row:1;font-size:.9375rem}
.place{grid-column:1;grid-row:2;color:var(--soft);font-size:.8125rem;overflow-wrap:anywhere}
.what{grid-column:2;grid-row:1/3;min-width:0}
.number::before{content:"# "}
.number,.id{scroll-margin-top:1rem}
tr:has(:target){background:var(--card)}
.about{color:var(--soft);font-size:.8125rem;overflow-wrap:anywhere}
.name{font:600 .9375rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
.mark{padding-left:.55rem;border-left:4px solid var(--soft);font-weight:600}
.mark.good{border-color:var(--good);color:var(--good)}
.mark.bad{border-color:var(--bad);color:var(--bad)}
.mark.model{border-color:var(--link);color:var(--link)}
.mark.waiting{border-color:var(--waiting);color:var(--waiting)}
.text,.code{white-space:pre-wrap;overflow-wrap:anywhere}
.text{max-width:46rem}
.code{margin:.2rem 0 0;padding:.6rem .8rem;border:1px solid var(--line);border-radius:6px;
background:var(--card);font:.8438rem/1.5 ui-monospace,monospace;tab-size:4}
.what>*+*{margin-top:.7rem}
.what>.call+*{margin-top:.3rem}
.label{display:block;color:var(--soft);font-size:.8125rem}
.call>.label,.problem>.label{display:inline;margin-right:.5rem}
.tool{font:600 .9375rem/1.5 ui-monospace,monospace;margin-right:.6rem;overflow-wrap:anywhere}
.note{color:var(--soft);font-size:.8125rem;overflow-wrap:anywhere}
.call .note{font-family:ui-monospace,monospace}
.problem{padding:.5rem .8rem;border-left:4px solid var(--bad);background:var(--bad-bg);
font-size:.9375rem}
.problem>.label{color:var(--bad);font-weight:600}
summary{cursor:pointer;color:var(--soft)}
summary:focus-visible,a:focus-visible{outline:2px solid var(--link);outline-offset:2px}
summary h2{display:inline-block;color:var(--text)}
summary .label{display:inline;margin-right:.5rem}
.seen{color:var(--text);mask-image:linear-gradient(#000 55%,#0004)}
details[open]>summary>.seen{display:none}
.more{font-size:.8125rem;text-decoration:underline;text-underline-offset:2px}
figure{margin:0}
.picture img{display:block;max-width:100%;max-height:26rem;border:1px solid var(--line);
border-radius:6px;background:#fff}
figcaption{margin-top:.25rem;color:var(--soft);font-size:.8125rem;overflow-wrap:anywhere}
@media(max-width:44rem){main{padding:1.5rem 1rem 3rem}
h1{font-size:1.3rem}
tr{grid-template-columns:minmax(0,1fr) auto;grid-template-rows:auto;padding:.9rem 0;gap:.45rem 1rem}
.what{grid-column:1/3;grid-row:2}
.place{grid-column:2;grid-row:1;max-width:9rem;text-align:right}
.facts{gap:.4rem 1.5rem}}
@media print{main{max-width:none;padding:0}tr{content-visibility:visible}}
"""
