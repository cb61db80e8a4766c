"""The laws of `around`: a context sees each run, and whatever it does, no outcome is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    CallStatus,
    Session,
    ToolMetadata,
    ToolResult,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError, MisuseError
from lutum_py.execution import (
    ExecutionErrors,
    Outcome,
    execute,
    execute_all,
    execute_all_sync,
    execute_sync,
    outcomes_of,
)
from tests.cases import over


class Broken(Exception):
    """What a context raises."""


@tool_fn
def double(n: int) -> int:
    """Double a number."""
    if n < 0:
        raise ValueError("a negative number")
    return 2 * n


class Numbers(Toolset):
    double = tool(double)


def calls(*numbers: int) -> list[AnyToolCall]:
    return [
        Numbers.parse_tool_call(
            ToolMetadata(id=f"c{index}", name="double", arguments=f'{{"n": {number}}}')
        )
        for index, number in enumerate(numbers)
    ]


def run_all(listed: list[AnyToolCall], **options: Any) -> Iterator[Callable[[], list[Outcome]]]:
    """Each way of running several calls."""
    yield lambda: asyncio.run(execute_all(listed, **options))
    yield lambda: execute_all_sync(listed, **options)
    yield lambda: execute_all_sync(listed, limit=3, **options)


def broken_at(when: str, at: str = "c1") -> Any:
    """A context that breaks for one call: as it opens, as it is told, or as it closes."""

    @contextmanager
    def around(call: AnyToolCall) -> Iterator[Callable[[Outcome], object]]:
        here = call.id == at

        def ended(outcome: Outcome) -> None:
            if here and when == "told":
                raise Broken(when)

        if here and when == "opening":
            raise Broken(when)
        yield ended
        if here and when == "closing":
            raise Broken(when)

    return around


WAYS = range(3)


@over("way", WAYS)
@over("when", ["told", "closing"])
def test_a_broken_context_loses_no_outcome(way: int, when: str) -> None:
    """What a context raises after a run comes out with what all calls came to."""
    listed = calls(1, 2, 3)
    run = list(run_all(listed, around=broken_at(when)))[way]
    with pytest.raises(ExecutionErrors) as caught:
        run()
    assert [str(error) for error in caught.value.exceptions] == [when]
    assert [outcome.output for outcome in outcomes_of(caught.value)] == [2, 4, 6]  # type: ignore[union-attr]
    assert {call.status for call in listed} == {CallStatus.SUCCEEDED}


@over("way", WAYS)
def test_a_context_that_does_not_open_starts_nothing(way: int) -> None:
    """The tool behind it was not started, and the outcomes say so; the others have run."""
    listed = calls(1, 2, 3)
    run = list(run_all(listed, around=broken_at("opening")))[way]
    with pytest.raises(ExecutionErrors) as caught:
        run()
    statuses = [outcome.status for outcome in caught.value.outcomes]  # type: ignore[union-attr]
    assert statuses == ["success", "cancelled", "success"]
    assert listed[1].status is CallStatus.NEW


def test_one_call_in_a_broken_context() -> None:
    """A single run raises what the context raised, with the outcome, or before it starts."""
    for when in ("told", "closing"):
        around = broken_at(when, "c0")
        for is_async in (False, True):
            (call,) = calls(4)
            made = execute(call, around=around) if is_async else None
            with pytest.raises(ExecutionErrors) as caught:
                asyncio.run(made) if made is not None else execute_sync(call, around=around)
            (outcome,) = caught.value.outcomes
            assert isinstance(outcome, ToolResult)
            assert outcome.output == 8
    (call,) = calls(4)
    with pytest.raises(Broken):
        execute_sync(call, around=broken_at("opening", "c0"))
    assert call.status is CallStatus.NEW


@over("way", WAYS)
def test_a_context_that_takes_no_outcome_starts_nothing(way: int) -> None:
    """One that yields nothing is told how it is written before its tool runs."""

    @contextmanager
    def timed(call: AnyToolCall) -> Iterator[None]:
        with suppress(TypeError):
            yield

    listed = calls(1)
    run = list(run_all(listed, around=timed))[way]
    with pytest.raises(MisuseError, match=r"outcome, not None\. Write `yield lambda"):
        run()
    assert listed[0].status is CallStatus.NEW


def test_no_context_swallows_how_a_run_ended() -> None:
    """A context that suppresses exceptions does not turn a tool's exception into nothing."""

    @contextmanager
    def deaf(call: AnyToolCall) -> Iterator[Callable[[Outcome], object]]:
        with suppress(ValueError):
            yield lambda outcome: None

    for call in calls(-1):
        with pytest.raises(ValueError, match="a negative number"):
            execute_sync(call, around=deaf, raise_errors=True)


def test_an_abort_after_a_context_that_did_not_open_is_honest() -> None:
    """The model is told that the call was not executed, because it was not."""
    from lutum_py.testing import ScriptedModel

    outcome: Any = Numbers.read_turn(ScriptedModel.tool_calls(("c0", "double", {"n": 1})))
    plan, session = outcome.round.plan(), Session()
    with pytest.raises(Broken):
        execute_sync(plan.pending[0], around=broken_at("opening", "c0"))
    assert [each.status for each in plan.abort(session, "no tracing").results] == ["cancelled"]


@over("way", WAYS)
def test_a_call_that_was_answered_meanwhile_is_an_error_of_its_own(way: int) -> None:
    """What the library says of a call is raised as it is, and not taken for a broken context."""
    listed = calls(1, 2)

    @contextmanager
    def meddling(call: AnyToolCall) -> Iterator[Callable[[Outcome], object]]:
        if listed[1].status is CallStatus.NEW:
            listed[1].fail("answered elsewhere")
        yield lambda outcome: None

    run = list(run_all(listed, around=meddling))[way]
    with pytest.raises(LifecycleError):
        run()
