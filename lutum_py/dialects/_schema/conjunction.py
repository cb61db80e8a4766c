"""Make one node of several that a value has to satisfy together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._schema.definition import JsonSchema
from .nodes import (
    ANNOTATIONS,
    Node,
    refusal,
    resolve,
)

__all__ = ["conjoined"]


def conjoined(tool: str, path: str, node: JsonSchema, defs: Mapping[str, Node]) -> JsonSchema:
    """Merge the parts of `allOf` into the node that holds them.

    Properties are joined by name and required ones added up; the node's own texts win.

    Raises:
        ToolDefinitionError: Two parts say different things of the same keyword.
    """
    merged: JsonSchema = {key: part for key, part in node.items() if key != "allOf"}
    for part in node["allOf"]:
        addition = resolve(part, defs)
        if "allOf" in addition:
            addition = conjoined(tool, path, addition, defs)
        for key, value in addition.items():
            merged[key] = _joined(tool, path, key, merged[key], value) if key in merged else value
    return merged


def _joined(tool: str, path: str, key: str, known: Any, added: Any) -> Any:
    if known == added or key in ANNOTATIONS:
        return known
    if key == "required":
        return list(dict.fromkeys([*known, *added]))
    if key == "properties":
        both: dict[str, Any] = dict(known)
        for name, value in added.items():
            both[name] = {"allOf": [both[name], value]} if name in both else value
        return both
    raise refusal(
        tool,
        path,
        f"the parts of `allOf` say different things of `{key}`.",
        "Write the schema as one object, or as a union.",
    )
