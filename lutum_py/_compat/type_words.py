"""Say in a few words what a JSON schema allows: `list of integer`, `string or null`."""

from __future__ import annotations

from typing import Any, Final

from .._schema.schema_reader import UNIONS, JsonSchema, merged_part
from .._text.json import compact_json, cut, is_array, is_object

_RANGES: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " entries"),
)
_BOUNDS: Final = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "matching {}",
    "format": "format {}",
}


def type_words(schema: Any, root: Any, depth: int = 3) -> str:
    """Describe the values of a schema.

    Args:
        schema: The schema, or any schema within `root`.
        root: The document in which its references are looked up.
        depth: Levels of nesting that are shown.

    Returns:
        One line, such as `one of "asc", "desc"`.
    """
    named = _name_of(schema)
    return _words(merged_part(schema, root), root, named, depth)


def named_types(root: Any) -> dict[str, str]:
    """Describe what `type_words` only names: the objects that a document defines, by name."""
    return {
        name: type_words(part, root)
        for key in ("$defs", "definitions")
        for name, part in root.get(key, {}).items()
        if is_object(part) and part.get("properties")
    }


def _name_of(schema: Any) -> str | None:
    reference = schema.get("$ref") if is_object(schema) else None
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def _words(part: JsonSchema, root: Any, named: str | None, depth: int) -> str:
    if depth < 0:
        return "…"
    if is_array(part.get("enum")):
        return "one of " + ", ".join(cut(compact_json(v), 40) for v in part["enum"])
    if "const" in part:
        return compact_json(part["const"])
    for key in UNIONS:
        if is_array(part.get(key)):
            words = [type_words(branch, root, depth) for branch in part[key]]
            return " or ".join(dict.fromkeys(words)) or "nothing"
    kind = part.get("type")
    if is_array(kind):
        return " or ".join(_words({**part, "type": each}, root, named, depth) for each in kind)
    if kind == "array" or (kind is None and {"items", "prefixItems"} & part.keys()):
        return _array_words(part, root, depth)
    if kind == "object" or (kind is None and "properties" in part):
        return _object_words(part, root, named, depth)
    return str(kind) if isinstance(kind, str) else "anything"


def _array_words(part: JsonSchema, root: Any, depth: int) -> str:
    if is_array(part.get("prefixItems")):
        inner = ", ".join(type_words(each, root, depth - 1) for each in part["prefixItems"])
        return f"tuple ({inner})"
    if "items" not in part:
        return "list"
    inner = type_words(part["items"], root, depth - 1)
    return f"list of ({inner})" if " or " in inner else f"list of {inner}"


def _object_words(part: JsonSchema, root: Any, named: str | None, depth: int) -> str:
    properties = part.get("properties")
    if is_object(properties) and properties:
        if named is not None:
            return named
        if depth <= 0:
            return "object"
        needed = part.get("required", ())
        fields = (
            f"{name}{'' if name in needed else '?'}: {type_words(each, root, depth - 1)}"
            for name, each in properties.items()
        )
        return f"{{{', '.join(fields)}}}"
    rest = part.get("additionalProperties")
    if is_object(rest) and rest:
        return f"map of {type_words(rest, root, depth - 1)}"
    return "object"


def bounds_of(schema: Any, root: Any) -> list[str]:
    """Describe the bounds that a schema sets besides its type, such as `1 to 5 items`."""
    said = merged_part(schema, root)
    found: list[str] = []
    for least, most, what in _RANGES:
        low, high = said.get(least), said.get(most)
        if low is not None and high is not None:
            found.append(f"{low} to {high}{what}")
        elif low is not None:
            found.append(f"at least {low}{what}")
        elif high is not None:
            found.append(f"at most {high}{what}")
    found += [words.format(said[key]) for key, words in _BOUNDS.items() if key in said]
    return found
