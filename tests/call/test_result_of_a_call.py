"""What a call ended with, as the call and its plan show it."""

from __future__ import annotations

from typing import Any

from lutum_py import Complete, Reject, ToolMetadata, ToolResult, Toolset, tool, tool_fn
from lutum_py.testing import ScriptedModel
from tests.cases import over


@tool_fn
def pay(cents: int) -> str:
    """Pay."""
    return "paid"


class Desk(Toolset):
    pay = tool(pay)


@over(
    "given, wanted",
    [
        (Complete("no need"), ("success", "no need")),
        (Reject("too much"), ("rejected", "Rejected: too much")),
    ],
)
def test_a_call_that_hooks_ended_has_its_result(given: Any, wanted: tuple[str, str]) -> None:
    """A call shows its result however it ended, and none before."""
    hooks = Desk.HookSet()

    @hooks.on(Desk.pay)
    def decide(metadata: ToolMetadata, input: Any) -> Any:
        return given

    outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    (call,) = outcome.round.tool_calls
    assert call.result is None
    plan = outcome.round.apply_hooks_sync(hooks)
    result: Any = call.result
    assert (result.status, result.model_text) == wanted
    plan.discard()


def test_a_result_of_no_call_of_the_plan_is_shown_to_no_hook() -> None:
    """What is not of the plan comes back as it is, and is refused where it is recorded."""
    hooks = Desk.HookSet()
    seen: list[str] = []

    @hooks.after()
    def note(call: Any, result: ToolResult) -> None:
        seen.append(result.id)

    outcome: Any = Desk.read_turn(ScriptedModel.tool_calls(("c1", "pay", {"cents": 5})))
    plan = outcome.round.apply_hooks_sync(hooks)
    other = ToolResult(id="c9", name="pay", arguments="{}", result='"x"')
    assert plan.review_outcome_sync(other, hooks) is other
    assert seen == []
    plan.discard()
