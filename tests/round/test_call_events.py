"""The laws of events: each change of a call is told once, when it has happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import field_serializer

from lutum_py import (
    AnyToolCall,
    ResumeMode,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import HookError, MisuseError
from lutum_py.execution import run_sync
from lutum_py.sinks import AsyncSink, ListSink, LoggerSink, log_events
from lutum_py.typing import CallEvent, CallRow
from tests.round_tools import Shop, close, gated, opened


def kinds(events: list[CallEvent]) -> list[tuple[str, str, str]]:
    return [(event.row.id, event.kind, event.row.state) for event in events]


def test_a_call_is_told_of_at_each_step() -> None:
    """Deciding, suspending, resuming, editing, beginning and ending are told, each once."""
    events: list[CallEvent] = []
    hooks = gated(SuspendTicket(), Shop.add)
    first = opened(("c1", "add", {"a": 1}), ("c2", "wipe", {"path": "/"}), ("c3", "add", {"a": 5}))
    plan = first.apply_hooks_sync(hooks, on_event=events.append)
    one, two = plan.suspended
    decision = one.approve()
    plan.resume(decision, on_event=events.append)
    plan.resume(decision, on_event=events.append)
    plan.amend_sync(two.edit({"a": 6}), hooks, on_event=events.append)
    run_sync(plan, on_event=events.append)
    assert kinds(events) == [
        ("c1", "suspended", "suspended"),
        ("c2", "decided", "unusable"),
        ("c3", "suspended", "suspended"),
        ("c1", "resumed", "pending"),
        ("c3", "edited", "pending"),
        ("c1", "started", "pending"),
        ("c1", "ended", "finished"),
        ("c3", "started", "pending"),
        ("c3", "ended", "finished"),
    ]
    assert events[-1].row.arguments == {"a": 6, "b": 0}
    assert all(event.at.endswith("+00:00") for event in events)
    # The time of an event is that of its step.
    assert [event.at for event in events] == [event.row.steps[-1].at for event in events]
    close(plan)


def test_only_calls_that_were_asked_about_are_told_of() -> None:
    """A second round of hooks tells of what is pending, not of what was decided before."""
    events: list[CallEvent] = []
    plan = opened(("c1", "add", {"a": 1}), ("c2", "shout", {"text": "a"})).apply_hooks_sync(
        gated(SuspendTicket(), Shop.add)
    )
    again = plan.apply_hooks_sync(Shop.HookSet(), on_event=events.append)
    assert kinds(events) == [("c2", "decided", "pending")]
    close(again)


def test_calls_that_cannot_be_used_are_told_of_once() -> None:
    """An unknown tool and a wrong type have an event each, with the reason, and no second one."""
    for first in (True, False):
        events: list[CallEvent] = []
        round_ = opened(("c1", "add", {"a": "x"}), ("c2", "gone", {}), ("c3", "add", {"a": 1}))
        plan: Any = round_ if first else round_.plan()
        decided = plan.apply_hooks_sync(Shop.HookSet(), on_event=events.append)
        assert kinds(events) == [
            ("c1", "decided", "unusable"),
            ("c2", "decided", "unusable"),
            ("c3", "decided", "pending"),
        ]
        reasons = [issue.text for issue in decided.recoverable_tool_call_issues]
        assert [event.row.reason for event in events] == [*reasons, None]
        again = decided.apply_hooks_sync(Shop.HookSet(), on_event=events.append)
        loaded = Shop.load_plan(again.dump_json())
        close(loaded.apply_hooks_sync(Shop.HookSet(), on_event=events.append))
        assert [event.row.id for event in events[3:]] == ["c3", "c3"]


def test_async_twins_tell_the_same() -> None:
    """The async methods tell what their sync twins tell."""

    async def told() -> list[CallEvent]:
        events: list[CallEvent] = []
        hooks = gated(SuspendTicket(), Shop.add)
        plan = await opened(("c1", "add", {"a": 1})).apply_hooks(hooks, on_event=events.append)
        plan = await plan.apply_hooks(hooks, on_event=events.append)
        await plan.amend(plan.suspended[0].edit({"a": 2}), hooks, on_event=events.append)
        close(plan)
        return events

    assert kinds(asyncio.run(told())) == [
        ("c1", "suspended", "suspended"),
        ("c1", "edited", "pending"),
    ]


def test_hooks_that_raise_are_told_of_by_nobody() -> None:
    """Where deciding fails nothing changed, so nothing is told."""
    events: list[CallEvent] = []
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def broken(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        if input.a == 2:
            raise ValueError("no")
        return RunNormally(input)

    opening = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}))
    with pytest.raises(HookError):
        opening.apply_hooks_sync(hooks, on_event=events.append)
    assert events == []
    close(opening)


async def wants_to_wait(event: CallEvent) -> None:
    """A listener of the wrong kind."""


def raises(event: CallEvent) -> None:
    """A listener that breaks."""
    raise ValueError("listener")


@pytest.mark.parametrize("listener", [raises, wants_to_wait])
def test_what_a_listener_raises_is_logged_and_breaks_nothing(
    listener: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The round goes on, and the log says which listener's event failed."""
    plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(Shop.HookSet(), on_event=listener)
    assert run_sync(plan, on_event=listener).is_settled
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(" raised at ")[1] for line in said] == [
        f"call_{kind} of call c1." for kind in ("decided", "started", "ended")
    ]
    close(plan)


