"""A store whose workers, approvers and loops are killed a thousand times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.servers import Postgres, server
from tests.store.test_kills import killed

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("LUTUM_SOAK_SEED", "0"))
"""Another one for each round of `nox -s soak`."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of its own."""
    running = server()
    yield running
    running.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a store that is not there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    running: Postgres = request.getfixturevalue("postgres")
    return running.fresh()


def check_reached(told: dict[str, int], *states: str) -> None:
    """Make sure that calls were in each of these states as somebody was killed."""
    assert all(told.get(f"{state} at a kill", 0) >= 10 for state in states), told


def test_a_kill_at_every_line(where: str, tmp_path: Path) -> None:
    """At whichever line a worker is killed, its call is not started, done, or in doubt."""
    assert sum(killed("sweep", where, tmp_path, 1, 1).values()) > 500


@pytest.mark.parametrize("part", range(10))
def test_a_thousand_kills(part: int, where: str, tmp_path: Path) -> None:
    """However often workers and approvers are killed, nothing is paid twice or unapproved."""
    told = killed("kills", where, tmp_path, 100, SEED + part)
    assert told["kills"] >= 100
    check_reached(told, "waiting", "ready", "started", "done")


def test_a_kill_at_every_line_of_a_loop_that_holds(where: str, tmp_path: Path) -> None:
    """At whichever line it is killed, the next one goes on from its last save."""
    assert killed("hold_kills", where, tmp_path, "sweep", SEED % 5 + 1, 5)["kills"] > 500


@pytest.mark.parametrize("part", range(10))
def test_five_hundred_kills_of_loops_that_hold(part: int, where: str, tmp_path: Path) -> None:
    """However often three loops of the same conversations are killed, none takes from another."""
    assert killed("hold_kills", where, tmp_path, 50, SEED + part)["kills"] >= 50


@pytest.mark.parametrize("part", range(10))
def test_a_thousand_kills_while_calls_ask_for_others(part: int, where: str, tmp_path: Path) -> None:
    """However often workers are killed, at up to three calls deep, nothing is doubled or lost."""
    told = killed("inner_kills", where, tmp_path, 100, SEED + part)
    assert told["kills"] >= 100
    check_reached(told, "waiting", "ready", "started", "done", "awaiting")


@pytest.mark.parametrize("part", range(5))
def test_the_order_is_held_in_each_of_five_hundred_kills(
    part: int, where: str, tmp_path: Path
) -> None:
    """However one of two workers is killed, what accesses the same keeps the order of the turn."""
    assert killed("ordered", where, tmp_path, 100, SEED + part)["kills"] == 100
