"""Build the pydantic model of a function tool's arguments.

One field stands for each parameter, under the parameter's own name on the wire whatever pydantic
lets a field be called. What would fail on some call later (a default that does not fit, one name
for two fields, a type without a schema) fails here, and names the parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from .._text.json import shorten
from ..errors import ToolDefinitionError
from .closed_schema import converted
from .read_back import accepts
from .secrets import MASK, Masking
from .signature import (
    REQUIRED,
    ModelName,
    Parameter,
    Skip,
    can_carry,
    is_object_type,
    reason_of,
    type_name,
)


class FnInput(BaseModel):
    """The base of the models that `@tool_fn` generates: one field for each visible parameter.

    Unknown arguments are refused. It is frozen: what a hook wants to change, it returns again.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )
    __is_of_function__: ClassVar[bool] = True
    """The docstring of a function describes its fields: the class itself is in no source."""

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        return masked_args(type(self), super().__repr_args__())

    if TYPE_CHECKING:
        # What the fields are is known at run time only.
        def __init__(self, **data: object) -> None: ...
        def __getattr__(self, name: str) -> Any: ...


def masked_args(
    model: type[BaseModel], args: Iterable[tuple[str | None, object]]
) -> Iterator[tuple[str | None, object]]:
    """Mask what is secret in what a model represents itself by."""
    masking = _masking_of(model)
    for name, value in args:
        hides = masking.found and value is not None and masking.hides([name or ""])
        yield name, MASK if hides else value


@cache
def _masking_of(model: type[BaseModel]) -> Masking:
    from .json_schema import masking_of  # which takes pydantic's generator

    return masking_of(model)


class StrictFnInput(FnInput):
    """The same, without coercion."""

    model_config = ConfigDict(strict=True)


def sole_input(parameters: tuple[Parameter, ...]) -> Any | None:
    """Return the type of the single parameter that already is an object, if that is how it is.

    A pydantic model, a dataclass or a `TypedDict` that is alone, without a default, is the
    input itself and is not wrapped once more.
    """
    if len(parameters) != 1 or parameters[0].default is not REQUIRED:
        return None
    annotation = parameters[0].annotation
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return annotation if is_object_type(get_origin(plain) or plain) else None


def field_names(parameters: Iterable[Parameter]) -> dict[str, str]:
    """Map each parameter to the name of its field.

    They are the same but where a pydantic model cannot carry the name; then the field is called
    like the parameter without leading underscores and with one behind, and the parameter's own
    name is the alias.
    """
    # A parameter `schema` or `_id` cannot be a field of a pydantic model. `{"_id": "id_", "city":
    # "city"}`: the field has another name, and `_id` is its alias, so the model still reads `_id`.
    names = [parameter.name for parameter in parameters]
    fields = {name: name for name in names}
    taken = {name for name in names if can_carry(FnInput, name)}
    for name in names:
        if name not in taken:
            field = (name.lstrip("_") or "field") + "_"
            while field in taken or not can_carry(FnInput, field):
                field += "_"
            taken.add(field)
            fields[name] = field
    return fields


def build_input_model(
    named: ModelName,
    parameters: tuple[Parameter, ...],
    fields: Mapping[str, str],
    *,
    strict: bool,
) -> type[FnInput]:
    """Make the model class, with an honest module and qualified name so that it pickles.

    Raises:
        ToolDefinitionError: A parameter's type has no schema, its default does not fit its type,
            or two parameters have one name on the wire.
    """
    place = named.place
    definitions: dict[str, Any] = {}
    for parameter in parameters:
        field = fields[parameter.name]
        definitions[field] = _field(parameter, None if field == parameter.name else parameter.name)
    base = StrictFnInput if strict else FnInput
    try:
        model = create_model(named.name, __base__=base, __module__=named.module, **definitions)
        model.__qualname__ = f"{named.owner}.Input"
    except Exception as error:
        raise _explain(place, parameters, error) from error
    for parameter in parameters:
        if fields[parameter.name] not in model.model_fields:
            raise ToolDefinitionError(
                f"{place}: {_describe(parameter)} is a constant for pydantic, which no model can "
                "fill in. Annotate it with the plain type."
            )
    shown = {field: parameter for parameter, field in fields.items()}
    check_fields(place, "parameter", model, shown)
    return model


