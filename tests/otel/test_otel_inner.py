"""Where the spans of calls within calls stand: by path, in any process that takes the plan."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import Link, StatusCode

from lutum_py import ToolRoundPlan
from lutum_py.context import ToolRequestedCalls
from lutum_py.execution import execute_sync, run, run_sync
from lutum_py.otel import ToolTracer
from tests.inner_tools import Asked, Asking, asks, let_pass, opened
from tests.profiles import scaled
from tests.round.saved_plans import requests, sealed
from tests.round.test_inner_laws import SMALL

from .recorded_spans import Recorded, recording

recorded = pytest.fixture(recording)

Way = Literal["async", "sync", "threads"]
NOTE: Asked = ("note", {"text": "a"})


def id_of(span: ReadableSpan) -> Any:
    return (span.attributes or {}).get("gen_ai.tool.call.id", span.name)


def said_by(span: ReadableSpan) -> Any:
    return (span.attributes or {}).get("lutum.tool.outcome")


def traced(recorded: Recorded, plan: ToolRoundPlan[Any], way: Way) -> None:
    """Run a plan under a span of the program's own."""
    around = recorded.tracer.span
    with recorded.user.start_as_current_span("turn"):
        if way == "async":
            asyncio.run(run(plan, hooks=let_pass, around=around))
        else:
            run_sync(plan, hooks=let_pass, around=around, limit=1 if way == "sync" else 4)


def by_path(recorded: Recorded) -> dict[str, list[ReadableSpan]]:
    """The spans of each call, in the order of their beginnings."""
    found: dict[str, list[ReadableSpan]] = {}
    for span in sorted(recorded.spans, key=lambda span: span.start_time or 0):
        found.setdefault(id_of(span), []).append(span)
    return found


def check_nested(recorded: Recorded) -> None:
    """A call's first span stands under the first one of who asked, its later ones under itself."""
    spans = by_path(recorded)
    under = {id: each[0].context.span_id for id, each in spans.items() if each[0].context}
    for id, (first, *later) in spans.items():
        if id != "turn":
            assert first.parent is not None
            assert first.parent.span_id == under[id.rpartition("/")[0] or "turn"]
            assert {each.parent and each.parent.span_id for each in later} <= {under[id]}
            came_to = [said_by(each) for each in (first, *later)]
            assert came_to[:-1] == ["requested"] * len(later)
            assert came_to[-1] in ("success", "error")


@pytest.mark.parametrize("way", ["async", "sync", "threads"])
def test_spans_nest_by_path(way: Way) -> None:
    """However deep calls stand and however they are run, each span is below that of who asked."""

    @settings(max_examples=scaled(20))
    @example(asks([NOTE], [asks([asks([NOTE], [NOTE])], [NOTE])]))
    @given(SMALL)
    def holds(nest: Asked) -> None:
        for recorded in recording():
            plan = opened(nest, NOTE)
            traced(recorded, plan, way)
            check_nested(recorded)
            ran = [row.id for row in plan.calls if row.tool != "nix"]
            assert sorted(by_path(recorded)) == sorted([*ran, "turn"])
            plan.discard()

    holds()


def test_a_tool_that_asks_has_not_failed(recorded: Recorded) -> None:
    """To leave for other calls is no error, told by `execute` or by the exception itself."""
    plan = opened(asks([NOTE]), asks([NOTE]))
    one, two = plan.pending
    with recorded.tracer.span(one) as record:
        plan.record(record(execute_sync(one)))
    with pytest.raises(ToolRequestedCalls), recorded.tracer.span(two):
        two.call_sync()
    plan.discard()
    for span in recorded.spans:
        assert (said_by(span), span.status.status_code) == ("requested", StatusCode.UNSET)
        assert "error.type" not in (span.attributes or {})


# Elsewhere.


def left(recorded: Recorded) -> str:
    """A plan whose payment, two deep, waits for a person; saved."""
    plan = opened(asks([NOTE], [asks([("pay", {"cents": 2})])]), toolset=Asking)
    traced(recorded, plan, "sync")
    return plan.dump_json()


RESUMING = """
import json
import sys
from tests.inner_tools import Asking, let_pass
from tests.otel.recorded_spans import Recorded
from lutum_py.execution import run_sync

recorded = Recorded()
plan = Asking.load_plan(sys.stdin.read())
plan.resume(plan.suspended[0].approve())
with recorded.user.start_as_current_span("later"):
    run_sync(plan, hooks=let_pass, around=recorded.tracer.span)
plan.discard()
print(json.dumps([json.loads(span.to_json()) for span in recorded.spans]))
"""


