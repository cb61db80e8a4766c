"""The laws of the elements of displays: hostile text stays text, in whatever place it stands."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lutum_py._text.html import (
    MARKS,
    as_styles,
    cut_text,
    figure,
    mark,
    named,
    note,
    paragraph,
    table,
)
from lutum_py.sinks import escape_unprintable
from tests.test_display_html import SIGNS, read_safely

ANY = st.text(st.one_of(st.characters(), SIGNS), max_size=60)
LINES = "\n\t"


@given(ANY)
def test_every_element_shows_hostile_text_as_it_is(text: str) -> None:
    """Whatever the text, the tags are ours alone, and the text that is read is that text."""
    html = figure(
        text,
        text,
        paragraph(text, label=text),
        paragraph(text, code=True),
        named(text),
        note(text),
        mark(text, "bad"),
        table((text,), [(text,)]),
    )
    read = read_safely(as_styles(html))
    shown = escape_unprintable(text, LINES)
    found = [each for each in read.texts if each]
    label = f"{shown}: " if shown else ""
    expected = [shown, f" {shown}", label, *[shown] * 7]
    assert found == [each for each in expected if each]


@given(ANY, st.integers(1, 80))
def test_a_long_text_is_cut_and_the_rest_is_counted(text: str, limit: int) -> None:
    """What is shown is the beginning, and the count is of exactly what is left out."""
    read = read_safely(as_styles(paragraph(text, limit)))
    assert escape_unprintable(text[:limit], LINES) in "".join(read.texts)
    left = len(text) - limit
    assert (f"… ({left:,} more characters)" in "".join(read.texts)) == (left > 0)
    assert cut_text(text, limit) == (
        text if left <= 0 else f"{text[:limit]}… ({left:,} more characters)"
    )


def test_marks_are_colours_alone() -> None:
    """The colours are plain hexadecimal values, so none can end the style that it stands in."""
    assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in MARKS.values())
