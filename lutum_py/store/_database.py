"""One database, SQLite or PostgreSQL: its connection, its transactions, and how it fails.

The SQL of a store is written once. What the two say differently is a `SqlDialect`, and is in a
statement as `{now}` and `{lock}`; a parameter is a `?`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from inspect import iscoroutine
from threading import Lock
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from .._text.json import shorten
from ..errors import MissingExtraError, MisuseError, StoreError

Row: TypeAlias = tuple[Any, ...]


@runtime_checkable
class ConnectionPool(Protocol):
    """Lend connections, as a `psycopg_pool.ConnectionPool` does."""

    def getconn(self) -> Any:
        """Lend one."""

    def putconn(self, conn: Any, /) -> object:
        """Take it back; a closed one, too."""


StoreLocation: TypeAlias = "str | os.PathLike[str] | ConnectionPool | Callable[[], Any]"
"""A path, an address, a pool, or a function that makes connections."""

BUSY_SECONDS = 30
"""How long SQLite waits for another process that writes, and PostgreSQL for one that stopped in the
middle of a transaction."""


class SqlDialect(NamedTuple):
    """How the SQL of one database differs from that of the other.

    Attributes:
        mark: Stands for a parameter.
        now: The clock of the database, in milliseconds.
        lock: Ends a query whose row nobody else may change before this transaction ends.
        first: What a connection is told before all else.
        write: Begins a transaction that writes.
        read: Begins one that reads everything as it was at one moment.
        error: What its driver raises.
    """

    mark: str
    now: str
    lock: str
    first: tuple[str, ...]
    write: str
    read: str
    error: type[Exception]

    def translate(self, sql: str) -> str:
        """Return a statement as this database takes it."""
        return sql.format(now=self.now, lock=self.lock).replace("?", self.mark)


class Rows:
    """Run statements in one transaction.

    Attributes:
        key: What rows are sealed with; None for a digest.
    """

    __slots__ = ("_connection", "_dialect", "key")

    def __init__(self, connection: Any, dialect: SqlDialect, key: bytes | None) -> None:
        self._connection = connection
        self._dialect = dialect
        self.key: bytes | None = key

    def all(self, sql: str, *values: object) -> list[Row]:
        """Return the rows that a query finds."""
        found: list[Row] = self._connection.execute(self._dialect.translate(sql), values).fetchall()
        return found

    def one(self, sql: str, *values: object) -> Row | None:
        """Return the first row that a query finds."""
        return next(iter(self.all(sql, *values)), None)

    def run(self, sql: str, *values: object) -> int:
        """Change rows, and give how many."""
        return int(self._connection.execute(self._dialect.translate(sql), values).rowcount)

    def now(self) -> int:
        """Read the clock of the database, in milliseconds."""
        return int(self.all("SELECT {now}")[0][0])


class Database:
    """Keep one connection, made again if it was lost, and give it to one thread at a time.

    Args:
        name: What it is called in messages.
        dialect: Which of the two it is.
        key: What rows are sealed with.
        connect: Makes a connection in which each statement is alone until a transaction begins.
        put_back: Takes a connection, which is then that of one transaction; None keeps it.
        unsure: How many that were made may have been lost before they are first used.
    """

    def __init__(
        self,
        name: str,
        dialect: SqlDialect,
        key: bytes | None,
        connect: Callable[[], Any],
        put_back: Callable[[Any], object] | None = None,
        unsure: int = 0,
    ) -> None:
        self.name = name
        self._dialect = dialect
        self._key = key
        self._connect = connect
        self._put_back = put_back
        self._unsure = unsure
        self._lock = Lock()
        self._process = os.getpid()
        self._connection: Any = None
        self._is_closed = False

    def read(self) -> AbstractContextManager[Rows]:
        """Begin a transaction that sees everything as it is at one moment, and changes nothing."""
        return self._transaction(self._dialect.read)

    def write(self) -> AbstractContextManager[Rows]:
        """Begin a transaction; it takes effect as a whole at the end of the `with`, or not at all.

        Raises:
            StoreError: The database failed.
        """
        return self._transaction(self._dialect.write)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Rows]:
        self._check()
        with self._lock, self._lent():
            ends = False
            try:
                connection = self._started(begin)
                yield Rows(connection, self._dialect, self._key)
                # From here on a failure may come after the database has done its part: a COMMIT
                # whose answer was lost may have taken effect.
                ends = True
                connection.execute("COMMIT")
            except self._dialect.error as error:
                self._undo()
                raise self._failed(error, ends) from error
            except BaseException:
                self._undo()
                raise

    def _check(self) -> None:
        if self._is_closed:
            raise MisuseError(f"The store at {self.name} is closed. Open it again.")
        if os.getpid() != self._process:
            raise MisuseError(
                f"The store at {self.name} was opened before this process was forked, and a "
                "connection belongs to one process. Call `open_store` in this one."
            )

    @contextmanager
    def _lent(self) -> Generator[None]:
        """Put the connection back afterwards, if it is lent."""
        try:
            yield
        finally:
            if self._put_back is not None and self._connection is not None:
                connection, self._connection = self._connection, None
                self._put_back(connection)

    def _started(self, begin: str) -> Any:
        """Begin a transaction; a connection that was lost meanwhile is made again, once.

        Of a pool, another one is taken, up to as many as it may hold.
        """
        lost = 0
        while True:
            is_old = self._connection is not None
            if not is_old:
                self._connection = self._connect()
            try:
                for statement in (begin,) if is_old else (*self._dialect.first, begin):
                    self._connection.execute(statement)
            except BaseException as error:
                # A connection of PostgreSQL finds out only when it is used that the server hung up.
                # Nothing of the transaction was done yet, so beginning it on another one repeats
                # nothing. A connection of SQLite is never lost, and has no such attribute.
                is_lost = isinstance(error, self._dialect.error) and getattr(
                    self._connection, "closed", False
                )
                if is_old and not is_lost:
                    raise
                self._drop()
                if not is_old and not (is_lost and lost < self._unsure):
                    raise
                lost += 1
            else:
                return self._connection

    def _undo(self) -> None:
        """Undo what was started; a connection that cannot even do that is given up."""
        connection = self._connection
        try:
            if connection is not None and getattr(connection, "in_transaction", True):
                connection.execute("ROLLBACK")
        except self._dialect.error:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        with suppress(self._dialect.error):
            connection.close()
        if self._put_back is not None:  # so that the pool makes another one
            self._put_back(connection)

    def _failed(self, error: Exception, at_the_end: bool) -> StoreError:
        said = " ".join(str(error).split())
        rest = (
            "It was to end a transaction, so it is not known whether that took effect: load the "
            "conversation to see."
            # The connection is gone too, so that nobody can ask it how the COMMIT went.
            if at_the_end and self._connection is None
            else "Nothing was changed."
        )
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
            rest += " The folder has to be there, and this process must be able to write in it."
        return StoreError(
            f"The database at {self.name} failed ({type(error).__name__}: {said}). {rest}"
        )

    def close(self) -> None:
        """Close the connection; in a forked process it is left to the one that opened it."""
        self._is_closed = True
        if os.getpid() == self._process:
            with self._lock:
                if self._connection is not None:
                    self._drop()


SQLITE = SqlDialect(
    mark="?",
    # 2440587.5 is the Julian day of 1970-01-01. `unixepoch('subsec')` would be plainer, but SQLite
    # knows it from 3.42 on only, and Python brings older ones.
    now="CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    lock="",
    first=("PRAGMA synchronous = FULL",),
    # At once, since a transaction that reads first may find that another one wrote in between.
    write="BEGIN IMMEDIATE",
    read="BEGIN",
    error=sqlite3.Error,
)


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
    if isinstance(where, ConnectionPool):
        unsure = getattr(where, "max_size", 1)
        return _lending(where.getconn, where.putconn, unsure, key, behind_pooler)
    if callable(where):
        return _lending(where, None, 0, key, behind_pooler)
    scheme, mark, _ = where.partition("://") if isinstance(where, str) else ("", "", "")
    if mark:
        if scheme not in ("postgresql", "postgres"):
            raise MisuseError(  # without what comes after the scheme, which may be a password
                f"A store is at a path or at an address `postgresql://…`, not at one that begins "
                f"with {shorten(scheme)}."
            )
        return _postgres(str(where), key, behind_pooler)
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
    return Database(repr(path), SQLITE, key, lambda: _sqlite(path))


def _sqlite(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _write_ahead(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL, which it stays in; unlike for all else, SQLite does not wait by itself."""
    end = monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() >= end:
                raise
            sleep(0.01)
        else:
            return


