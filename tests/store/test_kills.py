"""The law of the whole store: whatever is killed or paused, nothing is done twice unsaid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.statements import AFTER


def killed(program: str, where: str, folder: Path, *options: object) -> dict[str, int]:
    """Run a driver, and give what it counted."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.store.{program}", where, str(folder), *map(str, options)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert done.returncode == 0, done.stderr
    counted: dict[str, int] = told["told"]
    return counted


@pytest.mark.slow
def test_after_a_kill_at_any_line_a_call_is_not_begun_done_or_in_doubt(
    where: str, tmp_path: Path
) -> None:
    """Wherever between two lines a worker is killed, the store tells what is known of its call:
    that it was not started, that it is done, or that nobody knows.
    """
    told = killed("sweep", where, tmp_path, 3, 23)
    assert {"missing", "suspended", "pending", "in doubt", "success"} <= told.keys()


@pytest.mark.slow
def test_a_kill_between_two_statements_leaves_a_step_undone_or_done(
    where: str, tmp_path: Path
) -> None:
    """At each point of a save, a decision, a claim, a start, a finish, a commit and a close: from
    its `COMMIT` on a step is on record as a whole, and before that nothing of it is.
    """
    told = killed("statements", where, tmp_path)
    points = told.pop("points")
    before = "missing"
    for step, after in AFTER.items():
        assert told.get(f"{step}: {before}", 0) > 0, (step, told)
        assert told.get(f"{step}: {after}", 0) > 0, (step, told)
        before = after
    assert sum(told.values()) == points > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_killed_or_paused_pays_once_what_was_approved(
    where: str, tmp_path: Path, seed: int
) -> None:
    """However workers and approvers are killed and paused, each payment is made once, approved and
    of the approved amount, and every doubt is said.
    """
    told = killed("kills", where, tmp_path, 15, seed)
    assert told["kills"] >= 15
    assert told["payments"] >= 5


@pytest.mark.slow
def test_what_calls_ask_for_is_done_once_and_no_model_is_asked_again(
    where: str, tmp_path: Path
) -> None:
    """However workers are killed, at up to three calls deep: each call within another is made once
    or in doubt, none is lost, each is told as it ended, and no model is asked for a turn again that
    is on record.
    """
    told = killed("inner_kills", where, tmp_path, 15, 1)
    assert told["kills"] >= 15
    assert told["at depth 2"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("options", "least"), [((12, 3), 12), (("sweep", 31, 173), 12)])
def test_a_loop_that_is_killed_goes_on_from_its_last_save(
    where: str, tmp_path: Path, options: tuple[object, ...], least: int
) -> None:
    """Wherever loops are killed that hold their conversations, three at once or one, each turn is
    kept once, each call paid once or in doubt, and no save is lost to another.
    """
    assert killed("hold_kills", where, tmp_path, *options)["kills"] >= least
