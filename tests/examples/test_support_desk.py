"""The support desk under fire: killed anywhere, started again, and never wrong."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tokenize
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.examples.support_kills import (
    CODE_DESK,
    DESK,
    STEPS,
    killed_and_well,
    lines_of_steps,
    points,
    run,
)

KILLS = 6
PROGRAMS = [DESK / "support.py", CODE_DESK]


def test_the_desk_is_done_in_three_steps(in_memory: Path) -> None:
    """It stops for the person, goes on after the yes, and gives the answer and what it cost."""
    printed = [run(in_memory, step)[0] for step in STEPS]
    assert "Somebody has to decide" in printed[0]
    assert printed[1] == 'refund {"order":"A1","cents":9900}? [y/n] '
    assert "input_tokens=800" in printed[2]
    assert "resolved=True" in printed[2]


def started(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start a desk as somebody does who has no terminal."""
    return subprocess.run(
        [sys.executable, str(program), *arguments],
        env={**os.environ, "PYTHONPATH": str(DESK)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_terminal_nothing_is_decided(program: Path, in_memory: Path) -> None:
    """The question is shown, no traceback, and the refund waits on."""
    run(in_memory, (), program=program)
    done = started(program, str(in_memory), "decide")
    assert done.returncode == 0
    assert done.stdout.endswith('refund {"order":"A1","cents":9900}? [y/n] ')
    assert "Traceback" not in done.stderr
    assert "Somebody has to decide" in run(in_memory, (), program=program)[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_folder_it_says_how_it_is_run(program: Path) -> None:
    """That is its docstring, and no traceback."""
    done = started(program)
    assert done.returncode == 1
    assert "python support.py FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_not_there_is_made(in_memory: Path) -> None:
    """Nobody needs to make it before the first run."""
    made = in_memory / "new" / "desk"
    assert "Somebody has to decide" in started(DESK / "support.py", str(made)).stdout


def test_nothing_over_the_limit_is_refunded_before_the_yes(in_memory: Path) -> None:
    """However often it is started, the large refund waits."""
    for _ in range(2):
        run(in_memory, ())
    with closing(sqlite3.connect(in_memory / "shop.db")) as shop:
        assert shop.execute("SELECT number FROM refunds").fetchall() == [("A2",)]


@pytest.mark.slow
def test_killed_at_any_line_each_refund_is_made_once(in_memory: Path) -> None:
    """Some lines, others each time; the soak takes all of them."""
    with TemporaryDirectory(dir=in_memory) as first:
        places = list(points(lines_of_steps(Path(first))))
    for step, line in random.sample(places, KILLS):
        with TemporaryDirectory(dir=in_memory) as folder:
            killed_and_well(Path(folder), step, line)


def test_the_desk_has_at_most_60_lines() -> None:
    """That is the whole program but for the shop's database and the scripted model."""
    lines = (DESK / "support.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60
    assert max(map(len, lines)) <= 100
    with tokenize.open(DESK / "support.py") as source:
        assert not any(token.string == ";" for token in tokenize.generate_tokens(source.readline))


def test_a_kill_is_noticed(in_memory: Path) -> None:
    """A desk that is killed has said nothing, so the test above does kill."""
    assert run(in_memory, (), 40) == ("", 40)
