"""`@tool_fn`: a function becomes a tool, checked as far as it can be."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from .._call.reply import Reply, without_replies
from .._call.spec import AnySpec, FnSpec, ToolSpec
from .._schema.arguments import check_input, function_arguments
from .._schema.definition import ToolDef, ToolOptions, define
from .._schema.invocation import Invocation
from .._schema.output import Output
from .._schema.signature import (
    REQUIRED,
    ModelName,
    own_docstring,
    parse_docstring,
    read_signature,
)
from .._text.immutable import Settled
from .._text.json import shorten
from .._text.on_demand import ONCE
from ..errors import ToolDefinitionError

if TYPE_CHECKING:
    from .._call.call import FnCall, ToolCall
    from .._call.spec import ToolSpec
    from .._schema.capabilities import ToolCapabilities
    from .._schema.definition import ToldOfTool
    from .._schema.input_model import FnInput


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

    def __init__(self, place: str, make: Callable[[], AnySpec]) -> None:
        self._place = place
        self._make: Callable[[], AnySpec] | None = make
        self._spec: AnySpec | None = None
        with suppress(NameError):
            self._build()

    def _build(self) -> AnySpec:
        make: Any = self._make  # read first, since it goes when there is a specification
        # Annotations are evaluated without the lock, for that may import modules, which takes locks
        # of its own. Two threads may do it at once; the one that is first keeps its result.
        spec: AnySpec = self._spec or make()
        with ONCE:
            self._spec = self._spec or spec
        self._make = None
        return self._spec

    def spec(self) -> AnySpec:
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


def _local_names(tool: Callable[..., object], frame: FrameType | None) -> dict[str, object] | None:
    """Collect what annotations may name besides the module: the locals around the definition.

    Those of a class body count, and those of the function around it; those of a helper that only
    applies the decorator do not.
    """
    # A function written in `make.<locals>.Tools` may name what is local to `make` and to the body
    # of `Tools`; frames further out belong to whoever called.
    written: str = inspect.unwrap(tool).__qualname__
    names: dict[str, object] = {}
    while frame is not None and frame.f_locals is not frame.f_globals:
        if not written.startswith(f"{frame.f_code.co_qualname}."):
            break
        names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names or None


Params = ParamSpec("Params")
Unbound = ParamSpec("Unbound")
Bound = TypeVar("Bound")
Returned_co = TypeVar("Returned_co", covariant=True)
Returned = TypeVar("Returned")
InputType = TypeVar("InputType")
Out = TypeVar("Out")


# `add.Call` is `type[FnCall[[int, int], int]]` to a type checker, also if `add` is async or returns
# a `Reply`. A descriptor with overloads can say that; a property could not look through `Awaitable`
# and `Reply`.
class CallOf:
    """Gives the class of the calls of a function, by what the function gives."""

    @overload
    def __get__(
        self, fn: ToolFn[Params, Awaitable[Reply[Out]] | Reply[Out]], owner: object, /
    ) -> type[FnCall[Params, Out]]: ...
    @overload
    def __get__(
        self, fn: ToolFn[Params, Awaitable[Out]], owner: object, /
    ) -> type[FnCall[Params, Out]]: ...
    @overload
    def __get__(self, fn: ToolFn[Params, Out], owner: object, /) -> type[FnCall[Params, Out]]: ...
    @overload
    def __get__(self, fn: None, owner: object, /) -> Self: ...
    def __get__(self, fn: Any, owner: object, /) -> Any:
        """Return the class of the calls; for `ToolFn` itself, this descriptor."""
        return self if fn is None else fn.__lutum_fn__().call_type


class DecoratedFn(Settled, Generic[Params, Returned_co]):
    """What `@tool_fn` makes of a function, whichever way its input is typed.

    Attributes:
        definition: What the model is told about it.
        name: Its name on the wire.
    """

    _way = "say it where the tool is declared, as in `@tool_fn(timeout=5)`"
    __wrapped__: Callable[Params, Returned_co]
    __qualname__: str

    def __init__(
        self,
        function: Callable[Params, Returned_co],
        options: ToolOptions,
        frame: FrameType | None,
        input_type: object = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._docstring = docstring = parse_docstring(function.__doc__)
        self._options = options.or_else(name=function.__name__, description=docstring.description)
        self._is_silent = options.description is None and not docstring.description
        self._input_type = input_type
        # The frame is kept only if an annotation names what is defined later: by the time the tool
        # is used, its locals have that name.
        self._place = f"Tool function `{self.__qualname__}`"
        self._declared = Declared(self._place, functools.partial(self._make, frame))

    def _make(self, frame: FrameType | None) -> AnySpec:
        """Make the specification.

        Args:
            frame: Where it was decorated, for annotations that name what is local there.

        Raises:
            ToolDefinitionError: The function cannot become a tool.
            NameError: An annotation names what is not defined yet.
        """
        function, options = self.__wrapped__, self._options
        names = _local_names(self, frame)
        signature = read_signature(function, self._docstring, skip=options.skip, namespace=names)
        if self._input_type is not None:
            check_input(self._place, signature, self._input_type)
        # `web_search` becomes `WebSearchInput`, and its calls `WebSearchInputCall`.
        words = re.findall(r"[^\W_]+", function.__name__)
        input_name = "".join(word[:1].upper() + word[1:] for word in words) + "Input"
        model = ModelName(input_name, self.__module__, self.__qualname__)
        arguments, fields = function_arguments(model, signature, strict=options.strict)
        if fields is None:
            input_name = arguments.type.__name__
            # The class is described where it is: for the tool, or else for its input.
            about = own_docstring(arguments.type)
            if self._is_silent:
                options = replace(options, description=about)
            else:
                arguments.about = about
        declared = without_replies(self._place, signature.output)
        output = Output(None if declared is REQUIRED or declared is Any else declared)
        make: Any = FnSpec if self._input_type is None else ToolSpec
        made: AnySpec = make(
            definition=define(self._place, options, arguments=arguments, output=output),
            origin=self,
            arguments=arguments,
            output=output,
            invocation=Invocation(function, signature, fields),
            named=(input_name, function.__module__, self.__qualname__),
        )
        return made

    def _made(self) -> AnySpec:
        """Return the tool's specification.

        Raises:
            ToolDefinitionError: An annotation names something that still is not defined.
        """
        return self._declared.spec()

    def __lutum_bound__(self, method: MethodType) -> AnySpec:
        """Return the specification of the tool as a method of one instance.

        Raises:
            ToolDefinitionError: The instance is not what the function takes first.
        """
        own = self._made()
        invocation = own.invocation
        bound = None if invocation is None else invocation.bound_to(method.__self__)
        if bound is None:
            raise ToolDefinitionError(
                f"Tool function `{self.__qualname__}` does not take an instance first: its first "
                "parameter is filled in by the model. Leave `self` without an annotation."
            )
        # Another specification for each instance: the origin and what is run differ, and what the
        # model is told is the same object.
        return type(own)(
            definition=own.definition,
            origin=method,
            arguments=own.arguments,
            output=own.output,
            invocation=bound,
            named=(*own._named[:2], self.__qualname__),
        )

    def __call__(self, /, *args: Params.args, **kwargs: Params.kwargs) -> Returned_co:
        """Call the function as it was written."""
        return self.__wrapped__(*args, **kwargs)

    if not TYPE_CHECKING:

        def __get__(self, obj: object, owner: object = None, /) -> Any:
            return self if obj is None else MethodType(self, obj)

    @property
    def Handled(self) -> type[Any]:  # noqa: N802 - a class, named as one
        """The class of the calls that a hook handled."""
        return self._made().handled_type

    @property
    def definition(self) -> ToolDef:
        """What the model is told about the tool."""
        return self._made().definition

    @property
    def name(self) -> str:
        """The name on the wire."""
        return cast("str", self._options.name)  # filled in when it was decorated

    def __repr__(self) -> str:
        return f"<tool_fn {self.__qualname__}: {self.name!r}>"

    def __reduce__(self) -> str:
        return self.__qualname__


class ToolFn(DecoratedFn[Params, Returned_co]):
    """A decorated function: call it as before, or give it to `tool()`.

    Attributes:
        Input: The model of its arguments, as in `web_search.Input(query="x")`.
        Call: The class of its calls.
        definition: What the model is told about it.
        name: Its name on the wire.
    """

    @overload
    def __lutum_fn__(
        self: ToolFn[Params, Awaitable[Reply[Out]] | Reply[Out]],
    ) -> FnSpec[Params, Out]: ...
    @overload
    def __lutum_fn__(self: ToolFn[Params, Awaitable[Out]]) -> FnSpec[Params, Out]: ...
    @overload
    def __lutum_fn__(self: ToolFn[Params, Out]) -> FnSpec[Params, Out]: ...
    def __lutum_fn__(self: Any) -> Any:
        """Return the tool's specification.

        Raises:
            ToolDefinitionError: An annotation names something that still is not defined.
        """
        return self._made()

    if TYPE_CHECKING:
        # For a bound method, Python's own attribute access finds what the function has. What does
        # not take the instance first is a static method.

        @overload
        def __get__(self, obj: None, owner: type, /) -> Self: ...
        @overload
        def __get__(
            self: Callable[Concatenate[Bound, Unbound], Returned], obj: Bound, owner: type, /
        ) -> ToolFn[Unbound, Returned]: ...
        @overload
        def __get__(self, obj: object, owner: type, /) -> Self: ...
        def __get__(self, obj: object, owner: object = None, /) -> object: ...
        def __lutum_sent__(self) -> Callable[Params, Returned_co]: ...

    Call: ClassVar[CallOf] = CallOf()

    @property
    def Input(self) -> type[FnInput]:  # noqa: N802 - a class, named as one
        """The model of the arguments."""
        model: type[FnInput] = self._made().arguments.type
        return model


# For the overloads of `tool()`: a `HidingFn` is a `ToolFn` as well, and of two overloads that both
# fit mypy makes `Any`, wherever an argument has an `Any` in it, as `Coroutine[Any, Any, int]` has.
class SentFn(Protocol[Params, Returned_co]):
    """A function decorated with `@tool_fn` of which no parameter is hidden by `skip=`."""

    def __lutum_sent__(self) -> Callable[Params, Returned_co]:
        """Return what is called."""
        ...


# For the last overload, which an async function fits as well: it says of that what the one before
# says, `int` of `async def f(row: dict[str, Any]) -> int`, so that mypy is in no doubt.
class GivingFn(SentFn[Params, Any], Protocol[Params, Out]):
    """The same, by what it gives once it is awaited."""

    def __lutum_fn__(self) -> FnSpec[Params, Out]:
        """Return the tool's specification."""
        ...


