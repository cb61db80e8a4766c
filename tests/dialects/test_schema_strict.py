"""The schema compiler in the strict modes of OpenAI and Anthropic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field

from lutum_py.dialects import anthropic_messages, openai_chat
from lutum_py.errors import ToolDefinitionError
from tests.cases import over

from .schema_tools import (
    Holder,
    Tree,
    lost,
    of,
    strict_anthropic,
    strict_openai,
)


def test_strict_openai_requires_everything_and_closes_objects() -> None:
    """Objects are closed, properties required, optional ones nullable with their default told."""

    class Inner(BaseModel):
        x: int = Field(5, description="how many")

    class Args(BaseModel):
        inner: Inner
        kind: Literal["a", "b"] = "a"
        const: Literal[1] = 1
        either: int | str = 3
        ref: Inner = Field(default_factory=lambda: Inner(x=5))
        plain: Annotated[str, Field(description="why")]

    schema = openai_chat.compile(of(Args), strict=True).schema
    assert schema["required"] == list(schema["properties"])
    inner = schema["$defs"]["Inner"]
    assert inner["additionalProperties"] is False
    assert inner["properties"]["x"]["type"] == ["integer", "null"]
    assert inner["properties"]["x"]["description"] == "how many (null: 5)"
    properties = schema["properties"]
    assert properties["kind"]["enum"] == ["a", "b", None]
    assert properties["kind"]["type"] == ["string", "null"]
    assert properties["const"]["anyOf"] == [{"type": "integer", "const": 1}, {"type": "null"}]
    assert properties["either"]["anyOf"][-1] == {"type": "null"}
    assert properties["either"]["description"] == "(null: 3)"
    assert properties["ref"]["anyOf"][-1] == {"type": "null"}
    assert properties["plain"]["description"] == "why"


def test_strict_openai_lists_what_it_drops() -> None:
    """Each keyword that the provider does not take is a loss with its path, and is gone."""
    compiled = strict_openai(
        {
            "s": {"type": "string", "minLength": 1, "pattern": "(?=a)", "format": "uri"},
            "kept": {"type": "string", "pattern": "^a$", "format": "date"},
            "l": {
                "type": ["array", "null"],
                "prefixItems": [{"type": "string"}, {"type": "string"}],
                "items": {"type": "integer", "maximum": 3},
                "uniqueItems": True,
            },
        },
        required=["s", "kept", "l"],
    )
    assert lost(compiled) == [
        ("s", "minLength"),
        ("s", "pattern"),
        ("s", "format"),
        ("l", "uniqueItems"),
        ("l", "prefixItems"),
    ]
    assert compiled.losses[0].text == "minLength not enforced by the provider; checked locally"
    # Lookaround has no form in the engine that checks it here, either.
    assert compiled.losses[1].text.startswith("nothing checks '(?=a)'")
    assert compiled.schema["properties"] == {
        "s": {"type": "string"},
        "kept": {"type": "string", "pattern": "^a$", "format": "date"},
        "l": {
            "type": ["array", "null"],
            "items": {"anyOf": [{"type": "string"}, {"type": "integer", "maximum": 3}]},
        },
    }
    same = {"type": "array", "prefixItems": [{"type": "string"}], "items": False}
    assert strict_openai({"x": same}, required=["x"]).schema["properties"]["x"]["items"] == {
        "type": "string"
    }


def test_strict_openai_puts_a_definition_where_words_stand_beside_its_reference() -> None:
    """A reference stands alone; beside a description the definition takes its place."""
    defs = {"A": {"type": "object", "properties": {}}, "B": {"type": "string"}}
    properties = {
        "alone": {"$ref": "#/$defs/A"},
        "described": {"$ref": "#/$defs/B", "description": "a B"},
    }
    compiled = strict_openai(properties, required=list(properties), **{"$defs": defs})
    assert compiled.schema["properties"]["alone"] == {"$ref": "#/$defs/A"}
    assert compiled.schema["properties"]["described"] == {"type": "string", "description": "a B"}
    assert list(compiled.schema["$defs"]) == ["A"]
    without = strict_openai({"b": properties["described"]}, required=["b"], **{"$defs": defs})
    assert "$defs" not in without.schema


def test_strict_openai_takes_recursion() -> None:
    """A definition may lead back to itself, and nulls inside it are decoded at every depth."""
    compiled = openai_chat.compile(of(Tree), strict=True)
    sent = {"name": "a", "children": [{"name": "b", "children": None}]}
    jsonschema.validate(sent, compiled.schema)
    assert compiled.decoder(sent) == {"name": "a", "children": [{"name": "b"}]}


FORMLESS: list[tuple[Any, str]] = [
    ({}, "any value"),
    (True, "any value"),
    ({"description": "anything"}, "any value"),
    ({"type": "object"}, "any property"),
    ({"type": "object", "additionalProperties": {"type": "string"}}, "any property"),
    ({"type": "object", "properties": {}, "additionalProperties": True}, "any property"),
    (
        {"type": "object", "properties": {}, "patternProperties": {"^a": {}}},
        "any property",
    ),
    ({"type": "array"}, "any value"),
    ({"type": "array", "items": True}, "any value"),
    ({"minimum": 3}, "the type is left open"),
    ({"enum": [{"a": 1}]}, "not a plain one"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "no value is taken"),
    ({"type": "integer", "enum": ["a"]}, "no value is taken"),
    ({"not": {}}, "no value is taken"),
    (False, "no value is taken"),
]


@pytest.mark.parametrize("compiled", [strict_openai, strict_anthropic])
def test_strict_mode_refuses_what_has_no_form(compiled: Any) -> None:
    """What cannot be said in strict mode is an error that names the path and the remedy."""
    for node, problem in FORMLESS:
        with pytest.raises(ToolDefinitionError) as caught:
            compiled({"outer": {"type": "array", "items": node}})
        text = str(caught.value)
        assert problem in text, node
        assert "`outer[]`" in text or "`outer[][]`" in text, node


def test_strict_mode_guesses_a_type_that_goes_without_saying() -> None:
    """Properties mean an object, items an array, and a literal has the type of its values."""
    compiled = strict_openai(
        {
            "o": {"properties": {"x": {"type": "null"}}},
            "l": {"items": {"type": "number"}},
            "e": {"enum": [1, 2.5, "a", True, None]},
            "c": {"const": None},
            "a": {"allOf": [{"type": "string"}, {"allOf": [{"maxLength": 3}], "title": "A"}]},
            "closed": {"type": "object", "additionalProperties": False},
        },
        required=["o", "l", "e", "c", "a", "closed"],
    )
    properties = compiled.schema["properties"]
    assert properties["o"]["type"] == "object"
    assert properties["l"]["type"] == "array"
    assert properties["e"]["type"] == ["integer", "number", "string", "boolean", "null"]
    assert properties["c"] == {"type": "null", "const": None}
    assert properties["a"] == {"type": "string", "title": "A"}
    assert properties["closed"]["properties"] == {}


def test_parts_that_a_value_has_to_satisfy_together_are_joined() -> None:
    """Properties of the parts of `allOf` are joined by name, and what is required adds up."""
    part: dict[str, Any] = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    }
    part["title"] = "the first title wins"
    other = {
        "title": "Other",
        "properties": {"x": {"maximum": 3}, "y": {"type": "string"}},
        "required": ["y"],
    }
    compiled = strict_openai({"o": {"allOf": [part, other]}}, required=["o"])
    assert compiled.schema["properties"]["o"] == {
        "type": "object",
        "title": "the first title wins",
        "properties": {"x": {"type": "integer", "maximum": 3}, "y": {"type": "string"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }


@over(
    "properties, what",
    [
        ({f"p{n}": {"type": "null"} for n in range(5001)}, "properties"),
        ({"e": {"enum": list(range(1001))}}, "enumerated values"),
        ({"e": {"enum": ["x" * 100 + str(n) for n in range(251)]}}, "one long enumeration"),
        ({"c": {"const": "x" * 120_000}}, "letters in names"),
    ],
)
def test_strict_openai_holds_the_documented_sizes(properties: Any, what: str) -> None:
    """A schema past a documented size is refused, with the number and the limit."""
    with pytest.raises(ToolDefinitionError, match=f"{what}.*at most"):
        strict_openai(properties, required=list(properties))


def test_strict_openai_counts_levels_of_objects() -> None:
    """Ten objects in each other are taken and eleven refused; a recursion counts once."""

    def nested(levels: int) -> dict[str, Any]:
        if levels == 0:
            return {"type": "integer"}
        return {"type": "object", "properties": {"x": nested(levels - 1)}, "required": ["x"]}

    strict_openai({"x": nested(9)}, required=["x"])
    with pytest.raises(ToolDefinitionError):
        strict_openai({"x": nested(10)}, required=["x"])
    openai_chat.compile(of(Holder), strict=True)


def test_strict_anthropic_leaves_optional_properties_optional() -> None:
    """Optional properties stay so, objects are closed, bounds are losses, and nothing is undone."""
    compiled = strict_anthropic(
        {
            "n": {"type": "integer", "minimum": 1, "default": 3},
            "l": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1},
            "m": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
    )
    assert compiled.schema["required"] == []
    assert compiled.schema["additionalProperties"] is False
    assert compiled.schema["properties"]["n"] == {"type": "integer", "default": 3}
    assert compiled.schema["properties"]["l"]["minItems"] == 1
    assert lost(compiled) == [("n", "minimum"), ("m", "minItems")]
    assert compiled.decoder('{"n":null}') == '{"n":null}'


def test_strict_anthropic_refuses_recursion() -> None:
    """A definition that leads back to itself is refused, with the way that it takes."""
    with pytest.raises(ToolDefinitionError):
        anthropic_messages.compile(of(Tree), strict=True)
    anthropic_messages.compile(of(Tree))


def test_strict_anthropic_holds_the_documented_numbers() -> None:
    """Too many optional properties, or properties of several types, are refused with the number."""
    many = {f"p{n}": {"type": "integer"} for n in range(25)}
    with pytest.raises(ToolDefinitionError, match="25 optional properties"):
        strict_anthropic(many)
    strict_anthropic(many, required=list(many))
    wide = {f"p{n}": {"type": ["integer", "null"]} for n in range(17)}
    with pytest.raises(ToolDefinitionError, match="17 properties of several types"):
        strict_anthropic(wide, required=list(wide))


def test_an_optional_property_of_an_open_type_may_be_left_out() -> None:
    """Null is offered for it, though its own schema says nothing of null."""
    compiled = strict_openai({"a": {"properties": {"b": {"type": "string"}}, "required": ["b"]}})
    jsonschema.validate({"a": None}, compiled.schema)
    jsonschema.validate({"a": {"b": "x"}}, compiled.schema)
    assert compiled.decoder({"a": None}) == {}


@pytest.mark.parametrize("compiled", [strict_openai, strict_anthropic])
def test_tuples_of_an_open_end_are_refused(compiled: Any) -> None:
    """Items of any value have no form, behind others as little as alone."""
    with pytest.raises(ToolDefinitionError, match="any value is taken"):
        compiled({"a": {"prefixItems": [{"type": "string"}], "items": True}}, required=["a"])
