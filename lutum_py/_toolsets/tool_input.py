"""`@tool_input` and `ToolInput`: a model of the arguments becomes a tool without a function."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from inspect import cleandoc
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Self,
    TypeVar,
    Unpack,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, create_model

from .._call.reply import without_replies
from .._call.spec import AnySpec, ToolSpec
from .._schema.arguments import Arguments
from .._schema.definition import ToolDef, ToolOptions, check_targets, define
from .._schema.foreign import SchemaArguments, SchemaOutput
from .._schema.input_model import check_fields, masked_args
from .._schema.invocation import Invocation
from .._schema.output import Output
from .._schema.signature import annotations_of, has_signature, is_model, reason_of, type_name
from .._text.json import shorten
from .._text.on_demand import ONCE
from ..errors import MisuseError, ToolDefinitionError
from .tool_fn import Declared

if TYPE_CHECKING:
    from .._schema.capabilities import ToolCapabilities
    from .._schema.definition import ToldOfTool

Out = TypeVar("Out")
M = TypeVar("M", bound=BaseModel)

_OWN = "__lutum_declared__"
"""The attribute with what a decorator declared; without one, with the specification."""
_NOT_GIVEN: Any = object()


class _CallOfModel:
    """Gives `Model.Call`, the class of the calls of an input model; a subclass is not a tool."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if _is_base(owner) or _has_field_call(owner):
            raise AttributeError("Call")
        return owner.__lutum_tool__().call_type


class ToolInput(BaseModel, Generic[Out]):
    """Base of input models that name their output type: `class SearchArgs(ToolInput[Hits])`.

    Unknown arguments are refused unless the subclass says otherwise in its own `model_config`.

    Example:
        >>> from lutum_py import ToolInput, Toolset, tool
        >>> class GreetArgs(ToolInput[str]):
        ...     '''Greet someone.'''
        ...
        ...     name: str
        >>> class Greetings(Toolset):
        ...     greet = tool(GreetArgs)
        >>> Greetings.greet.definition.description
        'Greet someone.'
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    if TYPE_CHECKING:
        Call: ClassVar[Any]
        # By this an overload of `tool()` tells all other models from this one.
        __sizeof__: ClassVar[None]  # type: ignore[assignment]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        _settle(cls)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        return masked_args(type(self), super().__repr_args__())

    @classmethod
    def __lutum_tool__(cls) -> ToolSpec[Self, Out]:
        """Return the tool's specification, made on first use if there is no decorator."""
        return find_spec(cls)


# Set from outside: as a class variable of the base, no subclass could have a field of that name.
ToolInput.Call = _CallOfModel()


def _settle(model: Any) -> None:
    """Refuse attributes of a class that would be ignored, such as `Pay.timeout = 5`."""
    # Of its own metaclass, whichever its author took.
    model.__class__ = _settled(model.__class__)


_SETTLED = "__lutum_settled__"


@cache
def _settled(kind: Any) -> Any:
    if hasattr(kind, _SETTLED):
        return kind

    def set_attribute(cls: Any, name: str, value: object) -> None:
        # What Python and pydantic set is theirs, and what the class has is its author's to change.
        is_own = name.startswith("_") or name in cls.__class_vars__ or hasattr(cls, name)
        if not is_own and (_OWN in cls.__dict__ or ToolInput in cls.__mro__):
            raise MisuseError(
                f"`{cls.__qualname__}.{name} = {shorten(value)}` would be ignored: the class is a "
                "tool. Set its options where it is declared: `@tool_input(...)` above the class, "
                f"or `tool({cls.__name__}, ...)` in a toolset."
            )
        kind.__setattr__(cls, name, value)

    made = {"__slots__": (), "__setattr__": set_attribute, _SETTLED: True}
    return type(kind.__name__, (kind,), {**made, "__module__": kind.__module__})


def _has_field_call(model: type[BaseModel]) -> bool:
    """Whether a model has a field `Call`, which is the user's."""
    fields = model.__dict__.get("__pydantic_fields__")
    if fields is not None:
        return "Call" in fields
    # While pydantic makes the class, it asks for `Model.Call` before there are fields, to find the
    # default of a field of that name. The class of calls would be taken for the default.
    return any("Call" in annotations_of(base) for base in model.__mro__)


def _is_base(model: type[BaseModel]) -> bool:
    """Whether it is `ToolInput` itself, or `ToolInput[Out]`."""
    return model is ToolInput or _generic(model).get("origin") is ToolInput


def _generic(model: type) -> dict[str, Any]:
    """Return what pydantic knows of `Model[X]`, as its `origin`; empty for other classes."""
    found: dict[str, object] = model.__dict__.get("__pydantic_generic_metadata__", {})
    return found


