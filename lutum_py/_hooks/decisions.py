"""What hooks and gates decide, and the record of it, kept and logged."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from .._call.call import AnyToolCall
from .._context.suspension import Decision, SuspendTicket
from .._text.json import compact_json, shorten
from .._transcript.result import ToolResult
from ..errors import MisuseError

__all__ = [
    "Block",
    "CallGate",
    "Complete",
    "DecisionKind",
    "DecisionRecord",
    "GateDecision",
    "Reject",
    "RunNormally",
    "Suspend",
    "ToolDecision",
    "log_decision",
    "logger",
]

logger = logging.getLogger("lutum.tool_hook")

In = TypeVar("In")
Out = TypeVar("Out")


class RunNormally(Generic[In]):
    """Go on with this input: the one that came, or another.

    Example:
        >>> RunNormally({"city": "Oslo"}).input
        {'city': 'Oslo'}
    """

    __slots__ = ("input",)
    __match_args__ = ("input",)

    def __init__(self, input: In) -> None:
        self.input = input

    def __repr__(self) -> str:
        return f"RunNormally({self.input!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs: Any = other
        return bool(self.input == theirs.input)

    __hash__ = None  # type: ignore[assignment]


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


DecisionKind: TypeAlias = Literal["run_normally", "complete", "reject", "block", "suspend"]


class DecisionRecord(NamedTuple):
    """Say who decided what about a call.

    Attributes:
        call_id: The id of the call.
        tool: The wire name of the tool.
        hook: The name of the hook or gate.
        phase: `hook`, `gate`, or `function` for a plain function used as hooks.
        decision: What it decided.
        reason: Why, for `reject` and `block`; the ticket's action for `suspend`.
    """

    call_id: str
    tool: str
    hook: str
    phase: Literal["hook", "gate", "function"]
    decision: DecisionKind
    reason: str | None = None


def log_decision(call: AnyToolCall, decision: str, reason: str | None) -> None:
    """Log a decision at INFO; to be asked only where `logger` takes that level.

    The record has the attributes `tool_name`, `tool_call_id` and `decision`, and
    `effective_input_json` where the call goes on, else `reason`.
    """
    extra: dict[str, Any] = {
        "tool_name": call.name,
        "tool_call_id": call.id,
        "decision": decision,
    }
    if decision == "run_normally":
        extra["effective_input_json"] = _input_json(call)
    else:
        extra["reason"] = reason
    logger.info("%s: %s (call %r)", decision, call.name, call.id, extra=extra)


def _input_json(call: AnyToolCall) -> str:
    try:
        return compact_json(call.spec.arguments.to_shown(call.input))
    except (TypeError, ValueError):
        # A record is no reason to fail: a field of any type may hold what JSON cannot carry.
        return shorten(call.input)
