"""A foreign schema concerns its own tool only, and its patterns never reach Python's `re`."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel, DirectoryPath, FilePath, NewPath

from lutum_py import NeedsTools, ToolDef, Toolset, tool, tool_fn
from lutum_py._schema.schema_reader import matcher
from lutum_py.dialects import DIALECTS
from lutum_py.errors import InvalidArgumentsError, ToolDefinitionError
from tests.cases import over
from tests.declared import call_of
from tests.round_tools import close, turn

MATCHES: list[tuple[str, list[str], list[str]]] = [
    (r"^\p{L}+$", ["née", "ß"], ["1", ""]),
    (r"^\p{Script=Greek}\P{L}$", ["λ1"], ["aλ"]),
    (r"^(?<year>\d{4})-(?<month>\d\d)$", ["2025-01"], ["\u0662025-\u0660\u0661", "2025-01\n"]),
    (r"^\uD83D\uDE00\u{1F600}\x41\cJ\0$", ["😀😀A\n\x00"], ["😀"]),
    (r"^[\w.-]+\/\-\S$", ["a.b/-x"], ["é/-x"]),
    (r"^[^\W_][\D]$", ["ab"], ["_b", "a1"]),
    (r"^\s$", ["\ufeff", "\xa0", "\u2028"], ["\x85", "a"]),
    (r"^.$", ["a", "\x85"], ["\r", "\u2029"]),
    (r"\bon\b", ["on", "é on", "éon"], ["won"]),
    (r"x\Bx", ["xx"], ["x x"]),
    (r"^[[a&&b~~c]$", ["[", "&", "~"], ["]"]),
    (r"^[--/][+-][^-a]$", [".+b"], [".+-"]),
    (r"^[^]$", ["\n"], [""]),
    (r"[]", [], ["a"]),
    (r"^[\b\]]$", ["\b", "]"], ["b"]),
    (r"^{x}a{,3}b{2}\a\z\é$", ["{x}a{,3}bbazé"], ["{x}"]),
]


@over("pattern, fits, others", MATCHES)
def test_a_pattern_means_what_ecmascript_says(
    pattern: str, fits: list[str], others: list[str]
) -> None:
    """Classes, escapes and literals of ECMAScript keep their meaning in the other engine."""
    found = matcher(pattern)
    assert found is not None
    assert [text for text in (*fits, *others) if found(text)] == fits


UNCHECKED = [
    *(
        "(?=a)",
        "(?!a)x",
        "(?<=a)x",
        "(?<!a)x",
        r"(a)\1",
        r"(?<n>a)\k<n>",
        "a{99999999999999999999}",
    ),
    *("(" * 3000 + ")" * 3000, "(a{1000}){1000}", r"\uD83Dx", "[", "(", "a\\"),
]


def of_patterns(pattern: str) -> dict[str, Any]:
    inner = {"type": "string", "pattern": pattern}
    return {
        "type": "object",
        "properties": {"a": inner},
        "patternProperties": {pattern: {"type": "string"}},
        "unevaluatedProperties": {"type": "string"},
        "allOf": [{"patternProperties": {pattern: True}}],
    }


@over("pattern", [*UNCHECKED, *(pattern for pattern, _, _ in MATCHES), "^(a+)+$"])
def test_no_pattern_keeps_a_tool_out(pattern: str) -> None:
    """Any pattern is offered, and none reaches `re`; what nothing checks is reported as a loss."""
    read: list[Any] = []

    def compiling(given: Any, flags: int) -> Any:
        read.append(given)
        return known(given, flags)

    known = re._compile  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(re, "_compile", compiling)
        definition = ToolDef.from_json_schema(
            name="t", input_schema=of_patterns(pattern), output_schema=of_patterns(pattern)
        )
        tools = Toolset.from_definitions("Tools", [definition], functions={"t": lambda args: args})
        for dialect in map(import_module, DIALECTS.values()):
            for strict in (False, True):
                try:
                    offered = dialect.tools([definition], strict=strict)
                except (TypeError, ToolDefinitionError):
                    continue
                assert offered
        outcome: Any = tools.read_turn(turn(("c", "t", {"a": "a" * 40 + "!", "b": "x"})))
        assert isinstance(outcome, NeedsTools)
        close(outcome.round)
        call_of(definition, {"b" * 30: "x"})
    assert all(pattern not in str(each) for each in read if pattern not in (".", "[", "("))
    for dialect in map(import_module, DIALECTS.values()):
        losses = dialect.compile(definition).losses
        told = [each.path for each in losses if each.text.startswith("nothing checks")]
        wanted = ["", "properties.a", "allOf[0]"]
        assert sorted(told) == (sorted(wanted) if pattern in UNCHECKED else [])


def test_patterns_are_checked_wherever_they_stand() -> None:
    """Names and texts are held against patterns, also those that no other keyword looked at."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "type": "object",
            "properties": {"a": {"pattern": r"^\p{Lu}"}},
            "patternProperties": {r"^x-\p{L}": {"type": "integer"}},
            "if": {"required": ["x-é"]},
            "then": {"properties": {"b": True}},
            "else": {"dependentSchemas": {"d": {"$ref": "#/$defs/D"}}},
            "anyOf": [{"patternProperties": {"^y": True}}, {"required": ["never"]}, True],
            "unevaluatedProperties": False,
            "$defs": {"D": {"properties": {"d": True, "e": True}}},
        },
    )
    for fits in ({"a": "Éa"}, {"x-é": 1, "b": 2}, {"d": 1, "e": 2}, {"y1": None}):
        assert call_of(definition, fits).input == fits
    for unfit in ({"a": "é"}, {"x-é": "1"}, {"b": 2}, {"e": 2}, {"x-1": 1}):
        with pytest.raises(InvalidArgumentsError):
            call_of(definition, unfit)
    closed = ToolDef.from_json_schema(
        name="t",
        input_schema={"patternProperties": {r"^\p{Lu}$": {}}, "additionalProperties": False},
    )
    assert call_of(closed, {"É": 1}).input == {"É": 1}
    with pytest.raises(InvalidArgumentsError, match="`é`: there is no such field"):
        call_of(closed, {"é": 1})
    words = {"patternProperties": {"^n": {}}, "additionalProperties": {"type": "string"}}
    with pytest.raises(InvalidArgumentsError, match="`b`: 3 is not of type 'string'"):
        call_of(ToolDef.from_json_schema(name="t", input_schema=words), {"n": 3, "b": 3})


