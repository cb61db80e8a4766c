"""The laws of tools known by a JSON schema only: checked dicts, made while the program runs."""

from __future__ import annotations

import builtins
import copy
import gc
import json
import pickle
import re
import urllib.request
import weakref
from typing import Any

import pytest

from lutum_py import ToolDef, ToolMetadata, Toolset, tool, toolset
from lutum_py.dialects.openai_chat import tools
from lutum_py.errors import (
    InvalidArgumentsError,
    MissingExtraError,
    MisuseError,
    ToolDefinitionError,
    ToolInputError,
)
from tests.cases import over
from tests.declared import call_of, refusal, schema_of, spec_of

SCHEMA = {
    "type": "object",
    "properties": {
        "ids": {"type": "array", "items": {"type": "integer"}},
        "name": {"type": "string", "maxLength": 5},
        "filter": {"$ref": "#/$defs/Filter"},
        "limit": {"type": "integer", "minimum": 1},
        "size": {"type": ["integer", "null"]},
        "parts": {"prefixItems": [{"type": "object", "properties": {"x": {"type": "integer"}}}]},
    },
    "required": ["ids"],
    "additionalProperties": False,
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {"by": {"type": "string"}, "deep": {"type": "boolean"}},
            "required": ["by"],
            "additionalProperties": False,
        }
    },
}
FIND = ToolDef.from_json_schema(name="find", description="Find.", input_schema=SCHEMA)
ODD = ToolDef.from_json_schema(name="odd-name", input_schema={"type": "object"})
REMOTE = Toolset.from_definitions("Remote", [FIND, ODD])


class App(Toolset):
    find = tool(FIND)
    remote = toolset(REMOTE, prefix="r_")


def parse(name: str, arguments: Any, toolset: Any = REMOTE) -> Any:
    return toolset.parse_tool_call(
        ToolMetadata(id="c1", name=name, arguments=json.dumps(arguments))
    )


def test_inputs_are_checked_dicts() -> None:
    """The input is the dict that came, checked against the schema; the output is anything."""
    call = parse("find", {"ids": [1], "filter": {"by": "x"}})
    assert call.input == {"ids": [1], "filter": {"by": "x"}}
    assert call.complete({"any": ["thing"]}).result == '{"any":["thing"]}'
    assert call.coerced == ()
    assert parse("odd-name", {"what": "ever"}).input == {"what": "ever"}
    assert call_of(ODD, "").input == {}
    assert schema_of(FIND) == SCHEMA
    with pytest.raises(MisuseError):
        call.call_sync()


REFUSED = {
    '{"ids": [1, "x"]}': "- `ids[1]`: 'x' is not of type 'integer' (got 'x')",
    "{}": "- `ids`: this field is required",
    "[]": "- Input should be an object (got [])",
    '{"ids": [], "nmae": 1}': ("- `nmae`: there is no such field; did you mean `name`? (got 1)"),
    '{"ids": [], "name": "{longer}"}': "- `name`: '{longer}' is too long (got '{longer}')",
    '{"ids": [], "filter": {"deep": 1, "x": 2}}': (
        "- `filter.deep`: 1 is not of type 'boolean' (got 1)\n"
        "- `filter.by`: this field is required\n"
        "- `filter.x`: there is no such field (got 2)"
    ),
    '{"ids": [], "limit": 0}': "- `limit`: 0 is less than the minimum of 1 (got 0)",
    '{"ids": "[1, \\"x\\"]"}': "- `ids`: '[1, \"x\"]' is not of type 'array' (got '[1, \"x\"]')",
    '{"ids": [], "limit": 1e999}': "- `limit`: Input should be a finite number (got inf)",
    '{"ids": [], "limit": NaN}': "- `limit`: Input should be a finite number (got nan)",
}


@over("text", REFUSED)
def test_what_does_not_fit_is_told(text: str) -> None:
    """Every failing place is named as for a typed tool."""
    assert sorted(refusal(FIND, text).splitlines()) == sorted(REFUSED[text].splitlines())


