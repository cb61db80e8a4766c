"""Parts of the schema compiler alone: what fits a schema, and how large one may be."""

from __future__ import annotations

from typing import Any

from lutum_py.dialects._schema.strict import check_openai_limits, fits

from .schema_tools import (
    strict_openai,
)

FITTING: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [1], []),
    (False, [], [1]),
    ({"type": "object", "required": ["a"]}, [{"a": 1}], [{}, []]),
    ({"additionalProperties": False, "properties": {"a": {}}}, [{"a": 1}], [{"b": 1}]),
    ({"type": "array", "items": {"type": "null"}, "minItems": 1}, [[None]], [[], [1]]),
    ({"prefixItems": [{"type": "string"}], "maxItems": 2}, [["a", 1]], [[1], ["a", 1, 1]]),
    ({"const": 1}, [1, 1.0], [True, "1"]),
    ({"enum": ["a", False]}, ["a", False], [0]),
    ({"type": ["integer", "boolean"]}, [1, 2.0, True], [1.5, "a"]),
    ({"type": "number", "minimum": 1, "exclusiveMaximum": 3}, [1], [0, 3, True]),
    ({"type": "number", "maximum": 1, "exclusiveMinimum": 0}, [1], [2, 0]),
    ({"minLength": 2, "maxLength": 3, "pattern": "^a"}, ["ab"], ["a", "abcd", "ba"]),
    ({"pattern": "("}, ["anything"], []),
    ({"type": "a newer type"}, ["anything"], []),
    ({"anyOf": [{"type": "string"}]}, ["a"], [1]),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, ["a"], [""]),
]


def test_a_value_fits_as_far_as_structure_goes() -> None:
    """A value fits a schema where its structure and plain bounds are kept."""
    for schema, good, bad in FITTING:
        assert [value for value in good if not fits(schema, value, {})] == [], schema
        assert [value for value in bad if fits(schema, value, {})] == [], schema


def test_a_union_is_decoded_by_the_alternative_that_fits() -> None:
    """The alternative that takes a value as it stands wins over one that needs nulls left out."""
    with_null = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": ["integer", "null"]}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    without = {**with_null, "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    optional = {**without, "required": ["x"]}
    array = {"type": "array", "items": optional, "prefixItems": [with_null]}
    both = strict_openai(
        {
            "both": {"anyOf": [optional, with_null]},
            "one": {"anyOf": [{"type": "string"}, optional]},
            "list": array,
            "all": {"allOf": [optional]},
        },
        required=["both", "one", "list", "all"],
    )
    value = {"x": 1, "y": None}
    assert both.decoder({"both": value, "one": value, "list": [value, value], "all": value}) == {
        "both": value,
        "one": {"x": 1},
        "list": [value, {"x": 1}],
        "all": {"x": 1},
    }
    assert both.decoder({"one": 3, "more": None}) == {"one": 3, "more": None}


def test_a_definition_that_only_leads_to_itself_takes_any_value() -> None:
    """A reference that never arrives says nothing of a value, and does not hang."""
    defs = {"A": {"$ref": "#/$defs/A"}}
    assert fits({"$ref": "#/$defs/A"}, 1, defs)


def test_a_property_of_any_value_has_no_levels() -> None:
    """Where a schema is no object there is nothing to count, and no limit is passed."""
    schema: dict[str, Any] = {"type": "object", "properties": {"anything": True}}
    check_openai_limits("t", schema)
    assert schema == {"type": "object", "properties": {"anything": True}}
