"""The law of an agent in a tool, two deep, with a program and an approval inside."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_an_agent_whose_agent_writes_a_program_goes_on_after_a_kill(tmp_path: Path) -> None:
    """In another process each time: no model is asked twice for a turn, and no step is lost."""
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.code.agents", str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert (tmp_path / "notes").read_text().splitlines() == [
        "head 0",
        "clerk 0",
        "waits within head clerk run_program",
        "approved c1/1/1/2 A1",
        "waits within head clerk run_program",
        "approved c1/1/1/3 A2",
        "clerk 1",
        "head 1",
        "Done.",
    ]
