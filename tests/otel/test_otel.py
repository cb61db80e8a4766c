"""Spans for tool calls: their names, attributes and outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind, StatusCode

from lutum_py import (
    AnyToolCall,
    Decision,
    SuspendTicket,
    ToolDef,
    ToolMetadata,
    Toolset,
)
from lutum_py.errors import Cancelled, NotFound, OutcomeUnknown
from lutum_py.execution import execute
from tests.round_tools import opened
from tests.sample_tools import input_of

from .recorded_spans import (
    SECRET,
    Recorded,
    call_of,
    raising,
    recording,
    recording_content,
)

# Half a surrogate pair does not get into definitions.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)

OK = ("success", None, StatusCode.UNSET)


recorded = pytest.fixture(recording)
open_recorded = pytest.fixture(recording_content)


# What a span says of its call.


def test_a_span_follows_the_conventions(recorded: Recorded) -> None:
    """The name, kind and attributes are those of the conventions, and success leaves no status."""
    with recorded.tracer.span(call_of()) as record:
        record(call_of().call_sync(work=str))
    span = recorded.only()
    assert (span.name, span.kind, span.status.status_code) == (
        "execute_tool run",
        SpanKind.INTERNAL,
        StatusCode.UNSET,
    )
    assert recorded.seen() == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "run",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Run what the test wants.",
        "gen_ai.tool.call.id": "c1",
        "lutum.tool.outcome": "success",
    }
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "lutum_py"


def test_a_nested_tool_has_its_wire_name_and_its_path(recorded: Recorded) -> None:
    """A tool of a nested toolset is named as on the wire, and its path stands beside."""
    with recorded.tracer.span(call_of(name="in_run")):
        pass
    assert recorded.only().name == "execute_tool in_run"
    assert recorded.seen()["lutum.tool.path"] == "inner.run"


def test_a_tool_without_a_description_has_none_in_its_span(recorded: Recorded) -> None:
    """No description, no attribute."""
    definition = ToolDef.from_json_schema(
        name="bare", description="", input_schema={"type": "object"}
    )
    bare = Toolset.from_definitions("Bare", [definition])
    with recorded.tracer.span(call_of({}, "bare", bare)):
        pass
    assert "gen_ai.tool.description" not in recorded.seen()


def test_content_stays_out_unless_it_is_asked_for(recorded: Recorded) -> None:
    """Neither arguments nor results, reasons or texts of exceptions leave the process."""
    plan = opened(("c1", "add", {"a": 1})).plan()
    with recorded.user.start_as_current_span("turn"):
        with recorded.tracer.span(call_of()) as record:
            record(call_of().call_sync(work=str))
        with pytest.raises(ValueError, match=SECRET), recorded.tracer.span(call_of()):
            raise ValueError(SECRET)
        with recorded.tracer.span(call_of()) as record:
            record(call_of().fail(SECRET))
        decided = plan.apply_hooks_sync(lambda call: call.reject(SECRET))
        recorded.tracer.record_decisions(decided.decisions)
        recorded.tracer.record_decisions([Decision(call_id="c1", action="cancel", reason=SECRET)])
    plan.discard()
    assert len(recorded.spans) == 4
    assert SECRET not in recorded.everything()


def test_content_is_recorded_where_it_is_asked_for(open_recorded: Recorded) -> None:
    """With content on, a span has what the tool got and what it gave, as JSON text."""
    call = call_of({"text": "sent"})
    call.input = input_of(call).model_copy(update={"text": "changed"})
    with open_recorded.tracer.span(call) as record:
        record(call.call_sync(work=str))
    seen = open_recorded.seen()
    assert seen["gen_ai.tool.call.arguments"] == '{"text":"changed"}'
    assert seen["gen_ai.tool.call.result"] == '"changed"'


def test_the_text_of_a_failure_is_content(open_recorded: Recorded) -> None:
    """With content on, a failure has its text in the status, and an exception its own event."""
    with pytest.raises(NotFound), open_recorded.tracer.span(call_of()):
        call_of().call_sync(work=raising(NotFound(SECRET)))
    span = open_recorded.only()
    assert span.status.description == f"Not found: {SECRET}"
    (event,) = span.events
    assert event.name == "exception"
    assert event.attributes is not None
    assert event.attributes["exception.type"] == "lutum_py.errors.NotFound"
    assert event.attributes["exception.message"] == f"Not found: {SECRET}"
    assert "call_sync" in str(event.attributes["exception.stacktrace"])


def test_arguments_are_shown_as_their_text_says(open_recorded: Recorded) -> None:
    """With secrets masked; what the program put in since, which may have no text, is not shown."""
    schema = {"properties": {"pin": {"writeOnly": True}}}
    definition = ToolDef.from_json_schema(name="free", description="", input_schema=schema)
    call: Any = call_of(
        {"pin": 1234, "a": 1}, "free", Toolset.from_definitions("Free", [definition])
    )
    call.input.update(a={1, 2})
    with open_recorded.tracer.span(call):
        pass
    told = open_recorded.seen()["gen_ai.tool.call.arguments"]
    assert told == '{"pin":"**********","a":1}'


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_exception_that_has_no_text_is_recorded(open_recorded: Recorded) -> None:
    """An exception whose text cannot be had still ends its span, and comes out unchanged."""
    with pytest.raises(Mute), open_recorded.tracer.span(call_of()):
        raise Mute
    assert open_recorded.seen()["error.type"].endswith("test_otel.Mute")


@given(TEXT, TEXT, st.text(st.characters(exclude_categories=("Cc", "Cs"))))
def test_hostile_names_are_bounded_and_can_be_encoded(name: str, text: str, tool: str) -> None:
    """Whatever a tool or call is called, every value is short UTF-8 that exporters take."""
    recorded = Recorded(content=True, content_limit=50)
    definition = ToolDef.from_json_schema(
        name=f"n{tool}", description=text, input_schema={"type": "object"}
    )
    hostile = Toolset.from_definitions("Hostile", [definition])
    metadata = ToolMetadata(id=text, name=f"n{tool}", arguments="{}")
    with recorded.user.start_as_current_span("turn"):
        with recorded.tracer.span(hostile.parse_tool_call(metadata)) as record:
            record(hostile.parse_tool_call(metadata).fail(text, code=name))
        recorded.tracer.record_decisions(
            [Decision(call_id=text, action="resume", reason=text, decision_id=name)]
        )
    for span in recorded.spans:
        values = [span.name, span.status.description or "", *(span.attributes or {}).values()]
        values += [value for event in span.events for value in (event.attributes or {}).values()]
        assert all(isinstance(value, str) for value in values)
        # A lone surrogate is six characters as an escape.
        assert max(len(str(value)) for value in values) <= 6 * 400
        assert "".join(map(str, values)).encode()
    recorded.provider.shutdown()


# How a call ended.


def test_each_kind_of_result_is_told_apart(recorded: Recorded) -> None:
    """The outcome is the status of the result; what is no success is an error with its type."""
    results = [
        call_of().complete("done"),
        call_of().fail("no"),
        call_of().fail("no", code="quota"),
        call_of().reject("no"),
        call_of().handled("done"),
    ]
    for result in results:
        with recorded.tracer.span(call_of()) as record:
            assert record(result) is result
    seen = [
        (
            dict(span.attributes or {}).get("lutum.tool.outcome"),
            dict(span.attributes or {}).get("error.type"),
            span.status.status_code,
        )
        for span in recorded.spans
    ]
    assert seen == [
        OK,
        ("error", "tool_error", StatusCode.ERROR),
        ("error", "quota", StatusCode.ERROR),
        ("rejected", "rejected", StatusCode.ERROR),
        OK,
    ]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda call: call.complete("done"), OK),
        (lambda call: call.fail("no"), ("error", "tool_error", StatusCode.ERROR)),
        (lambda call: call.reject("no"), ("cancelled", "cancelled", StatusCode.ERROR)),
        (lambda call: call.suspend(SuspendTicket()), ("suspended", None, StatusCode.UNSET)),
        (lambda call: call.start(), (None, None, StatusCode.UNSET)),
        (lambda call: None, (None, None, StatusCode.UNSET)),
    ],
)
def test_without_a_recorded_outcome_the_call_itself_tells(
    recorded: Recorded, end: Callable[[AnyToolCall], object], expected: Any
) -> None:
    """Where nothing is recorded, the status of the call says how it ended, if it did."""
    call = call_of()
    with recorded.tracer.span(call):
        end(call)
    seen = recorded.seen()
    status = recorded.only().status.status_code
    word = seen.get("lutum.tool.outcome")
    assert (word, seen.get("error.type"), status) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no"), ("error", "ValueError")),
        (NotFound("no"), ("error", "not_found")),
        (Cancelled("enough"), ("cancelled", "cancelled")),
        (OutcomeUnknown("who knows"), ("indeterminate", "outcome_unknown")),
        (KeyboardInterrupt(), ("error", "KeyboardInterrupt")),
        (TimeoutError(), ("error", "TimeoutError")),
    ],
)
def test_an_exception_of_the_tool_comes_out_and_is_told(
    recorded: Recorded, error: BaseException, expected: tuple[str, str]
) -> None:
    """What the tool raises is what the caller gets, and the span has failed by its type."""
    call = call_of()
    with pytest.raises(type(error)) as raised, recorded.tracer.span(call) as record:
        record(call.call_sync(work=raising(error)))
    assert raised.value is error
    assert recorded.outcome() == (*expected, StatusCode.ERROR)


def test_an_exception_after_the_outcome_does_not_change_it(recorded: Recorded) -> None:
    """A call that succeeded has succeeded, whatever the block does next."""
    call = call_of()
    with suppress(ZeroDivisionError), recorded.tracer.span(call) as record:
        record(call.call_sync(work=str))
        raise ZeroDivisionError
    assert recorded.outcome() == OK


async def cut_off(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Cancel a task as soon as its tool has started."""
    started = asyncio.Event()
    task = asyncio.create_task(work(started))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_further_try_that_is_cut_off_is_indeterminate(recorded: Recorded) -> None:
    """What an earlier try did is not known to be nothing."""
    call = call_of({}, "in_wait")
    call.start()
    with pytest.raises(asyncio.CancelledError), recorded.tracer.span(call.retry()):
        raise asyncio.CancelledError
    kind = "asyncio.exceptions.CancelledError"
    assert recorded.outcome() == ("indeterminate", kind, StatusCode.ERROR)


