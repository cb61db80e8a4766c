"""The metaclass of toolsets: what may be in the body of a class, and the members that it makes."""

from __future__ import annotations

import builtins
import copyreg
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from inspect import CO_VARARGS, unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Never, NoReturn, Union

from .._call.selector import AnySelector, Selector, selector_type
from .._call.spec import PLAIN, UNSET, AnySpec, Condition, MemberOptions
from .._schema.definition import check_names
from .._text.display import Displayed, Listing
from .._text.escaping import did_you_mean, escape_unprintable, names_for_message
from .._text.json import shorten
from .._text.on_demand import ONCE
from ..errors import MisuseError, ToolDefinitionError
from .hook_names import HOOK_SET_NAMES, generated_names
from .members import Members, members_of

if TYPE_CHECKING:
    from .._call.call import Hooks
    from .._call.spec import Rule
    from .._transcript.result_cap import ResultCap

_METHODS = (classmethod, staticmethod, property)


class ToolMember:
    """One tool in the body of a toolset."""

    __slots__ = ("options", "spec")

    def __init__(self, spec: AnySpec, options: MemberOptions) -> None:
        own = spec.definition.timeout
        if options.timeout is UNSET and own is not None:  # the tool's own wins over its group's
            options = options.inside(MemberOptions(timeout=own))
        self.spec = spec
        self.options = options


class GroupMember(NamedTuple):
    """One nested toolset in the body of a toolset."""

    inner: Any
    options: MemberOptions


def rules_of(function: object) -> tuple[Rule, ...]:
    """Return the rule of a group or class, if it has one.

    Raises:
        ToolDefinitionError: It is not a function.
    """
    if function is None:
        return ()
    from .._call.rules import CallRule

    return (CallRule(function),)


class ToolsetBody(dict[str, Any]):
    """The names of a class body; a member that is declared cannot be declared again."""

    def __init__(self, toolset: str) -> None:
        super().__init__()
        self.toolset = toolset

    def __setitem__(self, key: str, value: object) -> None:
        if isinstance(self.get(key), ToolMember | GroupMember):
            raise ToolDefinitionError(
                f"Toolset `{self.toolset}`: `{key}` is already declared as a member. Give the "
                "second one another name; the tool keeps its wire name."
            )
        super().__setitem__(key, value)

    def __missing__(self, key: str) -> NoReturn:
        """Say what to do if a member has the name of its tool, and both are inside of a function.

        There Python looks for the name in this body and in the module, and nowhere else.
        """
        # `__missing__` is called by the class body that looks the name up: its frame is the one
        # above.
        body = sys._getframe(1)
        around = body.f_back
        if (
            around is not None
            and around.f_locals is not around.f_globals
            and key in around.f_locals
            and key not in body.f_code.co_freevars
            and key not in body.f_globals
            and not hasattr(builtins, key)
        ):
            raise ToolDefinitionError(
                f"Toolset `{self.toolset}`: Python does not find `{key}` here, because the body "
                f"of a class inside a function assigns it. Name the member otherwise, as in "
                f"`{key}_ = tool({key})`; the tool keeps its wire name."
            )
        raise KeyError(key)


def read_body(
    name: str, body: dict[str, object], *, root: type, own: Collection[str]
) -> dict[str, ToolMember | GroupMember]:
    """Take the members out of the body of a class.

    Args:
        name: The name of the class.
        body: Its body; the members are taken out of it.
        root: `Toolset`, whose names no member may have.
        own: The names by which a toolset keeps what it knows of itself.

    Raises:
        ToolDefinitionError: Something in it is neither a member nor a method, or has a name that
            is taken.
    """
    declared: dict[str, ToolMember | GroupMember] = {}
    functions: dict[str, FunctionType] = {}
    for key, value in list(body.items()):
        if isinstance(value, ToolMember | GroupMember):
            _check_member_name(name, key, root)
            declared[key] = value
            del body[key]
        elif key in own:
            raise ToolDefinitionError(
                f"Toolset `{name}`: `{key}` is a name that the toolset itself uses. Rename it, or "
                "move it out of the class."
            )
        elif key.startswith("_"):
            continue
        elif isinstance(value, FunctionType) and "." not in value.__qualname__:
            # A function of a module: the qualified name of a method, or of what a decorator made,
            # has a dot.
            raise ToolDefinitionError(
                f"Toolset `{name}`: `{key} = {value.__name__}` is a function, but no tool. "
                f"Decorate it with `@tool_fn`, and declare `{key} = tool({value.__name__})`."
            )
        elif isinstance(value, FunctionType):
            functions[key] = value
        elif not isinstance(value, _METHODS):
            raise ToolDefinitionError(
                f"Toolset `{name}`: `{key} = {shorten(value)}` is neither a tool nor a method. "
                f"Declare `{key} = tool(...)` or `{key} = toolset(...)`, or move it out of the "
                "class."
            )
    _check_functions(name, functions, is_empty=not declared)
    _check_hook_names(name, declared)
    return declared


