"""What reaches the terminal."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py import ToolDef, Toolset
from lutum_py.dialects import openai_chat

from .conftest import Lutum

BODY: dict[str, Any] = {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "3"}]}
FOUND = b'{"messages": [{"role": "tool", "tool_call_id": "c1", "content": "3"}]}'
CLEAN = b'{"messages": [{"role": "user", "name": "caf\xc3\xa9", "content": "Go"}], "model": "m"}'
within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@within
@given(
    st.text(max_size=60)
    | st.text(alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Co"]), max_size=60)
)
def test_safe_text_prints(lutum: Lutum, words: str) -> None:
    """Whatever the text, what is shown is one line of characters that print."""
    message = {**BODY["messages"][0], "tool_call_id": words}
    body = {**BODY, "messages": [message]}
    ran = lutum("check", "-", "--dialect", "openai_chat", stdin=json.dumps(body).encode())
    lines = ran.out.splitlines()
    assert ran.code == 1
    assert all(line.isprintable() for line in lines)
    # As it was read: in JSON, two halves of a surrogate pair side by side are one character.
    faults = openai_chat.check(json.loads(json.dumps(body)))
    assert len(lines) == len(ran.out.split("\n")) - 1 == 1 + 4 * len(faults)


@within
@given(st.recursive(st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)))
def test_json_is_exact_and_prints(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch, data: object
) -> None:
    """JSON output says exactly what it was given, and holds nothing that commands a terminal."""
    schema = {"type": "object", "properties": {"a": {"default": data}}}
    module = ModuleType("made")
    made = ToolDef.from_json_schema(name="f", input_schema=schema)
    module.Tools = Toolset.from_definitions("Tools", [made])  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "made", module)
        ran = lutum("inspect", "made:Tools", "--json")
    assert ran.code == 0
    (shown,) = json.loads(ran.out)["tools"]
    assert shown["input_schema"]["properties"]["a"]["default"] == data
    assert all(char.isprintable() or char == "\n" for char in ran.out)


def test_what_a_stream_cannot_carry_is_escaped(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stream of a small character set gets escapes, and no error."""
    (tmp_path / "café → ok").write_bytes(CLEAN)
    raw, plain = io.BytesIO(), io.StringIO()
    narrow = io.TextIOWrapper(raw, encoding="ascii")
    for stream in (narrow, plain):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            assert lutum("check", "café → ok", "--dialect", "openai_chat").code == 0
    assert raw.getvalue().startswith(b"`caf\\xe9 \\u2192 ok` ")
    assert plain.getvalue().startswith("`café → ok` ")


@contextmanager
def broken_pipe() -> Iterator[Any]:
    """A stream into a pipe that nobody reads, and that leads nowhere in the end."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream
        assert os.path.samestat(os.fstat(writer), Path(os.devnull).stat())


def test_a_reader_that_left_is_no_error(lutum: Lutum, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a broken pipe everything goes to nowhere, quietly."""
    words = (1, ["check", "-"], FOUND)
    data = (0, ["repair", "-", "--dialect", "openai_chat"], CLEAN)
    for commands in ([words, data], [data, words]):
        with broken_pipe() as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            for code, command, given in commands:
                ran = lutum(*command, stdin=given)
                assert (ran.code, "lutum: " in ran.err) == (code, False), (commands, ran)


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
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """What cannot be written is a failure, but on standard error, where nothing can be told."""
    with (tmp_path / "file").open("w") as file:
        full = Full(file.fileno())
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, full)
            ran = lutum("check", "-", stdin=FOUND if name == "stdout" else b"no JSON")
        told = "lutum: the output cannot be written: no space left on device.\n"
        assert (ran.code, ran.out, ran.err) == (2, "", told if name == "stdout" else "")
        assert os.path.samestat(os.fstat(full.handle), Path(os.devnull).stat())


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_stream_changes_no_exit_code(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What a process without a standard stream writes there goes nowhere, and it works as ever."""
    for code, data in ((0, CLEAN), (0, FOUND), (2, b"no JSON")):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, None)
            ran = lutum("repair", "-", "--dialect", "openai_chat", stdin=data)
            getattr(sys, name).close()
        assert ran.code == code, ran
        assert (ran.out if name == "stdout" else ran.err) == ""


def test_a_closed_standard_input_is_empty(lutum: Lutum, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that began without standard input reads nothing from it, and says so."""
    ran = lutum("check", "-", stdin=cast("Any", None))
    sys.stdin.close()
    assert (ran.code, ran.err) == (2, "lutum: standard input is empty, so it is not JSON.\n")


@pytest.mark.parametrize("columns", ["0", "", "-5", "many"])
def test_a_width_that_is_none_does_not_hide_the_output(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """What is shown does not go away where `COLUMNS` says that there is no room."""
    usual = lutum("inspect", "tools:Tools")
    monkeypatch.setenv("COLUMNS", columns)
    ran = lutum("inspect", "tools:Tools")
    assert (ran.code, ran.out.split()) == (0, usual.out.split())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_line_stays_indented_on_a_terminal(
    lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit goes on under its beginning on a terminal; a pipe gets one line."""
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    for stream, wraps in ((Terminal(), True), (io.StringIO(), False)):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            assert lutum("check", "-", stdin=FOUND).code == 1
        shown = stream.getvalue().splitlines()
        told = shown[next(at for at, line in enumerate(shown) if "problem:" in line) :]
        assert len(told) > 2 if wraps else len(told) == 2
        assert all(line.startswith("  ") for line in told)
        assert all(len(line) <= 24 for line in told) is wraps
