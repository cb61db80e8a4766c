"""A store whose workers and approvers are killed a thousand times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from secrets import randbits

import pytest

from tests.store.servers import Postgres, server
from tests.store.test_kills import killed


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of its own."""
    running = server()
    yield running
    running.remove()


@pytest.mark.soak
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_kills(
    database: str, part: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """However often workers and approvers are killed, nothing is paid twice or unapproved."""
    where = str(tmp_path / "store.db")
    if database == "postgres":
        running: Postgres = request.getfixturevalue("postgres")
        where = running.fresh()
    told = killed(where, tmp_path, 50, seed=randbits(32))
    assert told["kills"] >= 50
