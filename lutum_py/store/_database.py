"""One database, SQLite or PostgreSQL: its transactions, and how it fails.

The SQL of a store is written once. What the two databases write differently is a `SqlDialect`; a
statement has `{now}`, `{clock}`, `{lock}` and `{skip}` in its place, and `?` for a parameter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from random import uniform
from threading import Condition, Lock
from typing import Any, TypeVar

from .._text.json import shorten
from ..errors import MisuseError, StoreError
from ._backend import (
    BUSY_SECONDS,
    Backend,
    Done,
    Row,
    Source,
    SqlDialect,
    Statement,
    Step,
    is_interrupted,
    pause,
    wait_until,
)
from ._postgres import ConnectionPool, StoreLocation, postgres_at, postgres_of
from ._sqlite import Sqlite

__all__ = [
    "BUSY_SECONDS",
    "ConnectionPool",
    "Database",
    "LostCommit",
    "Row",
    "Rows",
    "SqlDialect",
    "Statement",
    "StoreLocation",
    "database_at",
]

R = TypeVar("R")

TRIES = 12
"""How often a step is tried that others keep in a deadlock: twice in a row is rare."""

_REPEATABLE = ("40P01", "40001")  # a deadlock, and a conflict of two transactions


class LostCommit(StoreError):
    """The answer to a COMMIT was lost: look whether the step took effect, or repeat it."""


class Rows:
    """Run statements in one transaction.

    Attributes:
        key: What rows are sealed with; None for a digest.
    """

    __slots__ = ("_backend", "_connection", "key")

    def __init__(self, connection: Any, backend: Backend, key: bytes | None) -> None:
        self._connection = connection
        self._backend = backend
        self.key: bytes | None = key

    def all(self, sql: str, *values: object) -> list[Row]:
        """Return the rows that a query finds."""
        found: list[Row] = self._backend.run(self._connection, sql, values).fetchall()
        return found

    def one(self, sql: str, *values: object) -> Row | None:
        """Return the first row that a query finds."""
        return next(iter(self.all(sql, *values)), None)

    def run(self, sql: str, *values: object) -> int:
        """Change rows, and give how many."""
        return int(self._backend.run(self._connection, sql, values).rowcount)

    def many(self, statements: Iterable[Statement]) -> list[Done]:
        """Run statements one after the other, on PostgreSQL in one round trip.

        Returns:
            For each, how many rows it found or changed, and those that it returned.
        """
        return self._backend.many(self._connection, statements)

    def now(self) -> int:
        """Read the clock of the database, in milliseconds."""
        return int(self.all("SELECT {clock}")[0][0])


class Database:
    """Run transactions, each on a connection of its own; for any number of threads.

    What waits here is broken off by `interruptible` and `in_thread` of `_backend`.

    Args:
        backend: The database.
        key: What rows are sealed with.

    Attributes:
        notice: A statement that wakes those who wait for a notice, once its transaction ends:
            all on PostgreSQL, those of this process on SQLite.
    """

    def __init__(self, backend: Backend, key: bytes | None) -> None:
        self.key = key
        self.is_postgres: bool = backend.is_postgres
        self.notice: Statement = (backend.dialect.notice, ())
        self._backend = backend
        self._process = os.getpid()
        self._is_closed = False
        self._listening = Lock()
        self._listener: Any = None
        self._noticed = Condition()
        self._notices = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._backend.name

    def read(self) -> AbstractContextManager[Rows]:
        """Begin a transaction that sees everything as it is at one moment, and changes nothing."""
        return self._transaction(writes=False)

    def write(self) -> AbstractContextManager[Rows]:
        """Begin a transaction; it takes effect as a whole at the end of the `with`, or not at all.

        Raises:
            StoreError: The database failed.
        """
        return self._transaction(writes=True)

    def transact(self, do: Callable[[Rows], R]) -> R:
        """Do something in a transaction, and all of it again after a deadlock.

        Args:
            do: Works on the rows alone, as it may run more than once.

        Raises:
            StoreError: The database failed.
            LostCommit: It is not known whether the transaction took effect.
        """

        def once() -> R:
            with self.write() as rows:
                return do(rows)

        done = self._repeated(once)
        self._wake()
        return done

    def batch(self, *statements: Statement) -> list[Done]:
        """Run statements in one transaction, on PostgreSQL in one round trip in all.

        Returns:
            For each, how many rows it found or changed, and those that it returned.

        Raises:
            StoreError: The database failed.
            LostCommit: It is not known whether the transaction took effect.
        """
        done = self._repeated(lambda: self._at_once(self._backend.steps, statements))
        if self.notice in statements:
            self._wake()
        return done

    def beat(self, *statements: Statement) -> list[Done]:
        """Run them on a connection that no step has, so that a slow one does not delay a renewal.

        The user's own pool is asked for one each time: it should have one more than are in use.
        """
        return self._repeated(lambda: self._at_once(self._backend.renewals, statements))

    def _at_once(self, source: Source, statements: tuple[Statement, ...]) -> list[Done]:
        with self._backend.writing(), self._step(source) as step:
            return self._backend.batch(step, statements)

    def _repeated(self, once: Callable[[], R]) -> R:
        for tried in range(1, TRIES):
            try:
                return once()
            except StoreError as error:
                if getattr(error.__cause__, "sqlstate", None) not in _REPEATABLE:
                    raise
            pause(uniform(0, min(0.002 * 2**tried, 0.5)))
        return once()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Generator[Rows]:
        turn = self._backend.writing() if writes else nullcontext()
        with turn, self._step(self._backend.steps) as step:
            self._backend.begin(step.connection, writes=writes)
            step.begun = True
            yield Rows(step.connection, self._backend, self.key)
            step.ends = writes
            step.connection.execute("COMMIT")

    @contextmanager
    def _step(self, source: Source) -> Generator[Step]:
        """Lend a connection to one transaction, and undo what is left of one that failed."""
        self._check()
        step = Step()
        try:
            step.connection = source.take()
            if is_interrupted():
                step.begun = True  # the connection is as good as before
                raise StoreError("The caller was cancelled. Nothing was changed.")
            yield step
        except self._backend.error as error:
            is_kept = self._undo(step)
            failed, shown = self._failed(error, is_lost=step.ends and not is_kept)
            raise failed from shown
        except BaseException:
            self._undo(step)
            raise
        finally:
            if step.connection is not None:
                source.put(step.connection)

    def _check(self) -> None:
        if self._is_closed:
            raise MisuseError(f"The store at {self.name} is closed. Open it again.")
        if os.getpid() != self._process:
            raise MisuseError(
                f"The store at {self.name} was opened before this process was forked, and a "
                "connection belongs to one process. Call `open_store` in this one."
            )

    def _undo(self, step: Step) -> bool:
        """Undo what was begun; give up a connection that cannot do that, or could not begin."""
        if step.connection is None:
            return True
        if self._backend.undo(step.connection) and step.begun:
            return True
        with suppress(self._backend.error):
            step.connection.close()
        return False

    def _failed(self, error: Exception, *, is_lost: bool) -> tuple[StoreError, Exception]:
        text, way_out, shown = self._backend.explain(error)
        said = f"The database at {self.name} failed ({type(error).__name__}"
        said += f": {' '.join(text.split())})." if text else ")."
        if is_lost:
            # The connection is gone too, so nobody can ask it how the COMMIT went.
            return LostCommit(
                f"{said} The answer to the COMMIT was lost, so it is not known whether that took "
                f"effect. The step may be repeated: load the conversation to see. {way_out}".strip()
            ), shown
        return StoreError(f"{said} Nothing was changed. {way_out}".strip()), shown

    def _wake(self) -> None:
        """Wake those of this process who wait: SQLite has no notices."""
        with self._noticed:
            self._notices += 1
            self._noticed.notify_all()

    def wait_for_notice(self, timeout: float) -> None:
        """Return at a notice, and otherwise when the time is over.

        A notice may be missed, so nothing may rely on one. Of the threads that wait, one listens
        on a connection of its own. There is none behind a pooler or with the user's own pool.
        """
        self._check()
        seen = self._notices
        if self._listening.acquire(blocking=False):
            try:
                if self._listen(timeout):
                    self._wake()
                    return
            finally:
                self._listening.release()
        with self._noticed:
            # A wait that has just timed out does not notice a notice that comes right then.
            wait_until(lambda part: self._noticed.wait(part) or self._notices > seen, timeout)

    def _listen(self, timeout: float) -> bool:
        """Listen for as long as that; return whether it could be done."""
        try:
            if self._listener is None:
                self._listener = self._backend.listener()
            if self._listener is None:
                return False
            for _ in self._listener.notifies(timeout=timeout, stop_after=1):
                pass
        except (self._backend.error, StoreError, MisuseError):
            self._drop_listener()
            return False
        return True

    def _drop_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def close(self) -> None:
        """Close the connections; in a forked process they are left to the one that opened them."""
        self._is_closed = True
        if os.getpid() != self._process:
            return
        self._backend.steps.close()
        self._backend.renewals.close()
        self._wake()
        if self._listening.acquire(blocking=False):
            self._drop_listener()


def database_at(where: StoreLocation, key: bytes | None, behind_pooler: bool) -> Database:
    """Find the database of a path, address or pool; it is connected with when it is first needed.

    Args:
        where: Where it is, or what makes or lends connections with it.
        key: What rows are sealed with.
        behind_pooler: Whether one connection may be with another server process each time.

    Raises:
        MissingExtraError: It is PostgreSQL, and the package `psycopg` is not installed.
        MisuseError: It is none of these, an address that is not well-formed, or SQLite behind a
            pooler.
    """
    if isinstance(where, ConnectionPool) or callable(where):
        return Database(postgres_of(where, behind_pooler), key)
    scheme, mark, _ = where.partition("://") if isinstance(where, str) else ("", "", "")
    if mark:
        if scheme not in ("postgresql", "postgres"):
            raise MisuseError(  # without what comes after the scheme, which may be a password
                f"A store is at a path or at an address `postgresql://…`, not at one that begins "
                f"with {shorten(scheme)}."
            )
        return Database(postgres_at(str(where), behind_pooler), key)
    try:
        path = os.fspath(where)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise MisuseError(
            f"A store is at a path, at an address `postgresql://…` or at the end of a pool's "
            f"connections, not at a value of type {type(where).__name__}. Write "
            '`open_store("desk.db")`.'
        )
    try:
        is_name = bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair that stands for no byte
        is_name = False
    if not is_name:
        raise MisuseError(
            f"The path of a store is {shorten(path)}, which no file can have. Write "
            '`open_store("desk.db")`.'
        )
    if behind_pooler:
        raise MisuseError(
            f"The store at {shorten(path)} is a SQLite database, and there is no pooler before "
            "one. Leave out `behind_pooler`."
        )
    return Database(Sqlite(path), key)
