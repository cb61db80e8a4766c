"""Check data against a JSON schema that is known at run time only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import MissingExtraError, ToolDefinitionError

__all__ = ["schema_checker", "schema_faults"]


def schema_checker(what: str, schema: Mapping[str, Any]) -> Any:
    """Return a validator of the package `jsonschema` for a schema.

    Raises:
        MissingExtraError: The package is not installed.
        ToolDefinitionError: The schema itself is invalid.
    """
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
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
            f"Invalid JSON schema: {what} is wrong at `{error.json_path}`: {error.message}."
        ) from error
    return kind(schema)


def schema_faults(what: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    """Say where a value does not fit a schema; nothing where it fits."""
    faults = schema_checker(what, schema).iter_errors(value)
    return [f"`{fault.json_path}`: {fault.message}" for fault in faults]
