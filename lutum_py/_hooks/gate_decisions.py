"""What gates decide about a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from .._call.call import AnyToolCall
from .._call.decisions import Complete
from .._context.suspension import Decision, SuspendTicket
from .._text.json import shorten
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript
from ..errors import MisuseError

Out = TypeVar("Out")


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
        if not isinstance(self.ticket, SuspendTicket):
            raise MisuseError(
                f"Suspend takes a SuspendTicket, not {shorten(self.ticket)}. Write "
                "`Suspend(SuspendTicket(message=...))`."
            )


GateDecision: TypeAlias = Block | Suspend | Complete[Out]
"""What a gate returns, apart from a `ToolResult` and None."""


class CallGate:
    """Base of stock gates: asked with the call and the decision by which it goes on, if any.

    Attributes:
        transcript: The conversation that the gate goes by, where it goes by one: it is asked about
            no call of another.
    """

    transcript: Transcript | None = None

    def __call__(
        self, call: AnyToolCall, decision: Decision | None, /
    ) -> Block | Suspend | Complete[Any] | ToolResult | None:
        """Decide about a call; None lets it pass."""
        raise NotImplementedError
