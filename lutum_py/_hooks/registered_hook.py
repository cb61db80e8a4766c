"""One registered hook, and the lists in which a hook set keeps them.

Hooks review a call in the order of registration. Within one list that is its own order; when the
lists of several places are joined, a counter that all hook sets share says which hook came first.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Never,
    Protocol,
    TypeAlias,
    overload,
)

from typing_extensions import ParamSpec, TypeVar

from .._call.deciding import with_arguments
from .._call.decisions import Block, Complete, Reject, RunNormally, Suspend
from .._call.selector import AnySelector
from .._call.spec import FnSpec
from .._schema.signature import VARIADIC, function_name, has_signature, signature_of
from .._text.escaping import names_for_message
from .._text.immutable import Settled
from .._text.json import is_mapping, shorten
from .._toolsets.hook_names import HOOK_KINDS, Phase
from .._toolsets.members import members_of
from .._toolsets.toolset_meta import ToolsetMeta
from .._transcript.assistant import ToolMetadata
from .._transcript.result import ToolResult
from ..errors import HookError, MisuseError

if TYPE_CHECKING:
    from typing import Self

    from .._call.call import AnyToolCall
    from .._call.decisions import Block, Complete, Suspend
    from .._context.suspension import Decision
    from .._transcript.transcript import Transcript

_order = itertools.count()
_order_of = attrgetter("order")


class RegisteredHook:
    """One function in one phase, and when it was registered.

    Attributes:
        function: The function.
        name: Its qualified name, for messages and records.
        order: Its place among all that were registered.
        takes_decision: Whether it is a gate that also takes the decision.
        any_after: Whether any after-hook was ever registered: most programs have none, and need
            not look for those that a commit would miss.
    """

    any_after: ClassVar[bool] = False

    __slots__ = ("function", "name", "order", "takes_decision")

    def __init__(self, function: Any, phase: Phase) -> None:
        if not callable(function):
            raise HookError(
                f"{HOOK_KINDS[phase].named} is a function, not {shorten(function)}. Pass the "
                "function itself."
            )
        signature = _signature_of(function)
        if signature is not None:
            _check_parameters(function, signature, phase)
        if phase == "after":
            RegisteredHook.any_after = True
        self.function: Any = function
        self.name: str = function_name(function)
        # `next` of a counter is one step in C, which two threads cannot do half of each.
        self.order = next(_order)
        self.takes_decision = (
            phase == "gate" and signature is not None and _takes_decision(signature)
        )


def _signature_of(function: Any) -> inspect.Signature | None:
    """Read the parameters of a function; those of what it wraps only if it takes `*args`."""
    try:
        own = signature_of(function, follow_wrapped=False)
        if any(each.kind is each.VAR_POSITIONAL for each in own.parameters.values()):
            return signature_of(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return None
    return own


def _check_parameters(function: Any, signature: inspect.Signature, phase: Phase) -> None:
    """Refuse a function that cannot be called as hooks of its phase are.

    Raises:
        HookError: It takes other parameters; the text says which it would have to take.
    """
    wanted = HOOK_KINDS[phase].takes
    # A gate may take the decision as well.
    for given in (wanted, (*wanted, "decision")) if phase == "gate" else (wanted,):
        with suppress(TypeError):
            signature.bind(*given)
            return
    name = function_name(function)
    raise HookError(
        f"{HOOK_KINDS[phase].named} is called with ({', '.join(wanted)}), but `{name}` takes "
        f"{bare(signature)}. Give it these parameters.",
        hook=name,
    )


def bare(signature: inspect.Signature) -> str:
    """Write a signature without its annotations."""
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _takes_decision(signature: inspect.Signature) -> bool:
    """Whether a gate has a third parameter that is meant for the decision.

    One with a default is not, unless its name is `decision`: `lambda metadata, input, limit=limit:
    ...` is how a lambda keeps a value, and a decision in its place would do harm.
    """
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 3:
        return any(p.kind is p.VAR_POSITIONAL for p in parameters)
    third = positional[2]
    return third.default is third.empty or third.name == "decision"


class ArgsHook:
    """Call a hook of a function's own parameters as the pipeline calls any execution hook.

    Raises:
        HookError: The tool is not a function tool, or has a parameter that a hook cannot be given;
            or the hook takes other parameters.
    """

    def __init__(self, function: Any, selector: AnySelector) -> None:
        if not has_signature(function):
            raise HookError(
                f"An execution hook is a function, not {shorten(function)}. Pass the function "
                "itself."
            )
        self.function = function
        self.spec = selector.spec
        # The pipeline, and what it writes down, names a hook by its function: the user's, and not
        # this class.
        self.__qualname__ = function_name(function)
        self._names: dict[str, str] = {}
        # Of a hook that takes some of the parameters: its name of each, the function's own (None
        # for the context), and whether it is passed by place.
        self._some: list[tuple[str, str | None, bool]] | None = None
        self._check(selector)

    def _check(self, selector: AnySelector) -> None:
        invocation = self.spec.invocation
        if invocation is None or not isinstance(self.spec, FnSpec):
            raise HookError(
                f"Tool `{selector.name}` has no function with parameters of its own. Write "
                "`@hooks.on(selector)` above a function of `(metadata, input)`.",
                tool=selector.name,
            )
        given = signature_of(self.function).parameters
        asked = [name for name, each in given.items() if each.default is each.empty]
        if withheld := sorted(invocation.required.intersection(asked)):
            raise HookError(
                f"Tool `{selector.name}` takes {names_for_message(withheld)}, which nobody passes "
                f"to a hook. Leave it out of `{self.__qualname__}`, or give it a default there.",
                hook=self.__qualname__,
                tool=selector.name,
            )
        # It may call a parameter by its name on the wire.
        for name in given:
            parameter = self.spec.parameter_named(name)
            if parameter is not None and parameter not in (name, *invocation.positional):
                self._names[parameter] = name
        unfit = invocation.unfit(self.function, self._names)
        if unfit is None and not invocation.required:
            return
        # It takes some of the parameters only, each by its name.
        self._some = []
        for name, each in given.items():
            is_context = name == invocation.context
            parameter = name if is_context else self.spec.parameter_named(name)
            if parameter is not None:
                by_place = each.kind is each.POSITIONAL_ONLY
                self._some.append((name, None if is_context else parameter, by_place))
                continue
            if each.kind in VARIADIC or each.default is not each.empty:
                continue
            taken = signature_of(invocation.function)
            raise HookError(
                f"An execution hook of tool `{selector.name}` is called with the parameters of "
                f"its function, {bare(taken)}, but `{self.__qualname__}` takes "
                f"{bare(signature_of(self.function))}: {unfit}. Give it these parameters, or "
                "some of them.",
                hook=self.__qualname__,
                tool=selector.name,
            )

    def __call__(self, metadata: ToolMetadata, input: Any) -> Any:
        """Call the hook; None leaves the input as it is, a mapping has the arguments to change."""
        invocation: Any = self.spec.invocation
        from .._context.context import ToolContext

        # The function may take a `ToolContext`, which knows its call. This one is of no plan, so a
        # hook cannot do anything to the call that it reviews.
        call = self.spec.call_type(metadata, input)
        positional: list[Any]
        named: dict[Any, Any]
        if self._some is None:
            positional, keywords = invocation.bind(call, input, {})
            named = {self._names.get(name, name): value for name, value in keywords.items()}
        else:
            values = {**invocation.arguments_of(input), None: ToolContext.noop(call)}
            positional = [values[own] for _, own, by_place in self._some if by_place]
            named = {name: values[own] for name, own, by_place in self._some if not by_place}
        answer: Any = self.function(*positional, **named)
        # Awaited only if there is something to await, so that a plain function can be asked from
        # sync code.
        if hasattr(answer, "__await__"):
            return self._awaited(answer, metadata, input)
        return self._decision(answer, metadata, input)

    async def _awaited(self, answer: Awaitable[Any], metadata: ToolMetadata, input: Any) -> Any:
        return self._decision(await answer, metadata, input)

    def _decision(self, answer: Any, metadata: ToolMetadata, input: Any) -> Any:
        if answer is None:
            return RunNormally(input)
        if not is_mapping(answer):
            return answer
        return with_arguments(self.spec, metadata.name, input, answer)


class CallGate:
    """Base of stock gates: they take the call and the decision by which it goes on, if any.

    Attributes:
        transcript: The conversation that the gate goes by, if it goes by one: a call of another
            conversation is refused.
    """

    transcript: Transcript | None = None

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError


class PhaseHooks:
    """The hooks of one place, a list for each phase.

    Attributes:
        changes: Another object with each change of any place: what was worked out under an older
            one is stale. It is not a counter, since two threads that add at once may count one.
    """

    changes: ClassVar[object] = object()

    __slots__ = ("_hooks",)

    def __init__(self) -> None:
        self._hooks: dict[Phase, list[RegisteredHook]] = {phase: [] for phase in HOOK_KINDS}

    def of(self, phase: Phase) -> list[RegisteredHook]:
        """Return the list of a phase."""
        return self._hooks[phase]

    def add(self, phase: Phase, hook: RegisteredHook) -> None:
        """Add a hook after those of its phase; of descriptions there is one at most."""
        hooks = self.of(phase)
        if phase == "description":
            hooks[:] = [hook]
        else:
            hooks.append(hook)
        PhaseHooks.changes = object()

    def all(self) -> Iterator[tuple[Phase, RegisteredHook]]:
        """Yield every hook with its phase."""
        for phase in HOOK_KINDS:
            for hook in self.of(phase):
                yield phase, hook

    def copy(self) -> PhaseHooks:
        """Return lists of their own with the same hooks."""
        made = PhaseHooks()
        made._hooks = {phase: [*hooks] for phase, hooks in self._hooks.items()}
        return made


NO_HOOKS: Final[list[RegisteredHook]] = []


def in_order(places: tuple[PhaseHooks, ...], phase: Phase) -> list[RegisteredHook]:
    """List the hooks of one phase, those first that were registered first."""
    filled = [hooks for place in places if (hooks := place.of(phase))]
    # The list itself, and no copy: nearly every tool has its hooks in one place.
    if len(filled) < 2:
        return filled[0] if filled else NO_HOOKS
    return sorted(itertools.chain(*filled), key=_order_of)


# `guard`, `guard#2`: a saved plan names the hooks that reviewed its calls, and another process has
# other function objects. The name alone would not tell two lambdas of one line apart.
def keyed(hooks: Iterable[RegisteredHook]) -> Iterator[tuple[str, RegisteredHook]]:
    """Yield each hook with a key that is the same in another process: its name, counted."""
    seen: dict[str, int] = {}
    for hook in hooks:
        count = seen[hook.name] = seen.get(hook.name, 0) + 1
        yield (hook.name if count == 1 else f"{hook.name}#{count}"), hook


def cannot_register(phase: Phase, given: object, toolset: Any) -> HookError:
    """Make the error for a decorator that got something else than a selector."""
    kind, has_groups = HOOK_KINDS[phase], phase in ("gate", "before", "after")
    first = next(iter(toolset), None)
    example = "tool" if first is None else ".".join(first.path)
    remedy = f"Name a tool, as in `{toolset.__name__}.{example}`"
    if isinstance(given, ToolsetMeta):
        if has_groups:
            remedy += f", or a toolset that {toolset.__name__} nests"
    elif callable(given):
        remedy = f"Write `@hooks.{kind.verb}(selector)`"
        if has_groups:
            remedy += f", or `@hooks.{kind.verb}()`,"
        remedy += " above the function"
    return HookError(f"{kind.named} cannot be registered for {shorten(given)}. {remedy}.")


Asked = ParamSpec("Asked")
Asked2 = ParamSpec("Asked2")
Written = ParamSpec("Written")
Gate = TypeVar("Gate", bound=CallGate)
Output = TypeVar("Output")
Answer_contra = TypeVar("Answer_contra", contravariant=True)
Answer2_contra = TypeVar("Answer2_contra", contravariant=True)
Answer_co = TypeVar("Answer_co", covariant=True)
Answer2_co = TypeVar("Answer2_co", covariant=True)
Returned = TypeVar("Returned")
Returned_co = TypeVar("Returned_co", covariant=True)
# Of a callable that is known only by what it takes and gives, such as one that a function returned,
# mypy finds neither, and takes the defaults. Another overload would leave it in doubt about each
# hook that has an `Any`.
Own = ParamSpec("Own", default=...)
Gave = TypeVar("Gave", default=Any)

AfterVerdict: TypeAlias = Complete[Output] | Reject | ToolResult | None
"""What an after-hook returns."""
GateVerdict: TypeAlias = Block | Suspend | Complete[Output] | ToolResult | None
"""What a gate returns."""


class HookFunction(Protocol[Asked, Answer_co, Written, Returned_co]):
    """A function that is called in one way, sync or async, and was written in its own."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(self, *args: Written.args, **kwargs: Written.kwargs) -> Returned_co: ...


