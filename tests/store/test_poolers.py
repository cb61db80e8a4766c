"""The laws of connections that a store does not have to itself: a pooler's, and those of a pool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lutum_py.errors import MisuseError, StoreError
from lutum_py.store import Store, open_store
from tests.cases import over
from tests.store.desk import KEY, LOOK, PAY, Desk, approve, plan_of, states
from tests.store.servers import Bouncer, Postgres, bouncer, needs_driver

SESSION = (
    "SELECT current_setting('idle_in_transaction_session_timeout'), "
    "current_setting('synchronous_commit'), (SELECT count(*) FROM pg_prepared_statements), "
    "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), "
    "(SELECT count(*) FROM pg_listening_channels()), "
    "(SELECT count(*) FROM pg_class WHERE relpersistence = 't')"
)
"""What a session has that outlasts its transactions."""

CLEAN = ("0", "on", 0, 0, 0, 0)


@pytest.fixture(scope="module")
def behind(postgres: Postgres) -> Iterator[Bouncer]:
    running = bouncer(postgres)
    yield running
    running.remove()


def use(store: Store, id: str) -> None:
    """Save, hold, decide, claim, run and commit."""
    with store.hold(id, Desk) as desk:
        desk.save(plan_of(PAY, LOOK))
    approve(store, id)
    stored = asyncio.run(store.run(id, Desk, skipped={"log": []}))
    assert stored.plan is not None
    stored.plan.discard()
    assert states(store, id) == {"c1": "success", "c2": "success"}
    store.save(id, None, version=store.load(id).version)


def test_a_pooler_of_transactions_may_stand_between(postgres: Postgres, behind: Bouncer) -> None:
    """Whichever server process has a transaction, every step of every worker works."""
    address = behind.address(postgres.fresh_database())
    faults: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with open_store(address, key=KEY, owner=name, behind_pooler=True) as store:
                for at in range(8):
                    use(store, f"{name}-{at}")
        except BaseException as error:  # noqa: BLE001 - it is told below
            faults.append(error)

    threads = [threading.Thread(target=work, args=(f"w{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_a_session_is_left_as_it_was(postgres: Postgres, behind: Bouncer) -> None:
    """What a transaction sets is gone with it, as the next one is of another client."""
    import psycopg

    address = behind.address(postgres.fresh_database())
    with open_store(address, key=KEY, behind_pooler=True) as store:
        use(store, "one")
        with (
            psycopg.connect(address, prepare_threshold=None) as one,
            psycopg.connect(address, prepare_threshold=None) as two,
        ):  # both server processes of this pooler
            assert [each.execute(SESSION).fetchone() for each in (one, two)] == [CLEAN, CLEAN]


class Pool:
    """A pool of the user's own, with one connection that is made again if it is closed."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.made: list[Any] = [make()]
        self.lent = 0
        self._is_free = threading.Semaphore()

    def getconn(self) -> Any:
        assert self._is_free.acquire(timeout=30)
        self.lent += 1
        return self.made[-1]

    def putconn(self, conn: Any) -> None:
        assert conn is self.made[-1]
        self.lent -= 1
        if conn.closed:
            self.made.append(self.make())
        self._is_free.release()


def maker(postgres: Postgres, **options: Any) -> Callable[[], Any]:
    """A function that makes connections which are the user's in every respect."""
    import psycopg
    from psycopg.rows import dict_row

    address = postgres.fresh()
    options = {"row_factory": dict_row, **options}
    return lambda: psycopg.connect(address, **options)


@over("behind_pooler", [False, True])
def test_a_pool_of_the_users_lends_connections(postgres: Postgres, behind_pooler: bool) -> None:
    """Each is given back as it was when a transaction is over, and outlasts the store."""
    from psycopg.rows import dict_row, tuple_row

    pool = Pool(maker(postgres))
    with open_store(pool, key=KEY, behind_pooler=behind_pooler) as store:
        assert repr(store) == "<store at postgresql://127.0.0.1/postgres>"
        use(store, "one")
        with pytest.raises(StoreError, match="There is no conversation"):
            store.load("two")
        with (
            pytest.raises(StoreError, match="syntax error"),
            store._claims.database.write() as rows,
        ):
            rows.run("SELEC 1")
        assert pool.lent == 0
    (connection,) = pool.made
    assert (connection.autocommit, connection.row_factory) == (False, dict_row)
    assert connection.prepare_threshold == 5
    assert connection.info.transaction_status.name == "IDLE"
    if behind_pooler:
        connection.row_factory = tuple_row
        assert connection.execute(SESSION).fetchone() == CLEAN
    connection.close()


