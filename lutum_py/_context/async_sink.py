"""A sink that hands events over to async code: from tools in any thread to one consumer."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Generic, Self

from typing_extensions import TypeVar

from .._text.json import is_whole, shorten
from ..errors import InvalidValueError
from .cancellation import finish_threadsafe
from .progress import ToolEvent

if TYPE_CHECKING:
    from asyncio import Future

E = TypeVar("E", default=ToolEvent)


class AsyncSink(Generic[E]):
    """Hand events from tools in any thread to one asynchronous consumer, in order.

    Events wait in a queue of at most `limit`. A tool never waits: when the queue is full, the
    oldest event is dropped and counted in `dropped`, so the newest state always arrives. If a
    consumer must not miss any delta, set `limit=None`, so that the queue can grow. After `close`
    the consumer gets the remaining events, then its loop ends.

    Attributes:
        dropped: How many events the consumer will never see.

    >>> import asyncio
    >>> from lutum_py.sinks import ActivitySnapshot, AsyncSink
    >>> async def consume(sink):
    ...     return [event.content async for event in sink]
    >>> with AsyncSink() as sink:
    ...     sink(ActivitySnapshot("c1", "note", "half way"))
    >>> asyncio.run(consume(sink))
    ['half way']
    """

    def __init__(self, limit: int | None = 10_000) -> None:
        """Open the queue.

        Args:
            limit: The most events that wait; None for no bound.

        Raises:
            InvalidValueError: `limit` is not a whole number, or less than one.
        """
        if limit is not None and not (is_whole(limit) and limit >= 1):
            raise InvalidValueError(
                f"`limit` is {shorten(limit)}. Give at least 1, or None for no bound."
            )
        # A deque under a lock and not an `asyncio.Queue`: events come from any thread, also before
        # there is a loop. The waiter is a future of the consumer's loop, which `finish_threadsafe`
        # ends there.
        self.dropped: int = 0
        self._limit = limit
        self._lock = Lock()
        self._queue: deque[E] = deque()
        self._closed = False
        self._waiter: Future[None] | None = None

    def __call__(self, event: E) -> None:
        """Queue the event; after `close` it is dropped."""
        with self._lock:
            if self._closed:
                self.dropped += 1
                return
            if len(self._queue) == self._limit:
                self._queue.popleft()
                self.dropped += 1
            self._queue.append(event)
            self._wake()

    def close(self) -> None:
        """Take no more events and let the consumer finish; may be called twice."""
        with self._lock:
            self._closed = True
            self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncSink[E]:
        """Consume the events, in whichever event loop this runs."""
        return self

    async def __anext__(self) -> E:
        """Wait for the next event.

        Raises:
            RuntimeError: Another consumer is waiting.
            StopAsyncIteration: The sink is closed and nothing waits.
        """
        from asyncio import get_running_loop

        while True:
            with self._lock:
                if self._queue:
                    return self._queue.popleft()
                if self._closed:
                    raise StopAsyncIteration
                if self._waiter is not None:
                    raise RuntimeError(
                        "Another consumer waits for the events of this sink already. Use one "
                        "consumer, or one sink for each."
                    )
                # Made under the lock: were it made after, an event could come in between, find
                # nobody to wake, and be seen with the next one only.
                woken: Future[None] = get_running_loop().create_future()
                self._waiter = woken
            try:
                await woken
            finally:
                with self._lock:
                    if self._waiter is woken:
                        self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None:
            woken, self._waiter = self._waiter, None
            finish_threadsafe(woken)