OLD = {
    "$schema": "https://json-schema.org/draft/2019-09/schema",
    "$recursiveAnchor": True,
    "patternProperties": {"^n": {"$recursiveRef": "#"}},
    "allOf": [{"$ref": "#/$defs/E"}],
    "unevaluatedProperties": False,
    "$defs": {"E": {"properties": {"e": True}}},
}


def test_what_was_looked_at_is_found_in_every_draft() -> None:
    """References that mean one place or another are followed where a schema closes itself."""
    definition = ToolDef.from_json_schema(name="t", input_schema=OLD)
    assert call_of(definition, {"n1": {"n2": {}, "e": 1}})
    with pytest.raises(InvalidArgumentsError):
        call_of(definition, {"n1": {"x": 1}})
    closed = {"$recursiveRef": "#", "unevaluatedProperties": False}
    inner = {"$id": "inner", "$recursiveAnchor": True, "properties": {"a": closed}}
    old = {"$recursiveAnchor": True, "$ref": "inner", "properties": {"own": True}}
    old |= {"$schema": OLD["$schema"], "$id": "https://e.org/old", "$defs": {"inner": inner}}
    definition = ToolDef.from_json_schema(name="t", input_schema=old)
    assert call_of(definition, {"own": 1, "a": {"own": 2}})
    with pytest.raises(InvalidArgumentsError):
        call_of(definition, {"a": {"x": 1}})
    outer = {
        "$id": "https://e.org/outer",
        "$dynamicAnchor": "node",
        "$ref": "inner",
        "unevaluatedProperties": False,
        "properties": {"own": True},
        "$defs": {
            "inner": {
                "$id": "inner",
                "$dynamicAnchor": "node",
                "properties": {"a": {"$dynamicRef": "#node"}},
            },
        },
    }
    definition = ToolDef.from_json_schema(name="t", input_schema=outer)
    assert call_of(definition, {"own": 1, "a": {"a": {"own": 2}}})
    with pytest.raises(InvalidArgumentsError):
        call_of(definition, {"own": 1, "x": 1})


