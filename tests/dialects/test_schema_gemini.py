"""The schema compiler for Gemini, and schemas that lead back to themselves."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jsonschema
import pytest

from lutum_py.dialects import anthropic_messages, gemini_generate_content
from lutum_py.errors import ToolDefinitionError
from tests.cases import over

from .schema_tools import (
    FORMS,
    Holder,
    Tree,
    gemini,
    lost,
    of,
    tool,
)


def test_gemini_says_what_it_does_not_enforce() -> None:
    """Keywords outside the documented subset go out for the model to read, and are losses."""
    compiled = gemini(
        {
            "type": "object",
            "properties": {
                "s": {"type": "string", "minLength": 1, "default": "a"},
                "c": {"const": "x"},
                "t": {"const": True},
                "e": {"enum": ["a", None]},
                "p": {"type": "array", "prefixItems": [{"type": "string", "pattern": "a"}]},
                "d": {"type": "object", "additionalProperties": {"multipleOf": 2}},
                "a": {"allOf": [{"type": "string"}, {"title": "A"}]},
                "any": True,
            },
        }
    )
    assert lost(compiled) == [
        ("s", "minLength"),
        ("t", "const"),
        ("e", "enum"),
        ("p[]", "pattern"),
        ("d.*", "multipleOf"),
    ]
    properties = compiled.schema["properties"]
    assert properties["s"]["minLength"] == 1
    assert properties["c"] == {"enum": ["x"]}
    assert properties["t"] == {"const": True}
    assert properties["a"] == {"type": "string", "title": "A"}
    assert properties["any"] is True


def test_gemini_takes_recursion_through_optional_properties_only() -> None:
    """A cycle of required properties alone is refused; one through a default is kept."""
    compiled = gemini_generate_content.compile(of(Tree))
    jsonschema.validate({"name": "a", "children": [{"name": "b"}]}, compiled.schema)
    with pytest.raises(ToolDefinitionError):
        gemini_generate_content.compile(of(Holder))


def test_gemini_references_stand_alone() -> None:
    """A reference with words beside it is replaced by its definition, and drops no words."""
    compiled = gemini(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/A", "description": "an A"},
                "b": {"$ref": "#/$defs/A"},
                "u": {
                    "oneOf": [{"$ref": "#/$defs/A"}],
                    "discriminator": {"mapping": {"a": "#/$defs/A"}},
                },
            },
            "$defs": {"A": {"type": "object", "properties": {}}},
        }
    )
    assert compiled.schema["properties"] == {
        "a": {"type": "object", "properties": {}, "description": "an A"},
        "b": {"$ref": "#/$defs/A"},
        "u": {"oneOf": [{"$ref": "#/$defs/A"}]},
    }


@over("dialect, strict", FORMS)
def test_a_definition_that_is_described_inside_itself_stays_a_reference(
    dialect: ModuleType, strict: bool
) -> None:
    """Words beside a reference to the very definition that holds it cannot be put in place."""
    schema = {
        "type": "object",
        "properties": {"default": {"$ref": "#/$defs/Node"}, "top": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/Node", "description": "the next one"}},
            }
        },
    }
    if (dialect, strict) == (anthropic_messages, True):
        with pytest.raises(ToolDefinitionError):
            dialect.compile(tool(schema), strict=strict)
        return
    compiled = dialect.compile(tool(schema), strict=strict)
    value: dict[str, Any] = {"default": {"next": {}}}
    assert compiled.decoder(value) == value
    is_rewritten = dialect == gemini_generate_content or strict
    assert [loss.keyword for loss in compiled.losses] == ["$ref"] * is_rewritten


@over("dialect, strict", FORMS)
def test_a_schema_that_only_means_itself_is_refused(dialect: ModuleType, strict: bool) -> None:
    """A circle without any property in it has no form anywhere."""
    circle = {"anyOf": [{"$ref": "#/$defs/A"}]}
    with pytest.raises(ToolDefinitionError):
        dialect.compile(tool({**circle, "$defs": {"A": circle}}), strict=strict)
