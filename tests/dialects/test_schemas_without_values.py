"""A schema that takes no value, or has an old form, is offered, or refused by an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import pytest
from pydantic import WithJsonSchema

from lutum_py import ToolDef, Toolset, tool_fn
from lutum_py.dialects import DIALECTS, openai_chat
from lutum_py.errors import LutumError

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PARTS: list[Any] = [
    *(
        {"enum": []},
        {"items": []},
        {"prefixItems": []},
        {"anyOf": []},
        {"oneOf": []},
        {"allOf": []},
    ),
    *({"type": []}, {}, False, True, {"const": None}, {"not": {}}, {"items": False}),
    *({"type": "array", "items": []}, {"type": "string", "enum": []}, {"type": [], "enum": []}),
    *({"anyOf": [False]}, {"anyOf": [{"enum": []}, {"type": "null"}]}, {"contains": False}),
    *({"items": [{"enum": []}], "additionalItems": False}, {"propertyNames": {"enum": []}}),
]


def places(part: Any) -> Iterator[dict[str, Any]]:
    """Give schemas that have the part in each place."""
    for field in (
        part,
        {"type": "array", "items": part},
        {"anyOf": [{"type": "null"}, part]},
        {"allOf": [part]},
        {"prefixItems": [part]},
        {"$ref": "#/$defs/X"},
    ):
        yield {"type": "object", "properties": {"a": field}, "$defs": {"X": part}}
    yield {"type": "object", "additionalProperties": part}
    yield {"type": "object", "patternProperties": {"a": part}}
    yield {"anyOf": [part, {"type": "object"}]}
    yield {"type": "object", "allOf": [part]}


@cache
def every_toolset() -> list[Any]:
    return [toolset for part in PARTS for toolset in toolsets(part)]


def toolsets(part: Any) -> Iterator[Any]:
    for schema in places(part):
        # Older drafts differ in what lists say of their items.
        for draft in ({}, {"$schema": DRAFT_7}) if "items" in str(part).lower() else ({},):
            try:
                definition = ToolDef.from_json_schema(name="t", input_schema={**schema, **draft})
                yield Toolset.from_definitions("Taken", [definition])
            except LutumError:
                continue
    if isinstance(part, dict) and "const" not in part:  # an integer is never the null that it names

        @tool_fn
        def typed(a: Annotated[int, WithJsonSchema(part)], b: int = 0) -> None:
            """Take what a type says of itself."""

        yield Toolset.of("Typed", typed)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_takes_no_value_is_offered_or_refused(name: str) -> None:
    """Nothing but an error of this library comes out, wherever such a schema stands."""
    # What is not installed is an error of the library as well, which would pass for a refusal.
    reason = "jsonschema is not installed: pip install -e '.[jsonschema]'"
    pytest.importorskip("jsonschema", reason=reason)
    dialect = import_module(f"lutum_py.dialects.{name}")
    offered = 0
    for toolset in every_toolset():
        for strict in (False, True):
            with suppress(LutumError):
                dialect.tools(toolset, strict=strict)
                offered += 1
    assert offered > 100


def test_an_old_form_of_tuples_is_told_as_the_new_one() -> None:
    """Items that are listed, as schemas had it before 2020, go out as what they mean."""
    listed = {
        "type": "array",
        "items": [{"type": "string"}],
        "additionalItems": {"type": "integer"},
    }
    schema = {"$schema": DRAFT_7, "type": "object", "properties": {"a": listed}}
    toolset = Toolset.from_definitions(
        "Old", [ToolDef.from_json_schema(name="t", input_schema=schema)]
    )
    (tool,) = openai_chat.tools(toolset)
    properties = tool["function"]["parameters"]["properties"]
    assert properties["a"] == {
        "type": "array",
        "prefixItems": [{"type": "string"}],
        "items": {"type": "integer"},
    }
