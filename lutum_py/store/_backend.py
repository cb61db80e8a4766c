"""`Backend`: what a database has to do for a store; and how what waits for it is broken off."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cached_property, lru_cache
from threading import Event, Lock
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from ..errors import StoreError

R = TypeVar("R")

_stop: ContextVar[Event | None] = ContextVar("lutum_store_stop", default=None)

GRACE_SECONDS = 0.5
"""How long a step may go on after its task was cancelled: nearly all end by themselves in it."""

LEAVE_SECONDS = 0.2
"""How long a step that was broken off is waited for."""

LOOK_SECONDS = 0.1
"""How often a step that waits looks whether it should be broken off."""


@contextmanager
def interruptible(stop: Event) -> Generator[None]:
    """Let an event break off the steps of this thread, from when it is set.

    A step that waits for an answer, a lock or a free connection then ends within 0.1 seconds with
    a `StoreError`, a later one at its start. The `StoreError` is a `LostCommit` if nobody knows
    whether the step took effect.

    Args:
        stop: Set it from any thread.
    """
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


def is_interrupted() -> bool:
    """Return whether the steps of this thread should be broken off."""
    stop = _stop.get()
    return stop is not None and stop.is_set()


def wait_until(is_done: Callable[[float], bool], seconds: float) -> bool:
    """Wait for something, but no longer than that, and not after an interrupt.

    Args:
        is_done: Waits for it for as many seconds as it is given; returns whether it is there.
        seconds: How long to wait in all.

    Returns:
        Whether it is there.
    """
    end = monotonic() + seconds
    while not is_interrupted():
        left = end - monotonic()
        if is_done(max(0.0, min(LOOK_SECONDS, left))):
            return True
        if left <= 0:
            break
    return False


def pause(seconds: float) -> None:
    """Sleep, but not after an interrupt."""

    def is_over(part: float) -> bool:
        sleep(part)
        return False

    wait_until(is_over, seconds)


async def in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Do what waits for a database in a thread.

    If the task is cancelled, the step may end by itself for `GRACE_SECONDS`; then it is broken off.
    So the cancellation comes out within a second, even if the network swallows every byte. A
    transaction that was not at its end takes no effect; one that was may have taken effect.

    Args:
        function: Works with the database, and with nothing else that waits.
        arguments: What it is called with.

    Returns:
        What it returns.
    """
    stop = Event()

    def work() -> R:
        with interruptible(stop):
            return function(*arguments)

    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        # Looked at in any case, or asyncio would report it: the cancellation comes out.
        doing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            await asyncio.wait((doing,), timeout=GRACE_SECONDS)
        finally:  # also if the task is cancelled once more
            stop.set()
        # One that still connects is left behind: what it does next is broken off at its start.
        await asyncio.wait((doing,), timeout=LEAVE_SECONDS)
        raise


Row: TypeAlias = tuple[Any, ...]

Statement: TypeAlias = tuple[str, tuple[object, ...]]
"""SQL with `?` for a parameter, and `{now}`, `{clock}`, `{lock}` and `{skip}`; and its values."""

Done: TypeAlias = tuple[int, list[Row]]
"""How many rows a statement found or changed, and those that it returned."""

BUSY_SECONDS: Final = 30
"""How long a step waits for a lock or a free connection, and PostgreSQL for a client that stopped
in the middle of a transaction."""


class SqlDialect(NamedTuple):
    """How the SQL of one database differs from that of the other.

    Attributes:
        mark: Stands for a parameter.
        now: The time at which this statement came to the database, in milliseconds. It is the same
            for all rows, so an index can be used.
        clock: The time right now.
        lock: Ends a query whose rows nobody else may change before this transaction ends.
        skip: Ends one of rows named `c` that also leaves out those that somebody else has locked.
        notice: Wakes those who wait for a notice, when the transaction ends.
    """

    mark: str
    now: str
    clock: str
    lock: str
    skip: str
    notice: str

    def translate(self, sql: str) -> str:
        """Return a statement as this database takes it."""
        return _translated(self, sql)


@lru_cache(maxsize=256)
def _translated(dialect: SqlDialect, sql: str) -> str:
    words = dialect._asdict()
    del words["mark"], words["notice"]
    sql = sql.format(**words)
    return sql if dialect.mark == "?" else sql.replace("%", "%%").replace("?", dialect.mark)


class Source(Protocol):
    """Lend connections, each to one transaction."""

    def take(self) -> Any:
        """Lend one."""

    def put(self, connection: Any, /) -> None:
        """Take it back; a closed one, too."""

    def close(self) -> None:
        """Close those that are ours."""


class Step:
    """One transaction on one connection.

    Attributes:
        connection: The connection; None if there is none yet.
        begun: Whether a transaction was begun.
        ends: Whether a failure may come after the database has done its part: a COMMIT whose
            answer was lost may have taken effect.
    """

    def __init__(self) -> None:
        self.connection: Any = None
        self.begun = False
        self.ends = False


