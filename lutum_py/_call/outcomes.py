"""What becomes of a call before anyone runs it: handled, rejected, suspended, or not usable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult, make_result, rejection
from ..errors import FieldIssue

if TYPE_CHECKING:
    from .._context.suspension import SuspendTicket
    from .call import AnyToolCall

__all__ = [
    "ContinueSuggestion",
    "HandledCall",
    "IssueReason",
    "RecoverableToolCallIssue",
    "RejectedCall",
    "RejectionSource",
    "SuspendedCall",
]

In = TypeVar("In")
Out = TypeVar("Out")

RejectionSource: TypeAlias = Literal["hook", "gate", "user", "decision"]
"""Who rejected a call: an execution hook, a gate that blocked it, the user's own code, or whoever
decided to cancel it while it was suspended."""

IssueReason: TypeAlias = Literal["unknown_tool", "not_available", "invalid_arguments"]


@dataclass(frozen=True, slots=True)
class HandledCall(Generic[In, Out]):
    """A call that got its output without being run.

    Attributes:
        metadata: The call as the model sent it.
        input: Its input when it was handled.
        output: The output that it got.
        result: The same, encoded.
    """

    metadata: ToolMetadata
    input: In
    output: Out
    result: ToolResult

    def __reduce__(self) -> tuple[Any, ...]:
        return (HandledCall, (self.metadata, self.input, self.output, self.result))


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that will not be run, and why.

    Attributes:
        metadata: The call as the model sent it.
        call: The call, with its input when it was rejected.
        reason: What the model is told.
        source: Who rejected it.
    """

    metadata: ToolMetadata
    call: AnyToolCall
    reason: str
    source: RejectionSource = "user"

    @property
    def result(self) -> ToolResult:
        """The standard result of a call that was rejected, or cancelled by a decision."""
        if self.source == "decision":
            text = f"Cancelled: {self.reason}"
            return make_result(self.metadata, "null", "cancelled", text)
        return rejection(self.metadata, self.reason)


@dataclass(frozen=True, slots=True)
class SuspendedCall:
    """A call that waits for a decision.

    Attributes:
        call: The call; its input is frozen.
        ticket: What is asked, and how the answer is used.
        digest: Names the tool, its schema and the final arguments: what an approval is bound to.
        was_started: Whether the tool suspended itself after it was started.
    """

    call: AnyToolCall
    ticket: SuspendTicket
    digest: str
    was_started: bool = False


@dataclass(frozen=True, slots=True)
class RecoverableToolCallIssue:
    """A call that cannot be used, and what the model is told so that it can do better.

    Attributes:
        metadata: The call as the model sent it.
        reason: `unknown_tool`, `not_available` or `invalid_arguments`.
        text: What the model is told.
        fields: For invalid arguments, one entry for each failing field.
        suggestion: For an unknown tool, the nearest name on offer.
    """

    metadata: ToolMetadata
    reason: IssueReason
    text: str
    fields: tuple[FieldIssue, ...] = ()
    suggestion: str | None = None

    @property
    def result(self) -> ToolResult:
        """The standard rejection that answers the call unless the user gives another result."""
        return rejection(self.metadata, self.text, code=self.reason)


@dataclass(frozen=True, slots=True)
class ContinueSuggestion:
    """Say why the model should go on: it made calls that could not be used.

    Attributes:
        call_ids: The ids of those calls.
        text: The same for people.
    """

    call_ids: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, issues: tuple[RecoverableToolCallIssue, ...]) -> ContinueSuggestion | None:
        """Make the suggestion that issues give reason for, if there are any."""
        if not issues:
            return None
        count = len(issues)
        text = (
            f"{count} tool call{'s' * (count != 1)} could not be used; the model is told why, and "
            "can correct itself when it is asked again."
        )
        return cls(tuple(issue.metadata.id for issue in issues), text)
