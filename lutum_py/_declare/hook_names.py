"""The generated names of hooks, as in Lutum: `<member>_hook`, `<member>_gate` and so on."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._text.json import shorten
from .._text.suggestion import did_you_mean, names_for_message
from ..errors import HookError, ToolDefinitionError
from .declared import GroupMember, ToolMember
from .hook_marks import Mark, Phase, marks_of

__all__ = [
    "Phase",
    "check_hook_names",
    "generated_names",
    "policy_base",
    "policy_methods",
    "slot_of",
]

# The longer ending first: `x_description_hook` also ends in `_hook`.
_ENDINGS: tuple[tuple[str, Phase], ...] = (
    ("_description_hook", "description"),
    ("_before_hook", "before"),
    ("_after_hook", "after"),
    ("_hook", "execution"),
    ("_gate", "gates"),
)


def slot_of(members: Iterable[str], name: str) -> tuple[str, Phase] | None:
    """Return the member and the phase that a generated name stands for, or None."""
    known = set(members)
    for ending, phase in _ENDINGS:
        member = name.removesuffix(ending)
        if member != name and member in known:
            return member, phase
    return None


def generated_names(members: Iterable[str]) -> Iterator[str]:
    """Give the names of all hooks of some members, without the verb in front."""
    for member in members:
        for ending, _ in _ENDINGS:
            yield member + ending


def _tools_of(toolset: Any) -> list[str]:
    return [key for key, member in toolset._members.items() if not isinstance(member, type)]


def _ends_like_a_hook(name: str) -> bool:
    return name.endswith(("_hook", "_gate")) and not name.startswith("_")


def check_hook_names(toolset: str, members: Mapping[str, ToolMember | GroupMember]) -> None:
    """Make sure that each generated name stands for one hook of one member.

    Raises:
        ToolDefinitionError: Two members meet in one name.
    """
    owners: dict[str, str] = {}
    for key, member in members.items():
        if isinstance(member, ToolMember):
            for ending, _ in _ENDINGS:
                other = owners.setdefault(key + ending, key)
                if other != key:
                    raise ToolDefinitionError(
                        f"Toolset `{toolset}`: members `{other}` and `{key}` both give a hook the "
                        f"name `{key + ending}`. Rename one of the members; the tool keeps its "
                        "wire name."
                    )
    verbs = {verb + name for name in (*owners, "hooks") for verb in ("register_", "with_")}
    for key in members:
        if key in verbs:
            raise ToolDefinitionError(
                f"Toolset `{toolset}`: member `{key}` has the name of a generated method of its "
                "hook set. Rename the member; the tool keeps its wire name."
            )


def policy_methods(toolset: Any, policy: Any) -> Iterator[tuple[Mark, Any]]:
    """Find the hooks among the methods that a policy itself defines.

    Gives what each is registered as and the bound method, in the order of definition. The name of
    a marked method is not looked at.

    Raises:
        HookError: A method ends like a hook, but there is no such member; or it is no policy.
    """
    remedy = _remedy(policy)
    if remedy is not None:
        raise HookError(f"A policy is an object with hooks, not {shorten(policy)}. {remedy}.")
    members = _tools_of(toolset)
    names: dict[str, None] = {}
    for cls in reversed(type(policy).__mro__):
        if not cls.__dict__.get("__lutum_policy_base__"):
            names.update(dict.fromkeys(cls.__dict__))
    names.update(dict.fromkeys(getattr(policy, "__dict__", ())))
    for name in names:
        # An attribute that cannot be called is data; None takes an inherited hook out.
        if marks := marks_of(type(policy).__mro__, name, inspect.getattr_static(policy, name)):
            yield from ((each, getattr(policy, name)) for each in marks)
        elif _ends_like_a_hook(name) and callable(method := getattr(policy, name)):
            slot = slot_of(members, name)
            if slot is None:
                raise _no_such_hook(toolset, type(policy).__qualname__, name, members)
            yield Mark(slot[1], toolset._members[slot[0]]), method


def _remedy(policy: object) -> str | None:
    """Say what to do with something that is no policy; None where it may be one."""
    if isinstance(policy, type):
        return f"Pass an instance: `{policy.__name__}()`"
    return "Register one function by `@hooks.on(selector)`" if inspect.isroutine(policy) else None


def _no_such_hook(toolset: Any, policy: str, name: str, members: list[str]) -> HookError:
    near = did_you_mean(name, generated_names(members))
    hint = f" Did you mean `{near}`?" if near else ""
    return HookError(
        f"Policy `{policy}` defines `{name}`, but {toolset.__qualname__} has no such hook.{hint} "
        f"Its tools are {names_for_message(members)}; hooks of nested tools belong to the nested "
        "hook set.",
        hook=name,
    )


def policy_base(toolset: Any) -> type:
    """Make the base class of policies for a toolset: it checks the names when it is inherited."""
    members = _tools_of(toolset)

    class Hooks:
        __lutum_policy_base__ = True

        def __init_subclass__(cls, **options: Any) -> None:
            super().__init_subclass__(**options)
            for name, defined in cls.__dict__.items():
                if (
                    _ends_like_a_hook(name)
                    and not marks_of(cls.__mro__, name, defined)
                    and callable(getattr(cls, name))
                    and slot_of(members, name) is None
                ):
                    raise _no_such_hook(toolset, cls.__qualname__, name, members)

    Hooks.__name__ = f"{toolset.__name__}Hooks"
    Hooks.__qualname__ = f"{toolset.__qualname__}.Hooks"
    Hooks.__module__ = toolset.__module__
    Hooks.__doc__ = (
        f"Base of policies for {toolset.__qualname__}: define any of "
        f"{names_for_message(generated_names(members))}."
    )
    return Hooks
