"""PostgreSQL: its connections, its transactions, and how it fails."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from functools import partial
from inspect import iscoroutine
from time import monotonic
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from ..errors import MissingExtraError, MisuseError, StoreError
from ._backend import (
    BUSY_SECONDS,
    Backend,
    Done,
    Pool,
    SqlDialect,
    Statement,
    Step,
    done_by,
    is_interrupted,
)


@runtime_checkable
class ConnectionPool(Protocol):
    """Lend connections, as a `psycopg_pool.ConnectionPool` does."""

    def getconn(self) -> Any:
        """Lend one."""

    def putconn(self, conn: Any, /) -> object:
        """Take it back; a closed one, too."""


StoreLocation: TypeAlias = "str | os.PathLike[str] | ConnectionPool | Callable[[], Any]"
"""A path, an address, a pool, or a function that makes connections."""

MOST: Final = 8
"""How many connections a store has with a server, beside that of the renewals."""

ANSWER_SECONDS: Final = 45
"""How long an answer is waited for: longer than the server lets a statement take."""

DEFAULTS: Final[dict[str, str]] = {
    "connect_timeout": "10",
    "tcp_user_timeout": "15000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""What an address may set differently: when a network that swallows everything is given up."""

_TIME: Final = "CAST(EXTRACT(EPOCH FROM {}_timestamp()) * 1000 AS BIGINT)"

_DIALECT: Final = SqlDialect(
    mark="%s",
    now=_TIME.format("statement"),
    clock=_TIME.format("clock"),
    lock="FOR UPDATE",
    skip="FOR UPDATE OF c SKIP LOCKED",
    notice="NOTIFY lutum_store",
)

# Set here, whatever the server's defaults are. READ COMMITTED: a query sees what was written before
# it, so that a row is read as it is once its conversation is locked.
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

_SETTINGS: Final = f"""
    SELECT set_config(name, value, {{is_local}}) FROM (VALUES
        ('synchronous_commit', 'on', TRUE),
        ('default_transaction_isolation', 'read committed', TRUE),
        ('default_transaction_read_only', 'off', TRUE),
        ('idle_in_transaction_session_timeout', '{BUSY_SECONDS}s', FALSE),
        ('lock_timeout', '{BUSY_SECONDS}s', FALSE),
        ('statement_timeout', CASE current_setting('synchronous_standby_names')
            WHEN '' THEN '{BUSY_SECONDS}s' ELSE '0' END, FALSE)
    ) AS wanted (name, value, always) WHERE always OR current_setting(name) = '0'
"""
"""The first three count whatever the server's defaults are: a claim that is forgotten in a crash
would be run twice. The time-outs count where nobody set one, at the address, role or server. A
statement has none where a standby is waited for: a COMMIT that runs out of time succeeds without
it, with only a warning."""

_WAYS_OUT: Final = {
    "42501": "The role of this connection lacks that right. Let a privileged user run `lutum store "
    "init ADDRESS`, which creates the tables, and grant the role USAGE on their schema and SELECT, "
    "INSERT, UPDATE and DELETE on them.",
    "42P01": "There are no tables of a store in the schemas of this connection. Open the store "
    "once as a role that may create them, or look at its `search_path`.",
    "53100": "Make room on the disk of the server; the same step then succeeds.",
    "53300": "Raise `max_connections` of the server, or let fewer processes open a store.",
    "25006": "This server takes no writes: it is a standby, or was set so. Use the address of the "
    "primary, or list all hosts and add `target_session_attrs=read-write`.",
    "57014": "A lock was held by somebody else for too long, or the server is overloaded. The step "
    "may be repeated.",
}
# What a standby reports to a transaction that is declared to write.
_WAYS_OUT["0A000"] = _WAYS_OUT["25006"]
_WAYS_OUT["55P03"] = _WAYS_OUT["57014"]