class HidingFn(ToolFn[Params, Returned_co], Generic[Params, Returned_co, Out]):
    """A function decorated with `@tool_fn(skip=...)`: the model does not send all of it.

    At run time it is a plain `ToolFn`.
    """

    if TYPE_CHECKING:

        def __lutum_sent__(self) -> None: ...  # type: ignore[override]
        @overload
        def __get__(self, obj: None, owner: type, /) -> Self: ...
        @overload
        def __get__(
            self: Callable[Concatenate[Bound, Unbound], Returned], obj: Bound, owner: type, /
        ) -> HidingFn[Unbound, Returned, Out]: ...
        @overload
        def __get__(self, obj: object, owner: type, /) -> Self: ...
        def __get__(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, obj: object, owner: object = None, /
        ) -> object: ...


class ModelFn(DecoratedFn[Params, Returned_co], Generic[Params, Returned_co, InputType, Out]):
    """A function decorated with `@tool_fn(input=...)`: one parameter of it is the whole input.

    Attributes:
        Input: The type of the input.
        Call: The class of its calls.
        definition: What the model is told about it.
        name: Its name on the wire.
    """

    def __lutum_tool__(self) -> ToolSpec[InputType, Out]:
        """Return the tool's specification.

        Raises:
            ToolDefinitionError: An annotation names something that still is not defined.
        """
        return self._made()

    if TYPE_CHECKING:

        @overload
        def __get__(self, obj: None, owner: type, /) -> Self: ...
        @overload
        def __get__(
            self: Callable[Concatenate[Bound, Unbound], Returned], obj: Bound, owner: type, /
        ) -> ModelFn[Unbound, Returned, InputType, Out]: ...
        @overload
        def __get__(self, obj: object, owner: type, /) -> Self: ...
        def __get__(self, obj: object, owner: object = None, /) -> object: ...

    @property
    def Input(self) -> type[InputType]:  # noqa: N802 - a class, named as one
        """The type of the input."""
        kind: type[Any] = self._made().arguments.type
        return kind

    @property
    def Call(self) -> type[ToolCall[InputType, Out]]:  # noqa: N802 - a class, named as one
        """The class of the calls."""
        return self._made().call_type


