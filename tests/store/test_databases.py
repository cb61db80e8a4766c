"""The laws of databases that fail: nothing was changed, or it is said that nobody knows."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from lutum_py.errors import MissingExtraError, MisuseError, StaleError, StoreError
from lutum_py.store import Store, open_store
from tests.cases import over
from tests.store.beside import between, driver_error, last, made, others
from tests.store.desk import KEY, LOOK, PAY, Desk, approve, claimed, plan_of, started, states
from tests.store.servers import Postgres, needs_driver


def test_tables_of_another_version_are_refused(where: str) -> None:
    """A store whose tables another release made is not touched."""
    for version in (0, 2):
        open_store(where).close()
        with others(where) as rows:
            rows.run("UPDATE lutum_store SET version = ?", version)
        with pytest.raises(StoreError, match=rf"are of version {version}; this release knows"):
            open_store(where)
        with others(where) as rows:
            rows.run("UPDATE lutum_store SET version = 1")
    open_store(where).close()
    with others(where) as rows:
        rows.run("DELETE FROM lutum_store")
    with pytest.raises(StoreError, match=r"are of version \[\]"):
        open_store(where)


def test_a_table_of_somebody_else_is_refused(where: str) -> None:
    """A table of the same name that is none of ours is left as it is."""
    with others(where) as rows:
        rows.run("CREATE TABLE lutum_store (something TEXT)")
    with pytest.raises(StoreError, match=r"failed .*already exists"):
        open_store(where)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    """A file that is none, and a folder that is not there, are said in the words of the database,
    and of the folder what to do.
    """
    (tmp_path / "text").write_text("not a database, and long enough to be told from one" * 100)
    with pytest.raises(StoreError, match="file is not a database") as raised:
        open_store(tmp_path / "text")
    assert isinstance(raised.value.__cause__, sqlite3.Error)
    text = r"unable to open database file\)\. Nothing was changed\. The folder has to be there"
    with pytest.raises(StoreError, match=text):
        open_store(tmp_path / "missing" / "store.db")


def test_a_server_that_is_not_there_is_told_so() -> None:
    """An address at which nobody answers is said by the driver's own words."""
    needs_driver()
    with pytest.raises(StoreError, match=r"failed .*Nothing was changed"):
        open_store("postgresql://nobody@127.0.0.1:1/none")


@over("where", [3, None, b"store.db", "", "\ud800"])
def test_a_place_is_a_path_or_an_address(where: Any) -> None:
    """What is neither is refused, with an example."""
    with pytest.raises(MisuseError, match=r'Write `open_store\("desk.db"\)`'):
        open_store(where)


def test_postgresql_needs_its_driver() -> None:
    """Without psycopg the error says what to install."""
    with (
        patch.dict(sys.modules, {"psycopg": None}),
        pytest.raises(MissingExtraError, match=r"pip install 'lutum-py\[postgres\]'"),
    ):
        open_store("postgresql://localhost/desk")


def test_an_address_is_one_of_postgresql() -> None:
    """Another scheme is refused by its name, and what comes after it is not shown."""
    for scheme in ("mysql", "postgresql+psycopg", "POSTGRESQL", "file"):
        with pytest.raises(MisuseError) as raised:
            open_store(f"{scheme}://mia:secret@localhost/desk")
        assert repr(scheme) in str(raised.value)
        assert "secret" not in str(raised.value)


@over(
    "where",
    [
        "mia:secret@[::1/desk",
        "mia:%secret@localhost/desk",
        "mia:secret/more@localhost/desk",
        "mia:12/secret@localhost/desk",
        "mia:se@cret@localhost/desk",
        "mia@localhost/desk?unknown=secret",
    ],
)
def test_an_address_that_is_not_well_formed_is_not_shown(where: str) -> None:
    """Where a password might be read as something else, nothing of the address is shown."""
    needs_driver()
    with pytest.raises(MisuseError, match="not well-formed") as raised:
        open_store(f"postgresql://{where}")
    error = raised.value
    assert "cret" not in str(error)
    assert error.__context__ is None or error.__suppress_context__


