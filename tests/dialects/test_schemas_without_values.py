"""A schema that takes no value, or has an old form, is offered, or refused by an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import WithJsonSchema

from lutum_py import ToolDef, Toolset, tool_fn
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
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
DIALECTS = [openai_chat, openai_responses, anthropic_messages, gemini_generate_content]


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


def toolsets(part: Any) -> Iterator[Any]:
    for schema in places(part):
        for draft in ({}, {"$schema": DRAFT_7}):
            try:
                definition = ToolDef.from_json_schema(name="t", input_schema={**schema, **draft})
                yield Toolset.from_definitions("Taken", [definition])
            except LutumError:
                continue
    if isinstance(part, dict):

        @tool_fn
        def typed(a: Annotated[int, WithJsonSchema(part)], b: int = 0) -> None:
            """Take what a type says of itself."""

        yield Toolset.of("Typed", typed)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_takes_no_value_is_offered_or_refused(dialect: ModuleType) -> None:
    """Nothing but an error of this library comes out, wherever such a schema stands."""
    offered = 0
    for part in PARTS:
        for toolset in toolsets(part):
            for strict in (False, True):
                try:
                    dialect.tools(toolset, **{"strict": True} if strict else {})
                    offered += 1
                except LutumError:
                    continue
                except TypeError:  # a dialect without a strict mode
                    assert strict
                    assert dialect is gemini_generate_content
    assert offered > 200


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
