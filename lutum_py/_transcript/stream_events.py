"""What a streamed turn reports while it comes in; every dialect gives the same events.

Calls are numbered by the order in which they begin in the turn, whatever the provider numbers; the
last event carries the whole turn, so that events may be shown, and need not be put together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from .._text.unicode import sendable
from .assistant import AssistantTurn, Usage
from .metadata import ToolMetadata

__all__ = [
    "ArgumentsDelta",
    "CallCompleted",
    "CallStarted",
    "ReasoningDelta",
    "RefusalDelta",
    "StreamEvent",
    "TextDelta",
    "TurnFinished",
    "UsageReported",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More visible reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """More of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A tool call begins.

    Attributes:
        index: Which call of the turn it is, from 0.
        id: Its id.
        name: The wire name of the tool.
    """

    index: int
    id: str
    name: str

    def __post_init__(self) -> None:
        for field in ("id", "name"):
            object.__setattr__(self, field, sendable(getattr(self, field)))


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """More of a call's argument text.

    Attributes:
        index: Which call of the turn it is, from 0.
        text: What was added.
        partial: The arguments so far as plain data, as far as they can be read; for display only.
    """

    index: int
    text: str
    partial: Any


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """All of a call's argument text is there.

    Attributes:
        index: Which call of the turn it is, from 0.
        metadata: The call as the model sent it.
    """

    index: int
    metadata: ToolMetadata


@dataclass(frozen=True, slots=True)
class UsageReported:
    """The provider says what the turn cost so far."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is whole; always the last event of a stream."""

    turn: AssistantTurn


StreamEvent: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | RefusalDelta
    | CallStarted
    | ArgumentsDelta
    | CallCompleted
    | UsageReported
    | TurnFinished
)
