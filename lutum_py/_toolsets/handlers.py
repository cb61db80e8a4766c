"""`Handlers`: which function runs each tool of a toolset, kept in one table.

A function tool without a handler is run by its own function. What a handler is called with is
worked out when it is registered, as for the function of a tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from .._call.call import AnyToolCall
from .._call.reply import Reply
from .._call.selector import AnySelector, FnSelector, InputSelector, Selector
from .._call.spec import FnSpec
from .._schema.invocation import Invocation
from .._schema.signature import function_name, has_signature
from .._text.escaping import names_for_message
from .._text.immutable import Settled
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import MisuseError, ToolConstraintError, UnknownToolError
from .members import members_of
from .toolset_meta import ToolsetMeta

P = ParamSpec("P")
T = TypeVar("T")
In = TypeVar("In")
Out = TypeVar("Out")


class HandlerDecorator(Protocol[In, Out]):
    """Takes a function of a tool's input and gives it back as it was."""

    # The first two, without `...`, are for mypy, which takes no lambda for the others.
    @overload
    def __call__(
        self, fn: Callable[[In], Awaitable[Out | Reply[Out]]], /
    ) -> Callable[[In], Awaitable[Out | Reply[Out]]]: ...
    @overload
    def __call__(
        self, fn: Callable[[In], Out | Reply[Out]], /
    ) -> Callable[[In], Out | Reply[Out]]: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self, fn: Callable[Concatenate[In, ...], Awaitable[Out | Reply[Out]]], /
    ) -> Callable[Concatenate[In, ...], Awaitable[Out | Reply[Out]]]: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self, fn: Callable[Concatenate[In, ...], Out | Reply[Out]], /
    ) -> Callable[Concatenate[In, ...], Out | Reply[Out]]: ...


class ArgsHandlerDecorator(Protocol[P, Out]):
    """Takes a function of the parameters of a tool's own and gives it back as it was."""

    @overload
    def __call__(
        self, fn: Callable[P, Awaitable[Out | Reply[Out]]], /
    ) -> Callable[P, Awaitable[Out | Reply[Out]]]: ...
    @overload
    def __call__(self, fn: Callable[P, Out | Reply[Out]], /) -> Callable[P, Out | Reply[Out]]: ...


