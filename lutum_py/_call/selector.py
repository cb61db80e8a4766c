"""The members of a toolset: each names one tool on one path."""

from __future__ import annotations

from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeGuard,
    cast,
    overload,
)

from pydantic_core import PydanticCustomError, core_schema
from typing_extensions import TypeVar

from .._schema.definition import ToolDef
from .._text.escaping import escape_unprintable
from .._text.immutable import Immutable
from .._text.json import shorten
from ..errors import InvalidArgumentsError, MisuseError
from .spec import PLAIN, UNSET, Conditions, FnSpec, MemberOptions, ToolSpec, conditions_of, spec_of

if TYPE_CHECKING:
    from .._context.context import ToolContext
    from .._transcript.result import ToolResult
    from .call import AnyToolCall, FnCall, ToolCall
    from .decisions import RunNormally
    from .spec import AnySpec, Rule

P = ParamSpec("P")
Sent = ParamSpec("Sent")
In = TypeVar("In", default=Any)
Out = TypeVar("Out", default=Any)


class AnySelector(Immutable):
    """A member of any toolset.

    Attributes:
        name: The tool's name on the wire, prefixes included.
        path: The names of the members that lead to it, as in `("data", "get_user")`.
        toolset: The toolset that it is a member of; None for a tool outside of any.
        index: Its place in the order of declaration.
        options: What was said about the member, and of all that it is in.
        timeout: Seconds that a run may take; None for no limit.
        approval: The conditions under which a call needs an approval; empty if it never does.
        rules: What reviews each call.
        needs_review: Whether there are approvals or rules, so that a call starts only once it was
            reviewed.
    """

    spec: AnySpec
    name: str
    path: tuple[str, ...]
    toolset: type[Any] | None
    inner: Selector[Any, Any] | None
    index: int
    options: MemberOptions
    timeout: float | None
    approval: Conditions
    rules: tuple[Rule, ...]
    needs_review: bool
    _definition: ToolDef | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        spec: AnySpec,
        *,
        path: tuple[str, ...] = (),
        toolset: type[Any] | None = None,
        inner: Selector[Any, Any] | None = None,
        index: int = 0,
        options: MemberOptions = PLAIN,
    ) -> None:
        approval = conditions_of(options)
        self._put(
            spec=spec,
            name=options.prefix + spec.definition.name,
            path=path,
            toolset=toolset,
            inner=inner,
            index=index,
            options=options,
            timeout=spec.definition.timeout if options.timeout is UNSET else options.timeout,
            approval=approval,
            rules=options.rules,
            needs_review=bool(approval or options.rules),
            _definition=None,
        )

    # For the selector class of each toolset, which sets this; checkers take every such class for
    # this one.
    of_toolset: Any

    @classmethod
    def all(cls) -> tuple[Selector[Any, Any], ...]:
        """Return every selector, in the order of declaration."""
        return tuple(cls.of_toolset)

    @classmethod
    def try_from_name(cls, name: str) -> Selector[Any, Any] | None:
        """Return the selector of a wire name, or None."""
        is_known = isinstance(name, str) and name in cls.of_toolset
        return cls.from_name(name) if is_known else None

    @classmethod
    def from_name(cls, name: str) -> Selector[Any, Any]:
        """Return the selector of a wire name.

        Raises:
            UnknownToolError: There is none; the error suggests a near one.
        """
        return cast("Selector[Any, Any]", cls.of_toolset[name])

    @property
    def is_off(self) -> bool:
        """Whether it is left out unless it is asked for; so is what is deferred."""
        return self.options.off or self.is_deferred

    @property
    def is_deferred(self) -> bool:
        """Whether it is left out until a search of the model loads it.

        What is off stays off, and a search for tools is never deferred itself.
        """
        options = self.options
        return options.deferred and not options.off and not self.loads_tools

    @property
    def loads_tools(self) -> bool:
        """Whether it is a search for tools, as `tool_search()` makes one."""
        return getattr(self.spec.origin, "loads_tools", False)

    @property
    def definition(self) -> ToolDef:
        """The tool's definition under its wire name."""
        if self._definition is None:
            own = self.spec.definition
            prefix = self.options.prefix
            made = own.with_name(prefix + own.name) if prefix else own
            if made.timeout != self.timeout:
                made = made.with_timeout(self.timeout)
            if self.options.callers:
                made = made.with_callers(self.options.callers)
            self._put(_definition=made)
            return made
        return self._definition

    @property
    def Call(self) -> type[ToolCall[Any, Any]]:  # noqa: N802 - a class, named as one
        """The class of the tool's calls, for `isinstance` and `case`."""
        return self.spec.call_type

    def arguments_of(self, result: ToolResult) -> Any:
        """Return the arguments that a result answers, as data; None if they no longer fit."""
        if result.ran_with is not None:
            return result.ran_with
        from .._transcript.assistant import ToolMetadata
        from .call_state import DecodedCall

        metadata = ToolMetadata(id=result.id, name=result.name, arguments=result.arguments)
        try:
            return self.spec.arguments.to_data(DecodedCall.decode(self, metadata).current_input)
        except (InvalidArgumentsError, TypeError, ValueError, RecursionError):
            return None

    def accepts(self, arguments: str) -> bool:
        """Whether the arguments that a model sends, as text, fit the tool."""
        from .._transcript.assistant import ToolMetadata
        from .call_state import DecodedCall

        try:
            DecodedCall.decode(self, ToolMetadata(id="", name=self.name, arguments=arguments))
        except InvalidArgumentsError:
            return False
        return True

    def _reaches(self, toolset: type[Any]) -> Selector[Any, Any] | None:
        """Return what this selector is as a member of another toolset that it leads through."""
        selector: Any = self
        # `App.data.find` was made of `Data.find`, which is its `inner`: the way goes from the
        # outermost toolset in.
        while selector is not None and selector.toolset is not toolset:
            selector = selector.inner
        reached: Selector[Any, Any] | None = selector
        return reached

    def selects(self, call: AnyToolCall) -> bool:
        """Whether a call came in through this member, or through a parent of it."""
        return call.selector._leads_to(self)

    def _leads_to(self, selector: AnySelector) -> bool:
        step: AnySelector | None = self
        while step is not None and step is not selector:
            step = step.inner
        return step is not None

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, AnySelector) or other.toolset is not self.toolset:
            return NotImplemented
        return self.index < other.index

    def __repr__(self) -> str:
        owner = "" if self.toolset is None else f"{self.toolset.__qualname__}."
        return f"<Selector {owner}{escape_unprintable('.'.join(self.path))}: {self.name!r}>"

    def __str__(self) -> str:
        return self.name

    def __copy__(self) -> AnySelector:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> AnySelector:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.toolset is None:
            return (_free, (self.spec.origin,))
        return (_member, (self.toolset, self.name))


