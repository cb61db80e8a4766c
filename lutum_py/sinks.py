"""Ready-made sinks, which receive what tools report through their `ToolContext`.

A sink is any callable that takes one event. It is called in the thread of the tool, so those here
may be shared by several threads. A `ThrottledSink` in front keeps a chatty tool from flooding one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self

from typing_extensions import TypeVar

from ._text.escaping import escape_unprintable, escape_unprintable_json
from ._text.json import compact_json, cut, is_whole, shorten
from .context import ObserverText, ProgressStatus, Sink, ToolEvent
from .errors import InvalidValueError, MissingExtraError, MisuseError
from .typing import CallEvent, OnEvent

if TYPE_CHECKING:
    from asyncio import Future
    from logging import Logger

    from rich.console import Console
    from rich.progress import TaskID

    from . import AnyToolCall
    from .execution import Outcome

__all__ = [
    "AnyEvent",
    "AsyncSink",
    "ListSink",
    "LoggerSink",
    "RichProgressSink",
    "ThrottledSink",
    "escape_unprintable",
    "log_events",
]

_ROUNDING: Final = 1e-9
_MOST_CALLS: Final = 1024
_LONGEST_LINE: Final = 400
_MOST_ENDED: Final = 8
_WORDS: Final = {("resumed", "rejected"): "cancelled", ("resumed", "handled"): "decided"}
"""What a log calls a decision after which the call does not go on, by kind and state."""
_FINAL: Final = frozenset(status.value for status in ProgressStatus if status.is_terminal)


E = TypeVar("E", default=ToolEvent)


class AnyEvent(Protocol):
    """What a sink makes use of: an event of a tool, or a `CallEvent`."""

    @property
    def event_type(self) -> str:
        """What kind of event it is."""
        ...

    @property
    def message_id(self) -> str:
        """Which call it is about."""
        ...

    def model_dump(self) -> dict[str, Any]:
        """Give it as plain data."""
        ...


class ListSink(Generic[E]):
    """Keep every event in a list, for tests and for looking back.

    Attributes:
        events: The events, in the order in which they came.

    >>> from lutum_py.context import ActivitySnapshot
    >>> sink = ListSink()
    >>> sink(ActivitySnapshot("c1", "note", "half way"))
    >>> sink.dump()[0]["content"]
    'half way'
    """

    def __init__(self) -> None:
        """Start with no event."""
        self.events: list[E] = []

    def __call__(self, event: E) -> None:
        """Keep the event."""
        self.events.append(event)

    def dump(self) -> list[dict[str, Any]]:
        """Return the wire shapes of all events, in order."""
        events: list[Any] = self.events
        return [event.model_dump() for event in events]


class AsyncSink(Generic[E]):
    """Hand events from tools in any thread to one asynchronous consumer, in order.

    Events wait in a queue of at most `limit`. A tool never waits: when the queue is full, the
    oldest event is dropped and counted in `dropped`, so the newest state always arrives. If a
    consumer must not miss any delta, set `limit=None`, so that the queue can grow. After `close`
    the consumer gets the remaining events, then its loop ends.

    Attributes:
        dropped: How many events the consumer will never see.

    >>> import asyncio
    >>> from lutum_py.context import ActivitySnapshot
    >>> from lutum_py.sinks import AsyncSink
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
        # there is a loop. The waiter is a future of the consumer's loop, and is ended there.
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
            # The loop may have been closed with its consumer inside: nobody is left to wake.
            with suppress(RuntimeError):
                woken.get_loop().call_soon_threadsafe(_finish, woken)


