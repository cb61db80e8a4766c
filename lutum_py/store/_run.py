"""Run what is ready of one conversation: claim, begin, run and finish each call.

Each step that cannot be repeated is put on record before it is taken, by the same calls that a
worker of your own would make. Nothing of the database is done on the event loop. What was begun is
finished in any case: where the task is cancelled, the tools are stopped and their outcomes put on
record before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import copy
from typing import Any, Protocol

from .._call.call import AnyToolCall
from .._call.outcomes import AskingCall, SuspendedCall
from .._context.context import ToolContext
from .._round.events import CallEventKind, OnEvent, tell_row
from .._round.rows import row_of_call
from .._schema.touch import meet
from ..errors import StaleError
from ..execution._batch import ContextFor
from ..execution._outcome import (
    ExecutionCancelled,
    ExecutionErrors,
    Outcome,
    after_doubt,
    cancelled,
    is_in_doubt,
    outcomes_of,
    telling,
    was_stopped,
)
from ..execution._run import Run
from ..execution._settings import Settings
from ._values import Claim


class Records(Protocol):
    """What puts on record what is about to be done with a call, and what came of it: a store."""

    def _claim_ready(self, id: str, toolset: Any, lease: float, /) -> Claim | None: ...
    def begin(self, claim: Claim, /) -> AnyToolCall: ...
    def renew(self, claim: Claim, /) -> None: ...
    def release(self, claim: Claim, /) -> None: ...
    def finish(self, claim: Claim, outcome: Outcome, /) -> None: ...


class Worker:
    """Run the calls of one conversation that are ready, and stop when none is."""

    def __init__(
        self,
        store: Records,
        id: str,
        toolset: Any,
        *,
        lease: float,
        context: ContextFor | None,
        settings: Settings,
        on_event: OnEvent | None,
    ) -> None:
        self.store = store
        self.id = id
        self.toolset = toolset
        self.lease = lease
        self.context = context
        self.settings = settings
        self.on_event = on_event
        self.is_stopping = False
        self.faults: list[BaseException] = []
        self.raised: list[Exception] = []
        self.outcomes: list[Outcome] = []
        self._tools: set[asyncio.Task[Outcome]] = set()
        self._in_doubt: list[AnyToolCall] = []

    async def run(self) -> None:
        """Run until nothing is ready.

        Raises:
            StoreError: The database failed, or a row was edited.
            ExecutionErrors: Under `raise_errors`, some tools raised, or `around` did.
            CancelledError: The task was cancelled; what was begun is finished.
        """
        # A task of its own, so that being cancelled stops the tools in an orderly way, and not the
        # code between them that puts their outcomes on record.
        working = asyncio.ensure_future(self._run())
        try:
            await asyncio.shield(working)
        except asyncio.CancelledError as stop:
            self.stop()
            await to_its_end(working)
            raise stop from ExecutionCancelled(self.outcomes)
        for fault in self.faults:
            raise telling(fault, self.outcomes)
        if self.raised:
            raise ExecutionErrors.of(self.raised, self.outcomes)

    def stop(self) -> None:
        """Begin nothing more, and ask what runs to end."""
        self.is_stopping = True
        for tool in self._tools:
            if tool is not asyncio.current_task():
                tool.cancel()

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while True:
            claim = await self._next(len(tasks))
            if claim is not None:
                tasks.add(asyncio.create_task(self._work(claim)))
            elif tasks:
                _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return

    async def _next(self, running: int) -> Claim | None:
        if self.is_stopping or running == self.settings.limit:
            return None
        try:
            return await asyncio.to_thread(
                self.store._claim_ready, self.id, self.toolset, self.lease
            )
        except Exception as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return None

    def _fail(self, error: BaseException) -> None:
        self.is_stopping = True
        self.faults.append(error)

    async def _work(self, claim: Claim) -> None:
        """Do one claim from its beginning to its end; what fails is noted."""
        try:
            run = None if self.is_stopping else self._prepared(claim)
        except Exception as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            run = None
        try:
            if run is None:
                with suppress(StaleError):
                    await asyncio.to_thread(self.store.release, claim)
                return
            with suppress(StaleError):
                # The database does not know of doubts yet that this process has just met: a tool
                # that was stopped may still write the file that the next call reads.
                if claim._is_in_order and (doubtful := self._doubt_before(run.call)) is not None:
                    await self._finish(claim, run.call, after_doubt(run.call, doubtful))
                    return
                asked = asyncio.get_running_loop().time()
                await asyncio.to_thread(self.store.begin, claim)
                await self._run_begun(claim, run, asked)
        except Exception as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)

    def _prepared(self, claim: Claim) -> Run:
        """Check all that can be wrong with a run before it is on record that it begins."""
        # A copy, because the call of the claim has to stay as it is: `store.finish` compares with
        # it.
        call = claim.call.again() if claim.in_doubt else copy(claim.call)
        call._let_go(claim._key_begins)
        # Always with a context, so that there is a token by which a lost lease stops the tool.
        context = ToolContext.for_call(call) if self.context is None else self.context(call)
        return Run(call, context, self.settings, note=self._note)

    def _note(self, error: Exception, *_: object) -> None:
        self.raised.append(error)

    async def _run_begun(self, claim: Claim, run: Run, asked: float) -> None:
        """Run a call of which it is on record that it begins, and put on record how it ends.

        Args:
            claim: The claim.
            run: How it is run.
            asked: When it was to be put on record, from which on the lease holds.
        """
        call = run.call
        self._tell("begun", call)
        renewing = asyncio.create_task(self._renew(claim, run, asked))
        try:
            outcome = await self._outcome(run)
        finally:
            is_lost = renewing.done()
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        if is_lost and claim.idempotent and was_stopped(outcome):
            return  # it was this worker that failed, not the call: it is claimed and run again
        if is_in_doubt(outcome):
            self._in_doubt.append(call)
        await self._finish(claim, call, outcome)

    def _doubt_before(self, call: AnyToolCall) -> AnyToolCall | None:
        """Find a call of this run that perhaps still works on what another one touches."""
        return next((each for each in self._in_doubt if meet(each.touches, call.touches)), None)

    async def _finish(self, claim: Claim, call: AnyToolCall, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        await asyncio.to_thread(self.store.finish, claim, outcome)
        self._tell("ended", call, outcome)

    async def _outcome(self, run: Run) -> Outcome:
        tool = asyncio.create_task(self._guarded(run))
        self._tools.add(tool)
        if self.is_stopping:
            tool.cancel()
        try:
            return await tool
        except asyncio.CancelledError as stop:
            for outcome in outcomes_of(stop):
                return outcome
            why = "not executed, because the run was cancelled before it started."
            return cancelled(run.call, why)
        except Exception as error:  # noqa: BLE001 - of `around`, before the tool was begun
            self.raised.append(error)
            return cancelled(run.call, f"not executed: {type(error).__name__} came before it.")
        finally:
            self._tools.discard(tool)

    async def _guarded(self, run: Run) -> Outcome:
        """Keep what is no `Exception` from tearing down the loop; it is raised in the end."""
        try:
            return await run.run()
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            self.stop()
            return outcomes_of(error)[0]

    async def _renew(self, claim: Claim, run: Run, asked: float) -> None:
        """Renew a lease until the tool has ended; where it is lost, stop the tool.

        Only the clock of this loop is asked: the lease holds from when it was last asked for, and
        whoever does not hear of it by then is like one that was refused.
        """
        loop = asyncio.get_running_loop()
        end = asked + claim.lease
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(claim.lease / 3, left))
            asked = loop.time()
            try:
                async with asyncio.timeout_at(end):
                    await asyncio.to_thread(self.store.renew, claim)
            except (StaleError, TimeoutError):
                break
            except Exception:  # noqa: BLE001 - it may work again before the lease is over
                continue
            end = asked + claim.lease
        run.cancel("its lease was lost, so somebody else may run the call")

    def _tell(self, kind: CallEventKind, call: AnyToolCall, outcome: Outcome | None = None) -> None:
        if self.on_event is None:
            return
        if isinstance(outcome, SuspendedCall):
            tell_row(self.on_event, "suspended", row_of_call(call, "suspended"))
        elif outcome is None or isinstance(outcome, AskingCall):
            tell_row(self.on_event, kind, row_of_call(call))
        else:
            tell_row(self.on_event, kind, row_of_call(call, "finished", outcome))


async def to_its_end(task: asyncio.Future[Any]) -> None:
    """Wait for a task that ends by itself soon, also where cancellation is asked for again."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))