class ToolFnDecorator(Protocol):
    """What `@tool_fn(...)` gives: it takes a function, and makes a tool of it."""

    def __call__(self, fn: Callable[Params, Returned], /) -> ToolFn[Params, Returned]:
        """Make a tool of a function."""
        ...


class HidingFnDecorator(Protocol):
    """What `@tool_fn(skip=...)` gives: it takes a function, and makes a tool of it."""

    @overload
    def __call__(
        self, fn: Callable[Params, Coroutine[Any, Any, Reply[Out]]], /
    ) -> HidingFn[Params, Coroutine[Any, Any, Reply[Out]], Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Coroutine[Any, Any, Out]], /
    ) -> HidingFn[Params, Coroutine[Any, Any, Out], Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Awaitable[Out]], /
    ) -> HidingFn[Params, Awaitable[Out], Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Reply[Out]], /
    ) -> HidingFn[Params, Reply[Out], Out]: ...
    @overload
    def __call__(self, fn: Callable[Params, Out], /) -> HidingFn[Params, Out, Out]: ...


class ModelFnDecorator(Protocol[InputType]):
    """What `@tool_fn(input=...)` gives: it takes a function, and makes a tool of it."""

    @overload
    def __call__(
        self, fn: Callable[Params, Coroutine[Any, Any, Reply[Out]]], /
    ) -> ModelFn[Params, Coroutine[Any, Any, Reply[Out]], InputType, Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Coroutine[Any, Any, Out]], /
    ) -> ModelFn[Params, Coroutine[Any, Any, Out], InputType, Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Awaitable[Out]], /
    ) -> ModelFn[Params, Awaitable[Out], InputType, Out]: ...
    @overload
    def __call__(
        self, fn: Callable[Params, Reply[Out]], /
    ) -> ModelFn[Params, Reply[Out], InputType, Out]: ...
    @overload
    def __call__(self, fn: Callable[Params, Out], /) -> ModelFn[Params, Out, InputType, Out]: ...


