"""The laws of what a tool is given."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import date
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import ToolContext
from lutum_py.context import (
    ActivityDelta,
    ActivitySnapshot,
    CallsRequested,
    CancellationToken,
    ObserverText,
    ProgressStatus,
    RunIdentity,
    State,
    StateKey,
    ToolEvent,
    ToolSuspended,
)
from lutum_py.errors import InvalidValueError, MisuseError, ToolError
from tests.cases import over

CALL = SimpleNamespace(id="c1", name="index")
VISITS = StateKey("visits", default=0)

REFUSED: list[tuple[str, Callable[[ToolContext], None]]] = [
    ("The progress is", lambda context: context.report_progress("running", progress=1.5)),
    ("`loaded` is", lambda context: context.report_progress("running", loaded=-1)),
    ("`total` is", lambda context: context.report_progress("running", total=-1)),
    ("Unknown progress status", lambda context: context.report_progress("finished")),
    ("The message is", lambda context: context.report_progress("running", 3)),  # type: ignore[arg-type]
    ("`activity_type` is ' '", lambda context: context.report_activity(" ", 1)),
    ("`activity_type` is 3", lambda context: context.report_activity_delta(3, 1)),  # type: ignore[arg-type]
    ("`content` is None. Give a text.", lambda context: context.emit_observer(None)),  # type: ignore[arg-type]
    ("`source` is ''. Give a text that", lambda context: context.emit_observer("x", source="")),
]


def report_everything(context: ToolContext) -> None:
    """Use each kind of report once."""
    context.report_progress("running", "half way", 0.5, 10, 20)
    context.report_activity("note", {"lines": ["a"]})
    context.report_activity_delta("note", {"op": "remove", "path": "/lines/0"})
    context.emit_observer("cache is cold")


class Recorder(logging.Handler):
    """Keep what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def broken_sink(event: ToolEvent) -> None:
    """Fail on every event."""
    raise RuntimeError(f"no room for {event.message_id}")


def test_a_context_takes_the_call_and_what_the_user_gives() -> None:
    """The context of a call has its id and tool, and passes the user's objects through."""
    run, token, agent = RunIdentity(run_id="r1"), CancellationToken(), object()
    state = State().set(VISITS, 3)
    context = ToolContext.for_call(CALL, state=state, run=run, cancellation=token, agent=agent)
    assert (context.call_id, context.tool_name) == ("c1", "index")
    assert context.run is run
    assert context.cancellation is token
    assert context.agent is agent
    assert context.snapshot is state
    assert context.state(VISITS) == 3
    assert (context.resume, context.suspension_id, context.suspension_reason) == (None, None, None)
    assert repr(context) == "<ToolContext of call 'c1', tool 'index'>"


def test_a_resumed_call_brings_its_resumption() -> None:
    """What a call knows of its suspension reaches the tool."""
    decision = object()
    call = SimpleNamespace(
        id="c1", name="index", resume=decision, suspension_id="s1", suspension_reason="pay?"
    )
    context = ToolContext.for_call(call)
    assert context.resume is decision
    assert (context.suspension_id, context.suspension_reason) == ("s1", "pay?")


def test_a_context_without_anything_is_harmless() -> None:
    """A context made for want of another has defaults, a token of its own, and reports nowhere."""
    context, other = ToolContext.noop(CALL), ToolContext.noop(CALL)
    report_everything(context)
    context.cancellation.cancel()
    assert context.state(VISITS) == 0
    assert context.run == RunIdentity()
    assert context.agent is None
    assert other.cancellation.is_cancelled is False


@over("status", [ProgressStatus.FAILED, "cancelled"])
@over("is_heard", [False, True])
def test_a_tool_that_reports_its_failure_has_failed(status: Any, is_heard: bool) -> None:
    """Whether anybody listens makes no difference to what the tool says of itself."""
    sink = (lambda event: None) if is_heard else None
    context = ToolContext("c1", "index", sink=sink)
    context.report_progress("running")
    assert not context.has_failed
    context.report_progress(status)
    assert context.has_failed