def _driver() -> Any:
    """Return psycopg.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError(
            "A store on PostgreSQL needs the package `psycopg`. Install it with "
            "`python -m pip install 'lutum-py[postgres]'`."
        ) from error
    return psycopg


class Postgres(Backend):
    """A database of PostgreSQL.

    Args:
        name: What it is called in messages; empty to take it from the first connection.
        make: Makes a connection, which is ours.
        behind_pooler: Whether one connection may be with another server process each time.
        pool: Lends connections in place of `make`.
    """

    dialect = _DIALECT
    is_postgres = True

    def __init__(
        self,
        name: str,
        make: Callable[[], Any],
        behind_pooler: bool,
        pool: ConnectionPool | None = None,
    ) -> None:
        self._driver = _driver()
        self.error = self._driver.Error
        self.name = name or "the given connections"
        self._is_named = bool(name)
        self._make = make
        self._has_pipeline = bool(self._driver.Pipeline.is_supported())
        # What is not ours alone is set for one transaction: the next one of this connection may be
        # with another server process, and the next one of this server process another client's.
        self._is_local = behind_pooler or pool is not None
        self._needed: dict[str, Any] = {"autocommit": True, "row_factory": self._tuple_row()}
        if behind_pooler:
            self._needed["prepare_threshold"] = None
        if pool is not None:
            self.steps = self.renewals = _Borrowed(pool, self)
        else:
            self.steps = Pool(self._connect, is_lost, MOST)
            self.renewals = Pool(self._connect, is_lost, 1)

    @staticmethod
    def _tuple_row() -> Any:
        from psycopg.rows import tuple_row

        return tuple_row

    def _connect(self) -> Any:
        connection = self._make()
        self.check_type(connection)
        try:
            self.adopt(connection)
            if not self._is_local:
                connection.execute(_SETTINGS.format(is_local="FALSE"))
        except BaseException:
            connection.close()
            raise
        return connection

    def check_type(self, connection: Any) -> None:
        """Make sure that it is a connection of psycopg.

        Raises:
            MisuseError: It is not.
        """
        if not isinstance(connection, self._driver.Connection):
            if iscoroutine(connection):
                connection.close()
            raise MisuseError(
                "A store works with connections of the type `psycopg.Connection`, and was given "
                f"one of type {type(connection).__name__}. Pass a `psycopg_pool.ConnectionPool`, "
                "or a function such as `lambda: psycopg.connect(address)`, also in async code: "
                "the store itself sees to it that the event loop is not held up."
            )

    def adopt(self, connection: Any) -> dict[str, Any]:
        """Make a connection as a store needs it, and return what it was like before.

        Raises:
            MisuseError: It does not send text as UTF-8.
            StoreError: The database does not keep it as UTF-8.
        """
        if (encoding := connection.info.encoding) != "utf-8":
            raise MisuseError(
                f"A store keeps text as UTF-8, and was given a connection whose encoding is "
                f'{encoding}. Make connections with `client_encoding="utf-8"`.'
            )
        if not self._is_named:
            self.name = f"postgresql://{connection.info.host}/{connection.info.dbname}"
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(
                f"The database at {self.name} keeps text as {encoding}, and a store needs UTF8. "
                "Make one with `CREATE DATABASE desk ENCODING 'UTF8' TEMPLATE template0`."
            )
        before = {name: getattr(connection, name) for name in self._needed}
        for name, value in self._needed.items():
            setattr(connection, name, value)
        # All that waits for an answer goes through this method.
        connection.wait = partial(_wait, connection, connection.wait)
        return before

    def begin(self, connection: Any, *, writes: bool) -> None:
        """Begin a transaction."""
        connection.execute("; ".join(self._begin(writes=writes)))

    def _begin(self, *, writes: bool) -> tuple[str, ...]:
        begin = _WRITE if writes else _READ
        return (begin, _SETTINGS.format(is_local="TRUE")) if self._is_local else (begin,)

    def many(self, connection: Any, statements: Iterable[Statement]) -> list[Done]:
        """Run statements in one round trip, if the driver can."""
        if not self._has_pipeline:
            return [done_by(self.run(connection, *statement)) for statement in statements]
        with connection.pipeline():
            cursors = [self.run(connection, *statement) for statement in statements]
        return [done_by(cursor) for cursor in cursors]

    def batch(self, step: Step, statements: Iterable[Statement]) -> list[Done]:
        """Run statements in a transaction of their own, in one round trip if the driver can."""
        if not self._has_pipeline:
            return super().batch(step, statements)
        statements = tuple(statements)
        step.begun = step.ends = True
        if len(statements) == 1 and not self._is_local:
            return [done_by(self.run(step.connection, *statements[0]))]
        with step.connection.pipeline():
            for statement in self._begin(writes=True):
                step.connection.execute(statement)
            cursors = [self.run(step.connection, *statement) for statement in statements]
            step.connection.execute("COMMIT")
        return [done_by(cursor) for cursor in cursors]

    def undo(self, connection: Any) -> bool:
        """Undo what was begun; a connection that still waits for an answer is given up."""
        status = connection.info.transaction_status.name
        if status in ("INTRANS", "INERROR"):
            with suppress(self.error):
                connection.execute("ROLLBACK")
                return True
        return bool(status == "IDLE")

    def explain(self, error: Any) -> tuple[str, str, Exception]:
        """Return what the database reports, what to do, and the error without any value.

        What the server adds to its message may have the key of a row or all of it, and of a value
        that it could not read the message itself has the text.
        """
        if not (code := error.sqlstate):
            return str(error), "", type(error)(str(error))
        text = "" if code.startswith("22") else error.diag.message_primary or ""
        return text, _WAYS_OUT.get(code, ""), type(error)(text)

    def listener(self) -> Any | None:
        """Make a connection that gets notices; a pooler passes none on."""
        if self._is_local:
            return None
        connection = self._connect()
        connection.execute("LISTEN lutum_store")
        return connection


class _Borrowed:
    """Take connections from the user's pool, and give each back as it was.

    Args:
        pool: The pool.
        postgres: What they are used by.
    """

    def __init__(self, pool: ConnectionPool, postgres: Postgres) -> None:
        self._pool = pool
        self._postgres = postgres
        self._before: dict[int, dict[str, Any]] = {}

    def take(self) -> Any:
        """Borrow one that is not lost; all that the pool has may be lost after a restart."""
        for _ in range(1 + getattr(self._pool, "max_size", 1)):
            connection = self._pool.getconn()
            try:
                self._postgres.check_type(connection)
                if not is_lost(connection):
                    self._before[id(connection)] = self._postgres.adopt(connection)
                    return connection
                connection.close()  # so that the pool makes another one
            except BaseException:
                self._pool.putconn(connection)
                raise
            self._pool.putconn(connection)
        raise self._postgres.error("the pool has lent lost connections alone")

    def put(self, connection: Any, /) -> None:
        """Give it back."""
        del connection.wait
        before = self._before.pop(id(connection))
        if not connection.closed:
            for name, value in before.items():
                setattr(connection, name, value)
        self._pool.putconn(connection)

    def close(self) -> None:
        """Leave the pool to its owner."""


def is_lost(connection: Any) -> bool:
    """Return whether the server hung up on a connection that was not in use."""
    if connection.closed:
        return True
    # Nobody has asked anything, so whatever can be read is the end, or what the server wrote
    # before. A connection that is wrongly given up costs no more than a new one.
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


def _wait(connection: Any, wait: Any, work: Any, *rest: Any, **options: Any) -> Any:
    return wait(_limited(connection, work), *rest, **options)


def _limited(connection: Any, work: Any) -> Generator[Any, Any, Any]:
    """Go on with what psycopg waits for, but not without end, and not after an interrupt.

    psycopg looks in ten times a second. Whatever the answer would have been, the connection is of
    no use without it, and closing it keeps psycopg from asking the server to stop, which waits too.
    """
    end = monotonic() + ANSWER_SECONDS
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            if not ready and (is_interrupted() or monotonic() >= end):
                connection.close()
                raise _driver().OperationalError(
                    "the caller was cancelled while it waited for an answer"
                    if is_interrupted()
                    else f"no answer came for {ANSWER_SECONDS} seconds"
                )
            wanted = work.send(ready)
    except StopIteration as ended:
        return ended.value


def postgres_at(where: str, behind_pooler: bool) -> Postgres:
    """Find the database of an address.

    Raises:
        MissingExtraError: The package `psycopg` is not installed.
        MisuseError: The address is not well-formed.
    """
    psycopg = _driver()
    from psycopg.conninfo import conninfo_to_dict

    try:
        read = conninfo_to_dict(where)
    except psycopg.Error:
        raise _unfit_address() from None
    # An `@` or `/` in a password makes the rest a host, port or database, which is shown.
    server, _, rest = where.partition("://")[2].partition("/")
    ports = str(read.get("port") or "").replace(",", "")
    if server.count("@") > 1 or "@" in rest.partition("?")[0] or not f"0{ports}".isdecimal():
        raise _unfit_address()
    defaults = {name: value for name, value in DEFAULTS.items() if name not in read}

    def make() -> Any:
        # Whatever the address says: the server then refuses what is not text in this encoding.
        return psycopg.connect(where, autocommit=True, client_encoding="utf-8", **defaults)

    name = f"postgresql://{read.get('host') or ''}/{read.get('dbname') or ''}"
    return Postgres(name, make, behind_pooler)


def postgres_of(given: ConnectionPool | Callable[[], Any], behind_pooler: bool) -> Postgres:
    """Use the connections of somebody else, made by a function or lent by a pool.

    Raises:
        MissingExtraError: The package `psycopg` is not installed.
    """
    if isinstance(given, ConnectionPool):
        return Postgres("", given.getconn, behind_pooler, given)
    return Postgres("", given, behind_pooler)


def _unfit_address() -> MisuseError:
    return MisuseError(
        "The address of the store is not well-formed; it is not shown, because it may hold a "
        "password. Write `postgresql://user:password@host:port/database`, with `%40` for an `@` in "
        "a user or password, `%2F` for a `/` and `%25` for a `%`."
    )
