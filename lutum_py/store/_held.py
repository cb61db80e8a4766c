"""`Held`: what a loop has of the conversation that it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from .._call.call import AnyToolCall, Hooks
from .._round.ending import ResultLike, as_results
from .._round.events import OnEvent, tell_row
from .._round.plan import ToolRoundPlan
from .._round.rows import row_of
from .._session.session import Session
from .._transcript.transcript import CommittedRound
from ..errors import MisuseError, StaleError
from ..execution._batch import ContextFor
from ..execution._settings import RunOptions
from ._checks import checked_run
from ._database import Rows
from ._records import Records
from ._rows import May
from ._run import on_this_loop, to_its_end
from ._values import Stored, Waiting

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

InDoubt: TypeAlias = Callable[[AnyToolCall], ResultLike | Awaitable[ResultLike | None] | None]
"""Finds out what became of a call that was begun and cut off: its result, or None."""

_KILLED = "the program was cut off while the tool ran."
_OVER = ("committed", "resolved", "aborted", "discarded")


class HeldRunOptions(RunOptions, total=False):
    """Say how the calls of a held conversation are run; see `store.run`."""

    lease: float
    on_event: OnEvent | None
    hooks: Hooks | None
    context: ContextFor | None
    limit: int | None


RunCalls: TypeAlias = Callable[..., Awaitable[Stored[Any]]]
"""Runs what is ready of a conversation: `store.run`."""


class Held(Generic[T_co]):
    """A conversation that is yours as long as the block of its `store.hold` runs.

    Attributes:
        session: The session; a new one where nothing is saved.
        note: A text of yours, which may be assigned; empty at first.
    """

    def __init__(
        self,
        records: Records,
        run: RunCalls,
        id: str,
        toolset: type[T_co],
        lease: float,
        may: May,
        rows: Rows,
    ) -> None:
        self._records = records
        self._run = run
        self._toolset = toolset
        self._lease = lease
        self._may = may
        head, said = records._kept(rows, id)
        self._id = id
        self.note: str = said.note
        self.session: Session = said.opened() or Session(id=id)
        # The version at which the open round was read, if it was; and whether there is one.
        self._version = None if head is None else head.version
        self._is_open = head is not None and head.plan_digest != ""
        self._plan: ToolRoundPlan[T_co] | None = None
        self._waiting: set[str] = set()

    def __repr__(self) -> str:
        return f"<conversation {self.id!r}, held: {len(self.session.transcript)} items>"

    @property
    def id(self) -> str:
        """The id of the conversation."""
        return self._id

    @property
    def plan(self) -> ToolRoundPlan[T_co] | None:
        """The plan of the open round as it was last read, or None.

        It is to be looked at, for after-hooks, and to be given up (`plan.abort`); decisions go by
        `store.decide`, and its calls are run by `run`.

        Raises:
            PlanError: As in `store.load`.
            StoreError: As in `store.load`.
        """
        if self._plan is None and self._is_open:
            self._take(self._records.load(self.id, self._toolset))
        return self._plan

    def _take(self, stored: Stored[T_co]) -> None:
        self._plan, self._version = stored.plan, stored.version
        self._waiting = self._waits()

    def _waits(self) -> set[str]:
        return set() if self._plan is None else {each.call.id for each in self._plan.suspended}

    def _check_undecided(self) -> None:
        """Refuse to go on from what is stored where the plan that was read says more.

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

    def _is_over(self) -> bool:
        return self._plan is not None and self._plan._state._closed_by in _OVER

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
            *(self.id, plan, self.note, self.session, self._version, self._may),
            stays=stays,
            turns=(in_order, across),
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
            The round; None where none was open.

        Raises:
            CommitError: A call has no result yet; nothing was changed.
            MisuseError: An after-hook has not seen a result, something was said since the round was
                opened, or the hold was left.
            StaleError: The hold ran out and was taken.
            PlanError: As in `store.load`.
            StoreError: As in `store.load`.
        """
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
            in_doubt: Is asked, sync or async, about each call that was begun and cut off, and whose
                tool is not idempotent: a result that it finds out counts. None, or no function:
                the result is `indeterminate`. Where it raises, that comes out, and the call stays
                in doubt.
            options: Those of `store.run`; the lease of a call is that of the hold by default.

        Returns:
            What waits for a decision; without `hooks=` in the options, what a call asked for and
            nobody decided about stays in `plan.asked`.

        Raises:
            MisuseError: As in `store.run`; or a call was decided on in `desk.plan`.
            HookError: As in `store.run`.
            PlanError: As in `store.run`.
            StoreError: As in `store.run`.
            ExecutionErrors: As in `store.run`.
            CommitError: What `in_doubt` gave is the result of another call.
        """
        lease = options.setdefault("lease", self._lease)
        checked_run(in_doubt=in_doubt, **options)  # also where no round is open
        again = pauses()
        while self._is_open and not self._is_over():
            self._check_undecided()
            self._take(await self._run(self.id, self._toolset, **options))
            plan = self._plan
            if plan is None or plan.is_settled:
                break
            # Nothing can be claimed: what is left waits for people. Else somebody else is at a
            # call, or one is in doubt and its lease has run out, which is ended here.
            if await in_thread(self._records._is_held_up, self.id):
                waiting = await in_thread(self._records.waiting, self.id)
                if waiting or (plan.asked and options.get("hooks") is None):
                    return waiting
            else:
                ended = await self._doubts_end(in_doubt, lease, options)
                await asyncio.sleep(0 if ended else next(again))
        return []

    def run_sync(
        self, *, in_doubt: InDoubt | None = None, **options: Unpack[HeldRunOptions]
    ) -> list[Waiting]:
        """Do the same in sync code, in an event loop of its own.

        Raises:
            MisuseError: An event loop runs already.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(in_doubt=in_doubt, **options))
        raise MisuseError("An event loop runs here. Write `await desk.run()`.")

    async def _doubts_end(
        self, in_doubt: InDoubt | None, lease: float, options: HeldRunOptions
    ) -> bool:
        """Give each call that is in doubt and must not be run again its result; whether any was."""
        records, is_any = self._records, False
        hooks, on_event = options.get("hooks"), options.get("on_event")
        while claim := await in_thread(records._claim_ready, self.id, self._toolset, lease, True):
            is_any = True
            try:
                found = None if in_doubt is None else in_doubt(claim.call)
                result = await found if isawaitable(found) else found
                if result is None:
                    result = claim.call.indeterminate(_KILLED)
                ((result,), _) = as_results([result])
                with suppress(StaleError):  # somebody else has it since
                    await in_thread(records._finish, claim, result, hooks, on_this_loop())
            except BaseException:
                with suppress(StaleError):
                    await in_thread(records.release, claim)
                raise
            if on_event is not None:
                row = row_of(claim.call, "finished", result, outer=claim._outer)
                tell_row(on_event, "ended", row)
        return is_any


def pauses() -> Iterator[float]:
    """Yield how long to wait before each next attempt, in seconds: longer each time, up to 0.5."""
    pause = 0.01
    while True:
        yield pause
        pause = min(2 * pause, 0.5)


async def in_thread(function: Callable[..., R], *arguments: Any) -> R:
    """Do what waits for a database in a thread, and to its end where the task is cancelled."""
    # A thread cannot be cancelled. If the task just left, the transaction would take effect with
    # nobody there who knows of the claim that it made.
    doing = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await to_its_end(doing)
        doing.exception()  # is told about, and not what comes out
        raise
