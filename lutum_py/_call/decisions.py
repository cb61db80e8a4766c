"""What hooks and gates decide about a call; `Review` writes it into the history of the call."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    overload,
)

from .._schema.arguments import InputText, copied
from .._text.immutable import dataclass
from .._text.json import shorten
from ..errors import MisuseError
from .reply import Reply

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket

In = TypeVar("In")
Out = TypeVar("Out")
In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)


@dataclass(frozen=True, slots=True, init=False)
class RunNormally(Generic[In_co]):
    """Go on with this input: the one that came, or another.

    Example:
        >>> RunNormally({"city": "Oslo"}).input
        {'city': 'Oslo'}
    """

    input: In_co
    _text: InputText | None = field(init=False, repr=False, compare=False)

    def __init__(self, input: In_co) -> None:
        _set_input(self, input)
        _set_text(self, None)

    @classmethod
    def _of(cls, input: Any, text: InputText) -> RunNormally[Any]:
        """Go on with an input that was described already, as of a dict of arguments."""
        made = cls(input)
        text.kept = copied(input)
        _set_text(made, text)
        return made

    def __repr__(self) -> str:
        return f"RunNormally({self.input!r})"

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


_set_input: Any = vars(RunNormally)["input"].__set__
_set_text: Any = vars(RunNormally)["_text"].__set__


@dataclass(frozen=True, slots=True)
class Complete(Generic[Out_co]):
    """Give the call this output, or a `Reply` of it, as its result; the tool is not run."""

    output: Out_co | Reply[Out_co]

    if TYPE_CHECKING:
        # Given one union, two of four type checkers would not find the type in a reply.
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

ArgsRuleVerdict: TypeAlias = (
    Complete[Out]
    | Reject
    | Mapping[str, Any]
    | Awaitable[Complete[Out] | Reject | Mapping[str, Any] | None]
    | None
)
"""What the rule of a function tool returns; see `tool`."""

InputRuleVerdict: TypeAlias = (
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

DecisionKind: TypeAlias = Literal["run_normally", "complete", "reject", "block", "suspend"]