def find_spec(model: type[BaseModel]) -> AnySpec:
    """Return the specification of an input model.

    Raises:
        ToolDefinitionError: The model is not declared as a tool.
    """
    # From the class itself: a subclass of a tool inherits its attributes, and is not a tool before
    # it is declared as one.
    own: AnySpec | Declared | None = model.__dict__.get(_OWN)
    if own is not None:
        return own.spec() if isinstance(own, Declared) else own
    for base in model.__mro__[1:]:
        if _is_decorated(base):
            raise ToolDefinitionError(
                f"`{model.__qualname__}` inherits from the tool `{base.__qualname__}`, but is "
                "not a tool itself. Decorate it with `@tool_input(...)`, under a name of its own."
            )
    if ToolInput not in model.__mro__:
        raise ToolDefinitionError(
            f"`{model.__qualname__}` is a model, but no tool. Decorate it with "
            "`@tool_input(output=...)`, or let it inherit from `ToolInput[...]`."
        )
    made = _declared(model, _NOT_GIVEN, ToolOptions()).spec()
    with ONCE:
        kept: AnySpec = model.__dict__.get(_OWN, made)  # another thread may be quicker
        setattr(model, _OWN, kept)
    return kept


def _is_decorated(model: type) -> bool:
    return isinstance(model.__dict__.get(_OWN), Declared)


def _declared(model: type[BaseModel], output: object, options: ToolOptions) -> Declared:
    return Declared(f"Tool input `{model.__qualname__}`", partial(_spec, model, output, options))


@overload
def tool_input(model: type[M], /) -> type[M]: ...
@overload
def tool_input(
    *, output: Any = ..., **told: Unpack[ToldOfTool]
) -> Callable[[type[M]], type[M]]: ...
def tool_input(
    model: object = None,
    /,
    *,
    output: object = _NOT_GIVEN,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    timeout: float | None = None,
    category: str | None = None,
    capabilities: ToolCapabilities | None = None,
    idempotent: bool = False,
    strict: bool = False,
) -> Any:
    """Turn a pydantic model of the arguments into a tool; its fields and config stay as they are.

    Args:
        model: The model; a `RootModel` over a union of models makes one tool of all of them.
        output: The type of the tool's output; that of `ToolInput[...]` by default.
        name: The name on the wire; by default the class name in snake case, without `Args` or
            `Input` at its end.
        description: What the model is told; the class docstring by default.
        title: A name for people, in displays and where a protocol has a field for it.
        timeout: Seconds that a run may take.
        category: A word by which the program groups tools.
        capabilities: What the tool does to the world.
        idempotent: Whether a second run of the same call does no harm.
        strict: Refuse arguments that would have to be coerced.

    Raises:
        ToolDefinitionError: The class is not a pydantic model of an object.

    Example:
        >>> from pydantic import BaseModel
        >>> from lutum_py import tool_input
        >>> @tool_input(output=str)
        ... class GetUserArgs(BaseModel):
        ...     user_id: str
        >>> GetUserArgs.Call.__name__
        'GetUserArgsCall'
    """
    options = ToolOptions(
        name=name,
        description=description,
        title=title,
        timeout=timeout,
        category=category,
        capabilities=capabilities,
        idempotent=idempotent,
        strict=strict,
    )

    def decorate(model: object) -> Any:
        if not is_model(model):
            raise ToolDefinitionError(
                f"`@tool_input` decorates pydantic models, not {shorten(model)}. For a function "
                "use `@tool_fn`."
            )
        if _is_decorated(model):
            raise ToolDefinitionError(
                f"`{model.__qualname__}` already is a tool. Remove one `@tool_input`."
            )
        # Declared first, and marked then: if it fails, the class is not taken for a tool.
        setattr(model, _OWN, _declared(model, output, options))
        if ToolInput not in model.__mro__:
            setattr(model, "__lutum_tool__", classmethod(find_spec))  # noqa: B010
            if not hasattr(model, "Call") and "Call" not in model.model_fields:
                setattr(model, "Call", _CallOfModel())  # noqa: B010
        _settle(model)
        return model

    return decorate if model is None else decorate(model)


def _spec(model: type[BaseModel], output_type: object, options: ToolOptions) -> AnySpec:
    """Make the specification.

    Raises:
        ToolDefinitionError: The model cannot be a tool.
        NameError: It names what is not defined yet; that is not a fault of a decoration.
    """
    place = f"Tool input `{model.__qualname__}`"
    if _is_base(model):
        raise ToolDefinitionError(
            f"`{model.__qualname__}` is a base for input models, and no tool itself. Write "
            "`class SearchArgs(ToolInput[...])`."
        )
    declared = _declared_output(model)
    if output_type is _NOT_GIVEN:
        output_type = declared
    elif declared is not _NOT_GIVEN and declared != output_type:
        raise ToolDefinitionError(
            f"{place}: `ToolInput[...]` says that its output is `{type_name(declared)}`, and "
            f"`output=` says `{type_name(output_type)}`. Keep one of them."
        )
    output_type = without_replies(place, _evaluated(place, model, output_type))
    arguments = Arguments(model, strict=options.strict)
    check_fields(place, "field", model)
    output = Output(None if output_type is _NOT_GIVEN or output_type is Any else output_type)
    own = model.__dict__.get("__doc__")
    told = options.or_else(
        name=_snake_case(model.__name__), description=cleandoc(own) if own else ""
    )
    return ToolSpec(
        definition=define(place, told, arguments=arguments, output=output),
        origin=model,
        arguments=arguments,
        output=output,
        invocation=None,
        named=(model.__name__, model.__module__, model.__qualname__),
    )


