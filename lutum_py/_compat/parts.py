"""Read a JSON schema (draft 2020-12) as plain parts that all hold at once.

A schema that is a reference or an `allOf` is taken apart, so that whoever compares or samples
schemas meets plain keywords only. What cannot be read, such as a reference to another document,
stays in a part as the keyword `$ref`: nothing is ever guessed.
"""

from __future__ import annotations

from typing import Any, Final

from .._schema.schema_reader import follow
from .._text.json import is_array, is_object

Part = dict[str, Any]

NEVER: Final[Part] = {"enum": []}
"""A part that no value fits."""

EVERY_TYPE: Final = frozenset(
    {"null", "boolean", "object", "array", "integer", "fraction", "string"}
)
"""The types of values that never meet; a number is an integer or a fraction."""

_NUMBER: Final = frozenset({"integer", "fraction"})


def parts_of(schema: Any, root: Any) -> list[Part]:
    """Take a schema apart into parts without references and `allOf`; all of them have to hold."""
    return _parts(schema, root, frozenset())


def _parts(schema: Any, root: Any, seen: frozenset[str]) -> list[Part]:
    if schema is True:
        return []
    if not is_object(schema):
        return [NEVER] if schema is False else [{"$ref": None}]
    plain = dict(schema)
    found: list[Part] = []
    reference = plain.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        target = follow(reference, root)
        if target is not None:
            del plain["$ref"]
            found += _parts(target, root, seen | {reference})
    for branch in plain.pop("allOf", ()):
        found += _parts(branch, root, seen)
    return [plain, *found] if plain else found


def merged_part(schema: Any, root: Any) -> Part:
    """Give all keywords of a schema in one part, for showing it; the outermost of each counts."""
    merged: Part = {}
    for part in parts_of(schema, root):
        merged = {**part, **merged}
    return merged


def without_keyword(part: Part, keyword: str) -> Part:
    """Give a part with one keyword less."""
    return {key: value for key, value in part.items() if key != keyword}


def types_named(operand: Any) -> frozenset[str]:
    """Give the types that the keyword `type` allows."""
    names = operand if is_array(operand) else [operand]
    nothing: frozenset[str] = frozenset()
    return nothing.union(*(_NUMBER if name == "number" else {name} for name in names))


def types_of(parts: list[Part]) -> frozenset[str]:
    """Give the types that a value of all these parts can have."""
    named = (types_named(part["type"]) for part in parts if "type" in part)
    return EVERY_TYPE.intersection(*named)


def property_of(parts: list[Part], name: str | None) -> list[Any]:
    """Give what the parts say of a property; of None, what they say of those they do not name."""
    found: list[Any] = []
    for part in parts:
        if name in part.get("properties", {}):
            found.append(part["properties"][name])
        elif "patternProperties" not in part and "additionalProperties" in part:
            found.append(part["additionalProperties"])
    return found


def item_of(parts: list[Part], at: int) -> list[Any]:
    """Give what the parts say of an item."""
    found: list[Any] = []
    for part in parts:
        first = part.get("prefixItems", ())
        found.append(first[at] if at < len(first) else part.get("items", True))
    return found