def test_messages_are_bounded() -> None:
    """A megabyte of garbage makes a short message, and so does an array of it."""
    for arguments in (
        "x" * 1_000_000,
        json.dumps({"ids": [], "name": "x" * 1_000_000}),
        json.dumps({"ids": ["x"] * 100_000}),
        "[" * 10_000,
    ):
        assert len(refusal(FIND, arguments)) < 2500
        assert "xx" not in refusal(FIND, arguments, redact=True)
    assert refusal(FIND, {"ids": [], "name": "secret"}, redact=True) == (
        "- `name`: Input is not what the tool allows here"
    )


def test_the_same_things_are_coerced() -> None:
    """Containers as strings and needless nulls are coerced as for a typed tool."""
    call = parse("find", {"ids": "[1]", "filter": '{"by": "x"}', "limit": None})
    assert call.input == {"ids": [1], "filter": {"by": "x"}}
    assert call.coerced == ("ids", "filter", "limit")
    assert parse("find", {"ids": [], "size": None}).input == {"ids": [], "size": None}
    assert parse("find", {"ids": [], "parts": [{"x": None}]}).input["parts"] == [{}]
    assert "`size`: 'x' is not of type 'integer', 'null'" in refusal(FIND, {"ids": [], "size": "x"})


def test_optional_containers_are_coerced() -> None:
    """A string for what may be an array or null is read; where a string may be, it stays."""
    listed = {"type": "array", "items": {"type": "integer"}}
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "properties": {
                "a": {"anyOf": [listed, {"type": "null"}]},
                "b": {"anyOf": [listed, {"type": "string", "maxLength": 1}]},
                "c": {"oneOf": [{"type": "object"}, {"const": 1}]},
                "d": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
                "e": {"anyOf": [{"items": {"type": "object"}, "type": "array"}, {"type": "null"}]},
            }
        },
    )
    call = call_of(definition, {"a": "[1]"})
    assert (call.input, call.coerced) == ({"a": [1]}, ("a",))
    for name, value in (("b", "[1]"), ("c", "{}"), ("d", "[1]"), ("e", ["{}"])):
        assert refusal(definition, {name: value}).startswith(f"- `{name}`: {value!r} is not valid")


def test_every_missing_and_unknown_name_is_told_once() -> None:
    """Several missing names, and names beside patterns, are each named once."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {}, "b": {}},
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
        },
    )
    assert refusal(definition, {"x-1": 1, "y": 2, "z": 3}).splitlines() == [
        "- `a`: this field is required",
        "- `b`: this field is required",
        "- `y`: there is no such field; the fields are `a`, `b` (got 2)",
        "- `z`: there is no such field; the fields are `a`, `b` (got 3)",
    ]


def test_old_drafts_are_known() -> None:
    """A schema says by which draft it is meant."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "$schema": "http://json-schema.org/draft-03/schema#",
            "type": "object",
            "properties": {"a": {"required": True}},
        },
    )
    assert refusal(definition, {"b": 1}).startswith("- ")
    assert "'a' is a required property" in refusal(definition, {"b": 1})
    sent = tools([definition], strict=False)[0]["function"]["parameters"]
    assert sent["required"] == ["a"]
    assert sent["properties"] == {"a": {}}


