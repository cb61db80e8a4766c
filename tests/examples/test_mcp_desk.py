"""The example of a served toolset: one process serves, one asks, one answers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("mcp", reason="mcp is not installed: python -m pip install -e '.[mcp]'")

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "mcp_desk.py"


@contextmanager
def served(outbox: Path) -> Iterator[str]:
    """Start the server, and give its address."""
    command = [sys.executable, str(EXAMPLE), "serve", "--outbox", str(outbox)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def started(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def run(*arguments: str | Path) -> str:
    done = started(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_person_answers_in_another_process(tmp_path: Path) -> None:
    """The question outlives its process and connection; the letter goes out once, or not, whoever
    gives the same answer twice.
    """
    outbox, state = tmp_path / "outbox.txt", tmp_path / "state.json"
    answers = {
        "no": ("Ada's letter: [tool_error] Cancelled: the user declined.\n", []),
        "yes": ("Ada's letter: sent to Ada\n", ["Ada: There are 168 of them."]),
    }
    with served(outbox) as url:
        for word, (said, letters) in answers.items():
            asked = run("ask", url, "--state", state)
            assert asked.startswith("send_letter asks: Send Ada this? There are 168 of them.\n")
            assert not outbox.exists(), word
            assert run("answer", url, word, "--state", state) == said
            assert (outbox.read_text().splitlines() if outbox.exists() else []) == letters, word
        again = started("answer", url, "yes", "--state", state)
        assert (again.returncode, again.stderr.startswith(f"Nothing waits in {state}.")) == (
            1,
            True,
        )
        assert len(outbox.read_text().splitlines()) == 1


def test_an_address_at_which_nobody_answers_is_one_line(tmp_path: Path) -> None:
    """So is one that is no address, and a state that is none."""
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{", encoding="utf-8")
    with served(tmp_path / "outbox.txt") as url:
        failed = [
            started("ask", "http://127.0.0.1:9/mcp", "--state", tmp_path / "state.json"),
            started("ask", "nowhere", "--state", tmp_path / "state.json"),
            started("answer", url, "yes", "--state", damaged),
        ]
    for done in failed:
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(r"\w+(Error|Protocol): .*\n", done.stderr), done.stderr