def _check_functions(
    toolset: str, functions: Mapping[str, FunctionType], *, is_empty: bool
) -> None:
    """Refuse functions of the body that were probably meant as tools, and would be none.

    A toolset has no instances, so that a body of nothing but functions does nothing at all; beside
    members, one that takes neither `self` nor `cls` is not a method.
    """
    meant = [key for key, each in functions.items() if is_empty or not _is_method(each)]
    if meant:
        are = "are functions, but no tools" if len(meant) > 1 else "is a function, but no tool"
        raise ToolDefinitionError(
            f"Toolset `{toolset}`: {names_for_message(meant)} {are}. Write a tool outside of the "
            f"class under `@tool_fn`, and declare it, as in `{meant[0]} = tool({meant[0]})`. What "
            "is not meant to be a tool takes `@staticmethod` or `@classmethod`."
        )


def _is_method(function: FunctionType) -> bool:
    """Whether the first parameter has the name that a method's has, or any may come first."""
    code = unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount]
    if not names:
        return bool(code.co_flags & CO_VARARGS)
    return names[0] in ("self", "cls") or names[0].startswith("_")


def _check_member_name(toolset: str, key: str, root: type) -> None:
    if key.startswith("_"):
        raise ToolDefinitionError(
            f"Toolset `{toolset}`: member `{key}` begins with an underscore. Give it a public name."
        )
    if is_reserved(key, root):
        owner = "HookSet" if key in HOOK_SET_NAMES else "Toolset"
        raise ToolDefinitionError(
            f"Toolset `{toolset}`: member `{key}` has the name of something that every {owner} "
            "has. Name the member otherwise; the tool keeps its wire name."
        )


def _check_hook_names(toolset: str, members: Mapping[str, ToolMember | GroupMember]) -> None:
    """Make sure that each generated name stands for one hook of one member.

    Raises:
        ToolDefinitionError: Two members would give two hooks the same name.
    """
    owners: dict[str, str] = {}
    for key, member in members.items():
        if isinstance(member, ToolMember):
            for name in generated_names([key]):
                other = owners.setdefault(name, key)
                if other != key:
                    raise ToolDefinitionError(
                        f"Toolset `{toolset}`: members `{other}` and `{key}` both give a hook the "
                        f"name `{name}`. Rename one of the members; the tool keeps its wire name."
                    )
    verbs = {verb + name for name in (*owners, "hooks") for verb in ("register_", "with_")}
    for key in members:
        if key in verbs:
            raise ToolDefinitionError(
                f"Toolset `{toolset}`: member `{key}` has the name of a generated method of its "
                "hook set. Rename the member; the tool keeps its wire name."
            )


def is_reserved(key: str, root: type) -> bool:
    """Whether every toolset or hook set has something of that name."""
    return hasattr(root, key) or key in HOOK_SET_NAMES