class SharedHookFunction(  # type: ignore[misc]  # two answers that overlap: mypy takes them for invariant
    Protocol[Asked, Answer_co, Asked2, Answer2_co, Written, Returned_co]
):
    """The same as `HookFunction`, of a function that reviews two tools."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(
        self, *args: Asked2.args, **kwargs: Asked2.kwargs
    ) -> Answer2_co | Awaitable[Answer2_co]: ...
    @overload
    def __call__(self, *args: Written.args, **kwargs: Written.kwargs) -> Returned_co: ...


class ArgsHookFunction(Protocol[Asked, Answer_co, Returned_co]):
    """A function that is called in the way that it was written, and gives its own verdict."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Returned_co: ...


class ArgsHookDecorator(Protocol[Asked, Answer_contra]):
    """Takes a function of a tool's own parameters, and gives it back as it was."""

    def __call__(
        self, hook: ArgsHookFunction[Asked, Answer_contra, Returned], /
    ) -> Callable[Asked, Returned]:
        """Register the function."""
        ...


class HookDecorator(Protocol[Asked, Answer_contra]):
    """Takes a function that is called so, and gives it back as it was."""

    def __call__(
        self, hook: HookFunction[Asked, Answer_contra, Own, Gave], /
    ) -> Callable[Own, Gave]:
        """Register the function."""
        ...


