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

from typing import TYPE_CHECKING, Any, TypeVar, overload

from . import Selector
from ._text.json import shorten
from .errors import HookError
from .typing import AnySelector

if TYPE_CHECKING:
    from . import (
        Complete,
        Decision,
        Reject,
        RunNormally,
        ToolCall,
        ToolDecision,
        ToolDef,
        ToolMetadata,
        ToolResult,
    )
    from .typing import AfterVerdict, GateDecorator, GateVerdict, HookDecorator, SharedHookDecorator

__all__ = ["after", "before", "describe", "gate", "on"]

Input = TypeVar("Input")
Input2 = TypeVar("Input2")
Output = TypeVar("Output")
Output2 = TypeVar("Output2")


@overload
def on(
    selector: Selector[Input, Output], /
) -> HookDecorator[[Any, ToolMetadata, Input], ToolDecision[Input, Output]]: ...
@overload
def on(
    selector: Selector[Input, Output], other: Selector[Input2, Output2], /
) -> SharedHookDecorator[
    [Any, ToolMetadata, Input],
    RunNormally[Input | Input2] | Complete[Output] | Reject,
    [Any, ToolMetadata, Input2],
    RunNormally[Input | Input2] | Complete[Output2] | Reject,
]: ...
def on(selector: AnySelector, /, *others: AnySelector) -> Any:
    """Mark an execution hook; see `HookSet.on`.

    Args:
        selector: The tool. A member of a nested toolset stands for each path to it.
        others: Another tool, for a hook of two.

    Raises:
        HookError: The selector is not a selector of a tool.
    """
    return _mark("execution", "on", selector, *others)


@overload
def gate(
    selector: Selector[Input, Output], /
) -> GateDecorator[
    [Any, ToolMetadata, Input], [Any, ToolMetadata, Input, Decision | None], GateVerdict[Output]
]: ...
@overload
def gate(
    selector: type[Any] | None = None, /
) -> GateDecorator[
    [Any, ToolMetadata, Any], [Any, ToolMetadata, Any, Decision | None], GateVerdict[Any]
]: ...
def gate(selector: AnySelector | type[Any] | None = None, /) -> Any:
    """Mark a gate; see `HookSet.gate`.

    Args:
        selector: The tool, or a nested toolset for its tools; all tools where it is left out.

    Raises:
        HookError: The selector is not a selector of a tool.
    """
    return _mark("gate", "gate", selector)


@overload
def before(
    selector: Selector[Input, Any], /
) -> HookDecorator[[Any, ToolMetadata, Input], None]: ...
@overload
def before(
    selector: type[Any] | None = None, /
) -> HookDecorator[[Any, ToolMetadata, Any], None]: ...
def before(selector: AnySelector | type[Any] | None = None, /) -> Any:
    """Mark a before-hook; see `HookSet.before`.

    Args:
        selector: The tool, or a nested toolset for its tools; all tools where it is left out.

    Raises:
        HookError: The selector is not a selector of a tool.
    """
    return _mark("before", "before", selector)


@overload
def after(
    selector: Selector[Input, Output], /
) -> HookDecorator[[Any, ToolCall[Input, Output], ToolResult], AfterVerdict[Output]]: ...
@overload
def after(
    selector: type[Any] | None = None, /
) -> HookDecorator[[Any, ToolCall[Any, Any], ToolResult], AfterVerdict[Any]]: ...
def after(selector: AnySelector | type[Any] | None = None, /) -> Any:
    """Mark an after-hook; see `HookSet.after`.

    Args:
        selector: The tool, or a nested toolset for its tools; all tools where it is left out.

    Raises:
        HookError: The selector is not a selector of a tool.
    """
    return _mark("after", "after", selector)


def describe(selector: AnySelector, /) -> HookDecorator[[Any, ToolDef], str | None]:
    """Mark a description hook; see `HookSet.describe`.

    Raises:
        HookError: The selector is not a selector of a tool.
    """
    return _mark("description", "describe", selector)  # type: ignore[no-any-return]


def _mark(phase: str, verb: str, *selectors: AnySelector | type[Any] | None) -> Any:
    """Make the decorator that marks a method.

    Raises:
        HookError: The selector is not one, or what is marked is not a method.
    """
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
        marks = inner.__dict__.setdefault("__lutum_hooks__", [])
        marks += [(phase, selector) for selector in selectors]
        return function

    return decorate