def test_what_cannot_be_told_is_refused_before_anything_happens() -> None:
    """No hook is asked, and no decision is taken in: what was decided could be told to nobody."""
    deaf: Any = 5
    asked: list[AnyToolCall] = []

    def hook(call: AnyToolCall) -> AnyToolCall:
        asked.append(call)
        return call

    opening = opened(("c1", "add", {"a": 1}))
    plan = opened(("c2", "add", {"a": 1})).apply_hooks_sync(gated(SuspendTicket(), Shop.add))
    edit = plan.suspended[0].edit({"a": 2})
    moves: list[Callable[[], object]] = [
        lambda: opening.apply_hooks_sync(hook, on_event=deaf),
        lambda: asyncio.run(opening.apply_hooks(hook, on_event=deaf)),
        lambda: plan.resume(plan.suspended[0].approve(), on_event=deaf),
        lambda: plan.amend_sync(edit, hook, on_event=deaf),
        lambda: asyncio.run(plan.amend(edit, hook, on_event=deaf)),
    ]
    for move in moves:
        with pytest.raises(MisuseError, match="takes a function of an event for `on_event`, not 5"):
            move()
    assert asked == []
    assert len(plan.suspended) == 1
    opening.discard()
    close(plan)


@tool_fn
def check(order: str, ctx: ToolContext) -> str:
    """Wait for a person."""
    ctx.suspend(SuspendTicket(action="look"))
    raise AssertionError("not reached")


class Desk(Toolset):
    check = tool(check)


def test_a_tool_that_suspends_itself_is_told_of_as_suspended() -> None:
    """In the place of its end stands that it waits."""
    events: list[CallEvent] = []
    plan = run_sync(
        opened(("c1", "check", {"order": "A"}), toolset=Desk).plan(), on_event=events.append
    )
    assert kinds(events) == [("c1", "started", "pending"), ("c1", "suspended", "suspended")]
    close(plan)


def test_sinks_take_events() -> None:
    """A list, a log and a queue take call events like those of tools."""
    kept = ListSink[CallEvent]()
    queue = AsyncSink[CallEvent]()
    plan = opened(("c1", "add", {"a": 1})).plan()
    run_sync(plan, on_event=kept)
    run_sync(opened(("c2", "add", {"a": 1})).plan(), on_event=queue).discard()
    run_sync(opened(("c3", "add", {"a": 1})).plan(), on_event=LoggerSink()).discard()
    queue.close()

    async def all_of() -> list[str]:
        return [event.event_type async for event in queue]

    assert asyncio.run(all_of()) == ["call_started", "call_ended"]
    dumped = kept.dump()[1]
    assert (dumped["kind"], dumped["state"]) == ("ended", "finished")
    assert dumped["result"] == {"status": "success", "text": "1"}
    assert [event.message_id for event in kept.events] == ["c1", "c1"]
    close(plan)


