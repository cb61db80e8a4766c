"""When hooks said something about a call: a pass is written at its end, each step with its time."""

from __future__ import annotations

from typing import Any

from lutum_py import NeedsTools, RunNormally, Toolset, tool, tool_fn
from lutum_py.testing import ScriptedModel


@tool_fn
def walk(steps: int) -> str:
    """Walk."""
    return f"{steps} steps"


class Feet(Toolset):
    walk = tool(walk)


def test_decisions_stand_in_the_order_in_which_hooks_were_asked() -> None:
    """A call whose input a hook replaced comes before those that were reviewed after it."""
    hooks = Feet.HookSet()

    @hooks.on(Feet.walk)
    def fewer(_metadata: object, input: Any) -> Any:
        return RunNormally(input.model_copy(update={"steps": min(input.steps, 9)}))

    @hooks.on(Feet.walk)
    def fine(_metadata: object, input: Any) -> Any:
        return RunNormally(input)

    turn = ScriptedModel.tool_calls(("c1", "walk", {"steps": 50}), ("c2", "walk", {"steps": 2}))
    outcome = Feet.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    with outcome.round.apply_hooks_sync(hooks) as plan:
        asked = [(each.call_id, each.hook.rpartition(".")[2]) for each in plan.decisions]
        assert asked == [
            ("c1", "fewer"),
            ("c1", "fine"),
            ("c2", "fewer"),
            ("c2", "fine"),
        ]
