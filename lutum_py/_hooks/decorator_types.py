"""What the decorators of hooks take and give back, for checkers: each function as it was.

No type variable says both, that a function is called with what a tool has and that it comes back
with its own parameters and its own return type. A protocol with two overloads does: what fits it is
called in either way, and the second way is whatever a checker finds there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, overload

from typing_extensions import ParamSpec, TypeVar

from .._call.decisions import Block, Complete, Reject, Suspend
from .._transcript.result import ToolResult
from .registered_hook import CallGate

Asked = ParamSpec("Asked")
Asked2 = ParamSpec("Asked2")
Written = ParamSpec("Written")
Gate = TypeVar("Gate", bound=CallGate)
Output = TypeVar("Output")
Answer_contra = TypeVar("Answer_contra", contravariant=True)
Answer2_contra = TypeVar("Answer2_contra", contravariant=True)
Answer_co = TypeVar("Answer_co", covariant=True)
Answer2_co = TypeVar("Answer2_co", covariant=True)
Returned = TypeVar("Returned")
Returned_co = TypeVar("Returned_co", covariant=True)
# Of a callable that is known only by what it takes and gives, such as one that a function returned,
# mypy finds neither, and takes the defaults. Another overload would leave it in doubt about each
# hook that has an `Any`.
Own = ParamSpec("Own", default=...)
Gave = TypeVar("Gave", default=Any)

AfterVerdict: TypeAlias = Complete[Output] | Reject | ToolResult | None
"""What an after-hook returns."""
GateVerdict: TypeAlias = Block | Suspend | Complete[Output] | ToolResult | None
"""What a gate returns."""


class Fits(Protocol[Asked, Answer_co, Written, Returned_co]):
    """A function that is called in one way, sync or async, and was written in its own."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(self, *args: Written.args, **kwargs: Written.kwargs) -> Returned_co: ...


class FitsTwo(  # type: ignore[misc]  # two answers that overlap: mypy takes them for invariant
    Protocol[Asked, Answer_co, Asked2, Answer2_co, Written, Returned_co]
):
    """The same as `Fits`, of a function that reviews two tools."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(
        self, *args: Asked2.args, **kwargs: Asked2.kwargs
    ) -> Answer2_co | Awaitable[Answer2_co]: ...
    @overload
    def __call__(self, *args: Written.args, **kwargs: Written.kwargs) -> Returned_co: ...


class Gives(Protocol[Asked, Answer_co, Returned_co]):
    """A function that is called in the way that it was written, and gives its own verdict."""

    @overload
    def __call__(
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer_co | Awaitable[Answer_co]: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self, *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Returned_co: ...


class ArgsHookDecorator(Protocol[Asked, Answer_contra]):
    """Takes a function of a tool's own parameters, and gives it back as it was."""

    def __call__(self, hook: Gives[Asked, Answer_contra, Returned], /) -> Callable[Asked, Returned]:
        """Register the function."""
        ...


class HookDecorator(Protocol[Asked, Answer_contra]):
    """Takes a function that is called so, and gives it back as it was."""

    def __call__(self, hook: Fits[Asked, Answer_contra, Own, Gave], /) -> Callable[Own, Gave]:
        """Register the function."""
        ...


class SharedHookDecorator(Protocol[Asked, Answer_contra, Asked2, Answer2_contra]):
    """Takes a function that reviews two tools, and gives it back as it was."""

    def __call__(
        self, hook: FitsTwo[Asked, Answer_contra, Asked2, Answer2_contra, Own, Gave], /
    ) -> Callable[Own, Gave]:
        """Register the function."""
        ...


class GateDecorator(Protocol[Asked, Asked2, Answer_contra]):
    """Takes a gate, with or without a parameter for the decision, and gives it back as it was."""

    @overload
    def __call__(self, hook: Gate, /) -> Gate: ...
    @overload
    def __call__(self, hook: Fits[Asked, Answer_contra, Own, Gave], /) -> Callable[Own, Gave]: ...
    @overload
    def __call__(self, hook: Fits[Asked2, Answer_contra, Own, Gave], /) -> Callable[Own, Gave]: ...
