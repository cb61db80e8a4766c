"""`Hold`: one conversation for one loop at a time, over threads and processes; and `Held`, its use.

A hold is a row beside the conversation: who has it, and until when. It is taken, renewed and given
back by one statement each, and whoever saves without one takes it for that transaction. So it is
taken before the conversation is locked, everywhere.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from math import inf
from time import monotonic, sleep
from typing import Any, Generic, TypeAlias, TypeVar, Unpack, cast
from uuid import uuid4

from .. import AnyToolCall, CommittedRound, Session, ToolRoundPlan
from .._call.deciding import drive
from .._round.ending import as_results
from .._round.events import row_at, tell_row
from .._text.immutable import settle
from ..errors import HeldError, LutumError, MisuseError, StaleError
from ..execution import ContextFor, RunOptions
from ..execution._settings import check_function
from ..typing import Hooks, OnEvent, ResultLike
from ._backend import in_thread
from ._claims import Claims, Wanted
from ._database import Rows
from ._records import note_of, opened_session
from ._rows import Head, give_back, holder, owner_of, take_hold
from ._run import pauses
from ._values import Stored, Waiting, checked_run

R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

InDoubt: TypeAlias = Callable[[AnyToolCall], ResultLike | Awaitable[ResultLike | None] | None]
"""Finds out what became of a call that was started and cut off: its result, or None."""

_KILLED = "the program was cut off while the tool ran."
_OVER = ("committed", "resolved", "aborted", "discarded")


class HeldRunOptions(RunOptions, total=False):
    """Say how the calls of a held conversation are run; see `store.run`."""

    lease: float
    on_event: OnEvent | None
    hooks: Hooks | None
    context: ContextFor | None
    limit: int | None


class Held(Generic[T_co]):
    """A conversation that is yours as long as the block of its `store.hold` runs.

    Attributes:
        session: The session; a new one if nothing is saved.
        note: A text of yours, which may be assigned; empty at first.
    """

    __slots__ = (
        *("_hold", "_is_open", "_plan", "_records", "_session", "_version", "_waiting"),
        "note",
    )
    session: Session

    def __init__(self, hold: Hold[T_co], rows: Rows) -> None:
        self._hold = hold
        self._records = hold._records
        head = Head.at(rows, self.id, locked=False)
        note, session = (None, None) if head is None else head.texts(rows, "note", "session")
        self.note: str = note_of(note)
        self._session = opened_session(session) or Session(id=self.id)
        # The version at which the open round was read, if it was; and whether there is one.
        self._version = None
        if head is not None:
            self._version = head.version + self._records._count(rows, head)
        self._is_open = head is not None and head.round != ""
        self._plan: ToolRoundPlan[T_co] | None = None
        self._waiting: set[str] = set()

    def __repr__(self) -> str:
        return f"<conversation {self.id!r}, held: {len(self.session.transcript)} items>"

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._hold._id

    @property
    def plan(self) -> ToolRoundPlan[T_co] | None:
        """The plan of the open round as it was last read, or None.

        Look at it, let after-hooks see it, or give it up (`plan.abort`); decisions go by
        `store.decide`, and its calls are run by `run`.

        Raises:
            StaleError: The hold ran out and was taken.
            PlanError: As in `store.load`.
            StoreError: As in `store.load`.
        """
        if self._plan is None and self._is_open:
            stored = self._records.load(self.id, self._hold._toolset)
            self._hold._check_held()
            self._take(stored)
        return self._plan

    def _take(self, stored: Stored[T_co]) -> None:
        self._plan, self._version = stored.plan, stored.version
        self._waiting = self._waits()

    def _waits(self) -> set[str]:
        return set() if self._plan is None else {each.call.id for each in self._plan.suspended}

    def _check_undecided(self) -> None:
        """Refuse to go on from what is stored if the plan that was read has more.

        Raises:
            MisuseError: A call that waits in the store was decided on in the plan.
        """
        for id in self._waiting - self._waits():
            self._plan, self._waiting = None, set()  # what is stored is what counts
            raise MisuseError(
                f"Call {id!r} was decided on in the plan of conversation {self.id!r}, which is "
                "only looked at, so that nothing of it is kept. Write "
                f"`store.decide({self.id!r}, decision, toolset)`, and go on with `desk.run()`."
            )

    def _check_none_asked(self, plan: ToolRoundPlan[T_co]) -> None:
        """Refuse to go on if nobody would ever review what a call requested.

        Raises:
            MisuseError: A call requested others that nobody reviewed.
        """
        if plan.unreviewed:
            asked = plan.unreviewed[0]
            raise MisuseError(
                f"Call {asked.id!r} of tool {asked.name!r} was requested by another call of "
                f"conversation {self.id!r}, and nobody reviewed it. Pass the hooks: "
                "`await desk.run(hooks=hooks)`. What was done is on record, and goes on from there."
            )

    def _is_over(self) -> bool:
        return self._plan is not None and self._plan.closed_by in _OVER

    def save(
        self,
        plan: ToolRoundPlan[Any] | None = None,
        *,
        in_order: bool | None = None,
        across: Iterable[str] | None = None,
    ) -> None:
        """Keep session, note and plan, all or nothing.

        Args:
            plan: The plan of a round, which is closed by this. Left out, an open round stays as it
                is stored; one that was committed, aborted or discarded is gone.
            in_order: As in `store.save`.
            across: As in `store.save`.

        Raises:
            MisuseError: It is not a plan, or another than that of the open round; what was assigned
                to `session` or `note` has the wrong type; a call was decided on in
                `desk.plan`; or the hold was left.
            StaleError: The hold ran out and was taken; or the round that this would end has changed
                since its plan was read.
            PlanError: As in `store.save`.
            TranscriptError: As in `store.save`.
            RoundClosedError: As in `store.save`.
            StoreError: The database failed, or the conversation was edited.
        """
        for name, wanted in (("note", "a text"), ("session", "a Session")):
            # `store.save` would take it for what is left out, and keep what there was.
            if getattr(self, name) is None:
                raise MisuseError.of_field("Held.save", name, wanted, None)
        is_over = self._is_over()
        if plan is not None and self._is_open and not is_over and plan is not self._plan:
            raise MisuseError(
                f"A round of conversation {self.id!r} is open, and this is the plan of another. "
                "Run that one and commit it first, `await desk.run()` and `desk.commit()`, or give "
                "it up: `desk.plan.abort(desk.session)`."
            )
        # An open round that was only looked at is not written again: a worker may be at one of its
        # calls.
        stays = plan is None and self._is_open and not is_over
        if stays:
            self._check_undecided()
        version = self._records._save(
            *(self.id, plan, self.note, self.session, self._version, self._hold._may_save),
            *(in_order, across),
            stays=stays,
        )
        if not stays:
            self._plan, self._is_open = None, plan is not None
            self._waiting = set()
        # If the round stays, `version` is one more than whatever the store has now. It is that of
        # the plan that was read here only if nobody came between.
        if not stays or self._version == version - 1:
            self._version = version

    def commit(self) -> CommittedRound | None:
        """End the open round, if there is one, as `plan.commit(session)` does, and save.

        Returns:
            The round; None if none was open.

        Raises:
            CommitError: A call has no result yet; nothing was changed.
            MisuseError: An after-hook has not seen a result, something was pushed since the round
                was opened, or the hold was left.
            StaleError: The hold ran out and was taken.
            PlanError: As in `store.load`.
            StoreError: As in `store.load`.
        """
        self._hold._check_here()  # before anything is pushed to the session
        plan = self.plan
        done = None if plan is None or self._is_over() else plan.commit(self.session)
        self.save()
        return done

    async def run(
        self, *, in_doubt: InDoubt | None = None, **options: Unpack[HeldRunOptions]
    ) -> list[Waiting]:
        """Run the calls of the open round, until each has its result or waits for a decision.

        As `store.run` does it; but what others have claimed is waited for.

        Args:
            in_doubt: Is asked, sync or async, about each call that was started and cut off, and
                whose tool is not idempotent: a result that it finds out counts. None, or no
                function: the result is `indeterminate`. If it raises, that comes out, and the call
                stays in doubt.
            options: Those of `store.run`; the lease of a call is that of the hold by default.

        Returns:
            What waits for a decision.

        Raises:
            MisuseError: As in `store.run`; a call was decided on in `desk.plan`; `in_doubt` gave no
                result; a call requested others, and there are no `hooks=` to decide about these,
                which stay on record; or the hold was left.
            StaleError: The hold ran out and was taken.
            HookError: As in `store.run`.
            PlanError: As in `store.run`.
            StoreError: As in `store.run`.
            ExecutionErrors: As in `store.run`.
            InvalidValueError: As in `store.run`.
            CommitError: What `in_doubt` gave is the result of another call.
        """
        self._hold._check_here()
        lease = options.setdefault("lease", self._hold._lease)
        check_function("in_doubt", in_doubt)
        checked_run(**options)  # also if no round is open
        again = pauses()
        while self._is_open and not self._is_over():
            self._check_undecided()
            stored = await self._hold._run(self.id, self._hold._toolset, **options)
            await in_thread(self._hold._check_held)
            self._take(stored)
            plan = self._plan
            if plan is None or plan.is_settled:
                break
            # If nothing is claimed or can be, what is left waits for people. Otherwise somebody
            # else is at a call, or one is in doubt and its lease has run out: it is ended here.
            if await in_thread(self._records._is_held_up, self.id):
                if options.get("hooks") is None:
                    self._check_none_asked(plan)
                waiting = await in_thread(self._records.waiting, self.id)
                if waiting:
                    return waiting
            else:
                ended = await self._end_doubts(in_doubt, lease, options)
                await asyncio.sleep(0 if ended else next(again))
        return []

    def run_sync(
        self, *, in_doubt: InDoubt | None = None, **options: Unpack[HeldRunOptions]
    ) -> list[Waiting]:
        """Do as `run` does in sync code, in an event loop of its own.

        Raises:
            MisuseError: An event loop runs already.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(in_doubt=in_doubt, **options))
        raise MisuseError("An event loop runs here. Write `await desk.run()`.")

    async def _end_doubts(
        self, in_doubt: InDoubt | None, lease: float, options: HeldRunOptions
    ) -> bool:
        """Give each call that is in doubt and must not be run again its result; whether any was."""
        records, toolset, is_any = self._records, cast("Any", self._hold._toolset), False
        hooks, on_event = options.get("hooks"), options.get("on_event")
        once = [tool.name for tool in toolset if not tool.definition.idempotent]
        passed = records._leases.running(self.id)
        wanted = Wanted(self.id, passed=passed, again=once, only_again=True)
        while claims := await in_thread(records._claim, toolset, wanted, lease, 1):
            (claim,) = claims
            is_any = True
            try:
                found = None if in_doubt is None else in_doubt(claim.call)
                result = await found if isawaitable(found) else found
                if result is None:
                    result = claim.call.indeterminate(_KILLED)
                results, waits = as_results([result])
                if waits:
                    raise MisuseError(
                        "`in_doubt` gives the result of a call, or None, and not a call that "
                        "waits. To leave it in doubt, raise an exception."
                    )
                with suppress(StaleError):  # somebody else has it since
                    await drive(records._settling(claim, results[0], hooks, []))
                    await in_thread(records._end, claim, results[0])
                    if on_event is not None:
                        row = row_at(claim._tree.plan._state, claim.call._record)
                        tell_row(on_event, "ended", row)
            except BaseException:
                with suppress(StaleError):
                    await in_thread(records.release, claim)
                raise
        return is_any


