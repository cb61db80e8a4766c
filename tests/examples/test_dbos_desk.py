"""The desk on DBOS, killed in the middle of its tools: each payment once, and every doubt said."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("dbos", reason="dbos is not installed: python -m pip install -e '.[examples]'")

# Its tables take the clock by a word that older versions of SQLite do not have.
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42),
    reason=f"DBOS on Python 3.12 and later needs SQLite 3.42; here is {sqlite3.sqlite_version}",
)

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "dbos_desk.py"

DRIVER: Final = """
import os, signal, sys

sys.path.insert(0, sys.argv[1])
import dbos_desk as desk

word, moment, folder = sys.argv[2:]
do = desk.World.do

def fused(self, statement, *values):
    if word in statement and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    do(self, statement, *values)
    if word in statement and moment == "after":
        os.kill(os.getpid(), signal.SIGKILL)

desk.World.do = fused
desk.main(["--folder", folder, "ask"])
"""


def process(folder: Path, word: str, moment: str) -> subprocess.Popen[str]:
    """Begin the conversation, or go on with it, in a process that may die in the middle."""
    arguments = [sys.executable, "-c", DRIVER, str(EXAMPLE.parent), word, moment, str(folder)]
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
    )


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), "--folder", str(folder), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def command(folder: Path, *options: str) -> str:
    done = run(folder, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def look_for(folder: Path, call_id: str) -> str:
    """Look at what waits until a call is there; before the tables are, nothing can be asked."""
    for _ in range(60):
        shown = run(folder, "inbox")
        if call_id in shown.stdout:
            return shown.stdout
    raise AssertionError(shown.stderr or shown.stdout)


def decide(folder: Path) -> None:
    """Approve one payment that waits, and cancel the other."""
    lines = look_for(folder, "call_2").splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("call_1"))
    command(folder, "approve", "call_1", lines[at + 2].split()[-1])
    command(folder, "cancel", "call_2", "--reason", "too much")


@pytest.mark.parametrize(
    ("word", "moment", "pay", "letter", "letters"),
    [
        ("payments VALUES", "before", "success", "success", 1),
        ("payments VALUES", "after", "success", "success", 1),
        ("letters VALUES", "before", "success", "indeterminate", 0),
        ("letters VALUES", "after", "success", "indeterminate", 1),
    ],
)
def test_a_kill_in_the_middle_of_a_tool(
    tmp_path: Path, word: str, moment: str, pay: str, letter: str, letters: int
) -> None:
    """A payment is made once whenever the process dies; a letter is not sent again, and is told."""
    with process(tmp_path, word, moment) as first:
        try:
            decide(tmp_path)
        except BaseException:
            first.kill()
            raise
        assert first.wait(timeout=120) == -9
    with process(tmp_path, "nothing", "ever") as second:
        said, _ = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert said.splitlines()[-3:] == [f"pay: {pay}", "pay: cancelled", f"send_letter: {letter}"]
    with closing(sqlite3.connect(tmp_path / "world.db")) as world:
        paid = world.execute("SELECT payee, cents FROM payments").fetchall()
        (sent,) = world.execute("SELECT count(*) FROM letters").fetchone()
    assert paid == [("Acme", 12_000)]
    assert sent == letters


def test_before_anything_was_asked_it_says_how_to_begin(tmp_path: Path) -> None:
    """Whoever looks or decides too early reads one line."""
    for early in (("inbox",), ("approve", "call_1", "00000000")):
        refused = run(tmp_path, *early)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert re.fullmatch("Nothing was started here.*\n", refused.stderr)


def test_a_decision_on_other_arguments_is_refused(tmp_path: Path) -> None:
    """An approval that names another digest than what waits is sent nowhere; the head of the file
    names the right one.
    """
    (digits,) = re.findall(r"approve call_1 (\w+)", EXAMPLE.read_text(encoding="utf-8"))
    with process(tmp_path, "nothing", "ever") as first:
        try:
            assert f"digest {digits}" in look_for(tmp_path, "call_1")
            refused = run(tmp_path, "approve", "call_1", "00000000")
            assert refused.returncode != 0
            assert "That is not what waits" in refused.stderr
            assert "call_1" in command(tmp_path, "inbox")
        finally:
            first.kill()
