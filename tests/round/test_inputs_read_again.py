"""The laws of inputs whose own serializer writes what the field does not accept."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import PlainSerializer, SecretStr

from lutum_py import RunNormally, ToolMetadata, Toolset, tool, tool_fn
from lutum_py.errors import PlanError
from lutum_py.execution import run_sync
from tests.cases import over
from tests.round.saved_plans import sealed, step
from tests.round_tools import opened

Euros = Annotated[int, PlainSerializer(lambda value: f"{value} €", return_type=str)]


@tool_fn
def pay(euros: Euros, to: list[str]) -> str:
    """Pay a sum."""
    return f"paid {euros} to {to}"


class Free(Toolset):
    pay = tool(pay)


class Asking(Toolset):
    pay = tool(pay, needs_approval=True)


CALL = ("c1", "pay", {"euros": 5, "to": ["a"]})


@over("toolset", [Free, Asking])
@over("is_saved", [False, True])
def test_such_a_call_is_described_by_what_was_sent(toolset: type[Toolset], is_saved: bool) -> None:
    """It is shown so, saved so, and runs so."""
    plan: Any = opened(CALL, toolset=toolset).plan()
    if is_saved:
        plan = toolset.load_plan(plan.dump_json())
    assert plan.calls[0].arguments == {"euros": 5, "to": ["a"]}
    for waiting in plan.suspended:
        plan.resume(waiting.approve())
    (result,) = run_sync(plan).resolve().results
    assert result.output == "paid 5 to ['a']"


def test_a_change_of_another_argument_leaves_it_alone() -> None:
    """The new text has what was sent of the one, and what was written of the other."""
    hooks = Free.HookSet()

    @hooks.on(Free.pay)
    def add(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        input.to.append("b")
        return RunNormally(input)

    plan = opened(CALL, toolset=Free).apply_hooks_sync(hooks)
    assert plan.calls[0].arguments == {"euros": 5, "to": ["a", "b"]}
    (result,) = run_sync(plan).resolve().results
    assert result.output == "paid 5 to ['a', 'b']"


@tool_fn
def log_in(password: SecretStr) -> str:
    """Log in."""
    return password.get_secret_value()


class Door(Toolset):
    log_in = tool(log_in)


def test_an_unfit_secret_of_a_saved_plan_is_not_quoted() -> None:
    """The error of loading says nothing of what stands there."""
    plan = opened(("c1", "log_in", {"password": "hunter2"}), toolset=Door).plan()
    data = json.loads(plan.dump_json())
    step(data, "c1", "proposed")["arguments"] = {"password": ["hunter2"]}
    with pytest.raises(PlanError, match="were edited after the plan was saved") as caught:
        Door.load_plan(json.dumps(sealed(data)))
    assert "hunter2" not in str(caught.value)
