"""The schema compiler: what a schema of an older draft means goes out in words of the newest."""

from __future__ import annotations

from typing import Any

from lutum_py import ToolMetadata, Toolset
from lutum_py.dialects import openai_chat
from lutum_py.errors import InvalidArgumentsError
from tests.cases import over

from .schema_tools import lost, tool

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
TREE = {
    "type": "object",
    "properties": {"data": {"type": "integer"}, "next": {"$recursiveRef": "#"}},
}
STRINGS = {
    "type": "object",
    "properties": {
        "of": {"$ref": "list"},
        "plain": {"$ref": "list", "maxItems": 1},
    },
    "$id": "https://example.org/root",
    "$defs": {
        "own": {"$dynamicAnchor": "item", "type": "string"},
        "list": {
            "$id": "list",
            "type": "array",
            "items": {"$dynamicRef": "#item"},
            "$defs": {"any": {"$dynamicAnchor": "item"}},
        },
    },
}


def written(schema: Any) -> Any:
    return openai_chat.compile(tool({"type": "object", **schema})).schema


def taken(schema: Any, text: str) -> bool:
    made = Toolset.from_definitions("Made", [tool({"type": "object", **schema})])
    try:
        made.parse_tool_call(ToolMetadata(id="c", name="t", arguments=text))
    except InvalidArgumentsError:
        return False
    return True


@over(
    "old, new",
    [
        ({"$schema": DRAFT_7, "$id": "x", "$comment": "c"}, {"$comment": "c"}),
        ({"additionalItems": False}, {}),
        ({"items": [True], "additionalItems": False}, {"prefixItems": [True], "items": False}),
        ({"then": {"minimum": 1}, "else": {"minimum": 2}}, {}),
        ({"if": True, "then": {"minimum": 1}}, {"if": True, "then": {"minimum": 1}}),
        (
            {"$schema": DRAFT_7, "dependencies": {"a": ["b"], "b": {"minProperties": 2}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"minProperties": 2}}},
        ),
        ({"dependencies": {"a": ["b"]}}, {}),
        (
            {"anyOf": [{"minProperties": 1}], "oneOf": [{"maxProperties": 2}]},
            {"allOf": [{"oneOf": [{"maxProperties": 2}]}], "anyOf": [{"minProperties": 1}]},
        ),
    ],
)
def test_an_older_schema_is_told_in_words_of_2020(old: Any, new: Any) -> None:
    """Keywords that are no more are told by those that are; what has no effect is left out."""
    properties = {"a": {key: part for key, part in old.items() if key != "$schema"}}
    about = {"$schema": old["$schema"]} if "$schema" in old else {}
    assert written({**about, "properties": properties}) == {
        "type": "object",
        "properties": {"a": new},
    }


def test_a_reference_hides_its_siblings_before_2019() -> None:
    """In draft 7 a reference is all that counts beside texts; since 2019 the rest counts too."""
    schema: Any = {
        "properties": {"a": {"$ref": "#/definitions/x", "maximum": 3, "description": "d"}},
        "definitions": {"x": {"type": "integer"}},
    }
    old = written({**schema, "$schema": DRAFT_7})["properties"]["a"]
    assert old == {"$ref": "#/$defs/x", "description": "d"}
    new = written(schema)["properties"]["a"]
    assert new == {"allOf": [{"$ref": "#/$defs/x"}], "maximum": 3, "description": "d"}


def test_an_identifier_beside_a_hiding_reference_names_nothing() -> None:
    """In draft 7 it is hidden like any sibling, so that references are resolved without it."""
    schema: Any = {
        "$schema": DRAFT_7,
        "$id": "https://example.org/sibling/",
        "properties": {"a": {"$id": "https://example.org/other/", "$ref": "x.json"}},
        "definitions": {
            "one": {"$id": "https://example.org/sibling/x.json", "type": "string"},
            "two": {"$id": "https://example.org/other/x.json", "type": "number"},
        },
    }
    assert taken(schema, '{"a":"text"}')
    assert not taken(schema, '{"a":1}')


def test_an_identifier_that_is_a_fragment_is_an_anchor() -> None:
    """So it was before 2019."""
    schema: Any = {
        "$schema": DRAFT_7,
        "properties": {"a": {"$ref": "#whole"}},
        "definitions": {"x": {"$id": "#whole", "type": "integer"}},
    }
    assert taken(schema, '{"a":1}')
    assert not taken(schema, '{"a":"x"}')
    assert written(schema)["properties"]["a"] == {"$ref": "#/$defs/x"}


def test_a_dynamic_reference_of_one_meaning_is_a_reference() -> None:
    """Where no second schema has its anchor, the way there makes no difference."""
    schema = {"$schema": DRAFT_2019, "$recursiveAnchor": True, **TREE}
    made = openai_chat.compile(tool(schema))
    assert made.losses == ()
    assert "$recursive" not in str(made.schema)
    assert taken(schema, '{"next":{"data":1}}')
    assert not taken(schema, '{"next":{"data":"x"}}')


def test_a_dynamic_reference_of_several_meanings_is_checked_and_reported() -> None:
    """The outermost anchor on the way counts; a provider is told all that may be meant."""
    assert taken(STRINGS, '{"of":["a"],"plain":["b"]}')
    assert not taken(STRINGS, '{"of":[1]}')
    made = openai_chat.compile(tool(STRINGS))
    assert lost(made) == [("", "$dynamicRef")]
    items = made.schema["$defs"]["list"]["items"]
    assert items == {"allOf": [{"anyOf": [{"$ref": "#/$defs/own"}, {"$ref": "#/$defs/any"}]}]}