class Handlers(Settled, Generic[T]):
    """Say which function runs each tool of a toolset; `AppTools.Handlers()` makes an empty table.

    Call it with a call to run that: `results.append(await run(call))`.

    Example:
        >>> from lutum_py import Toolset, ToolInput, ToolMetadata, tool
        >>> class GreetArgs(ToolInput[str]):
        ...     name: str
        >>> class Greetings(Toolset):
        ...     greet = tool(GreetArgs)
        >>> run = Greetings.Handlers()
        >>> @run.on(Greetings.greet)
        ... def greet(input: GreetArgs) -> str:
        ...     return f"Hello, {input.name}!"
        >>> metadata = ToolMetadata(id="c1", name="greet", arguments='{"name": "Ada"}')
        >>> run.complete().call_sync(Greetings.parse_tool_call(metadata)).output
        'Hello, Ada!'
    """

    _way: ClassVar[str] = "no call would go by it. Register a function, as in `@handlers.on(...)`."

    def __init__(self, toolset: type[T]) -> None:
        if not isinstance(toolset, ToolsetMeta):
            raise MisuseError.of_field(
                "Handlers", "toolset", "a toolset", toolset, "Write `AppTools.Handlers()`."
            )
        self._toolset: ToolsetMeta = toolset
        # By member, and not by tool: a toolset that is nested twice has two members of one tool,
        # and each may have a handler of its own.
        self._invocations: dict[AnySelector, Invocation] = {}

    @property
    def toolset(self) -> type[T]:
        """The toolset whose tools these functions run."""
        return cast("type[T]", self._toolset)

    @overload
    def on(self, selector: FnSelector[P, Out], /) -> ArgsHandlerDecorator[P, Out]: ...
    @overload
    def on(self, selector: InputSelector[In, Out], /) -> HandlerDecorator[In, Out]: ...
    def on(self, selector: Any, /) -> Any:
        """Register the function that runs the calls of a tool.

        Args:
            selector: The tool. A member of a nested toolset stands for each path to it.

        Returns:
            A decorator for a function, sync or async, of the tool's input that gives its output;
            for a function tool it has the function's own parameters, the `ToolContext` among them.
            Besides, it may take a `ToolContext` if the function has none, and parameters that are
            passed when the call is run.

        Raises:
            MisuseError: The tool is not in the toolset, or has a handler already; or the function
                takes other parameters.
        """
        if isinstance(selector, AnySelector):
            # A bound view makes handlers of its origin, whose own member is meant.
            selector = selector._reaches(self._toolset) or selector
        try:
            members = members_of(self._toolset).find(selector)
        except UnknownToolError as error:
            raise MisuseError(f"A handler cannot be registered: {error}") from error

        def register(function: object) -> Any:
            for member in members:
                if member in self._invocations:
                    raise MisuseError(
                        f"Tool `{member.name}` is run by "
                        f"`{function_name(self._invocations[member].function)}` already. Keep one "
                        "of the handlers."
                    )
            # One for all: the members stand for one tool on several paths.
            made = _invocation(function, members[0])
            self._invocations.update(dict.fromkeys(members, made))
            return function

        return register

    def missing(self) -> tuple[Selector, ...]:
        """Return the tools that have neither a handler nor a function."""
        return tuple(each for each in self._toolset if self.done_by(each) is None)

    def complete(self) -> Self:
        """Return the table if every tool has a function; call it where the program starts.

        Raises:
            ToolConstraintError: Some tools have none; the text names each.
        """
        if missing := self.missing():
            paths = names_for_message(".".join(each.path) for each in missing)
            raise ToolConstraintError(
                f"These tools of {self._toolset.__qualname__} have no function: {paths}. Write "
                f"`@run.on({self._toolset.__name__}.{'.'.join(missing[0].path)})` above a function "
                "for each."
            )
        return self

    async def __call__(self, call: AnyToolCall, /, **skipped: object) -> ToolResult:
        """Run a call and answer it; exceptions and deadline are those of `call.call()`.

        Args:
            call: The call.
            skipped: Values of hidden parameters; each tool takes those that it has.

        Raises:
            MisuseError: The tool has no handler or function, it is not in the toolset, or a hidden
                parameter is missing.
            LifecycleError: The call has ended, waits for a decision, or is not what was approved.
            ToolOutputError: The handler returned something else than the tool declares.
            TimedOut: The tool's deadline passed; its `is_in_doubt` is true.
        """
        invocation, taken = self._begin(call, skipped)
        return call.finish(await call._record.run(invocation, taken))

    def call_sync(self, call: AnyToolCall, /, **skipped: object) -> ToolResult:
        """Run and answer a call as `await run(call)` does, with a sync handler and no deadline.

        Raises:
            MisuseError: The handler is async; or as for `await run(call)`.
        """
        invocation = self.invocation_of(call)
        if invocation.is_async:
            invocation.refuse_sync(call)
        _, taken = self._begin(call, skipped)
        return call.finish(invocation.run_sync(call, call._record.input_for_tool(), taken))

    def invocation_of(self, call: AnyToolCall) -> Invocation:
        """Return what runs a call.

        Raises:
            MisuseError: The tool has no handler or function, or is not in the toolset; or what was
                given is not a call.
        """
        if not isinstance(call, AnyToolCall):
            raise MisuseError(
                f"Handlers are given a call, not {shorten(call)}. Take it from `plan.pending`."
            )
        toolset = self._toolset
        member = call.selector._reaches(toolset)
        if call.selector.toolset is None:
            member = members_of(toolset).by_name.get(call.name)
        if member is None or member.spec is not call.spec:
            raise MisuseError(
                f"These are handlers of {toolset.__qualname__}, and tool `{call.name}` (call "
                f"{call.id!r}) is none of its tools. Use those of the toolset that the turn was "
                "read with."
            )
        invocation = self.done_by(member)
        if invocation is None:
            raise MisuseError(
                f"Tool `{call.name}` (call {call.id!r}) has no function. Write "
                f"`@run.on({toolset.__name__}.{'.'.join(member.path)})` above a function; "
                "`run.complete()` finds every gap when the program starts."
            )
        return invocation

    def _begin(
        self, call: AnyToolCall, skipped: Mapping[str, object]
    ) -> tuple[Invocation, dict[str, Any]]:
        invocation = self.invocation_of(call)
        # One set of hidden values serves all tools: each takes those that it has a parameter for.
        known = {*invocation.hidden, invocation.context}
        taken = {name: value for name, value in skipped.items() if name in known}
        return call.start(taken, invocation), taken

    def done_by(self, member: AnySelector) -> Invocation | None:
        """Return what runs a tool: its handler, or its own function; None if it has neither."""
        return self._invocations.get(member) or member.spec.invocation

    def __repr__(self) -> str:
        count = len(self._invocations)
        name = self._toolset.__qualname__
        return f"<handlers of {name}: {count} of {len(self._toolset)} tools>"


def _invocation(function: Any, member: AnySelector) -> Invocation:
    """Work out what a handler is called with.

    Raises:
        MisuseError: It takes other parameters than those that it can be given.
    """
    if not has_signature(function):
        raise MisuseError(
            f"Tool `{member.name}` is run by a function, not by {shorten(function)}. Pass the "
            "function itself."
        )
    of_tool = member.spec.invocation
    is_fn = isinstance(member.spec, FnSpec) and of_tool is not None
    invocation = Invocation.of_handler(function, of_tool if is_fn else None)
    unfit = invocation.unfit(function)
    if unfit is not None:
        what = "the parameters of the tool's own function" if is_fn else "the input of the tool"
        raise MisuseError(
            f"`{function_name(function)}` cannot do tool `{member.name}`: it is called with "
            f"{what}, and {unfit}. Give it these parameters."
        )
    return invocation
