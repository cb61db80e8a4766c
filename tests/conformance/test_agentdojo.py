"""The laws of the figures on prompt injection, where AgentDojo is installed."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: pip install --group agentdojo")

from tests.benchmarks.agentdojo.figures import EDGES, Counts, Suite, attacks_on, tasks_of
from tests.benchmarks.agentdojo.policies import POLICIES


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_no_order_of_a_suite_lands_unasked(name: str) -> None:
    """Every order is read and asked about, and most tasks that change something are not."""
    suite, counts = Suite(name, [EDGES]), {EDGES: Counts()}
    changing = tasks_of(suite, counts)
    pairs, read = attacks_on(suite, counts)
    assert pairs == read > 0
    assert counts[EDGES].landed == []
    assert len(counts[EDGES].unasked) > changing / 2


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_has_at_most_forty_lines(name: str) -> None:
    """That is what somebody has to read who reviews it."""
    assert len(inspect.getsource(POLICIES[name]).splitlines()) <= 40