def _finish(woken: Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


class LoggerSink:
    """Write one log record an event.

    Records go to the given logger; observer text goes to its child `observer`, so that it can be
    kept apart. Each record carries `event_type`, `tool_call_id` and `event`, the wire shape.

    >>> from lutum_py.context import ActivitySnapshot
    >>> sink = LoggerSink(level=10)
    >>> sink(ActivitySnapshot("c1", "note", "half way"))
    """

    def __init__(self, logger: Logger | str = "lutum.progress", level: int | None = None) -> None:
        """Choose where to write.

        Args:
            logger: A logger or its name.
            level: The level of the records; `logging.INFO` by default.
        """
        from logging import INFO, getLogger

        self._logger = getLogger(logger) if isinstance(logger, str) else logger
        self._observer = self._logger.getChild("observer")
        self._level = INFO if level is None else level

    def __call__(self, event: AnyEvent) -> None:
        """Write the event, if anybody listens at this level."""
        logger = self._observer if isinstance(event, ObserverText) else self._logger
        if logger.isEnabledFor(self._level):
            kind, call_id, dumped = event.event_type, event.message_id, event.model_dump()
            logger.log(
                self._level,
                "%s of call %s: %s",
                kind,
                escape_unprintable(call_id),
                escape_unprintable(repr(dumped)[:_LONGEST_LINE]),
                extra={
                    "event_type": kind,
                    "tool_call_id": escape_unprintable(call_id),
                    "event": dumped,
                },
            )


def log_events(logger: Logger | str = "lutum.calls", level: int | None = None) -> OnEvent:
    """Make a listener that writes one line an event, with the final arguments.

    A line begins with the kind of the event. If a decision does not let a call go on, it begins
    with `cancelled`, or with `decided` if the decision's result is taken for the tool's.

    Each record carries `event_type`, `tool_call_id` and `event`, the event as plain data.

    Args:
        logger: A logger or its name.
        level: The level of the records; `logging.INFO` by default.

    Example:
        >>> on_event = log_events("app.calls")
    """
    from logging import INFO, getLogger

    target = getLogger(logger) if isinstance(logger, str) else logger
    at = INFO if level is None else level

    def log(event: CallEvent) -> None:
        if not target.isEnabledFor(at):
            return
        row = event.row
        shown = row.proposed if row.arguments is None else compact_json(row.arguments)
        word = _WORDS.get((event.kind, row.state), event.kind)
        status = None if row.result is None else row.result.status
        came_to = "" if status in (None, word) else f" -> {status}"
        # Whoever approved a call neither started nor ended it.
        by = ", approved by" if event.kind in ("started", "continued", "ended") else " by"
        because = f"{by} {row.by}" if row.by else ""
        because += f": {row.reason}" if row.reason else ""
        target.log(
            at,
            "%s %s %s (%s)%s%s",
            word,
            escape_unprintable(row.tool),
            escape_unprintable_json(cut(shown, _LONGEST_LINE)),
            escape_unprintable(row.id),
            came_to,
            escape_unprintable(cut(because, _LONGEST_LINE)),
            extra={
                "event_type": event.event_type,
                "tool_call_id": escape_unprintable(row.id),
                "event": event.model_dump(),
            },
        )

    return log


class ThrottledSink:
    """Pass on only the reports of progress that tell something new.

    A report passes when it is the first of its call, when `interval` seconds have gone by since the
    last that passed, when the value moved by `step` or reached 1, when the message or the status
    changed, and always when the status is final. Every other kind of event passes as well.

    What it remembers of a call goes with the call's final report; of calls without one it remembers
    the last 1024.

    >>> from lutum_py.context import ActivitySnapshot
    >>> passed = ListSink()
    >>> sink = ThrottledSink(passed, clock=lambda: 0.0)
    >>> for value in (0.1, 0.101, 0.2):
    ...     content = {"status": "running", "progress": value}
    ...     sink(ActivitySnapshot("c1", "tool-call-progress", content))
    >>> [event.content["progress"] for event in passed.events]
    [0.1, 0.2]
    """

    def __init__(
        self,
        sink: Sink,
        interval: float = 0.1,
        step: float = 0.01,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Stand in front of another sink.

        Args:
            sink: Receives what passes.
            interval: Seconds after which any report passes.
            step: The move of the value, which runs from 0 to 1, that makes a report pass.
            clock: Gives the time in seconds; it must not run backwards.

        Raises:
            MisuseError: The sink is not a function.
        """
        MisuseError.check("ThrottledSink", "sink", "a function of an event", sink, Callable)
        self._sink = sink
        self._interval = interval
        self._step = step
        self._clock = clock
        self._lock = Lock()
        # By call, when a report passed last and what it said. A call that is asked about moves to
        # the end, so the first is the one that was silent longest.
        self._passed: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def __call__(self, event: ToolEvent) -> None:
        """Pass the event on, or drop it."""
        content = event.progress
        if content is None or self._passes(event.message_id, content):
            self._sink(event)

    def _passes(self, call_id: str, content: Mapping[str, Any]) -> bool:
        now = self._clock()
        with self._lock:
            # Out, and in again at the end unless the call is over: a dict keeps its order, so the
            # first of it is the call that was silent longest, and is what goes where there are too
            # many.
            before = self._passed.pop(call_id, None)
            if content.get("status") in _FINAL:
                return True
            if before is not None and not self._tells_something(now, content, *before):
                self._passed[call_id] = before
                return False
            self._passed[call_id] = (now, content)
            if len(self._passed) > _MOST_CALLS:
                del self._passed[next(iter(self._passed))]
            return True

    def _tells_something(
        self, now: float, content: Mapping[str, Any], then: float, last: Mapping[str, Any]
    ) -> bool:
        value, last_value = content.get("progress"), last.get("progress")
        if value is None or last_value is None:
            moved = value is not last_value
        else:
            # 0.06 - 0.05 is a little less than 0.01 in binary.
            moved = value >= 1 or abs(value - last_value) >= self._step - _ROUNDING
        return (
            moved
            or now - then >= self._interval - _ROUNDING
            or content.get("message") != last.get("message")
            or content.get("status") != last.get("status")
        )


def figures_in(content: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return how much of a call is done, and of how much, by a report of progress."""
    if (value := content.get("progress")) is not None:
        return value, 1.0
    return content.get("loaded"), content.get("total")


class RichProgressSink:
    """Show one progress bar a call in the terminal, while used in a `with` statement.

    Needs the extra `rich`. It takes what tools report, and the `CallEvent`s of a plan: pass it as
    the sink of contexts and as `on_event=`. If calls are run without a plan, `around` does what
    the events do. A call that reports no figure gets a bar that pulses. Above the bars a line
    counts the calls that it knows of: done, running and waiting, which is for their turn or for a
    decision. Of the bars of calls that have ended, the last 8 stay. If the output is not a
    terminal, only the last state is printed.

    Other activities and observer text are not shown.

    >>> from io import StringIO
    >>> from rich.console import Console
    >>> from lutum_py.context import ActivitySnapshot
    >>> screen = StringIO()
    >>> with RichProgressSink(Console(file=screen)) as sink:
    ...     content = {"tool_name": "index", "status": "running", "progress": 0.5}
    ...     sink(ActivitySnapshot("c1", "tool-call-progress", content))
    >>> "index" in screen.getvalue() and "50%" in screen.getvalue()
    True
    """

    def __init__(
        self,
        console: Console | None = None,
        transient: bool = False,
        calls: Iterable[AnyToolCall] = (),
    ) -> None:
        """Prepare the display.

        Args:
            console: Where to show it; None for rich's own choice.
            transient: Whether the bars vanish at the end.
            calls: The calls that will be run, such as `plan.pending`, to be counted as waiting
                before they are started.

        Raises:
            MissingExtraError: `rich` is not installed.
        """
        try:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        except ImportError as error:
            raise MissingExtraError(
                "RichProgressSink needs the package `rich`: "
                '`python -m pip install "lutum-py[rich]"`.'
            ) from error
        self._progress = Progress(
            # Tools choose the names and messages, so none of it may be read as markup.
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            console=console,
            transient=transient,
        )
        self._lock = Lock()
        self._bars: dict[str, TaskID] = {}
        self._over: deque[TaskID] = deque()
        # {"c1": "running", "c2": "waiting"}, and how many there are of each: the line is written
        # again with every event, and to count thousands of calls each time would hold the tools up.
        self._states = dict.fromkeys((call.id for call in calls), "waiting")
        self._counts = Counter(self._states.values())
        self._summary: TaskID | None = None
        self._count()

    def __call__(self, event: ToolEvent | CallEvent) -> None:
        """Move the bar of the call that the event is about."""
        if isinstance(event, CallEvent):
            self._take(event)
            return
        content = event.progress
        if content is None:
            return
        label = str(content.get("tool_name", event.message_id))
        status, message = content.get("status"), content.get("message")
        if status in _FINAL:
            label += f" [{status}]"
        if message is not None:
            label += f": {message}"
        completed, total = figures_in(content)
        with self._lock:
            bar = self._bar(event.message_id)
            if status == ProgressStatus.DONE:
                completed = total = 1.0 if total is None else total
            self._progress.update(
                bar, description=escape_unprintable(label), completed=completed, total=total
            )
            if status in _FINAL:
                self._end(event.message_id)

    @contextmanager
    def around(self, call: AnyToolCall) -> Generator[Callable[[Outcome], None], None, None]:
        """Show the run of one call, as `around=` of `execute_all` and its siblings.

        Args:
            call: The call that is started.
        """
        # A list, because the function below assigns it; "failed" stays where the run raises.
        ended = ["failed"]

        def take(outcome: Outcome) -> None:
            ended[0] = getattr(outcome, "status", "suspended")  # one without waits

        self._begin(call.id, call.name)
        try:
            yield take
        finally:
            self._finish(call.id, call.name, ended[0])

    def _take(self, event: CallEvent) -> None:
        row = event.row
        if event.kind == "started":
            self._begin(row.id, row.tool)
        elif row.state == "pending":
            with self._lock:
                self._enter(row.id, "waiting")
        else:
            self._finish(row.id, row.tool, row.state if row.result is None else row.result.status)

    def _begin(self, id: str, tool: str) -> None:
        with self._lock:
            self._enter(id, "running")  # first, so that the line is above the bars
            self._progress.update(self._bar(id), description=escape_unprintable(tool))

    def _finish(self, id: str, tool: str, state: str) -> None:
        with self._lock:
            if id in self._bars:
                # A bar that has ended is full: it neither pulses nor stands half way.
                self._progress.update(
                    self._bars[id],
                    description=escape_unprintable(f"{tool} [{state}]"),
                    completed=1.0,
                    total=1.0,
                )
                self._end(id)
            self._enter(id, "waiting" if state == "suspended" else "done")

    def _enter(self, id: str, state: str) -> None:
        if id in self._states:
            self._counts[self._states[id]] -= 1
        self._states[id] = state
        self._counts[state] += 1
        self._count()

    def _bar(self, id: str) -> TaskID:
        if id not in self._bars:
            self._bars[id] = self._progress.add_task("", total=None)
        return self._bars[id]

    def _end(self, id: str) -> None:
        """Leave a bar as it is, and take away one that ended long ago."""
        bar = self._bars.pop(id)
        self._progress.stop_task(bar)
        self._over.append(bar)
        if len(self._over) > _MOST_ENDED:
            self._progress.remove_task(self._over.popleft())

    def _count(self) -> None:
        if not self._states:
            return
        total = len(self._states)
        done, running, waiting = (self._counts[each] for each in ("done", "running", "waiting"))
        said = f"calls: {done} done, {running} running, {waiting} waiting"
        if self._summary is None:
            self._summary = self._progress.add_task(said, total=total)
        self._progress.update(self._summary, description=said, completed=done, total=total)

    def __enter__(self) -> Self:
        """Start to show the bars."""
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop showing; the bars stay as they are, unless the display is transient."""
        self._progress.stop()
