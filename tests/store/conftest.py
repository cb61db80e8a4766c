"""What the tests of stores share: each runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lutum_py.store import Store, open_store
from tests.store.beside import Clock, watched
from tests.store.desk import KEY
from tests.store.servers import Postgres, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server of this session."""
    running = server()
    yield running
    running.remove()


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    """Watch the connections of the stores of each test."""
    with watched():
        yield


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    running: Postgres = request.getfixturevalue("postgres")
    return running.fresh()


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """An empty store with a key."""
    with open_store(where, key=KEY) as opened:
        yield opened


@pytest.fixture
def clock(store: Store) -> Clock:
    """The clock of that store's database, which stands still."""
    return Clock()
