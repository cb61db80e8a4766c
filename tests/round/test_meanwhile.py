"""What comes first counts: functions in place of hooks, and what another thread does meanwhile."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from lutum_py import (
    AnyToolCall,
    NeedsTools,
    RejectedCall,
    RunNormally,
    SuspendTicket,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.errors import HookError, LifecycleError
from lutum_py.testing import ScriptedModel


@tool_fn
def pay(cents: int) -> str:
    """Pay an amount."""
    return f"paid {cents}"


class Bank(Toolset):
    pay = tool(pay)


class Guarded(Toolset):
    pay = tool(pay, needs_approval=True)


def planned(toolset: type[Toolset] = Bank) -> ToolRoundPlan[Any]:
    needed = toolset.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    assert isinstance(needed, NeedsTools)
    return needed.round.plan()


def made(call: AnyToolCall) -> ToolResult:
    return ToolResult(id=call.id, name="pay", arguments=call.metadata.arguments, result='"by hand"')


def test_a_function_does_not_run_what_was_started_while_it_looked() -> None:
    """The call runs once: whoever came first has it."""
    plan = planned()
    (call,) = plan.pending

    def slow(draft: AnyToolCall) -> Any:
        call.start()
        return draft.call_sync()

    with pytest.raises(HookError, match="was started while hooks reviewed it"):
        plan.apply_hooks_sync(slow)
    assert [step.kind for step in call.steps] == ["proposed", "started"]
    plan.discard()


def test_a_function_may_answer_what_it_started() -> None:
    """Its result ends the call, which it has started and not ended."""
    plan = planned()

    def run(draft: AnyToolCall) -> Any:
        draft.start()
        return made(draft)

    plan.apply_hooks_sync(run)
    assert [result.output for result in plan.finished] == ["by hand"]
    plan.resolve()


def test_a_function_that_ran_the_tool_gives_what_came_of_it() -> None:
    """Anything else is an error, and the result is not lost."""
    plan = planned()
    (call,) = plan.pending

    def run(draft: AnyToolCall) -> Any:
        draft.call_sync()

    with pytest.raises(HookError, match="returned None, and the call is succeeded by now"):
        plan.apply_hooks_sync(run)
    assert [step.kind for step in call.steps] == ["proposed", "started", "ended"]
    plan.discard()


def test_a_function_reviews_one_call_once() -> None:
    """Also where the call is sent to it by itself."""
    plan, asked = planned(), list[str]()
    (call,) = plan.pending

    def look(draft: AnyToolCall) -> AnyToolCall:
        asked.append(draft.id)
        return draft

    for _ in range(2):
        assert call.hook_sync(look) is call
    assert asked == ["c1"]
    plan.discard()


def test_what_a_function_refuses_is_asked_of_nobody() -> None:
    """An approval is not asked for a call that ends before."""
    needed = Guarded.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    assert isinstance(needed, NeedsTools)
    (call,) = needed.round.tool_calls
    assert isinstance(call.hook_sync(lambda draft: draft.reject("no")), RejectedCall)
    assert [step.kind for step in call.steps] == ["proposed", "reviewed", "ended"]
    needed.round.discard()


def test_two_threads_that_suspend_a_call_record_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds what the first has written, at whichever step it comes."""
    for late in (False, True):
        plan = planned()
        (call,) = plan.pending
        call.start()
        waiting = call.suspend(SuspendTicket())
        kind: Any = type(plan)
        found, append, done = kind._open_call, type(call)._append_all, list[bool]()

        def meanwhile(done: list[bool] = done, plan: Any = plan, waiting: Any = waiting) -> None:
            if not done:
                done.append(True)
                plan.suspend(waiting)

        def beaten(self: Any, *given: Any, found: Any = found) -> Any:
            made = found(self, *given)
            meanwhile()
            return made

        def beaten_later(self: Any, *given: Any, append: Any = append) -> Any:
            meanwhile()
            return append(self, *given)

        with monkeypatch.context() as patch:
            if late:
                patch.setattr(type(call), "_append_all", beaten_later)
            else:
                patch.setattr(kind, "_open_call", beaten)
            with pytest.raises(LifecycleError, match="not pending") if late else nullcontext():
                plan.suspend(waiting)
        assert [step.kind for step in call.steps].count("recorded") == 1
        plan.discard()


@tool_input
class Order(ToolInput[str]):
    """Order things."""

    count: int
    names: list[str] | None = None
    weights: dict[str, int]
    tags: list[str]


class Orders(Toolset):
    order = tool(Order)


def _assign(input: Any) -> None:
    input.count = 7


def _append(input: Any) -> None:
    input.tags.append("b")


def _put(input: Any) -> None:
    input.weights["x"] = 2


def _say_again(input: Any) -> None:
    input.count = input.count
    input.names = None


CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "assign": (_assign, {"count": 7}),
    "append": (_append, {"tags": ["a", "b"]}),
    "put": (_put, {"weights": {"w": 1, "x": 2}}),
    "say again": (_say_again, {}),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_hook_does_in_place_is_found_or_undone(name: str, fails: bool) -> None:
    """It counts when the call starts; of a hook that raises nothing stays, and nothing is lost."""
    sent = {"count": 5, "weights": {"w": 1}, "tags": ["a"]}
    change, changed = CHANGES[name]
    hooks = Orders.HookSet()

    @hooks.on(Orders.order)
    def look(metadata: ToolMetadata, input: Order) -> RunNormally[Order]:
        change(input)
        if fails:
            raise ValueError("no")
        return RunNormally(input)

    needed = Orders.read_turn(ScriptedModel.tool_calls(("c1", "order", sent)))
    assert isinstance(needed, NeedsTools)
    plan = needed.round.plan()
    (call,) = plan.pending
    if fails:
        with pytest.raises(HookError, match="raised ValueError"):
            plan.apply_hooks_sync(hooks)
    else:
        plan.apply_hooks_sync(hooks)
    call.complete("done")
    final = {"names": None, **sent, **({} if fails else changed)}
    assert plan.calls[0].arguments == final
    ran: Any = call.input
    assert ("names" in ran.model_fields_set) is (name == "say again" and not fails)
    plan.discard()


def test_a_function_may_ask_a_hook_set_about_its_draft() -> None:
    """What is asked there about the declared approval is asked once."""
    needed = Guarded.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    assert isinstance(needed, NeedsTools)
    hooks = Guarded.HookSet()
    plan = needed.round.apply_hooks_sync(lambda draft: draft.hook_sync(hooks))
    assert [waiting.call.id for waiting in plan.suspended] == ["c1"]
    plan.resume(plan.suspended[0].approve())
    assert plan.pending[0].call_sync().output == "paid 5"
    plan.discard()


def test_a_call_that_a_plan_has_not_is_not_handed_out() -> None:
    """The error names those that are."""
    plan = planned()
    with pytest.raises(LifecycleError, match=r"'c9' cannot be handed out.* Pending: \['c1'\]"):
        plan.detach("c9")
    plan.discard()
