"""Turn arguments from the form of a strict schema back into the form of the author's own.

In strict mode a property that the author made optional is required and nullable, and `null` stands
for "left out". It is turned back only where the author's type has no null of its own. Where a union
leaves it open which alternative a value is of, the first that takes the value as it stands is
taken, then the first that takes it once its nulls are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..._schema.definition import JsonSchema
from ..._text.json import compact_json, parse_json
from .._wire.reading import is_array, is_object
from .nodes import (
    Node,
    branches_of,
    kinds_of,
    resolve,
)

__all__ = ["decoder_of", "fits", "restore"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": is_object,
    "array": is_array,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: _is_number(value) and value == value // 1,
    "number": _is_number,
}
_NUMBER_RULES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}
_STRING_RULES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, pattern: _matches(pattern, value),
}
_ARRAY_RULES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minItems": lambda value, bound: len(value) >= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
}


def decoder_of(author: JsonSchema, wrapper: str | None) -> Callable[[Any], Any]:
    """Make the function that takes arguments back to the form of the author's schema.

    Args:
        author: The author's schema, with the object around its root if there is one.
        wrapper: The name of the one property of that object, or None.

    Returns:
        A function of JSON text or a dict that gives the same kind of thing; text that is not JSON,
        and what has the wrong form, comes back as it was.
    """
    defs: Mapping[str, Node] = author.get("$defs", {})

    def decode(arguments: Any) -> Any:
        if not isinstance(arguments, str):
            return unwrap(restore(author, arguments, defs))
        try:
            sent = parse_json(arguments)
        except ValueError:
            return arguments
        restored = unwrap(restore(author, sent, defs))
        return arguments if restored == sent else compact_json(restored)

    def unwrap(value: Any) -> Any:
        if wrapper is not None and is_object(value) and list(value) == [wrapper]:
            return value[wrapper]
        return value

    return decode


def restore(node: Node, value: Any, defs: Mapping[str, Node]) -> Any:
    """Leave out each null that stands for a property which the author's type has no null for."""
    schema = resolve(node, defs)
    branches = branches_of(schema)
    if branches:
        return _restore_branch(branches, value, defs)
    for part in schema.get("allOf", ()):
        value = restore(part, value, defs)
    if is_object(value):
        return _restore_object(schema, value, defs)
    if is_array(value):
        return _restore_array(schema, value, defs)
    return value


def _restore_branch(branches: list[Node], value: Any, defs: Mapping[str, Node]) -> Any:
    for branch in branches:
        if fits(branch, value, defs):
            return value
    for branch in branches:
        restored = restore(branch, value, defs)
        if fits(branch, restored, defs):
            return restored
    return value


def _restore_object(
    schema: JsonSchema, value: Mapping[str, Any], defs: Mapping[str, Node]
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    restored: dict[str, Any] = {}
    for name, item in value.items():
        if name not in properties:
            restored[name] = item
            continue
        stands_for_nothing = item is None and name not in required
        if stands_for_nothing and not fits(properties[name], None, defs):
            continue
        restored[name] = restore(properties[name], item, defs)
    return restored


def _restore_array(schema: JsonSchema, value: Sequence[Any], defs: Mapping[str, Node]) -> list[Any]:
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    return [
        restore(first[index] if index < len(first) else rest, item, defs)
        for index, item in enumerate(value)
    ]


def fits(node: Node, value: Any, defs: Mapping[str, Node]) -> bool:
    """Say whether a value is of a schema, as far as its structure and plain bounds go."""
    schema = resolve(node, defs)
    if schema.get("not") == {}:
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return False
    kinds = kinds_of(schema)
    if kinds and not any(_is_of(each, value) for each in kinds):
        return False
    branches = branches_of(schema)
    if branches and not any(fits(branch, value, defs) for branch in branches):
        return False
    if not all(fits(part, value, defs) for part in schema.get("allOf", ())):
        return False
    if is_object(value):
        return _fits_object(schema, value, defs)
    if is_array(value):
        return _obeys(_ARRAY_RULES, schema, value) and _fits_array(schema, value, defs)
    if isinstance(value, str):
        return _obeys(_STRING_RULES, schema, value)
    return not _is_number(value) or _obeys(_NUMBER_RULES, schema, value)


def _fits_object(schema: JsonSchema, value: Mapping[str, Any], defs: Mapping[str, Node]) -> bool:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", ())) and all(
        fits(properties.get(name, others), item, defs) for name, item in value.items()
    )


def _fits_array(schema: JsonSchema, value: Sequence[Any], defs: Mapping[str, Node]) -> bool:
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    return all(
        fits(first[index] if index < len(first) else rest, item, defs)
        for index, item in enumerate(value)
    )


def _obeys(rules: Mapping[str, Callable[[Any, Any], bool]], schema: JsonSchema, value: Any) -> bool:
    return all(rule(value, schema[key]) for key, rule in rules.items() if key in schema)


def _is_of(kind: str, value: Any) -> bool:
    test = _TYPES.get(kind)
    return test is None or test(value)


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True