settle(Held, "it is what was held. Change it by its methods, and save by `commit`.", "session")


@dataclass(eq=False, repr=False, slots=True)
class Hold(Generic[T_co]):
    """A conversation that will be yours alone, made by `store.hold`; enter it once.

    `async with` renews it by a task, `with` by a daemon thread. Leaving saves nothing. See
    `store.hold`.
    """

    _records: Claims
    _run: Callable[..., Awaitable[Stored[Any]]]
    _id: str
    _toolset: type[T_co]
    _lease: float
    _wait: float | None
    _token: str = field(default_factory=lambda: uuid4().hex)
    _other: str = "somebody else"
    _is_entered: bool = False
    _is_left: threading.Event = field(default_factory=threading.Event)
    _lost: StaleError | None = None
    # What one of the two ways of entering has.
    _task: asyncio.Task[Any] = field(init=False)
    _cancelled_before: int = field(init=False)
    _renewing: asyncio.Task[None] = field(init=False)
    _thread: threading.Thread = field(init=False)

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

        def take(rows: Rows) -> Held[T_co] | None:
            taken = take_hold(rows, self._id, self._token, self._records._owner, self._lease)
            return Held(self, rows) if taken else None

        return self._records._database.transact(take)

    def _renew(self) -> bool:
        """Let the lease begin again; return whether it is still held."""
        database = self._records._database
        ((renewed, _),) = database.beat(
            (
                "UPDATE lutum_hold SET until = {now} + ? WHERE conversation = ? AND token = ?",
                (round(1000 * self._lease), self._id, self._token),
            )
        )
        if renewed == 0:
            with database.read() as rows:
                self._lost = self._stale(rows)
        return self._lost is None

    def _check_here(self) -> None:
        """Refuse to go on once the block was left.

        Raises:
            MisuseError: It was left.
        """
        if self._is_left.is_set():
            left = f"The hold of conversation {self._id!r} was left."
            raise MisuseError(f"{left} Call `store.hold` again.")

    def _check_held(self) -> None:
        """Make sure that what was read before this is what the hold was taken for.

        The next owner may have opened another round by then, to which the session does not belong.

        Raises:
            StaleError: Somebody took it.
        """
        with self._records._database.read() as rows:
            self._check_token(rows)

    @contextmanager
    def _may_save(self, rows: Rows) -> Generator[None]:
        """Make sure that it is still held, until this transaction ends.

        Raises:
            MisuseError: It was left.
            StaleError: Somebody took it.
        """
        self._check_here()
        self._check_token(rows, "{lock}")
        yield

    def _check_token(self, rows: Rows, lock: str = "") -> None:
        found = rows.one(f"SELECT token FROM lutum_hold WHERE conversation = ? {lock}", self._id)
        if found != (self._token,):
            raise self._stale(rows)

    def _stale(self, rows: Rows) -> StaleError:
        return StaleError(
            f"The hold of conversation {self._id!r} ran out, and was taken by "
            f"{owner_of(rows, self._id)}. Nothing was changed. Take it again with "
            "`store.hold(id, toolset)`, and go on from what is saved."
        )

    def _leave(self) -> None:
        """Give it back; if the database fails, its lease runs out."""
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
        # renewing task, which cancels if the hold was lost. Only the last becomes a `StaleError`.
        is_cancelled = self._renewing.done()  # it ends by itself only after it has cancelled
        self._renewing.cancel()
        # The cancellation that came from `_keep_async` is taken back, or an `asyncio.timeout`
        # around the block would take it for its own. If the count is still higher than at the
        # beginning, somebody else has cancelled too, and that has to go on.
        is_ours = is_cancelled and self._task.uncancel() <= self._cancelled_before
        await in_thread(self._leave)
        if self._lost is not None and (
            kind is None or (is_ours and issubclass(kind, asyncio.CancelledError))
        ):
            raise self._lost from error
