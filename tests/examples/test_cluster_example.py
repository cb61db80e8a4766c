"""The cluster example, on real worker processes, some of which are killed.

Run as a script, this file is somebody else's cluster: it prints its address, and ends when its
input does.
"""

# mypy: disallow-untyped-calls=false
# (`distributed` annotates only some of its functions.)

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from lutum_py import ToolResult, Transcript

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples" / "cluster.py"
PARTS: Final = {"part_0": 1229, "part_1": 1033, "part_2": 983, "part_3": 958}


def run(folder: Path, *options: str) -> tuple[str, dict[str, ToolResult], list[str]]:
    """Run the example as a user does; give what it said, the results by id, and the letters."""
    saved, outbox = folder / "transcript.json", folder / "outbox.txt"
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), f"--save={saved}", f"--outbox={outbox}", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # Loading refuses a transcript that is not valid.
    items = Transcript.load_json(saved.read_text())
    results = {item.id: item for item in items if isinstance(item, ToolResult)}
    assert list(results) == [*PARTS, "letter_Ada", "letter_Emmy"]
    return done.stdout, results, sorted(outbox.read_text().splitlines())


def counted(results: dict[str, ToolResult]) -> dict[str, object]:
    return {name: results[name].output for name in PARTS if results[name].is_success}


def test_a_round_runs_on_other_processes(tmp_path: Path) -> None:
    """Pending calls that workers run come back as the results of the round, in its order."""
    said, results, letters = run(tmp_path)
    assert all(result.is_success for result in results.values())
    assert counted(results) == PARTS
    assert letters == ["Ada: The count has begun.", "Emmy: The count has begun."]
    assert "4 of 4 parts are counted: 4203 primes." in said


def test_a_killed_worker_repeats_only_what_is_idempotent(tmp_path: Path) -> None:
    """After a kill idempotent tools have run again; any other has not, and is `indeterminate`."""
    said, results, letters = run(tmp_path, "--kill-a-worker")
    assert counted(results) == PARTS
    assert re.search(r'count_primes {"start":0,"stop":10000}: 1229, at the second try', said)
    assert results["letter_Ada"].status == "indeterminate"
    # Its result may have been lost with the worker that held it.
    assert results["letter_Emmy"].status in {"success", "indeterminate"}
    assert letters == ["Ada: The count has begun.", "Emmy: The count has begun."]
    assert "letter_Ada: indeterminate" in said


def test_a_round_runs_on_a_cluster_that_is_there_already(tmp_path: Path) -> None:
    """Workers that somebody else started get the tools, and run the calls."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as cluster:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        try:
            _, results, letters = run(tmp_path, "--scheduler", address)
        finally:
            cluster.communicate("", timeout=60)
    assert counted(results) == PARTS
    assert len(letters) == 2


def test_a_call_that_takes_too_long_is_indeterminate(tmp_path: Path) -> None:
    """Waiting for a result is bounded, and a call whose result was not waited for is no success."""
    (tmp_path / "outbox.txt").touch()
    _, results, _ = run(tmp_path, "--timeout", "0")
    assert {result.status for result in results.values()} == {"indeterminate"}


def serve() -> None:
    """Be a cluster until the input ends."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    serve()
