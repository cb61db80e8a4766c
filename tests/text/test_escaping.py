"""Foreign text that meets a person, a log or the model: it says what it says, and does nothing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from lutum_py._text.escaping import escape_unprintable_json, quoted, words_of
from lutum_py.mcp._connection import legible
from lutum_py.sinks import escape_unprintable
from tests.cases import over

IGNORED = {
    chr(code)
    for first, last in (
        *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
        *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F)),
        *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0)),
        *((0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
    )
    for code in range(first, last + 1)
}
"""`Default_Ignorable_Code_Point` of Unicode 17, in `DerivedCoreProperties.txt`."""
ANY = st.text(st.characters()) | st.text(st.sampled_from("a\x1b[\r\n\t\x9b\x7f\u202e\u2028\ud800 "))


@given(ANY)
def test_what_is_shown_prints_and_what_prints_is_shown_as_it_is(text: str) -> None:
    """Only characters with a shape are left, on one line, and text of those alone is unchanged."""
    shown = escape_unprintable(text)
    assert shown.isprintable()
    assert shown.encode() or not text
    assert not IGNORED & {*shown}
    if text.isprintable() and not IGNORED & {*text}:
        assert shown == text


def test_what_no_font_shows_is_spelled_out() -> None:
    """Every code point that Unicode says is to be ignored can be seen, whether assigned or not."""
    assert len(IGNORED) == 4174
    for char in IGNORED:
        assert escape_unprintable(f"1{char}0") == f"1{char.encode('unicode_escape').decode()}0"
        assert not IGNORED & {*escape_unprintable_json(json.dumps(char, ensure_ascii=False))}
        assert json.loads(escape_unprintable_json(json.dumps(char, ensure_ascii=False))) == char


@given(ANY)
def test_what_is_kept_stays(text: str) -> None:
    """Where lines are expected, their breaks stay, and nothing else does."""
    shown = escape_unprintable(text, "\n")
    assert shown.count("\n") == text.count("\n")
    assert shown.replace("\n", "").isprintable()


@over(
    "char, shown",
    [
        ("\x1b", "\\x1b"),
        ("\r", "\\r"),
        ("\x7f", "\\x7f"),
        ("\x9b", "\\x9b"),
        ("\u200b", "\\u200b"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u3000", " "),
        ("é", "é"),
    ],
)
def test_each_kind_of_unseen_character_has_its_escape(char: str, shown: str) -> None:
    """Controls of both sets, bidi, separators, tags and halves are spelled out; a space is one."""
    assert escape_unprintable(f"a{char}b") == f"a{shown}b"


@given(ANY)
def test_json_says_what_it_said(text: str) -> None:
    """JSON text that is made visible prints, and parses to the same data."""
    for ascii_only in (True, False):
        shown = escape_unprintable_json(json.dumps({text: text}, ensure_ascii=ascii_only))
        assert shown.isprintable()
        assert json.loads(shown) == json.loads(json.dumps({text: text}))


def test_lines_of_json_stay() -> None:
    """JSON on several lines stays on them."""
    assert escape_unprintable_json('{\n "a": "\x7f"\n}') == '{\n "a": "\\u007f"\n}'


def test_names_stand_between_backticks() -> None:
    """A name is shown whole where it is short, and cut where it is long."""
    assert quoted("") == "''"
    assert quoted("x\n") == "`x\\n`"
    assert quoted("x" * 81) == f"`{'x' * 80}…`"


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_read_says_so() -> None:
    """The text of an exception is there whatever its `__str__` does."""
    assert words_of(ValueError("no such city")) == "no such city"
    assert "`__str__` raised RuntimeError" in words_of(_Silent())


SEQUENCES = [
    "\u2764\ufe0f\u200d\U0001f525",
    "\U0001f441\ufe0f\u200d\U0001f5e8\ufe0f",
    "\U0001f469\U0001f3fd\u200d\U0001f4bb",
    "\U0001f642\u200d\u2194\ufe0f",
    "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468",
]
HIDING = [
    "\u2764\ufe0f\u200d",
    "\u2764\ufe0f\ufe0f",
    "\u2764\ufe0f\u200da",
    "\u2764\ufe0f\u200d\u200d\U0001f525",
]


def test_emoji_of_several_symbols_stay_whole() -> None:
    """A selector and a joiner between two symbols stay; a run of them, or one alone, goes."""
    for each in SEQUENCES:
        text = f"On {each} now"
        assert legible(text, 100) == text
    for each in HIDING:
        kept = legible(f"{each}.", 100)
        assert len(kept) < len(each) + 1
        assert "\u200d" not in kept
