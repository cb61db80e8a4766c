"""What a streamed turn reports while it comes in; every dialect gives the same events.

Calls are numbered by the order in which they begin in the turn, whatever the provider numbers; the
last event carries the whole turn, so that events may be shown, and need not be put together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .._text.immutable import setters_of
from .._text.json import PartialJson, sendable
from .assistant import AssistantTurn, ToolMetadata, Usage


# Nearly all events are of three kinds: these set their slot without the detour of `__setattr__`, as
# `ToolMetadata` does.
@dataclass(frozen=True, slots=True, init=False)
class TextDelta:
    """More text."""

    text: str

    def __init__(self, text: str) -> None:
        _set_said(self, text)


@dataclass(frozen=True, slots=True, init=False)
class ReasoningDelta:
    """More visible reasoning."""

    text: str

    def __init__(self, text: str) -> None:
        _set_reasoned(self, text)


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
        if not (self.id.isascii() and self.name.isascii()):
            for field in ("id", "name"):
                object.__setattr__(self, field, sendable(getattr(self, field)))


# `{"city": "Par` is not JSON; to read it as `{"city": "Par"}` takes a parser that fixes. Done for
# each of a thousand pieces, that would be most of the work of a stream.
class _ReadLater:
    """Read the arguments so far when they are first asked for: seldom does a program look."""

    __slots__ = ("_json", "_view")

    _json: PartialJson
    _view: int

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Of a slot that is empty.
            if name != "partial":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            partial = self._json.view(self._view)
            object.__setattr__(self, "partial", partial)
            return partial


@dataclass(frozen=True, slots=True)
class ArgumentsDelta(_ReadLater):
    """More of a call's argument text.

    Attributes:
        index: Which call of the turn it is, from 0.
        text: What was added.
        partial: The arguments so far as plain data, as far as they can be read; for display only.
    """

    index: int
    text: str
    partial: Any

    @classmethod
    def of(cls, index: int, text: str, json: PartialJson) -> ArgumentsDelta:
        """Add text to the arguments of a call, and make the event for it."""
        # `partial` is left empty: `__getattr__` of `_ReadLater` fills it when somebody looks.
        made: ArgumentsDelta = _new(cls)
        _set_index(made, index)
        _set_text(made, text)
        _set_json(made, json)
        _set_view(made, json.add(text))
        return made


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """All of a call's argument text is there.

    Attributes:
        index: Which call of the turn it is, from 0.
        metadata: The call as the model sent it.
    """

    index: int
    metadata: ToolMetadata


@dataclass(frozen=True, slots=True, init=False)
class UsageReported:
    """The provider says what the turn cost so far."""

    usage: Usage

    def __init__(self, usage: Usage) -> None:
        _set_usage(self, usage)


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


(_set_said,) = setters_of(TextDelta)
(_set_reasoned,) = setters_of(ReasoningDelta)
(_set_usage,) = setters_of(UsageReported)
_new: Any = object.__new__
_set_index, _set_text, _ = setters_of(ArgumentsDelta)
_set_json, _set_view = setters_of(_ReadLater)