@overload
def tool_fn(fn: Callable[Params, Returned], /) -> ToolFn[Params, Returned]: ...
@overload
def tool_fn(
    *, input: type[InputType], skip: Sequence[str] = (), **told: Unpack[ToldOfTool]
) -> ModelFnDecorator[InputType]: ...
@overload
def tool_fn(*, skip: Sequence[str], **told: Unpack[ToldOfTool]) -> HidingFnDecorator: ...
@overload
def tool_fn(**told: Unpack[ToldOfTool]) -> ToolFnDecorator: ...
def tool_fn(
    fn: Any = None,
    /,
    *,
    input: Any = None,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
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
            `self`, a `ToolContext`, and what is skipped are hidden from it. A single one without
            a default that is a model, a dataclass or a `TypedDict` is the whole input: its fields
            are the arguments. What the model reads of a parameter is the description of a pydantic
            `Field`, what the docstring says of it, or a text as in `Annotated[str, "Where."]`.
        input: The type of the one parameter that is the whole input, which checkers then know.
        name: The name on the wire; the function's own by default.
        description: What the model is told; the docstring's text by default.
        title: A name for people, in displays and where a protocol has a field for it.
        skip: Names of parameters to hide from the model.
        timeout: Seconds that a run may take, in `call()` and under `execution`.
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
    options = ToolOptions(
        name=name,
        description=description,
        title=title,
        skip=skip,
        timeout=timeout,
        category=category,
        capabilities=capabilities,
        idempotent=idempotent,
        strict=strict,
    )
    # Inside of a function, annotations may name its locals; a module's names are found anyway.
    frame = sys._getframe(1)

    def decorate(function: Any) -> Any:
        _check_function(function, name)
        make: Any = ToolFn if input is None else ModelFn
        return make(function, options, frame, input)

    return decorate if fn is None else decorate(fn)


def _check_function(function: object, name: str | None) -> None:
    if isinstance(function, staticmethod):
        raise ToolDefinitionError(
            f"`@tool_fn` is above @staticmethod on `{function.__qualname__}`. Write "
            "@staticmethod above @tool_fn."
        )
    if isinstance(function, classmethod):
        raise ToolDefinitionError(
            f"`{function.__qualname__}` is a class method, which no tool can be: nobody passes the "
            "class where a call is run. Make it a plain method, a static method or a function."
        )
    inner = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(inner, DecoratedFn):
        raise ToolDefinitionError(f"{inner!r} already is a tool. Remove one `@tool_fn`.")
    if not inspect.isroutine(inner) or not hasattr(inner, "__globals__"):
        raise ToolDefinitionError(
            f"`@tool_fn` decorates functions and methods, not {shorten(function)}. For a model of "
            "the arguments use `@tool_input`; around anything else that can be called write a "
            "function."
        )
    if name is None and not inner.__name__.isidentifier():
        raise ToolDefinitionError(
            f"`@tool_fn` got a function without a name, {inner.__name__!r}. Pass one, as in "
            "`tool_fn(name='add')(function)`, or write it with `def`."
        )
