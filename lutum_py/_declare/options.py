"""What both decorators are told, and the definition that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from .._schema.arguments import Arguments
from .._schema.capabilities import ToolCapabilities
from .._schema.definition import (
    JsonSchema,
    ToolDef,
    check_hints,
    object_schema,
)
from .._schema.output import Output
from .._schema.signature import reason_of, type_name
from .._text.suggestion import names_for_message
from ..errors import ToolDefinitionError

__all__ = ["Options", "define", "undefined_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Hold what a decorator was told."""

    name: str | None = None
    description: str | None = None
    skip: tuple[str, ...] = ()
    timeout: float | None = None
    category: str | None = None
    capabilities: ToolCapabilities | None = None
    idempotent: bool = False
    strict: bool = False


def define(
    place: str,
    *,
    name: str,
    description: str,
    arguments: Arguments,
    output: Output,
    options: Options,
    is_plain: bool = False,
) -> ToolDef:
    """Make a tool's definition, and check now what would otherwise fail on first use.

    Raises:
        ToolDefinitionError: The name is empty, the timeout is no positive number of seconds, or
            the input or output type has no schema.
    """
    check_hints(
        place,
        name=name,
        description=description,
        timeout=options.timeout,
        category=options.category,
        capabilities=options.capabilities,
    )

    def input_schema() -> JsonSchema:
        return object_schema(place, arguments.json_schema())

    def output_schema() -> JsonSchema:
        return output.json_schema() or {}

    definition = ToolDef(
        name=name,
        description=description,
        input_schema=input_schema,
        output_schema=None if output.type is None else output_schema,
        category=options.category,
        capabilities=options.capabilities,
        timeout=options.timeout,
        idempotent=options.idempotent,
        strict=options.strict,
    )
    _check_targets(place, definition)
    if not is_plain:
        _check_input(place, definition, arguments)
    _check_output(place, output)
    return definition


def _check_targets(place: str, definition: ToolDef) -> None:
    """Make sure that what an effect is said to act on is an argument."""
    for effect in definition.capabilities.effects:
        if effect.target is not None and effect.target not in definition.input_schema["properties"]:
            raise ToolDefinitionError(
                f"{place}: effect {effect.kind.value!r} has the target {effect.target!r}, which "
                f"is no argument. The arguments are "
                f"{names_for_message(definition.input_schema['properties'])}."
            )


def _check_input(place: str, definition: ToolDef, arguments: Arguments) -> None:
    try:
        definition.input_schema  # noqa: B018 - computed now, and kept
    except PydanticUserError as error:
        raise ToolDefinitionError(f"{place}: {_without_schema(arguments.type, error)}") from error


def _check_output(place: str, output: Output) -> None:
    try:
        output.check()
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: its output type `{type_name(output.type)}` has no schema "
            f"({reason_of(error)}). Use a type that pydantic knows, or `Any`."
        ) from error


def _without_schema(input_type: Any, error: PydanticUserError) -> str:
    """Find the field that has no JSON schema: pydantic names what it is made of only."""
    from .._schema.input_model import FnInput

    is_ours = issubclass(input_type, FnInput) if isinstance(input_type, type) else False
    for name, field in getattr(input_type, "model_fields", {}).items():
        shown = (field.alias or name) if is_ours else name
        try:
            TypeAdapter(field.annotation).json_schema()
        except PydanticUserError as found:
            what = f"`{shown}` of type `{type_name(field.annotation)}`"
            if is_ours:
                return (
                    f"parameter {what} has no JSON schema ({reason_of(found)}). Use a type that "
                    "JSON can carry, or hide the parameter from the model with "
                    f"`skip=({shown!r},)` or `Annotated[..., Skip()]`."
                )
            return (
                f"field {what} has no JSON schema ({reason_of(found)}). Use a type that JSON can "
                "carry."
            )
    return f"its arguments have no JSON schema ({reason_of(error)}). Use types that JSON can carry."


def undefined_name(place: str, error: NameError) -> ToolDefinitionError:
    """Say that a declaration names what does not exist by the time that the tool is used."""
    return ToolDefinitionError(
        f"{place}: an annotation names `{error.name}`, which is not defined. Define it (or import "
        "it, not only under `TYPE_CHECKING`) before the tool is used."
    )
