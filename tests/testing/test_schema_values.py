"""The laws of values made from a JSON schema: they are what it says, and reach all of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample
from jsonschema import Draft202012Validator

from lutum_py.testing._calls import (
    CallStrategies,
    SchemaValues,
    branches_of,
    kinds_accepted,
    opened,
)
from tests.profiles import scaled

from .samples import Every

FEW = settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.too_slow])

SCHEMAS: dict[str, Any] = {
    "anything": {},
    "true": True,
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "integers": {"type": "integer", "minimum": 3, "exclusiveMaximum": 9},
    "integers by floats": {"type": "integer", "exclusiveMinimum": 1.5, "maximum": 8.5},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 1},
    "multiples by a float": {"type": "integer", "multipleOf": 2.0, "maximum": 100},
    "numbers": {"type": "number", "exclusiveMinimum": 0.1, "maximum": 0.9},
    "halves": {"type": "number", "multipleOf": 0.5, "minimum": -2, "maximum": 2},
    "wide numbers": {"type": "number", "minimum": 0},
    "texts": {"type": "string", "minLength": 2, "maxLength": 4},
    "long texts": {"type": "string", "minLength": 30},
    "patterns": {"type": "string", "pattern": "^[a-z]{2,3}$", "maxLength": 2},
    "patterns with an end": {"type": "string", "pattern": r"x\$"},
    "choices": {"enum": ["a", 1, None, ["b"]]},
    "constant": {"const": {"a": 1}},
    "types": {"type": ["string", "null"], "minLength": 1},
    "no type": {"minimum": 3},
    "arrays": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "sets": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "pairs": {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2},
    "closed pairs": {
        "type": "array",
        "prefixItems": [{"const": 1}, {"const": 2}],
        "items": False,
        "minItems": 2,
    },
    "pairs and more": {
        "type": "array",
        "prefixItems": [{"const": 1}],
        "items": {"type": "string"},
        "minItems": 2,
    },
    "short pairs": {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1},
    "objects": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a", "c"],
    },
    "mappings": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
    "open objects": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "boolean"},
        "maxProperties": 3,
    },
    "full objects": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": True,
        "maxProperties": 1,
    },
    "named entries": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z]+$"},
        "additionalProperties": {"type": "integer"},
    },
    "patterned entries": {
        "type": "object",
        "patternProperties": {"^x_[a-z]$": {"type": "integer"}},
        "additionalProperties": False,
    },
    "references": {
        "$ref": "#/$defs/a~1b",
        "$defs": {"a/b": {"type": "object", "properties": {"more": {"$ref": "#/$defs/a~1b"}}}},
    },
    "references in a union": {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {
                "type": "object",
                "properties": {
                    "next": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
                    "other": {"oneOf": [{"$ref": "#/$defs/b"}, {"type": "null"}]},
                },
            },
            "b": {"type": "object", "properties": {"back": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        },
    },
    "joined": {
        "allOf": [
            {"type": "object", "properties": {"a": {"minimum": 1}}, "required": ["a"]},
            {"properties": {"b": {"type": "null"}}, "required": ["b"], "minProperties": 2},
            {"minProperties": 1, "maxProperties": 2},
            {"maxProperties": 5},
        ]
    },
    "joined choices": {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]},
    "a choice beside": {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 2}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_values_are_what_the_schema_says(case: str) -> None:
    """Every value that is made of a schema is valid by the package `jsonschema`."""
    schema = SCHEMAS[case]
    checker = Draft202012Validator(schema)

    @FEW
    @given(SchemaValues(schema).values(schema))
    def check(value: Any) -> None:
        checker.validate(value)

    check()


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"anyOf": []},
    ],
)
def test_nothing_is_made_of_a_schema_that_nothing_fits(schema: Any) -> None:
    """Where no value fits, the strategy is empty instead of making another."""
    assert SchemaValues({}).values(schema).is_empty


def test_a_pattern_of_another_engine_is_left_to_the_tool() -> None:
    """A pattern that Python cannot read gives any text, to be dropped by who decodes."""
    values = SchemaValues({}).values({"type": "string", "pattern": r"^\p{L}+$"})
    assert isinstance(find(values, lambda _: True), str)


@FEW
@given(SchemaValues({}).values({"type": "string", "pattern": "^[a-z]+$"}))
def test_the_end_of_a_pattern_is_the_end(text: str) -> None:
    """No line break comes after a pattern that says where the text ends, as Python would let it."""
    assert text.isalpha()


def test_integers_of_no_whole_step_are_left_to_the_tool() -> None:
    """A step that is no whole number is not taken for one."""
    bounds = {"minimum": 0, "maximum": 5}
    values = SchemaValues({}).values({"type": "integer", "multipleOf": 1.5, **bounds})
    assert find(values, lambda value: value == 3) == 3


@pytest.mark.parametrize("selector", list(Every), ids=lambda selector: selector.name)
def test_arguments_are_mostly_right_without_a_judge(selector: Any) -> None:
    """What is made of the schema alone decodes nearly always, so few values are dropped."""
    schema = selector.definition.input_schema
    made: list[bool] = []

    @settings(FEW, max_examples=100, database=None)
    @given(SchemaValues(schema).values(schema))
    def take(value: Any) -> None:
        made.append(selector.accepts(json.dumps(value)))

    take()
    assert sum(made) > 0.6 * len(made)


REACHED: list[tuple[str, Any]] = [
    ("forecast", lambda data: "days" not in data),
    ("forecast", lambda data: abs(data.get("days", 0)) > 2**64),
    ("forecast", lambda data: any(ord(one) > 0xFFFF for one in data["city"])),
    ("forecast", lambda data: data["city"] == ""),
    (
        "mixed",
        lambda data: {pet["kind"] for pet in data["pets"] if "kind" in pet} == {"cat", "dog"},
    ),
    ("mixed", lambda data: data.get("maybe", 0) is None),
    ("mixed", lambda data: any(len(pet) > 2 for pet in data["pets"])),
    ("tree", lambda data: data.get("children") not in (None, [])),
    ("anything", lambda data: isinstance(data["x"], dict) and isinstance(data["y"], list)),
]


@pytest.mark.parametrize(("name", "wanted"), REACHED)
def test_every_corner_is_reached(name: str, wanted: Any) -> None:
    """Left-out fields, huge numbers, rare characters, each union branch and depth are found."""
    arguments = CallStrategies(Every, None, {}).arguments(Every[name])
    assert find(
        arguments,
        wanted,
        settings=settings(max_examples=3000, database=None, phases=[Phase.generate]),
    )


def test_references_that_lead_nowhere_or_in_a_circle_say_nothing() -> None:
    """A broken reference is a schema that allows anything, and a circle ends."""
    anything = kinds_accepted({}, True)
    assert kinds_accepted({}, {"$ref": "#/nowhere/x"}) == anything
    assert kinds_accepted({"$defs": {"a": 3}}, {"$ref": "#/$defs/a"}) == anything
    circle = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert "$ref" in opened(circle, {"$ref": "#/$defs/a"})
    assert opened({}, True) == {}


def test_of_two_bounds_the_narrower_holds() -> None:
    """Where two schemas both hold, the higher minimum and the lower maximum count."""
    parts = [{"minimum": 3, "maxLength": 5}, {"minimum": 1, "maxLength": 9}]
    narrow = {"minimum": 3, "maxLength": 5}
    assert opened({}, {"allOf": parts}) == narrow
    assert opened({}, {"allOf": parts[::-1]}) == narrow


def test_the_types_that_a_schema_takes_are_known() -> None:
    """A union takes what its branches take; a schema without a type takes everything."""
    assert kinds_accepted({}, {"anyOf": [{"type": "number"}, {"type": "null"}]}) == {
        "number",
        "integer",
        "null",
    }
    assert kinds_accepted({}, {"enum": ["a", 1, 1.5, None, True, [], {}]}) == {
        "string",
        "integer",
        "number",
        "null",
        "boolean",
        "array",
        "object",
    }
    assert kinds_accepted({}, {"const": "a"}) == {"string"}
    assert len(kinds_accepted({}, {})) == 7


def test_a_discriminator_is_required_of_each_branch() -> None:
    """The field that tells branches apart is never left out, even where it has a default."""
    schema = {
        "oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}}],
        "discriminator": {"propertyName": "kind"},
    }
    assert [node["required"] for node in branches_of(schema, schema)] == [["kind"]]
    with pytest.raises(NoSuchExample):
        find(SchemaValues(schema).values(schema), lambda value: "kind" not in value)


@given(st.data())
@settings(max_examples=scaled(50))
def test_formats_are_texts_of_their_kind(data: st.DataObject) -> None:
    """A text of a format has its form."""
    forms = {"uuid7": r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-.*", "ipv4network": r"[\d.]+/32"}
    for name, form in forms.items():
        values = SchemaValues({}).values({"type": "string", "format": name})
        assert re.fullmatch(form, data.draw(values))
    unknown = SchemaValues({}).values({"type": "string", "format": "no such", "maxLength": 3})
    assert len(data.draw(unknown)) <= 3
