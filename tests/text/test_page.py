"""What pages of conversations are made of: text stays text, and JSON says what it said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lutum_py._text.html import Entry, Part, Remark, Section, page
from lutum_py._text.json import indented_json
from lutum_py.sinks import escape_unprintable

from ..cli.pages import HOSTILE, LINES, PICTURE, read_page


@given(HOSTILE)
def test_every_text_on_a_page_stays_text(words: str) -> None:
    """Whatever stands in titles, facts, remarks and entries is read as that text, with no tag."""
    kinds: tuple[Any, ...] = ("text", "code", "call", "hidden", "problem", "picture")
    parts = tuple(Part(words, words, kind, words, PICTURE) for kind in kinds)
    entry = Entry(words, words, words, "bad", (words,), parts)
    html = page(
        words,
        words,
        [(words, words)],
        [Remark("bad", words, words)],
        [Section("a", words, (words,), [entry]), Section("b", words, (words,), [entry], True)],
    )
    shown = escape_unprintable(words, LINES)
    assert read_page(html).text.count(shown) >= 2 * len(kinds)


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
