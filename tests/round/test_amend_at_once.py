"""The laws of edits that meet other decisions while hooks are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import (
    Decision,
    ResumeMode,
    RunNormally,
    SuspendTicket,
    ToolContext,
    ToolMetadata,
    ToolRoundPlan,
    Toolset,
    execution,
    tool_fn,
)
from lutum_py.errors import HookError, ResumeError
from tests.round.edits import capped, refused, waits
from tests.round_tools import Shop, add, adds, close, done, gated, opened


def racing(plan: ToolRoundPlan[Any], decision: Decision, meanwhile: Callable[[], Any]) -> Any:
    """Amend a plan, and do something else while a hook is awaited."""

    async def main() -> Any:
        entered, go_on = asyncio.Event(), asyncio.Event()

        async def slow(metadata: ToolMetadata, input: Any) -> None:
            entered.set()
            await go_on.wait()

        hooks = Shop.HookSet()
        hooks.before(Shop.add)(slow)
        amending = asyncio.create_task(plan.amend(decision, hooks))
        await entered.wait()
        try:
            meanwhile()
        finally:
            go_on.set()
            outcome = (await asyncio.gather(amending, return_exceptions=True))[0]
        return outcome

    return asyncio.run(main())


def test_of_two_edits_at_once_one_goes_through_hooks() -> None:
    """While an edit is with the hooks, another of the same call is refused, the same one too."""
    plan = waits(count=2)
    first, second = plan.suspended
    decision = first.edit({"a": 5})

    def meanwhile() -> None:
        for other in (decision, first.edit({"a": 6})):
            with pytest.raises(ResumeError):
                plan.amend_sync(other, Shop.HookSet())
        assert plan.amend_sync(second.edit({"a": 7}), Shop.HookSet()) is second.call

    assert racing(plan, decision, meanwhile) is first.call
    assert plan.amend_sync(decision, Shop.HookSet()) is None
    refused(plan, first.edit({"a": 6}), Shop.HookSet(), ResumeError, "is not suspended")
    assert [result.output for result in done(plan.pending)] == [5, 7]
    assert [edit.call_id for edit in plan.edits] == ["c1", "c0"]  # as they were taken in
    close(plan)


@pytest.mark.parametrize("way", ["cancel", "approve"])
def test_whoever_decides_while_hooks_are_awaited_is_heard(way: str) -> None:
    """A decision without an edit need not wait for one that is with the hooks: that comes late."""
    plan = waits()
    (waiting,) = plan.suspended
    error = racing(
        plan, waiting.edit({"a": 5}), lambda: plan.resume(getattr(waiting, way)(by="bob"))
    )
    assert isinstance(error, ResumeError)
    assert "is not suspended in this plan" in str(error)
    assert plan.edits == ()
    assert waiting.call.input == add.Input(a=0, b=0)
    close(plan)


def test_an_edit_that_hooks_change_comes_too_late_as_any() -> None:
    """Nothing waits once more where somebody has decided while hooks reviewed an edit."""
    plan = waits()
    (waiting,) = plan.suspended
    hooks = Shop.HookSet()

    @hooks.on(Shop.add)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        plan.resume(waiting.approve(by="bob"))
        return RunNormally(add.Input(a=input.a + 1, b=input.b))

    with pytest.raises(ResumeError, match="is not suspended in this plan"):
        plan.amend_sync(waiting.edit({"a": 5}), hooks)
    assert (plan.edits, plan.suspended) == ((), ())
    assert plan.pending[0].input == add.Input(a=0, b=0)
    close(plan)


def test_an_edit_does_not_count_for_the_next_question() -> None:
    """A call that went on meanwhile, and waits again, is not answered by an edit of before."""
    plan = waits()
    (waiting,) = plan.suspended

    def meanwhile() -> None:
        plan.resume(waiting.approve())
        waiting.call.start()
        plan.record(waiting.call.suspend(SuspendTicket(id="own")))

    error = racing(plan, waiting.edit({"a": 5}), meanwhile)
    assert isinstance(error, ResumeError)
    assert "went on, and waits for another one" in str(error)
    assert (plan.edits, plan.suspended[0].ticket.id) == ((), "own")
    close(plan)


def test_another_plan_of_the_round_knows_of_an_edit() -> None:
    """Two plans that share a suspended call cannot both take a decision about it."""
    plan = waits()
    other = plan.apply_hooks_sync(Shop.HookSet())
    (waiting,) = plan.suspended
    plan.amend_sync(waiting.edit({"a": 99}), capped())
    refused(other, waiting.approve(), Shop.HookSet(), ResumeError, "another version")
    plan.resume(plan.suspended[0].approve())
    refused(
        other, waiting.edit({"a": 1}), Shop.HookSet(), ResumeError, "not suspended in this plan"
    )
    close(plan)


def test_an_edit_marks_before_hooks_for_its_own_call_only() -> None:
    """A before-hook that raised meanwhile about another call is asked again about that one."""
    tried: list[str] = []

    async def main() -> None:
        plan = opened(*adds(1), ("w", "add", {"a": 9})).apply_hooks_sync(
            gated(lambda input: SuspendTicket() if input.a == 9 else None, Shop.add)
        )
        (waiting,) = plan.suspended
        told, broken = asyncio.Event(), asyncio.Event()

        async def before(metadata: ToolMetadata, input: Any) -> None:
            tried.append(metadata.id)
            if metadata.id == "w":
                told.set()
                await broken.wait()
            elif len(tried) == 1:
                await told.wait()
                raise OSError

        hooks = Shop.HookSet()
        hooks.before(Shop.add)(before)
        applying = asyncio.create_task(plan.apply_hooks(hooks))
        await asyncio.sleep(0)
        amending = asyncio.create_task(plan.amend(waiting.edit({"a": 5}), hooks))
        with pytest.raises(HookError):
            await applying
        broken.set()
        await amending
        await plan.apply_hooks(hooks)
        close(plan)

    asyncio.run(main())
    assert tried == ["c0", "w", "c0"]


def test_a_tool_that_asks_twice_with_one_ticket_asks_two_questions() -> None:
    """Who answered the first meanwhile, and what was run then, is not written over."""
    ticket = SuspendTicket(resume_mode=ResumeMode.PASS_DECISION_TO_TOOL)

    @tool_fn
    def wire(to: str, context: ToolContext) -> str:
        """Ask each time."""
        return context.suspend(ticket)

    till = Toolset.of("Till", wire)
    plan = opened(("c1", "wire", {"to": "bob"}), toolset=till).plan()
    plan.record(execution.execute_sync(plan.pending[0]))
    (waiting,) = plan.suspended
    hooks = till.HookSet()

    @hooks.gate()
    async def meanwhile(metadata: Any, input: Any) -> None:
        plan.resume(waiting.approve(by="ann"))
        plan.record(execution.execute_sync(plan.pending[0]))

    with pytest.raises(ResumeError, match="comes too late"):
        asyncio.run(plan.amend(waiting.edit({"to": "eve"}, by="cy"), hooks))
    told = [(step.kind, step.by) for step in plan.steps if step.kind in ("started", "decided")]
    assert told == [("started", None), ("decided", "ann"), ("started", None)]
    plan.discard()
