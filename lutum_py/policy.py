"""Policies: objects whose methods are hooks, each marked with the tool that it is for.

A marked method is typed like the hook of a hook set, and may be called anything. Register them all
with `hooks.register_hooks(policy)`: bound to the object, in the order of definition. A method that
overrides a marked one is marked as that is, unless it has marks of its own; None takes it out.

Example:
    >>> from lutum_py import Reject, RunNormally, Toolset, policy, tool, tool_fn
    >>> @tool_fn
    ... def weather(city: str) -> str:
    ...     return f"sunny in {city}"
    >>> class App(Toolset):
    ...     weather = tool(weather)
    >>> class Polite:
    ...     def __init__(self, banned):
    ...         self.banned = banned
    ...
    ...     @policy.on(App.weather)
    ...     def not_there(self, metadata, input):
    ...         return Reject("not there") if input.city in self.banned else RunNormally(input)
    >>> hooks = App.HookSet()
    >>> hooks.register_hooks(Polite({"Atlantis"}))
    >>> hooks
    <HookSet of App: 1 hook>
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from ._call.selector import AnySelector, Selector
from ._declare.hook_marks import mark
from ._hooks.decorator_types import AfterMethod, OnMethod

__all__ = ["after", "before", "describe", "gate", "on"]

In = TypeVar("In")
Out = TypeVar("Out")
F = TypeVar("F", bound=Callable[..., Any])


def on(selector: Selector[In, Out], /) -> OnMethod[In, Out]:
    """Mark an execution hook; see `HookSet.on`.

    Args:
        selector: The tool. A member of a nested toolset stands for each path to it.

    Raises:
        HookError: The selector is none.
    """
    return mark("execution", selector)


def gate(selector: AnySelector | None = None, /) -> Callable[[F], F]:
    """Mark a gate; see `HookSet.gate`.

    Args:
        selector: The tool; all tools where it is left out.

    Raises:
        HookError: The selector is none.
    """
    return mark("gates", selector)


def before(selector: AnySelector | None = None, /) -> Callable[[F], F]:
    """Mark a before-hook; see `HookSet.before`.

    Args:
        selector: The tool; all tools where it is left out.

    Raises:
        HookError: The selector is none.
    """
    return mark("before", selector)


@overload
def after(selector: Selector[In, Out], /) -> AfterMethod[In, Out]: ...
@overload
def after(selector: None = None, /) -> Callable[[F], F]: ...
def after(selector: AnySelector | None = None, /) -> Any:
    """Mark an after-hook; see `HookSet.after`.

    Args:
        selector: The tool; all tools where it is left out.

    Raises:
        HookError: The selector is none.
    """
    return mark("after", selector)


def describe(selector: AnySelector, /) -> Callable[[F], F]:
    """Mark a description hook; see `HookSet.describe`.

    Raises:
        HookError: The selector is none.
    """
    return mark("description", selector)
