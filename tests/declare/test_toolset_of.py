"""The laws of `Toolset.of`, titles, and toolsets that are written inside functions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from lutum_py import ToolDef, ToolInput, Toolset, tool, tool_fn, tool_input, toolset
from lutum_py.errors import MisuseError, ToolDefinitionError
from tests.cases import over
from tests.declared import call_of
from tests.sample_tools import sent


@tool_fn(title="Add up")
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool_input(title="Greet")
class GreetArgs(ToolInput[str]):
    who: str


class Service:
    @tool_fn
    def ping(self) -> str:
        return "pong"


ECHO = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"}, title="Echo")


def test_whatever_tool_takes_makes_a_toolset() -> None:
    """Functions, models, definitions and bound methods are members, by their wire names."""
    made = Toolset.of("Made", add, tool(GreetArgs, off=True), ECHO, Service().ping, prefix="m_")
    assert repr(made) == "<toolset Made: m_add, m_greet (off), m_echo, m_ping>"
    call = made.parse_tool_call(sent("m_add", "c1", a=2))
    assert call.call_sync().output == 3
    assert made["m_add"].definition.name == "m_add"

    class Outer(Toolset):
        inner = toolset(made, prefix="o_")

    assert [each.name for each in Outer][:2] == ["o_m_add", "o_m_greet"]


def test_equal_toolsets_are_one_class() -> None:
    """The same tools under one name and prefix give the class that is there already."""
    service = Service()
    tools: Any = (add, GreetArgs, ECHO, service.ping)
    made = Toolset.of("Same", *tools)
    again = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"}, title="Echo")
    assert Toolset.of("Same", add, GreetArgs, again, service.ping) is made
    others = [
        Toolset.of("Other", *tools),
        Toolset.of("Same", *tools, prefix="x_"),
        Toolset.of("Same", *tools[:-1]),
        Toolset.of("Same", *tools[:-1], Service().ping),
        Toolset.of("Same", tool(add, off=True), *tools[1:]),
    ]
    assert all(each is not made for each in others)


def test_it_pickles_where_its_tools_do() -> None:
    """The class, its selectors and calls come back as the same; a bound method does not pickle."""
    made = Toolset.of("Pickled", add, tool(GreetArgs, off=True), ECHO, prefix="p_")
    assert pickle.loads(pickle.dumps(made)) is made
    assert copy.deepcopy(made) is made
    call = made.parse_tool_call(sent("p_add", "c1", a=2))
    assert pickle.loads(pickle.dumps(call)).selector is made["p_add"]
    with pytest.raises(MisuseError):
        pickle.dumps(Toolset.of("Bound", add, Service().ping))


@over(
    "make, said",
    [
        (lambda: Toolset.of("Two", add, add), "two tools are called 'add' on the wire"),
        (lambda: Toolset.of("no name", add), "needs a Python name, got 'no name'"),
        (lambda: Toolset.of("Bad", 3), r"`tool\(\)` takes a `@tool_fn` function"),  # type: ignore[arg-type]
        (
            lambda: Toolset.of("Bad", add, Toolset.of("In", add)),  # type: ignore[arg-type]
            r"takes tools, not <toolset In: add>. Nest a toolset in a class: `class Bad\(Toolset\)",
        ),
        (
            lambda: Toolset.of("Bad", toolset(Toolset.of("In", add))),  # type: ignore[arg-type]
            r"takes tools, not <toolset In: add>. Nest a toolset in a class: `class Bad\(Toolset\)",
        ),
        (lambda: Toolset.of("Bad", add, prefix=3), "takes a text, not 3"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_toolset_is_refused(make: Any, said: str) -> None:
    """Names that meet, and what is no tool, are definition errors."""
    with pytest.raises(ToolDefinitionError, match=said):
        make()


def test_titles_are_for_people() -> None:
    """A title is kept and shown, and changes no digest."""
    assert [each.definition.title for each in Toolset.of("Titled", add, GreetArgs, ECHO)] == [
        "Add up",
        "Greet",
        "Echo",
    ]
    plain = ToolDef.from_json_schema(name="echo", input_schema={"type": "object"})
    assert plain.title is None
    assert plain.digest == ECHO.digest
    assert plain != ECHO
    assert pickle.loads(pickle.dumps(ECHO)) == ECHO
    assert ECHO.with_name("other").title == "Echo"
    shown: Any = Toolset.of("Shown", add)
    assert "Add up" in shown.__rich__().plain
    with pytest.raises(ToolDefinitionError):
        tool_fn(title=3, name="x")(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(ToolDefinitionError):
        ToolDef.from_json_schema(name="x", input_schema={}, title="\ud800")


def test_a_local_tool_under_its_own_name_is_told_the_remedy() -> None:
    """Python looks for the name in the class and the module only, and the error says so."""

    @tool_fn
    def local() -> str:
        return "x"

    with pytest.raises(ToolDefinitionError) as caught:

        class Broken(Toolset):
            local = tool(local)

    assert str(caught.value) == (
        "Toolset `Broken`: Python does not find `local` here, because the body of a class inside a "
        "function assigns it. Name the member otherwise, as in `local_ = tool(local)`; the tool "
        "keeps its wire name."
    )

    class Fine(Toolset):
        other = tool(local)
        add = tool(add)

    assert call_of(local).call_sync().output == "x"
    assert [each.name for each in Fine] == ["local", "add"]
    with pytest.raises(NameError, match="nowhere"):

        class Lost(Toolset):
            member = tool(nowhere)  # type: ignore[name-defined] # noqa: F821
