"""What both decorators are told, and the definition that comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic.errors import PydanticUserError

from ._arguments import Arguments
from ._capabilities import ToolCapabilities
from ._definition import JsonSchema, ToolDef, object_schema
from ._output import Output
from .errors import ToolDefinitionError

__all__ = ["Options", "define"]


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
) -> ToolDef:
    """Make a tool's definition, and check now what would otherwise fail on first use.

    Raises:
        ToolDefinitionError: The name is empty, the timeout is no positive number of seconds, or
            the input or output type has no schema.
    """
    if not isinstance(name, str) or not name:
        raise ToolDefinitionError(f"{place} needs a name, got {name!r}. Pass `name=` with a text.")
    timeout = options.timeout
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise ToolDefinitionError(
            f"{place}: timeout={timeout!r} is no positive number of seconds. Leave it out for none."
        )

    def input_schema() -> JsonSchema:
        return object_schema(name, arguments.json_schema())

    def output_schema() -> JsonSchema:
        return output.json_schema() or {}

    definition = ToolDef(
        name=name,
        description=description,
        input_schema=input_schema,
        output_schema=None if output.type is None else output_schema,
        category=options.category,
        capabilities=options.capabilities,
        timeout=timeout,
        idempotent=options.idempotent,
        strict=options.strict,
    )
    _check_schemas(place, definition, output)
    return definition


def _check_schemas(place: str, definition: ToolDef, output: Output) -> None:
    try:
        definition.input_schema  # noqa: B018 - computed now, and kept
    except PydanticUserError as error:
        if error.code == "class-not-fully-defined":
            return
        raise ToolDefinitionError(
            f"{place}: its arguments have no JSON schema ({_reason(error)}). Use types that JSON "
            "can carry, or hide the parameter from the model with `skip=` or "
            "`Annotated[..., Skip()]`."
        ) from error
    try:
        output.check()
    except PydanticUserError as error:
        raise ToolDefinitionError(
            f"{place}: its output type has no schema ({_reason(error)}). Use a type that pydantic "
            "knows, or `Any`."
        ) from error


def _reason(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")
