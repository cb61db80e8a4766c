"""What a running tool tells the world outside: events, and the shape they have on the wire.

Three lanes leave a tool. Snapshots and deltas of an activity are for the program that shows the run
to its user; progress is a snapshot with a content of a fixed form. Observer text is for the
operators of the system, and is never shown to the user. `model_dump()` gives the wire shape of
each: plain JSON data, keys that are not set left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeAlias, cast

from typing_extensions import TypeVar

from .._text.json import is_number, is_whole, shorten
from ..errors import InvalidValueError
from .cancellation import finish_threadsafe

if TYPE_CHECKING:
    from asyncio import Future

TOOL_CALL_PROGRESS_ACTIVITY_TYPE: Final = "tool-call-progress"
"""The activity type of the snapshots that report progress."""

TOOL_CALL_PROGRESS_SCHEMA: Final = "tool-call-progress.v1"
"""The name and version of what those snapshots hold."""


class ProgressStatus(StrEnum):
    """Say how a tool call is doing, in its own words.

    >>> ProgressStatus("done").is_terminal
    True
    """

    PENDING = "pending"
    """In the queue, not started."""
    RUNNING = "running"
    """At work."""
    DONE = "done"
    """Finished."""
    FAILED = "failed"
    """Finished with an error."""
    CANCELLED = "cancelled"
    """Given up before it finished."""

    @property
    def is_terminal(self) -> bool:
        """Whether the tool will report nothing more."""
        return self not in (ProgressStatus.PENDING, ProgressStatus.RUNNING)


@dataclass(frozen=True, slots=True, init=False)
class ToolCallProgressState:
    """Hold one report of a tool call's progress.

    Attributes:
        call_id: The id of the call.
        tool_name: The wire name of its tool.
        status: How the call is doing.
        progress: How much of it is done, from 0 to 1; None if nobody knows.
        loaded: How many units are done, in the tool's own unit.
        total: How many units there are.
        message: A line for people.
        parent_node_id: The node under which a display puts this one.
        parent_call_id: The call from within which this one was made.

    >>> ToolCallProgressState("c1", "index", "running", progress=0.5).model_dump()["progress"]
    0.5
    """

    schema: ClassVar[str] = TOOL_CALL_PROGRESS_SCHEMA

    call_id: str
    tool_name: str
    status: ProgressStatus
    progress: float | None
    loaded: int | None
    total: int | None
    message: str | None
    parent_node_id: str | None
    parent_call_id: str | None

    def __init__(
        self,
        call_id: str,
        tool_name: str,
        status: ProgressStatus | str,
        *,
        progress: float | None = None,
        loaded: int | None = None,
        total: int | None = None,
        message: str | None = None,
        parent_node_id: str | None = None,
        parent_call_id: str | None = None,
    ) -> None:
        """Check the figures.

        Args:
            call_id: The id of the call.
            tool_name: The wire name of its tool.
            status: A `ProgressStatus` or its name.
            progress: A fraction from 0 to 1.
            loaded: Units done, not negative.
            total: Units in all, not negative.
            message: A line for people.
            parent_node_id: The node above this one.
            parent_call_id: The call that made this one.

        Raises:
            InvalidValueError: The status is unknown, or a figure is out of its range or none.
        """
        check_report(status, message, progress, loaded, total)
        given = (
            *(call_id, tool_name, ProgressStatus(status)),
            *(None if progress is None else float(progress), loaded, total, message),
            *(parent_node_id, parent_call_id),
        )
        for name, value in zip(self.__slots__, given, strict=True):
            object.__setattr__(self, name, value)

    @property
    def node_id(self) -> str:
        """The node of this call in a display, which is the call id."""
        return self.call_id

    def model_dump(self) -> dict[str, Any]:
        """Return the wire shape, keys that are not set left out."""
        known = {name: getattr(self, name) for name in self.__slots__}
        known["status"] = self.status.value
        told = {name: value for name, value in known.items() if value is not None}
        return {"schema": self.schema, "node_id": self.node_id, **told}


class _Event:
    __slots__: tuple[str, ...] = ()

    def model_dump(self) -> dict[str, Any]:
        """Return the wire shape."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class ActivitySnapshot(_Event):
    """Show an activity as it stands now; it replaces what was shown of it before.

    Attributes:
        message_id: The id of the call that reports.
        activity_type: What kind of activity it is, for the display to choose a form.
        content: Plain JSON data.
        replace: Whether it replaces what came before.

    >>> ActivitySnapshot("c1", "note", "half way").model_dump()["replace"]
    True
    """

    event_type: ClassVar[str] = "activity_snapshot"

    message_id: str
    activity_type: str
    content: Any
    replace: bool = True