class SharedHookDecorator(Protocol[Asked, Answer_contra, Asked2, Answer2_contra]):
    """Takes a function that reviews two tools, and gives it back as it was."""

    def __call__(
        self, hook: SharedHookFunction[Asked, Answer_contra, Asked2, Answer2_contra, Own, Gave], /
    ) -> Callable[Own, Gave]:
        """Register the function."""
        ...


class GateDecorator(Protocol[Asked, Asked2, Answer_contra]):
    """Takes a gate, with or without a parameter for the decision, and gives it back as it was."""

    @overload
    def __call__(self, hook: Gate, /) -> Gate: ...
    @overload
    def __call__(
        self, hook: HookFunction[Asked, Answer_contra, Own, Gave], /
    ) -> Callable[Own, Gave]: ...
    @overload
    def __call__(
        self, hook: HookFunction[Asked2, Answer_contra, Own, Gave], /
    ) -> Callable[Own, Gave]: ...


T = TypeVar("T")

_Deciding: TypeAlias = tuple[list[RegisteredHook], list[RegisteredHook], list[RegisteredHook]]
"""The execution hooks, the gates and the before-hooks of a tool."""


def _misplaced(toolset: ToolsetMeta, given: Any) -> MisuseError:
    """Make the error for a hook set without the name of its member: it says how to pass it."""
    name, of = toolset.__qualname__, getattr(given, "_toolset", None)
    remedy = (
        "To add the hooks of a hook set of this toolset, write `hooks.extend(other)`; for a "
        "policy, `hooks.register_hooks(policy)`."
    )
    for key, member in members_of(toolset).by_key.items():
        if isinstance(member, ToolsetMeta) and members_of(member).origin is of:
            remedy = f"Write `{name}.HookSet({key}=...)`."
            break
    return MisuseError(
        f"{name}.HookSet() takes hook sets by the name of the nested toolset, not "
        f"{shorten(given)}. {remedy}"
    )


