"""`@tool_fn`: a function becomes a tool and stays the function that it was."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from typing_extensions import Self

from ._arguments import Arguments
from ._call import ToolCall
from ._capabilities import ToolCapabilities
from ._definition import ToolDef
from ._docstring import Docstring, parse_docstring
from ._input_model import FnInput, build_input_model, field_names, sole_input
from ._invocation import Invocation
from ._options import Options, define
from ._output import Output
from ._signature import REQUIRED, Signature, read_signature
from ._spec import ToolSpec
from .errors import ToolDefinitionError

__all__ = ["ToolFn", "tool_fn"]

P = ParamSpec("P")
P2 = ParamSpec("P2")
R = TypeVar("R")
Out = TypeVar("Out")


class ToolFn(Generic[P, R, Out]):
    """A decorated function: call it as before, or give it to `tool()`.

    Attributes:
        Input: The model of its arguments, as in `web_search.Input(query="x")`.
        Call: The class of its calls.
        definition: What the model is told of it.
        name: Its name on the wire.
    """

    def __init__(
        self,
        function: Callable[P, R],
        options: Options,
        namespace: Mapping[str, Any] | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._options = options
        self._docstring = parse_docstring(function.__doc__)
        self._namespace = namespace
        self._spec: ToolSpec[Any, Out] | None = None
        self._read_if_defined()

    def _read_if_defined(self) -> None:
        """Build the tool now; where an annotation names what comes later, on first use."""
        try:
            self._spec = _build(self, self._options, self._docstring, self._namespace)
        except NameError:
            return
        self._namespace = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]
        return result

    @overload
    def __get__(self, obj: None, owner: type, /) -> Self: ...
    @overload
    def __get__(
        self: Callable[Concatenate[Any, P2], R], obj: object, owner: type, /
    ) -> Callable[P2, R]: ...
    def __get__(self, obj: Any, owner: Any = None, /) -> Any:
        return self if obj is None else MethodType(self, obj)

    def __lutum_tool__(self) -> ToolSpec[Any, Out]:
        """Give the tool's specification.

        Raises:
            ToolDefinitionError: An annotation names something that still is not defined.
        """
        if self._spec is None:
            try:
                self._spec = _build(self, self._options, self._docstring, self._namespace)
            except NameError as error:
                raise ToolDefinitionError(
                    f"Tool function `{_qualname(self)}`: an annotation names `{error.name}`, which "
                    "is not defined. Define it (or import it, not only under `TYPE_CHECKING`) "
                    "before the tool is used."
                ) from error
        return self._spec

    @property
    def Input(self) -> type[FnInput]:  # noqa: N802 - a class, named as one
        """The model of the arguments."""
        model: type[FnInput] = self.__lutum_tool__().arguments.type
        return model

    @property
    def Call(self) -> type[ToolCall[Any, Out]]:  # noqa: N802 - a class, named as one
        """The class of the calls."""
        return self.__lutum_tool__().call_type

    @property
    def Handled(self) -> Any:  # noqa: N802 - a class, named as one
        """The class of the calls that a hook handled."""
        return self.__lutum_tool__().handled_type

    @property
    def definition(self) -> ToolDef:
        """What the model is told of the tool."""
        return self.__lutum_tool__().definition

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self._options.name or self.__name__  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<tool_fn {_qualname(self)}: {self.name!r}>"

    def __reduce__(self) -> str:
        return _qualname(self)


def _qualname(tool: Any) -> str:
    name: str = tool.__qualname__
    return name


def _build(
    tool: Any,
    options: Options,
    docstring: Docstring,
    namespace: Mapping[str, Any] | None,
) -> ToolSpec[Any, Any]:
    function = tool.__wrapped__
    signature = read_signature(function, docstring, skip=options.skip, namespace=namespace)
    qualname = _qualname(tool)
    words = function.__name__.split("_")
    input_name = "".join(word[:1].upper() + word[1:] for word in words) + "Input"
    whole = sole_input(signature.parameters)
    fields: dict[str, str] | None = None
    if whole is None:
        fields = field_names(signature.parameters)
        whole = build_input_model(
            input_name,
            signature.parameters,
            fields,
            module=function.__module__,
            qualname=f"{qualname}.Input",
            strict=options.strict,
        )
        arguments = Arguments(whole)
    else:
        arguments = _declare(f"Tool function `{qualname}`", signature, options.strict)
        input_name = getattr(whole, "__name__", input_name)
    output = Output(None if signature.output in (REQUIRED, Any) else signature.output)
    return ToolSpec(
        definition=define(
            f"Tool function `{qualname}`",
            name=tool.name,
            description=docstring.description
            if options.description is None
            else options.description,
            arguments=arguments,
            output=output,
            options=options,
        ),
        origin=tool,
        arguments=arguments,
        output=output,
        invocation=Invocation(function, signature, fields),
        input_name=input_name,
        module=function.__module__,
        qualname=qualname,
    )


def _declare(place: str, signature: Signature, strict: bool) -> Arguments:
    parameter = signature.parameters[0]
    try:
        return Arguments(parameter.annotation, strict=strict)
    except NameError:
        raise
    except Exception as error:
        reason = str(error).split("\n", 1)[0]
        raise ToolDefinitionError(
            f"{place}: parameter `{parameter.name}` has no schema ({reason}). Use types that "
            "pydantic knows."
        ) from error


class _ToolFnDecorator(Protocol):
    @overload
    def __call__(
        self, fn: Callable[P, Coroutine[Any, Any, Out]], /
    ) -> ToolFn[P, Coroutine[Any, Any, Out], Out]: ...
    @overload
    def __call__(self, fn: Callable[P, Out], /) -> ToolFn[P, Out, Out]: ...


@overload
def tool_fn(
    fn: Callable[P, Coroutine[Any, Any, Out]], /
) -> ToolFn[P, Coroutine[Any, Any, Out], Out]: ...
@overload
def tool_fn(fn: Callable[P, Out], /) -> ToolFn[P, Out, Out]: ...
@overload
def tool_fn(
    *,
    name: str | None = None,
    description: str | None = None,
    skip: Sequence[str] = (),
    timeout: float | None = None,
    category: str | None = None,
    capabilities: ToolCapabilities | None = None,
    idempotent: bool = False,
    strict: bool = False,
) -> _ToolFnDecorator: ...
def tool_fn(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    skip: Sequence[str] = (),
    timeout: float | None = None,
    category: str | None = None,
    capabilities: ToolCapabilities | None = None,
    idempotent: bool = False,
    strict: bool = False,
) -> Any:
    """Turn a function into a typed tool; it can still be called as before.

    Args:
        fn: An async or plain function, or a method. The model fills in its annotated parameters;
            `self`, a `ToolContext`, and what is skipped are hidden from it.
        name: The name on the wire; the function's own by default.
        description: What the model is told; the docstring's text by default.
        skip: Names of parameters to hide from the model.
        timeout: Seconds that a run may take under `execution`.
        category: A word by which the program groups tools.
        capabilities: What the tool does to the world.
        idempotent: Whether a second run of the same call does no harm.
        strict: Refuse arguments that would have to be coerced.

    Raises:
        ToolDefinitionError: The function cannot become a tool; the text names the parameter and
            the remedy.

    Example:
        >>> from lutum_py import tool_fn
        >>> @tool_fn
        ... def add(a: int, b: int = 1) -> int:
        ...     '''Add two numbers.'''
        ...     return a + b
        >>> add(1, 2)
        3
        >>> add.definition.input_schema["required"]
        ['a']
    """
    if isinstance(skip, str):
        raise ToolDefinitionError(f"skip= takes names in a tuple: write skip=({skip!r},).")
    options = Options(
        name=name,
        description=description,
        skip=tuple(skip),
        timeout=timeout,
        category=category,
        capabilities=capabilities,
        idempotent=idempotent,
        strict=strict,
    )
    frame = sys._getframe(1)
    # Inside of a function, annotations may name its locals; a module's names are found anyway.
    namespace = None if frame.f_locals is frame.f_globals else dict(frame.f_locals)

    def decorate(function: Any) -> Any:
        if isinstance(function, staticmethod | classmethod):
            raise ToolDefinitionError(
                f"`@tool_fn` stands above @{type(function).__name__}, which is no function yet. "
                f"Write @{type(function).__name__} above @tool_fn."
            )
        if isinstance(function, ToolFn):
            raise ToolDefinitionError(f"{function!r} already is a tool. Remove one `@tool_fn`.")
        if (
            not callable(function)
            or not hasattr(function, "__annotations__")
            or isinstance(function, type)
        ):
            raise ToolDefinitionError(
                f"`@tool_fn` decorates functions and methods, not {function!r}. For a model of the "
                "arguments use `@tool_input`."
            )
        return ToolFn(function, options, namespace)

    return decorate if fn is None else decorate(fn)