class Backend(ABC):
    """One of the two databases.

    Attributes:
        name: What it is called in messages.
        dialect: Its SQL.
        error: What its driver raises.
        steps: Lends the connections of the steps.
        renewals: Lends that of the renewals, which no slow step has.
        is_postgres: Which of the two it is.
    """

    name: str
    dialect: SqlDialect
    error: type[Exception]
    steps: Source
    renewals: Source
    is_postgres: bool

    def writing(self) -> AbstractContextManager[None]:
        """Wait until this thread may write."""
        return nullcontext()

    @abstractmethod
    def begin(self, connection: Any, *, writes: bool) -> None:
        """Begin a transaction."""

    @abstractmethod
    def many(self, connection: Any, statements: Iterable[Statement]) -> list[Done]:
        """Run statements one after the other, in one round trip if that is possible."""

    def batch(self, step: Step, statements: Iterable[Statement]) -> list[Done]:
        """Run statements in a transaction of their own."""
        self.begin(step.connection, writes=True)
        step.begun = True
        done = self.many(step.connection, statements)
        step.ends = True
        step.connection.execute("COMMIT")
        return done

    @abstractmethod
    def undo(self, connection: Any) -> bool:
        """Undo what was begun; return whether the connection can still be used."""

    @abstractmethod
    def explain(self, error: Any) -> tuple[str, str, Exception]:
        """Return what the database reports, what to do, and an error that shows no value."""

    def listener(self) -> Any | None:
        """Make a connection that gets notices, where that is possible."""
        return None

    def run(self, connection: Any, sql: str, values: tuple[object, ...]) -> Any:
        """Run one statement; return its cursor."""
        return connection.execute(self._translated(sql), values)

    def _translated(self, sql: str) -> str:
        if (known := self._known.get(sql)) is None:
            known = self.dialect.translate(sql)
            if len(self._known) < 1000:  # those of a program are few, unless it writes values in
                self._known[sql] = known
        return known

    @cached_property
    def _known(self) -> dict[str, str]:
        return {}


def done_by(cursor: Any) -> Done:
    """Return what a statement did."""
    if cursor.description is None:
        return int(cursor.rowcount), []
    rows: list[Row] = cursor.fetchall()
    return len(rows), rows


class Turns:
    """Let at most so many threads in, in the order in which they came.

    A `threading.Lock` gives no order: a thread that takes it again at once keeps others out.

    Args:
        most: How many.
        of: What is waited for, for the error.
    """

    def __init__(self, most: int, of: str) -> None:
        self._free = most
        self._of = of
        self._waiting: deque[Event] = deque()
        self._lock = Lock()

    def take(self) -> None:
        """Wait for a turn.

        Raises:
            StoreError: None came in `BUSY_SECONDS`, or this thread was interrupted.
        """
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = Event()
            self._waiting.append(turn)
        try:
            if wait_until(turn.wait, BUSY_SECONDS):
                return
        except BaseException:
            self._leave(turn)
            raise
        self._leave(turn)
        raise StoreError(
            f"{self._of} did not become free in {BUSY_SECONDS} seconds, or the caller was "
            "cancelled. Nothing was changed."
        )

    def _leave(self, turn: Event) -> None:
        with self._lock:
            if not turn.is_set():
                self._waiting.remove(turn)
                return
        self.give()  # it came after all

    def give(self) -> None:
        """Let the next one in."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    @contextmanager
    def __call__(self) -> Generator[None]:
        """Have a turn for a block."""
        self.take()
        try:
            yield
        finally:
            self.give()


class Pool:
    """Keep connections that are ours: made when they are needed, and anew if they were lost.

    Args:
        make: Makes one.
        is_lost: Returns whether one that was not in use can no longer be used.
        most: How many there may be.
    """

    def __init__(self, make: Callable[[], Any], is_lost: Callable[[Any], bool], most: int) -> None:
        self._make = make
        self._is_lost = is_lost
        self._turns = Turns(most, "A connection of the store")
        self._idle: list[Any] = []
        self._is_closed = False

    def take(self) -> Any:
        """Lend the one that was used last, as the others are more likely to be lost."""
        self._turns.take()
        try:
            while self._idle:
                with suppress(IndexError):  # another thread took the last one
                    connection = self._idle.pop()
                    if not self._is_lost(connection):
                        return connection
                    connection.close()
            return self._make()
        except BaseException:
            self._turns.give()
            raise

    def put(self, connection: Any, /) -> None:
        """Take it back; `take` forgets a closed one, as it knows how each driver shows that."""
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)
        self._turns.give()

    def close(self) -> None:
        """Close those that nobody has now; the others are closed when they are given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
