"""Tell whether a value fits a JSON schema: yes, no, or that it cannot be told from here.

It is no validator: it knows the keywords that schemas of tools are made of, and answers None where
it meets another one that could matter. So a definite answer is always the right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from .._text.json import (
    compact_json,
    cut,
    is_array,
    is_object,
    shorten,
)
from .parts import Part, parts_of, types_named

__all__ = ["ANNOTATIONS", "ASSERTIONS", "equal_json", "fits", "misfit"]

ANNOTATIONS: Final = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""What a validator takes for a remark unless it is told otherwise."""

_OPAQUE: Final = frozenset(
    {
        "$anchor",
        "$dynamicRef",
        "$id",
        "$recursiveRef",
        "$ref",
        "additionalItems",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxContains",
        "minContains",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords that decide something, but are not understood here."""


def fits(value: Any, schema: Any, root: Any) -> bool | None:
    """Tell whether a value is valid.

    Args:
        value: Plain JSON data.
        schema: The schema, or any schema within `root`.
        root: The document in which its references are looked up.

    Returns:
        Whether it is; None where that depends on something that is not understood here.
    """
    try:
        return _fits(value, schema, root)
    except RecursionError:
        return None


def _fits(value: Any, schema: Any, root: Any) -> bool | None:
    return _every(_holds(key, value, part, root) for part in parts_of(schema, root) for key in part)


def _every(answers: Iterable[bool | None]) -> bool | None:
    found = set(answers)
    return False if False in found else None if None in found else True


def _some(answers: Iterable[bool | None]) -> bool | None:
    found = set(answers)
    return True if True in found else None if None in found else False


def _holds(key: str, value: Any, part: Part, root: Any) -> bool | None:
    operand = part[key]
    if key in _LIMITS:
        applies, is_operand, holds = _LIMITS[key]
        if not is_operand(operand):
            return None
        return holds(value, operand) if applies(value) else True
    if key in _STRUCTURE:
        is_concerned, holds_within = _STRUCTURE[key]
        return holds_within(value, operand, part, root) if is_concerned(value) else True
    return None if key in _OPAQUE else True


def equal_json(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1 is 1.0 but never true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(equal_json, one, other))
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(equal_json(one[k], other[k]) for k in one)
    return bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return is_array(value) and all(isinstance(entry, str) for entry in value)


def _is_anything(_: Any) -> bool:
    return True


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    return "string" if isinstance(value, str) else "array" if is_array(value) else "object"


def _is_of_type(value: Any, operand: Any) -> bool:
    return _type_of(value) in types_named(operand)


def _is_multiple(value: Any, of: Any) -> bool | None:
    # Validators differ in how they divide fractions.
    return value % of == 0 if _is_count(value) and _is_count(of) and of > 0 else None


def _has_pattern(value: str, pattern: str) -> bool | None:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return None


def _is_unique(value: list[Any], operand: bool) -> bool:
    return not operand or not any(
        equal_json(value[left], value[right]) for left in range(len(value)) for right in range(left)
    )


_Test = Callable[[Any], bool]
_Limit = tuple[_Test, _Test, Callable[[Any, Any], "bool | None"]]

_LIMITS: Final[dict[str, _Limit]] = {
    "type": (_is_anything, _is_anything, _is_of_type),
    "enum": (_is_anything, is_array, lambda v, op: any(equal_json(v, each) for each in op)),
    "const": (_is_anything, _is_anything, equal_json),
    "minimum": (_is_number, _is_number, lambda v, op: v >= op),
    "maximum": (_is_number, _is_number, lambda v, op: v <= op),
    "exclusiveMinimum": (_is_number, _is_number, lambda v, op: v > op),
    "exclusiveMaximum": (_is_number, _is_number, lambda v, op: v < op),
    "multipleOf": (_is_number, _is_number, _is_multiple),
    "minLength": (_is_text, _is_count, lambda v, op: len(v) >= op),
    "maxLength": (_is_text, _is_count, lambda v, op: len(v) <= op),
    "pattern": (_is_text, _is_text, _has_pattern),
    "minItems": (is_array, _is_count, lambda v, op: len(v) >= op),
    "maxItems": (is_array, _is_count, lambda v, op: len(v) <= op),
    "uniqueItems": (is_array, _is_flag, _is_unique),
    "minProperties": (is_object, _is_count, lambda v, op: len(v) >= op),
    "maxProperties": (is_object, _is_count, lambda v, op: len(v) <= op),
    "required": (is_object, _is_texts, lambda v, op: all(name in v for name in op)),
}
"""For each keyword that looks at no other: to which values it applies, what it may say, and when
it holds."""


def _items(value: Any, operand: Any, part: Part, root: Any) -> bool | None:
    if is_array(operand):
        return None  # as drafts before 2020-12 had it
    first = part.get("prefixItems", [])
    return _every(_fits(item, operand, root) for item in value[len(first) :])


def _prefix_items(value: Any, operand: Any, _: Part, root: Any) -> bool | None:
    return _every(_fits(*pair, root) for pair in zip(value, operand, strict=False))


def _properties(value: Any, operand: Any, _: Part, root: Any) -> bool | None:
    return _every(_fits(value[name], operand[name], root) for name in operand if name in value)


def _pattern_properties(value: Any, operand: Any, _: Part, root: Any) -> bool | None:
    return _every(
        {True: _fits(entry, schema, root), None: None}.get(_has_pattern(name, pattern), True)
        for pattern, schema in operand.items()
        for name, entry in value.items()
    )


def _additional(value: Any, operand: Any, part: Part, root: Any) -> bool | None:
    named, patterns = part.get("properties", {}), part.get("patternProperties", {})
    answers: list[bool | None] = []
    for name in value.keys() - named.keys():
        is_named = _some(_has_pattern(name, pattern) for pattern in patterns)
        if is_named is not True:
            answer = _fits(value[name], operand, root)
            answers.append(answer if is_named is False or answer is True else None)
    return _every(answers)


def _any_of(value: Any, operand: Any, _: Part, root: Any) -> bool | None:
    return _some(_fits(value, branch, root) for branch in operand)


def _one_of(value: Any, operand: Any, _: Part, root: Any) -> bool | None:
    answers = [_fits(value, branch, root) for branch in operand]
    if answers.count(True) > 1:
        return False
    return None if None in answers else True in answers


_Whole = Callable[[Any, Any, Part, Any], "bool | None"]

_STRUCTURE: Final[dict[str, tuple[_Test, _Whole]]] = {
    "items": (is_array, _items),
    "prefixItems": (is_array, _prefix_items),
    "properties": (is_object, _properties),
    "patternProperties": (is_object, _pattern_properties),
    "additionalProperties": (is_object, _additional),
    "anyOf": (_is_anything, _any_of),
    "oneOf": (_is_anything, _one_of),
}
"""For each keyword that holds schemas: to which values it applies, and when it holds."""

ASSERTIONS: Final = frozenset({*_LIMITS, *_STRUCTURE, *_OPAQUE})
"""Every keyword that can refuse a value."""


def misfit(value: Any, schema: Any, root: Any, path: str = "") -> str | None:
    """Say in a sentence why a value does not fit, as deep within it as one rule can be named.

    Args:
        value: Plain JSON data.
        schema: The schema.
        root: The document in which its references are looked up.
        path: Where the value stands.

    Returns:
        The sentence, without a full stop; None where the value is not known to be refused.
    """
    for part in parts_of(schema, root):
        for key in part:
            if _holds(key, value, part, root) is False:
                return _inner_misfit(key, value, part, root, path) or _said(key, value, part, path)
    return None


def _inner_misfit(key: str, value: Any, part: Part, root: Any, path: str) -> str | None:
    inner: list[tuple[Any, Any, str]] = []
    if key == "properties":
        inner = [(value[n], part[key][n], join(path, n)) for n in part[key] if n in value]
    elif key in ("items", "prefixItems"):
        first = part.get("prefixItems", [])
        schemas = first if key == "prefixItems" else [True for _ in first]
        rest = part["items"] if key == "items" else True
        inner = [
            (item, schemas[at] if at < len(schemas) else rest, f"{path}[{at}]")
            for at, item in enumerate(value)
        ]
    elif key == "additionalProperties" and part[key] is not False:
        known = part.get("properties", {})
        inner = [(value[n], part[key], join(path, n)) for n in value if n not in known]
    found = (misfit(*entry[:2], root, entry[2]) for entry in inner)
    return next((text for text in found if text is not None), None)


_MUST: Final = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "pattern": "match {!r}",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
    "minProperties": "have at least {} entries",
    "maxProperties": "have at most {} entries",
}
_BRANCHES: Final = {"anyOf": "no", "oneOf": "not exactly one"}


def join(path: str, name: str) -> str:
    """Give the path of a property."""
    return f"{path}.{name}" if path else name


def _said(key: str, value: Any, part: Part, path: str) -> str:
    operand = part[key]
    place = f"`{path}`" if path else "the arguments"
    if key == "required":
        missing = [join(path, name) for name in operand if name not in value]
        return f"`{missing[0]}` is required"
    if key == "additionalProperties" and operand is False:
        unknown = [join(path, name) for name in value if name not in part.get("properties", {})]
        return f"`{unknown[0]}` is not known"
    if key == "type":
        names = operand if is_array(operand) else [operand]
        return f"{place} must be of type {' or '.join(names)}"
    if key in ("enum", "const"):
        listed = operand if key == "enum" else [operand]
        return f"{place} must be one of {cut(', '.join(map(compact_json, listed)), 80)}"
    if key in ("anyOf", "oneOf"):
        return f"{place} fit{'s' if path else ''} {_BRANCHES[key]} branch of `{key}`"
    if key in _MUST:
        return f"{place} must {_MUST[key].format(operand)}"
    return f"{place} {'does' if path else 'do'} not keep to `{key}`: {shorten(operand)}"
