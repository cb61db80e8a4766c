"""A hundred thousand random plans, run at once in a model world."""

from __future__ import annotations

import os

import pytest

from tests.round.worlds import faults, tools

SEED = int(os.environ.get("LUTUM_SOAK_SEED", "0"))
"""Another one for each round of `nox -s soak`."""


@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_plans_end_as_in_turn(part: int) -> None:
    """Whoever goes by the order of a plan ends as the serial order would, in each of ten times ten
    thousand plans.
    """
    assert faults(1_000 * (SEED + 1) + part, 10_000, tools()) == []
