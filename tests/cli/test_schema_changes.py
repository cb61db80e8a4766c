"""What differs between two schemas, what it breaks, and the words for a schema."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lutum_py.cli._changes import Effect, FieldChange, changes_between, worst_of
from lutum_py.cli._inspect import bounds_of, type_words
from tests.profiles import scaled

from .schemas import PAIRS, SCHEMAS, VALUES, is_valid, nodes_of

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
A = {"type": "object", "properties": {"k": {"const": "a"}, "x": WHOLE}, "required": ["k"]}
B = {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]}
DEFS = {"A": A, "B": B}
TAGGED = {"discriminator": {"propertyName": "k"}}
UNION = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": DEFS, **TAGGED}
PLACE = {"$ref": "#/$defs/P"}
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


def nullable(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


CLOSED = {"additionalProperties": False}
BREAKS: Effect = "breaking"
FITS: Effect = "compatible"
OPEN: Effect = "unclassified"
# Both effects: of a change of an input, and of the same change of an output.
CASES: list[tuple[Any, Any, list[tuple[str, str, str, Effect, Effect]]]] = [
    (
        fields() | CLOSED,
        fields(a=TEXT) | CLOSED,
        [(".a", "added", "added: string, optional", FITS, FITS)],
    ),
    (
        fields() | CLOSED,
        fields(["a"], a={**TEXT, "default": "x" * 80}),
        [
            (".a", "added", "added: string, required", BREAKS, FITS),
            ("", "fields", "unknown fields refused → accepted", FITS, BREAKS),
        ],
    ),
    (
        fields(b=TEXT),
        fields(b=TEXT, a={**WHOLE, "default": 3}),
        [(".a", "added", "added: integer, optional, default 3", FITS, FITS)],
    ),
    (
        {"type": "object"},
        fields(a=TEXT),
        [(".a", "added", "added: string, optional", OPEN, OPEN)],
    ),
    (
        {**fields(b=TEXT), "additionalProperties": WHOLE},
        {**fields(b=TEXT, a=TEXT), "additionalProperties": WHOLE},
        [(".a", "added", "added: string, optional", OPEN, OPEN)],
    ),
    (fields(a=TEXT), fields(), [(".a", "removed", "removed: string", BREAKS, BREAKS)]),
    (
        fields(a=TEXT),
        fields(["a"], a=TEXT),
        [(".a", "required", "optional → required", BREAKS, FITS)],
    ),
    (
        fields(["a"], a=TEXT),
        fields(a=TEXT),
        [(".a", "required", "required → optional", FITS, BREAKS)],
    ),
    (fields(["a"]), fields(), [(".a", "required", "required → optional", FITS, BREAKS)]),
    (fields(a=TEXT), fields(a=WHOLE), [(".a", "type", "type string → integer", BREAKS, BREAKS)]),
    (
        fields(a=WHOLE),
        fields(a={"type": "number"}),
        [(".a", "type", "type integer → number", FITS, BREAKS)],
    ),
    (
        fields(a=TEXT),
        fields(a={"type": ["string", "null"]}),
        [(".a", "type", "type string → string or null", FITS, BREAKS)],
    ),
    (fields(a=TEXT), fields(a={}), [(".a", "type", "type string → anything", FITS, BREAKS)]),
    (fields(a=True), fields(a=TEXT), [(".a", "type", "type anything → string", BREAKS, FITS)]),
    (fields(a=True), fields(a=False), [(".a", "schema", "schema none → false", OPEN, OPEN)]),
    (
        fields(a=TEXT),
        fields(a=nullable(TEXT)),
        [(".a", "type", "type string → string or null", FITS, BREAKS)],
    ),
    (
        fields(a=nullable(TEXT)),
        fields(a=nullable(WHOLE)),
        [(".a", "type", "type string or null → integer or null", BREAKS, BREAKS)],
    ),
    (
        fields(a=nullable(WHOLE)),
        fields(a=nullable({"type": "number", "minimum": 1})),
        [
            (".a", "type", "type integer → number", FITS, BREAKS),
            (".a", "bound", "minimum none → 1", BREAKS, FITS),
        ],
    ),
    (
        fields(a=nullable(WHOLE)),
        fields(a={"anyOf": [{}, {"type": "null"}]}),
        [(".a", "type", "type integer → anything", FITS, BREAKS)],
    ),
    (
        fields(a={"anyOf": [TEXT, {**TEXT, "maxLength": 3}]}),
        fields(a={"anyOf": [TEXT, {**TEXT, "maxLength": 4}]}),
        [
            (
                ".a",
                "schema",
                (
                    'union {"anyOf":[{"type":"string"},{"type":"string","maxLength":3}]} → '
                    '{"anyOf":[{"type":"string"},{"type":"string","maxLength":4}]}'
                ),
                OPEN,
                OPEN,
            )
        ],
    ),
    (
        fields(a={**WHOLE, "default": 1}),
        fields(a=WHOLE),
        [(".a", "default", "default 1 → none", FITS, FITS)],
    ),
    (
        fields(a={**WHOLE, "default": 1}),
        fields(a={**WHOLE, "default": True}),
        [(".a", "default", "default 1 → true", FITS, FITS)],
    ),
    (
        fields(a=WHOLE),
        fields(a={**WHOLE, "minimum": 2}),
        [(".a", "bound", "minimum none → 2", BREAKS, FITS)],
    ),
    (
        fields(a={**TEXT, "maxLength": 2}),
        fields(a={**TEXT, "maxLength": 3}),
        [(".a", "bound", "maxLength 2 → 3", FITS, BREAKS)],
    ),
    (
        fields(a={**WHOLE, "exclusiveMinimum": 2}),
        fields(a={**WHOLE, "exclusiveMinimum": True}),  # as it was written before 2016
        [(".a", "schema", "exclusiveMinimum 2 → true", OPEN, OPEN)],
    ),
    (
        fields(a=TEXT),
        fields(a={**TEXT, "pattern": "^a"}),
        [(".a", "bound", 'pattern none → "^a"', BREAKS, FITS)],
    ),
    (
        fields(a={**TEXT, "format": "date"}),
        fields(a=TEXT),
        [(".a", "bound", 'format "date" → none', FITS, BREAKS)],
    ),
    (
        fields(a={**TEXT, "pattern": "^a"}),
        fields(a={**TEXT, "pattern": "^b"}),
        [(".a", "schema", 'pattern "^a" → "^b"', OPEN, OPEN)],
    ),
    (
        fields(a={"not": TEXT}),
        fields(a={"not": WHOLE}),
        [(".a", "schema", 'not {"type":"string"} → {"type":"integer"}', OPEN, OPEN)],
    ),
    (
        fields(a={"enum": ["x", "y"]}),
        fields(a={"enum": ["y", "z"]}),
        [
            (".a", "enum", 'value removed: "x"', BREAKS, FITS),
            (".a", "enum", 'value added: "z"', FITS, BREAKS),
        ],
    ),
    (
        fields(a={"const": 1}),
        fields(a={"enum": [1, 2]}),
        [(".a", "enum", "value added: 2", FITS, BREAKS)],
    ),
    (
        fields(a=TEXT),
        fields(a={"enum": ["x"], "type": "string"}),
        [(".a", "type", 'type string → one of "x"', BREAKS, FITS)],
    ),
    (
        fields(a={**TEXT, "description": "one"}),
        fields(a={**TEXT, "description": "two", "title": "T", "examples": ["x"]}),
        [(".a", "description", "description changed", FITS, FITS)],
    ),
    (
        fields(a={"type": "array", "items": TEXT}),
        fields(a={"type": "array", "items": {**TEXT, "maxLength": 3}}),
        [(".a[]", "bound", "maxLength none → 3", BREAKS, FITS)],
    ),
    (
        fields(a={"type": "array", "prefixItems": [TEXT]}),
        fields(a={"type": "array", "prefixItems": [WHOLE, TEXT]}),
        [
            (".a", "type", "tuple of 1 → of 2", BREAKS, BREAKS),
            (".a[0]", "type", "type string → integer", BREAKS, BREAKS),
        ],
    ),
    (
        fields(a={"type": "array", "items": [TEXT]}),  # a tuple, as it was written before 2020
        fields(a={"type": "array", "items": [WHOLE]}),
        [
            (
                ".a[]",
                "schema",
                'schema [{"type":"string"}] → [{"type":"integer"}]',
                OPEN,
                OPEN,
            )
        ],
    ),
    (
        fields(),
        fields() | CLOSED,
        [("", "fields", "unknown fields accepted → refused", BREAKS, FITS)],
    ),
    (
        {**fields(), "additionalProperties": TEXT},
        fields(),
        [("", "fields", "unknown fields of one type → accepted", FITS, BREAKS)],
    ),
    (
        {**fields(), "additionalProperties": TEXT},
        {**fields(), "additionalProperties": WHOLE},
        [(".*", "type", "type string → integer", BREAKS, BREAKS)],
    ),
    (
        UNION,
        {**UNION, "$defs": {**DEFS, "A": {**A, "properties": {"k": {"const": "c"}}}}},
        [
            ("(A).k", "enum", 'value removed: "a"', BREAKS, FITS),
            ("(A).k", "enum", 'value added: "c"', FITS, BREAKS),
            ("(A).x", "removed", "removed: integer", BREAKS, BREAKS),
        ],
    ),
    (
        {"$ref": "#/$defs/A", "$defs": DEFS},
        UNION,
        [("", "type", "type A → A or B", FITS, BREAKS)],
    ),
    (
        {"oneOf": [WHOLE, {"$ref": "#/$defs/A"}], "$defs": {"A": TEXT}},
        {"oneOf": [WHOLE, {"$ref": "#/$defs/A"}], "$defs": {"A": {**TEXT, "maxLength": 3}}},
        # Exactly one of them has to fit, and no tag decides which.
        [
            (
                "",
                "schema",
                (
                    'oneOf [{"type":"integer"},{"$ref":"#/$defs/A"}] → '
                    '[{"type":"integer"},{"$ref":"#/$defs/A"}]'
                ),
                OPEN,
                OPEN,
            )
        ],
    ),
    (
        TREE,
        {**TREE, "$defs": {"T": {**TREE["$defs"]["T"], "required": ["n"]}}},
        [
            (".n", "required", "optional → required", BREAKS, FITS),
        ],
    ),
    (
        {**fields(a=PLACE, b=PLACE), "$defs": {"P": fields()}},
        {**fields(a=PLACE, b=PLACE), "$defs": {"P": fields(["x"], x=TEXT)}},
        [
            (".a.x", "added", "added: string, required", BREAKS, FITS),
            (".b", "type", "changed like input.a", BREAKS, FITS),
        ],
    ),
    (
        {"allOf": [{"$ref": "#/$defs/P~1%31"}], "$defs": {"P/1": fields(a=TEXT)}},
        {"allOf": [{"$ref": "#/$defs/P~1%31"}], "$defs": {"P/1": fields(a=WHOLE)}},
        [(".a", "type", "type string → integer", BREAKS, BREAKS)],
    ),
    (
        {"$ref": "#/$defs/P/0", "$defs": {"P": [TEXT]}},
        {"$ref": "#/$defs/P/0", "$defs": {"P": [WHOLE]}},
        [("", "schema", '$ref "#/$defs/P/0" → "#/$defs/P/0"', OPEN, OPEN)],
    ),
    (
        {"$ref": "https://a.example"},
        {"$ref": "https://b.example"},
        [("", "schema", '$ref "https://a.example" → "https://b.example"', OPEN, OPEN)],
    ),
]


def test_each_change_has_its_words_and_its_effect() -> None:
    """A narrower input breaks, a wider output breaks, and what no rule covers is unclassified."""
    for old, new, expected in CASES:
        for_input = [
            FieldChange(f"input{path}", kind, text, effect)
            for path, kind, text, effect, _ in expected
        ]
        assert changes_between("input", old, new) == for_input, (old, new)
        for_output = [
            FieldChange(f"output{path}", kind, text.replace("input", "output"), effect)
            for path, kind, text, _, effect in expected
        ]
        assert changes_between("output", old, new) == for_output, (old, new)


def closed(schema: Any) -> Any:
    """Close each object that accepts fields which it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if "properties" in made and "patternProperties" not in made:
        made.setdefault("additionalProperties", False)
    return made


