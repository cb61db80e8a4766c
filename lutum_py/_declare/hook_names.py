"""By what a method is a hook: a generated name, as in Lutum, or a mark, whatever its name.

The names are `<member>_hook`, `<member>_gate` and so on; `lutum_py.policy` has the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from .._call.selector import AnySelector
from .._text.json import shorten
from ..errors import HookError

Phase: TypeAlias = Literal["execution", "gates", "before", "after", "description"]

VERBS: dict[Phase, str] = {
    "execution": "on",
    "gates": "gate",
    "before": "before",
    "after": "after",
    "description": "describe",
}
"""What the decorator of each phase is called, in a hook set and in `policy`."""

HOOK_SET_NAMES = frozenset(
    {
        *VERBS.values(),
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
"""What every hook set has, which is above this file: no member may be called so."""

_MARKS = "__lutum_hooks__"

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
    """Yield the names of all hooks of some members, without the verb in front."""
    return (member + ending for member in members for ending, _ in _ENDINGS)


class Mark(NamedTuple):
    """What a method is registered as; no selector stands for all tools, a toolset for its own."""

    phase: Phase
    selector: AnySelector | type[Any] | None


def mark(phase: Phase, *selectors: AnySelector | type[Any] | None) -> Any:
    """Make the decorator that marks a method.

    Raises:
        HookError: The selector is not one, or what is marked is not a method.
    """
    verb = VERBS[phase]
    for selector in selectors:
        # Which classes are toolsets, and nested there, is found where the policy is registered.
        of_group = isinstance(selector, type) and phase not in ("execution", "description")
        if not (of_group or isinstance(selector, AnySelector | None)):
            raise HookError(
                f"`@policy.{verb}` takes the selector of a tool, not {shorten(selector)}. Write "
                f"`@policy.{verb}(AppTools.member)` above the method."
            )

    def decorate(function: Any) -> Any:
        # The mark is written on the function itself, where an override in a subclass can be
        # compared with it. A registry beside the class would not know which class the method ends
        # up in.
        inner: Any = getattr(function, "__func__", function)
        if not callable(inner) or not hasattr(inner, "__dict__"):
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

    A method without marks keeps those of the method that it overrides: whoever refines a guard
    does not take it out. An override that cannot be called, such as None, takes it out.
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
