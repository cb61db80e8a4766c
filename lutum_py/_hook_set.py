"""`HookSet`: who has a say about the calls of one toolset, and in which order.

A hook set keeps one list for each phase and direct member, one for each phase and all members, and
a hook set for each nested toolset. A hook for an inner tool is kept by the inner hook set, however
it was registered, so that there is one list in one order. A counter that all hook sets share says
who came first where several lists meet.
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from ._call import AnyToolCall, ToolCall
from ._decisions import ToolDecision
from ._hook_names import Phase, policy_methods, slot_of
from ._hook_outcome import HookOutcome
from ._json import shorten
from ._metadata import ToolMetadata
from ._result import ToolResult
from ._selector import AnySelector, Selector
from ._suggestion import did_you_mean, names_for_message
from .errors import HookError, UnknownToolError

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._toolset import Toolset, ToolsetMeta

__all__ = ["HookSet", "RegisteredHook"]

T = TypeVar("T", bound="Toolset")
T2 = TypeVar("T2", bound="Toolset")
In = TypeVar("In")
Out = TypeVar("Out")
F = TypeVar("F", bound=Callable[..., Any])

_order = itertools.count()


class RegisteredHook:
    """One function in one phase, and when it was registered.

    Attributes:
        function: The function.
        name: Its qualified name, for messages and records.
        order: Its place among all that were registered.
        takes: How many positional arguments it takes, at the most.
    """

    __slots__ = ("function", "name", "order", "takes")

    def __init__(self, function: Any, phase: str) -> None:
        if not callable(function):
            raise HookError(
                f"A {phase} hook is a function, not {shorten(function)}. Pass the function itself."
            )
        self.function = function
        self.name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
        self.order = next(_order)
        self.takes = _positional_count(function) if phase == "gates" else 2


def _positional_count(function: Any) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 3
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional for p in parameters)


class PhaseHooks:
    """The hooks of one place, a list for each phase."""

    __slots__ = ("after", "before", "description", "execution", "gates")

    def __init__(self) -> None:
        self.execution: list[RegisteredHook] = []
        self.gates: list[RegisteredHook] = []
        self.before: list[RegisteredHook] = []
        self.after: list[RegisteredHook] = []
        self.description: list[RegisteredHook] = []

    def of(self, phase: Phase) -> list[RegisteredHook]:
        """Return the list of a phase."""
        hooks: list[RegisteredHook] = getattr(self, phase)
        return hooks

    def copy(self) -> PhaseHooks:
        """Return lists of their own with the same hooks."""
        made = PhaseHooks()
        for phase in self.__slots__:
            setattr(made, phase, list(getattr(self, phase)))
        return made


class OnHook(Protocol[In, Out]):
    """Takes an execution hook of a tool and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[ToolMetadata, In], Awaitable[ToolDecision[In, Out]]], /
    ) -> Callable[[ToolMetadata, In], Awaitable[ToolDecision[In, Out]]]: ...
    @overload
    def __call__(
        self, hook: Callable[[ToolMetadata, In], ToolDecision[In, Out]], /
    ) -> Callable[[ToolMetadata, In], ToolDecision[In, Out]]: ...