GOOD = ToolDef.from_json_schema(name="good", input_schema={"type": "object"})
BAD: list[dict[str, Any]] = [
    {"anyOf": [{}, {}], "properties": {"a": {"$ref": "#/anyOf/00000000099"}}},
    {"anyOf": [{}, {}], "properties": {"a": {"$ref": "#/anyOf/01"}}},
    {"anyOf": [{}], "properties": {"a": {"$ref": "#/anyOf/" + "1" * 30}}},
    {"anyOf": [{}], "properties": {"a": {"$ref": "#/anyOf/\u0660"}}},
    {"type": "object", "properties": {"a": {"$ref": "#/type"}}},
    {"required": ["a"], "properties": {"a": {"$ref": "#/required"}}},
    {"required": ["a"], "properties": {"a": {"$ref": "#/required/0"}}},
    {"properties": {"a": {"$ref": "#/properties/a/enum/0", "enum": [3]}}},
    {"properties": {"a": {"$ref": 3}}},
    {"properties": ["a"]},
    {"properties": {"a": 3}},
    {"allOf": {"a": {}}},
    {"anyOf": [3]},
    {"items": ["a"]},
    {"type": ["object", 3]},
    {"enum": 3},
    {"required": True},
    {"not": "a"},
    {"additionalProperties": None},
    {"properties": {"a": {"pattern": ["a"], "minLength": "1"}}},
    {"properties": {"a": {"minLength": True}}},
    {"properties": {"a": {"exclusiveMinimum": "0"}}},
    {"dependencies": {"a": 3}},
]


@over("schema", BAD)
def test_what_is_wrong_with_a_schema_is_an_error_about_its_tool(schema: dict[str, Any]) -> None:
    """A schema that cannot be read is refused by name, and no other exception comes of it."""
    both: list[dict[str, Any]] = [
        {"input_schema": schema},
        {"input_schema": {}, "output_schema": schema},
    ]
    for given in both:
        with pytest.raises(ToolDefinitionError, match=r"'hostile'"):
            Toolset.from_definitions("T", [ToolDef.from_json_schema(name="hostile", **given)])


def test_old_drafts_may_hold_what_they_could() -> None:
    """Arrays of items, dependencies on names, and bounds that are booleans are well shaped."""
    definition = ToolDef.from_json_schema(
        name="t",
        input_schema={
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {
                "a": {"items": [{"type": "integer"}], "additionalItems": False},
                "b": {"minimum": 0, "exclusiveMinimum": True},
            },
            "dependencies": {"a": ["b"], "b": {"required": ["a"]}},
        },
    )
    assert call_of(definition, {"a": [1], "b": 1}).input == {"a": [1], "b": 1}


class Files(BaseModel):
    paths: list[FilePath] = []
    parent: DirectoryPath | None = None
    fresh: NewPath | None = None
    words: dict[str, re.Pattern[str]] = {}


@tool_fn
def search(files: Files, other: int = 0) -> str:
    """Search files."""
    return ""


class Desk(Toolset):
    search = tool(search)


UNREADABLE: list[dict[str, Any]] = [
    {"paths": ["a" * 300]},
    {"parent": "b" * 5_000},
    {"fresh": "c" * 300},
    {"words": {"a": "a{99999999999999999999}"}},
    {"words": {"a": "(" * 3000 + ")" * 3000}},
]


@over("files", UNREADABLE)
@pytest.mark.parametrize("is_text", [False, True])
def test_what_cannot_be_read_of_a_call_is_its_issue(files: Any, is_text: bool) -> None:
    """Arguments that break a type's reader are an issue of one call; the others run."""
    sent = json.dumps(files) if is_text else files
    outcome = Desk.read_turn(
        turn(("bad", "search", {"files": sent}), ("good", "search", {"files": {}}))
    )
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert issue.metadata.id == "bad"
    plan = outcome.round.apply_hooks_sync(Desk.HookSet())
    assert [call.id for call in plan.pending] == ["good"]
    close(plan)
