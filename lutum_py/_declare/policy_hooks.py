"""Policies: objects whose methods are hooks, by their names or by their marks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from .._text.json import shorten
from .._text.suggestion import meant_by, names_for_message
from ..errors import HookError
from .hook_names import Mark, generated_names, marks_of, slot_of


def _tools_of(toolset: Any) -> list[str]:
    return [key for key, member in toolset._members.items() if not isinstance(member, type)]


# `pay_hok`, `pay_hooks` and `payhook` would never be asked, just as `pey_hook`. Real words are no
# nearer than 0.75 to these two: `to_date` and `add_book` are methods like any other.
def _looks_like_a_hook(name: str, members: list[str]) -> bool:
    """Whether the name of a method is that of a hook, or what somebody may have meant by it."""
    from difflib import SequenceMatcher

    plain = name.lower()
    rest, _, last = plain.rpartition("_")
    is_near = any(SequenceMatcher(None, last, each).ratio() >= 0.8 for each in _ENDINGS)
    is_joined = any(plain == member.lower() + each for member in members for each in _ENDINGS)
    return not name.startswith("_") and (is_joined or (rest != "" and is_near))


_ENDINGS: Final = ("hook", "gate")


def policy_methods(toolset: Any, policy: Any) -> Iterator[tuple[Mark, Any]]:
    """Find the hooks among the methods that a policy itself defines.

    Gives what each is registered as and the bound method, in the order of definition. The name of
    a marked method is not looked at.

    Raises:
        HookError: A method ends like a hook, but there is no such member; or it is not a policy.
    """
    remedy = _remedy(policy)
    if remedy is not None:
        raise HookError(f"A policy is an object with hooks, not {shorten(policy)}. {remedy}.")
    members = _tools_of(toolset)
    # The names of all classes, the base first, each once and where it first appears; those of the
    # instance itself come last.
    names: dict[str, None] = {}
    for cls in reversed(type(policy).__mro__):
        if not cls.__dict__.get("__lutum_policy_base__"):
            names.update(dict.fromkeys(cls.__dict__))
    names.update(dict.fromkeys(getattr(policy, "__dict__", ())))
    for name in names:
        # An attribute that cannot be called is data; None takes an inherited hook out.
        if marks := marks_of(type(policy).__mro__, name, inspect.getattr_static(policy, name)):
            yield from ((each, getattr(policy, name)) for each in marks)
        elif _looks_like_a_hook(name, members) and callable(method := getattr(policy, name)):
            slot = slot_of(members, name)
            if slot is None:
                raise _no_such_hook(toolset, type(policy).__qualname__, name, members)
            yield Mark(slot[1], toolset._members[slot[0]]), method


def _remedy(policy: object) -> str | None:
    """Say what to do with something that is not a policy; None if it may be one."""
    if isinstance(policy, type):
        return f"Pass an instance: `{policy.__name__}()`"
    if inspect.isroutine(policy):
        return "Register one function by `@hooks.on(selector)`"
    # None of a function that forgot its `return`, or a list of functions: no rule would review a
    # call.
    is_plain = type(policy).__module__ == "builtins" and not inspect.ismodule(policy)
    return "Write a class with hooks, and pass an instance" if is_plain else None


def _no_such_hook(toolset: Any, policy: str, name: str, members: list[str]) -> HookError:
    hint = meant_by(name, generated_names(members))
    return HookError(
        f"Policy `{policy}` defines `{name}`, but {toolset.__qualname__} has no such hook.{hint} "
        f"Its tools are {names_for_message(members)}; hooks of nested tools belong to the nested "
        "hook set. The name of another method begins with `_`.",
        hook=name,
    )


def policy_base(toolset: Any) -> type:
    """Make the base class of policies for a toolset: it checks the names when it is inherited."""
    members = _tools_of(toolset)

    class Hooks:
        __lutum_policy_base__ = True

        def __init_subclass__(cls, **options: Any) -> None:
            super().__init_subclass__(**options)
            # `wether_hook` would never be asked. Here it is an error where the class is written,
            # and not in the first run of the program.
            for name, defined in cls.__dict__.items():
                if (
                    _looks_like_a_hook(name, members)
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
