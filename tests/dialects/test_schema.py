"""The schema compiler: every value survives, and every root becomes an object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import ToolDefinitionError
from tests.cases import over
from tests.profiles import scaled

from .every_dialect import DIALECTS
from .schema_tools import (
    EVERY,
    EVERY_FORM,
    lost,
    of,
    strict_openai,
    tool,
)

# The law of the compiler: models, values of them, and what a provider would send for them.


@dataclass(frozen=True)
class Field_:
    """One field of a drawn model: its type, and a strategy of its values."""

    type: Any
    values: st.SearchStrategy[Any]


def kind(generic: Any, inner: Any) -> Any:
    """Make a generic of types that are only known as they are drawn."""
    return generic[inner]


def scalars() -> st.SearchStrategy[Field_]:
    return st.sampled_from(
        [
            Field_(int, st.integers(-9, 9)),
            Field_(float, st.floats(-9, 9)),
            Field_(str, st.text("abc", max_size=3)),
            Field_(bool, st.booleans()),
            Field_(type(None), st.none()),
            Field_(Literal["x"], st.just("x")),
            Field_(Literal["x", "y", 3, True], st.sampled_from(["x", "y", 3])),
            Field_(Annotated[int, Field(ge=1, le=9, multiple_of=2)], st.sampled_from([2, 4])),
            Field_(Annotated[str, Field(min_length=1, pattern="^a+$")], st.just("aa")),
            Field_(Annotated[list[int], Field(min_length=2)], st.just([1, 2])),
            Field_(set[int], st.sets(st.integers(0, 3)).map(sorted)),
        ]
    )


def composed(inner: st.SearchStrategy[Field_]) -> st.SearchStrategy[Field_]:
    return st.one_of(
        inner.map(lambda one: Field_(kind(list, one.type), st.lists(one.values, max_size=3))),
        inner.map(lambda one: Field_(one.type | None, one.values | st.none())),
        st.tuples(inner, inner).map(
            lambda two: Field_(
                kind(tuple, (two[0].type, two[1].type)),
                st.tuples(two[0].values, two[1].values).map(list),
            )
        ),
        models(inner),
        st.tuples(models(inner), models(inner)).map(
            lambda two: Field_(two[0].type | two[1].type, two[0].values | two[1].values)
        ),
    )


@st.composite
def models(draw: st.DrawFn, inner: st.SearchStrategy[Field_]) -> Field_:
    names = draw(st.lists(st.sampled_from("abcd"), max_size=3, unique=True))
    closed: Any = draw(st.sampled_from(["ignore", "forbid"]))
    fields: dict[str, Any] = {}
    needed: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for name in names:
        one = draw(inner)
        if draw(st.booleans()):
            fields[name] = (one.type, ...)
            needed[name] = one.values
        else:
            fields[name] = (one.type, draw(one.values))
            optional[name] = one.values
    made = create_model(
        f"Model{draw(st.integers(0, 10**9))}",
        __config__=ConfigDict(extra=closed, validate_default=True),
        **fields,
    )
    return Field_(made, st.fixed_dictionaries(needed, optional=optional))


def roots() -> st.SearchStrategy[Field_]:
    fields = st.recursive(scalars(), composed, max_leaves=4)
    single = models(fields)
    union = st.tuples(single, single).map(
        lambda two: Field_(
            kind(RootModel, two[0].type | two[1].type), two[0].values | two[1].values
        )
    )
    return single | union


def sent_as(schema: Any, value: Any) -> Any:
    """What a provider that obeys a strict schema sends where a property is left out."""
    return value | {key: None for key in schema["required"] if key not in value}


@EVERY_FORM
@settings(max_examples=scaled(40), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_value_of_the_authors_type_survives(
    dialect: ModuleType, strict: bool, data: st.DataObject
) -> None:
    """What the author's model accepts has a form under the compiled schema, which decodes to it."""
    root = data.draw(roots())
    made = root.type
    given_value = made.model_validate(data.draw(root.values))
    # Every field is spelled out: what a model left out is a matter of its defaults.
    value = given_value.model_dump(mode="json", by_alias=True)
    given_value = made.model_validate(value)
    compiled = dialect.compile(of(made), strict=strict)
    schema = compiled.schema
    assert schema["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(schema)
    sent = {"value": value} if set(schema["properties"]) == {"value"} else value
    jsonschema.validate(sent, schema)
    decoded = compiled.decoder(sent)
    assert made.model_validate(decoded) == given_value
    assert compiled.decoder(json.dumps(sent)) in (json.dumps(sent), dumped(decoded))


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@settings(max_examples=scaled(60), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_left_out_stays_left_out(data: st.DataObject) -> None:
    """A null for an optional property of a type without null decodes to a call without it."""
    one = data.draw(models(scalars().filter(lambda each: each.type is not type(None))))
    value = data.draw(one.values)
    compiled = openai_chat.compile(of(one.type), strict=True)
    sent = sent_as(compiled.schema, value)
    jsonschema.validate(sent, compiled.schema)
    assert compiled.decoder(sent) == value


def test_a_null_that_the_author_knows_stays() -> None:
    """Null is turned back into nothing only where the author's type has no null of its own."""

    class Args(BaseModel):
        known: int | None = 5
        unknown: int = 5
        required: int

    decoder = openai_chat.compile(of(Args), strict=True).decoder
    sent = '{"known":null,"unknown":null,"required":null}'
    assert decoder(sent) == '{"known":null,"required":null}'


def test_text_that_decodes_to_itself_is_untouched() -> None:
    """The decoder gives back the very text where there is nothing to undo, or nothing to read."""
    compiled = strict_openai({"a": {"type": "integer"}})
    for text in ('{ "a" : 1 }', "not json", "[1]", "null"):
        assert compiled.decoder(text) == text


def test_the_schema_goes_out_as_it_is_without_strict() -> None:
    """Without strict mode an object schema is copied word for word, save for Gemini."""
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "an A"}},
        "$defs": {"A": {"type": "string", "maxLength": 3, "default": None}},
    }
    for dialect in (openai_chat, openai_responses, anthropic_messages):
        compiled = dialect.compile(tool(schema))
        assert compiled.schema == schema
        assert compiled.schema["properties"] is not schema["properties"]
        assert compiled.losses == ()
        assert compiled.decoder("{}") == "{}"


