"""What a model has to be able to do: answer a request with one turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

from .._transcript.assistant import AssistantTurn
from .._transcript.request import TurnRequest
from .._transcript.stream_events import StreamEvent


class Model(Protocol):
    """Answers from async code."""

    async def respond(self, request: TurnRequest) -> AssistantTurn:
        """Send one request, and give the turn that comes back."""
        ...


@runtime_checkable
class SyncModel(Protocol):
    """Answers from sync code."""

    def respond_sync(self, request: TurnRequest) -> AssistantTurn:
        """Send one request, and give the turn that comes back."""
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """Answers piece by piece, from async code."""

    def stream(self, request: TurnRequest) -> AsyncIterator[StreamEvent]:
        """Send one request, and give its events; the last one is `TurnFinished`."""
        ...


@runtime_checkable
class SyncStreamingModel(Protocol):
    """Answers piece by piece, from sync code."""

    def stream_sync(self, request: TurnRequest) -> Iterator[StreamEvent]:
        """Send one request, and give its events; the last one is `TurnFinished`."""
        ...


AnyModel: TypeAlias = Model | SyncModel | StreamingModel | SyncStreamingModel
"""A model that can be asked in one way at least."""
