"""The laws of another try: what it starts from, who has to approve it, and who may make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from lutum_py import (
    Complete,
    RunNormally,
    Session,
    Suspend,
    SuspendTicket,
    ToolContext,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import LifecycleError
from lutum_py.execution import execute_sync, run_sync
from lutum_py.testing import ScriptedModel
from tests.cases import over

RUNS: list[int] = []


@tool_fn
def pay(cents: int) -> str:
    """Pay."""
    RUNS.append(cents)
    return "paid"


@tool_fn
def wire(cents: int) -> str:
    """Pay, as somebody approved."""
    RUNS.append(cents)
    return "paid"


@tool_fn(idempotent=True)
def look(cents: int) -> str:
    """Look, which does no harm."""
    RUNS.append(cents)
    return "seen"


@tool_fn
def asks(ctx: ToolContext) -> list[str]:
    """Request a look, once in each try, and tell what came of it."""
    if ctx.inner is None:
        ctx.request_calls([("look", {"cents": 1})])
    return [each.id for results in ctx.inner.rounds for each in results]


class Desk(Toolset):
    pay = tool(pay)
    look = tool(look)
    asks = tool(asks)
    wire = tool(wire, needs_approval=True)


def gate(answer: Any, selector: Any = None) -> Any:
    hooks: Any = Desk.HookSet()
    hooks.gate(selector or Desk.pay)(lambda metadata, input: answer)
    return hooks


def opened(name: str, arguments: Any = None) -> Any:
    turn = ScriptedModel.tool_calls(("c1", name, {"cents": 5} if arguments is None else arguments))
    outcome: Any = Desk.read_turn(turn)
    return outcome.round


def approved(name: str, by: str) -> Any:
    """The plan of a call that somebody approved, because these asked."""
    ask = Suspend(SuspendTicket(message="Sure?"))
    if by == "a gate":
        plan = opened(name).apply_hooks_sync(gate(ask, getattr(Desk, name)))
    elif by == "a function":
        plan = opened(name).apply_hooks_sync(lambda call: call.suspend(ask.ticket))
    else:
        plan = opened("wire").plan()
    plan.resume(plan.suspended[0].approve())
    return plan


LOST: Final[dict[str, Callable[[Any], Any]]] = {
    "a call that nobody heard of": lambda plan: plan,
    "indeterminate": lambda plan: plan.pending[0].indeterminate("lost") and plan,
    "loaded": lambda plan: Desk.load_plan(plan.dump_json()),
}


@over("by", ["a gate", "a function", "needs_approval"])
@over("lost", LOST)
@over("how", ["as it is", "changed", "loaded"])
def test_a_try_after_one_in_doubt_needs_a_new_approval(by: str, lost: str, how: str) -> None:
    """A person who approved a payment once has not approved it twice, whoever asked."""
    RUNS.clear()
    plan = approved("pay", by)
    plan.pending[0].start()
    plan = LOST[lost](plan)
    (call,) = plan.pending or plan.in_doubt
    call.retry()
    if how == "changed":
        call.input = {"cents": 6}
    if how == "loaded":
        plan = Desk.load_plan(plan.dump_json())
        (call,) = plan.pending
    for start in (call.start, call.call_sync, lambda: execute_sync(call), lambda: run_sync(plan)):
        with pytest.raises(LifecycleError, match=r"has to be approved again|were changed since"):
            start()
    assert (RUNS, call.status) == ([], "new")
    ask = Suspend(SuspendTicket(message="Again?"))
    plan.apply_hooks_sync(gate(ask) if by != "needs_approval" else Desk.HookSet())
    plan.resume(plan.suspended[0].approve())
    assert call.call_sync().is_success
    plan.discard()


@over("by", ["a gate", "a function", "needs_approval"])
def test_an_approval_covers_another_try_after_a_definite_failure(by: str) -> None:
    """Nothing happened, so the person is not asked about the same once more."""
    RUNS.clear()
    plan = approved("pay", by)
    (call,) = plan.pending
    call.start()
    call.fail("the bank refused")
    assert call.retry() is call
    assert call.call_sync().is_success
    assert RUNS == [5]
    plan.discard()


def test_what_does_no_harm_twice_needs_no_new_approval() -> None:
    """A tool that is declared idempotent is tried again under the approval that it has."""
    plan = approved("look", "a gate")
    (call,) = plan.pending
    call.start()
    call.indeterminate("lost")
    assert call.retry().call_sync().is_success
    plan.discard()


def test_another_try_starts_from_the_input_before_hooks() -> None:
    """What a hook adds is not added twice, and what the program changed stays."""
    hooks: Any = Desk.HookSet()
    hooks.on(Desk.pay)(lambda metadata, input: RunNormally(pay.Input(cents=input.cents + 1)))
    plan = opened("pay").plan()
    (call,) = plan.pending
    call.input = pay.Input(cents=7)
    for _ in range(3):
        plan.apply_hooks_sync(hooks)
        assert call.input.cents == 8
        call.start()
        call.fail("no")
        call.retry()
    plan.discard()


def test_calls_within_an_earlier_try_are_not_given_to_the_tool_again() -> None:
    """The new try requests its own, whose numbers go on."""
    plan = opened("asks", {}).plan()
    (call,) = plan.pending
    for ids in (["c1/1"], ["c1/2"]):
        plan.record(execute_sync(call))
        plan.apply_hooks_sync(lambda call: call)
        plan.record(execute_sync(plan.pending[0]))
        outcome: Any = execute_sync(call)
        assert outcome.output == ids
        if ids == ["c1/1"]:
            call.retry()
    assert [row.id for row in plan.calls] == ["c1", "c1/1", "c1/2"]
    plan.discard()


def handled(plan: Any) -> Any:
    hooks: Any = Desk.HookSet()
    hooks.on(Desk.pay)(lambda metadata, input: Complete("3"))
    plan.apply_hooks_sync(hooks)


REFUSED: Final[dict[str, Callable[[Any], object]]] = {
    "suspended": lambda plan: plan.suspend(plan.pending[0].suspend(SuspendTicket())),
    "rejected": lambda plan: plan.pending[0].reject("no"),
    "answered by a hook": handled,
    "discarded": lambda plan: plan.discard(),
    "committed": lambda plan: plan.commit(Session(), [plan.pending[0].complete("x")]),
    "dumped": lambda plan: plan.dump_json(),
}


@over("how", REFUSED)
def test_what_waits_or_was_answered_or_is_over_is_not_tried_again(how: str) -> None:
    """Another try would go around whoever decided; nothing is written."""
    plan = opened("pay").plan()
    (call,) = plan.pending
    REFUSED[how](plan)
    steps = call.steps
    with pytest.raises(LifecycleError):
        call.retry()
    assert call.steps == steps
    if how not in ("discarded", "committed", "dumped"):
        plan.discard()


def test_a_call_that_was_not_started_needs_no_other_try() -> None:
    """New or resuming, it is the same call, and nothing is written."""
    plan = opened("pay").plan()
    (call,) = plan.pending
    assert call.retry() is call
    plan.suspend(call.suspend(SuspendTicket()))
    plan.resume(plan.suspended[0].approve())
    steps = call.steps
    assert (call.retry().steps, call.status) == (steps, "resuming")
    plan.discard()
