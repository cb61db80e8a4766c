"""The support desk, killed at every one of its lines."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.examples.support_kills import STEPS, killed_and_well, lines_of_steps


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_kill_at_every_line_of_the_desk(step: int, tmp_path: Path) -> None:
    """At whichever line it is killed, each refund is made once, and none unapproved."""
    with TemporaryDirectory(dir=tmp_path) as first:
        lines = lines_of_steps(Path(first))
    for line in range(1, lines[step] + 1):
        with TemporaryDirectory(dir=tmp_path) as folder:
            killed_and_well(Path(folder), step, line)
