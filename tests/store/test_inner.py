"""What a store says of calls that ask for others."""

from __future__ import annotations

import asyncio

import pytest

from lutum_py.errors import MisuseError, PlanError
from lutum_py.execution import execute
from lutum_py.store import open_store
from tests.inner_tools import Desk, asks, opened, step


def test_a_plan_with_calls_within_is_not_kept() -> None:
    """It is refused with what to do instead, and stays open."""
    plan = opened(asks([("note", {"text": "a"})]))
    step(plan)
    with open_store(":memory:") as store, pytest.raises(PlanError, match="asked for others"):
        store.save("one", plan)
    plan.discard()


def test_a_claim_is_not_finished_by_asking() -> None:
    """The call is still the claim's, to be finished with a result."""
    with open_store(":memory:") as store:
        store.save("one", opened(asks([("note", {"text": "a"})])))
        claim = store.claim(Desk)
        assert claim is not None
        call = store.begin(claim)
        outcome = asyncio.run(execute(call))
        with pytest.raises(MisuseError, match="asks for others"):
            store.finish(claim, outcome)
        store.finish(claim, call.fail("no"))
        assert store.settled() == ["one"]
