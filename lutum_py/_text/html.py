"""HTML for notebooks: few tags, every text escaped, no colours but for thin marks.

A notebook may be light or dark, so text and background are those of the page around. Whatever is
shown may come from a model or a tool: characters that cannot be seen are spelled out, and long
texts are cut, with the number of characters that are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from .escaping import LINES, visible

__all__ = [
    "MARKS",
    "Html",
    "cut_text",
    "figure",
    "mark",
    "named",
    "note",
    "paragraph",
    "table",
]

MARKS: Final = {"good": "#2f9e6e", "bad": "#d6493f", "waiting": "#c98a1b", "plain": "#8a8f98"}
"""Colours that are seen on white and on black alike; they never carry a meaning alone."""

_FIGURE: Final = "line-height:1.4"
_TABLE: Final = "border-collapse:collapse;margin:4px 0;text-align:left"
_CELL: Final = (
    "padding:3px 14px 3px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid rgba(127,127,127,.35)"
)
_TEXT: Final = "white-space:pre-wrap;overflow-wrap:anywhere;max-width:60em"
_CODE: Final = f"{_TEXT};min-width:12em;font-family:monospace"
_NAME: Final = (
    "white-space:pre-wrap;overflow-wrap:break-word;min-width:3em;max-width:22em;"
    "font-family:monospace"
)
_NOTE: Final = "opacity:.7"
_MARK: Final = "white-space:nowrap;padding-left:6px;border-left:4px solid "


class Html(str):
    """Text that is HTML already; any other text is escaped."""

    __slots__ = ()


def cut_text(text: str, limit: int) -> str:
    """Cut a text and say how much is left out, for places that show plain text.

    >>> cut_text("abcdef", 4)
    'abcd… (2 more characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… {_left_out(text, limit)}"


def _left_out(text: str, limit: int) -> str:
    return f"({len(text) - limit:,} more characters)"


def _tag(name: str, style: str, *content: str) -> Html:
    inner = "".join(
        each if isinstance(each, Html) else escape(visible(each, LINES)) for each in content
    )
    attribute = f' style="{style}"' if style else ""
    return Html(f"<{name}{attribute}>{inner}</{name}>")


def _cut(name: str, style: str, text: str, limit: int, *before: Html) -> Html:
    left = [note(f" … {_left_out(text, limit)}")] if len(text) > limit else []
    return _tag(name, style, *before, text[:limit], *left)


def note(text: str) -> Html:
    """Show a text as less important."""
    return _tag("span", _NOTE, text)


def mark(text: str, kind: str) -> Html:
    """Show a word with a coloured mark before it."""
    return _tag("span", _MARK + MARKS[kind], text)


def paragraph(text: str, limit: int = 600, *, code: bool = False, label: str = "") -> Html:
    """Show a text of its own lines, cut where it is long.

    Args:
        text: The text, whoever wrote it.
        limit: Characters that are shown.
        code: Whether it is set in a fixed width.
        label: A word of ours before it.
    """
    before = [note(f"{label}: ")] if label else []
    return _cut("div", _CODE if code else _TEXT, text, limit, *before)


def named(text: str) -> Html:
    """Show an id or the name of a tool, which is broken only where it is very long."""
    return _cut("div", _NAME, text, 80)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Lay out rows of cells; a cell is text or HTML."""
    top = _tag("tr", "", *(_tag("th", _CELL, each) for each in head))
    lines = [_tag("tr", "", *(_tag("td", _CELL, each) for each in row)) for row in rows]
    return _tag("table", _TABLE, _tag("thead", "", top), _tag("tbody", "", *lines))


def figure(title: str, about: str, *content: Html) -> str:
    """Put a title, a remark and what is to be shown together."""
    heading = _tag("div", "", _tag("strong", "", title), note(f" {about}"))
    return _tag("div", _FIGURE, heading, *content)
