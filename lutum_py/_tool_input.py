"""`@tool_input` and `ToolInput`: a model of the arguments becomes a tool without a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, ClassVar, Generic, TypeVar, get_args, overload

from pydantic import BaseModel, ConfigDict
from typing_extensions import Self

from ._arguments import Arguments
from ._capabilities import ToolCapabilities
from ._output import Output
from ._spec import ToolSpec
from ._options import Options, define
from .errors import ToolDefinitionError

__all__ = ["ToolInput", "find_spec", "tool_input"]

Out = TypeVar("Out")
M = TypeVar("M", bound=BaseModel)

_OWN_SPEC = "__lutum_spec__"
_NOT_GIVEN: Any = object()


class _CallOfModel:
    """Gives `Model.Call`, the class of the calls of an input model."""

    def __get__(self, instance: object, owner: Any) -> Any:
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

    model_config = ConfigDict(extra="forbid")

    Call: ClassVar[Any] = _CallOfModel()

    @classmethod
    def __lutum_tool__(cls) -> ToolSpec[Self, Out]:
        """Give the tool's specification, made on first use where there is no decorator."""
        return find_spec(cls)


def find_spec(model: type[BaseModel]) -> ToolSpec[Any, Any]:
    """Return the specification of an input model.

    Raises:
        ToolDefinitionError: The model is not declared as a tool.
    """
    own: ToolSpec[Any, Any] | None = model.__dict__.get(_OWN_SPEC)
    if own is not None:
        return own
    for base in model.__mro__[1:]:
        if base.__dict__.get("__lutum_decorated__"):
            raise ToolDefinitionError(
                f"`{model.__qualname__}` inherits from the tool `{base.__qualname__}`, but is no "
                "tool itself. Decorate it with `@tool_input(...)`, under a name of its own."
            )
    if not issubclass(model, ToolInput):
        raise ToolDefinitionError(
            f"`{model.__qualname__}` is a model, but no tool. Decorate it with "
            "`@tool_input(output=...)`, or let it inherit from `ToolInput[...]`."
        )
    return _declare(model, _declared_output(model), Options())


@overload
def tool_input(model: type[M], /) -> type[M]: ...
@overload
def tool_input(
    *,
    output: Any = ...,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    category: str | None = None,
    capabilities: ToolCapabilities | None = None,
    idempotent: bool = False,
    strict: bool = False,
) -> Callable[[type[M]], type[M]]: ...
def tool_input(
    model: Any = None,
    /,
    *,
    output: Any = _NOT_GIVEN,
    name: str | None = None,
    description: str | None = None,
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
        timeout: Seconds that a run may take under `execution`.
        category: A word by which the program groups tools.
        capabilities: What the tool does to the world.
        idempotent: Whether a second run of the same call does no harm.
        strict: Refuse arguments that would have to be coerced.

    Raises:
        ToolDefinitionError: The class is no pydantic model of an object.

    Example:
        >>> from pydantic import BaseModel
        >>> from lutum_py import tool_input
        >>> @tool_input(output=str)
        ... class GetUserArgs(BaseModel):
        ...     user_id: str
        >>> GetUserArgs.Call.__name__
        'GetUserArgsCall'
    """
    options = Options(
        name=name,
        description=description,
        skip=(),
        timeout=timeout,
        category=category,
        capabilities=capabilities,
        idempotent=idempotent,
        strict=strict,
    )

    def decorate(model: Any) -> Any:
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise ToolDefinitionError(
                f"`@tool_input` decorates pydantic models, not {model!r}. For a function use "
                "`@tool_fn`."
            )
        declared = _declared_output(model) if output is _NOT_GIVEN else output
        _declare(model, declared, options)
        model.__lutum_decorated__ = True
        return model

    return decorate if model is None else decorate(model)


def _declare(model: type[BaseModel], output_type: Any, options: Options) -> ToolSpec[Any, Any]:
    place = f"Tool input `{model.__qualname__}`"
    documented = _documented(model)
    arguments = Arguments(model, strict=options.strict, documented=documented)
    output = Output(None if output_type in (_NOT_GIVEN, Any) else output_type)
    description = options.description
    if description is None:
        own = model.__dict__.get("__doc__")
        description = cleandoc(own) if own else ""
    spec: ToolSpec[Any, Any] = ToolSpec(
        definition=define(
            place,
            name=options.name or _snake_case(model.__name__),
            description=description,
            arguments=arguments,
            output=output,
            options=options,
        ),
        origin=model,
        arguments=arguments,
        output=output,
        invocation=None,
        input_name=model.__name__,
        module=model.__module__,
        qualname=model.__qualname__,
    )
    setattr(model, _OWN_SPEC, spec)
    if not issubclass(model, ToolInput):
        for name, value in (("Call", spec.call_type), ("__lutum_tool__", lambda: spec)):
            if name not in model.model_fields:
                setattr(model, name, value)
    return spec


def _documented(model: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    """List the models whose attribute docstrings describe fields: the model, or those of its union."""
    if not model.__pydantic_root_model__:
        return (model,)
    members = _members(model.model_fields["root"].annotation)
    return tuple(part for part in members if isinstance(part, type) and issubclass(part, BaseModel))


def _members(annotation: Any) -> list[Any]:
    inner = get_args(annotation)
    return [part for each in inner for part in _members(each)] if inner else [annotation]


def _declared_output(model: type[BaseModel]) -> Any:
    """Find `Out` of `ToolInput[Out]` among the bases."""
    for base in model.__mro__:
        generic = base.__dict__.get("__pydantic_generic_metadata__", {})
        if generic.get("origin") is ToolInput and generic["args"]:
            declared = generic["args"][0]
            return _NOT_GIVEN if isinstance(declared, TypeVar) else declared
    return _NOT_GIVEN


def _snake_case(name: str) -> str:
    for ending in ("Args", "Input"):
        if name.endswith(ending) and name != ending:
            name = name.removesuffix(ending)
            break
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
