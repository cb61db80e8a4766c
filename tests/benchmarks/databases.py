"""The databases that the store is measured on, a proxy before one, and what others do there."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any, ClassVar, Final, Protocol
from uuid import uuid4

from ..store import servers

__all__ = ["CALLS", "Database", "Postgres", "Proxy", "Sqlite", "Step", "calls_a_second", "floor"]

Step = Callable[[], int]
"""One piece of a worker's work; returns how many calls it ran."""

CALLS: Final = 20
"""How many steps a workflow of DBOS has."""

MEMORY: Final = Path("/dev/shm")

BODY: Final = "{}" * 200
"""What a row by hand keeps of a call."""


class Database(Protocol):
    """Where stores can be opened."""

    name: ClassVar[str]
    snapshot: ClassVar[tuple[str, str]]
    """What begins a transaction that sees the database as it is now."""
    mark: ClassVar[str]
    """Stands for a value in a statement."""
    has_many_writers: ClassVar[bool]

    def fresh(self) -> str:
        """Give the address of a database with nothing in it."""
        ...

    def fresh_url(self) -> str:
        """Give the same as SQLAlchemy wants it."""
        ...

    def connect(self, address: str) -> Any:
        """Connect, with autocommit."""
        ...

    def remove(self) -> None:
        """Remove all of it."""
        ...


class Postgres:
    """A server of its own.

    Args:
        folder: The folder of its programs.
        fsync: Whether a COMMIT waits for the disk.
    """

    name: ClassVar = "PostgreSQL"
    snapshot: ClassVar = ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1")
    mark: ClassVar = "%s"
    has_many_writers: ClassVar = True

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self._server = servers.Postgres(folder, fsync=fsync)
        self.port = self._server.port
        self.fresh = self._server.fresh
        self.remove = self._server.remove

    def fresh_url(self) -> str:
        name = self._server.fresh_database()
        return f"postgresql://lutum@127.0.0.1:{self.port}/{name}"

    def connect(self, address: str) -> Any:
        import psycopg

        return psycopg.connect(address, autocommit=True)


class Sqlite:
    """A folder of files.

    Args:
        fsync: Whether they are on a disk, which a COMMIT waits for, and not in memory.
    """

    name: ClassVar = "SQLite"
    snapshot: ClassVar = ("BEGIN", "SELECT count(*) FROM sqlite_master")
    mark: ClassVar = "?"
    has_many_writers: ClassVar = False

    def __init__(self, *, fsync: bool = False) -> None:
        in_memory = not fsync and MEMORY.is_dir()
        self._folder = tempfile.TemporaryDirectory(dir=MEMORY if in_memory else None)
        self._files = count(1)
        self.remove = self._folder.cleanup

    def fresh(self) -> str:
        return str(Path(self._folder.name, f"{next(self._files)}.db"))

    def fresh_url(self) -> str:
        return f"sqlite:///{self.fresh()}"

    def connect(self, address: str) -> Any:
        options: Any = {"isolation_level": None, "timeout": 30, "check_same_thread": False}
        connection = sqlite3.connect(address, **options)
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        return connection


class Proxy:
    """Stand between a store and its server: count what passes, and let it wait.

    Args:
        port: Where the server is.
        delay: How long a round trip takes, in seconds.
    """

    def __init__(self, port: int, delay: float = 0) -> None:
        self.trips = self.bytes = 0
        self._to, self._delay = port, delay / 2
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self._port: int = server.sockets[0].getsockname()[1]

    def address(self, address: str) -> str:
        """Give an address of the server as one behind this."""
        return address.replace(f":{self._to}/", f":{self._port}/")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        is_asking = False

        async def pump(
            source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asks: bool
        ) -> None:
            nonlocal is_asking
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    # What is sent before the answer to what came before is the same round trip.
                    self.trips += asks and not is_asking
                    self.bytes += len(data)
                    is_asking = asks
                    self._loop.call_later(self._delay, target.write, data)
            self._loop.call_later(self._delay, target.close)

        await asyncio.gather(
            pump(reader, far_writer, asks=True), pump(far_reader, writer, asks=False)
        )


def calls_a_second(workers: int, seconds: float, step_of: Callable[[], Step]) -> float:
    """Let workers, a thread each, run calls for a time; returns how many calls they ran a second.

    Args:
        workers: How many there are.
        seconds: For how long they work.
        step_of: Makes what one worker does over and over.
    """
    steps = [step_of() for _ in range(workers)]
    start = monotonic()

    def work(step: Step) -> tuple[int, float]:
        done, last = 0, start
        while (now := monotonic()) < start + seconds:
            if calls := step():
                done, last = done + calls, monotonic()
            elif now > last + 0.2:  # there are none left
                break
            else:
                sleep(0.001)
        return done, last

    with ThreadPoolExecutor(workers) as pool:
        ended = list(pool.map(work, steps))
    took = max(last for _, last in ended) - start
    return sum(done for done, _ in ended) / took if took else 0.0


def floor(database: Database, workers: int, seconds: float) -> float:
    """Return the calls a second of one INSERT and one UPDATE for each call."""
    address = database.fresh()
    connections = [database.connect(address) for _ in range(workers)]
    connections[0].execute("CREATE TABLE call (id text PRIMARY KEY, state text, body text)")
    free = iter(connections)
    # Where there is one writer, threads that wait for a lock here lose less than in the database.
    turn: Any = nullcontext() if database.has_many_writers else Lock()
    insert = f"INSERT INTO call VALUES ({database.mark}, 'started', {database.mark})"
    update = f"UPDATE call SET state = 'done', body = {database.mark} WHERE id = {database.mark}"

    def step_of() -> Step:
        connection = next(free)

        def step() -> int:
            id = str(uuid4())
            with turn:
                connection.execute(insert, (id, BODY))
                connection.execute(update, (BODY, id))
            return 1

        return step

    try:
        return calls_a_second(workers, seconds, step_of)
    finally:
        for each in connections:
            each.close()


@contextmanager
def dbos_workflow(database: Database) -> Iterator[Step]:
    """Launch DBOS, and give a workflow of trivial steps."""
    from dbos import DBOS, DBOSConfig

    config: DBOSConfig = {
        "name": "floor",
        "system_database_url": database.fresh_url(),
        "log_level": "CRITICAL",
    }
    DBOS(config=config)

    @DBOS.step()
    def pay(cents: int) -> str:
        return f"paid {cents}"

    @DBOS.workflow()
    def pay_all() -> int:
        return len([pay(cents) for cents in range(CALLS)])

    DBOS.launch()
    try:
        pay_all()
        yield pay_all
    finally:
        DBOS.destroy(destroy_registry=True)
