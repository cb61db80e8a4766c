"""Half of a surrogate pair is taken out of all text, and nothing else is."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py._text.json import halves_in, parse_json, read_json, sendable, sendable_json

ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT)
def test_every_text_can_be_sent(text: str) -> None:
    """Any text comes out as one that UTF-8 carries; one that it carries comes out itself."""
    made = sendable(text)
    assert made.encode("utf-16-le") == text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "replace"
    ).encode("utf-16-le")
    assert sendable(made) is made


def test_two_halves_are_one_character() -> None:
    """The halves of a pair that stand beside each other are the character; others are U+FFFD."""
    assert sendable("\ud83d\ude00") == "\U0001f600"
    assert sendable("\ufeff\ude00\ud83d") == "\ufeff\ufffd\ufffd"


def test_data_is_copied_with_its_keys() -> None:
    """Texts and keys at any depth can be sent; where they could not be is told."""
    data = {"a": [("x\ud800",), 1], "\udcff": {"b": None}, 7: "\ud83d"}
    assert list(halves_in(data)) == ["a[0][0]", "\ufffd", "7"]
    made = sendable_json(data)
    assert made == {"a": [["x\ufffd"], 1], "\ufffd": {"b": None}, 7: "\ufffd"}
    assert list(halves_in(made)) == []


@given(ANY_TEXT)
def test_what_is_parsed_can_be_sent(text: str) -> None:
    """JSON is read with U+FFFD for half a pair, raw or escaped; a stream's keeps it for later."""
    for written in (json.dumps([text]), json.dumps([text], ensure_ascii=False)):
        assert parse_json(written) == [sendable(text)]
        assert sendable(read_json(written)[0]) == sendable(text)


@pytest.mark.parametrize("levels", [300, 700, 5_000])
def test_deep_json_is_read_or_refused(levels: int) -> None:
    """JSON of any depth is read whole, or refused as what is no JSON: nothing else comes out."""
    depth = 0
    with suppress(ValueError):
        read = parse_json("[" * levels + "]" * levels)
        depth = 1
        while read:
            (read,) = read
            depth += 1
    assert depth in (0, levels)
