"""Where the hooks of one toolset are kept, and which of them review a tool's calls.

There is one place for each direct member, one for all members, and the same again for each nested
toolset. A hook for an inner tool is kept in the inner places, however it was registered, so that
there is one list in one order. A counter that all hook sets share says which hook came first when
several lists are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, TypeAlias, TypeVar

from .._call.selector import AnySelector
from .._declare.hook_names import Phase
from .._declare.toolset_meta import ToolsetMeta
from .._text.immutable import Settled
from .._text.json import shorten
from .._text.suggestion import names_for_message
from ..errors import HookError, MisuseError
from .registered_hook import PhaseHooks, RegisteredHook, in_order

if TYPE_CHECKING:
    from typing import Self

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
    for key, member in toolset._members.items():
        if isinstance(member, ToolsetMeta) and member._origin is of:
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
        for key, member in own._members.items():
            if isinstance(member, AnySelector):
                self._tools[key] = PhaseHooks()
                continue
            inner: Any = nested.pop(key) if key in nested else hook_set(member._origin)
            if getattr(inner, "_toolset", None) is not member._origin:
                raise HookError(
                    f"{own.__qualname__}.HookSet({key}=...) takes a hook set of "
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
        # A member and the class it was made of share `_origin`. A toolset that was named through an
        # outer one, as `App.data`, is a subclass of that origin, and stands for its own path alone.
        own = member or self._toolset
        if own._origin is given._origin and (issubclass(own, given) or issubclass(given, own)):
            yield self
            return
        for key, inner in self._groups.items():
            group: Any = own._members[key]
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
            member = self._toolset._by_name.get(selector.name)
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
