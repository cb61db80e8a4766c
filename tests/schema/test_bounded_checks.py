"""A check takes a bounded number of steps in the size of schema and value, whoever wrote either."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import ToolDef, ToolMetadata, Toolset
from lutum_py._schema.schema_check import schema_faults, validator_of
from lutum_py.errors import InvalidArgumentsError
from tests.instructions import calls

TEXT = {"type": "string"}
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
Schema = dict[str, Any]


def nested(depth: int, last: Any) -> Any:
    value = last
    for _ in range(depth):
        value = {"next": value}
    return value


def field(schema: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": {"a": schema}, **more}


def branching(reference: Schema) -> Schema:
    """Two branches that say the same, each with another of both below it."""
    branch = {"type": "object", "properties": {"next": reference}}
    return {"anyOf": [{**branch, "title": title} for title in ("one", "other")]}


def doubled(levels: int, keyword: str) -> Schema:
    """Name a definition twice at each level, over the same value."""
    defs: Schema = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)
    }
    for each in defs.values():
        each[keyword] = {}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {}}}


def stacked(levels: int, inner: Schema) -> Schema:
    for _ in range(levels):
        inner = {"allOf": [inner], "unevaluatedProperties": False}
    return inner


KEYS = {f"key {at}": at for at in range(400)}
ITEMS = [*range(1_000)]
WORDS = [f"word {at}" for at in range(3_000)]
REFERRED = [{"$ref": "#/$defs/P", "title": str(at)} for at in range(1_500)]
HOSTILE: dict[str, tuple[Schema, Any]] = {
    "a dynamic reference": (
        {"$dynamicAnchor": "n", **branching({"$dynamicRef": "#n"})},
        nested(40, 3),
    ),
    "a recursive reference": (
        {"$schema": DRAFT_2019, "$recursiveAnchor": True, **branching({"$recursiveRef": "#"})},
        nested(40, 3),
    ),
    "what was not looked at, nested": (
        field(stacked(30, {"properties": {"x": TEXT}})),
        {"a": {"x": "y"}},
    ),
    "what was not looked at, doubled": (
        field({}, **doubled(9, "unevaluatedProperties")),
        {"a": 1},
    ),
    "what was not looked at, among many": (
        field(
            {"allOf": REFERRED, "unevaluatedProperties": TEXT},
            **{"$defs": {"P": {"properties": {key: {} for key in [*KEYS][:300]}}}},
        ),
        {"a": KEYS},
    ),
    "items that were not looked at": (
        field(
            {"allOf": REFERRED, "unevaluatedItems": TEXT},
            **{"$defs": {"P": {"contains": {"type": "integer"}}}},
        ),
        {"a": ITEMS},
    ),
    "items that were not looked at, among many": (
        field(
            {"anyOf": REFERRED[:200], "unevaluatedItems": TEXT},
            **{"$defs": {"P": {"prefixItems": [{}] * 300}}},
        ),
        {"a": ITEMS},
    ),
    "patterns times keys": (
        field({"patternProperties": {f"^{word}$": {} for word in WORDS}}),
        {"a": KEYS},
    ),
    "patterns times keys, beside others": (
        field(
            {
                "patternProperties": {f"^{word}$": {} for word in WORDS},
                "additionalProperties": False,
            }
        ),
        {"a": KEYS},
    ),
    "long texts times branches": (
        field({"anyOf": [{"type": "integer", "title": word} for word in WORDS]}),
        {"a": "x" * 300_000},
    ),
    "names times items": (
        field({"items": {"allOf": REFERRED}}, **{"$defs": {"P": {"required": WORDS[:40]}}}),
        {"a": [dict.fromkeys(WORDS[:40], 1)] * 10},
    ),
}
FIT: dict[str, tuple[Schema, Any]] = {
    "enums times items": (
        field({"items": {"enum": [*WORDS, *ITEMS, None, True, {"a": [1]}]}}),
        {"a": [*ITEMS, *WORDS, None, True, {"a": [1.0]}]},
    ),
    "a tree": (
        {
            "$defs": {"N": branching({"$ref": "#/$defs/N"})},
            "properties": {"a": {"$ref": "#/$defs/N"}},
        },
        {"a": nested(60, {})},
    ),
    "a dynamic tree": (
        {
            "$dynamicAnchor": "n",
            "type": "object",
            "properties": {
                "name": TEXT,
                "inner": {"type": "array", "items": {"$dynamicRef": "#n"}},
            },
            "unevaluatedProperties": False,
        },
        {"inner": [{"name": "x", "inner": [{"name": "y"}] * 9}] * 300},
    ),
    "what was not looked at": (
        field({"items": stacked(4, {"properties": {"x": {}, "y": TEXT}, "required": ["x"]})}),
        {"a": [{"x": at, "y": "z"} for at in range(200)]},
    ),
    "items that were not looked at": (
        field(
            {"allOf": REFERRED[:5], "unevaluatedItems": TEXT},
            **{"$defs": {"P": {"contains": {"type": "integer"}}}},
        ),
        {"a": [*ITEMS, *WORDS[:100]]},
    ),
    "patterns": (
        field(
            {
                "patternProperties": {f"^k{at}": TEXT for at in range(20)},
                "additionalProperties": TEXT,
            }
        ),
        {"a": {f"{word}": word for word in WORDS}},
    ),
    "many fields": (
        field({"items": {"type": "object", "properties": dict.fromkeys(WORDS[:200], TEXT)}}),
        {"a": [dict.fromkeys(WORDS[:20], "x") for _ in range(200)]},
    ),
    "a long text": (field({"anyOf": [{"type": "integer"}, TEXT]}), {"a": "x" * 1_000_000}),
}


def checked(schema: Schema) -> Any:
    definition = ToolDef.from_json_schema(name="t", input_schema={"type": "object", **schema})
    return Toolset.from_definitions("Checked", [definition])


def sent(value: Any) -> ToolMetadata:
    return ToolMetadata(id="c1", name="t", arguments=json.dumps(value))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_check_that_would_take_long_is_given_up(case: str) -> None:
    """What takes more steps than sizes explain does not fit, and the error says why."""
    schema, value = HOSTILE[case]
    toolset, metadata = checked(schema), sent(value)
    given_up = pytest.raises(InvalidArgumentsError, match="the check was given up")
    with calls(6_000_000), given_up:
        toolset.parse_tool_call(metadata)


@pytest.mark.parametrize("case", FIT)
def test_what_people_write_passes(case: str) -> None:
    """Trees, patterns and long enums are checked to their end."""
    schema, value = FIT[case]
    assert checked(schema).parse_tool_call(sent(value)).input == value


def test_what_stands_in_an_enum_is_found_by_what_it_is() -> None:
    """One is 1.0, and is not true, in enums and in constants, also within lists."""
    schema = field({"enum": [1, [True], {"b": 2.0}]}, required=["a"])
    schema["properties"]["b"] = {"const": [1, {"x": None}]}
    for value in (1.0, [True], {"b": 2}):
        assert checked(schema).parse_tool_call(sent({"a": value, "b": [1.0, {"x": None}]})).input
    for wrong in (True, [1], {"b": True}, "1"):
        with pytest.raises(InvalidArgumentsError, match="is not one of"):
            checked(schema).parse_tool_call(sent({"a": wrong}))
    with pytest.raises(InvalidArgumentsError, match="was expected"):
        checked(schema).parse_tool_call(sent({"a": 1, "b": [True, {"x": None}]}))


def test_a_schema_is_held_against_values_without_a_count_as_well() -> None:
    """Where nobody counts, as for schemas of one's own, the same values fit."""
    schema = {
        "properties": {"a": {"enum": [1]}, "b": {"const": [2]}},
        "unevaluatedProperties": False,
        "patternProperties": {"^x": {"uniqueItems": True}},
    }
    validator = validator_of("a value", schema)
    assert not list(validator.iter_errors({"a": 1.0, "b": [2], "x": [1, 2]}))
    wrong = {"a": True, "b": 2, "x": [1, 1], "c": 0}
    assert len(list(validator.iter_errors(wrong))) == 4


def test_what_ends_a_check_from_outside_goes_on() -> None:
    """An interrupt while a value is checked is no fault of the value."""

    class Odd(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        schema_faults("it", {"required": ["a"]}, Odd(a=1))
