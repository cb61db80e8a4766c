"""`Store`: what users open, with the loops that a store runs over its records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeVar, Unpack

from ..execution import ContextFor, RunOptions
from ..typing import Hooks, OnEvent
from ._backend import LEAVE_SECONDS, in_thread
from ._claims import Claims
from ._database import StoreLocation
from ._hold import Hold
from ._leases import Beat
from ._rows import check_word
from ._run import Worker
from ._values import Stored, check_lease, check_toolset, check_wait, checked_run

T = TypeVar("T")


def open_store(
    where: StoreLocation,
    key: bytes | None = None,
    owner: str | None = None,
    *,
    behind_pooler: bool = False,
) -> Store:
    """Open a store; if there is none, it is made.

    Args:
        where: The path of a SQLite database, or an address `postgresql://…` (extra `postgres`). In
            its place, a `psycopg_pool.ConnectionPool`, or a function that makes a connection of
            psycopg. A pool lends a connection for each transaction, and gets it back as it was. Of
            an address or function the store makes connections as it needs them, up to nine.
        key: A secret to seal rows with, so that those of somebody else are noticed. A store keeps
            its key: for a new one, save each session into a new store.
        owner: Who claims calls here; by default this host and process.
        behind_pooler: Whether a pooler such as PgBouncer, in transaction mode, stands between this
            process and PostgreSQL. Then no statement is prepared, which takes longer.

    No step waits without end; when its time is over, it raises `StoreError`:

    - 10 seconds for a connection: `connect_timeout` in the address changes it;
    - 15 to 25 seconds on a network that carries nothing: `tcp_user_timeout`, `keepalives_idle` and
      so on in the address;
    - 30 seconds for a statement, and for each lock: `statement_timeout` and `lock_timeout` of the
      role, or in `options` of the address;
    - 30 seconds for a client that stops in a transaction: `idle_in_transaction_session_timeout`,
      likewise;
    - 45 seconds for any answer;
    - 30 seconds for a different process that writes into SQLite.

    Raises:
        StoreError: The tables have another version, or the database cannot be opened or is not in
            UTF-8.
        MisuseError: It is not a path, a well-formed address, a pool or a function; the connections
            are not of psycopg, or not in UTF-8; the key is not bytes; or `behind_pooler` is not
            True or False, or True for SQLite.
        InvalidValueError: The key or the owner is empty, or no database keeps that owner.
        MissingExtraError: The package `psycopg` is not installed.
    """
    return Store(where, key=key, owner=owner, behind_pooler=behind_pooler)


class Store(Claims):
    """Keep the conversations of one application, made by `open_store`.

    It is thread-safe, and a context manager. A forked process needs a store of its own. Use one
    database for each application, because a worker claims with one toolset. Nothing is encrypted.
    """

    def hold(
        self, id: str, toolset: type[T], *, lease: float = 30, wait: float | None = None
    ) -> Hold[T]:
        """Take a conversation for one loop, while its block runs: nobody else goes on with it.

        Whoever comes later waits. `decide`, `claim`, `start`, `finish` and `load` go on as before;
        `save` by anybody else is a `StaleError`. An id that is not there is a new conversation.

        Args:
            id: Names the conversation, in up to 500 characters.
            toolset: The toolset of its plans.
            lease: How long it is yours without a sign of life, in seconds. It is renewed while the
                block runs; one that ran out is yours until somebody takes it.
            wait: How long to wait for whoever has it, in seconds; None for as long as it takes: in
                the block of another hold of the same conversation, forever.

        Returns:
            What gives a `Held` when it is entered, by `async with` or `with`, and then raises

            - `HeldError` if the time is up,
            - `StoreError` and `TranscriptError` if the conversation cannot be read,
            - `StaleError` if the hold ran out and somebody took it: then the block is cancelled,
              and this comes out of the `async with`; in a `with` out of the next `save`.

        Raises:
            InvalidValueError: The lease or wait is not a number of seconds, or the id is no id.
            MisuseError: It is not a toolset.

        Example:
            >>> from lutum_py import Toolset
            >>> store = open_store(":memory:")
            >>> with store.hold("ticket-7", Toolset) as desk:
            ...     desk.session.push_user("Refund my order.")
            ...     desk.commit()
            >>> len(store.load("ticket-7").session.transcript)
            1
            >>> store.close()
        """
        check_word("id", id)
        check_toolset(toolset)
        check_lease(lease)
        check_wait(wait)
        return Hold(self, self.run, id, toolset, lease, wait)

    async def run(
        self,
        id: str,
        toolset: type[T],
        *,
        lease: float = 60,
        on_event: OnEvent | None = None,
        hooks: Hooks | None = None,
        context: ContextFor | None = None,
        limit: int | None = None,
        **options: Unpack[RunOptions],
    ) -> Stored[T]:
        """Claim, start, run and finish the calls of a conversation, until none of them is ready.

        What is in doubt stays so, unless its tool is idempotent. What somebody else has claimed is
        not waited for. Leases are renewed while tools run. A tool whose lease ran out goes on, and
        is stopped only if somebody else has claimed its call since. Within a tool,
        `call.idempotency_key` is the key of its claim.

        Args:
            id: The conversation.
            toolset: The toolset that its plan belongs to.
            lease: How long a claim holds without a sign of life, in seconds; longer for a call that
                a busy process cannot start within that time.
            on_event: Called for each call that is started, and for each that has ended or waits.
            hooks: Decide about the calls that calls request, as they do, and see what these come
                to. Left out, what was requested and nobody decided about stays in
                `plan.unreviewed`.
            context: Makes the context of each call.
            limit: How many may run at once; None for all of them.
            options: More options of a run; see `lutum_py.execution.RunOptions`.

        Returns:
            The conversation as it is then.

        Raises:
            MisuseError: A hidden parameter is missing, or a tool has no function; or a hook set
                with after-hooks decided about calls within others, and is not passed.
            HookError: A hook raised about a call within another; the next run calls it again.
            StoreError: There is no such conversation, a row was edited, or the database failed;
                `outcomes_of(error)` gives the outcomes of calls.
            PlanError: The plan does not load, or does not fit its rows; or a tool left bytes to
                come back to, and the store has no key.
            ExecutionErrors: `around` raised, which gives a call back whose tool was not started,
                or, under `raise_errors`, some tools did.
            InvalidValueError: The id is no id, a number of seconds is invalid, or the limit is
                below 1.
            CancelledError: The task was cancelled: each tool that was started is finished with its
                outcome, and every other call is given back.
        """
        check_word("id", id)
        check_toolset(toolset)
        settings = checked_run(
            lease=lease, limit=limit, on_event=on_event, hooks=hooks, context=context, **options
        )
        async with self._beating(lease) as beat:
            await Worker(self, beat, id, toolset, lease, settings).run()
        return await in_thread(self.load, id, toolset)

    @asynccontextmanager
    async def _beating(self, lease: float) -> AsyncGenerator[Beat]:
        held = self._leases.held(lease)
        beat = held.__enter__()  # it waits for nothing
        try:
            await in_thread(beat.begin)  # if this is cancelled, it may begin all the same
            yield beat
        finally:
            # In a thread, which may be busy for longer than anybody waits here.
            left = asyncio.ensure_future(asyncio.to_thread(held.__exit__, None, None, None))
            await asyncio.wait((left,), timeout=2 * LEAVE_SECONDS)
