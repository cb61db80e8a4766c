"""What hooks and gates decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from .._call.call import AnyToolCall
from .._context.suspension import Decision, SuspendTicket
from .._text.frozen import Immutable
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import MisuseError

__all__ = [
    "Block",
    "CallGate",
    "Complete",
    "GateDecision",
    "Reject",
    "RunNormally",
    "Suspend",
    "ToolDecision",
]

In = TypeVar("In")
Out = TypeVar("Out")


class RunNormally(Immutable, Generic[In]):
    """Go on with this input: the one that came, or another.

    Example:
        >>> RunNormally({"city": "Oslo"}).input
        {'city': 'Oslo'}
    """

    __slots__ = ("input",)
    __match_args__ = ("input",)

    input: In

    def __init__(self, input: In) -> None:
        _set_input(self, input)

    def __repr__(self) -> str:
        return f"RunNormally({self.input!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs: Any = other
        return bool(self.input == theirs.input)

    __hash__ = None  # type: ignore[assignment]


_set_input: Any = vars(RunNormally)["input"].__set__


@dataclass(frozen=True, slots=True)
class Complete(Generic[Out]):
    """Answer the call with this output; the tool is not run."""

    output: Out


@dataclass(frozen=True, slots=True)
class Reject:
    """Refuse the call; the model is told the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Block:
    """Refuse the call at the gate, and say that the run should end: see `plan.blocked`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Let the call wait for a decision.

    Raises:
        MisuseError: The ticket is none.
    """

    ticket: SuspendTicket

    def __post_init__(self) -> None:
        if not isinstance(self.ticket, SuspendTicket):
            raise MisuseError(
                f"Suspend takes a SuspendTicket, not {shorten(self.ticket)}. Write "
                "`Suspend(SuspendTicket(message=...))`."
            )


ToolDecision: TypeAlias = RunNormally[In] | Complete[Out] | Reject
"""What an execution hook returns."""

GateDecision: TypeAlias = Block | Suspend | Complete[Out]
"""What a gate returns, apart from a `ToolResult` and None."""


class CallGate:
    """Base of stock gates: asked with the call and the decision by which it goes on, if any."""

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError
