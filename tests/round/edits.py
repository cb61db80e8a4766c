"""Plans with calls that wait, and hooks that look at edits."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import (
    Decision,
    HookSet,
    RunNormally,
    SuspendTicket,
    ToolMetadata,
    ToolRoundPlan,
)
from tests.round_tools import Shop, add, adds, gated, opened

TOLD = (
    "toolset",
    "pending",
    "in_doubt",
    "suspended",
    "handled",
    "rejected",
    "recoverable_tool_call_issues",
    "finished",
    "decisions",
    "resumed",
    "edits",
    "calls",
    "blocked",
    "is_settled",
)


def waits(
    *, ticket: SuspendTicket | None = None, hooks: HookSet[Any] | None = None, count: int = 1
) -> ToolRoundPlan[Any]:
    """A plan whose gate suspended every call of `add`."""
    hooks = hooks or gated(ticket or SuspendTicket(id="gate"), Shop.add)
    return opened(*adds(count)).apply_hooks_sync(hooks)


def own_question(before: HookSet[Any] | None = None, **ticket: Any) -> ToolRoundPlan[Any]:
    """A plan whose call was started, and waits for an answer to its tool's own question."""
    plan = opened(*adds(1)).plan()
    if before is not None:
        plan = plan.apply_hooks_sync(before)
    (call,) = plan.pending
    call.start()
    plan.record(call.suspend(SuspendTicket(id="own", **ticket)))
    return plan


def capped(most: int = 10) -> HookSet[Any]:
    """Hooks that let no amount be greater, and suspend every call."""
    hooks = gated(lambda input: SuspendTicket(message=f"{input.a}?"), Shop.add)

    @hooks.on(Shop.add)
    def cap(metadata: ToolMetadata, input: Any) -> Any:
        return RunNormally(add.Input(a=min(input.a, most), b=input.b))

    return hooks


def snapshot(plan: ToolRoundPlan[Any]) -> dict[str, Any]:
    """All that a plan tells of itself and its calls."""
    told = {name: getattr(plan, name) for name in TOLD}
    open_calls = (*plan.pending, *plan.in_doubt, *(each.call for each in plan.suspended))
    told["open"] = [(each.id, each.status, each.digest, each.approval) for each in open_calls]
    told["text"] = repr(plan)
    return told


def refused(
    plan: ToolRoundPlan[Any], decision: Decision, hooks: Any, error: type[Exception], text: str
) -> None:
    """An edit is refused, nothing has changed, and so it is refused again."""
    before = snapshot(plan)
    for _ in range(2):
        with pytest.raises(error, match=text):
            plan.amend_sync(decision, hooks)
        assert snapshot(plan) == before
