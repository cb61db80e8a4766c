"""The law of the whole store: whatever is killed or paused, nothing is done twice unsaid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def killed(where: str, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Run the driver, and give what it counted."""
    environment = {**os.environ, "PYTHONFAULTHANDLER": ""}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    arguments = [where, str(folder), str(kills), str(seed)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.kills", *arguments],
        capture_output=True,
        text=True,
        timeout=60 + kills * 3,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["wrong"] == []
    assert done.returncode == 0, done.stderr
    counted: dict[str, Any] = told["told"]
    return counted


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_killed_or_paused_pays_once_what_was_approved(
    where: str, tmp_path: Path, seed: int
) -> None:
    """However workers and approvers are killed and paused, each payment is made once, approved and
    of the approved amount, and every doubt is said.
    """
    told = killed(where, tmp_path, 15, seed)
    assert told["kills"] >= 15
    assert told["payments"] >= 5
