"""What the decorators of hooks take and give back, for checkers: each function as it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from .._call.call import ToolCall
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult

if TYPE_CHECKING:
    from .._call.decisions import ArgsDecision, ToolDecision

P = ParamSpec("P")
In = TypeVar("In")
Out = TypeVar("Out")


class OnHook(Protocol[In, Out]):
    """Takes an execution hook of a tool and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[ToolMetadata, In], Awaitable[ToolDecision[In, Out]]], /
    ) -> Callable[[ToolMetadata, In], Awaitable[ToolDecision[In, Out]]]: ...
    @overload
    def __call__(
        self, hook: Callable[[ToolMetadata, In], ToolDecision[In, Out]], /
    ) -> Callable[[ToolMetadata, In], ToolDecision[In, Out]]: ...


class OnArgs(Protocol[P, Out]):
    """Takes an execution hook of a function's own parameters and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[P, Awaitable[ArgsDecision[Out]]], /
    ) -> Callable[P, Awaitable[ArgsDecision[Out]]]: ...
    @overload
    def __call__(
        self, hook: Callable[P, ArgsDecision[Out]], /
    ) -> Callable[P, ArgsDecision[Out]]: ...


class AfterHook(Protocol[In, Out]):
    """Takes an after-hook of a tool and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]], /
    ) -> Callable[[ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]]: ...
    @overload
    def __call__(
        self, hook: Callable[[ToolCall[In, Out], ToolResult], ToolResult | None], /
    ) -> Callable[[ToolCall[In, Out], ToolResult], ToolResult | None]: ...


class OnMethod(Protocol[In, Out]):
    """Takes a method of a policy that is an execution hook, and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[Any, ToolMetadata, In], Awaitable[ToolDecision[In, Out]]], /
    ) -> Callable[[Any, ToolMetadata, In], Awaitable[ToolDecision[In, Out]]]: ...
    @overload
    def __call__(
        self, hook: Callable[[Any, ToolMetadata, In], ToolDecision[In, Out]], /
    ) -> Callable[[Any, ToolMetadata, In], ToolDecision[In, Out]]: ...


class AfterMethod(Protocol[In, Out]):
    """Takes a method of a policy that is an after-hook, and gives it back as it was."""

    @overload
    def __call__(
        self, hook: Callable[[Any, ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]], /
    ) -> Callable[[Any, ToolCall[In, Out], ToolResult], Awaitable[ToolResult | None]]: ...
    @overload
    def __call__(
        self, hook: Callable[[Any, ToolCall[In, Out], ToolResult], ToolResult | None], /
    ) -> Callable[[Any, ToolCall[In, Out], ToolResult], ToolResult | None]: ...
