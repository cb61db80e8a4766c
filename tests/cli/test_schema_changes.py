"""What differs between two schemas, in words; and the words for a schema."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given

from lutum_py._compat.changes import changes_between
from lutum_py._compat.type_words import bounds_of, type_words

from .schemas import PAIRS, SCHEMAS, nodes_of

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
A = {"type": "object", "properties": {"k": {"const": "a"}, "x": WHOLE}, "required": ["k"]}
B = {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}
DEFS = {"A": A, "B": B}
UNION = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": DEFS}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/T",
    "$defs": {
        "T": {
            "type": "object",
            "properties": {"n": WHOLE, "next": {"$ref": "#/$defs/T"}},
        }
    },
}


def fields(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


CASES: list[tuple[Any, Any, list[tuple[str, str, str]]]] = [
    (fields(), fields(a=TEXT), [("a", "added", "added: string, optional")]),
    (
        fields(),
        fields(["a"], a={**TEXT, "default": "x" * 80}),
        [("a", "added", "added: string, required")],
    ),
    (
        fields(),
        fields(a={**WHOLE, "default": 3}),
        [("a", "added", "added: integer, optional, default 3")],
    ),
    (fields(a=TEXT), fields(), [("a", "removed", "removed: string")]),
    (fields(a=TEXT), fields(["a"], a=TEXT), [("a", "required", "optional → required")]),
    (fields(["a"], a=TEXT), fields(a=TEXT), [("a", "required", "required → optional")]),
    (fields(a=TEXT), fields(a=WHOLE), [("a", "type", "type string → integer")]),
    (
        fields(a=TEXT),
        fields(a={"anyOf": [TEXT, {"type": "null"}]}),
        [("a", "type", "type string → string or null")],
    ),
    (
        fields(a={"anyOf": [TEXT, {"type": "null"}]}),
        fields(a={"anyOf": [WHOLE, {"type": "null"}]}),
        [("a", "type", "type string → integer")],
    ),
    (
        fields(a={**WHOLE, "default": 1}),
        fields(a=WHOLE),
        [("a", "default", "default 1 → none")],
    ),
    (
        fields(a={**WHOLE, "default": 1}),
        fields(a={**WHOLE, "default": True}),
        [("a", "default", "default 1 → true")],
    ),
    (fields(a=WHOLE), fields(a={**WHOLE, "minimum": 2}), [("a", "bound", "minimum none → 2")]),
    (
        fields(a={"not": TEXT}),
        fields(a={"not": WHOLE}),
        [("a", "schema", 'not {"type":"string"} → {"type":"integer"}')],
    ),
    (
        fields(a={"enum": ["x", "y"]}),
        fields(a={"enum": ["y", "z"]}),
        [("a", "enum", 'value removed: "x"'), ("a", "enum", 'value added: "z"')],
    ),
    (fields(a={"const": 1}), fields(a={"enum": [1, 2]}), [("a", "enum", "value added: 2")]),
    (
        fields(a=TEXT),
        fields(a={"enum": ["x"], "type": "string"}),
        [("a", "type", 'type string → one of "x"')],
    ),
    (
        fields(a={**TEXT, "description": "one"}),
        fields(a={**TEXT, "description": "two", "title": "T", "examples": ["x"]}),
        [("a", "description", "description changed")],
    ),
    (
        fields(a={"type": "array", "items": TEXT}),
        fields(a={"type": "array", "items": {**TEXT, "maxLength": 3}}),
        [("a[]", "bound", "maxLength none → 3")],
    ),
    (
        fields(a={"type": "array", "prefixItems": [TEXT]}),
        fields(a={"type": "array", "prefixItems": [WHOLE, TEXT]}),
        [("a", "type", "tuple of 1 → of 2"), ("a[0]", "type", "type string → integer")],
    ),
    (
        fields(),
        {**fields(), "additionalProperties": False},
        [("", "fields", "unknown fields taken → refused")],
    ),
    (
        {**fields(), "additionalProperties": TEXT},
        fields(),
        [("", "fields", "unknown fields of one type → taken")],
    ),
    (
        {**fields(), "additionalProperties": TEXT},
        {**fields(), "additionalProperties": WHOLE},
        [("*", "type", "type string → integer")],
    ),
    (
        UNION,
        {**UNION, "$defs": {**DEFS, "A": {**A, "properties": {"k": {"const": "c"}}}}},
        [
            ("(A).k", "enum", 'value removed: "a"'),
            ("(A).k", "enum", 'value added: "c"'),
            ("(A).x", "removed", "removed: integer"),
        ],
    ),
    (
        TREE,
        {**TREE, "$defs": {"T": {**TREE["$defs"]["T"], "required": ["n"]}}},
        [
            ("n", "required", "optional → required"),
            ("next.n", "required", "optional → required"),
        ],
    ),
]


def test_each_difference_has_its_words() -> None:
    """Each kind of difference is told with its field, a stable word, and before and after."""
    for old, new, expected in CASES:
        told = [(each.path, each.kind, each.text) for each in changes_between(old, new)]
        assert told == expected, (old, new)


@given(SCHEMAS)
def test_equal_schemas_differ_in_nothing(schema: Any) -> None:
    """A schema does not differ from its copy, nor from one with other titles."""
    assert changes_between(schema, copy.deepcopy(schema)) == []
    assert changes_between(schema, {**schema, "title": "T", "examples": [1]}) == []


@given(PAIRS)
def test_any_two_schemas_can_be_compared(pair: tuple[Any, Any]) -> None:
    """The comparison ends for every pair, and says each thing once."""
    changes = changes_between(*pair)
    assert len(set(changes)) == len(changes)
    assert all(change.kind and change.text for change in changes)


@given(SCHEMAS)
def test_every_schema_has_words(schema: Any) -> None:
    """Each schema within a schema is described on one line that is not empty."""
    for node in nodes_of(schema):
        words = type_words(node, schema)
        assert words.strip()
        assert "\n" not in words


WORDS: list[tuple[Any, str]] = [
    ({"type": "array"}, "list"),
    ({"items": TEXT}, "list of string"),
    ({"type": "array", "items": {"type": ["string", "null"]}}, "list of (string or null)"),
    ({"type": "array", "prefixItems": [TEXT, WHOLE]}, "tuple (string, integer)"),
    ({"type": "object", "additionalProperties": WHOLE}, "map of integer"),
    ({"type": "object"}, "object"),
    ({"properties": {"a": TEXT}}, "{a?: string}"),
    (fields(["a"], a=fields(b=fields(c=fields(d=TEXT)))), "{a: {b?: {c?: object}}}"),
    ({"anyOf": []}, "nothing"),
    ({"anyOf": [TEXT, TEXT]}, "string"),
    ({"enum": ["a", 1]}, 'one of "a", 1'),
    ({"const": None}, "null"),
    (True, "anything"),
    ({"$ref": "#/$defs/A", "$defs": DEFS}, "A"),
    ({"$ref": "#/$defs/E", "$defs": {"E": {"enum": ["x"]}}}, 'one of "x"'),
]


def test_words_for_a_type() -> None:
    """Types read as a person would say them."""
    for schema, words in WORDS:
        assert type_words(schema, schema) == words, schema


def test_words_for_bounds() -> None:
    """Two ends of a range are said together, and each bound once."""
    said = {
        "minimum": 1,
        "maximum": 5,
        "minLength": 2,
        "maxItems": 3,
        "pattern": "^a",
        "exclusiveMaximum": 9,
    }
    assert bounds_of(said, said) == [
        "1 to 5",
        "at least 2 characters",
        "at most 3 items",
        "less than 9",
        "matching ^a",
    ]