def _driver() -> tuple[Any, SqlDialect]:
    """Return psycopg, and how PostgreSQL is spoken to with it.

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
    # All that is set is set for one transaction: the next one of this connection may be with
    # another server process, and the next one of this server process that of another client.
    # Whoever is stopped in the middle of a transaction does not hold up the others.
    local = f"SET LOCAL idle_in_transaction_session_timeout = '{BUSY_SECONDS}s'"
    return psycopg, SqlDialect(
        mark="%s",
        now="CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        lock="FOR UPDATE",
        first=(),
        # Set here, whatever the server's defaults are. READ COMMITTED: a query sees what was
        # written before it, so that a row is read as it is once its conversation is locked.
        # synchronous_commit: a claim that is forgotten in a crash would be run twice.
        write=(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
            f"SET LOCAL synchronous_commit = on; {local}"
        ),
        read=f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {local}",
        error=psycopg.Error,
    )


def _postgres(where: str, key: bytes | None, behind_pooler: bool) -> Database:
    psycopg, dialect = _driver()
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

    def connect() -> Any:
        # Whatever the address says: the server then refuses what is not text in this encoding.
        connection = psycopg.connect(where, autocommit=True, client_encoding="utf-8")
        if behind_pooler:
            connection.prepare_threshold = None
        return connection

    name = f"postgresql://{read.get('host') or ''}/{read.get('dbname') or ''}"
    return Database(name, dialect, key, connect)


def _lending(
    take: Callable[[], Any],
    put_back: Callable[[Any], object] | None,
    unsure: int,
    key: bytes | None,
    behind_pooler: bool,
) -> Database:
    """Use the connections of somebody else, each as it was made, but for what a store needs.

    Args:
        take: Makes or lends a connection.
        put_back: Takes it back; None if it is ours from then on.
        unsure: How many of them may have been lost before they are taken.
        key: What rows are sealed with.
        behind_pooler: See `database_at`.
    """
    psycopg, dialect = _driver()
    from psycopg.rows import tuple_row

    needed: dict[str, Any] = {"autocommit": True, "row_factory": tuple_row}
    if behind_pooler:
        needed["prepare_threshold"] = None
    before: dict[str, Any] = {}

    def connect() -> Any:
        connection = take()
        if not isinstance(connection, psycopg.Connection):
            if iscoroutine(connection):
                connection.close()
            raise MisuseError(
                "A store works with connections of the type `psycopg.Connection`, and was given "
                f"one of type {type(connection).__name__}. Pass a `psycopg_pool.ConnectionPool`, "
                "or a function such as `lambda: psycopg.connect(address)`, also in async code: "
                "the store itself sees to it that the event loop is not held up."
            )
        try:
            if (encoding := connection.info.encoding) != "utf-8":
                raise MisuseError(
                    f"A store keeps text as UTF-8, and was given a connection whose encoding is "
                    f'{encoding}. Make connections with `client_encoding="utf-8"`.'
                )
            database.name = f"postgresql://{connection.info.host}/{connection.info.dbname}"
            before.update({name: getattr(connection, name) for name in needed})
            for name, value in needed.items():
                setattr(connection, name, value)
        except BaseException:
            (psycopg.Connection.close if put_back is None else put_back)(connection)
            raise
        return connection

    def restore(connection: Any) -> None:
        assert put_back is not None
        if not connection.closed:
            for name, value in before.items():
                setattr(connection, name, value)
        put_back(connection)

    name = "the given connections"
    restored = None if put_back is None else restore
    database = Database(name, dialect, key, connect, restored, unsure)
    return database


def _unfit_address() -> MisuseError:
    return MisuseError(
        "The address of the store is not well-formed; it is not shown, because it may hold a "
        "password. Write `postgresql://user:password@host:port/database`, with `%40` for an `@` in "
        "a user or password, `%2F` for a `/` and `%25` for a `%`."
    )
