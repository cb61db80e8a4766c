"""The laws of another try: what the last one did is neither lost, nor taken for this one's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from uuid import uuid4

import pytest
from pydantic import Field

from lutum_py import (
    AnyToolCall,
    Complete,
    NeedsTools,
    RunNormally,
    Suspend,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutum_py.errors import CommitError, LifecycleError
from lutum_py.execution import execute_sync
from lutum_py.testing import ScriptedModel


@tool_fn
def send(lines: list[str], number: int = 0) -> int:
    """Send lines."""
    return len(lines)


class Tools(Toolset):
    send = tool(send)


def planned(
    tools: type[Toolset], name: str, hooks: Any = None, /, **given: Any
) -> ToolRoundPlan[Any]:
    needed = tools.read_turn(ScriptedModel.tool_calls(("c1", name, given)))
    assert isinstance(needed, NeedsTools)
    return needed.round.plan() if hooks is None else needed.round.apply_hooks_sync(hooks)


def test_an_approval_by_a_gate_is_spent_by_a_try_of_which_nobody_knows() -> None:
    """The next try does not start before a gate let it pass, or somebody approved it again."""
    hooks = Tools.HookSet()

    @hooks.gate(Tools.send)
    def ask(metadata: ToolMetadata, input: Any, decision: Any) -> Suspend | None:
        return None if decision is not None else Suspend(SuspendTicket())

    plan = planned(Tools, "send", hooks, lines=["a"])
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    call.start()
    call.indeterminate("the line went dead")
    call.retry()
    with pytest.raises(LifecycleError, match="nobody knows what the last try did"):
        call.call_sync()
    call.input = {"lines": ["b"]}
    with pytest.raises(LifecycleError, match="nobody knows what the last try did"):
        call.start()
    plan.apply_hooks_sync(hooks)
    plan.resume(plan.suspended[0].approve())
    assert call.call_sync().output == 1
    plan.discard()


def test_an_approval_counts_for_a_try_after_a_failure() -> None:
    """What surely failed may be tried again, under the approval that it had."""
    hooks = Tools.HookSet()

    @hooks.gate(Tools.send)
    def ask(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(SuspendTicket())

    plan = planned(Tools, "send", hooks, lines=["a"])
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    call.start()
    call.fail("no")
    assert call.retry().call_sync().output == 1
    plan.discard()


@pytest.mark.parametrize("is_loaded", [False, True])
def test_what_hooks_did_in_place_is_done_once_a_try(is_loaded: bool) -> None:
    """Another try begins with the input as it was before the hooks of the last one."""
    hooks = Tools.HookSet()

    @hooks.on(Tools.send)
    def add(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        input.lines.append("b")
        return RunNormally(input)

    plan = planned(Tools, "send", hooks, lines=["a"])
    (call,) = plan.pending
    call.start()
    assert plan.calls[0].arguments == {"lines": ["a", "b"], "number": 0}
    if is_loaded:
        plan = Tools.load_plan(plan.dump_json())
        (call,) = plan.in_doubt
    call.retry()
    plan.apply_hooks_sync(hooks)
    assert call.call_sync().output == 2
    plan.discard()


WAYS: dict[str, Callable[[ToolRoundPlan[Any], list[ToolResult]], object]] = {
    "record": lambda plan, results: plan.record(results[0]),
    "commit": lambda plan, results: plan.commit(Transcript(), results),
    "resolve": lambda plan, results: plan.resolve(results),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_result_of_an_earlier_try_is_refused(way: str) -> None:
    """A result ends the try that made it, and no other one."""
    calls = [("c1", "send", {"lines": ["a"]}), ("c2", "send", {"lines": ["b"]})]
    needed = Tools.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(needed, NeedsTools)
    plan = needed.round.plan()
    call, other = plan.pending
    call.start()
    first = call.complete(7)
    second, another = call.retry().call_sync(), other.call_sync()
    with pytest.raises(CommitError, match="c1"):
        WAYS[way](plan, [first, another])
    plan.record(another)
    assert [each.output for each in plan.resolve([second]).results] == [1, 1]


def test_a_second_hook_set_is_asked_in_a_later_pass() -> None:
    """Each hook set reviews a call, although both have the same function."""
    asked: list[str] = []

    def look(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        asked.append(metadata.id)
        return RunNormally(input)

    first, second = Tools.HookSet(), Tools.HookSet()
    first.on(Tools.send)(look)
    second.on(Tools.send)(look)
    plan = planned(Tools, "send", first, lines=[])
    for hooks in (first, second, second, first):
        plan.apply_hooks_sync(hooks)
    assert asked == ["c1", "c1"]
    plan.discard()


def test_a_run_that_is_over_reports_to_nobody() -> None:
    """What a tool that was left behind reports does not show as the progress of the next try."""
    contexts: list[ToolContext] = []
    heard: list[Any] = []

    @tool_fn
    def work(ctx: ToolContext) -> int:
        contexts.append(ctx)
        ctx.report_progress("running", "on time")
        return 1

    class Works(Toolset):
        work_ = tool(work)

    plan = planned(Works, "work")
    (call,) = plan.pending
    for _ in range(2):
        execute_sync(call.retry(), ToolContext.for_call(call, sink=heard.append))
        contexts[-1].report_progress("running", "too late")
    call.retry().start()
    contexts[0].report_progress("running", "too late")
    assert [event.content["message"] for event in heard] == ["on time", "on time"]
    plan.discard()


def test_a_plan_with_a_default_that_is_made_anew_comes_back() -> None:
    """The input that was made first is the one that is shown, saved, and run."""

    @tool_fn
    def file(name: str, id: Annotated[str, Field(default_factory=lambda: uuid4().hex)]) -> str:
        return id

    class Files(Toolset):
        file_ = tool(file)

    plan = planned(Files, "file", name="a")
    shown = plan.calls[0].arguments
    assert plan.pending[0].steps[0].arguments == shown
    plan = Files.load_plan(plan.dump_json())
    assert plan.calls[0].arguments == shown
    assert plan.pending[0].call_sync().output == shown["id"]
    plan.discard()


def test_after_the_end_of_a_round_no_error_tells_to_try_again() -> None:
    """`retry` is refused then, so it is no way out."""
    plan = planned(Tools, "send", lines=[])
    (call,) = plan.pending
    result = call.call_sync()
    with pytest.raises(LifecycleError, match=r"`call\.retry\(\)`"):
        call.complete(1)
    plan.commit(Transcript(), [result])
    for move in (lambda: call.complete(1), lambda: call.reject("no"), call.start):
        with pytest.raises(LifecycleError) as raised:
            move()
        assert "retry" not in str(raised.value)


def test_what_after_hooks_say_about_a_try_that_is_over_does_not_count() -> None:
    """The pass writes what they say about other calls, and then names the call."""
    hooks = Tools.HookSet()

    @hooks.after(Tools.send)
    def look(call: AnyToolCall, result: ToolResult) -> Complete[int]:
        if call.id == "c1":
            call.retry()
        return Complete(9)

    calls = [("c1", "send", {"lines": ["a"]}), ("c2", "send", {"lines": ["b"]})]
    needed = Tools.read_turn(ScriptedModel.tool_calls(*calls))
    assert isinstance(needed, NeedsTools)
    plan = needed.round.apply_hooks_sync(hooks)
    first, second = plan.pending
    results = [first.call_sync(), second.call_sync()]
    with pytest.raises(LifecycleError, match="was tried again while after-hooks"):
        plan.apply_after_hooks_sync(hooks, results)
    assert [step.phase for step in (*first.steps, *second.steps) if step.phase] == ["after"]
    plan.discard()


def test_a_look_of_other_hooks_is_no_new_approval() -> None:
    """Only who asked before may let the next try pass, after one of which nobody knows."""
    asking, looking = Tools.HookSet(), Tools.HookSet()

    @asking.gate(Tools.send)
    def ask(metadata: ToolMetadata, input: Any) -> Suspend:
        return Suspend(SuspendTicket())

    @looking.on(Tools.send)
    def look(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        return RunNormally(input)

    plan = planned(Tools, "send", asking, lines=["a"])
    plan.resume(plan.suspended[0].approve())
    (call,) = plan.pending
    call.start()
    call.retry()
    plan.apply_hooks_sync(looking)
    with pytest.raises(LifecycleError, match="has to be approved again"):
        call.start()
    plan.discard()


def test_a_call_that_was_handed_out_is_tried_again_by_its_plan_alone() -> None:
    """The worker that has it runs it once."""
    plan = planned(Tools, "send", lines=["a"])
    worker = plan.detach("c1")
    result = worker.call_sync()
    with pytest.raises(LifecycleError, match="was handed out to be run once"):
        worker.retry()
    plan.record(result)
    plan.discard()


ENDS: dict[str, Callable[[ToolRoundPlan[Any], Any], object]] = {
    "reject": lambda plan, call: call.reject("no"),
    "fail": lambda plan, call: call.fail("no"),
    "complete": lambda plan, call: call.complete(2),
    "record": lambda plan, call: plan.record(made_elsewhere(call)),
    "resolve": lambda plan, call: plan.resolve([made_elsewhere(call)]),
}


def made_elsewhere(call: Any) -> ToolResult:
    return ToolResult(id=call.id, name="send", arguments=call.metadata.arguments, result="2")


@pytest.mark.parametrize("end", ENDS)
def test_what_was_done_in_place_is_on_record_however_a_call_ends(end: str) -> None:
    """The program ran the tool by itself, with the input as it then was."""
    plan = planned(Tools, "send", lines=["a"])
    (call,) = plan.pending
    lines: Any = call.input
    lines.lines.append("b")
    ENDS[end](plan, call)
    assert plan.calls[0].arguments == {"lines": ["a", "b"], "number": 0}
    assert [step.kind for step in call.steps][:3] == ["proposed", "changed", "ended"]
    if end != "resolve":
        plan.discard()
