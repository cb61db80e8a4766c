"""What may decide about calls, and what may become of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from .._call.call import AnyToolCall
from .._call.outcomes import HandledCall, RejectedCall, SuspendedCall

__all__ = ["HookOutcome", "Hooks", "ToolHooks"]

T_co = TypeVar("T_co", covariant=True)

HookOutcome: TypeAlias = AnyToolCall | HandledCall[Any, Any] | RejectedCall | SuspendedCall
"""A call that is still to be run, or what became of it."""


class ToolHooks(Protocol[T_co]):
    """What `apply_hooks` accepts beside a plain function: anything that decides about one call.

    A `HookSet` is one; so is any object with these two members.
    """

    @property
    def toolset(self) -> type[T_co]:
        """The toolset whose calls it decides about."""
        ...

    def hook_tool_call(self, call: AnyToolCall, /) -> HookOutcome | Awaitable[HookOutcome]:
        """Return the call itself, perhaps with another input, or what became of it."""
        ...


Hooks: TypeAlias = (
    ToolHooks[Any]
    | Callable[[AnyToolCall], HookOutcome]
    | Callable[[AnyToolCall], Awaitable[HookOutcome]]
)
"""A hook set, an object like one, or a plain function of a call."""