# A metaclass, because a toolset is used as a class (`for selector in AppTools`,
# `AppTools.data.find`), and type checkers then know each member from the body. An object with the
# same methods would have no types for its members.
class ToolsetMeta(Displayed, type):
    """Make toolset classes behave like enums: iterable, sized, closed."""

    _root: ClassVar[ToolsetMeta]
    """`Toolset` itself, of which every toolset is a subclass."""

    _members: Members

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **_: object) -> ToolsetBody:
        return ToolsetBody(name)

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        body: dict[str, object],
        *,
        result_cap: ResultCap | None = UNSET,
        timeout: float | None = UNSET,
        needs_approval: Condition = UNSET,
        rule: Hooks | None = None,
    ) -> ToolsetMeta:
        if not bases:
            root: ToolsetMeta = super().__new__(mcs, name, bases, body)
            mcs._root = root
            # `type.__setattr__` throughout: the metaclass's own refuses every assignment.
            type.__setattr__(root, "Selector", AnySelector)
            type.__setattr__(root, "_members", Members(root, {}, (), PLAIN))
            return root
        for base in bases:
            if isinstance(base, ToolsetMeta) and members_of(base).by_key:
                raise ToolDefinitionError(
                    f"Toolset `{name}` inherits from `{base.__qualname__}`, which has members. "
                    f"Nest it instead: `inner = toolset({base.__name__})`."
                )
        declared = read_body(name, body, root=mcs._root, own=_OWN)
        made: ToolsetMeta = super().__new__(mcs, name, bases, body)
        own = MemberOptions(
            result_cap=result_cap,
            timeout=timeout,
            needs_approval=needs_approval,
            rules=rules_of(rule),
        )
        _bind(made, declared, own.inside(members_of(made).options))
        return made

    # Like an enum.

    def __iter__(cls) -> Iterator[Selector]:
        return iter(cls._members.selectors)

    def __reversed__(cls) -> Iterator[Selector]:
        return iter(cls._members.selectors[::-1])

    def __len__(cls) -> int:
        return len(cls._members.selectors)

    def __bool__(cls) -> bool:
        return True

    def __contains__(cls, item: object) -> bool:
        if isinstance(item, str):
            return item in cls._members.by_name
        return isinstance(item, AnySelector) and cls._members.by_name.get(item.name) is item

    def __getitem__(cls, name: str) -> Selector:
        return cls._members.named(name)

    if not TYPE_CHECKING:  # else every misspelt name would have a type

        def __getattr__(cls, name: str) -> NoReturn:
            if name.startswith("_"):  # other libraries try such names, and read no text
                raise AttributeError(name)
            known = {key: key for key in dir(cls) if not key.startswith("_")}
            # Members, what every class has, and the tools of nested toolsets by their last name:
            # who writes `App.find` is shown `App.data.find`.
            known |= {key: key for key in cls._members.by_key}
            for selector in cls._members.selectors:
                known.setdefault(selector.path[-1], ".".join(selector.path))
            near = did_you_mean(name, known)
            hint = f" Did you mean `{cls.__qualname__}.{known[near]}`?" if near else ""
            # With a name alone, Python adds no suggestion of its own.
            raise AttributeError(
                f"{cls.__qualname__} has no `{name}`.{hint} Its members: "
                f"{names_for_message(cls._members.by_key)}.",
                name=name,
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

    if TYPE_CHECKING:

        def __call__(cls, *, use_the_class_itself: Never) -> NoReturn: ...

    else:

        def __call__(cls, *_: object, **__: object) -> NoReturn:
            raise MisuseError(
                f"{cls.__qualname__} has no instances: use the class itself, as in "
                f"`{cls.__qualname__}.HookSet()` or `.tools({cls.__qualname__})`."
            )

    def _listing(cls) -> Listing:
        from .display import toolset_listing

        return toolset_listing(cls.__qualname__, cls._members.selectors)

    def __repr__(cls) -> str:
        shown = ", ".join(
            f"{'.'.join(selector.path)}{_state_of(selector)}" for selector in cls._members.selectors
        )
        return f"<toolset {cls.__qualname__}: {escape_unprintable(shown) or 'no tools'}>"


def _state_of(selector: AnySelector) -> str:
    if selector.is_deferred:
        return " (deferred)"
    return " (off)" if selector.is_off else ""


def _calls(toolset: ToolsetMeta) -> type:
    """The class of the calls of all tools; pydantic reads and writes them as tagged JSON."""
    members = members_of(toolset)
    with ONCE:
        if members.call_type is None:
            from .call_type import calls_type

            members.call_type = calls_type(members)
    return members.call_type


def _handled_union(toolset: ToolsetMeta) -> Any:
    from .._call.outcomes import HandledCall

    return Union[tuple(s.spec.handled_type for s in toolset) or (HandledCall,)]  # noqa: UP007


def _policy_base(toolset: ToolsetMeta) -> type:
    """The base class of policies: classes with methods such as `<member>_hook`."""
    members = members_of(members_of(toolset).origin)
    with ONCE:
        if members.policy_base is None:
            from .hook_names import policy_base

            members.policy_base = policy_base(members)
    return members.policy_base


# Attached here and not in the class: type checkers are to see the types that `Toolset` declares for
# them, and not properties.
for _name, _made in (("Call", _calls), ("Handled", _handled_union), ("Hooks", _policy_base)):
    setattr(ToolsetMeta, _name, property(_made))


_OWN = frozenset({"_members"})


def make_toolset(
    name: str,
    declared: Mapping[str, ToolMember | GroupMember],
    *,
    rebuild: Callable[[], tuple[object, ...]],
) -> ToolsetMeta:
    """Make a toolset of members whose names need not be Python names.

    Nobody here chose the names, so the names of the hooks of two tools may be the same: then the
    longer ending counts, and `hooks.on(selector)` reaches every tool.

    Args:
        name: The name of the class.
        declared: Its members.
        rebuild: Returns what pickle makes the class of again, or raises because it cannot.
    """
    body = {"__module__": __name__, "__qualname__": name}
    made: ToolsetMeta = type.__new__(ToolsetMeta, name, (ToolsetMeta._root,), body)
    _bind(made, declared, PLAIN)
    members_of(made).rebuild = rebuild
    return made


# With `class App: data = toolset(Data)` and `Data.crm = toolset(Crm)` the views have the paths
# ("data",) and ("data", "crm"), and all selectors are numbered in App's order of declaration.
def _bind(
    owner: ToolsetMeta, declared: Mapping[str, ToolMember | GroupMember], options: MemberOptions
) -> None:
    """Give a new toolset its selectors and the bound views of what it nests."""
    counter: list[Selector] = []
    make = selector_type(owner)
    type.__setattr__(owner, "Selector", make)

    def bound(
        members: Mapping[str, ToolMember | GroupMember | AnySelector | ToolsetMeta],
        path: tuple[str, ...],
        around: MemberOptions,
    ) -> dict[str, Selector | ToolsetMeta]:
        """Bind the members of a class body, or of an inner toolset, to a path of the outer one."""
        found: dict[str, Selector | ToolsetMeta] = {}
        for key, member in members.items():
            place = (*path, key)
            if isinstance(member, ToolsetMeta):
                found[key] = view(member, place, around)
            elif isinstance(member, GroupMember):
                found[key] = view(member.inner, place, member.options.inside(around))
            else:
                found[key] = selector = make.kind_for(member.spec)(
                    member.spec,
                    path=place,
                    toolset=owner,
                    index=len(counter),
                    options=member.options.inside(around),
                    inner=member if isinstance(member, AnySelector) else None,
                )
                counter.append(selector)
        return found

    def view(inner: ToolsetMeta, path: tuple[str, ...], options: MemberOptions) -> ToolsetMeta:
        """Make the class that stands for an inner toolset on one path of an outer one.

        It inherits from the inner one, whose methods it therefore has, as type checkers believe.
        """
        start = len(counter)
        body = {
            "__module__": owner.__module__,
            "__qualname__": ".".join((owner.__qualname__, *path)),
            "__doc__": inner.__doc__,
        }
        made: ToolsetMeta = type.__new__(ToolsetMeta, path[-1], (inner,), body)
        type.__setattr__(made, "Selector", selector_type(made, make))
        own = members_of(inner)
        by_key = bound(own.by_key, path, options)
        members = Members(made, by_key, tuple(counter[start:]), own.options)
        members.path, members.origin = path, own.origin
        _settle(members)
        return made

    members = Members(owner, bound(declared, (), options), tuple(counter), options)
    paths = {name: ".".join(each.path) for name, each in members.by_name.items()}
    check_names(f"Toolset `{owner.__qualname__}`", paths)
    _settle(members)


# Set as attributes of the class itself, so that a member is found without `__getattr__`, and a type
# checker and the program see the same. A tool made at run time may have any name: if an attribute
# cannot have it, the tool is found by `[]`.
def _settle(members: Members) -> None:
    values: dict[str, object] = {
        key: member
        for key, member in members.by_key.items()
        if key.isidentifier() and not (key.startswith("_") or is_reserved(key, ToolsetMeta._root))
    }
    for name, value in {**values, "_members": members}.items():
        type.__setattr__(members.toolset, name, value)


def _reduce(toolset: ToolsetMeta) -> Any:
    rebuild = members_of(toolset).rebuild
    return toolset.__qualname__ if rebuild is None else rebuild()


copyreg.pickle(ToolsetMeta, _reduce)
