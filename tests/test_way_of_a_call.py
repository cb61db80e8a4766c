"""How far a call has to go is counted, so that it does not grow unseen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = {"plain": (100, 27), "suspended": (286, 41)}


def test_a_call_passes_so_many_functions_and_files_at_most() -> None:
    """From the response to the transcript a call passes no more than it does today."""
    # A process of its own: the way is longer where anyone has registered an after-hook.
    counted = subprocess.run(
        [sys.executable, "-m", "tests.way_of_a_call"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    lines = counted.stdout.splitlines()
    assert len(lines) == len(MOST)
    for line in lines:
        work, functions, _, _, files, _ = line.split()
        most = MOST[work.rstrip(":")]
        assert (int(functions) <= most[0], int(files) <= most[1]) == (True, True), line
