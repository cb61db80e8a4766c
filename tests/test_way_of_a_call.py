"""How far a call has to go is counted, so that it does not grow unseen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.way_of_a_call import passed, plain, suspended


@pytest.mark.parametrize(
    ("work", "functions", "files"), [(plain, 82, 34), (suspended, 245, 47)], ids=["plain", "asked"]
)
def test_a_call_passes_so_many_functions_and_files_at_most(
    work: Callable[[], None], functions: int, files: int
) -> None:
    """From the response to the transcript a call passes no more than it does today."""
    seen = passed(work)
    assert len(seen) <= functions
    assert len({file for file, _ in seen}) <= files
