"""The laws of the example of a store of one's own: `examples/json_lines_store.py`."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lutum_py
from tests.examples.conftest import EXAMPLES

SCRIPT = EXAMPLES / "json_lines_store.py"
NAMES = ("a", "b", "c")


def started(path: Path, seconds: float = 0.0) -> subprocess.Popen[str]:
    paths = [str(Path(lutum_py.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(SCRIPT), str(path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SECONDS_TO_PAY": str(seconds),
        },
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_round_is_kept_from_begin_to_end(tmp_path: Path) -> None:
    """What is there at the end is there again in the next process, and nothing is paid twice."""
    first, _ = started(tmp_path / "round.jsonl").communicate(timeout=60)
    again, _ = started(tmp_path / "round.jsonl").communicate(timeout=60)
    assert [line for line in first.splitlines() if line.startswith("paid")] == [
        f"paid {100 * n} cents to {name}" for n, name in enumerate(NAMES)
    ]
    assert first.splitlines()[-1] == again.strip() == "c0 success, c1 success, c2 success"


@pytest.mark.parametrize("kills", range(4))
def test_nothing_is_paid_twice_however_often_it_is_killed(tmp_path: Path, kills: int) -> None:
    """What was being paid at a kill is in doubt, and is not paid again."""
    path, said = tmp_path / "round.jsonl", ""
    for number in range(kills):
        process = started(path, seconds=0.1)
        wait_for(path, lines=5 + 2 * number)
        time.sleep(random.Random(number).random() / 5)
        process.send_signal(signal.SIGKILL)
        said += process.communicate(timeout=60)[0]
    said += started(path).communicate(timeout=60)[0]
    ends = said.splitlines()[-1]
    for number, name in enumerate(NAMES):
        paid = said.count(f"to {name}")
        assert paid <= 1
        if f"c{number} success" in ends:
            assert paid == 1
        else:
            assert f"c{number} indeterminate" in ends
            assert f"call c{number} may have paid" in said


def wait_for(path: Path, lines: int) -> None:
    """Wait until so much is on the disk, or the process has ended before."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if path.exists() and path.read_bytes().count(b"\n") >= min(lines, 10):
            return
        time.sleep(0.01)
    raise AssertionError(path.read_text() if path.exists() else "it did not begin")


def test_half_a_line_counts_for_none(tmp_path: Path) -> None:
    """A kill in the middle of a write leaves a file that opens as if that had not been begun."""
    path = tmp_path / "round.jsonl"
    started(path).communicate(timeout=60)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    said, _ = started(path).communicate(timeout=60)
    assert said.splitlines()[0] == "call c0 may have paid: ask the bank"
    assert said.splitlines()[-1] == "c0 indeterminate, c1 success, c2 success"
