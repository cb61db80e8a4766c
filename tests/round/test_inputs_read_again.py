"""The laws of inputs whose own serializer writes what the field does not accept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import PlainSerializer, SecretStr

from lutum_py import RunNormally, ToolMetadata, ToolRound, Toolset, tool, tool_fn
from lutum_py.errors import PlanError, ToolInputError
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


def test_without_another_input_such_a_call_runs() -> None:
    """What is never written is never read again."""
    plan = opened(CALL, toolset=Free).plan()
    assert plan.pending[0].call_sync().result == "\"paid 5 to ['a']\""
    plan.discard()


def change_in_place(opened_round: ToolRound[Any]) -> None:
    hooks = Free.HookSet()

    @hooks.on(Free.pay)
    def add(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
        input.to.append("b")
        return RunNormally(input)

    opened_round.apply_hooks_sync(hooks)


def approve(opened_round: ToolRound[Any]) -> None:
    plan = opened_round.plan()
    plan.resume(plan.suspended[0].approve())
    _ = plan.apply_hooks_sync(Asking.HookSet()).pending[0].input


@over("toolset, use", [(Free, change_in_place), (Asking, approve)])
def test_what_is_not_read_again_is_the_tools_fault(
    toolset: type[Toolset], use: Callable[[ToolRound[Any]], None]
) -> None:
    """The error names tool, field and remedy, and is one of the library's."""
    opened_round = opened(CALL, toolset=toolset)
    said = r"not read again as one of tool `pay`: `euros`: .*serialize"
    with pytest.raises(ToolInputError, match=said):
        use(opened_round)
    opened_round.discard()


@over("toolset", [Free, Asking])
def test_what_could_not_be_loaded_is_not_saved(toolset: type[Toolset]) -> None:
    """The plan stays open: nothing is lost to a text that nobody can load."""
    plan = opened(CALL, toolset=toolset).plan()
    with pytest.raises(PlanError, match=r"cannot be saved: .*not read again as one of tool `pay`"):
        plan.dump_json()
    plan.discard()


@tool_fn
def log_in(password: SecretStr) -> str:
    """Log in."""
    return password.get_secret_value()


class Door(Toolset):
    log_in = tool(log_in)


def test_an_unfit_secret_of_a_saved_plan_is_not_quoted() -> None:
    """The error of loading names the field, and says nothing of what stands there."""
    plan = opened(("c1", "log_in", {"password": "hunter2"}), toolset=Door).plan()
    data = json.loads(plan.dump_json())
    step(data, "c1", "proposed")["arguments"] = {"password": ["hunter2"]}
    with pytest.raises(PlanError, match="`log_in`: `password`: Input should be") as caught:
        Door.load_plan(json.dumps(sealed(data)))
    assert "hunter2" not in str(caught.value)
