"""The laws of reading JSON schemas: what references mean, and what is refused before any call."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from lutum_py import ToolDef, Toolset
from lutum_py._schema.schema_check import schema_faults
from lutum_py._schema.schema_reader import (
    fault_in,
    follow,
    localized,
    parts_of,
    reference_to,
    subschemas,
    with_subschemas,
)
from lutum_py.dialects import DIALECTS
from lutum_py.dialects._facts import facts_of
from lutum_py.dialects._schema.compiler import compile_schema
from lutum_py.dialects._schema.strict import decoder_of
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.declared import call_of, refusal
from tests.instructions import calls

TEXT = {"type": "string"}


def tool_of(schema: dict[str, Any]) -> ToolDef:
    return ToolDef.from_json_schema(name="t", input_schema=schema)


def doubled(levels: int, last: Any, make: Any) -> dict[str, Any]:
    """Definitions of which each means the next one twice."""
    defs = {f"a{n}": make({"$ref": f"#/$defs/a{n + 1}"}) for n in range(levels)}
    return {**defs, f"a{levels}": last}


def fields(part: Any) -> Any:
    return {
        "type": "object",
        "properties": {"x": {**part, "description": "one"}, "y": {**part, "description": "other"}},
        "required": ["x", "y"],
        "additionalProperties": False,
    }


def one_field(part: Any) -> Any:
    return {"properties": {"a": part}}


def twice(keyword: str) -> Any:
    def make(part: Any) -> Any:
        return {keyword: [part, {**part, "description": "again"}]}

    return make


ENDLESS: dict[str, dict[str, Any]] = {
    "$": {"type": "object", "$ref": "#"},
    "$.$defs.A": {
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"anyOf": [TEXT, {"$ref": "#/$defs/A"}]}},
    },
    "$.properties.a": {"properties": {"a": {"not": {"$ref": "#/properties/a"}}}},
}


@pytest.mark.parametrize("place", ENDLESS)
def test_a_schema_that_only_means_itself_is_refused(place: str) -> None:
    """A circle of references that no value goes into is an error of the definition."""
    with pytest.raises(ToolDefinitionError) as caught:
        Toolset.from_definitions("T", [tool_of(ENDLESS[place])])
    text = str(caught.value)
    assert text.startswith(f"Invalid JSON schema for the arguments of tool 't': at `{place}")
    assert "leads back to itself" in text
    assert text.endswith("Let each circle of references go through a property or an item.")


def test_a_circle_through_the_value_is_taken() -> None:
    """A schema may refer to itself as often as it likes where that goes into the value."""
    tree = tool_of({"properties": {"next": {"$ref": "#"}, "all": {"items": {"$ref": "#"}}}})
    assert call_of(tree, {"next": {"next": {}}, "all": [{}]}).input["next"] == {"next": {}}


LOST: dict[str, dict[str, Any]] = {
    "below an identifier": {
        "properties": {"a": {"$id": "https://e.org/a", "properties": {"b": {"$ref": "#/$defs/B"}}}},
        "$defs": {"B": TEXT},
    },
    "a dynamic one": {"properties": {"a": {"$dynamicRef": "https://e.org/x#node"}}},
    "an anchor": {"properties": {"a": {"$ref": "#none"}}},
    "behind a keyword of one's own": {
        "properties": {"a": {"$ref": "#/x-own"}},
        "x-own": {"items": {"$ref": "#/gone"}},
    },
    "below a text": {"properties": {"a": {"$ref": "#/title/x"}}, "title": "T"},
    "past a list": {"properties": {"a": {"$ref": "#/allOf/1"}}, "allOf": [True]},
    "no address": {"$id": "https://e.org/t", "properties": {"a": {"$ref": "http://[x"}}},
    "no text": {"properties": {"a": {"$ref": 3}}},
}


@over("case", LOST)
def test_a_reference_that_leads_nowhere_is_refused(case: str) -> None:
    """Each kind of reference is followed when the tool is declared, not when a call comes."""
    with pytest.raises(ToolDefinitionError) as caught:
        Toolset.from_definitions("T", [tool_of(LOST[case])])
    text = str(caught.value)
    assert "at `$." in text
    assert "which is nowhere in it; nothing is fetched. Put what is meant under `$defs`." in text


FOUND: dict[str, dict[str, Any]] = {
    "an escaped name": {"$ref": "#/$defs/a~1b%20c~0"},
    "a place in a list": {"$ref": "#/$defs/L/anyOf/1"},
    "an anchor": {"$ref": "#here"},
    "a dynamic anchor": {"$dynamicRef": "#there"},
    "an identifier": {"$ref": "inner"},
    "an identifier and a place in it": {"$ref": "https://e.org/inner#/$defs/B"},
    "the identifier of the root": {"$ref": "tool#/$defs/S"},
    "below an identifier": {"$ref": "#/$defs/I/$defs/C"},
}
NAMED = {
    "a/b c~": TEXT,
    "L": {"anyOf": [{"type": "null"}, TEXT]},
    "H": {"$anchor": "here", **TEXT},
    "D": {"$dynamicAnchor": "there", **TEXT},
    "S": TEXT,
    "I": {"$id": "inner", **TEXT, "$defs": {"B": TEXT, "C": {"$ref": "#/$defs/B"}}},
}


@over("case", FOUND)
def test_a_reference_within_the_document_is_followed(case: str) -> None:
    """Pointers, anchors and identifiers all lead to what they name."""
    definition = tool_of(
        {"$id": "https://e.org/tool", "properties": {"a": FOUND[case]}, "$defs": NAMED}
    )
    assert call_of(definition, {"a": "x"}).input == {"a": "x"}
    assert refusal(definition, {"a": 3}) == "- `a`: 3 is not of type 'string' (got 3)"


def test_references_are_written_from_the_root() -> None:
    """A schema without identifiers inside is given back as it is; another one is made so."""
    plain = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": TEXT}}
    assert localized(plain) is plain
    assert localized(True) is True
    made = localized(
        {
            "anyOf": [{"$ref": "e"}, {"enum": [{"$ref": "e"}]}],
            "$defs": {"E": {"$id": "e", "items": {"$ref": "#"}, "not": {"$ref": "gone"}}},
        }
    )
    inner = {"items": {"$ref": "#/$defs/E"}, "not": {"$ref": "gone"}}
    assert made["$defs"]["E"] == inner
    assert made["anyOf"] == [{"$ref": "#/$defs/E"}, {"enum": [{"$ref": "e"}]}]
    assert follow(made["anyOf"][0]["$ref"], made) == inner
    assert follow("e", made) is None
    assert reference_to(("$defs", "a/b~c%", 0)) == "#/$defs/a~1b~0c%25/0"


def test_names_of_the_author_are_no_keywords() -> None:
    """What stands below `properties` is named by the author, and may be called like a keyword."""
    schema: dict[str, Any] = {
        "properties": {"items": TEXT, "not": True},
        "items": [TEXT],
        "enum": [{"not": {}}],
    }
    assert list(subschemas(schema)) == [
        ("properties", "items", TEXT),
        ("properties", "not", True),
        ("items", 0, TEXT),
    ]
    assert list(subschemas(True)) == list(subschemas({"properties": 3, "items": 3})) == []
    assert with_subschemas(schema, lambda _: 1) == {
        "properties": {"items": 1, "not": 1},
        "items": [1],
        "enum": [{"not": {}}],
    }


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_what_would_be_checked_for_hours_is_refused(keyword: str) -> None:
    """Definitions that each mean the next one twice are refused, and not tried."""
    schema = {
        "properties": {"a": {"$ref": "#/$defs/a0"}},
        "$defs": doubled(25, TEXT, twice(keyword)),
    }
    where = r"at `\$\.\$defs\.a\d+.* against a single value"
    with calls(2_000_000), pytest.raises(ToolDefinitionError, match=where):
        Toolset.from_definitions("T", [tool_of(schema)])


def test_a_chain_without_end_is_refused() -> None:
    """Neither a long chain of references nor schemas deep in each other exhaust the stack."""
    chain = doubled(2_000, TEXT, dict[str, Any])
    deep: Any = TEXT
    for _ in range(60):
        deep = {"items": deep}
    for schema, problem in (
        ({"$ref": "#/$defs/a0", "$defs": chain}, "a chain of more than 50"),
        ({"properties": {"a": deep}}, "more than 50 schemas stand in each other"),
    ):
        fault = fault_in(schema)
        assert fault is not None
        assert problem in fault.problem


@over("dialect", DIALECTS)
@over("strict", [False, True])
def test_doubled_definitions_are_compiled_in_time(dialect: str, strict: bool) -> None:
    """25 levels of definitions that each stand twice in the next are compiled, or refused."""
    for make in (fields, twice("anyOf"), twice("oneOf"), twice("allOf")):
        inner = doubled(25, {"type": "object", "additionalProperties": False}, make)
        for schema in (
            {"$ref": "#/$defs/a0", "$defs": inner},
            {**fields({"$ref": "#/$defs/a0"}), "$defs": inner},
        ):
            with calls(2_000_000), suppress(ToolDefinitionError):
                compile_schema(tool_of(schema), facts_of(dialect), strict=strict)


@over(
    "dialect, problem",
    [
        ("anthropic_messages", "2001 optional properties"),
        ("openai_chat", "its definitions refer to each other in too long a chain"),
    ],
)
def test_a_long_chain_of_definitions_is_refused(dialect: str, problem: str) -> None:
    """Definitions that each hold the next one are compiled, or refused where that is too deep."""
    defs = doubled(2_000, TEXT, one_field)
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a0"}}, "$defs": defs}
    with pytest.raises(ToolDefinitionError, match=problem):
        compile_schema(tool_of(schema), facts_of(dialect), strict=True)


def test_many_items_are_compared_in_time() -> None:
    """`uniqueItems` over thousands of objects takes no time that anybody notices."""
    definition = tool_of({"properties": {"a": {"type": "array", "uniqueItems": True}}})
    items: list[Any] = [{"n": n, "l": [n]} for n in range(3_000)]
    again = {"l": [7.0], "n": 7}
    with calls(2_000_000):
        assert len(call_of(definition, {"a": items}).input["a"]) == 3_000
        assert "has non-unique elements" in refusal(definition, {"a": [*items, again]})
    assert call_of(definition, {"a": [1, True, "1", [1], {"a": 1}, {}]}).input
    assert call_of(tool_of({"properties": {"a": {"uniqueItems": False}}}), {"a": [1, 1]}).input


def nested(depth: int, last: Any) -> Any:
    value = last
    for _ in range(depth):
        value = {"next": value}
    return value


UNIONS_IN_UNIONS: dict[str, Any] = {
    "properties": {"next": {"$ref": "#/$defs/N"}},
    "$defs": {
        "N": {
            "anyOf": [
                {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "title": title}
                for title in ("one", "other")
            ]
        }
    },
}


def test_a_value_cannot_make_checking_endless() -> None:
    """Unions in unions, or a value that is too deep, end in a refusal of the arguments in time."""
    definition = tool_of(UNIONS_IN_UNIONS)
    assert call_of(definition, nested(40, {})).input
    with calls(2_000_000):
        assert "too many ways to read it" in refusal(definition, nested(40, 3))
    faults = schema_faults("it", {"properties": {"next": {"$ref": "#"}}}, nested(900, {}))
    assert faults == ["`$`: it is nested too deeply to be checked, so the check was given up"]


def test_a_value_cannot_make_restoring_endless() -> None:
    """The nulls of unions in unions are turned back with each part looked at once."""
    entry = {"type": "object", "additionalProperties": False, "required": ["next"]}
    either = [{**entry, "properties": {"next": {"$ref": "#/$defs/N"}, name: TEXT}} for name in "ab"]
    schema = {**either[0], "$defs": {"N": {"anyOf": [*either, TEXT]}}}
    value: Any = 3
    for _ in range(40):
        value = {"next": value, "b": None}
    with calls(2_000_000):
        decoder_of(schema, None)({"next": value})


@pytest.mark.parametrize("parts", [48, 49, 50, 51])
def test_small_schemas_are_told_as_large_ones_are(parts: int) -> None:
    """However many schemas stand in each other, the bound on them is the same."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(parts):
        schema = {"type": "array", "items": schema}
    fault = fault_in(schema)
    assert (fault is None) is (parts < 50)
    wide: dict[str, Any] = {"properties": {str(at): TEXT for at in range(parts)}}
    assert fault_in(wide) is None
    assert localized(wide) is wide


def test_faults_are_listed_for_others() -> None:
    """Data can be checked against a schema apart from any tool."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert schema_faults("the answer", schema, {"a": 1}) == []
    assert schema_faults("the answer", schema, {"a": "x"}) == [
        "`$.a`: 'x' is not of type 'integer'"
    ]


def test_what_is_no_object_is_a_part_by_itself() -> None:
    """`true` demands nothing, `false` allows nothing, and what is no schema leads nowhere."""
    assert parts_of(True, {}) == []
    assert [schema_faults("It", part, 1) != [] for part in parts_of(False, {})] == [True]
    assert parts_of(3, {}) == [{"$ref": None}]
