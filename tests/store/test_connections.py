"""The laws of the connections of a store: who waits for whom, how long, and what is repeated."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lutum_py.errors import MisuseError, StoreError
from lutum_py.store import open_store
from tests.cases import over
from tests.private import (
    Database,
    LostCommit,
    Rows,
    database_at,
    in_thread,
    interruptible,
    interruptible_pause,
    store_backend,
    store_database,
    store_postgres,
    store_sqlite,
)
from tests.store.beside import Watched, between, driver_error, last, made, others
from tests.store.desk import KEY
from tests.store.servers import Postgres, Proxy, server

CONNECT = sqlite3.connect
"""Makes connections as a program has them: one that is watched shows whether it is closed."""
SECRET = "the prompt of a customer"
INSERT = "INSERT INTO one VALUES (?, ?)"
UPDATE = "UPDATE one SET text = text WHERE id = ?"


@pytest.fixture
def database(where: str) -> Iterator[Database]:
    """A database with a table that has two rows."""
    with closing(database_at(where, KEY, behind_pooler=False)) as opened:
        prepare(opened)
        yield opened


def prepare(opened: Database) -> None:
    opened.batch(
        ("CREATE TABLE one (id BIGINT PRIMARY KEY, text TEXT NOT NULL)", ()),
        (INSERT, (1, "a")),
        (INSERT, (2, "b")),
    )


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    """Something before the server that loses its answers."""
    running = Proxy(postgres.port)
    yield running
    running.close()


@contextmanager
def through(proxy: Proxy, postgres: Postgres) -> Iterator[Database]:
    address = postgres.fresh().replace(str(postgres.port), str(proxy.port))
    with closing(database_at(address, KEY, behind_pooler=False)) as opened:
        prepare(opened)
        yield opened


@contextmanager
def threads(*work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Run functions beside the block, wait for their ends, and raise what they raised."""
    faults: list[BaseException] = []

    def do(function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised below
            faults.append(error)

    running = [threading.Thread(target=do, args=(function,), daemon=True) for function in work]
    for each in running:
        each.start()
    yield faults
    for each in running:
        each.join(30)
        assert not each.is_alive()
    for fault in faults:
        raise fault


def busy(connection: Any) -> bool:
    return bool(connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0])


# Statements.


def test_a_batch_is_done_as_a_whole_or_not_at_all(database: Database) -> None:
    """It returns for each statement how many rows it found or changed, and which."""
    select = "SELECT id FROM one ORDER BY id"
    assert database.batch((INSERT, (3, "c")), (select, ()), ("DELETE FROM one", ())) == [
        (1, []),
        (3, [(1,), (2,), (3,)]),
        (3, []),
    ]
    for do in (database.batch, database.beat):
        with pytest.raises(StoreError, match="Nothing was changed") as raised:
            do((INSERT, (1, "a")), (INSERT, (1, "a")))
        assert not isinstance(raised.value, LostCommit)
        assert do((select, ())) == [(0, [])]
        assert do((f"{INSERT} RETURNING id", (1, "a"))) == [(1, [(1,)])]
        assert do() == []
        assert do(("DELETE FROM one", ())) == [(1, [])]


def test_a_transaction_runs_many_statements(database: Database) -> None:
    """They give what they give in a batch, and take effect with their transaction."""
    with database.write() as rows:
        assert rows.many([(INSERT, (3, "c")), ("SELECT count(*) FROM one", ())]) == [
            (1, []),
            (1, [(3,)]),
        ]
        assert rows.many([]) == []
    with pytest.raises(StoreError), database.write() as rows:
        rows.many([("DELETE FROM one", ()), (INSERT, (4, "d")), (INSERT, (4, "d"))])
    with database.read() as rows:
        assert rows.all("SELECT id FROM one ORDER BY id") == [(1,), (2,), (3,)]


