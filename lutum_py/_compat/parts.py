"""What the parts of a JSON schema (draft 2020-12) say together: of types, properties and items."""

from __future__ import annotations

from typing import Any, Final

from .._schema.schema_reader import Part
from .._text.json import is_array

EVERY_TYPE: Final = frozenset(
    {"null", "boolean", "object", "array", "integer", "fraction", "string"}
)
"""The types of values that never meet; a number is an integer or a fraction."""

_NUMBER: Final = frozenset({"integer", "fraction"})


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