def test_a_lost_connection_of_a_pool_is_given_back(postgres: Postgres) -> None:
    """One that turns out to be lost when a transaction begins is given back, and another is taken;
    one that is lost later fails that transaction alone.
    """
    pool = Pool(maker(postgres))
    with open_store(pool, key=KEY) as store:
        terminate(postgres, pool.made[-1])
        assert store.ids() == []

        def cut(store: Store) -> None:
            with store._claims.database.write() as rows:
                terminate(postgres, pool.made[-1])
                rows.run("SELECT 1")

        with pytest.raises(StoreError, match="failed"):
            cut(store)
        assert store.ids() == []
        assert (pool.lent, len(pool.made)) == (0, 3)
    pool.made[-1].close()


def terminate(postgres: Postgres, connection: Any) -> None:
    import psycopg

    process = connection.info.backend_pid
    with psycopg.connect(f"postgresql://lutum@127.0.0.1:{postgres.port}/postgres") as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (process,))


def test_connections_that_are_always_lost_end_in_an_error(postgres: Postgres) -> None:
    """A pool is not asked without end."""
    make = maker(postgres)
    pool = Pool(make)
    with open_store(pool, key=KEY) as store:

        def lost() -> Any:
            connection = make()
            terminate(postgres, connection)
            return connection

        pool.make = lost
        terminate(postgres, pool.made[-1])
        with pytest.raises(StoreError, match="failed"):
            store.ids()
        assert pool.lent == 0
        assert len(pool.made) == 3
    pool.made[-1].close()


def test_the_pool_of_psycopg_lends_connections(postgres: Postgres) -> None:
    """A `psycopg_pool.ConnectionPool` is one."""
    psycopg_pool = pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed")
    with psycopg_pool.ConnectionPool(postgres.fresh(), min_size=2, max_size=2) as pool:
        with open_store(pool, key=KEY) as store:
            use(store, "one")
            with pool.connection() as one, pool.connection() as two:
                for each in (one, two):
                    terminate(postgres, each)
            use(store, "two")
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@over("behind_pooler", [False, True])
def test_a_function_makes_connections(postgres: Postgres, behind_pooler: bool) -> None:
    """They are the store's, which closes them, and asks for another where one is lost."""
    made: list[Any] = []
    make = maker(postgres)

    def connect() -> Any:
        made.append(make())
        return made[-1]

    with open_store(connect, key=KEY, behind_pooler=behind_pooler) as store:
        use(store, "one")
        lost = [*made]
        for each in lost:
            terminate(postgres, each)
        use(store, "two")
        assert len(lost) < len(made)
    assert all(each.closed for each in made)
    assert all((each.prepare_threshold is None) is behind_pooler for each in made)


def test_what_is_no_connection_of_psycopg_is_refused(postgres: Postgres) -> None:
    """It is said what was given, what to pass, and nothing stays open or lent."""
    needs_driver()
    import sqlite3

    import psycopg

    async def later() -> None:
        """Not awaited."""

    with pytest.raises(MisuseError, match=r"`psycopg.Connection`, .* type coroutine\. Pass a"):
        open_store(later)
    other = sqlite3.connect(":memory:")
    with pytest.raises(MisuseError, match="of type Watched"):
        open_store(lambda: other)
    other.close()
    pool = Pool(maker(postgres, client_encoding="latin1"))
    with pytest.raises(MisuseError, match=r"encoding is iso8859-1\. Make connections with"):
        open_store(pool)
    assert pool.lent == 0
    pool.made[-1].close()
    with pytest.raises(MisuseError, match="encoding"):
        open_store(pool.make)

    def fails() -> Any:
        raise psycopg.OperationalError("nobody answers")

    with pytest.raises(StoreError, match=r"given connections failed .*nobody answers"):
        open_store(fails)


def test_behind_a_pooler_is_postgresql(postgres: Postgres) -> None:
    """SQLite has no pooler, and the setting is True or False."""
    with pytest.raises(MisuseError, match="Leave out `behind_pooler`"):
        open_store(":memory:", behind_pooler=True)
    with pytest.raises(MisuseError, match="behind_pooler"):
        open_store(":memory:", behind_pooler="no")  # type: ignore[arg-type]