@dataclass(frozen=True, slots=True)
class ActivityDelta(_Event):
    """Change what is shown of an activity.

    Attributes:
        message_id: The id of the call that reports.
        activity_type: What kind of activity it is.
        patch: The operations, such as those of JSON Patch, in order.

    >>> ActivityDelta("c1", "note", [{"op": "remove", "path": "/0"}]).model_dump()["message_id"]
    'c1'
    """

    event_type: ClassVar[str] = "activity_delta"

    message_id: str
    activity_type: str
    patch: list[Any]


@dataclass(frozen=True, slots=True)
class ObserverText(_Event):
    """Report something to the operators of the system, and not to the user.

    Attributes:
        message_id: The id of the call that speaks.
        source: Who speaks: the tool, unless it said otherwise.
        content: What is said.

    >>> ObserverText("c1", "search", "cache is cold").model_dump()["source"]
    'search'
    """

    event_type: ClassVar[str] = "observer_text"

    message_id: str
    source: str
    content: str


ToolEvent: TypeAlias = ActivitySnapshot | ActivityDelta | ObserverText
"""What a sink receives; `event_type` tells the kinds apart."""

Sink: TypeAlias = Callable[[ToolEvent], object]
"""Takes one event, from whichever thread the tool runs in; what it returns is not looked at."""


def check_report(
    status: ProgressStatus | str,
    message: str | None,
    progress: float | None,
    loaded: int | None,
    total: int | None,
) -> None:
    """Check what a report of progress says, without making one.

    Raises:
        InvalidValueError: The status is unknown, a figure is out of its range, or no such thing.
    """
    try:
        ProgressStatus(status)
    except ValueError:
        names = ", ".join(ProgressStatus)
        raise InvalidValueError(
            f"Unknown progress status {status!r}. There are: {names}."
        ) from None
    # NaN is in no range, so the comparison refuses it as well.
    if progress is not None and not (is_number(progress) and 0 <= progress <= 1):
        raise InvalidValueError(
            f"The progress is {shorten(progress)}. Give a number from 0 to 1, or None if it is "
            "not known; counts go into `loaded` and `total`."
        )
    for name, count in (("loaded", loaded), ("total", total)):
        if count is not None and not (is_whole(count) and count >= 0):
            raise InvalidValueError(
                f"`{name}` is {shorten(count)}. Give a whole number that is not negative."
            )
    if not isinstance(message, str | None):
        raise InvalidValueError(f"The message is {shorten(message)}. Give a text.")


def progress_in(event: ToolEvent) -> Mapping[str, object] | None:
    """Return what a report of progress says; None for any other event."""
    if isinstance(event, ActivitySnapshot):
        content: object = event.content
        if event.activity_type == TOOL_CALL_PROGRESS_ACTIVITY_TYPE and isinstance(content, Mapping):
            return cast("Mapping[str, object]", content)
    return None


def figures_in(content: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return how much of a call is done, and of how much."""
    if (value := content.get("progress")) is not None:
        return value, 1.0
    return content.get("loaded"), content.get("total")


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
