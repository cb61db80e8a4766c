"""Say in one schema what several say about the same value; what has no such form is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..._schema.schema_reader import JsonSchema, Node, types_in
from ..._text.json import json_key
from .nodes import ANNOTATIONS

_TOGETHER: Final = (
    frozenset({"if", "then", "else"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"prefixItems", "items"}),
)
"""Keywords that mean something only with each other, so that they are taken from one schema."""
_LEFT: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that go by what other schemas say about the same value."""
_PATTERNS: Final = "patternProperties"
_REST: Final = "additionalProperties"


def conjoined(
    first: JsonSchema, others: Iterable[JsonSchema], lose: Callable[[str], None]
) -> JsonSchema:
    """Make one schema of several without references and `allOf`.

    Args:
        first: The schema that the others stand inside of; its texts win.
        others: The others.
        lose: Is told each keyword of which not everything could be kept.
    """
    lost: dict[str, None] = {}
    merged = first
    for other in others:
        merged = _both(merged, other, lost)
    if lost:
        merged = _without(merged, _LEFT, lost)
    for key in lost:
        lose(key)
    return merged


# {"minimum": 1, "type": "integer"} and {"minimum": 5} are {"minimum": 5, "type": "integer"}. What
# cannot be told in one schema, such as two patterns, stays as the first has it and is lost of the
# second: too wide, never too narrow, because the rest is checked at the call.
def _both(first: JsonSchema, second: JsonSchema, lost: dict[str, None]) -> JsonSchema:
    second = _without(second, _LEFT, lost)
    for together in _TOGETHER:
        ours, theirs = first.keys() & together, second.keys() & together
        if ours and theirs and not ours == theirs == {"items"}:
            second = _without(second, together, lost)
    # `additionalProperties` is about what the patterns of its own schema leave over. Beside the
    # patterns of the other it would refuse, or take, other names than its author meant.
    if (_PATTERNS in first or _PATTERNS in second) and (_REST in first or _REST in second):
        first, second = (_without(each, frozenset({_REST}), lost) for each in (first, second))
    if first.get("const") != second.get("const") or "enum" in first or "enum" in second:
        first, second = _listed(first), _listed(second)
    # First the properties, while each schema still has its own `additionalProperties`.
    merged, added = _held_against(first, second), _held_against(second, first)
    for key, value in added.items():
        known = merged.get(key, value)
        both = known if known == value or key in ANNOTATIONS else _joined(key, known, value)
        if both is None:
            lost[key] = None
        merged[key] = known if both is None else both
    # An empty list of types is not a schema. An empty enumeration is one, which no value fits.
    return {**merged, "enum": []} if merged.get("type") == [] else merged


def _without(schema: JsonSchema, keywords: frozenset[str], lost: dict[str, None]) -> JsonSchema:
    lost.update(dict.fromkeys(key for key in schema if key in keywords))
    return {key: part for key, part in schema.items() if key not in keywords}


def _listed(schema: JsonSchema) -> JsonSchema:
    """Write a constant as an enumeration, so that two of them have values in common, or none."""
    rest = {key: part for key, part in schema.items() if key != "const"}
    return {**rest, "enum": [schema["const"]]} if "const" in schema else rest


def _held_against(schema: JsonSchema, other: JsonSchema) -> JsonSchema:
    """Hold the properties that only one schema names against what the other says about such."""
    # With {"properties": {"a": ..., "b": ...}} here and a closed object there that has only `a`, no
    # value may have `b`: its schema becomes False.
    rest = other.get(_REST, True)
    if rest is True or "properties" not in schema:
        return dict(schema)
    named = other.get("properties", ())
    parts = schema["properties"].items()
    held = {name: part if name in named else _all_of(part, rest) for name, part in parts}
    return {**schema, "properties": held}


def _all_of(one: Node, other: Node) -> Node:
    if one is False or other is False:
        return False
    if one == other or other is True:
        return one
    return other if one is True else {"allOf": [one, other]}


def _joined(key: str, one: Any, other: Any) -> Any:
    """Join what two schemas say by one keyword; None if one schema cannot say both."""
    if key == "type":
        return _types(types_in({key: one}), types_in({key: other}))
    if key == "enum":
        # By their JSON text: in Python 1 == True, and a list cannot be in a set.
        wanted = {json_key(value) for value in other}
        return [value for value in one if json_key(value) in wanted]
    if key == "required":
        return list(dict.fromkeys([*one, *other]))
    if key == "not":
        return {"anyOf": [one, other]}
    if key in ("properties", _PATTERNS, "dependentSchemas"):
        return {**one, **{name: _all_of(one.get(name, True), part) for name, part in other.items()}}
    if key in (_REST, "items", "propertyNames"):
        return _all_of(one, other)
    # Of two bounds the stricter. For `uniqueItems` that is the greater too: True before False.
    if key.startswith(("min", "exclusiveMin", "unique")):
        return max(one, other)
    return min(one, other) if key.startswith(("max", "exclusiveMax")) else None


def _types(one: Sequence[str], other: Sequence[str]) -> str | list[str]:
    """Return the types of both; a number that is wanted whole is an integer."""
    wide = [{*kinds, *(["integer"] if "number" in kinds else ())} for kinds in (one, other)]
    both = [kind for kind in dict.fromkeys([*one, *other]) if all(kind in each for each in wide)]
    kinds = [kind for kind in both if kind != "integer" or "number" not in both]
    return kinds[0] if len(kinds) == 1 else kinds


def apart(one: JsonSchema, other: JsonSchema) -> bool:
    """Whether it is plain to see that no value fits both schemas."""
    # Looks at the tag of a union, as in {"kind": {"const": "a"}} and {"kind": {"const": "b"}},
    # joined to an enumeration of nothing. False only says that it is not plain to see.
    merged = _both(_listed(one), _listed(other), {})
    if merged.get("enum") == []:
        return True
    parts, required = merged.get("properties", {}), {*one.get("required", ())}
    named = required & {*other.get("required", ())} & parts.keys()
    is_object = types_in(one) == types_in(other) == ["object"]
    return is_object and any(
        apart(one["properties"][name], other["properties"][name])
        for name in named
        if all(isinstance(each["properties"].get(name), dict) for each in (one, other))
    )
