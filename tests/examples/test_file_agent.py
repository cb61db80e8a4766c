"""The laws of the example that runs over real files: `examples/file_agent.py`."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lutum_py
from lutum_py import (
    AssistantTurn,
    ToolResult,
    Transcript,
)
from tests.examples.conftest import EXAMPLES

SCRIPT = EXAMPLES / "file_agent.py"
# A generous bound on a loaded machine; nothing waits for it.
PATIENCE = 120


def environment() -> dict[str, str]:
    package = str(Path(lutum_py.__file__).parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TERM": "dumb", "COLUMNS": "80"}


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env={**environment(), "PYTHONIOENCODING": "utf-8"},
        cwd=cwd,
        check=False,
    )


def answer_of(shown: str) -> str:
    return shown.partition("\nanswer\n")[2]


class Terminal:
    """Runs the script as somebody at a terminal does."""

    def __init__(self, *arguments: str | Path) -> None:
        self.master, slave = pty.openpty()
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(SCRIPT), *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(),
        )
        os.close(slave)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            assert self._read(), f"ended without {text!r}: {self.seen}"

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(timeout=PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        assert ready, self.seen
        try:
            data = os.read(self.master, 65536)
        except OSError:  # Linux says so where the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


# The whole script.


def test_the_default_run_needs_nothing(tmp_path: Path) -> None:
    """Without arguments, from any directory, it looks at its own repository and answers."""
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"root      {SCRIPT.parent.parent}" in done.stdout
    assert '"own the loop" is in ' in answer_of(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_a_run_shows_every_kind_of_call(root: Path) -> None:
    """Several turns, parallel calls, a rejected call and a repaired one are there to be seen."""
    shown = run("--root", root, "--question", 'Where is "frog"?').stdout
    turns = re.findall(r"^turn \d+  (\d+) calls?", shown, re.MULTILINE)
    assert len(turns) >= 3
    assert int(turns[0]) > 1
    assert re.search(
        r"^  2 rejected by stay_inside: that leads out of the root$", shown, re.MULTILINE
    )
    assert "3 unusable `max_result`: there is no such field; did you mean `max_results`?" in shown
    first, second = shown.split("\nturn ")[1:3]
    assert 'search_text query="frog"  max_result=12' in first
    assert 'search_text query="frog"  max_results=12' in second
    assert re.search(r"^  1 result   \d lines? in 2 files; 2 searched$", second, re.MULTILINE)


def test_the_answer_comes_from_the_files(root: Path) -> None:
    """What the answer says is what the tools gave, and what was refused is not in it."""
    answer = answer_of(run("--root", root, "--question", 'Where is "frog"?').stdout)
    assert "There are 2 files: 1 .md, 1 .txt." in answer
    assert "README.md begins: Pond - A place for frogs." in answer
    assert "docs/frogs.txt:3" in answer
    assert "A frog is green." in answer
    assert "password" not in answer
    (root / "docs" / "frogs.txt").write_text("A toad is brown.\n")
    again = answer_of(run("--root", root, "--question", 'Where is "toad"?').stdout)
    assert "A toad is brown." in again


def test_output_fits_a_terminal_and_is_plain_in_a_pipe(root: Path) -> None:
    """No line is wider than 80 columns, and no colour is printed where nobody sees it."""
    (root / ("long" * 40)).write_text("frog " * 5000)
    shown = run("--root", root, "--question", 'Where is "frog"?').stdout
    assert max(map(len, shown.partition("\nturn 1")[2].splitlines())) <= 80
    assert "\x1b" not in shown


def test_a_reader_who_has_seen_enough_is_no_failure(root: Path) -> None:
    """Output that nobody reads any more, as behind `head`, ends the run quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-W", "error", str(SCRIPT), "--root", str(root)],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            env=environment(),
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_empty_directory_is_said_to_be_empty(tmp_path: Path) -> None:
    """A directory without files gives an answer, not an error."""
    done = run("--root", tmp_path, "--question", "What is here?")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The directory holds no files that I can see." in done.stdout


def test_ten_thousand_files_are_counted(tmp_path: Path) -> None:
    """Many files are all counted and searched, and few of them are named."""
    for folder in range(10):
        (tmp_path / str(folder)).mkdir()
        for number in range(1000):
            (tmp_path / str(folder) / f"{number}.txt").touch()
    (tmp_path / "9" / "999.txt").write_text("the needle")
    save = tmp_path / "9" / "transcript.json"
    done = run("--root", tmp_path, "--question", 'Where is "needle"?', "--save", save)
    assert (done.returncode, done.stderr) == (0, "")
    assert "There are 10,000 files: 10,000 .txt." in done.stdout
    assert "9/999.txt:1" in answer_of(done.stdout)
    assert len(save.read_text()) < 100_000


