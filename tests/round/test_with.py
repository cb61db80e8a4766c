"""The laws of `with`: what is open at its end is discarded, and not in silence if it was
started.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from lutum_py import (
    RunNormally,
    Session,
    SuspendTicket,
    ToolMetadata,
)
from lutum_py.errors import RoundClosedError
from tests.cases import over
from tests.round_tools import Shop, close, done, forged, gated, opened


def test_a_round_that_nothing_was_begun_of_is_discarded_in_silence() -> None:
    """Open at the end of its `with`, a round and a plan are closed, and nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with opened(("c1", "add", {"a": 1})) as opening:
            plan = opening.apply_hooks_sync(gated(SuspendTicket(), Shop.add))
        with opened(("c1", "add", {"a": 1})).plan() as other:
            pass
    for end in (plan, other):
        with pytest.raises(RoundClosedError):
            end.discard()


def test_a_round_that_was_ended_is_left_as_it_is() -> None:
    """What was committed within a `with` stays committed."""
    session = Session()
    with opened(("c1", "add", {"a": 1})) as opening, opening.plan() as plan:
        plan.commit(session, done(plan.pending))
    assert len(session.transcript) == 2


def rewriting(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
    """A hook that gives another input, so that the plan has a call of its own."""
    return RunNormally(input.model_copy(update={"a": 3}))


@over("of", ["round", "plan"])
@over("rewrites", [False, True])
def test_a_call_that_was_begun_is_not_forgotten_in_silence(of: str, rewrites: bool) -> None:
    """The warning names the call, also where a hook made the plan's call another one."""
    hooks = Shop.HookSet()
    if rewrites:
        hooks.on(Shop.add)(rewriting)
    opening = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}))

    def breaks() -> None:
        if of == "plan":
            with opening.apply_hooks_sync(hooks) as plan:
                raise ValueError(plan.pending[0].call_sync())
        with opening:
            raise ValueError(opening.apply_hooks_sync(hooks).pending[0].call_sync())

    with (
        pytest.warns(ResourceWarning, match=r"'c1' of tool `add` had been started"),
        pytest.raises(ValueError, match="ToolResult"),
    ):
        breaks()
    with pytest.raises(RoundClosedError):
        opening.discard()


def test_a_recorded_result_is_not_forgotten_in_silence() -> None:
    """What the plan holds a result of was done somewhere."""
    with (
        pytest.warns(ResourceWarning, match="'c1' of tool `add`"),
        opened(("c1", "add", {"a": 1})).plan() as plan,
    ):
        plan.record(forged(plan.pending[0].metadata))


def test_a_tool_that_suspended_itself_was_begun_also_once_it_may_go_on() -> None:
    """Neither its question nor the answer to it undoes what it did before."""

    def asks(resumes: bool) -> None:
        with opened(("c1", "add", {"a": 1})).plan() as plan:
            call = plan.pending[0]
            call.start()
            plan.suspend(call.suspend(SuspendTicket()))
            if resumes:
                plan.resume(plan.suspended[0].approve())

    for resumes in (False, True):
        with pytest.warns(ResourceWarning, match="'c1' of tool `add`"):
            asks(resumes)


def test_a_call_in_doubt_is_not_forgotten_in_silence() -> None:
    """What was started before the plan was loaded may have had its effects."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    plan.pending[0].start()
    text = plan.dump_json()
    with pytest.warns(ResourceWarning, match="'c1' of tool `add`"), Shop.load_plan(text):
        pass


def test_a_round_may_be_entered_twice() -> None:
    """The inner `with` ends it; the outer one finds it ended."""
    with opened(("c1", "add", {"a": 1})) as opening, opening:
        close(opening)
