"""`HookSet`: who decides about the calls of one toolset; how one registers hooks, and runs them.

Where they are kept, and in which order they run, is in `registered_hook`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from .._call.call import AnyToolCall, HookOutcome
from .._call.drivers import HookGenerator, drive, drive_sync
from .._call.selector import AnySelector, FnSelector, Selector
from .._text.escaping import meant_by, names_for_message
from .._text.json import shorten
from .._toolsets.hook_names import HOOK_KINDS, Phase, generated_names, policy_methods, slot_of
from .._toolsets.members import members_of
from .._toolsets.toolset_meta import ToolsetMeta
from ..errors import HookError, UnknownToolError
from .registered_hook import (
    AfterVerdict,
    ArgsHook,
    ArgsHookDecorator,
    GateDecorator,
    GateVerdict,
    HookDecorator,
    HookPlaces,
    PhaseHooks,
    RegisteredHook,
    SharedHookDecorator,
    cannot_register,
)

if TYPE_CHECKING:
    from typing import Self

    from .._call.call import ToolCall
    from .._call.call_state import DecodedCall
    from .._call.decisions import ArgsDecision, Complete, Reject, RunNormally, ToolDecision
    from .._context.suspension import Decision
    from .._schema.definition import ToolDef
    from .._transcript.assistant import ToolMetadata
    from .._transcript.result import ToolResult

T = TypeVar("T")
T2 = TypeVar("T2")
Params = ParamSpec("Params")
Input = TypeVar("Input")
Input2 = TypeVar("Input2")
Output = TypeVar("Output")
Output2 = TypeVar("Output2")


class HookSet(HookPlaces[T]):
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

    # Registering, typed.

    @overload
    def on(
        self, selector: Selector[Input, Output], /
    ) -> HookDecorator[[ToolMetadata, Input], ToolDecision[Input, Output]]: ...
    @overload
    def on(
        self, selector: Selector[Input, Output], other: Selector[Input2, Output2], /
    ) -> SharedHookDecorator[
        [ToolMetadata, Input],
        RunNormally[Input | Input2] | Complete[Output] | Reject,
        [ToolMetadata, Input2],
        RunNormally[Input | Input2] | Complete[Output2] | Reject,
    ]: ...
    def on(self, selector: AnySelector, /, *others: AnySelector) -> Any:
        """Register an execution hook: it may change the input, complete the call, or reject it.

        Args:
            selector: The tool. A member of a nested toolset stands for each path to it.
            others: Another tool, for a hook of two. For more tools, put several decorators above
                each other.

        Returns:
            A decorator for a function of `(metadata, input)` that returns `RunNormally(input)`,
            `Complete(output)` or `Reject(reason)`, or an awaitable of one.

        Raises:
            HookError: The tool is not in the toolset.
        """
        return self._registrar("execution", selector, *others)

    def on_args(
        self, selector: FnSelector[Params, Output], /
    ) -> ArgsHookDecorator[Params, ArgsDecision[Output]]:
        """Register an execution hook that has the parameters of the tool's own function.

        It is called as the function would be, or with those of its parameters that it names; if it
        takes a `ToolContext`, with one that reports to nobody.

        Args:
            selector: A function tool. A member of a nested toolset stands for each path to it.

        Returns:
            A decorator for a function that returns None to go on as it is, a mapping of the
            arguments to change, `selector.with_args(...)` of all of them, `Complete(output)` or
            `Reject(reason)`, or an awaitable of one.

        Raises:
            HookError: The tool is not in the toolset, or is not a function tool; or the function
                takes other parameters, or a hidden one of the tool that has no default.
        """
        register = self._registrar("execution", selector)

        def register_args(function: Any) -> Any:
            register(ArgsHook(function, selector))
            return function

        return register_args

    @overload
    def gate(
        self, selector: Selector[Input, Output], /
    ) -> GateDecorator[
        [ToolMetadata, Input], [ToolMetadata, Input, Decision | None], GateVerdict[Output]
    ]: ...
    @overload
    def gate(
        self, selector: type[Any] | None = None, /
    ) -> GateDecorator[
        [ToolMetadata, Any], [ToolMetadata, Any, Decision | None], GateVerdict[Any]
    ]: ...
    def gate(self, selector: AnySelector | type[Any] | None = None, /) -> Any:
        """Register a gate: it sees the final input, and may block, suspend or complete the call.

        Args:
            selector: The tool, or a nested toolset for its tools; all tools if it is left out.

        Returns:
            A decorator for a function of `(metadata, input)`, or of `(metadata, input, decision)`,
            that returns `Block(reason)`, `Suspend(ticket)`, `Complete(output)`, a `ToolResult` or
            None, or an awaitable of one. The decision is the one by which a suspended call goes
            on, else None; a third parameter with a default gets it only if it is called `decision`.

        Raises:
            HookError: The tool or group is not in the toolset.
        """
        return self._registrar("gate", selector)

    @overload
    def before(
        self, selector: Selector[Input, Any], /
    ) -> HookDecorator[[ToolMetadata, Input], None]: ...
    @overload
    def before(
        self, selector: type[Any] | None = None, /
    ) -> HookDecorator[[ToolMetadata, Any], None]: ...
    def before(self, selector: AnySelector | type[Any] | None = None, /) -> Any:
        """Register a function of `(metadata, input)` for calls that are going to be run.

        It reviews each call once, and decides nothing. It reviews a call that waits
        when hooks are applied again after an approval, or when `amend` takes in an edit.

        Args:
            selector: The tool, or a nested toolset for its tools; all tools if it is left out.

        Raises:
            HookError: The tool or group is not in the toolset.
        """
        return self._registrar("before", selector)

    @overload
    def after(
        self, selector: Selector[Input, Output], /
    ) -> HookDecorator[[ToolCall[Input, Output], ToolResult], AfterVerdict[Output]]: ...
    @overload
    def after(
        self, selector: type[Any] | None = None, /
    ) -> HookDecorator[[ToolCall[Any, Any], ToolResult], AfterVerdict[Any]]: ...
    def after(self, selector: AnySelector | type[Any] | None = None, /) -> Any:
        """Register a function of `(call, result)` that may put another result in its place.

        It returns None, `Complete(output)`, `Reject(reason)` or a `ToolResult` of the call.

        It returns `Complete(output)`, `Reject(reason)`, a `ToolResult`, or None to leave it.

        Args:
            selector: The tool, or a nested toolset for its tools; all tools if it is left out.

        Raises:
            HookError: The tool or group is not in the toolset.
        """
        return self._registrar("after", selector)

    def describe(self, selector: AnySelector, /) -> HookDecorator[[ToolDef], str | None]:
        """Register a function of the definition that returns another description, or None.

        One for each tool: a later one takes the place of an earlier one, with a warning.

        Raises:
            HookError: The tool is not in the toolset.
        """
        made: Any = self._registrar("description", selector)
        return made  # type: ignore[no-any-return]

    def _registrar(self, phase: Phase, *selectors: AnySelector | type[Any] | None) -> Any:
        places = dict.fromkeys(each for one in selectors for each in self._places_of(phase, one))

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
        place.add(phase, hook)

    def _places_of(
        self, phase: Phase, selector: AnySelector | type[Any] | None
    ) -> list[PhaseHooks]:
        if phase not in ("execution", "description"):
            if selector is None:
                return [self._everywhere]
            if isinstance(selector, ToolsetMeta):
                groups = dict.fromkeys(each._everywhere for each in self._groups_for(selector))
                if groups:
                    return list(groups)
        if not isinstance(selector, AnySelector | str):
            raise cannot_register(phase, selector, self._toolset)
        if isinstance(selector, AnySelector):
            # A bound view makes hook sets of its origin, whose own member is meant.
            selector = selector._reaches(self._toolset) or selector
        try:
            members = members_of(self._toolset).find(selector)
        except UnknownToolError as error:
            raise HookError(f"{HOOK_KINDS[phase].named} cannot be registered: {error}") from error
        return list(dict.fromkeys(self._at(member.path) for member in members))

    # Registering, by generated name.

    if not TYPE_CHECKING:  # else every misspelt name would have a type

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or "_groups" not in self.__dict__:
                raise AttributeError(name)
            if name in self._groups:
                return self._groups[name]
            for verb in ("register_", "with_"):
                if name.startswith(verb) and (slot := slot_of(self._tools, name[len(verb) :])):
                    return self._generated(verb, *slot)
            hint = meant_by(name, [*self._groups, *self._names()])
            raise AttributeError(
                f"The hook set of {self._toolset.__qualname__} has no `{name}`.{hint} Its tools "
                f"are {names_for_message(self._tools)}, its nested sets "
                f"{names_for_message(self._groups)}.",
                name=name,  # alone, so that Python adds no suggestion of its own
            )

    # `hooks.register_weather_gate(f)` and `hooks.with_weather_gate(f)` are made when requested: one
    # for each tool and kind of hook would be far more methods than are ever used.
    def _generated(self, verb: str, member: str, phase: Phase) -> Any:
        def register(function: Any, /) -> None:
            self._add(self._tools[member], phase, RegisteredHook(function, phase))

        def with_hook(function: Any, /) -> Any:
            made = self.copy()
            made._add(made._tools[member], phase, RegisteredHook(function, phase))
            return made

        return register if verb == "register_" else with_hook

    def _names(self) -> Iterator[str]:
        for name in generated_names(self._tools):
            yield f"register_{name}"
            yield f"with_{name}"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._groups, *self._names()]

    def register_hooks(self, policy: Any, /) -> None:
        """Register every hook that a policy object defines, in the order of definition.

        Args:
            policy: An object with methods that are marked, as by `policy.on(AppTools.weather)`, or
                named, as `weather_hook` or `weather_gate`. See `lutum_py.policy`.

        Raises:
            HookError: A method ends like a hook, but there is no such member; or one is marked for
                a tool that is not in the toolset. Nothing is registered.
        """
        if isinstance(policy, HookSet):
            raise HookError("A hook set is not a policy. Use `hooks.extend(other)`.")
        found: list[tuple[list[PhaseHooks], Phase, RegisteredHook]] = [
            (
                self._places_of(mark.phase, mark.selector),
                mark.phase,
                RegisteredHook(method, mark.phase),
            )
            for mark, method in policy_methods(members_of(self._toolset), policy)
        ]
        for places, phase, hook in found:
            for place in places:
                self._add(place, phase, hook)

    def with_hooks(self, policy: Any, /) -> Self:
        """Return a copy with the hooks of a policy object."""
        made = self.copy()
        made.register_hooks(policy)
        return made

    def extend(self, other: HookSet[T], /) -> None:
        """Add the hooks of another hook set of the same toolset, after those that are here.

        A nested hook set that both keep is left as it is.

        Raises:
            HookError: The other is not a hook set of the same toolset.
        """
        if not isinstance(other, HookSet) or other._toolset is not self._toolset:
            raise HookError(
                f"The hook set of {self._toolset.__qualname__} can only be extended by another one "
                f"of the same toolset, not by {shorten(other)}."
            )
        # By place and hook: nested sets that both have appear on each path to them, and a hook
        # would be added once for each.
        found: dict[tuple[int, int], tuple[PhaseHooks, Phase, RegisteredHook]] = {}
        for mine, theirs in self._paired(other):
            for phase, hook in theirs.all():
                found.setdefault((id(mine), id(hook)), (mine, phase, hook))
        for place, phase, hook in sorted(found.values(), key=lambda entry: entry[2].order):
            self._add(place, phase, RegisteredHook(hook.function, phase))

    def with_extended(self, other: HookSet[T], /) -> Self:
        """Return a copy with the hooks of another hook set after its own."""
        made = self.copy()
        made.extend(other)
        return made

    # Reading.

    def __getitem__(self, inner: type[T2], /) -> HookSet[T2]:
        """Return the hook set of a nested toolset, as in `hooks[AppTools.data]`."""
        hooks: Any = self
        known: Any = self._toolset
        is_toolset = isinstance(inner, ToolsetMeta)
        for group in members_of(inner).path if is_toolset else ():
            if group not in hooks._groups:
                break
            hooks, known = hooks._groups[group], members_of(known).by_key[group]
        if known is not inner or hooks is self:
            raise HookError(
                f"{shorten(inner)} is not nested in {self._toolset.__qualname__}. Name it through "
                f"the outer toolset, as in `hooks[{self._toolset.__name__}.group]`; nested are "
                f"{names_for_message(self._groups)}."
            )
        found: HookSet[T2] = hooks
        return found

    async def hook_tool_call(self, call: AnyToolCall, /) -> HookOutcome:
        """Send one call through the hooks."""
        return await call.hook(self)

    def _review(self, call: DecodedCall) -> HookGenerator[object]:
        from .pipeline import review_calls  # with `logging`, which is slow to import

        return review_calls([call], self)

    async def description_overrides(self) -> list[tuple[Selector[Any, Any], str]]:
        """Run the description hooks.

        Returns:
            Pairs of selector and text for `.describe_many_tools(...)`; tools without a hook, or
            whose hook returned None, are left out.
        """
        from .pipeline import describe

        return await drive(describe(self))

    def description_overrides_sync(self) -> list[tuple[Selector[Any, Any], str]]:
        """Do as `description_overrides` does, if every description hook is sync."""
        from .pipeline import describe

        return drive_sync(describe(self))

    def __repr__(self) -> str:
        count = sum(1 for place, _ in self._paired(self) for _ in place.all())
        return f"<HookSet of {self._toolset.__qualname__}: {count} hook{'s' * (count != 1)}>"