def test_a_driver_without_pipelines_does_the_same(postgres: Postgres) -> None:
    """Where libpq is too old for one round trip, each statement is one."""
    import psycopg

    with patch.object(psycopg.Pipeline, "is_supported", return_value=False):
        database = database_at(postgres.fresh(), KEY, behind_pooler=False)
    with closing(database), patch.object(psycopg.Connection, "pipeline", None):
        prepare(database)
        test_a_batch_is_done_as_a_whole_or_not_at_all(database)
        database.batch((INSERT, (1, "a")), (INSERT, (2, "b")))
        test_a_transaction_runs_many_statements(database)


def test_a_batch_is_one_round_trip(postgres: Postgres) -> None:
    """With a server whose answers take 0.1 seconds, a batch of five statements takes about that."""
    proxy = Proxy(postgres.port)
    with closing(proxy), through(proxy, postgres) as database:
        proxy.delay = 0.1
        for do in (database.batch, database.beat):
            do((UPDATE, (1,)))
            began = time.monotonic()
            do(*[(UPDATE, (1,))] * 5)
            assert time.monotonic() - began < 0.19


def test_the_clocks_of_a_database(database: Database) -> None:
    """`{now}` is the same for all rows of a statement, and `{clock}` goes on."""
    with database.read() as rows:
        now, clock = rows.all("SELECT {now}, {clock}")[0]
        assert abs(now - time.time() * 1000) < 60_000
        assert 0 <= clock - now < 60_000
        assert rows.now() >= clock
        assert rows.key == KEY


def test_whoever_skips_waits_for_nobody(database: Database) -> None:
    """`{skip}` leaves out the rows that others have locked, where rows are locked."""
    with database.write() as rows:
        assert rows.all("SELECT id FROM one WHERE id = 1 {lock}") == [(1,)]
        with database.read() if not database.is_postgres else database.write() as beside:
            found = beside.all("SELECT id FROM one AS c WHERE text LIKE '%' ORDER BY id {skip}")
    assert found == ([(2,)] if database.is_postgres else [(1,), (2,)])


def test_sql_that_is_never_the_same_is_not_kept(database: Database) -> None:
    """A program that writes values into its SQL does not fill the memory."""
    with database.read() as rows:
        for number in range(1200):
            assert rows.one(f"SELECT {number}") == (number,)
    assert len(database._backend._known) == 1000


# What is repeated.


def test_a_deadlock_is_repeated(postgres: Postgres) -> None:
    """Of two transactions that wait for each other, one is repeated, and both take effect."""
    with closing(database_at(postgres.fresh(), KEY, behind_pooler=False)) as database:
        prepare(database)
        gate, tries = threading.Barrier(2), [0, 0]

        def crosswise(first: int, second: int) -> None:
            def do(rows: Rows) -> None:
                tries[first - 1] += 1
                rows.run("UPDATE one SET text = text || ? WHERE id = ?", first, first)
                if tries[first - 1] == 1:
                    gate.wait(20)
                rows.run("UPDATE one SET text = text || ? WHERE id = ?", first, second)

            database.transact(do)

        with threads(lambda: crosswise(1, 2), lambda: crosswise(2, 1)):
            pass
        assert sorted(tries) == [1, 2]
        with database.read() as rows:
            assert {"".join(sorted(text)) for (text,) in rows.all("SELECT text FROM one")} == {
                "12a",
                "12b",
            }


def test_a_batch_in_a_deadlock_is_repeated(postgres: Postgres) -> None:
    """Nothing of the first try takes effect, and all of the second."""
    import psycopg

    address = postgres.fresh()
    with closing(database_at(address, KEY, behind_pooler=False)) as database:
        prepare(database)
        with psycopg.connect(address) as other, psycopg.connect(address) as watch:
            other.execute("SET deadlock_timeout = '20s'")  # so that the batch is the victim
            other.execute("UPDATE one SET text = 'x' WHERE id = 2")
            append = "UPDATE one SET text = text || 'y' WHERE id = ?"
            with threads(lambda: database.batch((append, (1,)), (append, (2,)))):
                while not busy(watch):
                    time.sleep(0.01)
                other.execute("UPDATE one SET text = text || 'x' WHERE id = 1")
                other.commit()
        with database.read() as rows:
            assert rows.all("SELECT text FROM one ORDER BY id") == [("axy",), ("xy",)]