class HookPlaces(Settled, Generic[T]):
    """Keep the hooks of one toolset, and find those of a tool."""

    _way: ClassVar[str] = (
        "no hook would review a call by it. Register hooks in place, as by `hooks.data.on(...)`, "
        "or give the set of a nested toolset where the outer one is made: "
        "`App.HookSet(data=...)`."
    )

    def __init__(self, toolset: type[T], /, *misplaced: Never, **nested: HookPlaces[Any]) -> None:
        own: Any = toolset
        if not isinstance(own, ToolsetMeta):
            raise MisuseError.of_field(
                "HookSet", "toolset", "a toolset", toolset, "Write `AppTools.HookSet()`."
            )
        if misplaced:
            raise _misplaced(own, misplaced[0])
        self._toolset: ToolsetMeta = own
        self._tools: dict[str, PhaseHooks] = {}
        self._groups: dict[str, HookPlaces[Any]] = {}
        self._everywhere = PhaseHooks()
        # For `App.data.find` the places are those of all of `App`, of all of `App.data`, and of
        # `find`: the same for each call, so they are looked for once.
        self._placed: dict[AnySelector, tuple[PhaseHooks, ...]] = {}
        self._deciding: dict[AnySelector, tuple[object, *_Deciding]] = {}
        hook_set: Any = type(self)
        for key, member in members_of(own).by_key.items():
            if isinstance(member, AnySelector):
                self._tools[key] = PhaseHooks()
                continue
            origin = members_of(member).origin
            inner: Any = nested.pop(key) if key in nested else hook_set(origin)
            if getattr(inner, "_toolset", None) is not origin:
                raise HookError(
                    f"{own.__qualname__}.HookSet({key}=...) takes a hook set of "
                    f"{origin.__qualname__}, not {shorten(inner)}."
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

    def _at(self, path: tuple[str, ...]) -> PhaseHooks:
        hooks: HookPlaces[Any] = self
        for group in path[:-1]:
            hooks = hooks._groups[group]
        return hooks._tools[path[-1]]

    def _groups_for(
        self, given: Any, member: ToolsetMeta | None = None
    ) -> Iterator[HookPlaces[Any]]:
        """Find the hook sets that a toolset names: this one, or those nested in it.

        As with selectors, an inner toolset such as `Data` names each path to it, and one that was
        named through an outer toolset, such as `App.data`, names that path alone.

        Args:
            given: The toolset.
            member: The member that these hooks are nested as; None where the search begins.
        """
        # A member and the class it was made of share `origin`. A toolset that was named through an
        # outer one, as `App.data`, is a subclass of that origin, and stands for its own path alone.
        own = member or self._toolset
        is_same = members_of(own).origin is members_of(given).origin
        if is_same and (issubclass(own, given) or issubclass(given, own)):
            yield self
            return
        for key, inner in self._groups.items():
            group: Any = members_of(own).by_key[key]
            yield from inner._groups_for(given, group)

    def _paired(self, other: HookPlaces[Any]) -> Iterator[tuple[PhaseHooks, PhaseHooks]]:
        """Pair each place of this hook set with the same place of another."""
        yield self._everywhere, other._everywhere
        for key, place in self._tools.items():
            yield place, other._tools[key]
        for key, inner in self._groups.items():
            # A nested set that both share has its hooks in both already.
            if other is self or other._groups[key] is not inner:
                yield from inner._paired(other._groups[key])

    def copy(self) -> Self:
        """Return a hook set of its own with the same hooks, nested ones included."""
        return self.__deepcopy__({})

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # By identity: a set that is nested twice stays one set in the copy, so that what is
        # registered in it holds on both paths.
        made: Self | None = memo.get(id(self))
        if made is None:
            made = memo[id(self)] = object.__new__(type(self))
            made._toolset = self._toolset
            made._tools = {key: place.copy() for key, place in self._tools.items()}
            made._groups = {key: inner.__deepcopy__(memo) for key, inner in self._groups.items()}
            made._everywhere = self._everywhere.copy()
            made._placed, made._deciding = {}, {}
        return made

    def _places_for(self, selector: AnySelector) -> tuple[PhaseHooks, ...]:
        """List the places whose hooks review calls of a tool.

        None are listed for a tool of an outer toolset that the toolset of these hooks lacks.

        Raises:
            HookError: The calls of the tool belong to another toolset.
        """
        places = self._placed.get(selector)
        if places is None:
            # Neither members nor nested sets are ever replaced, so the places stay what they are.
            places = self._placed[selector] = tuple(self._find_places(selector))
        return places

    def _find_places(self, selector: AnySelector) -> Iterator[PhaseHooks]:
        member = selector._reaches(self._toolset)
        if selector.toolset is None:
            member = members_of(self._toolset).by_name.get(selector.name)
            if member is not None and member.spec is not selector.spec:
                member = None
        if member is None:
            self._check_related(selector)
            return
        # Of `App.data.find` with the path `("data", "find")`: everywhere in `App`, everywhere in
        # `App.data`, then `find` itself.
        hooks: HookPlaces[Any] = self
        yield hooks._everywhere
        for group in member.path[:-1]:
            hooks = hooks._groups[group]
            yield hooks._everywhere
        yield hooks._tools[member.path[-1]]

    def _check_related(self, selector: AnySelector) -> None:
        toolset: Any = selector.toolset
        if toolset is None or not self._is_within(toolset):
            source = "outside of any toolset" if toolset is None else f"in {toolset.__qualname__}"
            what = f"tool `{selector.name}` was called {source}"
            raise self._unrelated(what, tool=selector.name)

    def _is_within(self, toolset: Any) -> bool:
        own: Any = self._toolset
        return any(each._reaches(own) for each in toolset)

    def _unrelated(self, what: str, *, tool: str | None = None) -> HookError:
        return HookError(
            f"The hooks are of {self._toolset.__qualname__}, but {what}, so that none of them "
            "would review its calls. Pass the hooks of the toolset that the turn was read with.",
            tool=tool,
        )

    def _decisions_for(self, selector: AnySelector) -> _Deciding:
        """List the execution hooks, the gates and the before-hooks of a tool.

        Raises:
            HookError: The calls of the tool belong to another toolset.
        """
        # Worked out once for each tool, until any hook set is changed: a nested one may be kept by
        # others too. `changes` is read first, so that a hook that is added meanwhile is not missed.
        known = self._deciding.get(selector)
        changes = PhaseHooks.changes
        if known is None or known[0] is not changes:
            places = self._places_for(selector)
            known = self._deciding[selector] = (
                changes,
                in_order(places, "execution"),
                in_order(places, "gate"),
                in_order(places, "before"),
            )
        return known[1:]

    def _hooks_for(self, selector: AnySelector, phase: Phase) -> list[RegisteredHook]:
        """List the hooks of one phase for a tool, in the order in which they run.

        Raises:
            HookError: The calls of the tool belong to another toolset.
        """
        return [*in_order(self._places_for(selector), phase)]


def check_related(hooks: object, toolset: Any) -> None:
    """Refuse hooks that would review no tool of a toolset; one without tools may pass.

    Raises:
        HookError: The toolset is neither that of the hooks, nor one that has that nested.
    """
    if isinstance(hooks, HookPlaces) and len(toolset) and not hooks._is_within(toolset):
        raise hooks._unrelated(f"the turn was read with {toolset.__qualname__}")