async def test_a_call_that_is_cut_off_while_it_runs_is_indeterminate(recorded: Recorded) -> None:
    """Cancelled in the middle, nobody knows what the tool did."""

    async def by_hand(started: asyncio.Event) -> None:
        call = call_of({}, "in_wait")
        with recorded.tracer.span(call) as record:
            record(await call.call(started=started))

    await cut_off(by_hand)
    kind = "asyncio.exceptions.CancelledError"
    assert recorded.outcome() == ("indeterminate", kind, StatusCode.ERROR)


async def test_a_call_that_is_cut_off_before_it_runs_is_cancelled(recorded: Recorded) -> None:
    """Cancelled while it waits for its turn, a call did nothing."""

    async def waiting(started: asyncio.Event) -> None:
        with recorded.tracer.span(call_of({}, "in_wait")):
            started.set()
            await asyncio.Event().wait()

    await cut_off(waiting)
    kind = "asyncio.exceptions.CancelledError"
    assert recorded.outcome() == ("cancelled", kind, StatusCode.ERROR)


async def test_what_execute_tells_of_a_cancelled_run_is_found(recorded: Recorded) -> None:
    """Where `execute` is cancelled, its outcome is that of the span."""

    async def executing(started: asyncio.Event) -> None:
        call = call_of({}, "in_wait")
        with recorded.tracer.span(call) as record:
            record(await execute(call, skipped={"started": started}))

    await cut_off(executing)
    assert recorded.outcome() == ("indeterminate", "cancelled", StatusCode.ERROR)


