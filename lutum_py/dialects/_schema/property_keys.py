"""What goes out for the key of a property that a provider refuses: its stand-in.

Where a call is read, the stand-in means the property again (`_schema/arguments.py`), so whoever
sends a schema needs no table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..._schema.schema_reader import JsonSchema
from ..._schema.stand_in import stand_in
from ..._text.json import compact_json, is_mapping, is_sequence, parse_json


def refused_keys(schema: Any, taken: re.Pattern[str] | None) -> dict[str, str]:
    """Return the keys of a schema's properties that a provider refuses, with their stand-ins."""
    properties = schema.get("properties") if is_mapping(schema) else None
    if taken is None or not is_mapping(properties):
        return {}
    return {key: stand_in(key) for key in map(str, properties) if taken.fullmatch(key) is None}


def with_keys_sent(schema: JsonSchema, refused: Mapping[str, str]) -> JsonSchema:
    """Return a schema in which stand-ins stand for the keys that are refused."""
    if not refused:
        return schema
    properties = {
        refused.get(key, key): _named(key, node) if key in refused else node
        for key, node in schema["properties"].items()
    }
    required = schema.get("required")
    listed = required if is_sequence(required) else ()
    sent = {"required": [refused.get(key, key) for key in listed]} if listed else {}
    return {**schema, "properties": properties, **sent}


def _named(key: str, node: Any) -> Any:
    """Let the text of a property begin with its own key."""
    if not is_mapping(node):
        return node
    about = node.get("description")
    return {**node, "description": f"{key}: {about}" if about else key}


def without_stand_ins(arguments: Any, refused: Mapping[str, str]) -> Any:
    """Put the keys themselves where arguments have their stand-ins, in JSON text or a dict."""
    if isinstance(arguments, str):
        try:
            value = parse_json(arguments)
        except ValueError:
            return arguments
        restored = without_stand_ins(value, refused)
        return arguments if restored is value else compact_json(restored)
    own = {sent: key for key, sent in refused.items()}
    if not is_mapping(arguments) or own.keys().isdisjoint(arguments):
        return arguments
    return {own.get(key, key): value for key, value in arguments.items()}
