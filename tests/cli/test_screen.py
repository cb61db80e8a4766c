"""What reaches the terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from errno import ENOSPC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.cli import _screen


@given(st.text() | st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Co"])))
def test_safe_text_prints(words: str) -> None:
    """Whatever the text, what is shown is one line of characters that print."""
    assert _screen.text(words).plain.isprintable()


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


class Full(io.StringIO):
    """A stream that takes nothing, over a file of its own."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self.handle = handle

    def write(self, words: str) -> int:
        raise OSError(ENOSPC, "No space left on device")

    def fileno(self) -> int:
        return self.handle


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_full_stream_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """What cannot be written is a failure, but on standard error, where nothing can be told."""
    with (tmp_path / "file").open("w") as file:
        full = Full(file.fileno())
        monkeypatch.setattr(sys, name, full)
        if name == "stderr":
            _screen.complain(_screen.text("lost"))
        else:
            with pytest.raises(_screen.Failure, match="cannot be written: no space left on device"):
                _screen.render(_screen.text("lost"))
        assert os.path.samestat(os.fstat(full.handle), Path(os.devnull).stat())


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