def test_what_never_succeeds_is_not_repeated_for_ever(postgres: Postgres) -> None:
    """A bound keeps a step from being repeated without end, and another error from at all."""
    with closing(database_at(postgres.fresh(), KEY, behind_pooler=False)) as database:
        fails = "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{}'; END $$"
        for code, due in (
            ("40P01", store_database.TRIES),
            ("40001", store_database.TRIES),
            ("P0001", 1),
        ):
            tried: list[Rows] = []

            def do(rows: Rows, code: str = code, tried: list[Rows] = tried) -> None:
                tried.append(rows)
                rows._connection.execute(fails.format(code))

            with patch.object(store_database, "pause", int), pytest.raises(StoreError, match="no"):
                database.transact(do)
            assert len(tried) == due


# What counts whatever the server's defaults are.

SET = (
    "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only'), "
    "current_setting('synchronous_commit'), current_setting('statement_timeout'), "
    "current_setting('idle_in_transaction_session_timeout')"
)


def test_a_commit_that_waits_for_a_standby_has_no_limit() -> None:
    """PostgreSQL lets it succeed without the standby once `statement_timeout` is over."""
    import psycopg

    running = server()
    try:
        address = f"{running.root}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'other'")
            connection.execute("SELECT pg_reload_conf()")
            show = "SHOW synchronous_standby_names"
            while connection.execute(show).fetchone() != ("other",):
                time.sleep(0.01)
        limits = "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')"
        with (
            closing(database_at(address, KEY, behind_pooler=False)) as database,
            database.read() as rows,
        ):
            assert rows.one(limits) == ("0", "30s")
    finally:
        running.remove()


@over("way", ["address", "behind a pooler", "function", "pool"])
def test_the_defaults_of_a_server_do_not_matter(postgres: Postgres, way: str) -> None:
    """Each transaction has its isolation level and is durable, and has the time-outs of the
    address or role, or else ours.
    """
    import psycopg
    from psycopg_pool import ConnectionPool

    name = postgres.fresh_database()
    address = f"{postgres.root}/{name}"
    with psycopg.connect(address, autocommit=True) as connection:
        for setting in (
            "default_transaction_isolation = 'serializable'",
            "default_transaction_read_only = on",
            "synchronous_commit = off",
            "idle_in_transaction_session_timeout = '7s'",
        ):
            connection.execute(f"ALTER DATABASE {name} SET {setting}")
    with ExitStack() as stack:
        place: Any = address
        if way == "function":
            place = lambda: psycopg.connect(address)  # noqa: E731
        elif way == "pool":
            place = stack.enter_context(ConnectionPool(address, min_size=1, open=True))
        database = database_at(place, KEY, behind_pooler=way == "behind a pooler")
        stack.callback(database.close)
        write = ("read committed", "off", "on", "30s", "7s")
        with database.write() as rows:
            assert rows.one(SET) == write
        with database.read() as rows:
            assert rows.one(SET) == ("repeatable read", "on", "on", "30s", "7s")
        for do in (database.batch, database.beat):
            assert do((SET, ())) == [(1, [write])]
            assert do((SET, ()), (SET, ())) == [(1, [write])] * 2


def test_an_address_has_its_own_time_outs(postgres: Postgres) -> None:
    """What an address sets stays; what it does not set has a default."""
    address = f"{postgres.root}/postgres?connect_timeout=3&options=-cstatement_timeout%3D2s"
    with closing(database_at(address, KEY, behind_pooler=False)) as database:
        assert database.batch((SET, ()))[0][1][0][3:] == ("2s", "30s")
        set_to = last().info.get_parameters()
        assert (set_to["connect_timeout"], set_to["tcp_user_timeout"]) == ("3", "15000")


# Who waits for whom.


