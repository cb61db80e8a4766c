"""What makes a method a hook: a generated name, as in Lutum, or a mark, whatever its name.

The names are `<member>_hook`, `<member>_gate` and so on; `lutum_py.policy` has the marks.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from .._call.selector import AnySelector
from .._text.escaping import meant_by, names_for_message
from .._text.json import shorten
from ..errors import HookError

Phase: TypeAlias = Literal["execution", "gate", "before", "after", "description"]


class HookKind(NamedTuple):
    """The hooks of one phase.

    Attributes:
        verb: What their decorator is called, which is written out in a hook set and in `policy`.
        named: What one is called in messages.
        takes: What one is called with.
        ending: What its generated name ends with.
    """

    verb: str
    named: str
    takes: tuple[str, ...]
    ending: str


HOOK_KINDS: Final[Mapping[Phase, HookKind]] = {
    # The longer ending first: `x_description_hook` also ends in `_hook`.
    "description": HookKind("describe", "A description hook", ("definition",), "_description_hook"),
    "before": HookKind("before", "A before-hook", ("metadata", "input"), "_before_hook"),
    "after": HookKind("after", "An after-hook", ("call", "result"), "_after_hook"),
    "execution": HookKind("on", "An execution hook", ("metadata", "input"), "_hook"),
    "gate": HookKind("gate", "A gate", ("metadata", "input"), "_gate"),
}

HOOK_SET_NAMES = frozenset(
    {
        *(kind.verb for kind in HOOK_KINDS.values()),
        "copy",
        "description_overrides",
        "description_overrides_sync",
        "extend",
        "hook_tool_call",
        "mro",
        "on_args",
        "register_hooks",
        "toolset",
        "with_extended",
        "with_hooks",
    }
)
"""The names that every hook set has: no member may have one. `HookSet` is in a layer above."""

_MARKS = "__lutum_hooks__"
"""Where `lutum_py.policy` writes the marks of a method: pairs of a phase and a selector."""


def slot_of(members: Iterable[str], name: str) -> tuple[str, Phase] | None:
    """Return the member and the phase that a generated name stands for, or None."""
    known = set(members)
    for phase, kind in HOOK_KINDS.items():
        member = name.removesuffix(kind.ending)
        if member != name and member in known:
            return member, phase
    return None


def generated_names(members: Iterable[str]) -> Iterator[str]:
    """Yield the names of all hooks of some members, without the verb in front."""
    return (member + kind.ending for member in members for kind in HOOK_KINDS.values())


class Mark(NamedTuple):
    """What a method is registered as: None means all tools, a nested toolset all of its tools."""

    phase: Phase
    selector: AnySelector | type[Any] | None


def marks_of(mro: tuple[type, ...], name: str, defined: object) -> tuple[Mark, ...]:
    """Return the marks of a method, the one that stands nearest to it first.

    A method without marks keeps those of the method that it overrides. An override that cannot be
    called, such as None, takes the hook out.
    """
    if not callable(getattr(defined, "__func__", defined)):
        return ()
    # A subclass that overrides `no_atlantis` without a mark has the mark of its base: to make a
    # guard stricter does not take it out by accident.
    for each in (defined, *(cls.__dict__.get(name) for cls in mro)):
        inner = getattr(each, "__func__", each)
        if marks := getattr(inner, "__dict__", {}).get(_MARKS):
            return tuple(Mark(*mark) for mark in marks)
    return ()


class Declared(Protocol):
    """What names of hooks are made of: see `toolset_meta.Members`."""

    @property
    def toolset(self) -> type[Any]:
        """The toolset."""
        ...

    @property
    def by_key(self) -> Mapping[str, AnySelector | type[Any]]:
        """Its members by their names in the body."""
        ...


def _tools_of(members: Declared) -> list[str]:
    return [key for key, member in members.by_key.items() if not isinstance(member, type)]


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


def policy_methods(members: Declared, policy: object) -> Iterator[tuple[Mark, Any]]:
    """Find the hooks among the methods that a policy itself defines.

    Gives what each is registered as and the bound method, in the order of definition. The name of
    a marked method is not looked at.

    Raises:
        HookError: A method ends like a hook, but there is no such member; or it is not a policy.
    """
    remedy = _remedy(policy)
    if remedy is not None:
        raise HookError(f"A policy is an object with hooks, not {shorten(policy)}. {remedy}.")
    tools = _tools_of(members)
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
        elif _looks_like_a_hook(name, tools) and callable(method := getattr(policy, name)):
            slot = slot_of(tools, name)
            if slot is None:
                raise _no_such_hook(members, type(policy).__qualname__, name)
            yield Mark(slot[1], members.by_key[slot[0]]), method


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


def _no_such_hook(members: Declared, policy: str, name: str) -> HookError:
    tools = _tools_of(members)
    hint = meant_by(name, generated_names(tools))
    return HookError(
        f"Policy `{policy}` defines `{name}`, but {members.toolset.__qualname__} has no such hook."
        f"{hint} Its tools are {names_for_message(tools)}; hooks of nested tools belong to the "
        "nested hook set. The name of another method begins with `_`.",
        hook=name,
    )


def policy_base(members: Declared) -> type:
    """Make the base class of policies for a toolset: it checks the names when it is inherited."""
    toolset, tools = members.toolset, _tools_of(members)

    class Hooks:
        __lutum_policy_base__ = True

        def __init_subclass__(cls, **options: object) -> None:
            super().__init_subclass__(**options)
            # `wether_hook` would never be asked. Here it is an error where the class is written,
            # and not in the first run of the program.
            for name, defined in cls.__dict__.items():
                if (
                    _looks_like_a_hook(name, tools)
                    and not marks_of(cls.__mro__, name, defined)
                    and callable(getattr(cls, name))
                    and slot_of(tools, name) is None
                ):
                    raise _no_such_hook(members, cls.__qualname__, name)

    Hooks.__name__ = f"{toolset.__name__}Hooks"
    Hooks.__qualname__ = f"{toolset.__qualname__}.Hooks"
    Hooks.__module__ = toolset.__module__
    Hooks.__doc__ = (
        f"Base of policies for {toolset.__qualname__}: define any of "
        f"{names_for_message(generated_names(tools))}."
    )
    return Hooks
