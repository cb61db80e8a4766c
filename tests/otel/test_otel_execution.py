"""Spans of calls that `execution` runs: one for each call that was started, and no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from lutum_py import ToolContext, ToolMetadata
from lutum_py.context import CancellationToken
from lutum_py.execution import execute, execute_all, execute_all_sync, execute_sync, outcomes_of

from .recorded_spans import Outer, Recorded, call_of, raising, recording

recorded = pytest.fixture(recording)


def calls(count: int) -> list[Any]:
    return [
        Outer.parse_tool_call(
            ToolMetadata(id=f"c{place}", name="run", arguments=f'{{"text":"{place}"}}')
        )
        for place in range(count)
    ]


def told(recorded: Recorded) -> dict[Any, Any]:
    """The outcome and parent of each tool's span, by the id of its call."""
    names = {span.context.span_id: span.name for span in recorded.spans if span.context}
    return {
        (span.attributes or {})["gen_ai.tool.call.id"]: (
            (span.attributes or {})["lutum.tool.outcome"],
            span.parent and names[span.parent.span_id],
        )
        for span in recorded.spans
        if span.name.startswith("execute_tool")
    }


def nested(recorded: Recorded) -> Any:
    """A tool that opens a span of its own."""

    def work(text: str) -> str:
        with recorded.user.start_as_current_span(f"query {text}"):
            return text

    return work


def queries(recorded: Recorded) -> dict[Any, Any]:
    """The id of the call under whose span each query was made."""
    ids = {
        span.context.span_id: (span.attributes or {}).get("gen_ai.tool.call.id")
        for span in recorded.spans
        if span.context
    }
    return {
        span.name: span.parent and ids[span.parent.span_id]
        for span in recorded.spans
        if span.name.startswith("query")
    }


EACH = {f"c{place}": ("success", "turn") for place in range(4)}
UNDER = {f"query {place}": f"c{place}" for place in range(4)}


async def test_calls_at_once_each_have_their_span(recorded: Recorded) -> None:
    """Run at once, each call has a span under the turn's, and what its tool opens is under that."""
    skipped = {"work": nested(recorded)}
    with recorded.user.start_as_current_span("turn"):
        await execute_all(calls(4), skipped=skipped, limit=2, around=recorded.tracer.span)
    assert told(recorded) == EACH
    assert queries(recorded) == UNDER


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("timeout", [None, 10])
def test_sync_calls_each_have_their_span(
    recorded: Recorded, limit: int, timeout: float | None
) -> None:
    """One after the other or in threads, with a deadline or without, spans nest alike."""
    with recorded.user.start_as_current_span("turn"):
        execute_all_sync(
            calls(4),
            skipped={"work": nested(recorded)},
            limit=limit,
            default_timeout=timeout,
            around=recorded.tracer.span,
        )
    assert told(recorded) == EACH
    assert queries(recorded) == UNDER


async def test_a_failure_is_told_by_its_code(recorded: Recorded) -> None:
    """What `execution` makes of an exception is what the span says."""
    skipped = {"work": raising(ValueError("no"))}
    await execute(call_of(), skipped=skipped, around=recorded.tracer.span)
    assert recorded.outcome() == ("error", "execution_failed", StatusCode.ERROR)


def test_an_exception_that_is_raised_ends_the_span(recorded: Recorded) -> None:
    """Under `raise_errors` the exception comes out, and the span has failed by its class."""
    skipped = {"work": raising(ValueError("no"))}
    with pytest.raises(ValueError, match="no"):
        execute_sync(call_of(), skipped=skipped, raise_errors=True, around=recorded.tracer.span)
    assert recorded.outcome() == ("error", "ValueError", StatusCode.ERROR)


async def test_a_call_that_is_not_started_has_no_span(recorded: Recorded) -> None:
    """A token that is cancelled before the start leaves no span, from async and sync code."""
    token = CancellationToken()
    token.cancel("enough")
    for call in calls(2):
        context = ToolContext.for_call(call, cancellation=token)
        if call.id == "c0":
            await execute(call, context, skipped={"work": str}, around=recorded.tracer.span)
        else:
            execute_sync(call, context, skipped={"work": str}, around=recorded.tracer.span)
        assert call.status == "cancelled"
    assert recorded.spans == ()


async def test_a_batch_that_is_cut_off_tells_what_each_call_came_to(recorded: Recorded) -> None:
    """Where the task is cancelled, the spans say what `outcomes_of` says, for what was started."""
    started = asyncio.Event()
    waiting = [call_of({}, "in_wait"), *calls(1)]
    task = asyncio.create_task(
        execute_all(
            waiting,
            skipped={"started": started, "work": str},
            limit=1,
            around=recorded.tracer.span,
        )
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as stopped:
        await task
    assert [each.status for each in outcomes_of(stopped.value)] == ["indeterminate", "cancelled"]  # type: ignore[union-attr]
    assert told(recorded) == {"c1": ("indeterminate", None)}
