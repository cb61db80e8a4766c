"""Read a JSON schema the way that generating from it needs: references opened, unions listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._schema.schema_reader import UNIONS, JsonSchema, parts_of, type_of
from ..._text.json import is_array, is_object
from ...dialects._schema.conjunction import conjoined

_INFERRED = {
    **dict.fromkeys(["properties", "required", "additionalProperties"], "object"),
    **dict.fromkeys(["items", "prefixItems", "minItems", "maxItems"], "array"),
    **dict.fromkeys(["pattern", "format", "minLength", "maxLength"], "string"),
    **dict.fromkeys(["minimum", "exclusiveMinimum", "multipleOf"], "number"),
    **dict.fromkeys(["maximum", "exclusiveMaximum"], "number"),
}
_ALL_KINDS = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def opened(root: JsonSchema, schema: Any) -> JsonSchema:
    """Follow references and join `allOf`, so that the keywords stand in one object."""
    return _joined(*(parts_of(schema, root) or [{}]))


def _joined(first: JsonSchema, *others: JsonSchema) -> JsonSchema:
    # What no single object can say, such as two patterns, is left to whoever decodes the value.
    return conjoined(first, others, lambda _: None)


def branches_of(root: JsonSchema, schema: Any) -> Iterator[JsonSchema]:
    """List what a schema may stand for: each branch of its unions, with what stands beside it."""
    node = opened(root, schema)
    for key in UNIONS:
        if is_array(node.get(key)):
            beside = {name: part for name, part in node.items() if name not in (key, "default")}
            tag = beside.pop("discriminator", None)
            if is_object(tag) and isinstance(tag.get("propertyName"), str):
                # Without it nobody could tell the branches apart, whatever each of them says.
                beside["required"] = [*beside.get("required", ()), tag["propertyName"]]
            for branch in node[key]:
                yield from branches_of(root, _joined(beside, opened(root, branch)))
            return
    if is_array(node.get("type")):
        for kind in node["type"]:
            yield {**node, "type": kind}
        return
    yield node


def kind_of(node: JsonSchema) -> str | None:
    """Tell the JSON type of a branch; None where it says nothing about it."""
    kind = node.get("type")
    if isinstance(kind, str):
        return kind
    return next((kind for key, kind in _INFERRED.items() if key in node), None)


def kinds_accepted(root: JsonSchema, schema: Any) -> frozenset[str]:
    """List the JSON types that a schema takes."""
    kinds: set[str] = set()
    for node in branches_of(root, schema):
        values = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
        if values is not None:
            kinds.update(map(type_of, values))
        else:
            kind = kind_of(node)
            kinds.update(_ALL_KINDS if kind is None else (kind,))
    if "number" in kinds:
        kinds.add("integer")
    return frozenset(kinds)