def test_reports_arrive_in_order_and_in_shape() -> None:
    """Each kind of report becomes one event of its wire shape."""
    events: list[ToolEvent] = []
    report_everything(ToolContext.for_call(CALL, sink=events.append))
    assert [type(event) for event in events] == [
        ActivitySnapshot,
        ActivitySnapshot,
        ActivityDelta,
        ObserverText,
    ]
    assert [event.model_dump() for event in events] == [
        {
            "message_id": "c1",
            "activity_type": "tool-call-progress",
            "content": {
                "schema": "tool-call-progress.v1",
                "node_id": "c1",
                "call_id": "c1",
                "tool_name": "index",
                "status": "running",
                "progress": 0.5,
                "loaded": 10,
                "total": 20,
                "message": "half way",
            },
            "replace": True,
        },
        {
            "message_id": "c1",
            "activity_type": "note",
            "content": {"lines": ["a"]},
            "replace": True,
        },
        {
            "message_id": "c1",
            "activity_type": "note",
            "patch": [{"op": "remove", "path": "/lines/0"}],
        },
        {"message_id": "c1", "source": "index", "content": "cache is cold"},
    ]


def test_progress_names_the_call_above() -> None:
    """Within a run that a call started, progress hangs under that call."""
    events: list[ToolEvent] = []
    run = RunIdentity(parent_call_id="c0")
    ToolContext.for_call(CALL, sink=events.append, run=run).report_progress("done")
    content = events[0].model_dump()["content"]
    assert (content["parent_node_id"], content["parent_call_id"]) == ("c0", "c0")
    assert content.keys() == {
        "schema",
        "node_id",
        "call_id",
        "tool_name",
        "status",
        "parent_node_id",
        "parent_call_id",
    }


@pytest.mark.parametrize("patch", [[1, 2], (1, 2)], ids=["list", "tuple"])
def test_a_list_of_operations_is_not_wrapped(patch: Any) -> None:
    """Only a single operation is put into a list."""
    events: list[ToolEvent] = []
    ToolContext.for_call(CALL, sink=events.append).report_activity_delta("note", patch)
    assert events[0].model_dump()["patch"] == [1, 2]


NO_JSON: list[Any] = [
    *(float("nan"), float("inf"), {"at": [float("-inf")]}),
    *(object(), {1, 2}, b"x", 1j, {1: "a"}, {None: 1}, [date(2026, 1, 1)], 10**5000),
]


@over("value", NO_JSON)
@over("is_heard", [True, False])
def test_an_activity_takes_json_data_alone(value: Any, is_heard: bool) -> None:
    """What JSON does not have is refused, heard or not, in a report as in a change of one."""
    events: list[ToolEvent] = []
    context = ToolContext.for_call(CALL, sink=events.append if is_heard else None)
    holding: list[Any] = []
    holding.append(holding)
    for content in (value, [value], {"x": (value,)}, holding):
        with pytest.raises(InvalidValueError, match="is not JSON data"):
            context.report_activity("note", content)
        with pytest.raises(InvalidValueError, match="is not JSON data"):
            context.report_activity_delta("note", content)
    assert events == []


def test_an_activity_is_plain_data() -> None:
    """Tuples and other mappings are arrays and objects, and a word of an enum is its text."""
    events: list[ToolEvent] = []
    context = ToolContext.for_call(CALL, sink=events.append)
    told = {"a": (1, 2.5, None, True), "b": MappingProxyType({"c": ProgressStatus.DONE})}
    context.report_activity("note", told)
    content = events[0].model_dump()["content"]
    assert content == {"a": [1, 2.5, None, True], "b": {"c": "done"}}
    assert type(content["b"]["c"]) is str


def test_an_event_does_not_change_after_the_report() -> None:
    """What the tool does to its data later is not seen in what it reported."""
    events: list[ToolEvent] = []
    context = ToolContext.for_call(CALL, sink=events.append)
    lines: list[Any] = [["a"]]
    context.report_activity("note", lines)
    context.report_activity_delta("note", lines)
    lines[0].append("b")
    assert [event.model_dump().get("content") for event in events] == [[["a"]], None]
    assert events[1].model_dump()["patch"] == [["a"]]


def test_an_observer_source_may_be_named() -> None:
    """Observer text speaks for the tool unless it says for whom."""
    events: list[ToolEvent] = []
    context = ToolContext.for_call(CALL, sink=events.append)
    context.emit_observer("", source="cache")
    assert events == [ObserverText("c1", "cache", "")]


@over("text, report", REFUSED)
def test_arguments_are_checked_with_and_without_a_sink(
    text: str, report: Callable[[ToolContext], None]
) -> None:
    """A wrong report is refused alike whether anybody listens, and nothing is sent."""
    events: list[ToolEvent] = []
    for context in (ToolContext.noop(CALL), ToolContext.for_call(CALL, sink=events.append)):
        with pytest.raises(ValueError, match=f"^{text}"):
            report(context)
    assert events == []