def test_what_goes_on_in_another_process_stands_where_it_was_asked(recorded: Recorded) -> None:
    """The spans there have the parents that the plan was saved with, and a link to who ran them."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RESUMING],
        input=left(recorded),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    under = {id: f"0x{each[0].context.span_id:016x}" for id, each in by_path(recorded).items()}
    there = {one["attributes"].get("gen_ai.tool.call.id"): one for one in json.loads(done.stdout)}
    later = there.pop(None)["context"]
    assert {id: one["parent_id"] for id, one in there.items()} == {
        "c1/2/1": under["c1/2"],
        "c1/2": under["c1/2"],
        "c1": under["c1"],
    }
    for one in there.values():
        assert one["context"]["trace_id"] != later["trace_id"]
        assert [each["context"]["span_id"] for each in one["links"]] == [later["span_id"]]


def test_a_call_under_another_trace_is_linked_to_the_span_that_runs_it(recorded: Recorded) -> None:
    """Its parent is the span that was saved; the current one, of another trace, becomes a link."""
    plan = Asking.load_plan(left(recorded))
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    recorded.exporter.clear()
    with recorded.user.start_as_current_span("later") as later, recorded.tracer.span(call):
        pass
    plan.discard()
    span, _ = recorded.spans
    assert span.parent is not None
    assert span.parent.trace_id != later.get_span_context().trace_id
    assert [each.context for each in span.links] == [later.get_span_context()]


def test_the_program_names_another_parent(recorded: Recorded) -> None:
    """A context that is passed counts before what was saved, and links that are passed stay."""
    plan = Asking.load_plan(left(recorded))
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    with recorded.user.start_as_current_span("mine") as mine:
        context = otel_context.get_current()
        link = Link(mine.get_span_context())
    recorded.exporter.clear()
    with recorded.tracer.span(call, context=context):
        pass
    with recorded.tracer.span(call, links=[link]):
        pass
    plan.discard()
    named, linked = recorded.spans
    assert named.parent is not None
    assert named.parent.span_id == mine.get_span_context().span_id
    assert linked.parent is not None
    assert linked.parent.span_id != mine.get_span_context().span_id
    assert [each.context for each in linked.links] == [mine.get_span_context()]


def test_what_was_not_sampled_is_not_sampled_elsewhere() -> None:
    """The decision of the one who samples holds for what a call asked for, in any process."""
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
    plan = opened(asks([("pay", {"cents": 2})]), toolset=Asking)
    run_sync(plan, hooks=let_pass, around=ToolTracer(tracer_provider=provider).span)
    text = plan.dump_json()
    for recorded in recording():  # which samples all that has no parent
        plan = Asking.load_plan(text)
        plan.resume(plan.suspended[0].approve())
        run_sync(plan, hooks=let_pass, around=recorded.tracer.span)
        plan.discard()
        assert recorded.spans == ()


def test_a_call_that_is_sent_elsewhere_stands_where_it_was_asked(recorded: Recorded) -> None:
    """A call within another that is pickled, to be run in a worker, takes its place along."""
    plan = opened(asks([NOTE]))
    with recorded.tracer.span(plan.pending[0]) as record:
        plan.record(record(execute_sync(plan.pending[0])))
    plan = plan.apply_hooks_sync(let_pass)
    (call,) = pickle.loads(pickle.dumps(plan.pending))
    plan.discard()
    with recorded.tracer.span(call):
        pass
    asked, within = recorded.spans
    assert asked.context is not None
    assert within.parent is not None
    assert within.parent.span_id == asked.context.span_id


@pytest.mark.parametrize("is_there", [True, False])
def test_where_nobody_listens_nothing_is_saved(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a configured SDK, or without the package, a plan is saved as without a tracer."""
    if not is_there:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)
    plan = opened(asks([("pay", {"cents": 2})]), toolset=Asking)
    run_sync(plan, hooks=let_pass, around=ToolTracer().span)
    (ask,) = requests(json.loads(plan.dump_json()))
    assert "trace" not in ask


@pytest.mark.parametrize("trace", ["", "nothing", "00-0-0-00"])
def test_a_saved_span_that_is_none_is_passed_over(recorded: Recorded, trace: str) -> None:
    """Where the text that was saved names no span, the current one is the parent."""
    data = json.loads(left(recorded))
    for ask in requests(data):
        ask["trace"] = trace
    plan = Asking.load_plan(json.dumps(sealed(data)))
    recorded.exporter.clear()
    plan.resume(plan.suspended[0].approve())
    traced(recorded, plan, "sync")
    plan.discard()
    (turn,) = by_path(recorded)["turn"]
    parents = {span.parent and span.parent.span_id for span in recorded.spans if span is not turn}
    assert turn.context is not None
    assert parents == {turn.context.span_id}
    assert not any(span.links for span in recorded.spans)