def test_a_connection_that_cannot_be_prepared_is_given_up(store: Store) -> None:
    """Where a new connection fails before its first transaction, the next step makes another."""
    told: list[str] = []

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if connection is not lost and sql.startswith(("BEGIN", "PRAGMA synchronous")):
            told.append(sql)
            raise driver_error("no such setting")

    lost = last()
    lose(lost)
    with between(fails), pytest.raises(StoreError, match="no such setting"):
        store.ids()
    assert told
    assert is_closed(last())
    count = len(made)
    assert store.ids() == []
    assert len(made) == count + 1


def test_passwords_are_not_shown(postgres: Postgres) -> None:
    """A store is called by its host and database, without the name and password in its address."""
    with open_store(postgres.fresh().replace("lutum@", "lutum:secret@")) as store:
        assert repr(store) == "<store at postgresql://127.0.0.1/postgres>"


def test_sqlite_survives_the_loss_of_power(tmp_path: Path) -> None:
    """SQLite writes ahead, and waits until what is written is on the disk."""
    with open_store(tmp_path / "store.db"):
        connection = last()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_whoever_opens_first_is_waited_for(tmp_path: Path) -> None:
    """Where another process keeps the file from being switched to WAL, the store waits for it."""
    path = tmp_path / "store.db"
    tried: list[bool] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE foreign_table (one)")
        other.execute("BEGIN IMMEDIATE")

        def wait(connection: Any, sql: str, is_done: bool) -> None:
            if sql == "PRAGMA journal_mode = WAL" and not (is_done or connection is other):
                tried.append(is_done)
                if len(tried) == 3:
                    other.execute("COMMIT")

        with between(wait), open_store(path) as store:
            store.save("one", None, note="")
    assert len(tried) == 3


def test_a_file_that_cannot_be_switched_is_told_at_once(tmp_path: Path) -> None:
    """Where it is not another process that keeps the file from being switched, nobody waits."""
    tried: list[str] = []

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if sql == "PRAGMA journal_mode = WAL":
            tried.append(sql)
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error

    with between(fails), pytest.raises(StoreError, match="disk I/O error"):
        open_store(tmp_path / "store.db")
    assert len(tried) == len(made) > 0
    assert all(map(is_closed, made))


OPEN_LATE = """
import sys, time
real = time.monotonic
time.monotonic = lambda: 1000 * real()
from lutum_py.errors import StoreError
from lutum_py.store import open_store
try:
    open_store(sys.argv[1])
except StoreError as error:
    print(error)
"""
"""A process for which a second is over in a millisecond."""


def test_nobody_is_waited_for_without_end(tmp_path: Path) -> None:
    """A file that stays locked for too long is a StoreError in the database's words."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE foreign_table (one)")
        other.execute("BEGIN IMMEDIATE")
        command = [sys.executable, "-c", OPEN_LATE, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "database is locked" in done.stdout


def test_a_store_is_made_by_many_at_once(where: str) -> None:
    """However many open a store that is not there yet, it is made once, and all can use it."""
    gate, faults = threading.Barrier(8), list[BaseException]()

    def make(number: int) -> None:
        try:
            gate.wait()
            with open_store(where, key=KEY) as store:
                store.save(str(number), None, note="")
        except Exception as error:  # noqa: BLE001 - it is told below
            faults.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with open_store(where, key=KEY) as store:
        assert len(store.ids()) == 8


def test_threads_share_a_store(store: Store) -> None:
    """However many threads claim by one store, each call is run by one of them."""
    calls = [(f"c{number}", "look", {"place": str(number)}) for number in range(40)]
    store.save("one", plan_of(*calls), note="")
    ran: list[str] = []

    def work() -> None:
        while claim := store.claim(Desk):
            call = store.start(claim)
            ran.append(call.id)
            store.finish(claim, call.call_sync())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ran), set(ran)) == (40, {id for id, *_ in calls})
    assert store.settled() == ["one"]


def test_a_claim_is_begun_by_one_thread(store: Store) -> None:
    """Of threads that begin the same claim, one is given the call."""
    store.save("one", plan_of(LOOK), note="")
    claim, gate, told = claimed(store), threading.Barrier(4), list[str]()

    def begin() -> None:
        gate.wait()
        try:
            store.start(claim)
            told.append("started")
        except MisuseError:
            told.append("refused")

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["refused", "refused", "refused", "started"]


FORK = """
import os, sys
from lutum_py.errors import MisuseError
from lutum_py.store import open_store
store = open_store(sys.argv[1])
pid = os.fork()
if pid == 0:
    try:
        store.ids()
    except MisuseError as error:
        print(error, flush=True)
    store.close()
    with open_store(sys.argv[1]) as own:
        own.save("child", None, note="")
    del store
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
store.save("parent", None, note="")
print(store.ids(), flush=True)
store.close()
"""


def test_a_store_does_not_go_along_with_a_fork(where: str) -> None:
    """In a forked process a store refuses, and closing it there leaves the other one's alone."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORK, where],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, ids = done.stdout.splitlines()
    assert "was opened before this process was forked" in refused
    assert ids == "['child', 'parent']"


