"""Make an object of a schema's root, which every provider demands of a tool's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..._schema.schema_reader import UNIONS, JsonSchema, Node, alternatives, types_in
from ..._text.json import compact_json, is_mapping
from .conjunction import conjoined
from .nodes import ANNOTATIONS, SchemaLoss, reachable, refusal, resolve

WRAPPER: Final = "value"
"""The one property of the object around a root that is a union, in strict mode."""

_MERGED: Final = frozenset({*UNIONS, "allOf", "discriminator"})
"""What is no more once the parts of a node are merged; a discriminator points into its union."""


def object_root(tool: str, schema: JsonSchema, losses: list[SchemaLoss]) -> JsonSchema:
    """Return a schema whose root is an object, and whose values need no undoing.

    A root that is a reference is put in its place. A root that is a union of objects is merged into
    one object that takes the properties of all and requires those which all require.

    Raises:
        ToolDefinitionError: An alternative at the root is not an object.
    """
    if schema.get("type") == "object" and not _composed(schema):
        return schema
    defs: Mapping[str, Node] = schema.get("$defs", {})
    merged = _merged_object(tool, "", schema, defs, losses)
    merged.pop("$defs", None)
    needed = reachable(merged, defs)
    if needed:
        merged["$defs"] = needed
    return merged


def wrapped_root(
    tool: str, schema: JsonSchema, losses: list[SchemaLoss]
) -> tuple[JsonSchema, bool]:
    """Return a schema whose root is an object, and say whether it is one put around a union."""
    defs: Mapping[str, Node] = schema.get("$defs", {})
    # `resolve` first: the root of a Pydantic union may be a reference to the definition that has
    # it. The whole schema goes inside, its texts with it.
    root = resolve(schema, defs)
    if not alternatives(root):
        return object_root(tool, schema, losses), False
    inner = {key: part for key, part in schema.items() if key != "$defs"}
    wrapper: JsonSchema = {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
    }
    if defs:
        wrapper["$defs"] = dict(defs)
    return wrapper, True


def _merged_object(
    tool: str, path: str, schema: Node, defs: Mapping[str, Node], losses: list[SchemaLoss]
) -> JsonSchema:
    """Merge a node's references, unions and conjunctions into one object schema.

    Raises:
        ToolDefinitionError: A part of it is not an object.
    """
    node = resolve(schema, defs)
    either = [_merged_object(tool, path, part, defs, losses) for part in alternatives(node)]
    parts = [_merged_object(tool, path, part, defs, losses) for part in node.get("allOf", ())]
    plain = {key: part for key, part in node.items() if key not in _MERGED}
    if either:  # what is left by them is not known where they are merged
        plain.pop("unevaluatedProperties", None)
    kinds = types_in(plain)
    if (kinds and "object" not in kinds) or (not kinds and "enum" in plain):
        raise refusal(
            tool,
            path,
            f"the arguments of a tool are one JSON object, but this is {_kind(plain)}.",
            "Put it into a field of a model.",
        )
    plain["type"] = "object"
    plain.setdefault("properties", {})

    def lose(keyword: str) -> None:
        text = "the provider takes no `allOf` here: how its parts differ in it is checked locally"
        losses.append(SchemaLoss(path, keyword, text))

    if either:
        parts.append(_either(path, either, losses))
    # Texts are joined below: `conjoined` would keep those of the first part, and the model would
    # read about one alternative only.
    silent = ({k: part for k, part in each.items() if k not in ANNOTATIONS} for each in parts)
    return {**conjoined(plain, silent, lose), **_texts(plain, parts)}


# Of a circle with a `radius` and a square with a `side`, told apart by `kind`, it makes
# {"properties": {"kind": {"enum": ["circle", "square"]}, "radius": ..., "side": ...}, "required":
# ["kind"]}, and says in the description which of them go together.
def _either(path: str, parts: list[JsonSchema], losses: list[SchemaLoss]) -> JsonSchema:
    if len(parts) == 1:
        return parts[0]
    offered: dict[str, list[Any]] = {}
    for part in parts:
        for name, node in part["properties"].items():
            offered.setdefault(name, []).append(node)
    required = [name for name in offered if all(name in part.get("required", ()) for part in parts)]
    either: JsonSchema = {
        "type": "object",
        "properties": {name: _any_of(nodes) for name, nodes in offered.items()},
        "description": _forms(parts),
    }
    if required:
        either["required"] = required
    if all(part.get("additionalProperties") is False for part in parts):
        either["additionalProperties"] = False
    losses.append(
        SchemaLoss(
            path,
            "anyOf",
            "the provider takes no union here: it is offered one object with the properties of "
            "all alternatives, and which of them go together is checked locally",
        )
    )
    return either


def _texts(plain: JsonSchema, parts: list[JsonSchema]) -> JsonSchema:
    texts = [plain.get("description"), *(part.get("description") for part in parts)]
    said = list(dict.fromkeys(text for text in texts if text))
    return {"description": "\n\n".join(said)} if said else {}


def _any_of(nodes: list[Any]) -> Any:
    different: list[Any] = []
    for node in nodes:
        if node not in different:
            different.append(node)
    if len(different) == 1:
        return different[0]
    # Constants become one enumeration, as for the tag of a union: `anyOf` of constants says the
    # same in many more words.
    values: list[Any] = []
    for node in different:
        if not is_mapping(node) or node.keys() - {"const", "enum", "type", "title"}:
            return {"anyOf": different}
        if "const" not in node and "enum" not in node:
            return {"anyOf": different}
        values.extend([node["const"]] if "const" in node else node["enum"])
    kinds = {compact_json(node.get("type")): node.get("type") for node in different}
    if len(kinds) > 1:
        return {"anyOf": different}
    kind = next(iter(kinds.values()))
    return {"enum": values} if kind is None else {"enum": values, "type": kind}


def _forms(parts: list[JsonSchema]) -> str:
    forms: list[str] = []
    for index, part in enumerate(parts, 1):
        required = part.get("required", ())
        fields = [] if part["properties"] else list(required)
        for name, node in part["properties"].items():
            shown = name
            if is_mapping(node) and "const" in node:
                shown += f" = {compact_json(node['const'])}"
            fields.append(shown if name in required else f"{shown} (optional)")
        title = part.get("title", f"form {index}")
        about = part.get("description")
        line = f"- {title}: {', '.join(fields) or 'no arguments'}"
        forms.append(f"{line}. {about}" if about else line)
    return "Give exactly one of these forms:\n" + "\n".join(forms)


def _composed(schema: JsonSchema) -> bool:
    return any(key in schema for key in ("$ref", "allOf", *UNIONS))


def _kind(node: JsonSchema) -> str:
    if "enum" in node:
        return f"one of {compact_json(node['enum'])}"
    return f"of type {compact_json(node.get('type'))}"
