"""What reaches the terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.cli import _screen


@given(st.text() | st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Co"])))
def test_safe_text_prints(words: str) -> None:
    """Whatever the text, what is shown is one line of characters that print."""
    assert _screen.safe(words).isprintable()


@given(st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_is_exact_and_prints(data: object) -> None:
    """JSON output says exactly what it was given, and holds nothing that commands a terminal."""
    written = _screen.json_text(data)
    assert json.loads(written) == data
    assert all(char.isprintable() or char == "\n" for char in written)


def test_what_a_stream_cannot_carry_is_escaped() -> None:
    """A stream of a small character set gets escapes, and no error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    _screen.write(stream, "café → ok\n")
    assert raw.getvalue() == b"caf\\xe9 \\u2192 ok\n"
    plain = io.StringIO()
    _screen.write(plain, "café\n")
    assert plain.getvalue() == "café\n"


def test_a_reader_that_left_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a broken pipe everything goes to nowhere, quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        _screen.write(stream, "lost\n")
        monkeypatch.setattr(sys, "stdout", stream)
        _screen.write_bytes(b"lost as well\n")
        assert os.path.samestat(os.fstat(writer), Path(os.devnull).stat())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_line_stays_indented_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit goes on under its beginning on a terminal; a pipe gets one line."""
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    for stream, lines in ((Terminal(), 2), (io.StringIO(), 1)):
        monkeypatch.setattr(sys, "stdout", stream)
        _screen.render(_screen.text("  one two three four five six seven"))
        shown = stream.getvalue().splitlines()
        assert len(shown) == lines
        assert all(line.startswith("  ") for line in shown)
