"""What stands beside a store: the connections that it makes, its clock, and others who write there.

Ancestor `watched`, each connection that is made tells of its statements, and reads the clock of the
tests, if there is one. So a test can come in between two statements, let one fail, or move on time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

__all__ = [
    "PIPELINE",
    "SEALED",
    "Clock",
    "Others",
    "Row",
    "between",
    "driver_error",
    "last",
    "made",
    "others",
    "sealed",
    "watched",
]

Row: TypeAlias = dict[str, Any]

Hook: TypeAlias = Callable[[Any, str, bool], object]
"""Is told of a statement: on which connection, which one, and whether it is done already."""

PIPELINE = "PIPELINE"
"""Stands for the beginning and the end of what is sent in one round trip: a statement in it may be
done at any time until that end.
"""

made: list[Any] = []
"""The connections that were made in this test, the newest last."""

_hooks: list[Hook] = []
_connect = sqlite3.connect


class _Time:
    milliseconds: int | None = None


def _julian_day(_: object) -> float:
    """The clock of SQLite: the days since the beginning of the Julian calendar."""
    seconds = time.time() if _Time.milliseconds is None else (_Time.milliseconds + 0.5) / 1000
    return seconds / 86400 + 2440587.5


class Watched(sqlite3.Connection):
    """A connection with SQLite."""

    place: str
    closed = False

    def execute(self, sql: str, *values: Any) -> Any:
        _tell(self, sql, is_done=False)
        done = super().execute(sql, *values)
        _tell(self, sql, is_done=True)
        return done

    def close(self) -> None:
        self.closed = True
        super().close()


def _tell(connection: Any, sql: str, *, is_done: bool) -> None:
    for hook in tuple(_hooks):
        hook(connection, sql, is_done)


def _with_sqlite(where: Any, **options: Any) -> Any:
    connection: Any = _connect(where, factory=Watched, **options)
    connection.create_function("julianday", 1, _julian_day)
    connection.place = where
    made.append(connection)
    return connection


def _with_postgres() -> Any:
    import psycopg

    class WatchedPostgres(psycopg.Connection[Any]):
        place: str

        def execute(self, query: Any, *values: Any, **options: Any) -> Any:
            _tell(self, query, is_done=False)
            done = super().execute(query, *values, **options)
            _tell(self, query, is_done=True)
            return done

        @contextmanager
        def pipeline(self) -> Iterator[Any]:
            _tell(self, PIPELINE, is_done=False)
            with super().pipeline() as pipeline:
                yield pipeline
            _tell(self, PIPELINE, is_done=True)

    def connect(where: str, **options: Any) -> Any:
        connection = WatchedPostgres.connect(where, **options)
        connection.place = where
        made.append(connection)
        return connection

    return connect


@contextmanager
def watched() -> Iterator[None]:
    """Watch the connections that are made meanwhile."""
    try:
        import psycopg
    except ImportError:
        is_there = False
    else:
        is_there = True
    with patch("sqlite3.connect", _with_sqlite):
        try:
            if is_there:
                with patch.object(psycopg, "connect", _with_postgres()):
                    yield
            else:
                yield
        finally:
            made.clear()
            _hooks.clear()
            _Time.milliseconds = None


@contextmanager
def between(hook: Hook) -> Iterator[None]:
    """Tell of each statement, before and after it."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)


def last() -> Any:
    """The connection that was made last: that of the store which was opened last."""
    return made[-1]


def driver_error(text: str) -> Exception:
    """What the driver of that connection raises."""
    if isinstance(last(), sqlite3.Connection):
        return sqlite3.OperationalError(text)
    import psycopg

    return psycopg.OperationalError(text)


class Others:
    """Somebody else who writes to a database."""

    def __init__(self, connection: Any, mark: str) -> None:
        self._connection = connection
        self._mark = mark

    def run(self, sql: str, *values: Any) -> None:
        self._connection.execute(sql.replace("?", self._mark), values)

    def all(self, sql: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(sql.replace("?", self._mark), values).fetchall())

    def named(self, table: str) -> list[Row]:
        """The rows of a table, by the names of its columns."""
        cursor = self._connection.execute(f"SELECT * FROM {table}")
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@contextmanager
def others(where: Any = None) -> Iterator[Others]:
    """Another connection with a database: by default, of the store that was opened last."""
    place = last().place if where is None else where
    if str(place).startswith("postgresql://"):
        import psycopg

        with psycopg.Connection.connect(place, autocommit=True) as connection:
            yield Others(connection, "%s")
        return
    own = _connect(place, isolation_level=None, timeout=30)
    try:
        yield Others(own, "?")
    finally:
        own.close()


SEALED: dict[str, tuple[str, ...]] = {
    "lutum_conversation": (
        *("id", "version", "counted", "round", "note_digest", "session_digest", "record_digest"),
        "changed",
    ),
    "lutum_entry": ("conversation", "round", "call", "n", "id", "body"),
    "lutum_call": (
        *("conversation", "call", "root", "place", "round", "n", "last", "body", "shown"),
    ),
}
"""Which cells of a row its seal covers."""


def sealed(row: Row, key: bytes, last: str | None = None) -> Row:
    """A row with its seal, as whoever has the key writes it.

    Args:
        row: A row of a call or a conversation, or an entry.
        key: The key.
        last: For an entry, the seal of the one before it, or nothing.
    """
    table = "call" if "shown" in row else "conversation" if last is None else "entry"
    cells = {name: row[name] for name in SEALED[f"lutum_{table}"]}
    if last is not None:
        cells["seal"] = last
    text = json.dumps(cells, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    made_of = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return {**row, "seal": f"hmac-sha256:{made_of.hexdigest()}"}


class Clock:
    """Let the clock of the last store's database stand still, and move when it is told to.

    It is that of every SQLite database of the test, and of one PostgreSQL schema.
    """

    def __init__(self) -> None:
        self._is_sqlite = isinstance(last(), sqlite3.Connection)
        if self._is_sqlite:
            _Time.milliseconds = 1_000_000
            return
        with others() as rows:
            rows.run("CREATE TABLE clock (milliseconds BIGINT)")
            rows.run("INSERT INTO clock VALUES (1000000)")
            for name in ("clock_timestamp", "statement_timestamp"):
                rows.run(  # in the schema of the test, which comes before that of the server
                    f"CREATE FUNCTION {name}() RETURNS timestamptz LANGUAGE sql STABLE AS "
                    "'SELECT to_timestamp(milliseconds / 1000.0) FROM clock'"
                )

    def move(self, seconds: float) -> None:
        milliseconds = round(seconds * 1000)
        if self._is_sqlite:
            _Time.milliseconds = (_Time.milliseconds or 0) + milliseconds
            return
        with others() as rows:
            rows.run("UPDATE clock SET milliseconds = milliseconds + ?", milliseconds)
