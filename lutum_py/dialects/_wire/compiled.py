"""Compiled schemas, kept: a tool is compiled once for each dialect, and not on every request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..._schema.definition import ToolDef
from .._schema.compiler import CompiledSchema, compile_schema
from .losses import Loss
from .tool_names import check_tool_name

__all__ = ["compiled", "schema_losses"]


@lru_cache(maxsize=2048)
def compiled(definition: ToolDef, dialect: str, strict: bool = False) -> CompiledSchema:
    """Compile a tool's schema for a dialect, or give what was compiled before.

    The schema is shared between requests: copy it before it goes out.

    Raises:
        ToolDefinitionError: The name or the schema has no form in the dialect.
    """
    check_tool_name(dialect, definition.name)
    return compile_schema(definition, dialect, strict=strict)


def schema_losses(definition: ToolDef, dialect: str, strict: bool = False) -> Iterator[Loss]:
    """Say what the provider will not enforce of a tool's schema."""
    for loss in compiled(definition, dialect, strict).losses:
        path = f".{loss.path}" if loss.path else ""
        yield Loss(f"tools.{definition.name}{path}", loss.text)
