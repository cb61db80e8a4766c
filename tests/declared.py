"""What the tests of declarations share: one tool, one call of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import AnyToolCall, ToolMetadata, tool
from lutum_py.errors import InvalidArgumentsError
from tests.private import decode


def spec_of(declared: Any) -> Any:
    """What a member of a toolset is made of: of a function, a model or a definition."""
    member: Any = tool(declared)
    return member.spec


def call_of(declared: Any, arguments: Any = "{}", *, id: str = "c1") -> Any:
    """Decode a call of a tool; arguments other than a string are encoded first."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    selector = spec_of(declared).free_selector
    made: AnyToolCall = decode(
        selector, ToolMetadata(id=id, name=selector.name, arguments=text)
    ).call
    return made


def refusal(declared: Any, arguments: Any, *, redact: bool = False) -> str:
    """What the model is told of arguments that do not fit."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    selector = spec_of(declared).free_selector
    metadata = ToolMetadata(id="c1", name=selector.name, arguments=text)
    with pytest.raises(InvalidArgumentsError) as caught:
        decode(selector, metadata, redact=redact)
    said, error = str(caught.value), caught.value
    head = f"The arguments of tool `{selector.name}` are invalid, so it was not run:\n"
    tail = "\nCall it again with corrected arguments."
    assert said.startswith(head)
    assert said.endswith(tail)
    assert error.tool == selector.name
    assert error.call_id == "c1"
    return said.removeprefix(head).removesuffix(tail)


def schema_of(declared: Any) -> dict[str, Any]:
    """The input schema of a tool."""
    schema: dict[str, Any] = spec_of(declared).definition.input_schema
    return schema


def declare(scope: dict[str, Any], source: str) -> Any:
    """Execute a definition of `f` among some names, as in a module where annotations are values."""
    names = dict(scope)
    exec(compile(source, "<declared>", "exec", dont_inherit=True), names)
    return names["f"]
