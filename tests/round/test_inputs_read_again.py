"""The laws of inputs whose own serializer writes what the field does not accept."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, PlainSerializer, SecretStr

from lutum_py import RunNormally, ToolMetadata, Toolset, tool, tool_fn
from lutum_py.errors import HookError, ToolInputError
from tests.cases import over
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


def add_a_name(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
    input.to.append("b")
    return RunNormally(input)


def give_a_name(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
    return RunNormally(input.model_copy(update={"to": ["a", "b"]}))


def give_more(metadata: ToolMetadata, input: Any) -> RunNormally[Any]:
    return RunNormally(input.model_copy(update={"euros": 6}))


@over("toolset", [Free, Asking])
@over("hook", [add_a_name, give_a_name])
@over("is_saved", [False, True])
def test_what_the_model_wrote_describes_it(
    toolset: type[Toolset], hook: Any, is_saved: bool
) -> None:
    """The text that came is read again, with what a hook changed of another field."""
    hooks = toolset.HookSet()
    hooks.on(toolset.pay)(hook)  # type: ignore[attr-defined]
    plan = opened(CALL, toolset=toolset).apply_hooks_sync(hooks)
    for waiting in plan.suspended:
        assert waiting.arguments == {"euros": 5, "to": ["a", "b"]}
        plan.resume(waiting.approve())
    if is_saved:
        plan = toolset.load_plan(plan.dump_json())
    assert plan.pending[0].call_sync().output == "paid 5 to ['a', 'b']"
    assert plan.calls[0].arguments == {"euros": 5, "to": ["a", "b"]}
    plan.discard()


@over("toolset", [Free, Asking])
def test_what_no_text_describes_is_the_hooks_fault(toolset: type[Toolset]) -> None:
    """The error names tool, field and remedy, and is one of the library's."""
    hooks = toolset.HookSet()
    hooks.on(toolset.pay)(give_more)  # type: ignore[attr-defined]
    opened_round = opened(CALL, toolset=toolset)
    with pytest.raises(HookError, match=r"tool `pay`: `euros`: "):
        opened_round.apply_hooks_sync(hooks)
    opened_round.discard()


def in_time(secret: SecretStr) -> SecretStr:
    if TOO_LATE:
        raise ValueError("too late")
    return secret


TOO_LATE: list[bool] = []
Password = Annotated[SecretStr, AfterValidator(in_time)]


@tool_fn
def log_in(password: Password) -> str:
    """Log in."""
    return password.get_secret_value()


class Door(Toolset):
    log_in = tool(log_in)


def test_a_secret_that_does_not_fit_any_more_is_not_quoted() -> None:
    """A load validates nothing; what the model reads of the start names the field alone."""
    plan = opened(("c1", "log_in", {"password": "hunter2"}), toolset=Door).plan()
    TOO_LATE.append(True)
    plan = Door.load_plan(plan.dump_json())
    with pytest.raises(ToolInputError, match="`log_in`: `password`: ") as caught:
        plan.pending[0].call_sync()
    TOO_LATE.clear()
    assert "hunter2" not in str(caught.value)
    (result,) = plan.resolve().results
    assert "`password`" in result.model_text
    assert "hunter2" not in result.model_text