@over("dialect, strict", [(dialect, strict) for dialect in EVERY for strict in (False, True)])
def test_a_compiled_schema_is_the_callers_to_change(dialect: ModuleType, strict: bool) -> None:
    """What somebody does to it is in no request, and in nothing that is compiled later."""
    definition = tool({"type": "object", "properties": {"a": {"type": "integer"}}})
    before = dialect.tools([definition], strict=strict)
    dialect.compile(definition, strict=strict).schema["properties"].clear()
    assert dialect.compile(definition, strict=strict).schema["properties"]
    assert dialect.tools([definition], strict=strict) == before


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Pet(RootModel[Cat | Dog]):
    """A pet."""


class Tagged(RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]]):
    pass


@pytest.mark.parametrize("model", [Pet, Tagged])
def test_a_union_at_the_root_becomes_one_object(model: type[BaseModel]) -> None:
    """Without strict mode a root union is merged, in words that say which fields go together."""
    compiled = anthropic_messages.compile(of(model))
    schema = compiled.schema
    assert schema["type"] == "object"
    assert schema["properties"]["kind"]["enum"] == ["cat", "dog"]
    assert schema["required"] == ["kind"]
    assert 'Cat: kind = "cat", lives (optional). A cat.' in schema["description"]
    assert not schema.keys() & {"anyOf", "oneOf"}
    assert lost(compiled) == [("", "anyOf")]
    value = {"kind": "dog", "name": "Rex"}
    jsonschema.validate(value, schema)
    assert compiled.decoder(value) == value


class Home(BaseModel):
    kind: Literal["home"]
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]


class Lone(BaseModel):
    kind: Literal["lone"]


class Owner(RootModel[Annotated[Home | Lone, Field(discriminator="kind")]]):
    pass


@pytest.mark.parametrize("dialect", EVERY, ids=lambda dialect: dialect.NAME)
def test_a_merged_root_keeps_only_what_it_refers_to(dialect: ModuleType) -> None:
    """Of a union that was merged, neither its discriminator goes out nor the definitions that only
    the union referred to; what a field refers to stays.
    """
    schema = dialect.compile(of(Tagged)).schema
    assert not schema.keys() & {"$defs", "discriminator"}
    schema = dialect.compile(of(Owner)).schema
    assert "discriminator" not in schema
    assert sorted(schema["$defs"]) == ["Cat", "Dog"]
    jsonschema.validate({"kind": "home", "pets": [{"kind": "dog", "name": "Rex"}]}, schema)
    recursive = {
        "oneOf": [{"$ref": "#/$defs/Leaf"}, {"$ref": "#/$defs/Node"}],
        "$defs": {
            "Leaf": {"type": "object", "properties": {"v": {"type": "integer"}}},
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}},
        },
    }
    assert list(dialect.compile(tool(recursive)).schema["$defs"]) == ["Node"]