def _evaluated(place: str, model: type[BaseModel], output_type: object) -> Any:
    """Evaluate what is written as a string in an output type, if the model's module knows it."""
    if output_type is None:
        return type(None)
    if output_type is _NOT_GIVEN or isinstance(output_type, type):
        return output_type
    carrier: object = SimpleNamespace(__annotations__={"output": output_type})
    names = vars(sys.modules[model.__module__])
    try:
        return get_type_hints(carrier, globalns=names, include_extras=True)["output"]
    except NameError:
        raise
    except Exception as error:
        raise ToolDefinitionError(
            f"{place}: its output type {shorten(output_type)} cannot be evaluated "
            f"({reason_of(error)}). Write a type."
        ) from error


def _declared_output(model: type[BaseModel], meaning: Mapping[object, object] = {}) -> Any:
    """Find `Out` of `ToolInput[Out]` among the bases, through generic classes between.

    Args:
        model: The model, or one of its bases.
        meaning: What the type variables stand for by which its bases are written.
    """
    # `class Users(Paged[User])` of `class Paged(ToolInput[list[T]], Generic[T])`: for the bases of
    # `Paged` the variable `T` is `User`, so that `Out` is `list[User]`.
    generic = _generic(model)
    origin = generic.get("origin")
    if origin is not None:
        given = [_filled_in(each, meaning) for each in generic["args"]]
        if origin is ToolInput:
            return _NOT_GIVEN if isinstance(given[0], TypeVar) else given[0]
        meaning = dict(zip(_generic(origin)["parameters"], given, strict=True))
    declared = (_declared_output(e, meaning) for e in model.__bases__ if ToolInput in e.__mro__)
    return next((each for each in declared if each is not _NOT_GIVEN), _NOT_GIVEN)


def _filled_in(annotation: Any, meaning: Mapping[Any, Any]) -> Any:
    """Put what type variables stand for in their place, as pydantic does in a field."""
    if not meaning:
        return annotation
    generic: Any = Generic
    field: Any = (list[annotation], ...)
    model: Any = create_model("Filled", __base__=(_Held, generic[tuple(meaning)]), out=field)
    (filled,) = get_args(model[tuple(meaning.values())].model_fields["out"].annotation)
    return filled


class _Held(BaseModel):
    """Holds a type in a field, whatever it is: whether it has a schema is asked later."""

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)


def _snake_case(name: str) -> str:
    name = re.sub(r"(?<=.)(Args|Input)\Z", "", name)
    # `HTTPGetArgs` becomes `http_get`, and `GetUserInput` becomes `get_user`.
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


class SchemaTool:
    """The origin of a tool of a definition: a call that is unpickled makes the tool again of it."""

    def __init__(self, definition: ToolDef) -> None:
        self.definition = definition

    def __lutum_tool__(self) -> AnySpec:
        return spec_from_definition(self.definition)


def _invocation(definition: ToolDef, function: Any) -> Invocation:
    fault = f"{shorten(function)} cannot be called, or does not say what it takes"
    if has_signature(function):
        invocation = Invocation.of_handler(function, None)
        unfit = invocation.unfit(function)
        if unfit is None:
            return invocation
        fault = f"it is called with the arguments as one dict, and {unfit}"
    raise ToolDefinitionError(
        f"The function of tool {definition.name!r} cannot run it: {fault}. Pass a function of one "
        "dict."
    )


def spec_from_definition(
    definition: ToolDef, function: Callable[..., object] | None = None, *, is_checked: bool = False
) -> AnySpec:
    """Make a tool of a definition.

    Args:
        definition: The definition.
        function: What runs the tool: a function of the arguments as one dict.
        is_checked: Whether the function itself checks its output.

    Raises:
        ToolDefinitionError: The function cannot take the arguments.
    """
    arguments = SchemaArguments(definition)
    check_targets(f"Tool {definition.name!r}", definition, arguments)
    words = "".join(word[:1].upper() + word[1:] for word in definition.name.split("_"))
    return ToolSpec(
        definition=definition,
        origin=SchemaTool(definition),
        arguments=arguments,
        output=Output(None) if is_checked else SchemaOutput(definition),
        invocation=None if function is None else _invocation(definition, function),
        named=(words if words.isidentifier() else "Schema", __name__, definition.name),
    )
