"""Where the spans of calls within calls stand that a store keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lutum_py.store import open_store
from tests.inner_tools import Asking, asks, let_pass, opened

from .recorded_spans import Recorded, recording
from .test_otel_inner import NOTE, by_path, check_nested

recorded = pytest.fixture(recording)


def test_spans_nest_by_path_over_a_store(recorded: Recorded, tmp_path: Path) -> None:
    """Each worker finds in the store under which span the call stands that it has claimed."""
    plan = opened(asks([NOTE], [asks([("pay", {"cents": 2})])]), toolset=Asking)
    with open_store(tmp_path / "desk.db") as store:
        store.save("one", plan)
        with recorded.user.start_as_current_span("turn"):
            asyncio.run(store.run("one", Asking, hooks=let_pass, around=recorded.tracer.span))
    with open_store(tmp_path / "desk.db") as store:
        (waiting,) = store.waiting()
        store.decide("one", waiting.approve(), Asking)
        done = asyncio.run(store.run("one", Asking, hooks=let_pass, around=recorded.tracer.span))
        assert done.plan is not None
        done.plan.discard()
    check_nested(recorded)
    assert sorted(by_path(recorded)) == ["c1", "c1/1", "c1/2", "c1/2/1", "turn"]