class Selector(AnySelector, Generic[In, Out]):
    """A member of a toolset, with its tool's input and output types."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def Call(self) -> type[ToolCall[In, Out]]: ...  # noqa: N802

    def match(self, call: AnyToolCall, /) -> ToolCall[In, Out] | None:
        """Return the call with its types if it is one of this tool, else None.

        A member of an inner toolset matches through every parent, a member of an outer one only
        what came in on its own path.

        Example:
            >>> from lutum_py import Toolset, ToolMetadata, tool, tool_fn
            >>> @tool_fn
            ... def add(a: int, b: int) -> int:
            ...     return a + b
            >>> class Sums(Toolset):
            ...     plus = tool(add)
            >>> metadata = ToolMetadata(id="c1", name="add", arguments='{"a": 1, "b": 2}')
            >>> call = Sums.plus.match(Sums.parse_tool_call(metadata))
            >>> call.call_sync().result
            '3'
        """
        return call if self.matches(call) else None

    if TYPE_CHECKING:

        @property
        def _is_of_input(self) -> Any: ...

    def matches(self, call: AnyToolCall, /) -> TypeGuard[ToolCall[In, Out]]:
        """Whether `match` would give the call."""
        try:
            return call.selector is self or self.selects(call)
        except AttributeError:
            raise MisuseError(
                f"A selector matches calls, as a round or plan has them in `round.tool_calls` and "
                f"`plan.pending`, not {shorten(call)}."
            ) from None


class TakesContext(Protocol[Sent]):
    """What calls a function of a `ToolContext` and of what the model sends."""

    def _call(self, context: ToolContext, /, *args: Sent.args, **kwargs: Sent.kwargs) -> Any: ...


# For an overload beside one for a `FnSelector`, which is a `Selector` as well: of two that both fit
# mypy makes `Any`, wherever an argument has an `Any` in it.
class InputSelector(Protocol[In, Out]):
    """A member of a toolset that is no `FnSelector`: checkers know its input."""

    @property
    def _is_of_input(self) -> Literal[True]: ...
    def match(self, call: AnyToolCall, /) -> ToolCall[In, Out] | None:
        """Return a call of this tool with its static types."""
        ...


class FnSelector(Selector[Any, Out], Generic[P, Out]):
    """A member of a toolset whose tool is a function: it also knows the function's parameters."""

    __slots__ = ()

    if TYPE_CHECKING:

        def match(self, call: AnyToolCall, /) -> FnCall[P, Out] | None: ...
        def matches(self, call: AnyToolCall, /) -> TypeGuard[FnCall[P, Out]]: ...
        @property
        def _is_of_input(self) -> Literal[False]: ...
        def _call(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...

    @overload
    def with_args(
        self: TakesContext[Sent],
        *args: Sent.args,
        **kwargs: Sent.kwargs,
    ) -> RunNormally[Any]: ...
    @overload
    def with_args(self, *args: P.args, **kwargs: P.kwargs) -> RunNormally[Any]: ...
    def with_args(self, *args: Any, **kwargs: Any) -> RunNormally[Any]:
        """Decide that a call goes on with these arguments, given as the model sends them.

        What is left out has the function's default. A `ToolContext`, and hidden parameters by
        their names, may be given and are ignored.

        Returns:
            What an execution hook returns for it.

        Raises:
            MisuseError: The function takes no such argument.
            ToolInputError: An argument does not fit; the error names every failing field.

        Example:
            >>> from lutum_py import Toolset, tool, tool_fn
            >>> @tool_fn
            ... def search(query: str, limit: int = 5) -> str:
            ...     return query
            >>> class App(Toolset):
            ...     search = tool(search)
            >>> App.search.with_args("tea", limit=3)
            RunNormally(SearchInput(query='tea', limit=3))
        """
        from .decisions import RunNormally

        invocation: Any = self.spec.invocation
        given = invocation.input_of(self.name, args, kwargs)
        by_name = invocation.whole is None
        return RunNormally._of(*self.spec.take(self.name, given, by_name=by_name))


class HidingSelector(FnSelector[P, Out]):
    """A member of a toolset whose function has hidden parameters, named in `skip=`.

    At run time it is a plain `FnSelector`. Which parameters are hidden no checker knows, so that
    it takes any arguments for `with_args`; they are checked when it is called.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def with_args(self, *args: Any, **kwargs: Any) -> RunNormally[Any]: ...


# The selector class of one toolset, which also is a field type for pydantic models.


def selector_type(toolset: type[Any], base: type[Any] | None = None) -> type[Any]:
    """Make the class of a toolset's selectors.

    Args:
        toolset: The toolset, or the bound view of one.
        base: For a view, the class of the outer toolset's selectors.
    """
    return type(
        f"{toolset.__name__}Selector",
        (base or _ToolsetSelector,),
        {
            "__slots__": (),
            "__module__": toolset.__module__,
            "__qualname__": f"{toolset.__qualname__}.Selector",
            "of_toolset": toolset,
        },
    )


class _ToolsetSelector(Selector[Any, Any]):
    """Selector of one toolset: as a field, its values are wire names."""

    __slots__ = ()

    of_functions: type[Any] | None = None
    """The subclass for function tools, made with the first of them."""

    @classmethod
    def kind_for(cls, spec: AnySpec) -> type[Any]:
        if not isinstance(spec, FnSpec):
            return cls
        if cls.of_functions is None:
            kept = {name: getattr(cls, name) for name in ("__module__", "__qualname__")}
            cls.of_functions = type(cls.__name__, (cls, FnSelector), {"__slots__": (), **kept})
        return cls.of_functions

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        toolset = cls.of_toolset
        names = [each.name for each in toolset]

        def name_of(value: Any) -> Any:
            return value.name if value in toolset and not isinstance(value, str) else value

        def refuse(_: Any) -> Any:
            raise PydanticCustomError("no_tools", "this toolset has no tools to choose from")

        # A literal and no plain text, so that the JSON schema of the field lists the names, for a
        # model that is to choose a tool. It cannot be empty, hence the other branch.
        literal = (
            core_schema.literal_schema(names)
            if names
            else core_schema.no_info_before_validator_function(refuse, core_schema.str_schema())
        )
        return core_schema.no_info_after_validator_function(
            toolset.__getitem__,
            core_schema.no_info_before_validator_function(name_of, literal),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda selector: selector.name,
                return_schema=literal if names else core_schema.str_schema(),
            ),
        )


def _member(toolset: Any, name: str) -> AnySelector:
    selector: AnySelector = toolset[name]
    return selector


def _free(origin: Any) -> AnySelector:
    selector: AnySelector = spec_of(origin).free_selector
    return selector


# Kept, and not imported anew for each tool: a sandbox that lets this package through gives what is
# imported later a second time, and calls of two classes would not know each other.
@cache
def _call_types() -> tuple[type[Any], ...]:
    from .call import FnCall, ToolCall
    from .outcomes import HandledCall

    return FnCall, ToolCall, HandledCall


def _make(spec: AnySpec) -> None:
    """Make the classes of a tool's calls, with its first call."""
    fn_call, tool_call, handled_call = _call_types()
    input_name, module, qualname = spec._named
    is_function = isinstance(spec, FnSpec)
    body = {"__slots__": (), "__module__": module}
    spec._put(
        call_type=type(
            f"{input_name}Call",
            (fn_call if is_function else tool_call,),
            {**body, "__qualname__": f"{qualname}.Call", "spec": spec},
        ),
        handled_type=type(
            f"{input_name}Handled",
            (handled_call,),
            {**body, "__qualname__": f"{qualname}.Handled"},
        ),
        free_selector=(FnSelector if is_function else Selector)(spec),
    )


ToolSpec._make = _make
