"""Check data against a JSON schema that is known at run time only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._text.json import is_array, is_object, shorten
from ..errors import MissingExtraError, ToolDefinitionError

__all__ = ["schema_checker", "schema_faults"]


def schema_checker(what: str, schema: dict[str, Any]) -> Any:
    """Return a validator of the package `jsonschema` for a schema.

    Raises:
        MissingExtraError: The package is not installed.
        ToolDefinitionError: The schema itself is invalid.
    """
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing.jsonschema import EMPTY_REGISTRY
    except ImportError as error:
        raise MissingExtraError(
            f"Checking {what} needs the package jsonschema: "
            "python -m pip install 'lutum-py[jsonschema]'"
        ) from error
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ToolDefinitionError(
            f"Invalid JSON schema for {what}: at `{error.json_path}`, {error.message}. Correct it "
            "there."
        ) from error
    _check_references(what, schema)
    # With a registry of its own it never asks the network for what a reference names.
    return kind(schema, registry=EMPTY_REGISTRY)


def _check_references(what: str, schema: dict[str, Any]) -> None:
    """Make sure that each reference leads somewhere inside of the schema.

    Raises:
        ToolDefinitionError: One does not; it would fail on the first call.
    """
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    resolver = EMPTY_REGISTRY.with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ToolDefinitionError(
                f"Invalid JSON schema for {what}: it refers to {shorten(reference)}, which is "
                "nowhere in it; nothing is fetched. Put what is meant under `$defs`."
            ) from None


def _references(schema: Any) -> Iterator[str]:
    if is_object(schema):
        # Below an identifier of its own, a reference is relative to that.
        for key, part in schema.items():
            if key == "$ref" and isinstance(part, str):
                yield part
            elif not (is_object(part) and "$id" in part):
                yield from _references(part)
    elif is_array(schema):
        for part in schema:
            yield from _references(part)


def schema_faults(what: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    """Say where a value does not fit a schema; nothing where it fits."""
    faults = schema_checker(what, dict(schema)).iter_errors(value)
    return [f"`{fault.json_path}`: {fault.message}" for fault in faults]