@given(st.integers(min_value=1, max_value=5))
def test_a_sink_that_raises_never_breaks_the_tool(times: int) -> None:
    """Every report returns although the sink fails, and one line a context is logged."""
    handler = Recorder()
    logger = logging.getLogger("lutum.progress")
    logger.addHandler(handler)
    try:
        for _ in range(2):
            context = ToolContext.for_call(CALL, sink=broken_sink)
            for _ in range(times):
                report_everything(context)
    finally:
        logger.removeHandler(handler)
    records = handler.records
    assert [record.levelname for record in records] == ["ERROR", "ERROR"]
    assert records[0].getMessage().startswith("The sink of tool 'index', call 'c1', raised; ")
    assert records[0].exc_info is not None
    assert str(records[0].exc_info[1]) == "no room for c1"


def test_a_sink_cannot_swallow_an_interrupt() -> None:
    """What is not an ordinary exception goes through."""

    def interrupted(event: ToolEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ToolContext.for_call(CALL, sink=interrupted).emit_observer("x")


def test_reports_may_come_from_threads() -> None:
    """No report of any thread is lost."""
    events: list[ToolEvent] = []
    context = ToolContext.for_call(CALL, sink=events.append)

    def work() -> None:
        for _ in range(50):
            context.emit_observer("x")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events) == 200


def test_a_tool_leaves_by_suspending() -> None:
    """Suspending raises what carries the ticket and is no tool error."""
    ticket: Any = object()
    with pytest.raises(ToolSuspended) as caught:
        ToolContext.noop(CALL).suspend(ticket)
    assert caught.value.ticket is ticket
    assert "`plan.record(call.suspend(error.ticket))`" in str(caught.value)
    assert not isinstance(caught.value, ToolError)


def test_a_run_identity_is_plain_and_immutable() -> None:
    """An identity holds what it is given, leaves the rest open, and does not change."""
    run = RunIdentity(run_id="r1", thread_id="t1", actor="ann", source="cli")
    assert (run.run_id, run.thread_id, run.actor, run.source) == ("r1", "t1", "ann", "cli")
    assert (run.parent_run_id, run.parent_thread_id) == (None, None)
    assert (run.parent_call_id, run.parent_tool_id) == (None, None)
    assert (run.execution_scope, run.is_background) == ("foreground", False)
    assert RunIdentity(execution_scope="background").is_background is True
    with pytest.raises(FrozenInstanceError):
        run.actor = "bob"  # type: ignore[misc]


def test_a_scope_is_one_of_two() -> None:
    """A scope that does not exist is refused."""
    with pytest.raises(InvalidValueError):
        RunIdentity(execution_scope="sideways")  # type: ignore[arg-type]


def test_a_sink_that_hears_nothing_is_refused() -> None:
    """What nobody would await, or is no function, loses every event: the remedy is said."""

    async def sink(event: object) -> None: ...

    with pytest.raises(TypeError, match=r"is async, so nobody would await it\. Pass an `AsyncSink"):
        ToolContext("c1", "index", sink=sink)
    deaf: Any = 5
    with pytest.raises(MisuseError, match="takes a function of an event for `sink`, not 5"):
        ToolContext("c1", "index", sink=deaf)


@over("wrong", [{"state": {"k": 1}}, {"run": "r1"}, {"cancellation": True}])
def test_what_a_tool_would_look_at_is_of_its_type(wrong: Any) -> None:
    """A dict has a `get` too, which would give None for each key of a state."""
    ((name, given),) = wrong.items()
    with pytest.raises(MisuseError, match=rf"ToolContext takes a \w+ for `{name}`, not "):
        ToolContext("c1", "index", **{name: given})


NO_CALLS: list[Any] = [5, None, [], "ab", [5], [("note",)], [("note", 5)], [(5, {})], [None]]


@over("asked", NO_CALLS)
def test_what_is_no_call_is_refused_where_it_is_asked_for(asked: CallsRequested) -> None:
    """The tool does not leave: the error comes from its own line, so its traceback says which."""
    with pytest.raises(MisuseError, match=r"Tool `trip` \(call 'c1'\) requests "):
        ToolContext("c1", "trip").request_calls(asked)


def test_a_tool_reads_the_key_of_its_call() -> None:
    """A context knows the key of the call that it was made for; one made by hand says so."""
    from lutum_py import ToolMetadata
    from tests.round_tools import Shop

    call = Shop.parse_tool_call(ToolMetadata(id="c1", name="add", arguments='{"a": 1}'))
    context = ToolContext.for_call(call)
    assert context.idempotency_key == call.idempotency_key
    assert context.with_cancellation(CancellationToken()).idempotency_key == call.idempotency_key
    with pytest.raises(MisuseError, match="tool `add` was made of no call"):
        _ = ToolContext("c1", "add").idempotency_key
