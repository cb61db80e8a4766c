"""What hooks and gates decide about a call."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, overload

from .._text.immutable import Immutable, dataclass
from .._text.json import shorten
from ..errors import MisuseError
from .reply import Reply

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket

In = TypeVar("In")
Out = TypeVar("Out")
In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class RunNormally(Immutable, Generic[In_co]):
    """Go on with this input: the one that came, or another.

    Example:
        >>> RunNormally({"city": "Oslo"}).input
        {'city': 'Oslo'}
    """

    __slots__ = ("input",)
    __match_args__ = ("input",)

    input: In_co

    def __init__(self, input: In_co) -> None:
        _set_input(self, input)

    def __repr__(self) -> str:
        return f"RunNormally({self.input!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs: Any = other
        return bool(self.input == theirs.input)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.input,))


_set_input: Any = vars(RunNormally)["input"].__set__


@dataclass(frozen=True, slots=True)
class Complete(Generic[Out_co]):
    """Answer the call with this output, or with a `Reply` of it; the tool is not run."""

    output: Out_co | Reply[Out_co]

    if TYPE_CHECKING:
        # Of a union two of four checkers would not find the type in a reply.
        @overload
        def __init__(self, output: Reply[Out_co]) -> None: ...
        @overload
        def __init__(self, output: Out_co) -> None: ...
        def __init__(self, output: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Reject:
    """Refuse the call; the model is told the reason."""

    reason: str


ToolDecision: TypeAlias = RunNormally[In] | Complete[Out] | Reject
"""What an execution hook returns."""

ArgsDecision: TypeAlias = RunNormally[Any] | Complete[Out] | Reject | Mapping[str, Any] | None
"""What an execution hook of the function's own parameters returns.

A mapping holds the arguments to change; None goes on as it is.
"""

ArgsRuleAnswer: TypeAlias = (
    Complete[Out]
    | Reject
    | Mapping[str, Any]
    | Awaitable[Complete[Out] | Reject | Mapping[str, Any] | None]
    | None
)
"""What the rule of a function tool returns; see `tool`."""

InputRuleAnswer: TypeAlias = (
    In | Complete[Out] | Reject | Awaitable[In | Complete[Out] | Reject | None] | None
)
"""What the rule of a tool of an input model returns; see `tool`."""


@dataclass(frozen=True, slots=True)
class Block:
    """Refuse the call at the gate, and say that the run should end: see `plan.blocked`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Let the call wait for a decision.

    Raises:
        MisuseError: The ticket is not a `SuspendTicket`.
    """

    ticket: SuspendTicket

    def __post_init__(self) -> None:
        from .._context.suspension import SuspendTicket  # needed by few, at the first question

        if not isinstance(self.ticket, SuspendTicket):
            raise MisuseError(
                f"Suspend takes a SuspendTicket, not {shorten(self.ticket)}. Write "
                "`Suspend(SuspendTicket(message=...))`."
            )


GateDecision: TypeAlias = Block | Suspend | Complete[Out]
"""What a gate returns, apart from a `ToolResult` and None."""
