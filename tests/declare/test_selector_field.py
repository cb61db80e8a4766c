"""The laws of selectors as fields: a model may name tools, and names those that there are."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from lutum_py import Toolset, tool, tool_fn, toolset
from lutum_py.errors import UnknownToolError
from lutum_py.typing import AnySelector
from tests.cases import over


@tool_fn
def read(path: str) -> str:
    return path


@tool_fn
def write(path: str) -> str:
    return path


class Files(Toolset):
    read = tool(read)
    write = tool(write, off=True)


class App(Toolset):
    local = toolset(Files)
    remote = toolset(Files, prefix="remote_")


class Empty(Toolset):
    pass


class Next(BaseModel):
    tools: list[App.Selector]
    first: App.Selector | None = None


def test_values_are_wire_names() -> None:
    """A selector is read from its wire name, and written as it, from JSON and from Python."""
    made = Next.model_validate_json('{"tools":["read","remote_write"],"first":"remote_read"}')
    assert made.tools == [App.local.read, App.remote.write]
    assert made.first is App.remote.read
    assert Next(tools=[App.local.read, "write"]).tools == [App.local.read, App.local.write]  # type: ignore[list-item]
    text = '{"tools":["read","remote_write"],"first":"remote_read"}'
    assert made.model_dump_json() == text
    assert made.model_dump()["tools"] == ["read", "remote_write"]
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_the_schema_is_the_enum_of_names(mode: Any) -> None:
    """A model that is asked for a selector is told which there are, and so is who reads one."""
    schema = TypeAdapter(App.Selector).json_schema(mode=mode)
    assert schema == {"type": "string", "enum": ["read", "write", "remote_read", "remote_write"]}
    assert TypeAdapter(App.remote.Selector).json_schema(mode=mode)["enum"] == schema["enum"][2:]
    assert TypeAdapter(Empty.Selector).json_schema(mode=mode) == {"type": "string"}


@over("value", ["delete", 3, None, Files.read, ["read"], {"a": 1}])
def test_a_wrong_value_is_told_which_are_right(value: Any) -> None:
    """Anything but a name or selector of the toolset is refused with the names that there are."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(App.Selector).validate_python(value)
    said = str(caught.value)
    assert "Input should be 'read', 'write', 'remote_read' or 'remote_write'" in said


def test_a_toolset_without_tools_has_no_selectors() -> None:
    """There is nothing to choose from in an empty toolset."""
    with pytest.raises(ValidationError, match="no tools"):
        TypeAdapter(Empty.Selector).validate_json('"read"')


def test_a_view_has_the_selectors_of_its_part() -> None:
    """The selector type of a nested toolset takes its own tools only."""
    adapter = TypeAdapter(App.remote.Selector)
    assert adapter.validate_python("remote_read") is App.remote.read
    with pytest.raises(ValidationError, match="'remote_read' or 'remote_write'"):
        adapter.validate_python("read")


def test_names_lead_to_selectors() -> None:
    """A selector is found by its name, tried for, or asked for."""
    kind: Any = App.Selector
    assert kind.all() == tuple(App)
    assert kind.try_from_name("read") is App.local.read
    assert kind.try_from_name("nope") is None
    assert kind.from_name("remote_read") is App.remote.read
    with pytest.raises(
        UnknownToolError,
        check=lambda error: (error.name, error.suggestion) == ("remote_raed", "remote_read"),
    ):
        kind.from_name("remote_raed")
    assert isinstance(App.local.read, kind)
    assert issubclass(kind, AnySelector)


def test_a_tool_can_be_asked_for_tools() -> None:
    """A selector may be a parameter of a tool."""

    @tool_fn
    def choose(tools: list[App.Selector], best: App.Selector) -> list[str]:
        return [str(one) for one in [*tools, best]]

    class Choice(Toolset):
        choose_tools = tool(choose)

    from lutum_py import ToolMetadata

    metadata = ToolMetadata(
        id="c1", name="choose", arguments='{"tools": "[\\"read\\"]", "best": "write"}'
    )
    call = Choice.parse_tool_call(metadata)
    assert call.call_sync().output == ["read", "write"]
    assert call.coerced == ("tools",)
