"""Run what is ready of one conversation: claim, start, run and finish each call.

Each step that cannot be repeated is put on record before it is taken, by the same calls that a
worker of your own would make. Nothing of the database is done on the event loop. What was started
is finished in any case: if the task is cancelled, the tools are stopped and their outcomes put on
record before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic, time
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

from .._call.call import AnyToolCall
from .._call.drivers import HookGenerator, drive
from .._call.history import Step, steps_of_kind
from .._call.lifecycle import STAGES
from .._call.outcomes import AwaitingCall, SuspendedCall
from .._context.context import ToolContext
from .._context.threads import run_in_thread, wait_for_thread
from .._round.events import CallEvent, CallEventKind, tell_event, tell_row
from .._round.inner import is_unshown
from .._round.rows import row_of
from .._schema.resource_access import meet
from .._text.own_code import is_interrupt
from .._transcript.result import ToolResult
from ..errors import HookError, StaleError
from ..execution._outcome import (
    ExecutionCancelled,
    ExecutionErrors,
    Outcome,
    as_error,
    is_in_doubt,
    not_executed,
    telling,
    was_stopped,
)
from ..execution._run import Run, to_its_end
from ..execution._settings import Settings
from ._checks import check_sees
from ._claim_order import ClaimOrder
from ._inner import Drive
from ._records import Records
from ._values import Claim

R = TypeVar("R")


def on_this_loop() -> Drive:
    """Return what runs hooks on this event loop, for the thread that works on the store."""
    loop = asyncio.get_running_loop()

    async def driven(generator: HookGenerator[R]) -> Callable[[], R]:
        try:
            value = await drive(generator)
        except BaseException as error:
            if not is_interrupt(error):
                raise
            return partial(_raise, error)  # in the thread: here it would tear down the loop
        return lambda: value

    def run(generator: HookGenerator[R], /) -> R:
        try:
            ended = asyncio.run_coroutine_threadsafe(driven(generator), loop).result()
        except CancelledError:  # of the hook's own: if a run is cancelled, its hooks are waited for
            raise HookError(
                "A hook about a call within another let an `asyncio.CancelledError` out, as of a "
                "task that it awaited. Catch it there, and decide."
            ) from None
        return ended()

    return run


def _raise(error: BaseException) -> NoReturn:
    raise error


async def beside_hooks(function: Callable[..., R], *arguments: Any) -> R:
    """Do what waits for hooks on this event loop in a thread of its own.

    The pool of a loop has a few threads. If all of them waited for hooks, a hook that needs one
    itself, such as to look up a host, would wait for them, and they for it.
    """
    thread = run_in_thread(partial(function, *arguments), "hooks")
    await wait_for_thread(thread)
    return thread.result().result()


# Held from a claim until its call has started, so that a busy loop claims nothing that it cannot
# start at once. Otherwise the claims of hundreds of conversations would come before the first
# beginning, their leases would run out meanwhile, and everything would be claimed again. A loop may
# be blocked, so each has its own; it is gone with the last worker that uses it.
_CLAIMING: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakValueDictionary()


def _claiming_on_this_loop() -> asyncio.Lock:
    return _CLAIMING.setdefault(asyncio.get_running_loop(), asyncio.Lock())


@dataclass(eq=False)
class Worker:
    """Run the calls of one conversation that are ready, and stop when none is."""

    records: Records
    id: str
    toolset: Any
    lease: float
    settings: Settings
    is_stopping: bool = False
    is_cut_off: bool = False
    faults: list[BaseException] = field(default_factory=list[BaseException])
    raised: list[Exception] = field(default_factory=list[Exception])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    _tools: set[asyncio.Task[Outcome]] = field(default_factory=set[asyncio.Task[Outcome]])
    _in_doubt: list[Claim] = field(default_factory=list[Claim])
    _left: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    _is_unshown: bool = False
    _claiming: asyncio.Lock = field(default_factory=_claiming_on_this_loop)

    async def run(self) -> None:
        """Run until nothing is ready.

        Raises:
            StoreError: The database failed, or a row was edited.
            ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did.
            CancelledError: The task was cancelled; what was started is finished.
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
        """Start nothing more, and ask what runs to end."""
        self.is_stopping = self.is_cut_off = True
        for tool in self._tools:
            if tool is not asyncio.current_task():
                tool.cancel()

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while True:
            task = None if self._is_unshown else await self._next(len(tasks))
            if task is not None:
                tasks.add(task)
            elif await self._decided():
                continue
            elif tasks:
                _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return

    async def _next(self, running: int) -> asyncio.Task[None] | None:
        """Claim a call, if one is ready, and return the task that runs it, once it has started."""
        if self.is_stopping or running == self.settings.limit:
            return None
        async with self._claiming:
            try:
                claim = await asyncio.to_thread(
                    self.records._claim_ready, self.id, self.toolset, self.lease, self._left
                )
            except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
                self._fail(error)
                return None
            if claim is None:
                return None
            has_begun = asyncio.Event()
            task = asyncio.create_task(self._work(claim, has_begun))
            await has_begun.wait()
            return task

    async def _decided(self) -> bool:
        """Let hooks decide about what was requested elsewhere; whether there was anything."""
        # A call that comes back may find results within it that after-hooks have not seen, such as
        # what a person answered in the inbox. It is given back, and these are shown to them first.
        is_due, self._is_unshown = self._is_unshown, False
        if self.settings.hooks is None or self.is_stopping:
            return False
        try:
            given = (self.id, self.toolset, self.settings.hooks, on_this_loop(), is_due)
            decided = await beside_hooks(self.records._decide_within, *given)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return False
        self._tell_all(decided or ())
        return decided is not None

    def _fail(self, error: BaseException) -> None:
        """Keep what is raised in the end; an interrupt stops what runs, and is raised first."""
        if is_interrupt(error):
            self.stop()
            self.faults.insert(0, error)
        else:
            self.is_stopping = True
            self.faults.append(as_error(error, "A function of the program"))

    async def _work(self, claim: Claim, has_begun: asyncio.Event) -> None:
        """Do one claim from start to end; what fails is noted.

        Args:
            claim: The claim.
            has_begun: Is set once the next call may be claimed.
        """
        try:
            with suppress(StaleError), self.records._at_work(claim):
                run = self._prepared(claim)
                if isinstance(run, Run) and self._is_behind_doubt(claim, run.call):
                    self._left.add(claim._row[:2])
                    run = None
                if run is None:
                    await asyncio.to_thread(self.records.release, claim)
                elif isinstance(run, ToolResult):
                    has_begun.set()  # hooks may see it, and take their time
                    await self._finish(claim, claim.call, run)
                elif run.is_stopped:  # by its context: it neither starts nor has a span
                    has_begun.set()
                    await self._finish(claim, run.call, await run.run())
                else:
                    await self._run_claimed(claim, run, has_begun)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
        finally:
            has_begun.set()

    def _prepared(self, claim: Claim) -> Run | ToolResult | None:
        """Check all that can be wrong with a run before it is on record that it starts.

        Returns:
            The run; or the result of a call that has one, which after-hooks are still to see; or
            None if the claim is to be given back.
        """
        if self.settings.hooks is not None and is_unshown(claim.call, self.settings.hooks):
            self._is_unshown = True
        if self.is_stopping or self._is_unshown:
            return None
        try:
            check_sees(claim, self.settings.hooks)
            if claim.result is not None:
                return claim.result
            call = claim._to_run()
            # Always with a context, so that there is a token by which a lost lease stops the tool.
            make = self.settings.context
            context = ToolContext.for_call(call) if make is None else make(call)
            return Run(call, context, self.settings, note=self._note)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return None

    def _note(self, error: Exception, *_: object) -> None:
        self.raised.append(error)

    async def _confirm(self, claim: Claim, asked: float) -> None:
        """Make sure that a call is still ours if its lease ran out before its tool starts.

        A busy loop, or a process that was stopped, may come to it late. That is no reason not to
        run the call, unless somebody else has taken it meanwhile.

        Args:
            claim: The claim.
            asked: When its lease began.

        Raises:
            StaleError: Somebody else has the call.
            StoreError: The database failed.
        """
        while monotonic() >= asked + claim.lease:
            claim.lease *= 2  # or a loop that is always this late would never start the call
            asked = await asyncio.to_thread(_timed, self.records.renew, claim)

    async def _run_claimed(self, claim: Claim, run: Run, has_begun: asyncio.Event) -> None:
        """Run a call, and put on record that it starts and how it ends."""
        is_ours = asyncio.Event()
        renewing = asyncio.create_task(self._renew(claim, run, is_ours))
        try:
            outcome = await self._outcome(run, partial(self._start, claim, run, has_begun, is_ours))
        finally:
            is_lost = renewing.done()
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        if is_lost and claim.idempotent and was_stopped(outcome):
            return  # it was this worker that failed, not the call: it is claimed and run again
        if run.is_unstarted:
            await self._take_back(claim, run.call, outcome)
            return
        if is_in_doubt(outcome):
            self._in_doubt.append(claim)
        await self._finish(claim, run.call, outcome)

    async def _start(
        self, claim: Claim, run: Run, has_begun: asyncio.Event, is_ours: asyncio.Event
    ) -> None:
        """Put on record that a call starts, which is done when `around` is open."""
        asked = await asyncio.to_thread(_timed, self.records.start, claim)
        has_begun.set()
        await self._confirm(claim, asked)
        is_ours.set()
        call = run.call
        claim._let_go(call)
        goes_on = any(steps_of_kind(call._history, "requested"))
        self._tell(claim, "continued" if goes_on else "started", call)
        # Only now may the task be cancelled: a step of the database would go on in its thread.
        tool: Any = asyncio.current_task()
        self._tools.add(tool)
        if self.is_cut_off:
            tool.cancel()
        await asyncio.sleep(0)  # the listener may have cancelled the run: then no tool is called

    async def _take_back(self, claim: Claim, call: AnyToolCall, outcome: Outcome) -> None:
        """Let others run a call that is claimed, or on record as started, and whose tool was not.

        Only a person or the program decides that a call is not executed: the outcome is for who
        asked for this run alone, and is not put on record.
        """
        self.is_stopping = True  # or this worker would claim it at once, over and over
        self.outcomes.append(outcome)
        call._hold()
        await asyncio.to_thread(self.records._take_back, claim)

    def _is_behind_doubt(self, claim: Claim, call: AnyToolCall) -> bool:
        """Whether a call of this run may still work on what the call of a claim accesses.

        A tool that was stopped may still write the file that the next call reads. Whoever asked for
        this run sees that its outcome is unknown, and decides: the next run does not wait.
        """
        return ClaimOrder.of(claim._row).in_order and any(
            meet(doubtful.call.accesses, call.accesses)
            and all(outer.id != call.id for outer in doubtful._outer.calls)
            for doubtful in self._in_doubt
        )

    async def _finish(self, claim: Claim, call: AnyToolCall, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        hooks, driving = self.settings.hooks, on_this_loop()
        in_thread = asyncio.to_thread if hooks is None else beside_hooks
        try:
            done = await in_thread(self.records._finish, claim, outcome, hooks, driving)
        except BaseException as error:
            is_of_hook = isinstance(error, HookError) or is_interrupt(error)
            if not (is_of_hook and isinstance(outcome, AwaitingCall)):
                raise
            # What it requested stays `unreviewed`, so that its model need not be asked again.
            self._fail(error)
            done = await asyncio.to_thread(self.records._finish, claim, outcome, None, driving)
        outcome, events = done
        if not isinstance(outcome, AwaitingCall):
            self._tell(claim, "ended", call, outcome)
        self._tell_all(events)

    async def _outcome(self, run: Run, start: Callable[[], Awaitable[None]]) -> Outcome:
        """Run a call in a task of its own, once it is on record that it starts."""
        tool = asyncio.create_task(self._guarded(run, start))
        try:
            return await tool
        except asyncio.CancelledError as stop:
            return self._not_run(run, stop)
        except Exception as error:
            if run.is_opened and run.is_unstarted:  # of `start`
                raise
            self.raised.append(error)
            return self._not_run(run, error)
        finally:
            self._tools.discard(tool)

    async def _guarded(self, run: Run, start: Callable[[], Awaitable[None]]) -> Outcome:
        """Keep what is not an `Exception` from tearing down the loop; it is raised in the end."""
        try:
            return await run.run_after(start)
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return self._not_run(run, error)

    @staticmethod
    def _not_run(run: Run, error: BaseException) -> Outcome:
        """Return the outcome of a run that an error of somebody else came between."""
        why = f": {type(error).__name__} came before it."
        return run.outcome or not_executed(run.call, why)

    async def _renew(self, claim: Claim, run: Run, is_ours: asyncio.Event) -> None:
        """Renew a lease until the tool has ended; if somebody else has the call, stop the tool.

        A lease that ran out is no reason to stop: a renewal is late where this process is busy or
        the database is away, and the call is this worker's until somebody takes it.
        """
        await is_ours.wait()
        is_taken = False
        while not is_taken:
            await asyncio.sleep(claim.lease / 3)
            try:
                await asyncio.to_thread(self.records.renew, claim)
            except Exception as error:  # noqa: BLE001 - it may work again before somebody takes it
                is_taken = isinstance(error, StaleError)
        run.cancel("its lease was lost, and somebody else has taken the call")

    def _tell(
        self,
        claim: Claim,
        kind: CallEventKind,
        call: AnyToolCall,
        outcome: SuspendedCall | ToolResult | None = None,
    ) -> None:
        if self.settings.on_event is None:
            return
        on_event = self._on_event
        if isinstance(outcome, SuspendedCall):
            tell_row(on_event, "suspended", row_of(call, "suspended", outer=claim._outer))
        elif outcome is None:
            at, by = claim._started  # the call itself writes this as it begins, which is next
            history = call._history
            at = max(history[-1].at, time() if at is None else at)
            started = Step("started", STAGES["running"], at, by)
            tell_row(on_event, kind, row_of(call, history=(*history, started), outer=claim._outer))
        else:
            tell_row(on_event, kind, row_of(call, "finished", outcome, outer=claim._outer))

    def _tell_all(self, events: Iterable[CallEvent]) -> None:
        if self.settings.on_event is not None:
            for event in events:
                tell_event(self._on_event, event)

    def _on_event(self, event: CallEvent) -> object:
        """Show an event to the listener; an interrupt is raised once all outcomes are kept."""
        listener: Any = self.settings.on_event
        try:
            return listener(event)
        except BaseException as error:
            if not is_interrupt(error):
                raise
            self._fail(error)
            return None


def _timed(step: Callable[[Claim], object], claim: Claim) -> float:
    """Do a step of a claim, in a thread; return since when the lease that it began holds at least.

    That is read here, as it may take longer until a thread is free than a lease is long.
    """
    asked = monotonic()
    step(claim)
    return asked