def test_log_events_writes_one_line_with_the_final_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line says what happened to which call, with which arguments, by whom, and why."""

    def on_hook(call: Any) -> Any:
        if call.input.a != 1:
            return call.reject("too\x1b much")
        call.input = {"a": 7}
        return call

    with caplog.at_level(logging.INFO, "app"):
        calls = ("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}), ("c3", "add", '{"a": ')
        plan = opened(*calls).apply_hooks_sync(on_hook, on_event=log_events("app"))
        run_sync(plan, on_event=log_events(logging.getLogger("app")))
    here = f"{test_log_events_writes_one_line_with_the_final_arguments.__name__}.<locals>.on_hook"
    assert [r.getMessage() for r in caplog.records] == [
        'decided add {"a":7,"b":0} (c1)',
        f'decided add {{"a":2,"b":0}} (c2) -> rejected by {here}: too\\x1b much',
        (
            'decided add {"a":  (c3) -> rejected: The arguments of tool `add` are invalid, so it '
            "was not run:\\n- Invalid JSON: EOF while parsing a value at line 1 column 6 (got "
            """'{"a": ')\\nCall it again with corrected arguments."""
        ),
        'started add {"a":7,"b":0} (c1)',
        'ended add {"a":7,"b":0} (c1) -> success',
    ]
    assert caplog.records[0].__dict__["tool_call_id"] == "c1"
    close(plan)


def test_log_events_says_what_a_decision_did(caplog: pytest.LogCaptureFixture) -> None:
    """A call that was approved is resumed, and who approved it is no one who ran it; one that was
    not is cancelled, and one that the decision's result answers is answered.
    """
    to_answer = SuspendTicket(resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT)
    first = opened(("c1", "add", {"a": 1}), ("c2", "add", {"a": 2}))
    second = opened(("c3", "add", {"a": 3})).apply_hooks_sync(gated(to_answer, Shop.add))
    plan = first.apply_hooks_sync(gated(SuspendTicket(), Shop.add))
    one, two = plan.suspended
    (three,) = second.suspended
    on_event = log_events("app")
    with caplog.at_level(logging.INFO, "app"):
        plan.resume(one.approve(by="ann"), on_event=on_event)
        plan.resume(two.cancel("too much", by="bo"), on_event=on_event)
        second.resume(three.approve(by="cy", result=7), on_event=on_event)
        run_sync(plan, on_event=on_event)
    assert [record.getMessage() for record in caplog.records] == [
        'resumed add {"a":1,"b":0} (c1) by ann',
        'cancelled add {"a":2,"b":0} (c2) by bo: too much',
        'decided add {"a":3,"b":0} (c3) -> success by cy',
        'started add {"a":1,"b":0} (c1), approved by ann',
        'ended add {"a":1,"b":0} (c1) -> success, approved by ann',
    ]
    assert [record.__dict__["event_type"] for record in caplog.records[:3]] == ["call_resumed"] * 3
    close(plan)
    close(second)


def test_a_log_that_nobody_reads_is_not_written(caplog: pytest.LogCaptureFixture) -> None:
    """Below its level nothing is put together."""
    with caplog.at_level(logging.ERROR, "app"):
        plan = opened(("c1", "add", {"a": 1})).apply_hooks_sync(
            Shop.HookSet(), on_event=log_events("app")
        )
    assert caplog.records == []
    close(plan)


written: list[int] = []


class Sale(ToolInput[str]):
    """Notes when its arguments are written down."""

    item: int

    @field_serializer("item")
    def noted(self, item: int) -> int:
        written.append(item)
        return item


class Market(Toolset):
    sale = tool(Sale)


def test_a_decision_is_told_with_the_row_of_its_call_alone() -> None:
    """Whatever became of a call, a listener gets its row as the plan has it, and no other call's
    arguments are written down for that.
    """
    told: list[CallRow] = []
    seen: list[set[int]] = []
    as_result = SuspendTicket(resume_mode=ResumeMode.USE_DECISION_AS_TOOL_RESULT)
    hooks, again = Market.HookSet(), Market.HookSet()
    hooks.gate()(lambda metadata, input: Suspend(as_result if input.item == 3 else SuspendTicket()))
    again.on(Market.sale)(lambda metadata, input: RunNormally(Sale(item=input.item + 1)))
    calls = [(f"c{item}", "sale", {"item": item}) for item in range(4)]
    plan = opened(*calls, toolset=Market).apply_hooks_sync(hooks)
    yes, no, edited, answered = plan.suspended

    def listen(event: CallEvent) -> None:
        told.append(event.row)

    for decision in (yes.approve(), no.cancel("no"), answered.approve(result="A", reason="mine")):
        written.clear()
        plan.resume(decision, on_event=listen)
        seen.append(set(written))
    edit = edited.edit({"item": 5})
    written.clear()
    plan.amend_sync(edit, again, on_event=listen)
    seen.append(set(written))
    assert seen == [set(), set(), set(), {5, 6}]
    shown = plan.calls
    assert sorted(told, key=lambda row: row.id) == list(shown)
    assert [row.state for row in shown] == ["pending", "rejected", "suspended", "handled"]
    close(plan)