def test_odd_files_do_no_harm(root: Path) -> None:
    """Binary, huge and unreadable files, loops, pipes and odd names are lived with."""
    odd = os.fsencode(root / "docs") + b"/caf\xe9\n\x1b[31m.txt"
    with open(odd, "wb") as file:  # noqa: PTH123 - a name that is no text
        file.write(b"a frog\n\x1b]0;owned\x07 frog")
    (root / "frog.bin").write_bytes(b"frog\0frog")
    with (root / "huge.log").open("wb") as file:
        file.write(b"frog\n")
        file.truncate(3_000_000_000)
    (root / "loop").symlink_to("loop")
    (root / "docs" / "again").symlink_to("..")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(root)  # a socket's path is short
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
        closed = root / "closed.txt"
        closed.write_text("frog")
        closed.chmod(0)
        done = run("--root", root, "--question", 'Where is "frog"?')
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert r"docs/caf\xe9\x0a\x1b[31m.txt:1" in answer_of(done.stdout)
    assert "frog.bin:" not in done.stdout


def test_a_saved_transcript_loads(root: Path, tmp_path: Path) -> None:
    """What `--save` writes is a valid transcript with every call and its result."""
    save = tmp_path / "saved.json"
    done = run("--root", root, "--question", 'Where is "frog"?', "--save", save)
    assert done.stdout.splitlines()[-1].startswith(f"saved     {save}"[:80])
    transcript = Transcript.load_json(save.read_text(encoding="utf-8"))
    calls = [c for item in transcript if isinstance(item, AssistantTurn) for c in item.tool_calls]
    results = [item for item in transcript if isinstance(item, ToolResult)]
    assert [c.id for c in calls] == [r.id for r in results]
    assert {r.status for r in results} == {"success", "rejected"}
    assert [r.code for r in results].count("invalid_arguments") == 1
    last = transcript[-1]
    assert isinstance(last, ToolResult)
    assert (last.name, last.model_text) == ("answer", "accepted")
    answer = json.loads(last.arguments)
    assert answer["text"].splitlines()[0] in done.stdout
    assert answer["files"] == ["README.md", "docs/frogs.txt"]
    assert f"\n  from {', '.join(answer['files'])}\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--root", "/no/such/place"], "--root: '/no/such/place': no such file or directory"),
        (["--root", str(SCRIPT)], "not a directory"),
        (["--save", "/no/such/place/t.json"], "--save: '/no/such/place/t.json' cannot be written"),
        (["--save", "/"], "--save: '/' cannot be written"),
        (["--question", " "], "--question: it is empty"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(arguments: list[str], complaint: str) -> None:
    """What cannot work is refused before anything is done, in one line, with status 2."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


# Writing.

WRITE = 'Where is "frog"? Write it to docs/notes.md.'


def test_nothing_is_written_unless_it_is_allowed(root: Path) -> None:
    """Without `--allow-write` the tool is not on offer, whatever the model tries."""
    done = run("--root", root, "--question", WRITE)
    assert "unusable Tool `write_file` is not available in this turn" in done.stdout
    assert not (root / "docs" / "notes.md").exists()


def test_nothing_is_written_where_nobody_can_be_asked(root: Path) -> None:
    """With `--allow-write`, but without a terminal, each write is rejected."""
    done = run("--root", root, "--question", WRITE, "--allow-write")
    assert "rejected by ask_first: there is nobody at a terminal" in done.stdout
    assert not (root / "docs" / "notes.md").exists()


@pytest.mark.parametrize(("reply", "agreed"), [("y\n", True), ("n\n", False), ("\x04", False)])
def test_the_terminal_decides_about_a_write(root: Path, reply: str, agreed: bool) -> None:
    """Somebody at a terminal is asked, with the file's name; only a yes writes it."""
    terminal = Terminal("--root", root, "--question", WRITE, "--allow-write")
    terminal.wait_for("[y/N] ")
    assert "Write docs/notes.md (" in terminal.seen
    terminal.type(reply)
    assert terminal.end() == 0
    notes = root / "docs" / "notes.md"
    assert notes.exists() is agreed
    if agreed:
        assert "docs/frogs.txt:3" in notes.read_text()
        assert "Written to docs/notes.md." in terminal.seen
    else:
        assert "rejected by ask_first: the user does not want it" in terminal.seen


def test_a_stop_ends_the_round_honestly(root: Path, tmp_path: Path) -> None:
    """After Ctrl-C the transcript is saved, and says that the write was not executed."""
    save = tmp_path / "saved.json"
    terminal = Terminal("--root", root, "--question", WRITE, "--allow-write", "--save", save)
    terminal.wait_for("[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.type("\n")  # a signal just before the read begins does not end it
    assert terminal.end() == 130
    assert "Traceback" not in terminal.seen
    assert "1 aborted  cancelled: Not executed: the user stopped it" in terminal.seen
    last = Transcript.load_json(save.read_text())[-1]
    assert isinstance(last, ToolResult)
    assert (last.name, last.status) == ("write_file", "cancelled")
    assert not (root / "docs" / "notes.md").exists()
