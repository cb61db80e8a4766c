"""The laws of definitions: plain data about a tool, checked where it is made."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from lutum_py import ToolDef, tool_fn
from lutum_py.capabilities import ToolCapabilities
from lutum_py.errors import MisuseError, ToolDefinitionError
from tests.cases import over


def define(schema: Any, name: str = "t", **more: Any) -> ToolDef:
    return ToolDef.from_json_schema(name=name, input_schema=schema, **more)


FULL = define(
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    description="A tool.",
    output_schema={"type": "string"},
    category="c",
    capabilities=ToolCapabilities(background_safe=True),
    timeout=3,
    idempotent=True,
)


def test_a_definition_is_plain_data() -> None:
    """All that it was told stands in `to_dict`, and the schemas are copies."""
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}}
    made = define(schema)
    schema["properties"]["a"]["enum"].append(3)  # type: ignore[index]
    assert made.input_schema["properties"]["a"] == {"enum": [1, 2]}
    assert FULL.to_dict() == {
        "name": "t",
        "description": "A tool.",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
        },
        "output_schema": {"type": "string"},
        "category": "c",
        "capabilities": ToolCapabilities(background_safe=True).to_dict(),
        "timeout": 3,
        "idempotent": True,
        "strict": False,
        "title": None,
        "callers": [],
    }
    assert repr(FULL) == "ToolDef(name='t', description='A tool.')"
    assert define({}).capabilities == ToolCapabilities()
    assert define({}).output_schema is None


EDITS: dict[str, Callable[[Any], Any]] = {
    "set": lambda schema: schema.__setitem__("type", "array"),
    "delete": lambda schema: schema.__delitem__("type"),
    "update": lambda schema: schema.update(type="array"),
    "pop": lambda schema: schema.pop("type"),
    "deep": lambda schema: schema["properties"]["a"].update(type="string"),
    "list": lambda schema: schema["required"].append("b"),
    "add": lambda schema: schema["required"].__iadd__(["b"]),
}


@over("edit", EDITS)
def test_a_schema_cannot_be_changed(edit: str) -> None:
    """A schema that was read refuses every change, so digest, validator and wire agree with it."""
    digest = FULL.digest
    with pytest.raises(MisuseError):
        EDITS[edit](FULL.input_schema)
    assert digest == define(FULL.input_schema).digest


def test_a_schema_is_read_like_any_dict() -> None:
    """JSON writes a schema, a copy of it can be edited, and what travels arrives as plain data."""
    schema = FULL.input_schema
    assert json.loads(json.dumps(schema)) == schema == FULL.to_dict()["input_schema"]
    for copied in (copy.deepcopy(schema), pickle.loads(pickle.dumps(schema)), copy.copy(schema)):
        assert type(copied) is dict
        copied["properties"]["a"]["type"] = "string"
        copied["required"].append("b")
    assert FULL.with_name("other").input_schema is schema
    assert schema["required"] == ["a"]
    for part in (copy.deepcopy(schema["required"]), pickle.loads(pickle.dumps(schema["required"]))):
        assert type(part) is list


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"name": 3}, "ToolDef takes a text for `name`, not 3."),
        ({"description": None}, "ToolDef takes a text for `description`, not None."),
        ({"input_schema": [1]}, "ToolDef takes a dict for `input_schema`, not [1]."),
    ],
)
def test_a_definition_made_by_hand_is_checked(wrong: dict[str, Any], expected: str) -> None:
    """A field of a wrong type is refused where the definition is made."""
    with pytest.raises(MisuseError, match=re.escape(expected)):
        ToolDef(**{"name": "t", "description": "", "input_schema": {}, **wrong})


def test_definitions_travel_and_compare() -> None:
    """A definition pickles and copies; equality goes by all that it says."""
    for back in (pickle.loads(pickle.dumps(FULL)), copy.deepcopy(FULL)):
        assert back == FULL
        assert hash(back) == hash(FULL)
        assert back.digest == FULL.digest
    renamed, retold = FULL.with_name("u"), FULL.with_description("Other.")
    called = FULL.with_callers(["program"])
    assert called.callers == ("program",)
    assert called != FULL
    assert renamed.name == "u"
    assert retold.description == "Other."
    for other, change in ((renamed, {"name": "u"}), (retold, {"description": "Other."})):
        assert other.to_dict() == {**FULL.to_dict(), **change}
    assert renamed.input_schema is FULL.input_schema
    assert renamed.output_schema == {"type": "string"}
    assert define({}).with_name("u").output_schema is None
    assert len({FULL, renamed, retold}) == 3
    assert FULL != "t"


def test_what_a_model_reads_tells_definitions_apart() -> None:
    """Definitions with other numbers, or with fields in another order, are not equal."""
    number, text = {"default": 1}, {"type": "string"}
    first = define({"properties": {"a": number, "b": text}})
    for other in (
        {"a": {"default": True}, "b": text},
        {"a": {"default": 1.0}, "b": text},
        {"b": text, "a": number},
    ):
        assert define({"properties": other}) != first
    assert define({"properties": {"a": dict(number), "b": text}}) == first


def nested(text: str) -> dict[str, Any]:
    """A schema with a text in each place that holds one."""
    leaf = {"type": "string", "title": text, "examples": [text]}
    return {
        "type": "object",
        "description": text,
        "properties": {
            "title": leaf,
            "list": {"type": "array", "items": leaf, "description": text},
        },
        "anyOf": [leaf, {"$ref": "#/$defs/D"}],
        "$defs": {"D": {**leaf, "deprecated": bool(text)}},
        "additionalProperties": True,
    }


def test_the_digest_is_of_what_decides_about_calls() -> None:
    """Titles, descriptions and examples do not change a digest; name, fields and types do."""
    base = define(nested("one"))
    assert base.digest == define(nested("two"), description="Other.").digest
    assert base.digest == base.digest
    assert base.digest.startswith("sha256:")
    assert base.digest != base.with_name("u").digest
    changed = nested("one")
    del changed["properties"]["title"]
    assert base.digest != define(changed).digest
    changed = nested("one")
    changed["$defs"]["D"]["type"] = "integer"
    assert base.digest != define(changed).digest


OBJECTS: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"properties": {"a": True}},
    {"required": ["a"]},
    {"anyOf": [{"type": "object"}, {"properties": {}}, True]},
    {"allOf": [{"$ref": "#/$defs/A"}, {"required": ["a"]}], "$defs": {"A": {"type": "object"}}},
    {"oneOf": [{"$ref": "#/definitions/A"}], "definitions": {"A": {"anyOf": [{"type": "object"}]}}},
    {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}},
    {"$ref": "#/elsewhere"},
]


@over("schema", OBJECTS)
def test_a_schema_that_may_be_an_objects_is_taken(schema: dict[str, Any]) -> None:
    """A schema of an object is completed; one that refers or branches is left as it is."""
    made = define(schema).input_schema
    if {"$ref", "anyOf", "oneOf", "allOf"} & schema.keys():
        assert made == schema
    else:
        assert made == {"type": "object", "properties": {}, **schema}


FOREIGN: list[tuple[Any, str]] = [
    ({"type": "array"}, "is of type 'array'"),
    ({"type": ["object", "null"]}, "is of type ['object', 'null']"),
    ({"anyOf": [{"type": "object"}, {"type": "string"}]}, "is of type 'string'"),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}, "is of type 'integer'"),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "only refers to itself"),
    ({"$ref": "#"}, "only refers to itself"),
]


@over("schema, shown", FOREIGN)
def test_another_schema_is_refused(schema: Any, shown: str) -> None:
    """The arguments of a tool are an object, so its schema is that of one."""
    with pytest.raises(ToolDefinitionError) as caught:
        define(schema)
    assert str(caught.value) == (
        "Tool 't': the arguments of a tool are always a JSON object, but this input schema "
        f"{shown}. Put the value into a field of a model, as in `items: list[int]`."
    )


endless: dict[str, Any] = {"type": "object"}
endless["properties"] = endless

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "Tool '' needs a name, got ''. Pass `name=` with a text."),
    ({"name": 3}, "Tool 3 needs a name, got 3."),
    ({"description": 3}, "Tool 't': description=3 is not text."),
    ({"category": 3}, "Tool 't': category=3 is not text."),
    ({"capabilities": 3}, "Tool 't': capabilities=3 are not `ToolCapabilities`."),
    ({"timeout": -1}, "Tool 't': timeout=-1 is not a positive number of seconds."),
    ({"input_schema": 3}, "Tool 't': the input schema must be a JSON object, got 3. Pass {"),
    ({"output_schema": [3]}, "Tool 't': the output schema must be a JSON object, got [3]."),
    (
        {"input_schema": {"type": "object", "x": {1, 2}}},
        "Tool 't': the input schema is not plain JSON data (Object of type set is not JSON",
    ),
    (
        {"input_schema": {"type": "object", "x": float("nan")}},
        "Tool 't': the input schema is not plain JSON data (Out of range float values",
    ),
    (
        {"input_schema": {"type": "object", "properties": {"\ud83d": {}}}},
        "Tool 't': the input schema holds half of a surrogate pair, '\\ud83d', which UTF-8 cannot",
    ),
    ({"input_schema": endless}, "Tool 't': the input schema is not plain JSON data (maximum recur"),
]


@over("told, expected", WRONG)
def test_a_wrong_definition_is_refused(told: dict[str, Any], expected: str) -> None:
    """What is wrong with a definition is said where it is made."""
    with pytest.raises(ToolDefinitionError) as caught:
        ToolDef.from_json_schema(**{"name": "t", "input_schema": {}, **told})
    assert str(caught.value).startswith(expected)


def test_the_schema_of_a_recursive_model_refers_to_itself() -> None:
    """Where a schema refers to itself, what it refers to is kept."""
    from .test_forward_references import Node

    @tool_fn
    def walk(node: Node) -> None:
        """Walk."""

    schema = walk.definition.input_schema
    assert schema["type"] == "object"
    assert schema["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    assert "Node" in schema["$defs"]
