"""The laws of annotations that name what comes later, or is not there at run time."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from lutum_py import tool_fn
from lutum_py.errors import ToolDefinitionError
from lutum_py.typing import ToolFn
from tests.declared import call_of, spec_of


class Hit(BaseModel):
    title: str


@tool_fn
def later(node: Node, others: list[Node] | None = None) -> Node:
    return node


@tool_fn
def never(node: Nowhere) -> int:  # type: ignore[name-defined] # noqa: F821
    return 0


EARLY = "Node" not in globals()


class Node(BaseModel):
    name: str
    next: Node | None = None


def test_a_class_may_come_later_in_the_module() -> None:
    """A tool whose annotations name what comes later is built on first use."""
    assert EARLY
    assert later.name == "later"
    arguments = {"node": {"name": "a", "next": {"name": "b"}}}
    result = call_of(later, arguments).call_sync()
    assert result.output == {"name": "a", "next": {"name": "b", "next": None}}
    assert spec_of(later) is spec_of(later)


def test_a_name_that_never_comes_is_told() -> None:
    """An annotation that has no value by the time the tool is used is a definition error."""
    expected = (
        "Tool function `never`: an annotation names `Nowhere`, which is not defined. Define it (or "
        "import it, not only under `TYPE_CHECKING`) before the tool is used."
    )
    with pytest.raises(ToolDefinitionError) as caught:
        _ = never.definition
    assert str(caught.value) == expected


def test_local_classes_are_found() -> None:
    """Annotations may name the locals of the function, and of the class body, around the tool."""

    class Local(BaseModel):
        value: int

    class Methods:
        class Inner(BaseModel):
            value: int

        @tool_fn
        def both(self, one: Local, two: Inner) -> int:
            return one.value + two.value

        @tool_fn(name="late")
        def also(self, one: Late, two: int = 1) -> int:
            return one.value + two

    class Late(BaseModel):
        value: int

    arguments = {"one": {"value": 1}, "two": {"value": 2}}
    assert call_of(Methods.both, arguments).call_sync(self=None).result == "3"
    assert call_of(Methods.also, {"one": {"value": 4}}).call_sync(self=None).result == "5"


def test_the_locals_of_a_helper_are_nobody_elses() -> None:
    """Where a helper applies the decorator, its own locals mean nothing to the annotations."""

    def helper(function: Callable[..., Any]) -> Any:
        Hit = int  # noqa: F841
        return tool_fn(function)

    def show(hit: Hit, times: int = 1) -> str:
        return hit.title * times

    assert call_of(helper(show), {"hit": {"title": "t"}}).call_sync().result == '"t"'


def test_a_tool_that_is_built_keeps_no_frame() -> None:
    """The locals around a declaration can go when the declaration is done."""

    class Big:
        """Something that must not stay."""

    def around() -> tuple[Any, weakref.ref[Big]]:
        big = Big()

        @tool_fn
        def small(a: int) -> int:
            return a

        return small, weakref.ref(big)

    tool, reference = around()
    gc.collect()
    assert reference() is None
    assert call_of(tool, {"a": 1}).input.a == 1


# Trap: an incomplete model.


class Tree(BaseModel):
    root: Leaf


@tool_fn
def climb(tree: Tree, times: int = 1) -> Tree:
    return tree


@dataclass
class Garden:
    leaf: Leaf


@tool_fn
def rake(garden: Garden) -> str:
    return garden.leaf.color


@tool_fn
def rake_more(garden: Garden, times: int = 1) -> Garden:
    return garden


class Bush(TypedDict):
    leaf: Leaf


@tool_fn
def trim(bush: Bush) -> list[Bush]:
    return [bush]


class Leaf(BaseModel):
    color: str


def test_a_model_may_be_completed_later() -> None:
    """A parameter's model may itself name what comes later in the module."""
    leaf = {"leaf": {"color": "red"}}
    assert call_of(rake, leaf).call_sync().result == '"red"'
    assert call_of(rake_more, {"garden": leaf}).call_sync().output == leaf
    assert call_of(trim, leaf).call_sync().output == [leaf]
    assert isinstance(climb, ToolFn)
    result = call_of(climb, {"tree": {"root": {"color": "red"}}}).call_sync()
    assert result.result == '{"root":{"color":"red"}}'