# Databases that fail in the middle of it.


class Faults:
    """Let the connection that was made last fail at one statement, or after one."""

    def __init__(self, at: int | str, error: Exception, *, lost: bool) -> None:
        self._at, self._error, self._lost = at, error, lost
        self._connection = last()
        self.came = False

    def __call__(self, connection: Any, sql: str, is_done: bool) -> None:
        is_end = self._at == "COMMIT"  # a step of one statement ends with it
        if connection is not self._connection or is_done is not is_end:
            return
        if is_end and sql.startswith("WITH changed"):
            sql = "COMMIT"
        if self._lost and sql.startswith("BEGIN"):  # which is tried again, with a new connection
            return
        if isinstance(self._at, int):
            self._at -= 1
        if self._at in (0, sql):
            self.came, self._at = True, -1
            if self._lost:
                lose(connection)
            raise self._error


def lose(connection: Any) -> None:
    """Close a connection as the other end does: the driver knows of it by then."""
    connection.close()


def is_closed(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
    except (sqlite3.Error, StoreError):
        return True
    except Exception:  # noqa: BLE001 - of the other driver
        return True
    return False


def failure() -> Exception:
    if isinstance(last(), sqlite3.Connection):
        return driver_error("database or disk is full")
    return driver_error("server closed the connection unexpectedly")


def everything() -> list[Any]:
    with others() as rows:
        tables = ("lutum_conversation", "lutum_call")
        return [sorted(rows.all(f"SELECT * FROM {table}"), key=str) for table in tables]


def steps(store: Store) -> Iterator[Callable[[], object]]:
    """Each step that writes, in an order in which they follow each other."""
    plan = plan_of(PAY, LOOK)
    yield lambda: store.save("one", plan, note="note")
    yield lambda: approve(store)
    claims: list[Any] = []
    yield lambda: claims.append(claimed(store, lease=10**6))
    claims[0].lease *= 2  # so that what is renewed at once is renewed visibly
    yield lambda: store.renew(claims[0])
    yield lambda: store.release(claims[0])
    yield lambda: claims.append(claimed(store, lease=10**6))
    calls: list[Any] = []
    yield lambda: calls.append(store.start(claims[1]))
    outcomes: list[Any] = []

    def finish() -> None:
        if not outcomes:
            outcomes.append(calls[0].call_sync())
        store.finish(claims[1], outcomes[0])

    yield finish
    stored = store.load("one", Desk)
    yield lambda: store.save("one", stored.plan, note="longer", version=stored.version)
    ended = store.load("one", Desk)
    assert ended.plan is not None
    ended.plan.discard()
    yield lambda: store.save("one", None, note="longer", version=ended.version)


def what_fails(step: Callable[[], object]) -> str | None:
    try:
        step()
    except StoreError as error:
        return str(error)
    return None


@pytest.mark.parametrize("lost", [False, True], ids=["full", "lost"])
def test_a_step_that_failed_changed_nothing(where: str, lost: bool) -> None:
    """At whichever statement the database fails, full or lost, nothing was changed, that is said,
    and the same step succeeds afterwards.
    """
    with open_store(where, key=KEY) as store:
        failed = 0
        for step in steps(store):
            before = everything()
            for number in range(1, 100):
                store.ids()  # with another connection, where one was lost
                faults = Faults(number, failure(), lost=lost)
                with between(faults):
                    told = what_fails(step)
                    assert lost or told is None or "Nothing was changed" in told
                if not faults.came:
                    break
                failed += 1
                assert everything() == before
            assert everything() != before
        assert failed > 25


def test_another_process_is_told_by_its_number(tmp_path: Path) -> None:
    """Whatever its id is, a process that did not open the store is refused, and closes nothing."""
    store = open_store(tmp_path / "store.db")
    with patch("os.getpid", return_value=-1):
        with pytest.raises(MisuseError, match="opened before this process was forked"):
            store.ids()
        store.close()
    assert not is_closed(last())
    store.close()
    assert is_closed(last())


def test_a_connection_that_is_known_to_be_lost_is_made_anew(tmp_path: Path) -> None:
    """The next step after a loss connects again, and finds what was kept."""
    with open_store(tmp_path / "store.db") as store:
        store.save("one", None, note="note")
        lose(last())
        assert store.load("one").note == "note"


def test_a_store_says_where_it_is(tmp_path: Path) -> None:
    """A store shows the path of its database, and nothing of what is in it."""
    with open_store(tmp_path / "store.db", key=KEY) as store:
        assert repr(store) == f"<store at {str(tmp_path / 'store.db')!r}>"


def test_a_connection_that_cannot_begin_is_closed(tmp_path: Path) -> None:
    """Where a new connection does not take its first statement, it is closed and not kept."""

    def fails(connection: Any, sql: str, is_done: bool) -> None:
        if sql.startswith("BEGIN"):
            raise driver_error("no such column: absent")

    with (
        between(fails),
        pytest.raises(StoreError, match=r"no such column: absent\)\. Nothing was changed"),
    ):
        open_store(tmp_path / "store.db")
    assert made
    assert all(map(is_closed, made))


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A full disk is said in the database's words, nothing is lost, and with room it goes on."""
    with open_store(tmp_path / "store.db", key=KEY) as store:
        store.save("one", plan_of(LOOK), note="")
        connection = last()
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        plan = plan_of(LOOK)
        with pytest.raises(StoreError, match=r"database or disk is full\)\. Nothing was changed"):
            store.save("two", plan, note="x" * 10**5)
        assert (store.ids(), states(store)) == (["one"], {"c2": "pending"})
        connection.execute("PRAGMA max_page_count = 100000")
        store.save("two", plan, note="x" * 10**5)


def test_a_commit_whose_answer_was_lost_is_in_doubt(postgres: Postgres) -> None:
    """Where the connection is lost as a transaction ends, the error names that; the start and the
    end may be repeated, and count once.
    """
    with open_store(postgres.fresh(), key=KEY) as store:
        store.save("one", plan_of(LOOK), note="")
        claim = claimed(store)
        told = "it is not known whether that took effect"
        with (
            between(Faults("COMMIT", failure(), lost=True)),
            pytest.raises(StoreError, match=told),
        ):
            store.start(claim)
        assert states(store) == {"c2": "in doubt"}
        call = started(store, claim)
        result = call.call_sync()
        with (
            between(Faults("COMMIT", failure(), lost=True)),
            pytest.raises(StoreError, match=told),
        ):
            store.finish(claim, result)
        store.finish(claim, result)
        with pytest.raises(StaleError, match="has its result already"):
            store.finish(claim, result)
        plan = store.load("one", Desk).plan
        assert plan is not None
        (row,) = plan.calls
        kinds = [step.kind for step in row.steps]
        assert kinds == ["proposed", "started", "ended", "recorded"]


def test_a_server_that_was_restarted_is_found_again(postgres: Postgres) -> None:
    """A connection that was lost between two steps is made anew, without anybody being told."""
    with open_store(postgres.fresh(), key=KEY) as store:
        store.save("one", plan_of(LOOK), note="")
        postgres.stop()
        with pytest.raises(StoreError, match="Nothing was changed"):
            store.claim(Desk)
        postgres.start()
        claim = claimed(store)
        postgres.stop()
        postgres.start()
        store.finish(claim, started(store, claim).call_sync())


def test_an_interrupted_step_is_undone(store: Store) -> None:
    """Whatever is raised in the middle of a transaction, it is undone."""
    store.save("one", None, note="")
    before = everything()

    def interrupt(connection: Any, sql: str, is_done: bool) -> None:
        if is_done and sql.startswith("UPDATE lutum_conversation"):
            raise KeyboardInterrupt

    with between(interrupt), pytest.raises(KeyboardInterrupt):
        store.save("one", None, note="longer", version=1)
    assert everything() == before


def test_whoever_stops_in_a_transaction_does_not_hold_up_others(postgres: Postgres) -> None:
    """A worker that is stopped in the middle of a step loses its connection, not the others."""
    with open_store(postgres.fresh()) as store:
        for begins in (store._claims.database.read, store._claims.database.write):
            with begins() as rows:
                shown = rows.one("SHOW idle_in_transaction_session_timeout")
                assert shown is not None
                assert re.fullmatch(r"\d+s", shown[0])


@over("who", ["address", "role"])
def test_every_step_is_durable_when_it_ends(postgres: Postgres, who: str) -> None:
    """Whoever turned `synchronous_commit` off, by the address or for the role, a store that writes
    waits for the disk.
    """
    address = postgres.fresh()
    off = "synchronous_commit = off"
    if who == "address":
        address = address.replace("pg_catalog", "pg_catalog%20-csynchronous_commit%3Doff")
    else:
        with others(address) as rows:
            rows.run(f"ALTER ROLE lutum SET {off}")
    try:
        with open_store(address, key=KEY) as store:
            with others(address) as rows:
                assert rows.all("SHOW synchronous_commit") == [("off",)]
                rows.run("CREATE TABLE seen (setting TEXT)")
                rows.run(
                    "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO "
                    "seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'"
                )
                for table in ("lutum_conversation", "lutum_call"):
                    rows.run(
                        "CREATE TRIGGER seeing AFTER INSERT OR UPDATE OR DELETE ON "
                        f"{table} FOR EACH ROW EXECUTE FUNCTION see()"
                    )
            store.save("one", plan_of(PAY, LOOK), note="")
            approve(store)
            store.release(claimed(store))
            claim = claimed(store)
            call = store.start(claim)
            store.renew(claim)
            store.finish(claim, call.call_sync())
            with others(address) as rows:
                seen = [setting for (setting,) in rows.all("SELECT setting FROM seen")]
            assert len(seen) >= 10
            assert set(seen) == {"on"}
    finally:
        with others(address) as rows:
            rows.run("ALTER ROLE lutum RESET synchronous_commit")


@over("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_is_no_utf_8_is_refused(postgres: Postgres, encoding: str) -> None:
    """A store would lose text there, so it is refused when it is opened, with what to do."""
    address = f"{postgres.root}/{postgres.fresh_database(encoding)}"
    with pytest.raises(StoreError, match=rf"text as {encoding}, .* needs UTF8\. Make one with"):
        open_store(address)
    assert is_closed(last())


def test_an_address_that_asks_for_another_encoding_is_asked_for_utf_8(postgres: Postgres) -> None:
    """Text outlasts whatever the client's own encoding is."""
    address = f"{postgres.fresh()}&client_encoding=latin1"
    with open_store(address, owner="Ø€") as store:
        store.save("é", plan_of(LOOK), note="€")
        assert store.load("é").note == "€"
        assert claimed(store).id == "é"
