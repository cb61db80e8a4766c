"""SQLite: its connections, its transactions, and how it fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from random import uniform
from time import monotonic, sleep
from typing import Any, TypeVar

from ._backend import (
    BUSY_SECONDS,
    Backend,
    Done,
    Pool,
    SqlDialect,
    Statement,
    Turns,
    done_by,
    is_interrupted,
)

R = TypeVar("R")

READERS = 4
"""How many connections a process has with a file. One of them writes at a time."""

# 2440587.5 is the Julian day of 1970-01-01. `unixepoch('subsec')` would be plainer, but SQLite
# knows it from 3.42 on only, and Python brings older ones.
_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

_WAYS_OUT = {
    sqlite3.SQLITE_CANTOPEN: "The folder has to be there, and this process must be able to "
    "write in it.",
    sqlite3.SQLITE_READONLY: "Let this process write to the file and in its folder.",
    sqlite3.SQLITE_PERM: "Let this process read and write the file.",
    sqlite3.SQLITE_FULL: "Make room on the disk; the same step then succeeds.",
    sqlite3.SQLITE_BUSY: f"Another process has been writing for {BUSY_SECONDS} seconds. End it, or "
    "repeat the step.",
}


class Sqlite(Backend):
    """A file of SQLite.

    Args:
        path: The file, or `:memory:`.
    """

    dialect = SqlDialect(mark="?", now=_NOW, clock=_NOW, lock="", skip="", notice="SELECT 1")
    error = sqlite3.Error
    is_postgres = False

    def __init__(self, path: str) -> None:
        self.name = repr(path)
        self._path = path
        self._met = float("-inf")
        self._writing = Turns(1, f"The right to write to {self.name}")
        # What is in memory is that of one connection, and gone with it.
        in_memory = path == ":memory:"
        self.steps = Pool(self._connect, _is_lost, 1 if in_memory else READERS)
        self.renewals = self.steps if in_memory else Pool(self._connect, _is_lost, 1)

    def _connect(self) -> sqlite3.Connection:
        # The wait that is built in sleeps ever longer, so that a process that writes often keeps
        # out one that writes rarely: a renewal waited for seconds.
        connection = sqlite3.connect(
            self._path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            # WAL is kept by the file.
            _when_free(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def writing(self) -> AbstractContextManager[None]:
        """Wait until no other thread of this process writes."""
        return self._writing()

    def begin(self, connection: Any, *, writes: bool) -> None:
        """Begin a transaction; one that writes has its lock when this returns."""
        if not writes:
            connection.execute("BEGIN")
            return
        # Other processes find the lock free only between two transactions. A process that met
        # another one a moment ago leaves a gap, and as much is done in all.
        began = monotonic()
        if began < self._met + 1:
            sleep(uniform(0, 0.002))
        # At once, since a transaction that reads first may find that another one wrote.
        _when_free(lambda: connection.execute("BEGIN IMMEDIATE"))
        if monotonic() > began + 0.0002:
            self._met = monotonic()

    def run(self, connection: Any, sql: str, values: tuple[object, ...]) -> Any:
        """Run one statement; the first of a transaction that reads may find the file locked."""
        return _when_free(lambda: super(Sqlite, self).run(connection, sql, values))

    def many(self, connection: Any, statements: Iterable[Statement]) -> list[Done]:
        """Run statements one after the other."""
        return [done_by(self.run(connection, sql, values)) for sql, values in statements]

    def undo(self, connection: Any) -> bool:
        """Undo what was begun."""
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return True
        return False

    def explain(self, error: Any) -> tuple[str, str, Exception]:
        """Return what the database reports, which shows no value, and what to do."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return str(error), _WAYS_OUT.get(code, ""), error


def _is_lost(connection: Any) -> bool:
    # SQLite itself loses none; one that could not begin a transaction was closed.
    try:
        return bool(connection.total_changes < 0)
    except sqlite3.ProgrammingError:
        return True


def _when_free(take: Callable[[], R]) -> R:
    """Do what needs a lock as soon as nobody else has it.

    Raises:
        sqlite3.Error: Somebody had it for `BUSY_SECONDS`, or this thread was interrupted.
    """
    end = monotonic() + BUSY_SECONDS
    while True:
        try:
            return take()
        except sqlite3.OperationalError as error:
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or monotonic() >= end or is_interrupted():
                raise
        sleep(uniform(0.0002, 0.002))
