"""Where spans stand: under which parent, in which trace, and what is told on the current one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry.propagate import inject
from opentelemetry.trace import Link, StatusCode, get_current_span

from lutum_py import (
    AnyToolCall,
    Block,
    Complete,
    Decision,
    Reject,
    RunNormally,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
)
from lutum_py.context import ToolSuspended
from lutum_py.execution import execute, execute_sync
from tests.round_tools import Shop, gated, opened

from .recorded_spans import (
    Recorded,
    call_of,
    recording,
    recording_content,
)

recorded = pytest.fixture(recording)
open_recorded = pytest.fixture(recording_content)


# Suspending, and going on elsewhere.


def test_a_tool_that_suspends_itself_has_not_failed(recorded: Recorded) -> None:
    """A suspension is no error, run by hand or by `execute`, and the ticket's id is there."""
    ticket = SuspendTicket(id="t1")

    def ask(text: str) -> Any:
        ToolContext("c1", "run").suspend(ticket)

    call = call_of()
    with recorded.tracer.span(call) as record:
        record(execute_sync(call, skipped={"work": ask}))
    by_hand = call_of()
    with pytest.raises(ToolSuspended), recorded.tracer.span(by_hand) as record:
        record(by_hand.call_sync(work=ask))
    for span in recorded.spans:
        seen = dict(span.attributes or {})
        assert (seen["lutum.tool.outcome"], seen["lutum.suspension.id"]) == ("suspended", "t1")
        assert "error.type" not in seen
        assert span.status.status_code is StatusCode.UNSET


RESUMING = """
import sys
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from lutum_py.otel import ToolTracer
from tests.round_tools import Shop

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
plan = Shop.load_plan(sys.stdin.read())
plan.resume(plan.suspended[0].approve())
call, = plan.pending
parent = extract({"traceparent": sys.argv[1]})
with ToolTracer(tracer_provider=provider).span(call, context=parent) as record:
    plan.resolve([record(call.call_sync())])
span, = exporter.get_finished_spans()
print(f"{span.context.trace_id:032x}", span.attributes["lutum.suspension.id"])
"""


def test_a_resumed_call_names_the_suspension_that_it_comes_from(recorded: Recorded) -> None:
    """The span of a call that goes on by a decision has the id of the ticket it waited for."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(id="t1")))
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    with recorded.tracer.span(call) as record:
        plan.resolve([record(call.call_sync())])
    assert recorded.seen()["lutum.suspension.id"] == "t1"
    assert recorded.outcome() == ("success", None, StatusCode.UNSET)


def test_a_call_continued_in_another_process_within_the_same_trace(recorded: Recorded) -> None:
    """With the trace context carried along, the span there is in the trace that began here."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(id="t1")))
    carrier: dict[str, str] = {}
    with recorded.user.start_as_current_span("turn") as turn:
        inject(carrier)
        trace_id = turn.get_span_context().trace_id
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RESUMING, carrier["traceparent"]],
        input=plan.dump_json(),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    assert done.stdout.split() == [f"{trace_id:032x}", "t1"]


def test_a_span_of_another_trace_can_be_linked(recorded: Recorded) -> None:
    """Links and the parent's context are handed on."""
    with recorded.user.start_as_current_span("before") as before:
        pass
    link = Link(before.get_span_context())
    with recorded.tracer.span(call_of(), links=[link]):
        pass
    span = recorded.spans[-1]
    assert [each.context.span_id for each in span.links] == [before.get_span_context().span_id]
    assert span.parent is None


# Where a span nests.


def parents(recorded: Recorded) -> dict[str, str | None]:
    """The name of each span's parent, by its own name."""
    names = {span.context.span_id: span.name for span in recorded.spans if span.context}
    return {
        span.name: None if span.parent is None else names[span.parent.span_id]
        for span in recorded.spans
    }


def test_spans_nest_in_sync_code(recorded: Recorded) -> None:
    """The span stands under the current one, and what the tool opens stands under the span."""

    def work(text: str) -> str:
        with recorded.user.start_as_current_span("query"):
            return text

    call = call_of()
    with recorded.user.start_as_current_span("turn"), recorded.tracer.span(call) as record:
        record(call.call_sync(work=work))
    assert parents(recorded) == {
        "query": "execute_tool run",
        "execute_tool run": "turn",
        "turn": None,
    }
    assert not get_current_span().is_recording()


