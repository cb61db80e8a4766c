"""`Store`: what users open. What it does to the calls of a round is in `Claims`."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from random import uniform
from typing import Any, ClassVar, Self, TypeVar, Unpack, overload

from .. import AnyToolCall, Decision, Session, ToolRoundPlan
from .._text.immutable import Settled
from ..errors import MisuseError
from ..execution import ContextFor, RunOptions
from ..saved import check_key
from ..typing import HookOutcome, Hooks, NotEnded, OnEvent, ResultLike
from ._backend import LEAVE_SECONDS, in_thread
from ._claim_order import lock_calls
from ._claims import Claims, Wanted
from ._database import Rows, StoreLocation, database_at
from ._hold import Hold, Holding
from ._leases import Beat
from ._records import Saving, end_round, page
from ._rows import IS_CLAIMED, MAY_BE_DUE, SavedCall, check_word, held_by_nobody, ids_in, prepare
from ._run import Worker
from ._values import (
    Claim,
    Stored,
    StoredRound,
    Waiting,
    check_claim,
    check_lease,
    check_limit,
    check_page,
    check_seconds,
    check_toolset,
    check_wait,
    checked_run,
)

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


class Store(Settled):
    """Keep the conversations of one application, made by `open_store`.

    It is thread-safe, and a context manager. A forked process needs a store of its own. Use one
    database for each application, because a worker claims with one toolset. Nothing is encrypted.
    """

    _way: ClassVar[str] = "a store goes by what it was opened with. Call `open_store` again."

    def __setattr__(self, name: str, value: object) -> None:
        # Whoever tests a program may put a function in the place of a method, which then counts.
        if callable(getattr(type(self), name, None)):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)  # there is nothing to take away but such a function

    def __init__(
        self,
        where: StoreLocation,
        *,
        key: bytes | None = None,
        owner: str | None = None,
        behind_pooler: bool = False,
        is_there: bool = False,
    ) -> None:
        MisuseError.check_flag("behind_pooler", behind_pooler)
        check_key(key)
        own = f"{socket.gethostname()}:{os.getpid()}" if owner is None else owner
        check_word("owner", own)
        self._claims = Claims(database_at(where, key, behind_pooler), own)
        try:
            prepare(self._claims.database, is_there=is_there)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """Where the store is, as messages name it: without a password."""
        return self._claims.database.name

    def close(self) -> None:
        """Close the connections to the database."""
        self._claims.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store at {self.name}>"

    # Conversations.

    def save(
        self,
        id: str,
        plan: ToolRoundPlan[Any] | None,
        *,
        session: Session | None = None,
        note: str | None = None,
        version: int | None = None,
        in_order: bool | None = None,
        across: Iterable[str] | None = None,
    ) -> int:
        """Keep a session and the plan of its open round, both or nothing.

        The plan is closed before the transaction ends. If the database fails right then, the plan
        can only be saved again: nobody may know whether it is on record.

        Args:
            id: Names the conversation, in up to 500 characters.
            plan: The plan, which is closed once it is saved; None if no round is open.
            session: The session: its transcript and its id. Left out, the one that is kept stays.
            note: A text of yours, empty at first. Left out, the one that is kept stays.
            version: The version that this one comes after; None makes a conversation.
            in_order: Whether the calls of this round that access the same keep the order of the
                turn, see `plan.order()`: one is given out, in whichever process, once the earlier
                ones that it conflicts with have their results. Left out, it stays as it is for the
                round.
            across: Areas, such as `files`, that this round shares with all conversations that name
                them too: no call is given out while one that accesses the same there is claimed or
                started elsewhere under a live lease. Left out, they stay for the round.

        Returns:
            The version that it is now.

        Raises:
            StaleError: The conversation is there already, or has changed since, or since the plan
                was loaded.
            MisuseError: The plan is kept as another conversation, or something is of a wrong type.
            PlanError: The plan has no JSON form, or a call has ended that was not recorded.
            LifecycleError: Hooks of a newer plan of the round decided about a call.
            TranscriptError: The transcript has no JSON form.
            RoundClosedError: The round has ended.
            StoreError: There is no such conversation, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)
        may = held_by_nobody(id, self._claims.owner)
        what = Saving(id, plan, note, session, version, in_order, across)
        return self._claims.save(what, may)

    @overload
    def load(self, id: str, toolset: type[T]) -> Stored[T]: ...

    @overload
    def load(self, id: str, toolset: None = None) -> Stored[Any]: ...

    def load(self, id: str, toolset: Any = None) -> Stored[Any]:
        """Return a conversation as it is now.

        Args:
            id: Names the conversation.
            toolset: The toolset that its plan belongs to; without it the plan is left out, so that
                one that no longer loads can be given up with `save(id, None, ...)`.

        Returns:
            The conversation; its plan is open, and may be committed, or changed and saved again.

        Raises:
            StoreError: There is no such conversation, it was edited, or the database failed.
            PlanError: The plan was edited, or does not fit the toolset any more.
            TranscriptError: The transcript was saved by another release.
            InvalidValueError: The id is no id.
            MisuseError: It is not a toolset.
        """
        check_word("id", id)
        if toolset is not None:
            check_toolset(toolset)
        return self._claims.load(id, toolset)

    def ids(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the ids of conversations, in order.

        Args:
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a page: an id or a number does not fit.
        """
        check_page(limit, after)
        with self._claims.database.read() as rows:
            query = "SELECT id FROM lutum_conversation WHERE id > ?"
            return ids_in(page(rows, query, limit, after))

    def settled(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the ids of the conversations whose open round has every result, and may go on.

        Args:
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a page: an id or a number does not fit.
        """
        check_page(limit, after)
        query = (
            "SELECT id FROM lutum_conversation WHERE round <> '' AND id > ? AND NOT EXISTS "
            "(SELECT 1 FROM lutum_call WHERE conversation = id AND state <> 'done')"
        )
        with self._claims.database.read() as rows:
            return ids_in(page(rows, query, limit, after))

    def delete(self, id: str) -> None:
        """Forget a conversation, its id included.

        Raises:
            MisuseError: A call of it is claimed, runs or is in doubt, or it is held by somebody.
            StoreError: There is no such conversation, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)

        def forget(rows: Rows) -> None:
            with held_by_nobody(id, self._claims.owner)(rows):
                self._claims.head(rows, id)
                lock_calls(rows, id)
                which = f"conversation = ? AND (state = 'started' OR {IS_CLAIMED}) ORDER BY call"
                for row in SavedCall.where(rows, which, id):
                    raise MisuseError(
                        f"Conversation {id!r} is not deleted: its call {row.call!r} of tool "
                        f"`{row.tool}` is claimed, runs or is in doubt. Finish it, or give "
                        "the round up with `plan.abort` and save that."
                    )
                end_round(rows, id)
                rows.run("DELETE FROM lutum_decision WHERE conversation = ?", id)
                rows.run("DELETE FROM lutum_conversation WHERE id = ?", id)

        self._claims.database.transact(forget)

    def unchanged_since(
        self, seconds: float, *, after: str = "", limit: int | None = None
    ) -> list[str]:
        """Return the ids of conversations that were saved last so many seconds ago, or earlier.

        Args:
            seconds: How long they were left alone at least.
            after: Only those behind this id, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a number of seconds, or of ids.
        """
        check_seconds("seconds", seconds)
        check_page(limit, after)
        query = "SELECT id FROM lutum_conversation WHERE changed <= {now} - ? AND id > ?"
        with self._claims.database.read() as rows:
            return ids_in(page(rows, query, limit, round(1000 * seconds), after))

    def read(self, id: str) -> StoredRound:
        """Read a conversation and its open round without its tools, to look at.

        Raises:
            StoreError: There is no such conversation, it was edited, or the database failed.
            TranscriptError: The transcript was saved by another release.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)
        return self._claims.read(id)

    # Decisions.

    def waiting(
        self,
        id: str | None = None,
        *,
        tool: str | None = None,
        older_than: float | None = None,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> list[Waiting]:
        """Return the calls that wait for a decision, by conversation and call.

        Args:
            id: The conversation; by default all of them.
            tool: Only calls of the tool with this wire name.
            older_than: Only calls that have waited for so many seconds.
            after: Only those behind this conversation and call, as for the next page.
            limit: How many at most; None for all of them.

        Raises:
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id, or it is not a page: a text or number does not fit.
        """
        return self._claims.waiting(id, tool, older_than, after, limit)

    def decide(
        self,
        id: str,
        decision: Decision,
        toolset: type[Any],
        *,
        hooks: Hooks | None = None,
        on_event: OnEvent | None = None,
    ) -> HookOutcome | None:
        """Take a decision into the stored plan.

        Args:
            id: The conversation.
            decision: The decision; delivered twice, it counts once.
            toolset: The toolset that the plan belongs to.
            hooks: The hooks that an edit is sent through, which have to be sync. For async ones,
                load the conversation, `await plan.amend(decision, hooks)`, and save it.
            on_event: Called with the new state of the call, once that is on record.

        Returns:
            What became of the call, as `plan.resume` returns it (claim a call before it
            runs), or None if this decision was taken in before.

        Raises:
            ResumeError: No call waits for it any more, or another version of it was decided on, or
                the decision's result or edit does not fit; nothing changed.
            MisuseError: It is not a decision; or it edits arguments, and there are no hooks, or one
                of them is async; or `on_event` is not a function.
            HookError: A hook raised; nothing changed.
            ToolDefinitionError: As in `plan.resume`.
            MissingExtraError: As in `plan.resume`.
            PlanError: As in `load`.
            StoreError: There is no such conversation, it was edited, or the database failed.
            InvalidValueError: The id is no id.
        """
        check_word("id", id)
        check_toolset(toolset)
        return self._claims.decide(id, decision, toolset, hooks, on_event)

    # Calls.

    def claim(
        self, toolset: type[Any], *, id: str | None = None, lease: float = 60
    ) -> Claim | None:
        """Take the next call that may be run, for the length of a lease.

        That is one that nobody has started, or one that was started and whose lease ran out: it is
        in doubt. Those that have been free for longest come first. A call that cannot be claimed,
        because its row or plan does not fit, raises once, and is then left alone for the length of
        the lease. One whose turn has not come is left out: see `in_order` and `across` of `save`.

        Args:
            toolset: The toolset that the plans belong to.
            id: The conversation; by default any.
            lease: How long it is yours, in seconds. It has to outlast the tool, or be renewed.

        Returns:
            The claim; None if no call may be run now.

        Raises:
            PlanError: The plan of a row does not load, or does not allow that call to run.
            StoreError: A row was edited, or the database failed.
            InvalidValueError: The id is no id, or the lease is not a number of seconds.
            MisuseError: It is not a toolset.
        """
        return next(iter(self.claim_many(toolset, 1, id=id, lease=lease)), None)

    def claim_many(
        self, toolset: type[Any], limit: int, *, id: str | None = None, lease: float = 60
    ) -> list[Claim]:
        """Take several calls at once, as `claim` takes one: those that you can start at once.

        Args:
            toolset: The toolset that the plans belong to.
            limit: How many at most.
            id: The conversation; by default any.
            lease: How long they are yours, in seconds, each by itself.

        Returns:
            The claims; none if no call may be run now.

        Raises:
            PlanError: As in `claim`; the other calls are given back.
            StoreError: As in `claim`.
            InvalidValueError: The id is no id, or the lease or limit is not a number that fits.
            MisuseError: It is not a toolset.
        """
        if id is not None:
            check_word("id", id)
        check_toolset(toolset)
        check_lease(lease)
        check_limit(limit)
        wanted = Wanted(id, passed=self._claims.unfit_here())
        return [*self._claims.claim(toolset, wanted, lease, limit)]

    def start(self, claim: Claim) -> AnyToolCall:
        """Put on record that a call is about to run, and give the call that can be.

        The lease begins again. If this fails, run nothing; it may be tried again.

        Raises:
            MisuseError: The call is in doubt and its tool is not idempotent, or this claim has
                started it already.
            LifecycleError: It has ended already.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        return self._claims.start(check_claim(claim, "start"))

    def renew(self, claim: Claim) -> None:
        """Let a lease begin again.

        Raises:
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        self._claims.renew(check_claim(claim, "renew"))

    def release(self, claim: Claim) -> None:
        """Give back a call that was not started by this claim.

        Raises:
            MisuseError: It was started, so that it has to be finished.
            StaleError: A later claim was made, the call has its result, or the round is over.
            StoreError: The database failed.
        """
        self._claims.release(check_claim(claim, "release"))

    def finish(
        self, claim: Claim, outcome: ResultLike | NotEnded, *, hooks: Hooks | None = None
    ) -> None:
        """Put on record the outcome of a call.

        If the database fails, this may be tried again.

        Args:
            claim: The claim.
            outcome: A result of this call, or the call that suspended itself, which waits again, or
                that requests others, which may be claimed again once each of these has its result.
            hooks: Of a call that requests others, they decide about these; else these wait for
                `load`, `plan.apply_hooks` and `save`. Of a call within another, their after-hooks
                see the result. They have to be sync.

        Raises:
            CommitError: It is the result of another call.
            LifecycleError: It is another call that waits, or one that does not wait any more.
            StaleError: A later claim was made, the call has its result, or the round is over. What
                a tool did under this claim is in the steps of the call, as `late`, unless the round
                is over.
            MisuseError: A hook is async; or after-hooks have to see the result of a call within
                another, and no hook set is passed.
            HookError: A hook raised. Nothing changed, except that a result is on record, which
                after-hooks are still to see: by `store.finish` of this claim or the next.
            PlanError: A tool left bytes to come back to, and the store has no key.
            StoreError: The database failed.
        """
        self._claims.finish(check_claim(claim, "finish"), outcome, hooks)

    def wait(self, timeout: float = 60) -> None:
        """Return when there may be something to claim, or when the time is over.

        That is at a notice of somebody who wrote, when the next lease ends, and after about a
        second in any case: a notice may be lost. Then try `claim` again.

        Args:
            timeout: How long at most, in seconds.

        Raises:
            StoreError: The database failed.
            InvalidValueError: It is not a number of seconds.
        """
        check_seconds("timeout", timeout)
        with self._claims.database.read() as rows:
            found = rows.one(
                # One that ended before this was there to be claimed, and nobody here wants it.
                f"SELECT MIN(due) - {{now}} FROM lutum_call WHERE due > {{now}} AND {MAY_BE_DUE}"
            )
        until_due = timeout if found is None or found[0] is None else found[0] / 1000
        self._claims.database.wait_for_notice(max(0, min(timeout, until_due, uniform(0.8, 1.2))))

    # Loops.

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
        return Hold(Holding(self._claims, self.run, id, toolset, lease, wait))

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
            await Worker(self._claims, beat, id, toolset, lease, settings).run()
        return await in_thread(self._claims.load, id, toolset)

    @asynccontextmanager
    async def _beating(self, lease: float) -> AsyncGenerator[Beat]:
        held = self._claims.leases.held(lease)
        beat = held.__enter__()  # it waits for nothing
        try:
            await in_thread(beat.begin)  # if this is cancelled, it may begin all the same
            yield beat
        finally:
            # In a thread, which may be busy for longer than anybody waits here.
            left = asyncio.ensure_future(asyncio.to_thread(held.__exit__, None, None, None))
            await asyncio.wait((left,), timeout=2 * LEAVE_SECONDS)
