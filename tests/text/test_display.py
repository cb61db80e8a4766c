"""The laws of what is shown: hostile text stays text in every rendering, and each says the same."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lutum_py._text.display import (
    BAD,
    GOOD,
    MODEL,
    WAITING,
    Displayed,
    Entry,
    Listing,
    Part,
    cut_text,
    plain_text,
    rich_text,
)
from lutum_py._text.json import indented_json
from lutum_py.sinks import escape_unprintable

SIGNS = st.sampled_from("<>&\"'\n\t\r\x00\x1b\u202e\u200b/=[]")
ANY = st.text(st.one_of(st.characters(), SIGNS), max_size=60)
LINES = "\n\t"


def listing(text: str) -> Listing:
    """A listing with a text in each of its places."""
    part = Part(text, text, BAD)
    return Listing(text, text, [Entry(text, text, text, GOOD, text, (part,))], [part])


class Value(Displayed):
    def __init__(self, shown: Listing) -> None:
        self.shown = shown

    def _listing(self) -> Listing:
        return self.shown


def texts_of(page: str) -> str:
    """The text of HTML that has to have no tags but ours."""
    tags = set(re.findall(r"<[^>]*>", page))
    assert all(re.fullmatch(r"</?(pre|span)( style=\"[^\"<>]*\")?>", each) for each in tags), tags
    return html.unescape(re.sub(r"<[^>]*>", "", page))


@given(ANY)
def test_hostile_text_stays_text_in_every_rendering(text: str) -> None:
    """Whatever is shown prints, carries no tag and no markup, and stands in each of its places."""
    shown = listing(text)
    plain = plain_text(shown)
    assert all(each.isprintable() or each in LINES for each in plain)
    words = escape_unprintable(text, LINES).replace("\n", "\n  ")
    assert plain.count(words) >= 2
    assert plain.count(escape_unprintable(text)) >= 6
    assert rich_text([shown]).plain == plain
    bundle = Value(shown)._repr_mimebundle_()
    read = texts_of(bundle["text/html"])
    assert all(each.isprintable() or each == "\n" for each in read)
    assert "".join(read.split()) == "".join(plain.split())


@given(ANY, st.integers(1, 80))
def test_a_long_text_is_cut_and_the_rest_is_counted(text: str, limit: int) -> None:
    """What is shown is the beginning, and the count is of exactly what is left out."""
    left = len(text) - limit
    cut = text if left <= 0 else f"{text[:limit]}… ({left:,} more characters)"
    assert cut_text(text, limit) == cut
    assert cut_text(text, None) == text
    assert ("more characters" in plain_text(listing(text), limit)) == (left > 0)


def test_a_screen_is_shown_so_many_entries_and_parts() -> None:
    """Of very many entries or parts the first are shown, and the rest are counted."""
    parts = tuple(Part("", f"part {number}") for number in range(15))
    entries = [Entry(f"c{number}", "add", parts=parts) for number in range(103)]
    shown = Value(Listing("Many", "", entries)).__rich__().plain
    assert "part 11\n  …: 3 more parts\n\nc1  add" in shown
    assert shown.endswith("\n\n…  3 more")
    assert "c100" not in shown
    assert "c102" in plain_text(Listing("Many", "", entries))


def test_several_lines_stand_below_their_label() -> None:
    """A text of one line stands beside its label, one of several below it, each indented."""
    parts = Part("one", "line"), Part("two", "a\n\tb"), Part("", "bare\nlines")
    shown = plain_text(Listing("T", "", [Entry("", "who", parts=parts)]))
    assert shown == "T\n\nwho\n  one: line\n  two:\n  a\n  \tb\n  bare\n  lines"


def test_colours_are_plain_values() -> None:
    """A colour is a hexadecimal value, so none can end the style that it stands in."""
    assert all(re.fullmatch(r"#[0-9a-f]{6}", each) for each in (GOOD, BAD, WAITING, MODEL))


def test_a_terminal_shows_the_same_text() -> None:
    """Rich prints the lines, wrapped at the width of the terminal."""
    console = Console(width=60, color_system=None)
    with console.capture() as printed:
        console.print(Value(listing("[red]x[/red]")))
    assert printed.get() == plain_text(listing("[red]x[/red]")) + "\n"


def test_a_notebook_takes_one_form_alone() -> None:
    """Who asks for one form of the display is given that one."""
    bundle = Value(listing("x"))._repr_mimebundle_(include={"text/html"}, exclude=None)
    assert bundle.keys() == {"text/html"}


def test_without_rich_a_notebook_shows_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is the same, and rich is neither needed nor named."""
    monkeypatch.setitem(sys.modules, "rich.text", None)
    assert Value(listing("x"))._repr_mimebundle_() == {"text/plain": plain_text(listing("x"))}


def test_nothing_is_loaded_before_it_is_shown() -> None:
    """Using the library loads no rich, and neither does what names the parts of a display."""
    code = """
import sys
from lutum_py import Session, Toolset
session = Session()
before = [name for name in sys.modules if name.endswith("_transcript.display")]
session._listing(), Toolset._listing()
print(before, "rich" in sys.modules, "lutum_py._transcript.display" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False True"


VALUES = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_is_laid_out_without_being_changed(value: Any) -> None:
    """However it is laid out, the text says the same, and no line break hides in a string."""
    laid = indented_json(json.dumps(value), width=10)
    assert json.loads(laid) == value


def test_what_is_no_json_is_left_as_it_is() -> None:
    """Text that is not JSON, or that nobody can read, is shown as it was written."""
    for text in ("no JSON\nbut lines", "{" * 90, "[" * 100_000):
        assert indented_json(text) == text, text[:40]
