"""The laws of models that cannot be a tool, or not yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, RootModel

from lutum_py import ToolInput, Toolset, tool, tool_input
from lutum_py.errors import MisuseError, ToolDefinitionError
from tests.cases import over
from tests.declare.declared_inputs import Decorated
from tests.declared import call_of, spec_of

# What comes later.


@tool_input(output="LateUser")
class Early(BaseModel):
    user: LateUser


class EarlyToo(ToolInput["LateUser"]):
    user: LateUser


class ListEarly(ToolInput[list["LateUser"]]):
    pass


@tool_input(output=list["LateUser"])
class PartsEarly(BaseModel):
    pass


@tool_input
class Never(ToolInput["Nothing"]):  # type: ignore[name-defined]
    a: int


class LateUser(BaseModel):
    name: str


@pytest.mark.parametrize("model", [Early, EarlyToo])
def test_models_may_name_what_comes_later(model: Any) -> None:
    """Fields and output may be classes that are defined further down the module."""
    call = call_of(model, {"user": {"name": "n"}})
    assert call.complete({"name": "n"}).result == '{"name":"n"}'
    assert spec_of(model).output.type is LateUser


def test_an_output_may_hold_what_comes_later() -> None:
    """Also a part of the output may be named before it is there."""
    for model in (ListEarly, PartsEarly):
        call = call_of(model, {})
        assert call.complete([{"name": "n"}]).result == '[{"name":"n"}]'
        assert spec_of(model).output.type == list[LateUser]


def test_a_name_that_never_comes_is_told() -> None:
    """What still is not defined when the tool is used is a definition error."""
    with pytest.raises(ToolDefinitionError) as caught:
        tool(Never)
    assert str(caught.value).startswith(
        "Tool input `Never`: an annotation names `Nothing`, which is not defined. Define it"
    )

    class Waiting(ToolInput[int]):
        field: Nothing  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(ToolDefinitionError):
        tool(Waiting)


# Refused.


class Alien:
    """A class that pydantic does not know."""


class Plain(BaseModel):
    a: int


class WithFunction(BaseModel):
    f: Callable[[int], int]


class Numbers(RootModel[list[int]]):
    pass


class Either(RootModel[Plain | int]):
    pass


class Doubled(BaseModel):
    a: int = Field(alias="b")
    b: int


class Unfit(BaseModel):
    days: int = "x"  # type: ignore[assignment]


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "undecorated": (
        lambda: tool(Plain),
        (
            "`Plain` is a model, but no tool. Decorate it with `@tool_input(output=...)`, or let "
            "it inherit from `ToolInput[...]`."
        ),
    ),
    "base": (
        lambda: tool(ToolInput),
        (
            "`ToolInput` is a base for input models, and no tool itself. Write `class "
            "SearchArgs(ToolInput[...])`."
        ),
    ),
    "special base": (lambda: tool(ToolInput[int]), "`ToolInput[int]` is a base for input models"),
    "function": (
        lambda: tool_input(output=int)(lambda: 0),  # type: ignore[arg-type]
        "`@tool_input` decorates pydantic models, not <function ",
    ),
    "other class": (
        lambda: tool_input(output=int)(Alien),
        "For a function use `@tool_fn`.",
    ),
    "twice": (lambda: tool_input(Decorated), "`Decorated` already is a tool. Remove one"),
    "no JSON": (
        lambda: tool_input(output=int)(WithFunction),
        "Tool input `WithFunction`: field `f` of type `Callable[[int], int]` has no JSON schema",
    ),
    "no output": (
        lambda: tool_input(output=Alien)(Plain),
        "Tool input `Plain`: its output type `Alien` has no schema (Unable to generate",
    ),
    "broken output": (
        lambda: tool_input(output="list[")(Plain),
        (
            "Tool input `Plain`: its output type 'list[' cannot be evaluated (Forward reference "
            "must be an expression -- got 'list['). Write a type."
        ),
    ),
    "array": (
        lambda: tool_input(output=int)(Numbers),
        (
            "Tool input `Numbers`: the arguments of a tool are always a JSON object, but this "
            "input schema is of type 'array'. Put the value into a field of a model, as in"
        ),
    ),
    "one name twice": (
        lambda: tool_input(output=int)(Doubled),
        "Tool input `Doubled`: fields `a` and `b` are both called 'b' on the wire.",
    ),
    "unfit default": (
        lambda: tool_input(output=int)(Unfit),
        (
            "Tool input `Unfit`: the default of field `days` does not fit its type `int`: Input "
            "should be a valid integer, unable to parse string as an integer (got 'x'). Correct "
            "one of them, or write `days: int | None = None` if it may be left out."
        ),
    ),
    "maybe a number": (lambda: tool_input(output=int)(Either), "is of type 'integer'"),
    "no name": (lambda: tool_input(output=int, name="")(Plain), "Tool input `Plain` needs a name"),
}


@over("case", WRONG)
def test_what_cannot_be_a_tool_is_refused(case: str) -> None:
    """A model that cannot be a tool is a definition error that names it and the remedy."""
    declare, expected = WRONG[case]
    with pytest.raises(ToolDefinitionError) as caught:
        declare()
    assert expected in str(caught.value)
    assert not hasattr(Plain, "Call")


def _decorated() -> Any:
    @tool_input
    class Pay(BaseModel):
        """Pay."""

        limit: ClassVar[int]
        cents: int

        def doubled(self) -> int:
            return self.cents * 2

    return Pay


def _derived() -> Any:
    class Pay(ToolInput[int]):
        """Pay."""

        limit: ClassVar[int]
        cents: int

        def doubled(self) -> int:
            return self.cents * 2

    return Pay


def _derived_and_decorated() -> Any:
    return tool_input(timeout=3)(_derived())


@pytest.mark.parametrize("declare", [_decorated, _derived, _derived_and_decorated])
def test_an_attribute_that_would_be_ignored_is_refused(declare: Any) -> None:
    """What nobody looks up is refused on the class of a tool; what pydantic has is not."""
    model = declare()
    for name in ("timeout", "needs_approval", "tiemout", "cents"):
        with pytest.raises(MisuseError, match=rf"`.*Pay\.{name} = 5` would be ignored"):
            setattr(model, name, 5)
    for name, value in (
        ("limit", 5),
        ("doubled", lambda self: 5),
        ("model_config", {"title": "x"}),
        ("__doc__", "Pay it."),
        ("_abc", 5),
    ):
        setattr(model, name, value)
        assert getattr(model, name) == value
    assert model(cents=1).doubled() == 5
    model.model_rebuild(force=True)

    class Till(Toolset):
        pay = tool(model)

    assert Till.pay.definition.input_schema["required"] == ["cents"]

    class Dearer(model):  # type: ignore[misc, valid-type]
        more: int = 0

    assert Dearer(cents=1).model_copy(update={"more": 2}).more == 2