def test_a_pool_has_an_end(database: Database) -> None:
    """However many threads there are, a store makes a few connections, and all threads have one in
    turn.
    """
    before, most = len(made), store_postgres.MOST if database.is_postgres else store_sqlite.READERS
    inside, highest = [0], [0]

    def look() -> None:
        with database.read() as rows:
            inside[0] += 1
            highest[0] = max(inside[0], highest[0])
            rows.all("SELECT * FROM one")
            time.sleep(0.05)
            inside[0] -= 1

    with threads(*[look] * 20):
        pass
    assert highest[0] == most
    assert len(made) - before < most


def test_a_renewal_waits_for_no_slow_transaction(database: Database) -> None:
    """Even if each connection of the steps is in use, a renewal is done at once."""
    most = store_postgres.MOST if database.is_postgres else store_sqlite.READERS
    inside, done = threading.Semaphore(0), threading.Event()

    def slow() -> None:
        with database.read() as rows:
            rows.all("SELECT * FROM one")
            inside.release()
            assert done.wait(20)

    with threads(*[slow] * (most + 2)):
        for _ in range(most):
            assert inside.acquire(timeout=20)
        began = time.monotonic()
        assert database.beat((UPDATE, (1,))) == [(1, [])]
        took = time.monotonic() - began
        done.set()
    assert took < 1


def test_whoever_comes_first_is_served_first(database: Database) -> None:
    """Threads write in the order in which they came, so none of them is kept out."""
    order: list[int] = []
    with ExitStack() as stack:
        turns = store_backend.Turns(1, "It")
        stack.enter_context(turns())

        def come(number: int) -> None:
            with turns():
                order.append(number)

        running = [threading.Thread(target=come, args=(number,)) for number in range(6)]
        for number, each in enumerate(running, 1):
            each.start()
            while len(turns._waiting) < number:
                time.sleep(0.001)
    for each in running:
        each.join(20)
    assert order == [0, 1, 2, 3, 4, 5]


