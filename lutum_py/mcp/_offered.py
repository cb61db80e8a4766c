"""Tools as `tools/list` has them, in the form of each protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcp.types import Tool
from mcp.types.version import LATEST_MODERN_VERSION, is_version_at_least

from .._schema.definition import ToolDef
from .._schema.schema_check import schema_faults
from .._schema.schema_reader import JsonSchema, merged_part
from .._text.json import copy_json
from ._risk import hints_of


def is_modern(version: str) -> bool:
    """Whether a connection speaks the protocol of 2026, in which outputs may be anything."""
    return is_version_at_least(version, LATEST_MODERN_VERSION)


def offered_tools(definitions: Iterable[ToolDef], *, modern: bool) -> list[Tool]:
    """List tools for connections of one era."""
    return [_tool(definition, modern) for definition in definitions]


def _tool(definition: ToolDef, modern: bool) -> Tool:
    schema = definition.output_schema
    return Tool(
        name=definition.name,
        title=definition.title,
        description=definition.description or None,
        input_schema=_rooted(definition.input_schema),
        output_schema=None if schema is None else _output(definition.name, schema, modern),
        annotations=hints_of(definition.capabilities, definition.idempotent),
    )


def _output(tool: str, schema: JsonSchema, modern: bool) -> JsonSchema | None:
    """Give the schema that each success of a tool fits; None where the era has no such form.

    The SDK leaves a null out of an answer, so that an output that may be null is never promised.
    """
    if _is_object(schema):
        return _rooted(schema)
    if not modern or _is_text(schema) or not schema_faults(f"an output of {tool}", schema, None):
        return None
    copied: JsonSchema = copy_json(schema)
    return copied


def _rooted(schema: JsonSchema) -> JsonSchema:
    """Copy a schema of an object; the protocol wants its type at the root, also of a reference."""
    copied: JsonSchema = copy_json(schema)
    # {"$ref": "#/$defs/Args"} alone is an object by what it refers to, which no client looks up.
    copied["type"] = "object"
    return copied


def _is_object(schema: JsonSchema) -> bool:
    return bool(merged_part(schema, schema).get("type") == "object")


def _is_text(schema: JsonSchema) -> bool:
    return bool(merged_part(schema, schema).get("type") == "string")


def structure_of(definition: ToolDef, output: Any, *, modern: bool) -> bool:
    """Whether an output is told as data too: objects always, others from 2026 on, texts never."""
    if output is None or isinstance(output, dict):
        return output is not None
    schema = definition.output_schema
    return modern and not (isinstance(output, str) if schema is None else _is_text(schema))
