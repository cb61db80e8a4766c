"""`Hold`: one conversation for one loop at a time, over threads and processes.

A hold is a row beside the conversation: who has it, and until when. It is taken, renewed and given
back by one statement each, and whoever saves without one takes it for that transaction. So it is
taken before the conversation is locked, everywhere.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic, sleep
from typing import Generic, TypeVar, cast
from uuid import uuid4

from ..errors import HeldError, LutumError, MisuseError, StaleError
from ._database import Rows
from ._held import Held, RunCalls, in_thread, pauses
from ._records import Records
from ._rows import give_back, holder, owner_of, take_hold

T_co = TypeVar("T_co", covariant=True)


@dataclass(eq=False, repr=False)
class Hold(Generic[T_co]):
    """A conversation that is to be yours alone, made by `store.hold`; enter it once.

    `async with` renews it by a task, `with` by a daemon thread. Leaving saves
    nothing. See `store.hold`.
    """

    _records: Records
    _run: RunCalls
    _id: str
    _toolset: type[T_co]
    _lease: float
    _wait: float | None
    _token: str = field(default_factory=lambda: uuid4().hex)
    _other: str = "somebody else"
    _is_entered: bool = False
    _is_left: threading.Event = field(default_factory=threading.Event)
    _lost: StaleError | None = None

    def __repr__(self) -> str:
        return f"<hold of {self._id!r} at {self._records._database.name}>"

    # What both ways of entering do.

    def _enter(self) -> Iterator[float]:
        """Return how long to wait before each next attempt.

        Raises:
            MisuseError: It was entered before.
        """
        if self._is_entered:
            what = f"This hold of conversation {self._id!r} was entered before."
            raise MisuseError(f"{what} Call `store.hold` again.")
        self._is_entered = True
        return self._pauses(monotonic() + (inf if self._wait is None else self._wait))

    def _pauses(self, end: float) -> Iterator[float]:
        """Yield each pause, a longer one each time.

        Raises:
            HeldError: The time is up.
        """
        again = pauses()
        while (left := end - monotonic()) > 0:
            yield min(next(again), left)
        raise HeldError(
            f"Conversation {self._id!r} is held by {self._other}, who did not leave it within "
            f"{self._wait} seconds. Wait longer, or let them go on; what a killed process held is "
            "free when its lease has run out."
        )

    def _take(self) -> Held[T_co] | None:
        """Take it, if it is free."""
        # A look first: whoever waits asks many times a second, and a transaction that writes would
        # hold up all other conversations of a SQLite store each time.
        with self._records._database.read() as rows:
            found = holder(rows, self._id)
        if found is not None and found.is_live:
            self._other = found.owner
            return None
        with self._records._database.write() as rows:
            if not take_hold(rows, self._id, self._token, self._records._owner, self._lease):
                return None
            return Held(
                *(self._records, self._run, self._id, self._toolset, self._lease),
                *(self._may_save, rows),
            )

    def _renew(self) -> bool:
        """Let the lease begin again; say whether it is still held."""
        with self._records._database.write() as rows:
            renewed = rows.run(
                "UPDATE lutum_hold SET until = {now} + ? WHERE conversation = ? AND token = ?",
                *(round(1000 * self._lease), self._id, self._token),
            )
            if renewed == 0:
                self._lost = self._stale(rows)
        return self._lost is None

    @contextmanager
    def _may_save(self, rows: Rows) -> Generator[None]:
        """Make sure that it is still held, until this transaction ends.

        Raises:
            MisuseError: It was left.
            StaleError: Somebody took it.
        """
        if self._is_left.is_set():
            left = f"The hold of conversation {self._id!r} was left."
            raise MisuseError(f"{left} Call `store.hold` again.")
        found = rows.one("SELECT token FROM lutum_hold WHERE conversation = ? {lock}", self._id)
        if found != (self._token,):
            raise self._stale(rows)
        yield

    def _stale(self, rows: Rows) -> StaleError:
        return StaleError(
            f"The hold of conversation {self._id!r} ran out, and was taken by "
            f"{owner_of(rows, self._id)}. Nothing was changed. Take it again with "
            "`store.hold(id, toolset)`, and go on from what is saved."
        )

    def _leave(self) -> None:
        """Give it back; where the database fails, its lease runs out."""
        self._is_left.set()
        with suppress(LutumError), self._records._database.write() as rows:
            give_back(rows, self._id, self._token)

    # Sync.

    def __enter__(self) -> Held[T_co]:
        again = self._enter()
        while (held := self._take()) is None:
            sleep(next(again))
        self._thread = threading.Thread(target=self._keep, name="lutum-hold", daemon=True)
        self._thread.start()
        return held

    def _keep(self) -> None:
        # A third of it: one attempt may fail, and a second is still in time.
        while not self._is_left.wait(self._lease / 3):
            with suppress(LutumError):  # it may work again before somebody takes it
                if not self._renew():
                    return

    def __exit__(self, *_: object) -> None:
        self._leave()
        self._thread.join()

    # Async.

    async def __aenter__(self) -> Held[T_co]:
        again = self._enter()
        try:
            while (held := await in_thread(self._take)) is None:  # noqa: ASYNC110 - others' tasks
                await asyncio.sleep(next(again))
        except asyncio.CancelledError:  # while it was taken, perhaps
            await in_thread(self._leave)
            raise
        self._task = cast("asyncio.Task[object]", asyncio.current_task())
        self._cancelled_before = self._task.cancelling()
        self._renewing = asyncio.create_task(self._keep_async())
        return held

    async def _keep_async(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._lease / 3)
            with suppress(LutumError):  # it may work again before somebody takes it
                await asyncio.to_thread(self._renew)
        self._task.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        # Three may have ended the block: its own code, a cancellation from outside, and the
        # renewing task, which cancels where the hold was lost. Only the last becomes a
        # `StaleError`.
        is_cancelled = self._renewing.done()  # by whom it was lost
        self._renewing.cancel()
        # The cancellation that came from `_keep_async` is taken back, or an `asyncio.timeout`
        # around the block would take it for its own. Where the count is still higher than at the
        # beginning, somebody else has cancelled too, and that has to go on.
        is_ours = is_cancelled and self._task.uncancel() <= self._cancelled_before
        await in_thread(self._leave)
        if self._lost is not None and (
            kind is None or (is_ours and issubclass(kind, asyncio.CancelledError))
        ):
            raise self._lost from error
