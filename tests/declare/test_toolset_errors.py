"""The laws of what the body of a toolset refuses."""

from __future__ import annotations

import functools
import typing
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from lutum_py import (
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import (
    ToolDefinitionError,
)
from tests.cases import over
from tests.declare.defining import define
from tests.sample_tools import (
    AppTools,
    DataTools,
    GetUserArgs,
    ping,
)


def test_a_toolset_with_members_has_no_subclasses() -> None:
    """A toolset that has members cannot be inherited from; one without can."""
    with pytest.raises(ToolDefinitionError):
        define({"ping": tool(ping)}, "More", AppTools)

    class Base(Toolset):
        @classmethod
        def names(cls) -> list[str]:
            return [selector.name for selector in cls]

    class Derived(Base):
        ping = tool(ping)

    assert Derived.names() == ["ping"]


@over(
    "value, shown",
    [
        (3, "= 3`"),
        (ping, "ping"),
        (GetUserArgs, "GetUserArgs"),
        ([tool(ping)], "ToolMember"),
        (len, "len"),
    ],
)
def test_anything_else_in_the_body_is_an_error(value: object, shown: str) -> None:
    """What is neither a tool nor a method is refused, plainly and with the remedy."""
    with pytest.raises(ToolDefinitionError) as caught:
        define({"odd": value})
    assert type(caught.value) is ToolDefinitionError
    assert shown in str(caught.value)
    assert "Declare `odd = tool(...)` or `odd = toolset(...)`" in str(caught.value)


def test_two_tools_of_one_wire_name_are_refused() -> None:
    """Two tools of one wire name are an error that names both paths."""
    with pytest.raises(ToolDefinitionError, match=r"`Sample`: a and b .*'ping'"):
        define({"a": tool(ping), "b": tool(ping)})
    with pytest.raises(ToolDefinitionError, match=r"mine and data.get_user .*'get_user'"):
        define({"mine": tool(GetUserArgs), "data": toolset(DataTools)})


def test_a_member_is_declared_once() -> None:
    """A member's name cannot be used again in the body, so that no tool is lost in silence."""
    with pytest.raises(ToolDefinitionError):

        class Twice(Toolset):
            odd = tool(ping)
            odd = tool(ping)  # noqa: PIE794


@over(
    "name, owner",
    [
        ("definitions", "Toolset"),
        ("dump_session", "Toolset"),
        ("load_session", "Toolset"),
        ("Call", "Toolset"),
        ("Selector", "Toolset"),
        ("mro", "HookSet"),
        ("gate", "HookSet"),
        ("copy", "HookSet"),
        ("register_hooks", "HookSet"),
        ("on", "HookSet"),
    ],
)
def test_reserved_member_names_are_refused(name: str, owner: str) -> None:
    """A member cannot be called like something of `Toolset` or `HookSet`."""
    for member in (tool(ping), toolset(DataTools)):
        with pytest.raises(
            ToolDefinitionError,
            match=f"`{name}`.* every {owner}",
        ):
            define({name: member})


def test_private_names_are_refused() -> None:
    """A member has a public name, and the toolset's own names are left to it."""
    with pytest.raises(ToolDefinitionError, match="`_ping`"):
        define({"_ping": tool(ping)})
    with pytest.raises(ToolDefinitionError, match="`_members`"):
        define({"_members": 3})


@dataclass
class Plain:
    x: int


class Undecorated(BaseModel):
    x: int


class Service:
    @tool_fn
    def rename(self, name: str) -> str:
        return name


def bare() -> None: ...


@functools.cache
@tool_fn
def cached() -> None: ...


@over(
    "declared, text",
    [
        (bare, r"`bare` is not a tool. Decorate it with `@tool_fn`"),
        (cached, r"`cached` is not a tool any more: a decorator above `@tool_fn`"),
        (Plain, r"`Plain` is not a tool. Declare the input as a pydantic model"),
        (DataTools, r"`DataTools` is not a tool. Nest a toolset with `toolset\(DataTools\)`"),
        (Undecorated, "Undecorated"),
        (3, r"`tool\(\)` takes a `@tool_fn` function, an input model or a `ToolDef`, not 3"),
        (AppTools.web_search, r"`tool\(\)` takes a `@tool_fn` function"),
    ],
)
def test_what_is_no_tool_is_refused(declared: Any, text: str) -> None:
    """`tool()` refuses what is not declared as a tool, with the remedy."""
    with pytest.raises(ToolDefinitionError, match=text):
        tool(declared)


def test_what_is_no_toolset_is_refused() -> None:
    """`toolset()` refuses what is no toolset, and a prefix that is no text."""
    with pytest.raises(ToolDefinitionError):
        toolset(typing.cast("Any", Plain))
    with pytest.raises(ToolDefinitionError):
        toolset(DataTools, prefix=typing.cast("Any", 3))
