"""`Toolset`: an enum-like group of tools, nested to any depth and flattened on the wire.

The class body is read once, in the metaclass's `__new__` (an error raised in `__set_name__` would
reach the author wrapped in another on Python 3.11). A nested toolset becomes a *bound view*: a
class whose selectors belong to the outer one and remember the inner selector that they stand for.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias, Union

from typing_extensions import Self

from ._assistant import AssistantTurn
from ._call import AnyToolCall
from ._definition import ToolDef
from ._hook_names import check_hook_names, policy_base
from ._hook_set import HookSet as _HookSet
from ._member import GroupMember, ToolMember
from ._metadata import ToolMetadata
from ._offer import Available, Offer, ToolAvailability
from ._outcomes import HandledCall
from ._selector import AnySelector
from ._selector_type import selector_type
from ._suggestion import did_you_mean, names_for_message
from ._turn_outcome import Finished, NeedsTools, open_turn
from .errors import ToolDefinitionError, UnknownToolError

__all__ = ["Toolset", "ToolsetMeta"]


class ToolsetMeta(type):
    """Make toolset classes behave like enums: iterable, sized, closed."""

    _members: dict[str, AnySelector | ToolsetMeta]
    _selectors: tuple[AnySelector, ...]
    _by_name: dict[str, AnySelector]
    _origin: ToolsetMeta
    _path: tuple[str, ...]
    _offer: Offer
    _rebuild: tuple[str, tuple[ToolDef, ...]] | None

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> ToolsetMeta:
        if not bases:
            root: ToolsetMeta = super().__new__(mcs, name, bases, body)
            type.__setattr__(root, "Selector", AnySelector)
            _settle(root, {}, (), None)
            return root
        declared = _read_body(name, bases, body)
        made: ToolsetMeta = super().__new__(mcs, name, bases, body)
        _bind(made, declared)
        return made

    # Like an enum.

    def __iter__(cls) -> Iterator[AnySelector]:
        return iter(cls._selectors)

    def __len__(cls) -> int:
        return len(cls._selectors)

    def __bool__(cls) -> bool:
        return True

    def __contains__(cls, item: object) -> bool:
        if isinstance(item, str):
            return item in cls._by_name
        return isinstance(item, AnySelector) and cls._by_name.get(item.name) is item

    def __getitem__(cls, name: str) -> AnySelector:
        found = cls._by_name.get(name)
        if found is None:
            raise cls._unknown(name)
        return found

    def _unknown(cls, name: str) -> UnknownToolError:
        near = did_you_mean(name, cls._by_name) if isinstance(name, str) else None
        hint = f" Did you mean `{near}`?" if near else ""
        return UnknownToolError(
            f"{cls.__qualname__} has no tool {name!r}.{hint} It has "
            f"{names_for_message(cls._by_name)}.",
            name=str(name),
            suggestion=near,
        )

    def __setattr__(cls, name: str, value: object) -> None:
        if name.startswith("_abc_") or (name.startswith("__") and name.endswith("__")):
            super().__setattr__(name, value)
            return
        raise AttributeError(
            f"{cls.__qualname__}.{name} cannot be assigned: the members of a toolset are fixed "
            "where the class is written. Make another toolset, and nest this one with `toolset()`."
        )

    def __delattr__(cls, name: str) -> NoReturn:
        raise AttributeError(f"{cls.__qualname__}.{name} cannot be deleted: a toolset is fixed.")

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(
            f"{cls.__qualname__} has no instances: use the class itself, as in "
            f"`{cls.__qualname__}.HookSet()` or `.tools({cls.__qualname__})`."
        )

    # What is generated for each toolset.

    @property
    def Call(cls) -> Any:  # noqa: N802 - a type, named as one
        """The union of the calls of all tools."""
        return Union[tuple(s.spec.call_type for s in cls._selectors) or (AnyToolCall,)]  # noqa: UP007

    @property
    def Handled(cls) -> Any:  # noqa: N802 - a type, named as one
        """The union of the handled calls of all tools."""
        return Union[tuple(s.spec.handled_type for s in cls._selectors) or (HandledCall,)]  # noqa: UP007

    @property
    def Hooks(cls) -> type:  # noqa: N802 - a class, named as one
        """The base class of policies: classes with methods such as `<member>_hook`."""
        return policy_base(cls._origin)

    def __repr__(cls) -> str:
        shown = ", ".join(
            f"{'.'.join(selector.path)}{' (off)' if selector.is_off else ''}"
            for selector in cls._selectors
        )
        return f"<toolset {cls.__qualname__}: {shown or 'no tools'}>"


def _read_body(
    name: str, bases: tuple[type, ...], body: dict[str, Any]
) -> dict[str, ToolMember | GroupMember]:
    for base in bases:
        if isinstance(base, ToolsetMeta) and base._members:
            raise ToolDefinitionError(
                f"Toolset `{name}` inherits from `{base.__qualname__}`, which has members. Nest it "
                f"instead: `inner = toolset({base.__name__})`."
            )
    declared: dict[str, ToolMember | GroupMember] = {}
    for key, value in list(body.items()):
        if isinstance(value, ToolMember | GroupMember):
            _check_member_name(name, key)
            declared[key] = value
            del body[key]
        elif not key.startswith("_") and not isinstance(value, _METHODS):
            raise ToolDefinitionError(
                f"Toolset `{name}`: `{key} = {value!r:.60}` is neither a tool nor a method. Declare "
                f"`{key} = tool(...)` or `{key} = toolset(...)`, or move it out of the class."
            )
    check_hook_names(name, declared)
    return declared


_METHODS = (FunctionType, classmethod, staticmethod, property)


def _check_member_name(toolset: str, key: str) -> None:
    if key.startswith("_"):
        raise ToolDefinitionError(
            f"Toolset `{toolset}`: member `{key}` begins with an underscore. Give it a public name."
        )
    if _is_reserved(key):
        owner = "Toolset" if hasattr(Toolset, key) else "HookSet"
        raise ToolDefinitionError(
            f"Toolset `{toolset}`: member `{key}` has the name of something that every {owner} "
            "has. Name the member otherwise; the tool keeps its wire name."
        )


def _is_reserved(key: str) -> bool:
    return hasattr(Toolset, key) or hasattr(_HookSet, key)


def make_toolset(
    name: str,
    declared: Mapping[str, ToolMember | GroupMember],
    *,
    rebuild: tuple[str, tuple[ToolDef, ...]],
) -> ToolsetMeta:
    """Make a toolset of members whose names need not be Python names."""
    body = {"__module__": __name__, "__qualname__": name}
    made: ToolsetMeta = type.__new__(ToolsetMeta, name, (Toolset,), body)
    _bind(made, declared)
    type.__setattr__(made, "_rebuild", rebuild)
    return made


def _bind(owner: ToolsetMeta, declared: Mapping[str, ToolMember | GroupMember]) -> None:
    """Give a new toolset its selectors and the bound views of what it nests."""
    counter: list[AnySelector] = []
    members: dict[str, AnySelector | ToolsetMeta] = {}
    type.__setattr__(owner, "Selector", selector_type(owner))
    for key, member in declared.items():
        if isinstance(member, ToolMember):
            selector = owner.Selector(  # type: ignore[attr-defined]
                member.spec,
                name=member.spec.definition.name,
                path=(key,),
                toolset=owner,
                index=len(counter),
                is_off=member.is_off,
            )
            counter.append(selector)
            members[key] = selector
        else:
            members[key] = _view(owner, member.inner, (key,), member.prefix, member.is_off, counter)
    _settle(owner, members, tuple(counter), None)


def _view(
    owner: ToolsetMeta,
    inner: ToolsetMeta,
    path: tuple[str, ...],
    prefix: str,
    is_off: bool,
    counter: list[AnySelector],
) -> ToolsetMeta:
    """Make the class that stands for an inner toolset on one path of an outer one."""
    start = len(counter)
    members: dict[str, AnySelector | ToolsetMeta] = {}
    body = {
        "__module__": owner.__module__,
        "__qualname__": ".".join((owner.__qualname__, *path)),
        "__doc__": inner.__doc__,
    }
    made: ToolsetMeta = type.__new__(ToolsetMeta, path[-1], (Toolset,), body)
    type.__setattr__(made, "Selector", selector_type(made, owner.Selector))  # type: ignore[attr-defined]
    for key, member in inner._members.items():
        if isinstance(member, AnySelector):
            selector = owner.Selector(  # type: ignore[attr-defined]
                member.spec,
                name=prefix + member.name,
                path=(*path, key),
                toolset=owner,
                inner=member,
                index=len(counter),
                is_off=is_off or member.is_off,
            )
            counter.append(selector)
            members[key] = selector
        else:
            members[key] = _view(owner, member, (*path, key), prefix, is_off, counter)
    _settle(made, members, tuple(counter[start:]), inner._origin)
    type.__setattr__(made, "_path", path)
    return made


def _settle(
    toolset: ToolsetMeta,
    members: dict[str, AnySelector | ToolsetMeta],
    selectors: tuple[AnySelector, ...],
    origin: ToolsetMeta | None,
) -> None:
    by_name: dict[str, AnySelector] = {}
    for selector in selectors:
        other = by_name.setdefault(selector.name, selector)
        if other is not selector:
            raise ToolDefinitionError(
                f"Toolset `{toolset.__qualname__}`: {'.'.join(other.path)} and "
                f"{'.'.join(selector.path)} are both called {selector.name!r} on the wire. Rename "
                "one with `name=`, or nest one under `toolset(..., prefix=...)`."
            )
    values: dict[str, Any] = {
        "_members": members,
        "_selectors": selectors,
        "_by_name": by_name,
        "_origin": origin or toolset,
        "_path": (),
        "_rebuild": None,
    }
    for key, member in members.items():
        # A tool made at run time may be called anything; what is no free name is found by `[]`.
        if key.isidentifier() and not (key.startswith("_") or _is_reserved(key)):
            values[key] = member
    for name, value in values.items():
        type.__setattr__(toolset, name, value)
    type.__setattr__(toolset, "_offer", Offer(selectors))


class Toolset(metaclass=ToolsetMeta):
    """Group tools: subclass it, and declare members with `tool()` and `toolset()`.

    A toolset is used as a class; it has no instances. Iterating gives its selectors, those of
    nested toolsets included, in the order of declaration.

    Example:
        >>> from lutum_py import Toolset, tool, tool_fn
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     plus = tool(add)
        >>> Sums.plus in Sums, "add" in Sums, len(Sums)
        (True, True, 1)
    """

    if TYPE_CHECKING:
        Selector: TypeAlias = AnySelector
        Call: ClassVar[Any]
        Handled: ClassVar[Any]
        Hooks: ClassVar[Any]

    @classmethod
    def HookSet(cls, **nested: _HookSet[Any]) -> _HookSet[Self]:  # noqa: N802 - makes one
        """Make an empty hook set of this toolset.

        Args:
            nested: Hook sets of nested toolsets by the name of the member; kept, not copied.

        Raises:
            HookError: There is no such member, or the hook set is of another toolset.
        """
        return _HookSet(cls._origin, **nested)  # type: ignore[arg-type]

    @classmethod
    def definitions(cls) -> tuple[ToolDef, ...]:
        """Give the definitions of all tools, those that are off included."""
        return cls._offer.all.definitions

    @classmethod
    def definitions_for(cls, selectors: Iterable[AnySelector | str]) -> tuple[ToolDef, ...]:
        """Give the definitions of some tools.

        Raises:
            UnknownToolError: One of them is no tool of this toolset.
        """
        return cls._offer.only(cls, selectors).definitions

    @classmethod
    def default_selectors(cls) -> tuple[AnySelector, ...]:
        """Give the tools that are on."""
        return cls._offer.default.selectors

    @classmethod
    def select(cls, selector: AnySelector | str) -> tuple[AnySelector, ...]:
        """Find every member that a selector or wire name stands for.

        A member of a nested toolset stands for each path on which that toolset is nested here.

        Raises:
            UnknownToolError: There is none.
        """
        if isinstance(selector, str):
            return (cls[selector],)
        if selector in cls:
            return (selector,)
        found = tuple(own for own in cls._selectors if _leads_to(own, selector))
        if not found:
            raise cls._unknown(getattr(selector, "name", str(selector)))
        return found

    @classmethod
    def parse_tool_call(cls, metadata: ToolMetadata) -> AnyToolCall:
        """Decode one call, whether its tool is on or off.

        Raises:
            UnknownToolError: There is no tool of that name.
            InvalidArgumentsError: The arguments do not fit; the error names every failing field.
        """
        return cls[metadata.name].decode(metadata)

    @classmethod
    def read_turn(
        cls, turn: AssistantTurn, available: Available = None, *, redact: bool = False
    ) -> NeedsTools[Self] | Finished:
        """Read a turn of the model: does it need tools, or is it an answer?

        Args:
            turn: The turn, as a dialect decoded it.
            available: The tools that were on offer: a `ToolAvailability`, or selectors; by default
                the tools that are on.
            redact: Hide the values that came in what the model is told of invalid arguments.

        Raises:
            DuplicateToolCallIdError: Two calls of the turn share an id.
        """
        return open_turn(cls, turn, cls._offer.resolve(cls, available), redact)

    @classmethod
    def load_plan(cls, text: str, *, key: bytes | None = None) -> Any:
        """Take up a plan that `plan.dump_json()` saved.

        Args:
            text: What was saved.
            key: The key that the plan was dumped with, if any.

        Raises:
            PlanError: The text is no plan, was edited, or was made for tools that have changed.
        """
        from ._plan_json import load_plan

        return load_plan(cls, text, key)

    @staticmethod
    def from_definitions(name: str, definitions: Iterable[ToolDef]) -> type[Toolset]:
        """Make a toolset at run time, of tools that are known by JSON schemas only.

        Inputs are plain dicts, checked with the package `jsonschema`. A tool whose name is no
        Python name is reached by `toolset["its-name"]`.

        Args:
            name: The name of the class.
            definitions: The tools; `ToolDef.from_json_schema` makes one.

        Raises:
            MissingExtraError: The package `jsonschema` is not installed.
            ToolDefinitionError: Two tools share a name, or a schema is invalid.
        """
        from ._runtime_toolset import toolset_from_definitions

        return toolset_from_definitions(name, tuple(definitions))


def _leads_to(own: AnySelector, selector: AnySelector) -> bool:
    step: AnySelector | None = own
    while step is not None:
        if step is selector:
            return True
        step = step.inner
    return False


def _reduce(toolset: ToolsetMeta) -> Any:
    if toolset._rebuild is None:
        return toolset.__qualname__
    return (Toolset.from_definitions, toolset._rebuild)


copyreg.pickle(ToolsetMeta, _reduce)
