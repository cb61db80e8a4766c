"""What makes a method a hook: a generated name, as in Lutum, or a mark, whatever its name.

The names are `<member>_hook`, `<member>_gate` and so on; `lutum_py.policy` has the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from .._call.selector import AnySelector
from .._text.json import shorten
from ..errors import HookError

Phase: TypeAlias = Literal["execution", "gate", "before", "after", "description"]


class HookKind(NamedTuple):
    """The hooks of one phase.

    Attributes:
        verb: What their decorator is called, in a hook set and in `policy`.
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


def mark(phase: Phase, *selectors: AnySelector | type[Any] | None) -> Any:
    """Make the decorator that marks a method.

    Raises:
        HookError: The selector is not one, or what is marked is not a method.
    """
    verb = HOOK_KINDS[phase].verb
    for selector in selectors:
        # Whether a class is a toolset, and nested there, is found when the policy is registered.
        of_many = isinstance(selector, type | None) and phase not in ("execution", "description")
        if not (of_many or isinstance(selector, AnySelector)):
            raise HookError(
                f"`@policy.{verb}` takes the selector of a tool, not {shorten(selector)}. Write "
                f"`@policy.{verb}(AppTools.member)` above the method."
            )

    def decorate(function: Any) -> Any:
        # The mark is written on the function itself, where an override in a subclass can be
        # compared with it. A registry beside the class would not know which class the method ends
        # up in.
        inner: Any = getattr(function, "__func__", function)
        # A class has a `__dict__` that cannot be written to, and is no method.
        if not callable(inner) or not isinstance(getattr(inner, "__dict__", None), dict):
            raise HookError(
                f"`@policy.{verb}(...)` marks methods, not {shorten(function)}. Write it above a "
                "`def`."
            )
        marks = inner.__dict__.setdefault(_MARKS, [])
        marks += [Mark(phase, selector) for selector in selectors]
        return function

    return decorate


def marks_of(mro: tuple[type, ...], name: str, defined: Any) -> tuple[Mark, ...]:
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
            return tuple(marks)
    return ()