def test_coercing_follows_the_schema() -> None:
    """`null` is left out below definitions of either name, and kept where the schema has it."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "type": "object",
            "properties": {"a": {"allOf": [{"$ref": "#/definitions/A"}, True]}},
            "definitions": {"A": {"properties": {"b": {"type": "integer"}}}},
        },
    )
    call = call_of(definition, {"a": {"b": None}})
    assert (call.input, call.coerced) == ({"a": {}}, ("a.b",))
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "properties": {"a": {"allOf": [{"$ref": "https://e.org/a"}, {"minProperties": 2}]}},
            "$defs": {"A": {"$id": "https://e.org/a", "properties": {"b": {"type": "integer"}}}},
        },
    )
    assert "`a.b`: None is not of type 'integer'" in refusal(definition, {"a": {"b": None}})


def test_an_assigned_dict_is_checked() -> None:
    """A dict that the program assigns is checked like one that came."""
    call = parse("find", {"ids": [1]})
    call.input = {"ids": [2]}
    assert call.input == {"ids": [2]}
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["ids"]
    ):
        call.input = {"limit": 3}
    with pytest.raises(
        ToolInputError, check=lambda error: [each.path for each in error.fields] == ["limit"]
    ):
        call.input = {"ids": [], "limit": float("inf")}


def test_a_toolset_is_made_of_definitions() -> None:
    """Members are reached by name where it is one, and by `[]` always."""
    assert [selector.name for selector in REMOTE] == ["find", "odd-name"]
    assert REMOTE.find is REMOTE["find"]  # type: ignore[attr-defined]
    assert REMOTE["odd-name"].definition is ODD
    assert REMOTE.__name__ == "Remote"
    assert [selector.name for selector in App] == ["find", "r_find", "r_odd-name"]
    assert parse("r_find", {"ids": [3]}, App).input == {"ids": [3]}
    assert REMOTE["find"].match(parse("r_find", {"ids": []}, App)) is not None
    assert Toolset.from_definitions("Remote", iter([FIND, ODD])) is REMOTE
    assert Toolset.from_definitions("Other", [FIND, ODD]) is not REMOTE
    assert spec_of(FIND).call_type.__name__ == "FindCall"
    assert spec_of(ODD).call_type.__name__ == "SchemaCall"


@pytest.mark.parametrize(("name", "toolset"), [("find", REMOTE), ("find", App), ("r_find", App)])
def test_everything_travels(name: str, toolset: Any) -> None:
    """Toolsets made at run time, their selectors and calls pickle and copy."""
    call = parse(name, {"ids": [1]}, toolset)
    for back in (pickle.loads(pickle.dumps(call)), copy.deepcopy(call)):
        assert back.selector is call.selector
        assert type(back) is type(call)
        assert back.parts == call.parts
    assert pickle.loads(pickle.dumps(REMOTE)) is REMOTE
    assert copy.deepcopy(REMOTE) is REMOTE
    assert pickle.loads(pickle.dumps(call.selector)) is call.selector
    alone = pickle.loads(pickle.dumps(call_of(FIND, {"ids": [1]})))
    assert (alone.input, alone.name, alone.selector.name) == ({"ids": [1]}, "find", "find")


def test_a_toolset_that_is_gone_comes_back() -> None:
    """A pickled toolset is made again where nobody holds it any more."""
    made: Any = Toolset.from_definitions("Passing", [FIND])
    data, gone = pickle.dumps(made), weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    assert [selector.name for selector in pickle.loads(data)] == ["find"]


NO_DRAFTS: list[Any] = [5, [], {}, None]
WRONG: dict[str, tuple[Any, str]] = {
    "no name": (("No Name", [FIND]), "A toolset needs a Python name, got 'No Name'."),
    "no definition": (
        ("T", [SCHEMA]),
        "Toolset `T` is made of ToolDefs, not {'type': 'object'",
    ),
    "twice": (
        ("T", [FIND, FIND]),
        (
            "Toolset `T`: two definitions have the name 'find'. Rename one with "
            "`definition.with_name(...)`."
        ),
    ),
    "bad schema": (
        (
            "T",
            [ToolDef.from_json_schema(name="t", input_schema={"properties": {"a": {"type": "x"}}})],
        ),
        "Invalid JSON schema for the arguments of tool 't': at `$.properties.a.type`, 'x' is",
    ),
    "remote": (
        ("T", [ToolDef.from_json_schema(name="t", input_schema={"$ref": "https://e.org/x"})]),
        (
            "Invalid JSON schema for the arguments of tool 't': at `$`, it refers to "
            "'https://e.org/x', which is nowhere in it; nothing is fetched. Put what is meant "
            "under `$defs`."
        ),
    ),
    "nowhere": (
        (
            "T",
            [
                ToolDef.from_json_schema(
                    name="t", input_schema={"allOf": [{"properties": {"a": {"$ref": "#/no"}}}]}
                )
            ],
        ),
        (
            "Invalid JSON schema for the arguments of tool 't': at `$.allOf[0].properties.a`, it "
            "refers to '#/no', which is nowhere"
        ),
    ),
}


@over("case", WRONG)
def test_a_wrong_toolset_is_refused(case: str) -> None:
    """What is wrong with the definitions is said when the toolset is made."""
    arguments, expected = WRONG[case]
    with pytest.raises(ToolDefinitionError) as caught:
        Toolset.from_definitions(*arguments)
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value)) < 300


@over("named", NO_DRAFTS)
def test_a_draft_that_is_no_text_is_refused(named: Any) -> None:
    """The package that checks the schema writes the place, older releases more plainly."""
    definition = ToolDef.from_json_schema(name="t", input_schema={**SCHEMA, "$schema": named})
    place = r"^Invalid JSON schema for the arguments of tool 't': at `\$\S*\$schema\S*`, "
    said = place + re.escape(f"{named} is not")
    with pytest.raises(ToolDefinitionError, match=said):
        Toolset.from_definitions("T", [definition])


def test_a_draft_that_is_no_address_is_not_looked_for() -> None:
    """A schema that names one is checked as of the latest, as one that names none."""
    named = ToolDef.from_json_schema(name="t", input_schema={**SCHEMA, "$schema": "http://[::1"})
    made = Toolset.from_definitions("T", [named])
    with pytest.raises(InvalidArgumentsError):
        made.parse_tool_call(ToolMetadata(id="c", name="t", arguments="{}"))


def test_embedded_schemas_resolve_by_their_own_identifier() -> None:
    """A reference below an identifier of its own is relative to that."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "type": "object",
            "properties": {"a": {"$ref": "https://e.org/a"}},
            "$defs": {
                "A": {
                    "$id": "https://e.org/a",
                    "$ref": "#/$defs/B",
                    "$defs": {"B": {"type": "integer"}},
                }
            },
        },
    )
    assert call_of(definition, {"a": 1}).input == {"a": 1}
    assert refusal(definition, {"a": "x"}) == "- `a`: 'x' is not of type 'integer' (got 'x')"


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference to another document is an error when the tool is declared, and is not asked."""
    asked: list[Any] = []
    monkeypatch.setattr(urllib.request, "urlopen", asked.append)
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "type": "object",
            "properties": {"a": {"$id": "https://e.org/a", "$ref": "https://e.org/b"}},
        },
    )
    with pytest.raises(ToolDefinitionError) as caught:
        Toolset.from_definitions("T", [definition])
    assert str(caught.value) == (
        "Invalid JSON schema for the arguments of tool 't': at `$.properties.a`, it refers to "
        "'https://e.org/b', which is nowhere in it; nothing is fetched. Put what is meant under "
        "`$defs`."
    )
    assert asked == []


def test_without_the_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `jsonschema` a tool of a schema says what to install; nothing else needs it."""
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "jsonschema":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as caught:
        Toolset.from_definitions("Missing", [FIND])
    assert str(caught.value) == (
        "Checking the arguments of tool 'find' needs the package jsonschema: "
        "python -m pip install 'lutum-py[jsonschema]'"
    )
    assert isinstance(caught.value, ImportError)


def test_invalid_arguments_are_the_models_fault() -> None:
    """The error is of the same kind as for a typed tool, with the same parts."""
    with pytest.raises(InvalidArgumentsError) as caught:
        parse("find", {"ids": ["x"]})
    assert (caught.value.tool, caught.value.call_id) == ("find", "c1")
    assert [issue.path for issue in caught.value.fields] == ["ids[0]"]
