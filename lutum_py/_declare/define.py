"""The definition that comes of what a decorator was told, checked as far as it can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import create_model
from pydantic.errors import PydanticUserError

from .._schema.arguments import Arguments
from .._schema.definition import ToolDef, object_schema
from .._schema.options import ToolOptions
from .._schema.output import Output
from .._schema.signature import reason_of, type_name
from .._text.on_demand import ONCE
from .._text.suggestion import names_for_message
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .._call.spec import ToolSpec


class Declared:
    """Hold what a decorator made a tool of, until all that its annotations name is there.

    An annotation may name a class that is further down in the module. Then the tool is made
    when it is first used, and a name that is missing then is an error.

    Args:
        place: What is declared, for messages.
        make: Makes the specification.

    Raises:
        ToolDefinitionError: It cannot become a tool.
    """

    def __init__(self, place: str, make: Callable[[], ToolSpec[Any, Any]]) -> None:
        self._place = place
        self._make: Any = make
        self._spec: ToolSpec[Any, Any] | None = None
        with suppress(NameError):
            self._build()

    def _build(self) -> ToolSpec[Any, Any]:
        make = self._make  # read first, since it goes when there is a specification
        # Annotations are evaluated without the lock, for that may import modules, which takes locks
        # of its own. Two threads may do it at once; the one that is first keeps its result.
        spec: ToolSpec[Any, Any] = self._spec or make()
        with ONCE:
            self._spec = self._spec or spec
        self._make = None
        return self._spec

    def spec(self) -> ToolSpec[Any, Any]:
        """Return the tool's specification.

        Raises:
            ToolDefinitionError: An annotation names something that still is not defined.
        """
        if self._spec is not None:
            return self._spec
        try:
            return self._build()
        except NameError as error:
            raise ToolDefinitionError(
                f"{self._place}: an annotation names `{error.name}`, which is not defined. Define "
                "it (or import it, not only under `TYPE_CHECKING`) before the tool is used."
            ) from error


def define(place: str, options: ToolOptions, *, arguments: Arguments, output: Output) -> ToolDef:
    """Make a tool's definition, and check now what would otherwise fail on first use.

    Raises:
        ToolDefinitionError: An option is of the wrong kind, or the input or output type has no
            schema.
    """
    told = options.checked(place)
    if not arguments.is_plain and arguments.skipped is not None:
        where = ".".join(arguments.skipped) or "the input"
        raise ToolDefinitionError(
            f"{place}: `{where}` has a `Skip()`, which hides parameters of a function only, each "
            "as a whole, so the model would fill it in. Take it out of the input, and let a "
            "function with `@tool_fn` take it as a parameter: `name: Annotated[..., Skip()]`."
        )

    # Functions, because a schema takes longer to make than the rest of a declaration, and in many
    # programs only some of the tools are ever on offer. What is checked below is made at once.
    definition = ToolDef(
        **told,
        input_schema=lambda: object_schema(place, arguments.json_schema()),
        output_schema=None if output.type is None else lambda: output.json_schema() or {},
    )
    if options.capabilities is not None:
        check_targets(place, definition, arguments)
    if not arguments.is_plain:
        try:
            definition.input_schema  # noqa: B018 - computed now, and kept
        except PydanticUserError as error:
            fault = _without_schema(arguments.type, error)
            raise ToolDefinitionError(f"{place}: {fault}") from error
    try:
        output.check()
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: its output type `{type_name(output.type)}` has no schema "
            f"({reason_of(error)}). Use a type that pydantic knows, or `Any`."
        ) from error
    return definition


def check_targets(place: str, definition: ToolDef, arguments: Arguments) -> None:
    """Make sure that what an effect is said to act on is an argument, by any of its names.

    Raises:
        ToolDefinitionError: The tool has no such argument.
    """
    from .._schema.schema_reader import names_in

    for effect in definition.capabilities.effects:
        if effect.target is not None and not arguments.may_have(effect.target):
            known = names_in(definition.input_schema)
            raise ToolDefinitionError(
                f"{place}: effect {effect.kind.value!r} has the target {effect.target!r}, which "
                f"is not an argument. The arguments are {names_for_message(known)}."
            )


def _without_schema(input_type: Any, error: PydanticUserError) -> str:
    """Name the field that has no JSON schema: pydantic names only the type that it cannot do."""
    from .._schema.input_model import FnInput
    from .._schema.json_schema import input_schema_of

    # pydantic says that it cannot make a schema of `Callable`, and not where that stands. So each
    # field is tried alone, and the first that fails is named.
    is_ours = issubclass(input_type, FnInput) if isinstance(input_type, type) else False
    for name, field in getattr(input_type, "model_fields", {}).items():
        shown = (field.alias or name) if is_ours else name
        probe: Any = {"probe": (field.annotation, field)}
        try:
            input_schema_of(create_model("Probe", **probe))
        except PydanticUserError as found:
            skip = f"`skip=({shown!r},)` or `Annotated[..., Skip()]`"
            hide = f", or hide the parameter from the model with {skip}" if is_ours else ""
            return (
                f"{'parameter' if is_ours else 'field'} `{shown}` of type "
                f"`{type_name(field.annotation)}` has no JSON schema ({reason_of(found)}). Use a "
                f"type that JSON can carry{hide}."
            )
    return f"its arguments have no JSON schema ({reason_of(error)}). Use types that JSON can carry."
