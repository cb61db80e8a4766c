"""What may be in the body of a toolset class, and the errors for what may not."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Collection, Mapping
from inspect import CO_VARARGS, unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .._call.member_options import UNSET, MemberOptions
from .._call.spec import ToolSpec
from .._text.json import shorten
from .._text.suggestion import names_for_message
from ..errors import ToolDefinitionError
from .hook_names import HOOK_SET_NAMES, generated_names

if TYPE_CHECKING:
    from .._call.member_options import Rule

_METHODS = (classmethod, staticmethod, property)


class ToolMember:
    """One tool in the body of a toolset."""

    __slots__ = ("options", "spec")

    def __init__(self, spec: ToolSpec[Any, Any], options: MemberOptions) -> None:
        own = spec.definition.timeout
        if options.timeout is UNSET and own is not None:  # the tool's own wins over its group's
            options = options.inside(MemberOptions(timeout=own))
        self.spec = spec
        self.options = options


class GroupMember(NamedTuple):
    """One nested toolset in the body of a toolset."""

    inner: Any
    options: MemberOptions


def rules_of(function: Any) -> tuple[Rule, ...]:
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

    def __setitem__(self, key: str, value: Any) -> None:
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
    name: str, body: dict[str, Any], *, root: type, own: Collection[str]
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