def test_a_turn_that_does_not_come_is_an_error() -> None:
    """Whoever has waited too long, or was interrupted, leaves the line to those behind."""
    turns = store_backend.Turns(1, "A seat")
    turns.take()
    with (
        patch.object(store_backend, "BUSY_SECONDS", 0.2),
        pytest.raises(StoreError, match=r"A seat did not become free .* Nothing was changed"),
    ):
        turns.take()
    with (
        patch.object(store_backend, "wait_until", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        turns.take()
    assert not turns._waiting

    def comes_late(*_: object) -> bool:
        turns.give()
        return False

    with patch.object(store_backend, "wait_until", comes_late), pytest.raises(StoreError):
        turns.take()
    turns.take()  # it was given on
    turns.give()


WRITE_HARD = """
import sys, time
from lutum_py.store._database import database_at
database = database_at(sys.argv[1], None, False)
print("ready", flush=True)
end = time.monotonic() + 4
while time.monotonic() < end:
    with database.write() as rows:
        rows.run("UPDATE one SET text = 'other' WHERE id = 1")
        time.sleep(0.01)
"""
"""A process that writes as often as it can."""


def test_sqlite_lets_everybody_write(tmp_path: Path) -> None:
    """Beside three processes that write without end, a renewal does not wait for long."""
    path = tmp_path / "one.db"
    with closing(database_at(path, KEY, behind_pooler=False)) as database, ExitStack() as stack:
        prepare(database)
        longest, tried = 0.0, 0
        command = [sys.executable, "-c", WRITE_HARD, str(path)]
        hard = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            for _ in range(3)
        ]
        for each in hard:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        while all(each.poll() is None for each in hard):
            began = time.monotonic()
            database.beat((UPDATE, (2,)))
            longest, tried = max(longest, time.monotonic() - began), tried + 1
            time.sleep(0.05)
        assert [each.wait(20) for each in hard] == [0, 0, 0]
    assert tried > 8
    assert longest < 1.5


def test_sqlite_waits_for_a_file_that_is_locked(tmp_path: Path) -> None:
    """Whoever has the whole file for a moment holds up a reader, and does not break it."""
    path = tmp_path / "one.db"
    with closing(database_at(path, KEY, behind_pooler=False)) as database:
        prepare(database)
        tried: list[str] = []

        def fails(connection: Any, sql: str, is_done: bool) -> None:
            if sql.startswith("SELECT") and not is_done and len(tried) < 3:
                tried.append(sql)
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
                raise error

        with between(fails), database.read() as rows:
            assert rows.one("SELECT count(*) FROM one") == (2,)
        assert len(tried) == 3


def test_sqlite_goes_on_after_a_step_that_could_not_begin(tmp_path: Path) -> None:
    """Whoever kept others out too long costs them that step, and none of the later ones."""
    path = tmp_path / "one.db"
    with (
        patch("sqlite3.connect", CONNECT),
        closing(database_at(path, KEY, behind_pooler=False)) as database,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        prepare(database)
        steps: tuple[Callable[[], object], ...] = (
            lambda: database.batch((UPDATE, (1,))),
            lambda: database.beat((UPDATE, (1,))),
            lambda: database.transact(lambda rows: rows.run(UPDATE, 1)),
        )
        for step in steps:
            other.execute("BEGIN IMMEDIATE")
            with (
                patch.object(store_sqlite, "BUSY_SECONDS", 0.05),
                pytest.raises(StoreError, match=r"locked.*Nothing was changed.*repeat the step"),
            ):
                step()
            other.execute("ROLLBACK")
            for again in steps:
                again()


def test_what_is_in_memory_has_one_connection() -> None:
    """Each thread sees the same, a renewal too, one after the other."""
    with closing(database_at(":memory:", KEY, behind_pooler=False)) as database:
        prepare(database)
        with threads(*[lambda: database.beat((UPDATE, (1,)))] * 6):
            for _ in range(6):
                with database.read() as rows:
                    assert rows.one("SELECT count(*) FROM one") == (2,)
    assert len(made) == 1


def test_a_closed_store_keeps_no_connection(database: Database) -> None:
    """A step that still runs has its end, and its connection is closed then."""
    with database.write() as rows:
        rows.run(UPDATE, 1)
        database.close()
    assert last().closed
    for step in (database.read, database.write):
        with pytest.raises(MisuseError, match="is closed"), step():
            pass
    for do in (database.batch, database.beat):
        with pytest.raises(MisuseError, match="is closed"):
            do()
    with pytest.raises(MisuseError, match="is closed"):
        database.wait_for_notice(0)


def test_connections_that_were_lost_while_idle_are_made_anew(postgres: Postgres) -> None:
    """After a restart of the server no step fails, however many connections there were."""
    import psycopg

    with closing(database_at(postgres.fresh(), KEY, behind_pooler=False)) as database:
        prepare(database)
        database.beat((UPDATE, (1,)))
        with database.read(), database.read(), database.read():
            pass
        with psycopg.connect(f"{postgres.root}/postgres", autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
                "pg_backend_pid() AND backend_type = 'client backend'"
            )
        assert database.batch((UPDATE, (1,)), (UPDATE, (2,))) == [(1, [])] * 2
        assert database.beat((UPDATE, (1,))) == [(1, [])]
        with database.read(), database.read(), database.read():
            pass


def test_a_connection_of_sqlite_that_was_given_up_is_not_lent_again(tmp_path: Path) -> None:
    """One that could not begin is closed, which a connection of SQLite tells nobody."""

    def fails(_connection: Any, sql: str, is_done: bool) -> None:
        if sql == "BEGIN IMMEDIATE" and not is_done:
            raise driver_error("database or disk is full")

    with (
        closing(database_at(tmp_path / "db", KEY, behind_pooler=False)) as database,
        patch.object(Watched, "close", sqlite3.Connection.close),
    ):
        prepare(database)
        with between(fails), pytest.raises(StoreError, match="is full"):
            database.batch((UPDATE, (1,)))
        assert database.batch((UPDATE, (1,))) == [(1, [])]


# Answers that are lost.


def test_a_lost_answer_to_a_commit_is_told(postgres: Postgres, proxy: Proxy) -> None:
    """Nobody knows then whether the step took effect: the error is of its own kind, and says that
    the step may be repeated.
    """
    with through(proxy, postgres) as database:

        def written() -> None:
            with database.write() as rows:
                rows.run(INSERT, 3, "c")

        steps: tuple[Callable[[], object], ...] = (
            written,
            lambda: database.transact(lambda rows: rows.run(INSERT, 4, "d")),
            lambda: database.batch((INSERT, (5, "e")), (UPDATE, (5,))),
            lambda: database.beat((INSERT, (6, "f")), (UPDATE, (6,))),
        )
        for at, step in enumerate(steps, 3):
            proxy.loses = b"COMMIT\0"
            with pytest.raises(LostCommit, match=r"not known whether .* step may be repeated"):
                step()
            assert proxy.loses is None
            with database.read() as rows:
                assert rows.one("SELECT count(*) FROM one WHERE id = ?", at) == (1,)
        proxy.loses = b"SELECT text"
        with pytest.raises(StoreError, match="Nothing was changed") as raised, database.read() as r:
            r.all("SELECT text FROM one")
        assert not isinstance(raised.value, LostCommit)


def test_an_answer_that_does_not_come_is_an_error(postgres: Postgres, proxy: Proxy) -> None:
    """A network that swallows everything holds a step up for a while, and not for ever; with it
    the store works again.
    """
    with through(proxy, postgres) as database:
        database.beat((UPDATE, (1,)))
        proxy.swallows = True
        with patch.object(store_postgres, "ANSWER_SECONDS", 0.3):
            with pytest.raises(StoreError, match=r"no answer came .*Nothing was changed") as raised:
                database.transact(lambda rows: rows.run(UPDATE, 1))
            assert not isinstance(raised.value, LostCommit)
            with pytest.raises(LostCommit, match="no answer came"):
                database.beat((UPDATE, (1,)), (UPDATE, (2,)))
        proxy.swallows = False
        assert database.beat((UPDATE, (1,))) == database.batch((UPDATE, (1,))) == [(1, [])]


def cancelled_after(seconds: float, step: Callable[[], object], times: int = 1) -> float:
    """Cancel an await of a step; return how long it took from then on."""

    async def main() -> float:
        task = asyncio.ensure_future(in_thread(step))
        await asyncio.sleep(seconds)
        began = time.monotonic()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - began

    return asyncio.run(main())


def test_a_cancelled_await_returns_within_a_second(postgres: Postgres, proxy: Proxy) -> None:
    """Whatever the thread waits for: an answer, a new connection, a free one, or a lock."""
    with through(proxy, postgres) as database:
        database.beat((UPDATE, (1,)))
        proxy.swallows = True
        ends: list[BaseException] = []

        def noted(step: Callable[[], object]) -> Callable[[], object]:
            def do() -> None:
                try:
                    step()
                except BaseException as error:
                    ends.append(error)
                    raise

            return do

        def answer() -> object:
            return database.batch((UPDATE, (1,)), (UPDATE, (2,)))

        for times in (1, 2):
            assert cancelled_after(0.2, noted(answer), times) < 1
            proxy.swallows = False
            answer()
            proxy.swallows = True
        assert [type(end) for end in ends] == [LostCommit] * 2
        assert all("caller was cancelled" in str(end) for end in ends)
        proxy.swallows = False
        with ExitStack() as stack:
            for _ in range(store_postgres.MOST):
                stack.enter_context(database.read())
            assert cancelled_after(0.2, noted(answer)) < 1
        assert "did not become free" in str(ends[-1])
        assert "caller was cancelled" in str(ends[-1])
        with database.write() as rows:
            rows.run(UPDATE, 1)
            assert cancelled_after(0.2, noted(answer)) < 1
        assert "caller was cancelled" in str(ends[-1])
        answer()


def test_a_cancelled_await_leaves_a_connection_that_is_made(
    postgres: Postgres, proxy: Proxy
) -> None:
    """It cannot be broken off, and nothing is done on it if it is there at last."""
    address = postgres.fresh()
    with closing(database_at(address, KEY, behind_pooler=False)) as beside:
        prepare(beside)
    address = address.replace(str(postgres.port), str(proxy.port))
    proxy.delay = 1
    with closing(database_at(address, KEY, behind_pooler=False)) as database:
        ended = threading.Event()

        def step() -> None:
            try:
                database.batch((INSERT, (3, "c")), (INSERT, (4, "d")))
            finally:
                ended.set()

        assert cancelled_after(0.2, step) < 1
        assert ended.wait(20)
        proxy.delay = 0
        with database.read() as rows:
            assert rows.one("SELECT count(*) FROM one") == (2,)


def test_a_locked_file_lets_a_cancelled_await_go(tmp_path: Path) -> None:
    """SQLite waits for another writer no longer than its caller."""
    path = tmp_path / "one.db"
    with closing(database_at(path, KEY, behind_pooler=False)) as database:
        prepare(database)
        with others(path) as other:
            other.run("BEGIN IMMEDIATE")
            assert cancelled_after(0.2, lambda: database.batch((UPDATE, (1,)))) < 1
            other.run("COMMIT")
        assert database.batch((UPDATE, (1,))) == [(1, [])]


def test_an_await_that_is_not_cancelled_is_a_call(database: Database) -> None:
    """It returns what the function returns, and raises what it raises."""

    async def main() -> None:
        assert await in_thread(database.batch, (UPDATE, (1,))) == [(1, [])]
        with pytest.raises(StoreError):
            await in_thread(database.batch, (INSERT, (1, "a")))

    asyncio.run(main())


def test_an_interrupt_is_for_one_thread() -> None:
    """What is set for one block ends with it, and a pause is short then."""
    stop = threading.Event()
    stop.set()
    began = time.monotonic()
    with interruptible(stop):
        interruptible_pause(20)
    assert time.monotonic() - began < 1
    interruptible_pause(0.15)
    assert time.monotonic() - began >= 0.15


def test_no_step_begins_after_an_interrupt(database: Database) -> None:
    """Whatever it would take, and its connection stays."""
    stop = threading.Event()
    with interruptible(stop):
        database.batch((INSERT, (3, "c")))
        stop.set()
        count = len(made)
        for do in (database.batch, database.beat):
            with pytest.raises(StoreError, match=r"was cancelled\. Nothing was changed"):
                do((INSERT, (4, "d")))
        with pytest.raises(StoreError, match="was cancelled"), database.read():
            pass
    with database.read() as rows:
        assert rows.one("SELECT count(*) FROM one") == (3,)
    assert len(made) <= count + 1  # that of the renewals


# What errors show.


def test_no_error_shows_a_value(database: Database) -> None:
    """Neither the error nor what is printed with it has a parameter, or a key or row."""
    database.batch(
        ("CREATE TABLE two (id TEXT PRIMARY KEY, number BIGINT, CHECK (number > 0))", ()),
        ("INSERT INTO two VALUES (?, 1)", (SECRET,)),
    )
    wrong = [
        ("INSERT INTO two VALUES (?, 1)", (SECRET,)),
        ("INSERT INTO two VALUES (?, 0)", (f"{SECRET} again",)),
        ("INSERT INTO one VALUES (?, NULL)", (SECRET,)),
        ("SELECT absent FROM one WHERE text = ?", (SECRET,)),
        ("SELECT 1 / (1 - CAST(length(CAST(? AS TEXT)) > 0 AS INTEGER)) FROM absent", (SECRET,)),
    ]
    if database.is_postgres:
        wrong += [("SELECT CAST(CAST(? AS TEXT) AS INTEGER)", (SECRET,))]
    for statement in wrong:
        for do in (
            lambda s=statement: database.batch(s),
            lambda s=statement: database.batch(s, s),
            lambda s=statement: database.transact(lambda rows: rows.run(s[0], *s[1])),
        ):
            with pytest.raises(StoreError, match="Nothing was changed") as raised:
                do()
            error = raised.value
            shown = "".join(traceback.format_exception(error))
            for text in (str(error), repr(error.__cause__), str(error.__cause__), shown):
                assert SECRET not in text
            assert type(error.__cause__).__name__ in str(error)


def test_a_missing_right_is_named(postgres: Postgres) -> None:
    """The error has the table or schema, and who gives the right."""
    address = postgres.fresh()
    schema = re.findall(r"s\d+_\d+", address)[0]
    role = f"clerk_{schema}"
    as_clerk = address.replace("lutum@", f"{role}@")
    with others(address) as rows:
        rows.run(f"CREATE ROLE {role} LOGIN")
        rows.run(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    way_out = "lutum store init"
    with pytest.raises(StoreError, match=rf"denied for schema {schema}\).*{way_out}"):
        open_store(as_clerk)
    open_store(address).close()
    with (
        closing(database_at(as_clerk, KEY, behind_pooler=False)) as database,
        pytest.raises(StoreError, match=rf"denied for table lutum_store\).*{way_out}"),
    ):
        database.batch(("SELECT * FROM lutum_store", ()))
    with others(address) as rows:
        rows.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with open_store(as_clerk) as store, pytest.raises(StoreError, match=rf"denied .*{way_out}"):
        store.save("one", None, note="")


@over(
    "code, way_out",
    [
        ("53100", "Make room on the disk"),
        ("53300", "max_connections"),
        ("57014", "may be repeated"),
        ("55P03", "may be repeated"),
        ("42P01", "search_path"),
        ("25006", "standby"),
    ],
)
def test_an_error_says_what_to_do(postgres: Postgres, code: str, way_out: str) -> None:
    """What the server reports comes with what helps."""
    raises = f"DO $$ BEGIN RAISE EXCEPTION 'its words' USING ERRCODE = '{code}'; END $$"
    with (
        closing(database_at(postgres.fresh(), KEY, behind_pooler=False)) as database,
        pytest.raises(StoreError, match=rf"its words\)\. Nothing was changed\. .*{way_out}"),
    ):
        database.batch((raises, ()))


def test_a_standby_is_told_by_what_it_is() -> None:
    """A server that takes no writes is named as that, and can be read."""
    running = server()
    try:
        address = f"{running.root}/postgres"
        open_store(address).close()
        running.demote()
        with open_store(address) as store:
            assert store.ids() == []
            with pytest.raises(StoreError, match=r"standby.*target_session_attrs=read-write"):
                store.save("one", None, note="")
    finally:
        running.remove()


# Notices.


def test_a_notice_wakes_those_who_wait(postgres: Postgres) -> None:
    """Others in this process and in another are woken when the transaction ends."""
    address = postgres.fresh()
    with (
        closing(database_at(address, KEY, behind_pooler=False)) as one,
        closing(database_at(address, KEY, behind_pooler=False)) as two,
    ):
        prepare(two)
        for wake in (
            partial(two.batch, two.notice),
            partial(two.batch, (UPDATE, (1,)), two.notice),
        ):
            took: list[float] = []

            def wait(took: list[float] = took) -> None:
                began = time.monotonic()
                one.wait_for_notice(20)
                took.append(time.monotonic() - began)

            with threads(wait, wait):
                time.sleep(0.5)
                wake()
            assert len(took) == 2
            assert max(took) < 5
        began = time.monotonic()
        one.wait_for_notice(0.3)
        assert 0.2 < time.monotonic() - began < 3


def test_without_notices_a_wait_is_a_sleep(postgres: Postgres, tmp_path: Path) -> None:
    """On SQLite, behind a pooler, and where nobody can be listened to, the time goes by."""
    address = postgres.fresh()
    for place, behind_pooler in ((tmp_path / "one.db", False), (address, True)):
        with closing(database_at(place, KEY, behind_pooler)) as database:
            began = time.monotonic()
            database.wait_for_notice(0.3)
            assert 0.2 < time.monotonic() - began < 3
            with threads(lambda: database.wait_for_notice(20)):
                time.sleep(0.3)
                database.batch(database.notice)  # from this process
    with closing(database_at(address, KEY, behind_pooler=False)) as database:
        for _ in range(2):
            database.wait_for_notice(0.1)
            last().close()
            began = time.monotonic()
            database.wait_for_notice(0.3)
            assert 0.2 < time.monotonic() - began < 3
        with threads(partial(database.wait_for_notice, 1)):
            time.sleep(0.3)
            database.close()
