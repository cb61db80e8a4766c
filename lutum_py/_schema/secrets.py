"""What is secret in an input, as its JSON schema says: `writeOnly`, or the format `password`.

pydantic's own types of secrets mask themselves, and have such a schema.
"""

from __future__ import annotations

from typing import Any, Final

from .._text.json import is_array, is_object
from .schema_reader import JsonSchema, branches, localized

MASK: Final = "**********"
"""Stands for a secret, whatever its length, as pydantic has it."""


def holds_secrets(schema: Any) -> bool:
    """Whether anything in a schema is declared to be secret.

    >>> holds_secrets({"properties": {"pin": {"type": "string", "writeOnly": True}}})
    True
    """
    if is_object(schema):
        return _is_secret(schema) or any(map(holds_secrets, schema.values()))
    return is_array(schema) and any(map(holds_secrets, schema))


def mask_secrets(value: Any, schema: JsonSchema) -> Any:
    """Copy plain JSON data with a mask for each part that its schema declares to be secret.

    >>> mask_secrets({"pin": "1234"}, {"properties": {"pin": {"writeOnly": True}}})
    {'pin': '**********'}
    """
    if not holds_secrets(schema):
        return value
    root = localized(schema)
    return _masked(value, [root], root)


def _masked(value: Any, schemas: list[Any], root: JsonSchema) -> Any:
    meant = branches(root, schemas)
    if any(map(_is_secret, meant)):
        return MASK
    if is_object(value):
        return {
            key: _masked(each, [_field(schema, key) for schema in meant], root)
            for key, each in value.items()
        }
    if is_array(value):
        return [
            _masked(each, [_item(schema, at) for schema in meant], root)
            for at, each in enumerate(value)
        ]
    return value


def _is_secret(schema: JsonSchema) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _field(schema: JsonSchema, name: str) -> Any:
    properties = schema.get("properties")
    if is_object(properties) and name in properties:
        return properties[name]
    patterns = schema.get("patternProperties")
    others = patterns.values() if is_object(patterns) else ()
    return {"anyOf": [*others, schema.get("additionalProperties")]}


def _item(schema: JsonSchema, at: int) -> Any:
    listed = schema.get("prefixItems")
    return listed[at] if is_array(listed) and at < len(listed) else schema.get("items")
