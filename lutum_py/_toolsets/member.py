"""`tool()` and `toolset()`: what stands in the body of a toolset class.

Their options, such as a prefix or a timeout, are `MemberOptions` of `_call.spec`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, Unpack, cast, overload

from pydantic import BaseModel
from typing_extensions import ParamSpec, TypeVar

from .._call.spec import UNSET, AnySpec, Condition, HasSpec, MemberOptions, spec_of
from .._schema.definition import ToolDef
from .._schema.schema_reader import names_in
from .._text.escaping import names_for_message
from .._text.json import shorten
from ..errors import ToolDefinitionError
from .tool_fn import DecoratedFn, GivingFn, HidingFn, SentFn
from .toolset_meta import GroupMember, ToolMember, ToolsetMeta, rules_of

if TYPE_CHECKING:
    from .._call.call import Hooks
    from .._call.decisions import ArgsRuleVerdict, InputRuleVerdict
    from .._call.reply import Reply
    from .._call.selector import FnSelector, HidingSelector, Selector
    from .._call.spec import Rule
    from .._schema.definition import Caller
    from .._transcript.result_cap import ResultCap

# mypy takes the defaults where it cannot infer the types, as of a tool with hidden parameters.
Params = ParamSpec("Params", default=...)
Input = TypeVar("Input")
Output = TypeVar("Output", default=Any)
# An async function of a reply, and a `ToolInput`, each fit one overload alone: of two that fit mypy
# makes `Any`, wherever an argument has an `Any` in it, as the parameters of
# `async def f(row: Any) -> Reply[int]` have, and each lambda.
Plain = TypeVar("Plain", bound="_IsPlain | None", default=Any)
Model = TypeVar("Model", bound="_IsPlainModel")
ToolsetClass = TypeVar("ToolsetClass", bound=ToolsetMeta)

if TYPE_CHECKING:

    class _IsPlain(Protocol):
        def __sizeof__(self) -> int: ...

    class _IsPlainModel(_IsPlain, Protocol):
        @property
        def model_fields_set(self) -> set[str]: ...

    class _Told(TypedDict, total=False):
        """The options of all members; the types of `needs_approval` and `rule` go by the input."""

        off: bool
        deferred: bool
        result_cap: ResultCap | None
        timeout: float | None
        approval_message: str | None
        callers: Sequence[Caller]

    class _FnTold(_Told, Generic[Output], total=False):
        needs_approval: bool | Callable[[Any], bool | Awaitable[bool]]
        rule: Callable[..., ArgsRuleVerdict[Output]] | None

    class _InputTold(_Told, Generic[Input, Output], total=False):
        needs_approval: bool | Callable[[Input], bool | Awaitable[bool]]
        rule: Callable[[Input], InputRuleVerdict[Input, Output]] | None


@overload
def tool(
    t: HidingFn[Params, Any, Output], /, **told: Unpack[_FnTold[Output]]
) -> HidingSelector[Params, Output]: ...
@overload
def tool(
    t: SentFn[Params, Awaitable[Reply[Output]] | Reply[Output]],
    /,
    **told: Unpack[_FnTold[Output]],
) -> FnSelector[Params, Output]: ...
@overload
def tool(
    t: SentFn[Params, Awaitable[Plain]], /, **told: Unpack[_FnTold[Plain]]
) -> FnSelector[Params, Plain]: ...
@overload
def tool(
    t: GivingFn[Params, Output], /, **told: Unpack[_FnTold[Output]]
) -> FnSelector[Params, Output]: ...
@overload
def tool(
    t: HasSpec[Input, Output], /, **told: Unpack[_InputTold[Input, Output]]
) -> Selector[Input, Output]: ...
@overload
def tool(t: type[Model], /, **told: Unpack[_InputTold[Model, Any]]) -> Selector[Model, Any]: ...
@overload
def tool(
    t: ToolDef, /, **told: Unpack[_InputTold[dict[str, Any], Any]]
) -> Selector[dict[str, Any], Any]: ...
def tool(
    t: object,
    /,
    *,
    off: bool = False,
    deferred: bool = False,
    result_cap: ResultCap | None = UNSET,
    timeout: float | None = UNSET,
    needs_approval: Condition = UNSET,
    approval_message: str | None = None,
    rule: object = None,
    callers: Sequence[Caller] = (),
) -> Any:
    """Make a tool a member of a toolset.

    Args:
        t: A function decorated with `@tool_fn`, also as a bound method, an input model, or a
            `ToolDef`.
        off: Leave the tool out unless a turn asks for it.
        deferred: Leave the tool out until the model finds it with a `tool_search()`, or a turn asks
            for it.
        result_cap: Bound what the model reads of the tool's results; None lifts the bound that its
            toolset sets.
        timeout: Seconds that a run may take, in place of the limits that the tool itself and
            its toolset set; None for no limit.
        needs_approval: Whether a call waits until a person approved it; or a function of the input
            that says so, which may be async. It reviews a call as the last gate, with any hooks.
        approval_message: What the person is told, with names of arguments in braces, as in
            `"Refund {cents} cents?"`.
        rule: A function, sync or async, that `plan()`, `apply_hooks`, `amend` and `call.hook`
            run about each call, before gates. For a function tool it takes some of the tool's
            parameters, by name, and a `ToolContext` that only tells which call it is; it returns
            None, a mapping of the arguments to change, `Complete` or `Reject`. For any other tool
            it takes the input, and returns another input in place of the mapping. A call starts
            only after the rule has reviewed it.
        callers: Who may call it, if a provider runs programs that call tools: `model`,
            `program`, or both. If this is left out, it is the model alone. Other providers let
            the model call it, and a request says so in its losses.

    Raises:
        ToolDefinitionError: `t` is not declared as a tool, an option is of the wrong kind, or the
            rule takes a parameter that the tool lacks.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn
        >>> @tool_fn
        ... def ping() -> str:
        ...     return "pong"
        >>> class Tools(Toolset):
        ...     ping_host = tool(ping)
        >>> [selector.name for selector in Tools]
        ['ping']
    """
    spec = _spec_of(t)
    _check_deferred("tool", off, deferred)
    if deferred and getattr(spec.origin, "loads_tools", False):
        raise ToolDefinitionError(
            f"Tool `{spec.definition.name}` is the search by which deferred tools are found. Leave "
            "`deferred=` out."
        )
    if approval_message is not None:
        _check_message(approval_message, spec)
    rules: tuple[Rule, ...] = ()
    if rule is not None:
        from .._call.rules import ArgsRule

        rules = (ArgsRule(spec, rule),)
    options = MemberOptions(
        off=off,
        deferred=deferred,
        result_cap=result_cap,
        timeout=timeout,
        needs_approval=needs_approval,
        approval_message=approval_message,
        rules=rules,
        callers=callers,
    )
    return ToolMember(spec, options)


def _check_message(message: str, spec: AnySpec) -> None:
    """Refuse a message that names what the tool does not take.

    Raises:
        ToolDefinitionError: It names something else, or is not a text with plain names in braces.
    """
    from string import Formatter

    place = f"Tool `{spec.definition.name}`: `approval_message={shorten(message)}`"
    if not isinstance(message, str):
        raise ToolDefinitionError(f"{place} is not text. Write `'Pay {{amount}}?'`, for example.")
    try:
        parts = list(Formatter().parse(message))
    except ValueError as error:
        raise ToolDefinitionError(
            f"{place} has a brace without its other half ({error}). Write `{{{{` for a brace."
        ) from None
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion:
            raise ToolDefinitionError(
                f"{place} formats `{name}`. Name the argument alone, as in `{{{name}}}`."
            )
        if not spec.arguments.keys_of(name):
            known = names_in(spec.definition.input_schema)
            raise ToolDefinitionError(
                f"{place} names {shorten(name)}, which is not an argument of the tool. It has "
                f"{names_for_message(known)}."
            )


def _check_deferred(what: str, off: bool, deferred: bool) -> None:
    if off and deferred:
        raise ToolDefinitionError(
            f"`{what}(..., off=True, deferred=True)` says two things: what is off is never found "
            "by a search. Leave one of them out."
        )


def _spec_of(declared: object) -> AnySpec:
    found: object = declared
    # One kind of class after another: most members are decorated functions, and the modules for
    # input models and schemas are loaded only if there is one.
    if isinstance(declared, DecoratedFn):
        return spec_of(found)
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        from .tool_input import find_spec

        return find_spec(declared)
    from .tool_input import SchemaTool, spec_from_definition

    if isinstance(declared, SchemaTool):
        return spec_of(found)
    if isinstance(declared, ToolDef):
        return spec_from_definition(declared)
    if isinstance(declared, MethodType) and isinstance(declared.__func__, DecoratedFn):
        name = declared.__name__
        if isinstance(declared.__self__, type):
            raise ToolDefinitionError(
                f"`{declared.__self__.__name__}.{name}` is a class method, which no tool can be: "
                "nobody passes the class where a call is run. Make it a static method, as "
                "@staticmethod above @tool_fn, or a function."
            )
        return spec_of(found)
    if isinstance(declared, type):
        if isinstance(declared, ToolsetMeta):
            remedy = f"Nest a toolset with `toolset({declared.__name__})`"
        else:
            remedy = "Declare the input as a pydantic model, or the work as a `@tool_fn` function"
        raise ToolDefinitionError(f"`{declared.__qualname__}` is not a tool. {remedy}.")
    if callable(declared) and hasattr(declared, "__qualname__"):
        wrapped = getattr(declared, "__wrapped__", None)
        if isinstance(wrapped, DecoratedFn):
            raise ToolDefinitionError(
                f"`{declared.__qualname__}` is not a tool any more: a decorator above `@tool_fn` "
                "made another function of it. Write `@tool_fn` above that one."
            )
        raise ToolDefinitionError(
            f"`{declared.__qualname__}` is not a tool. Decorate it with `@tool_fn`."
        )
    raise ToolDefinitionError(
        f"`tool()` takes a `@tool_fn` function, an input model or a `ToolDef`, not "
        f"{shorten(declared)}."
    )


def toolset(
    inner: ToolsetClass,
    /,
    *,
    off: bool = False,
    deferred: bool = False,
    prefix: str | None = None,
    result_cap: ResultCap | None = UNSET,
    timeout: float | None = UNSET,
    needs_approval: Condition = UNSET,
    rule: Hooks | None = None,
) -> ToolsetClass:
    """Nest a toolset: its tools become tools of the outer one.

    Args:
        inner: The toolset to nest.
        off: Leave the whole group out unless a turn asks for its tools.
        deferred: Leave each tool of the group out until the model finds it with a `tool_search()`,
            or a turn asks for it. What is off in `inner` stays off.
        prefix: Put before the wire name of each inner tool, so that a set can be nested twice.
        result_cap: Bound what the model reads of the results of tools for which `inner` sets no
            bound; None lifts the bound of the outer toolset.
        timeout: Seconds that a run may take, for tools for which `inner` sets none; None lifts the
            limit of the outer toolset.
        needs_approval: Whether calls of the group wait until a person approved them, or a function
            of the input that decides so. Nothing in `inner` lifts this. False counts only for tools
            for which `inner` does not set it.
        rule: A function of a call, as `round.apply_hooks` takes one, that reviews each call
            of the group, after the rules inside of the group.

    Raises:
        ToolDefinitionError: `inner` is not a toolset, or an option is of the wrong kind.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn, toolset
        >>> @tool_fn
        ... def find(key: str) -> str:
        ...     return key
        >>> class Store(Toolset):
        ...     find = tool(find)
        >>> class App(Toolset):
        ...     users = toolset(Store, prefix="users_")
        ...     orders = toolset(Store, prefix="orders_")
        >>> [selector.name for selector in App]
        ['users_find', 'orders_find']
    """
    if not isinstance(inner, ToolsetMeta):
        raise ToolDefinitionError(
            f"`toolset()` takes a subclass of Toolset, not {shorten(inner)}. For one tool use "
            "`tool()`."
        )
    _check_deferred("toolset", off, deferred)
    # A condition on a group counts beside those of its tools. A False on a group is only the
    # default for tools that say nothing. So the two are kept as different options.
    around: tuple[Condition, ...] = ()
    if needs_approval is not UNSET and needs_approval is not False:
        around = (needs_approval,)
    options = MemberOptions(
        off=off,
        deferred=deferred,
        prefix="" if prefix is None else prefix,
        result_cap=result_cap,
        timeout=timeout,
        needs_approval=UNSET if around else needs_approval,
        approvals_around=around,
        rules=rules_of(rule),
    )
    member: object = GroupMember(inner, options)
    return cast("ToolsetClass", member)
