"""Spans where nobody listens: nothing fails, and a mistake shows all the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from lutum_py import Decision
from lutum_py.errors import InvalidValueError, MisuseError
from lutum_py.otel import ToolTracer
from tests.round_tools import opened

from .recorded_spans import SECRET, Recorded, call_of, recording

recorded = pytest.fixture(recording)


def test_a_span_that_is_not_sampled_costs_no_encoding() -> None:
    """Where nothing is recorded, no input is encoded and the call runs as ever."""
    tracer = ToolTracer(content=True, tracer_provider=TracerProvider(sampler=ALWAYS_OFF))
    call = call_of()
    with tracer.span(call) as record:
        assert record(call.call_sync(work=str)).result == f'"{SECRET}"'
    assert record.span is not None
    assert not record.span.is_recording()


def test_without_an_sdk_nothing_happens() -> None:
    """With the API alone, a `with` statement does nothing but run its block."""
    tracer = ToolTracer(content=True)
    call = call_of()
    with tracer.span(call) as record:
        result = record(call.call_sync(work=str))
    tracer.record_decisions([Decision(call_id="c1", action="cancel")])
    assert result.is_success


def test_without_the_package_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where OpenTelemetry is not installed, calls run as ever, and exceptions come out."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracer = ToolTracer()
    call = call_of()
    with tracer.span(call) as record:
        assert record(call.call_sync(work=str)).is_success
    assert record.span is None
    with pytest.raises(ValueError, match="no"), tracer.span(call_of()):
        raise ValueError("no")
    tracer.record_decisions([Decision(call_id="c1", action="cancel")])


@pytest.mark.parametrize("is_on", [True, False])
def test_a_mistake_is_refused_whether_tracing_is_on_or_off(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    """What is neither a decision nor a list of them, or no call, is refused in both cases alike."""
    plan = opened(("c1", "ask", {"question": "?"})).apply_hooks_sync(lambda call: call)
    if not is_on:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracer = recorded.tracer if is_on else ToolTracer()
    takes = r"^record_decisions takes a list, such as plan\.decisions, not "
    with recorded.user.start_as_current_span("turn"):
        for wrong in (5, plan, None):
            with pytest.raises(MisuseError, match=takes):
                tracer.record_decisions(cast("Any", wrong))
        for each in (5, call_of()):
            with pytest.raises(MisuseError, match=takes + "something that holds"):
                tracer.record_decisions(cast("Any", [each]))
        with pytest.raises(MisuseError):
            tracer.span(cast("Any", 5))
    plan.discard()
    assert recorded.only().events == ()


@pytest.mark.parametrize(("by", "told"), [("mia", "mia"), (None, "d1")])
def test_a_decision_is_by_whoever_made_it(recorded: Recorded, by: str | None, told: str) -> None:
    """The event of a decision names the person, as that of a `CallEvent` does; else its id."""
    decision = Decision(call_id="c1", action="cancel", decision_id="d1", by=by)
    with recorded.user.start_as_current_span("turn"):
        recorded.tracer.record_decisions(decision)
    (event,) = recorded.only().events
    assert (event.attributes or {})["lutum.decision.by"] == told


def test_a_single_decision_is_taken_too(recorded: Recorded) -> None:
    """One decision by itself is recorded as a list of one is."""
    with recorded.user.start_as_current_span("turn"):
        recorded.tracer.record_decisions(Decision(call_id="c1", action="cancel"))
        recorded.tracer.record_decisions([Decision(call_id="c1", action="cancel")])
    first, second = (
        {**(event.attributes or {}), "lutum.decision.by": ""} for event in recorded.only().events
    )
    assert first == second
    assert first["lutum.decision"] == "cancel"


def test_a_limit_that_is_none_is_refused() -> None:
    """A negative limit, or one that is no whole number, is refused when the tracer is made."""
    with pytest.raises(InvalidValueError):
        ToolTracer(content_limit=-3)
    for wrong in ("8192", None, 2.5, True):
        with pytest.raises(MisuseError):
            ToolTracer(content_limit=cast("Any", wrong))


def test_the_module_loads_no_opentelemetry() -> None:
    """Importing the module imports nothing of OpenTelemetry."""
    code = "import sys, lutum_py.otel; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