def test_a_union_at_the_root_is_wrapped_in_strict_mode() -> None:
    """In strict mode a root union stands under one property, which the decoder takes away."""
    compiled = openai_chat.compile(of(Pet), strict=True)
    assert list(compiled.schema["properties"]) == ["value"]
    sent = {"value": {"kind": "cat", "lives": None}}
    jsonschema.validate(sent, compiled.schema)
    assert compiled.decoder(sent) == {"kind": "cat"}
    assert compiled.decoder({"kind": "cat"}) == {"kind": "cat"}
    plain = {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": False}]}
    assert "$defs" not in anthropic_messages.compile(tool(plain), strict=True).schema


def test_a_merged_root_knows_every_way_to_write_an_object() -> None:
    """References, conjunctions and bare alternatives at the root all become one object."""
    schema = {
        "allOf": [
            {"$ref": "#/definitions/Base"},
            {"properties": {"a": {"maximum": 9}, "c": True}, "required": ["c"]},
        ],
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "definitions": {
            "Base": {
                "type": "object",
                "description": "base",
                "properties": {"a": {"type": "integer"}, "b": {}},
            }
        },
    }
    compiled = openai_chat.compile(tool(schema))
    assert compiled.schema["properties"]["a"] == {"allOf": [{"type": "integer"}, {"maximum": 9}]}
    assert compiled.schema["required"] == ["c"]
    assert "form 1: a" in compiled.schema["description"]
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    both = {"anyOf": [{**closed, "title": "A"}, closed]}
    assert openai_chat.compile(tool(both)).schema["additionalProperties"] is False
    assert "A: no arguments" in openai_chat.compile(tool(both)).schema["description"]
    for key in ("allOf", "oneOf"):
        one = openai_chat.compile(tool({key: [closed]}))
        assert one.schema["properties"] == {}
        assert one.losses == ()


@DIALECTS
def test_the_forms_of_arguments_are_counted_as_the_schema_counts_them(dialect: ModuleType) -> None:
    """Of conditions in `anyOf` several may hold, so the model does not read that one must; of those
    in `oneOf`, and of alternatives with properties of their own, it gives one.
    """
    texts = {name: {"type": "string"} for name in ("paths", "scopes")}
    conditions = [{"required": [name]} for name in texts]
    forms = [{"type": "object", "properties": {name: texts[name]}} for name in texts]
    for union, branches, how_many in (
        ("anyOf", conditions, "at least"),
        ("oneOf", conditions, "exactly"),
        ("anyOf", forms, "exactly"),
        ("anyOf", [conditions[0], forms[1]], "exactly"),
    ):
        schema = {"type": "object", "properties": texts, union: branches}
        said = dialect.compile(tool(schema)).schema["description"]
        assert said.startswith(f"Give {how_many} one of these forms:\n")


@over(
    "nodes, merged",
    [
        ([{"type": "string"}, {"type": "string"}], {"type": "string"}),
        ([{"const": 1}, {"enum": [2, 3]}], {"enum": [1, 2, 3]}),
        (
            [{"const": 1, "type": "integer"}, {"const": "a", "type": "string"}],
            {"anyOf": [{"const": 1, "type": "integer"}, {"const": "a", "type": "string"}]},
        ),
        (
            [{"type": "string"}, {"type": "integer"}],
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ([True, {"type": "integer"}], {"anyOf": [True, {"type": "integer"}]}),
        ([{"minimum": 1}, {"const": 1}], {"anyOf": [{"minimum": 1}, {"const": 1}]}),
    ],
)
def test_a_property_of_two_alternatives_takes_both(nodes: list[Any], merged: Any) -> None:
    """A property that alternatives describe differently takes what either of them takes."""
    schema = {"oneOf": [{"type": "object", "properties": {"x": node}} for node in nodes]}
    assert openai_chat.compile(tool(schema)).schema["properties"]["x"] == merged


@pytest.mark.parametrize(
    ("inner", "what"),
    [({"type": "string"}, 'of type "string"'), ({"enum": ["a"]}, r'one of \["a"\]')],
)
def test_a_root_that_is_no_object_is_refused(inner: Any, what: str) -> None:
    """An alternative at the root that is no object has no form anywhere, and is told as it is."""
    with pytest.raises(ToolDefinitionError, match=rf"\(root\).*one JSON object, but .* {what}\."):
        gemini_generate_content.compile(tool({"anyOf": [inner]}))


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    """A reference to a file, or to a missing name, is a definition error with its path."""
    for reference in ("other.json#/x", "#/$defs/Missing", "#/properties/b"):
        schema = {"type": "object", "properties": {"a": {"items": [{"$ref": reference}]}}}
        with pytest.raises(ToolDefinitionError):
            openai_chat.compile(tool(schema))


def test_a_reference_to_the_whole_becomes_a_definition() -> None:
    """The schema that refers to itself as `#` keeps its meaning wherever it is put."""
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "again": {"$ref": "#"}},
        "$defs": {"Arguments": {"type": "string"}},
    }
    compiled = gemini_generate_content.compile(tool(schema))
    assert compiled.schema["properties"]["next"] == {"$ref": "#/$defs/Arguments_"}
    jsonschema.validate({"next": {"next": {}}}, compiled.schema)