@pytest.mark.parametrize("by_hand", [True, False])
async def test_spans_nest_across_tasks_and_threads(recorded: Recorded, by_hand: bool) -> None:
    """Calls that run at once, in worker threads, each have what they open under their own span."""
    meeting = threading.Barrier(3)

    def work(text: str) -> str:
        meeting.wait(10)  # all three are at work
        with recorded.user.start_as_current_span(f"query {text}"):
            return text

    async def one(number: int) -> None:
        call = call_of({"text": str(number)}, id=str(number))
        with recorded.tracer.span(call) as record:
            if by_hand:
                record(await call.call(work=work))
            else:
                record(await execute(call, skipped={"work": work}))

    with recorded.user.start_as_current_span("turn") as turn:
        await asyncio.gather(*map(one, range(3)))
    ids = {
        span.context.span_id: dict(span.attributes or {}).get("gen_ai.tool.call.id")
        for span in recorded.spans
        if span.context
    }
    queries = [span for span in recorded.spans if span.name.startswith("query")]
    assert {span.name: ids[span.parent.span_id] for span in queries if span.parent} == {
        f"query {number}": str(number) for number in range(3)
    }
    calls = [span for span in recorded.spans if span.name == "execute_tool run"]
    assert {span.parent.span_id for span in calls if span.parent} == {
        turn.get_span_context().span_id
    }


def test_a_thread_of_ones_own_is_told_its_parent(recorded: Recorded) -> None:
    """In a pool that knows no current span, `context` says where the span belongs."""

    def one(call: AnyToolCall, parent: otel_context.Context) -> None:
        with recorded.tracer.span(call, context=parent) as record:
            record(call.call_sync(work=str))

    with recorded.user.start_as_current_span("turn"), ThreadPoolExecutor(1) as pool:
        pool.submit(one, call_of(), otel_context.get_current()).result()
    assert parents(recorded) == {"execute_tool run": "turn", "turn": None}


# Decisions.


def events(recorded: Recorded) -> list[dict[str, Any]]:
    """The attributes of each event of the only span, without what all have."""
    return [dict(event.attributes or {}) for event in recorded.only().events]


def test_what_was_decided_is_seen_on_the_current_span(open_recorded: Recorded) -> None:
    """Calls that never run have no span of their own; who decided what about them is an event."""
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def small(metadata: ToolMetadata, input: Any) -> Any:
        return Reject("too large") if input.a > 9 else RunNormally(input)

    @hooks.gate(Shop.shout)
    def quiet(metadata: ToolMetadata, input: Any) -> Any:
        return Block("not here") if input.text == "fire" else Complete("cached")

    turn = opened(
        ("c1", "add", {"a": 1}),
        ("c2", "add", {"a": 10}),
        ("c3", "shout", {"text": "fire"}),
        ("c4", "shout", {"text": "hi"}),
        ("c5", "nope", {}),
        ("c6", "add", {"a": "x"}),
    )
    plan = turn.apply_hooks_sync(hooks)
    with open_recorded.user.start_as_current_span("turn"):
        open_recorded.tracer.record_decisions(plan.decisions)
        open_recorded.tracer.record_decisions(plan.recoverable_tool_call_issues)
        open_recorded.tracer.record_decisions(
            [Decision(call_id="c9", action="cancel", decision_id="d1")]
        )
    plan.discard()
    assert {event.name for event in open_recorded.only().events} == {"lutum.tool.decision"}
    seen = [
        tuple(
            str(event.get(name, "-")).rpartition(".")[2]
            for name in (
                "gen_ai.tool.call.id",
                "gen_ai.tool.name",
                "lutum.decision",
                "lutum.decision.phase",
                "lutum.decision.by",
            )
        )
        for event in events(open_recorded)
    ]
    assert seen == [
        ("c1", "add", "run_normally", "execution", "small"),
        ("c2", "add", "reject", "execution", "small"),
        ("c3", "shout", "block", "gate", "quiet"),
        ("c4", "shout", "complete", "gate", "quiet"),
        ("c5", "nope", "unknown_tool", "decode", "-"),
        ("c6", "add", "invalid_arguments", "decode", "-"),
        ("c9", "-", "cancel", "resume", "d1"),
    ]
    reasons = [event.get("lutum.decision.reason") for event in events(open_recorded)]
    assert reasons[:4] == [None, "too large", "not here", None]
    assert "no tool" in str(reasons[4])


def test_decisions_need_a_span_to_be_seen_on(recorded: Recorded) -> None:
    """Outside of any span nothing is recorded, and nothing fails."""
    recorded.tracer.record_decisions([Decision(call_id="c1", action="cancel")])
    assert recorded.spans == ()
