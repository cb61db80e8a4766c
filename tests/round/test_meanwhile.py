"""What comes first counts: functions in place of hooks, and what another thread does meanwhile."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from lutum_py import (
    AnyToolCall,
    Complete,
    NeedsTools,
    RejectedCall,
    RunNormally,
    SuspendTicket,
    ToolContext,
    ToolInput,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
    tool,
    tool_fn,
    tool_input,
)
from lutum_py.errors import HookError, LifecycleError, MisuseError, PlanError
from lutum_py.execution import execute_sync
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
        kind: Any = type(plan._state)
        found, append, done = kind.open_call, type(call._record).append_all, list[bool]()

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
                patch.setattr(type(call._record), "append_all", beaten_later)
            else:
                patch.setattr(kind, "open_call", beaten)
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


@tool_fn
def ask(ctx: ToolContext) -> str:
    """Request a payment."""
    if ctx.inner is None:
        ctx.request_calls([("pay", {"cents": 1})])
    return "asked"


class Asks(Toolset):
    ask = tool(ask)
    pay = tool(pay)


def asking() -> ToolRoundPlan[Any]:
    needed = Asks.read_turn(ScriptedModel.tool_calls(("c1", "ask", {})))
    assert isinstance(needed, NeedsTools)
    return needed.round.plan()


def test_what_a_call_requested_before_it_ended_is_not_done() -> None:
    """Of a call that was handed out, what it came to last counts."""
    plan = asking()
    handed_out = plan.detach("c1")
    requested: Any = execute_sync(handed_out)
    handed_out.fail("no")
    with pytest.raises(LifecycleError, match="is failed by now, so it requests no calls any more"):
        plan.record(requested)
    assert [row.id for row in plan.calls] == ["c1"]
    plan.discard()


def test_a_hook_set_may_answer_a_call_that_another_one_let_pass() -> None:
    """After-hooks see that answer before the call that requested it does."""
    plan = asking()
    plan.record(execute_sync(plan.pending[0]))
    plan.apply_hooks_sync(Asks.HookSet())
    hooks, seen = Asks.HookSet(), list[str]()
    hooks.on(Asks.pay)(lambda metadata, input: Complete("paid by a hook"))

    @hooks.after(Asks.pay)
    def look(call: AnyToolCall, result: ToolResult) -> None:
        seen.append(call.id)

    plan.apply_hooks_sync(hooks)
    assert seen == ["c1/1"]
    assert [(row.id, row.state) for row in plan.calls] == [("c1", "pending"), ("c1/1", "handled")]
    plan.discard()


def test_a_change_that_does_not_fit_is_not_saved() -> None:
    """The plan is open as before, without the change."""
    needed = Orders.read_turn(
        ScriptedModel.tool_calls(("c1", "order", {"count": 1, "weights": {}, "tags": []}))
    )
    assert isinstance(needed, NeedsTools)
    plan = needed.round.plan()
    order: Any = plan.pending[0].input
    order.tags.append(5)
    with pytest.raises(PlanError, match="cannot be saved: This input does not fit tool `order`"):
        plan.dump_json()
    assert plan.pending[0].status == "new"
    loaded = Orders.load_plan(plan.dump_json())
    assert loaded.calls[0].arguments["tags"] == []
    loaded.discard()


def test_a_result_of_the_programs_own_is_taken_after_after_hooks() -> None:
    """What was replaced is refused; what nobody has seen is a new result."""
    plan = planned()
    hooks = Bank.HookSet()
    hooks.after(Bank.pay)(lambda call, result: Complete("replaced"))
    (call,) = plan.pending
    result = call.call_sync()
    plan.apply_after_hooks_sync(hooks, [result])
    with pytest.raises(MisuseError, match="put another result"):
        plan.record(result)
    plan.record(made(call))
    assert [each.output for each in plan.finished] == ["by hand"]
    plan.discard()


class Cents(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def as_cents(cls, number: int) -> int:
        return number * 100


@tool_input
class Bill(ToolInput[str]):
    """Pay a bill."""

    cents: Cents
    copies: int = 0


@tool_fn
def settle(bill: Bill) -> str:
    """Settle a bill."""
    return f"{bill.cents.number} x {bill.copies}"


class Bills(Toolset):
    settle = tool(settle)


def test_an_input_that_is_passed_whole_is_converted_once() -> None:
    """A hook of the parameter gives another one, whose other members stay as they were read."""
    hooks = Bills.HookSet()

    @hooks.on_args(Bills.settle)
    def twice(bill: Bill) -> dict[str, Any]:
        return {"bill": bill.model_copy(update={"copies": 2})}

    sent = {"cents": {"number": 1}}
    needed = Bills.read_turn(ScriptedModel.tool_calls(("c1", "settle", sent)))
    assert isinstance(needed, NeedsTools)
    plan = needed.round.apply_hooks_sync(hooks)
    assert plan.pending[0].call_sync().output == "100 x 2"
    plan.discard()
