"""Keep what this process has claimed: one row of the database, however many calls it runs.

A renewal for each call would be a write for each, which grows with the calls that run and meets
their ends in deadlocks. So the claims of the workers of a process go by the lease of the process.
It is renewed in a thread: a loop that is busy loses no lease.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from uuid import uuid4

from ._backend import LEAVE_SECONDS, interruptible
from ._database import Database

Lost = Callable[[], object]
"""Is called, in the thread of the renewals, if somebody else has taken a call."""


class Leases:
    """Renew the leases of the workers of a store; those of one length share a row.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._beats: dict[float, Beat] = {}

    @contextmanager
    def held(self, lease: float) -> Generator[Beat]:
        """Hold a lease while the block runs, which takes it with `begin`.

        Args:
            lease: How long it holds without a renewal, in seconds.
        """
        with self._lock:
            beat = self._beats.get(lease)
            if beat is None:
                beat = self._beats[lease] = Beat(self._database, lease)
            beat.users += 1
        try:
            yield beat
        finally:
            with self._lock:
                beat.users -= 1
                if beat.users == 0:
                    del self._beats[lease]
            if beat.users == 0:
                beat.end()

    def running(self, id: str) -> list[tuple[str, str]]:
        """Return the calls of a conversation that run here, each with that conversation.

        A renewal may be late, and they are then not in doubt for the others of this process.
        """
        with self._lock:
            running = [key[:2] for beat in self._beats.values() for key in beat.watching()]
        return [key for key in running if key[0] == id]


class Beat:
    """One lease, renewed by a thread.

    Attributes:
        id: Names it in the rows of calls.
        users: How many blocks hold it.
    """

    def __init__(self, database: Database, lease: float) -> None:
        self.id = uuid4().hex
        self.users = 0
        self._database = database
        self._milliseconds = round(1000 * lease)
        self._lease = lease
        self._begun = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_lapsed = False
        self._watched: dict[tuple[str, str, str], Lost] = {}

    def begin(self) -> None:
        """Take the lease, if that was not done before.

        Raises:
            StoreError: The database failed.
        """
        with self._begun:
            if self._thread is None:
                self._take()
                # One that is over by now gives it back at once.
                thread = threading.Thread(target=self._keep, name="lutum-lease", daemon=True)
                thread.start()
                self._thread = thread

    def end(self) -> None:
        """Give the lease back; nobody waits for a database that does not answer: it runs out."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(LEAVE_SECONDS)

    @contextmanager
    def watched(self, id: str, call: str, claim: str, lost: Lost) -> Generator[None]:
        """Call a function if somebody else takes a call while the block runs."""
        self._watched[id, call, claim] = lost
        try:
            yield
        finally:
            del self._watched[id, call, claim]

    def watching(self) -> list[tuple[str, str, str]]:
        """Return what is watched: conversation, call and claim."""
        return [*self._watched]

    def _take(self) -> None:
        self._database.beat(
            (
                (
                    "INSERT INTO lutum_worker VALUES (?, {now} + ?) "
                    "ON CONFLICT (id) DO UPDATE SET until = excluded.until"
                ),
                (self.id, self._milliseconds),
            ),
            # Left behind by processes that were killed.
            ("DELETE FROM lutum_worker WHERE until < {now} - 86400000", ()),
        )

    def _keep(self) -> None:
        # Whatever is raised, also by a pool or a function of the user: the next attempt may do, and
        # without this thread each call would lose its lease.
        with interruptible(self._over):
            # A third of it: one attempt may fail, and a second is still in time.
            while not self._over.wait(self._lease / 3):
                with suppress(Exception):
                    self._renew()
        with suppress(Exception):
            self._database.beat(("DELETE FROM lutum_worker WHERE id = ?", (self.id,)))

    def _renew(self) -> None:
        ((renewed, _),) = self._database.beat(
            (
                "UPDATE lutum_worker SET until = {now} + ? WHERE id = ? AND until > {now}",
                (self._milliseconds, self.id),
            )
        )
        if not renewed:
            # It ran out: this process was stopped, or the database was away.
            self._has_lapsed = True
            self._take()
        if not self._has_lapsed:
            return
        # Who has not lost a call by that goes on.
        for key, lost in [*self._watched.items()]:
            ((_, found),) = self._database.beat(
                ("SELECT claim FROM lutum_call WHERE conversation = ? AND call = ?", key[:2])
            )
            if found != [(key[2],)]:
                lost()
        self._has_lapsed = False  # not before all were looked at: the database may fail at one
