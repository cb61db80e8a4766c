"""A turn that comes in piece by piece, and its outcome at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from typing import Any, Generic, TypeVar

from .._round.read_turn import Finished, NeedsTools
from .._toolset import Toolset
from .._transcript.stream_events import StreamEvent, TurnFinished
from ..errors import DialectError, LifecycleError, MisuseError
from .model import AnyModel
from .prepared import Prepared

__all__ = ["SyncTurnStream", "TurnStream"]

T = TypeVar("T", bound=Toolset)


class _StreamOutcome(Generic[T]):
    """Read the turn when its last event is there."""

    def __init__(self, model: AnyModel, prepared: Prepared) -> None:
        self._model = model
        self._prepared = prepared
        self._outcome: NeedsTools[T] | Finished | None = None
        self._is_started = False

    @property
    def outcome(self) -> NeedsTools[T] | Finished:
        """What the turn came to.

        Raises:
            LifecycleError: The stream is not at its end yet.
        """
        if self._outcome is None:
            raise LifecycleError(
                "The stream is not at its end, so there is no outcome yet. Iterate it to the end, "
                "or use `collect()`."
            )
        return self._outcome

    def _open(self, method: str) -> Any:
        if self._is_started:
            raise LifecycleError(
                "This stream was already started; a turn is asked for once. Build another turn."
            )
        self._is_started = True
        stream = getattr(self._model, method, None)
        if stream is None:
            raise MisuseError(
                f"{type(self._model).__name__} has no `{method}`, so its turn cannot be streamed. "
                f"Use `.collect()`, or a model with `def {method}(self, request)`."
            )
        return stream(self._prepared.request)

    def _see(self, event: StreamEvent) -> None:
        if isinstance(event, TurnFinished):
            self._outcome = self._prepared.take(event.turn)

    def _end(self) -> NeedsTools[T] | Finished:
        if self._outcome is None:
            raise DialectError(
                "The stream ended without a finished turn; nothing was added to the transcript.",
                dialect="stream",
                where="end",
            )
        return self._outcome


class TurnStream(_StreamOutcome[T]):
    """Iterate it for the events of a turn, then read `outcome`.

    Example:
        >>> import asyncio
        >>> from lutum_py import Session
        >>> from lutum_py.testing import ScriptedModel
        >>> async def main():
        ...     session = Session()
        ...     session.push_user("Hello")
        ...     stream = session.text_turn(ScriptedModel([ScriptedModel.text("Hi!")])).stream()
        ...     async for event in stream:
        ...         print(type(event).__name__)
        ...     return stream.outcome.result.text
        >>> asyncio.run(main())
        TextDelta
        TurnFinished
        'Hi!'
    """

    async def __aiter__(self) -> AsyncGenerator[StreamEvent, None]:
        events = self._open("stream")
        try:
            async for event in events:
                self._see(event)
                yield event
                if self._outcome is not None:
                    break
        finally:
            # Also where the reader stops early: a connection may hang on it.
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()
        self._end()

    async def collect(self) -> NeedsTools[T] | Finished:
        """Take the stream to its end, and give the outcome."""
        if self._outcome is None:
            async for _ in self:
                pass
        return self._end()


class SyncTurnStream(_StreamOutcome[T]):
    """The same for sync code."""

    def __iter__(self) -> Iterator[StreamEvent]:
        events = self._open("stream_sync")
        try:
            for event in events:
                self._see(event)
                yield event
                if self._outcome is not None:
                    break
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
        self._end()

    def collect(self) -> NeedsTools[T] | Finished:
        """Take the stream to its end, and give the outcome."""
        if self._outcome is None:
            for _ in self:
                pass
        return self._end()