@settings(
    max_examples=scaled(300),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(PAIRS, st.lists(VALUES, min_size=4, max_size=12))
def test_what_is_compatible_refuses_nothing(pair: tuple[Any, Any], values: list[Any]) -> None:
    """Where no input change breaks or is unclassified, all values of the old schema fit the new.

    For outputs, it is the other way round. Fields that an object does not name do not count.
    """
    old, new = pair
    inputs, outputs = changes_between("input", old, new), changes_between("output", old, new)
    for changes, strict, lenient in ((inputs, old, new), (outputs, new, old)):
        if worst_of(changes) == "compatible":
            for value in values:
                is_meant = is_valid(value, strict) and is_valid(value, closed(strict))
                assert not is_meant or is_valid(value, lenient), value


def test_types_that_refer_to_each_other_are_compared_once() -> None:
    """Twenty types, each of which holds all of them, take no longer than their pairs."""
    names = [f"T{n}" for n in range(20)]
    inner: dict[str, Any] = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    old = {**fields(**inner), "$defs": {name: fields(**inner) for name in names}}
    new = {**old, "$defs": {**old["$defs"], "T7": fields(**inner, n=WHOLE)}}
    told = changes_between("input", old, new)
    assert [each.text for each in told if each.kind == "added"] == ["added: integer, optional"]


def test_a_reference_that_leads_back_to_itself_ends() -> None:
    """A definition that is only itself is compared as it is written."""
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert changes_between("input", loop, copy.deepcopy(loop)) == []


@given(SCHEMAS)
def test_equal_schemas_differ_in_nothing(schema: Any) -> None:
    """A schema does not differ from its copy, nor from one with other titles."""
    assert changes_between("input", schema, copy.deepcopy(schema)) == []
    assert changes_between("output", schema, {**schema, "title": "T", "examples": [1]}) == []


@given(PAIRS)
def test_any_two_schemas_can_be_compared(pair: tuple[Any, Any]) -> None:
    """The comparison ends for every pair, and says each thing once."""
    changes = changes_between("input", *pair)
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
    ({"items": {"items": {"items": {"items": TEXT}}}}, "list of list of list of list of …"),
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