def check_fields(
    place: str, kind: str, model: type[BaseModel], shown: Mapping[str, str] | None = None
) -> None:
    """Make sure that every field has a name of its own on the wire, and a default that fits.

    Args:
        place: What the model is of, for messages.
        kind: What the author knows its fields as: `field` or `parameter`.
        model: A model that is complete.
        shown: What the author calls a field, if that is something else than its name.

    Raises:
        ToolDefinitionError: Two fields share a name, or a default does not fit.
    """
    readers: dict[str, str] = {}
    is_changed = False
    for name, field in model.model_fields.items():
        called = name if shown is None else shown[name]
        for wire in _wire_names(name, field):
            other = readers.setdefault(wire, called)
            if other != called:
                raise ToolDefinitionError(
                    f"{place}: {kind}s `{other}` and `{called}` are both called {wire!r} on the "
                    "wire. Give one of them another name or alias."
                )
        # pydantic does not check defaults. `days: int = "1"` would pass here, and fail in the tool
        # on the first call that leaves `days` out.
        default = field.default
        if isinstance(default, Skip) or default is Skip:
            raise ToolDefinitionError(
                f"{place}: the default of {kind} `{called}` is a `Skip`, which hides nothing. In a "
                f"function with `@tool_fn`, write `{called}: Annotated[..., Skip()]`."
            )
        if not _is_of(field, default):
            made = _default_of(place, kind, called, field, default)
            if shown is not None and made is not default:  # a class of the author's stays as it is
                field.default, is_changed = made, True
    if is_changed:
        model.model_rebuild(force=True)


def _is_of(field: FieldInfo, default: object) -> bool:
    """Whether a default fits at a glance, which most do."""
    kind = get_origin(field.annotation) or field.annotation
    has_parts = isinstance(default, Sized) and not isinstance(default, str) and len(default) > 0
    return type(default) is kind and not field.metadata and not has_parts


def _wire_names(name: str, field: FieldInfo) -> list[str]:
    """List the names by which a field is read; of a path there may be several readers."""
    alias = field.validation_alias
    if alias is None:
        return [name]
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str)]


def _default_of(place: str, kind: str, called: str, field: FieldInfo, default: object) -> object:
    """Return a default as a value of its field's type."""
    try:
        whole: Any = field.annotation
        if field.metadata:
            whole = Annotated[whole, *field.metadata]
        adapter: TypeAdapter[Any] = TypeAdapter(whole)
        made = converted(accepts(adapter.core_schema, ()), default)
        return default if field.validate_default else made  # pydantic converts it at each call
    except ValidationError as error:
        entry = error.errors(include_url=False, include_context=False)[0]
        if entry["type"] == "finite_number":
            return default  # an infinity stands for no limit at all
        shown = type_name(field.annotation)
        raise ToolDefinitionError(
            f"{place}: the default of {kind} `{called}` does not fit its type `{shown}`: "
            f"{entry['msg']} (got {shorten(entry['input'])}). Correct one of them, or write "
            f"`{called}: {shown} | None = None` if it may be left out."
        ) from None
    except Exception:  # noqa: BLE001 - of a type that wants its class's config nothing is known
        return default


def _field(parameter: Parameter, alias: str | None) -> Any:
    annotation, default = parameter.annotation, parameter.default
    own = [default] if isinstance(default, FieldInfo) else []
    if get_origin(annotation) is Annotated:
        own += [mark for mark in annotation.__metadata__ if isinstance(mark, FieldInfo)]
    about = parameter.description
    if any(info.description for info in own):
        about = None
    if any(info.validation_alias is not None for info in own):
        alias = None  # the author has named it
    if about is not None or alias is not None:
        extra = Field(description=about, alias=alias) if alias else Field(description=about)
        annotation = Annotated[annotation, extra]
    # Alone, the annotation keeps a default that is written in it.
    return annotation if default is REQUIRED else (annotation, default)


def _describe(parameter: Parameter) -> str:
    return f"parameter `{parameter.name}` of type `{type_name(parameter.annotation)}`"


def _explain(
    place: str, parameters: tuple[Parameter, ...], error: Exception
) -> ToolDefinitionError:
    """Find the parameter that the schema failed on: pydantic names the type only."""
    for parameter in parameters:
        try:
            create_model("Probe", __base__=FnInput, probe=_field(parameter, None))
        except Exception as found:  # noqa: BLE001 - whatever it is, it is told
            return ToolDefinitionError(
                f"{place}: {_describe(parameter)} has no schema ({reason_of(found)}). Use a type "
                "that pydantic knows, or hide the parameter from the model with "
                f"`skip=({parameter.name!r},)` or `Annotated[..., Skip()]`."
            )
    return ToolDefinitionError(f"{place} cannot become a tool: {reason_of(error)}.")
