"""Strategies of JSON schemas such as tools have, of small changes to them, and of their values."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

NAMES = st.sampled_from(["a", "b", "c"])
SMALL = st.integers(-3, 4)
COUNT = st.integers(0, 3)
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, 2, -1, 1.0, 1.5, "", "a", "text", "xx", "b"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


def _optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


NUMBERS = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(["integer", "number"]),
    _optional(
        minimum=SMALL,
        maximum=SMALL,
        exclusiveMinimum=SMALL,
        exclusiveMaximum=SMALL | st.just(1.5),
        multipleOf=st.integers(1, 4),
    ),
)
TEXTS = _optional(minLength=COUNT, maxLength=COUNT, pattern=st.sampled_from(["a", "^t", "x$"])).map(
    lambda rest: {"type": "string", **rest}
)
CHOICES = st.lists(SCALARS, min_size=1, max_size=4).map(lambda values: {"enum": values})
PLAIN = st.sampled_from(
    [{}, True, {"type": "null"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"const": "a"}]
)
LEAVES: st.SearchStrategy[Any] = NUMBERS | TEXTS | CHOICES | PLAIN | st.just({"$ref": "#/$defs/D"})


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _optional(
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        minItems=COUNT,
        maxItems=COUNT,
        uniqueItems=st.booleans(),
    ).map(lambda rest: {"type": "array", **rest})


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _optional(
        properties=st.dictionaries(NAMES, inner, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.booleans() | inner,
        patternProperties=st.dictionaries(st.sampled_from(["a", "^[bc]$"]), inner, max_size=1),
        minProperties=COUNT,
        maxProperties=COUNT,
        propertyNames=st.just({"maxLength": 2}),
    ).map(lambda rest: {"type": "object", **rest})


def _unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda key, branches, rest: {**rest, key: branches},
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(inner, min_size=1, max_size=3),
        st.just({}) | NUMBERS | TEXTS,
    ) | inner.map(lambda branch: {"not": branch})


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _arrays(inner) | _objects(inner) | _objects(inner) | _unions(inner)


PARTS: st.SearchStrategy[Any] = st.recursive(LEAVES, _nested, max_leaves=6)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda schema, definition: {**schema, "$defs": {"D": definition}},
    (_objects(PARTS) | PARTS).filter(lambda schema: isinstance(schema, dict)),
    # A reference to itself is well founded only below a property.
    st.one_of(NUMBERS, CHOICES, _objects(st.just({"$ref": "#/$defs/D"}) | NUMBERS)),
)


def nodes_of(schema: Any) -> list[Any]:
    """Every object in a schema, so that a change can be made at each."""
    found = [schema] if isinstance(schema, dict) else []
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, dict | list):
            found += nodes_of(value)
    return found


@st.composite
def changed(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with one or two keywords changed, dropped or added."""
    made = copy.deepcopy(schema)
    for _ in range(draw(st.integers(0, 2))):
        places = [n for n in nodes_of(made) if n.keys() & {"type", "anyOf", "oneOf", "enum"}]
        if not places:
            break
        place = draw(st.sampled_from(places))
        # Copied: what is sampled is shared by all draws, and is changed below.
        other = copy.deepcopy(draw(PARTS))
        keys = sorted(set(place) - {"$defs"})
        if draw(st.booleans()) and isinstance(other, dict):
            place.update(other)
        elif keys:
            del place[draw(st.sampled_from(keys))]
    return made


PAIRS = st.one_of(
    SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), changed(schema))),
    st.tuples(SCHEMAS, SCHEMAS),
)


def is_valid(value: Any, schema: Any) -> bool:
    """What the reference validator says."""
    return Draft202012Validator(schema).is_valid(value)
