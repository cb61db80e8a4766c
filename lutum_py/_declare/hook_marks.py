"""The marks by which a method of a policy says which hook it is, whatever its name."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._call.selector import AnySelector
from .._text.json import shorten
from ..errors import HookError
from .hook_names import VERBS, Phase

_MARKS = "__lutum_hooks__"


class Mark(NamedTuple):
    """What a method is registered as; no selector stands for all tools, a toolset for its own."""

    phase: Phase
    selector: AnySelector | type[Any] | None


def mark(phase: Phase, *selectors: AnySelector | type[Any] | None) -> Any:
    """Make the decorator that marks a method.

    Raises:
        HookError: The selector is none, or what is marked no method.
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
    """Give the marks of a method, the one that stands nearest to it first.

    A method without marks keeps those of the method that it overrides: whoever refines a guard
    does not take it out. None does, as any attribute that cannot be called.
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