async def test_a_deadline_is_told_as_it_is(recorded: Recorded) -> None:
    """A tool that is cut off by its deadline is indeterminate, whether it ends then or goes on."""
    for arguments in ({}, {"stubborn": True}):
        call = call_of(arguments, "in_wait")
        with recorded.tracer.span(call) as record:
            record(await execute(call, grace=0.01))
    first, second = (dict(span.attributes or {}) for span in recorded.spans)
    assert (first["lutum.tool.outcome"], first["error.type"]) == ("indeterminate", "timed_out")
    assert (second["lutum.tool.outcome"], second["error.type"]) == ("indeterminate", "timed_out")
    assert {span.status.status_code for span in recorded.spans} == {StatusCode.ERROR}


def test_half_a_surrogate_pair_is_spelled_out(recorded: Recorded) -> None:
    """What no exporter could encode is recorded as its escape."""
    with recorded.user.start_as_current_span("turn"):
        recorded.tracer.record_decisions([Decision(call_id="\ud800", action="cancel")])
    (event,) = recorded.only().events
    assert (event.attributes or {})["gen_ai.tool.call.id"] == "\\ud800"


def test_a_tracer_listens_to_calls(recorded: Recorded) -> None:
    """`on_event=tracer.record_decisions` leaves an event for each change, with who decided."""
    listening = recorded.tracer.record_decisions
    with recorded.user.start_as_current_span("turn"):
        plan = opened(("c1", "add", {"a": 1}), ("c2", "ad", {})).apply_hooks_sync(
            lambda call: call, on_event=listening
        )
        plan.apply_hooks_sync(lambda call: call.reject("no"), on_event=listening).discard()
    told = [dict(event.attributes or {}) for event in recorded.only().events]
    assert [(each["lutum.decision.phase"], each["lutum.decision"]) for each in told] == [
        ("decided", "pending"),
        ("decided", "unusable"),
        ("decided", "rejected"),
    ]
    assert "lutum.decision.by" not in told[0]
    assert str(told[2]["lutum.decision.by"]).endswith("<lambda>")
