"""The schema compiler: what several schemas say of one value is said in one, or reported."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lutum_py.dialects._schema.nodes import apart, conjoined
from tests.cases import over

from .schema_tools import gemini, lost, strict_anthropic, strict_openai

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2.5, 3, 7, "", "a", "ab", "abcd", [], [1], [1, 1], [1, "a"], ["a"]),
    *({}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}, {"x1": 1}),
]
PARTS: list[Any] = [
    {"type": "integer"},
    {"type": ["number", "string"]},
    {"type": ["integer", "null"]},
    {"const": 3},
    {"const": True},
    {"enum": [1, 3, "a", None]},
    {"minimum": 1, "maximum": 3},
    {"minimum": 2, "exclusiveMaximum": 7},
    {"minLength": 1, "maxLength": 3},
    {"minLength": 2},
    {"pattern": "^a"},
    {"pattern": "b$"},
    {"multipleOf": 0.5},
    {"not": {"type": "string"}},
    {"not": {"const": 1}},
    {"anyOf": [{"type": "string"}, {"minimum": 2}]},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {"uniqueItems": True},
    {"uniqueItems": False},
    {"items": {"type": "integer"}},
    {"items": {"minimum": 1}},
    {"prefixItems": [{"type": "integer"}], "items": False},
    {"prefixItems": [{"type": "string"}]},
    {"contains": {"type": "string"}},
    {"contains": {"const": 1}, "minContains": 2},
    {"unevaluatedItems": False},
    {"if": {"type": "string"}, "then": {"minLength": 2}},
    {"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": "string"}},
    {"required": ["a"]},
    {"required": ["b"]},
    {"properties": {"a": {"type": "integer"}}},
    {"properties": {"a": True, "b": {"type": "integer"}}, "additionalProperties": False},
    {"properties": {"a": {"maximum": 0}}, "additionalProperties": {"type": "string"}},
    {"properties": {"a": False}},
    {"additionalProperties": {"type": "integer"}},
    {"patternProperties": {"^x": {"minimum": 5}}},
    {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
    {"propertyNames": {"maxLength": 1}},
    {"propertyNames": {"pattern": "^a"}},
    {"dependentSchemas": {"a": {"required": ["b"]}}},
    {"dependentSchemas": {"a": {"maxProperties": 1}}},
    {"unevaluatedProperties": False},
    {"properties": {"c": {}}, "unevaluatedProperties": False},
]


def takes(schema: Any, value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def test_two_schemas_in_one_take_what_both_take() -> None:
    """Whatever both take, the one takes; and nothing else, if no keyword is reported."""
    exact = 0
    for one, other in product(PARTS, PARTS):
        losses: list[str] = []
        merged = conjoined(one, [other], losses.append)
        assert "allOf" not in merged
        exact += not losses
        for value in VALUES:
            wanted = takes({**one, "allOf": [other]}, value)
            if wanted or not losses:
                assert takes(merged, value) is wanted, (one, other, merged, value)
    assert exact > len(PARTS) ** 2 * 0.85


def test_texts_are_those_of_the_outermost() -> None:
    """What is for people is no difference, and is taken from the first that says it."""
    losses: list[str] = []
    first = {"description": "outer"}
    merged = conjoined(first, [{"description": "inner", "title": "T"}], losses.append)
    assert merged == {"description": "outer", "title": "T"}
    assert losses == []


@over(
    "one, other, is_apart",
    [
        ({"type": "string"}, {"type": "integer"}, True),
        ({"type": "number"}, {"type": "integer"}, False),
        ({"const": "a"}, {"enum": ["b", "c"]}, True),
        ({"minimum": 3}, {"maximum": 1}, False),
        (
            {"type": "object", "properties": {"k": {"const": 1}}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"]},
            True,
        ),
        (
            {"type": "object", "properties": {"k": {"const": 1}}},
            {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"]},
            False,
        ),
        (
            {"type": "object", "properties": {"k": True}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"]},
            False,
        ),
    ],
)
def test_it_is_known_which_alternatives_exclude_each_other(
    one: Any, other: Any, is_apart: bool
) -> None:
    """By their types, their values, or those of a property that both require."""
    assert apart(one, other) is is_apart


@pytest.mark.parametrize("compiled", [strict_openai, strict_anthropic])
def test_alternatives_that_may_both_fit_are_reported_in_strict_mode(compiled: Any) -> None:
    """`oneOf` goes out as `anyOf`; a provider that lets both alternatives fit is told of."""
    both = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    assert lost(compiled({"a": both}, required=["a"])) == [("a", "oneOf")]
    one = {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert lost(compiled({"a": one}, required=["a"])) == []


@pytest.mark.parametrize("compiled", [strict_openai, strict_anthropic])
def test_what_stands_beside_a_union_goes_into_each_alternative(compiled: Any) -> None:
    """Common properties, and which of them are required by which alternative, are both told."""
    pair = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    made = compiled({"pair": pair}, required=["pair"])
    sent = {"pair": {"a": "x", "b": None}} if compiled is strict_openai else {"pair": {"a": "x"}}
    assert takes(made.schema, sent)
    assert made.decoder(sent) == {"pair": {"a": "x"}}
    nothing = {"a": None, "b": None} if compiled is strict_openai else {}
    assert not takes(made.schema, {"pair": nothing})


def test_values_of_an_enumeration_are_those_that_the_rest_takes() -> None:
    """A rule beside an enumeration is applied to it, or reported where it cannot be."""
    listed = {"enum": [1, 5, 9], "type": "integer", "minimum": 3}
    made = strict_openai({"a": listed}, required=["a"])
    assert made.schema["properties"]["a"] == {"type": "integer", "enum": [5, 9]}
    assert made.losses == ()
    several = strict_openai({"a": {"enum": [5, 9], "multipleOf": 3}}, required=["a"])
    assert lost(several) == [("a", "multipleOf")]


def test_a_property_without_a_value_is_left_out_in_strict_mode() -> None:
    """Nobody can send it, so that a closed object need not name it; a required one is refused."""
    made = strict_openai({"a": {"type": "string"}, "b": False}, required=["a"])
    assert [*made.schema["properties"]] == ["a"]
    with pytest.raises(Exception, match="no value is taken"):
        strict_openai({"b": False}, required=["b"])


@pytest.mark.parametrize("compiled", [strict_openai, strict_anthropic])
def test_a_required_name_of_any_value_is_refused_in_strict_mode(compiled: Any) -> None:
    """It has to be sent, and strict mode has no form for any value."""
    with pytest.raises(Exception, match=r"`b`: any value is taken"):
        compiled({"a": {"type": "string"}}, required=["a", "b"])


def test_parts_that_differ_are_reported_and_not_refused() -> None:
    """What of `allOf` has no form is one loss for each keyword; the rest goes out."""
    parts = {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"minLength": 2}]}
    made = gemini({"type": "object", "properties": {"a": parts}})
    assert made.schema["properties"]["a"]["pattern"] == "^a"
    assert ("a", "pattern") in lost(made)


def test_what_is_left_over_by_merged_parts_is_reported() -> None:
    """`unevaluatedProperties` stands where all that was said is kept, and is reported elsewhere."""
    kept = {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert gemini({"type": "object", **kept}).schema["unevaluatedProperties"] is False
    cousin = {"allOf": [{"properties": {"a": {}}}, {"unevaluatedProperties": False}]}
    assert ("", "unevaluatedProperties") in lost(gemini({"type": "object", **cousin}))