class AfterHook(Protocol[In, Out]):
    """Takes an after-hook of a tool and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]], /
    ) -> Callable[[ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]]: ...
    @overload
    def __call__(
        self, hook: Callable[[ToolCall[In, Out], ToolResult], ToolResult | None], /
    ) -> Callable[[ToolCall[In, Out], ToolResult], ToolResult | None]: ...


class HookSet(Generic[T]):
    """Hold the hooks of one toolset; `AppTools.HookSet()` makes an empty one.

    Hooks are registered by decorators (`@hooks.on(AppTools.weather)`) or by generated names
    (`hooks.register_weather_hook(f)`). Registering changes the set; the `with_*` methods return a
    deeply copied one.

    Example:
        >>> from lutum_py import Reject, RunNormally, Toolset, tool, tool_fn
        >>> @tool_fn
        ... def weather(city: str) -> str:
        ...     return f"sunny in {city}"
        >>> class App(Toolset):
        ...     weather = tool(weather)
        >>> hooks = App.HookSet()
        >>> @hooks.on(App.weather)
        ... def not_blank(metadata, input):
        ...     return (
        ...         RunNormally(input) if input.city.strip() else Reject("city must not be blank")
        ...     )
        >>> hooks
        <HookSet of App: 1 hook>
    """

    def __init__(self, toolset: type[T], /, **nested: HookSet[Any]) -> None:
        self._toolset: ToolsetMeta = toolset
        self._tools: dict[str, PhaseHooks] = {}
        self._groups: dict[str, HookSet[Any]] = {}
        self._everywhere = PhaseHooks()
        for key, member in toolset._members.items():
            if isinstance(member, AnySelector):
                self._tools[key] = PhaseHooks()
                continue
            inner: HookSet[Any] = nested.pop(key, None) or HookSet(member._origin)  # type: ignore[arg-type]
            if not isinstance(inner, HookSet) or inner._toolset is not member._origin:
                raise HookError(
                    f"{toolset.__qualname__}.HookSet({key}=...) takes a hook set of "
                    f"{member._origin.__qualname__}, not {shorten(inner)}."
                )
            self._groups[key] = inner
        if nested:
            raise HookError(
                f"{toolset.__qualname__} nests no toolset `{next(iter(nested))}`; it nests "
                f"{names_for_message(self._groups)}."
            )

    @property
    def toolset(self) -> type[T]:
        """The toolset whose calls these hooks decide about."""
        return self._toolset  # type: ignore[return-value]

    # Registering, typed.

    def on(self, selector: Selector[In, Out], /) -> OnHook[In, Out]:
        """Register an execution hook: it may change the input, answer the call, or reject it.

        Args:
            selector: The tool. A member of a nested toolset stands for each path to it.

        Returns:
            A decorator for a function of `(metadata, input)` that returns `RunNormally(input)`,
            `Complete(output)` or `Reject(reason)`, or an awaitable of one.

        Raises:
            HookError: The tool is not in the toolset.
        """
        return self._registrar("execution", selector)

    def gate(self, selector: AnySelector | None = None, /) -> Callable[[F], F]:
        """Register a gate: it sees the final input, and may block, suspend or answer the call.

        Args:
            selector: The tool; all tools where it is left out.

        Returns:
            A decorator for a function of `(metadata, input)`, or of `(metadata, input, decision)`,
            that returns `Block(reason)`, `Suspend(ticket)`, `Complete(output)`, a `ToolResult` or
            None, or an awaitable of one.
        """
        return self._registrar("gates", selector)

    def before(self, selector: AnySelector | None = None, /) -> Callable[[F], F]:
        """Register a function of `(metadata, input)` for calls that are going to be run.

        Args:
            selector: The tool; all tools where it is left out.
        """
        return self._registrar("before", selector)

    @overload
    def after(self, selector: Selector[In, Out], /) -> AfterHook[In, Out]: ...
    @overload
    def after(self, selector: None = None, /) -> Callable[[F], F]: ...
    def after(self, selector: AnySelector | None = None, /) -> Any:
        """Register a function of `(call, result)` that may return another result.

        Args:
            selector: The tool; all tools where it is left out.
        """
        return self._registrar("after", selector)

    def describe(self, selector: AnySelector, /) -> Callable[[F], F]:
        """Register a function of the definition that returns another description, or None.

        One for each tool: a later one takes the place of an earlier one, with a warning.
        """
        return self._registrar("description", selector)

    def _registrar(self, phase: Phase, selector: AnySelector | None) -> Any:
        places = [self._everywhere] if selector is None else self._places(selector)

        def register(function: Any) -> Any:
            hook = RegisteredHook(function, phase)
            for place in places:
                self._add(place, phase, hook)
            return function

        return register

    def _add(self, place: PhaseHooks, phase: Phase, hook: RegisteredHook) -> None:
        hooks = place.of(phase)
        if phase == "description" and hooks:
            warnings.warn(
                f"Description hook `{hook.name}` takes the place of `{hooks[0].name}`: a tool has "
                "one description.",
                UserWarning,
                stacklevel=3,
            )
            hooks.clear()
        hooks.append(hook)

    def _places(self, selector: AnySelector) -> list[PhaseHooks]:
        try:
            members = self._toolset.select(selector)  # type: ignore[attr-defined]
        except UnknownToolError as error:
            raise HookError(f"A hook cannot be registered: {error}") from error
        places: list[PhaseHooks] = []
        for member in members:
            place = self._at(member.path)
            if place not in places:
                places.append(place)
        return places

    def _at(self, path: tuple[str, ...]) -> PhaseHooks:
        hooks: HookSet[Any] = self
        for group in path[:-1]:
            hooks = hooks._groups[group]
        return hooks._tools[path[-1]]

    # Registering, by generated name.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_groups" not in self.__dict__:
            raise AttributeError(name)
        if name in self._groups:
            return self._groups[name]
        for verb in ("register_", "with_"):
            slot = slot_of(self._tools, name.removeprefix(verb)) if name.startswith(verb) else None
            if slot is not None:
                return self._generated(verb, *slot)
        near = did_you_mean(name, [*self._groups, *self._names()])
        hint = f" Did you mean `{near}`?" if near else ""
        raise AttributeError(
            f"The hook set of {self._toolset.__qualname__} has no `{name}`.{hint} Its tools are "
            f"{names_for_message(self._tools)}, its nested sets {names_for_message(self._groups)}."
        )

    def _generated(self, verb: str, member: str, phase: Phase) -> Any:
        def register(function: Any, /) -> None:
            self._add(self._tools[member], phase, RegisteredHook(function, phase))

        def with_hook(function: Any, /) -> Any:
            made = self.copy()
            made._add(made._tools[member], phase, RegisteredHook(function, phase))
            return made

        return register if verb == "register_" else with_hook

    def _names(self) -> Iterator[str]:
        for member in self._tools:
            for kind in ("hook", "gate", "before_hook", "after_hook", "description_hook"):
                yield f"register_{member}_{kind}"
                yield f"with_{member}_{kind}"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._groups, *self._names()]

    def register_hooks(self, policy: Any, /) -> None:
        """Register every hook that a policy object defines, by the name of its method.

        Args:
            policy: An object with methods such as `weather_hook` or `weather_gate`.

        Raises:
            HookError: A method ends like a hook, but there is no such member.
        """
        for member, phase, method in list(policy_methods(self._toolset, policy)):
            self._add(self._tools[member], phase, RegisteredHook(method, phase))

    def with_hooks(self, policy: Any, /) -> Self:
        """Return a copy with the hooks of a policy object."""
        made = self.copy()
        made.register_hooks(policy)
        return made

    def extend(self, other: HookSet[T], /) -> None:
        """Add the hooks of another hook set of the same toolset, after those that are here."""
        if not isinstance(other, HookSet) or other._toolset is not self._toolset:
            raise HookError(
                f"The hook set of {self._toolset.__qualname__} can only be extended by another one "
                f"of the same toolset, not by {shorten(other)}."
            )
        found = [
            (hook.order, place, phase, hook) for place, phase, hook in self._paired(other.copy())
        ]
        for _, place, phase, hook in sorted(found, key=lambda entry: entry[0]):
            again = RegisteredHook(hook.function, phase)
            self._add(place, phase, again)

    def _paired(self, other: HookSet[Any]) -> Iterator[tuple[PhaseHooks, Phase, RegisteredHook]]:
        phases: tuple[Phase, ...] = ("execution", "gates", "before", "after", "description")
        pairs = [(self._everywhere, other._everywhere)]
        pairs += [(self._tools[key], other._tools[key]) for key in self._tools]
        for mine, theirs in pairs:
            for phase in phases:
                for hook in theirs.of(phase):
                    yield mine, phase, hook
        for key, inner in self._groups.items():
            yield from inner._paired(other._groups[key])

    def with_extended(self, other: HookSet[T], /) -> Self:
        """Return a copy with the hooks of another hook set after its own."""
        made = self.copy()
        made.extend(other)
        return made

    def copy(self) -> Self:
        """Return a hook set of its own with the same hooks, nested ones included."""
        made: Self = object.__new__(type(self))
        made._toolset = self._toolset
        made._tools = {key: place.copy() for key, place in self._tools.items()}
        made._groups = {key: inner.copy() for key, inner in self._groups.items()}
        made._everywhere = self._everywhere.copy()
        return made

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    # Reading.

    def __getitem__(self, inner: type[T2], /) -> HookSet[T2]:
        """Return the hook set of a nested toolset, as in `hooks[AppTools.data]`."""
        path: tuple[str, ...] = getattr(inner, "_path", ())
        hooks: HookSet[Any] = self
        known: Any = self._toolset
        for group in path:
            known = known._members.get(group)
            if known is None:
                break
            hooks = hooks._groups[group]
        if not path or known is not inner:
            raise HookError(
                f"{shorten(inner)} is not nested in {self._toolset.__qualname__}; name it through "
                f"the outer toolset, as in `hooks[{self._toolset.__name__}.group]`."
            )
        return hooks

    def hooks_for(self, selector: AnySelector, phase: Phase) -> list[RegisteredHook]:
        """List the hooks of one phase for a tool, in the order in which they are asked."""
        member = selector.reaches(self._toolset)
        if member is None:
            return []
        path = member.path
        hooks: HookSet[Any] = self
        found = list(self._everywhere.of(phase))
        for group in path[:-1]:
            hooks = hooks._groups[group]
            found += hooks._everywhere.of(phase)
        own = hooks._tools[path[-1]].of(phase)
        if not found:
            return own
        return sorted([*found, *own], key=lambda hook: hook.order)

    def hook_tool_call(self, call: AnyToolCall, /) -> Awaitable[HookOutcome]:
        """Send one call through the hooks."""
        from ._hook_pipeline import decide_one

        return decide_one(call, self)

    async def description_overrides(self) -> list[tuple[AnySelector, str]]:
        """Ask the description hooks.

        Returns:
            Pairs of selector and text for `.describe_many_tools(...)`; tools without a hook, or
            whose hook returned None, are left out.
        """
        from ._hook_pipeline import describe, drive

        return await drive(describe(self))

    def description_overrides_sync(self) -> list[tuple[AnySelector, str]]:
        """Do the same where every description hook is sync."""
        from ._hook_pipeline import describe, drive_sync

        return drive_sync(describe(self))

    def __repr__(self) -> str:
        count = sum(1 for _ in self._paired(self))
        return f"<HookSet of {self._toolset.__qualname__}: {count} hook{'s' * (count != 1)}>"
