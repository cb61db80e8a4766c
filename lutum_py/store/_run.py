"""Run what is ready of one conversation: claim, start, run and finish each call.

Each step that cannot be repeated is put on record before it is taken, by the same calls that a
worker of your own would make. Nothing of the database is done on the event loop. What was started
is finished in any case: if the task is cancelled, the tools are stopped and their outcomes put on
record before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from time import monotonic
from typing import Any, Final, TypeVar, cast

from .. import AnyToolCall, AwaitingCall, SuspendedCall, ToolContext, ToolResult
from .._text.escaping import is_interrupt
from .._text.waiting import to_its_end
from ..errors import HookError, StaleError, StoreError
from ..execution import ExecutionCancelled, ExecutionErrors, Outcome, Run, RunSettings
from ..typing import CallEvent, CallEventKind
from ._backend import GRACE_SECONDS, LEAVE_SECONDS, interruptible
from ._claim_order import ClaimOrder
from ._claims import Claims, Wanted
from ._leases import Beat
from ._records import Moved
from ._values import OpenClaim

R = TypeVar("R")

_PATIENCE_SECONDS: Final = 30
"""How long a step is repeated at least that the database failed at."""

AT_ONCE: Final = 16
"""How many calls a worker claims at once: it starts them one after the other."""


class _Step:
    """What waits for the database in a thread.

    Args:
        function: Does it.

    Attributes:
        doing: The future of its outcome.
        stop: Breaks it off.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self.stop = Event()
        # No task: a loop that is about to close cancels all of these.
        context, loop = copy_context(), asyncio.get_running_loop()

        def run() -> Any:
            return context.run(self._do, function)

        self.doing: asyncio.Future[Any] = loop.run_in_executor(None, run)

    def _do(self, function: Callable[[], Any]) -> Any:
        with interruptible(self.stop):
            return function()

    def limit(self) -> None:
        """Break it off, if it does not end soon by itself."""
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._break_off)

    def _break_off(self) -> None:
        self.stop.set()
        # One that still connects is left behind: what it does next is broken off at its start.
        asyncio.get_running_loop().call_later(LEAVE_SECONDS, self.doing.cancel)


@dataclass(eq=False)
class Worker:
    """Run the calls of one conversation that are ready, and stop when none is."""

    claims: Claims
    beat: Beat
    id: str
    toolset: Any
    lease: float
    settings: RunSettings
    is_stopping: bool = False
    is_cut_off: bool = False
    faults: list[BaseException] = field(default_factory=list[BaseException])
    raised: list[Exception] = field(default_factory=list[Exception])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    _tools: set[asyncio.Task[Outcome]] = field(default_factory=set[asyncio.Task[Outcome]])
    _steps: set[_Step] = field(default_factory=set[_Step])
    _in_doubt: list[OpenClaim] = field(default_factory=list[OpenClaim])
    _left: set[str] = field(default_factory=set[str])
    _is_unshown: bool = False

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
            raise ExecutionCancelled.added_to(fault, self.outcomes)
        if self.raised:
            raise ExecutionErrors.of(self.raised, self.outcomes)

    def stop(self) -> None:
        """Start nothing more, and ask what runs to end."""
        self.is_stopping = self.is_cut_off = True
        for tool in self._tools:
            if tool is not asyncio.current_task():
                tool.cancel()
        for step in self._steps:
            step.limit()

    async def _step(self, function: Callable[..., R], *arguments: Any) -> R:
        """Do what waits for the database in a thread; it is broken off after a cancellation."""
        step = _Step(partial(function, *arguments))
        self._steps.add(step)
        if self.is_cut_off:
            step.limit()
        try:
            while True:
                try:
                    return await asyncio.shield(step.doing)
                except asyncio.CancelledError:
                    if step.doing.cancelled():
                        raise StoreError(
                            "The run was cancelled before the database could be connected with. "
                            "Nothing was changed."
                        ) from None
                    if step.doing.done():  # what it did may have raised that itself
                        return cast("R", step.doing.result())
                    # The loop is about to close. A claim whose answer nobody reads would be kept.
                    self.stop()
        finally:
            self._steps.discard(step)

    async def _repeated(self, claim: OpenClaim, function: Callable[..., R], *arguments: Any) -> R:
        """Do a step that may be repeated until it is known to be on record."""
        began = monotonic()
        again = pauses()
        while True:
            pause = next(again)
            try:
                return await self._step(function, claim, *arguments)
            except StaleError:
                raise
            except StoreError:
                patience = max(claim.lease, _PATIENCE_SECONDS)
                if self.is_cut_off:
                    patience = GRACE_SECONDS
                if monotonic() + pause > began + patience:
                    raise
            await asyncio.sleep(pause)

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        while True:
            begun: set[asyncio.Task[None]] = set()
            if not self._is_unshown:
                begun = await self._next(len(tasks))
            if begun:
                tasks |= begun
            elif await self._decided():
                continue
            elif tasks:
                _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            else:
                return

    async def _next(self, running: int) -> set[asyncio.Task[None]]:
        """Claim calls that are ready, and return the tasks that run them, once they have started.

        No more are claimed than may be started at once.
        """
        limit = self.settings.limit
        free = AT_ONCE if limit is None else min(AT_ONCE, limit - running)
        if self.is_stopping or free <= 0:
            return set()
        again = [tool.name for tool in self.toolset if tool.definition.idempotent]
        here = self.claims.leases.running(self.id)
        passed = [*here, *((self.id, call) for call in self._left)]
        wanted = Wanted(self.id, self.beat.id, passed, again)
        try:
            claims = await self._step(self.claims.claim, self.toolset, wanted, self.lease, free)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return set()
        tasks: set[asyncio.Task[None]] = set()
        for claim in claims:
            has_begun = asyncio.Event()
            tasks.add(asyncio.create_task(self._work(claim, has_begun)))
            await has_begun.wait()
        return tasks

    async def _decided(self) -> bool:
        """Let hooks decide about what was requested elsewhere; whether there was anything."""
        # A call that comes back may find results within it that after-hooks have not seen, such as
        # what a person answered in the inbox. It is given back, and these are shown to them first.
        is_due, self._is_unshown = self._is_unshown, False
        if self.settings.hooks is None or self.is_stopping:
            return False
        try:
            decided = await self._decide_within(is_due)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return False
        self._tell_all(decided or ())
        return decided is not None

    async def _decide_within(self, is_due: bool) -> list[CallEvent] | None:
        """Decide about what calls requested, and nobody decided about; None if there is nothing.

        Args:
            is_due: Whether after-hooks have to see what somebody decided within a call.
        """
        hooks, all_events = self.settings.hooks, list[CallEvent]()
        assert hooks is not None
        is_any = False
        for tree in await self._step(self.claims.asking_trees, self.id, is_due):
            events: list[CallEvent] = []
            plan = tree.open(self.toolset)
            await plan.settle_nested(hooks, on_event=events.append)
            changes = tree.changes()
            is_any = is_any or bool(changes)
            with suppress(Moved):  # else it is looked at again, with what is there now
                await self._step(self.claims.put, self.id, changes)
                all_events += events
        return all_events if is_any else None

    def _fail(self, error: BaseException) -> None:
        """Keep what is raised in the end; an interrupt stops what runs, and is raised first."""
        if is_interrupt(error):
            self.stop()
            self.faults.insert(0, error)
        else:
            self.is_stopping = True
            self.faults.append(HookError.as_error(error, "A function of the program"))

    async def _work(self, claim: OpenClaim, has_begun: asyncio.Event) -> None:
        """Do one claim from start to end; what fails is noted.

        Args:
            claim: The claim.
            has_begun: Is set once the next call may be claimed.
        """
        try:
            with suppress(StaleError):
                run = self._prepared(claim)
                if isinstance(run, Run) and self._is_behind_doubt(claim, run.call):
                    self._left.add(claim.call.id)
                    run = None
                if run is None:
                    await self._repeated(claim, self.claims.release)
                elif isinstance(run, ToolResult):
                    has_begun.set()  # hooks may see it, and take their time
                    await self._finish(claim, run)
                elif run.is_stopped:  # by its context: it neither starts nor has a span
                    has_begun.set()
                    outcome = await run.run()
                    # As if it had not been handed out: what was not executed has no start.
                    claim.tree.open_to_run(self.toolset, claim.call.id)
                    await self._finish(claim, outcome)
                else:
                    await self._run_claimed(claim, run, has_begun)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
        finally:
            has_begun.set()

    def _prepared(self, claim: OpenClaim) -> Run | ToolResult | None:
        """Check all that can be wrong with a run before it is on record that it starts.

        Returns:
            The run; or the result of a call that has one, which after-hooks are still to see; or
            None if the claim should be given back.
        """
        hooks = self.settings.hooks
        if hooks is not None and claim.tree.plan.has_unseen_results(claim.call, hooks):
            self._is_unshown = True
        if self.is_stopping or self._is_unshown:
            return None
        try:
            if claim.result is not None:
                return claim.result
            call = self.claims.hand_out(claim)
            # Always with a context, so that there is a token by which a lost lease stops the tool.
            make = self.settings.context
            context = ToolContext.for_call(call) if make is None else make(call)
            return Run(call, context, self.settings, note=self._note)
        except BaseException as error:  # noqa: BLE001 - raised when what runs has ended
            self._fail(error)
            return None

    def _note(self, error: Exception, *_: object) -> None:
        self.raised.append(error)

    async def _confirm(self, claim: OpenClaim, asked: float) -> None:
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
            asked = await self._step(_timed, self.claims.renew, claim)

    async def _run_claimed(self, claim: OpenClaim, run: Run, has_begun: asyncio.Event) -> None:
        """Run a call, and put on record that it starts and how it ends."""
        loop, is_lost = asyncio.get_running_loop(), False

        def lose() -> None:
            nonlocal is_lost
            is_lost = True
            run.cancel("its lease was lost, and somebody else has taken the call")

        key = (claim.id, claim.call.id, claim.claim)
        # Until the outcome is on record: a lease that ran out puts no call in doubt for the others
        # of this process, which would give it another one.
        with self.beat.watched(*key, partial(loop.call_soon_threadsafe, lose)):
            outcome = await self._outcome(run, partial(self._start, claim, has_begun))
            if is_lost and _was_stopped(outcome):
                # It was this worker that failed, not the call: who has it finds out, or runs it
                # again.
                self.outcomes.append(outcome)
                return
            if run.is_unstarted:
                await self._take_back(claim, outcome)
                return
            if outcome.is_indeterminate:
                self._in_doubt.append(claim)
            await self._finish(claim, outcome)

    async def _start(self, claim: OpenClaim, has_begun: asyncio.Event) -> None:
        """Put on record that a call starts, which is done when `around` is open."""
        asked = await self._repeated(claim, partial(_timed, self.claims.start))
        has_begun.set()
        await self._confirm(claim, asked)
        self._tell(claim, "started")
        # Only now may the task be cancelled: a step of the database would go on in its thread.
        tool: Any = asyncio.current_task()
        self._tools.add(tool)
        if self.is_cut_off:
            tool.cancel()
        await asyncio.sleep(0)  # the listener may have cancelled the run: then no tool is called

    async def _take_back(self, claim: OpenClaim, outcome: Outcome) -> None:
        """Let others run a call that is claimed, or on record as started, and whose tool was not.

        Only a person or the program decides that a call is not executed: the outcome is for who
        asked for this run alone, and is not put on record.
        """
        self.is_stopping = True  # or this worker would claim it at once, over and over
        self.outcomes.append(outcome)
        await self._repeated(claim, self.claims.take_back)

    def _is_behind_doubt(self, claim: OpenClaim, call: AnyToolCall) -> bool:
        """Whether a call of this run may still work on what the call of a claim accesses.

        A tool that was stopped may still write the file that the next call reads. Whoever asked for
        this run sees that its outcome is unknown, and decides: the next run does not wait.
        """
        order = ClaimOrder.of(claim.tree.rows[claim.call.id])
        return order.in_order and any(
            doubtful.call.conflicts_with(call)
            and all(outer.id != call.id for outer in doubtful.tree.plan.ancestors(doubtful.call.id))
            for doubtful in self._in_doubt
        )

    async def _finish(self, claim: OpenClaim, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        events: list[CallEvent] = []
        plan, hooks = claim.tree.plan, self.settings.hooks
        try:
            given = self.claims.take(claim, outcome, hooks, events)
            if given is not None and hooks is not None:
                outcome = await plan.settle(given, hooks, on_event=events.append)
        except BaseException as error:
            # A hook may await what somebody else cancelled, and that is a failure of it.
            is_of_hook = isinstance(error, HookError | asyncio.CancelledError)
            is_of_hook = is_of_hook or is_interrupt(error)
            if not (is_of_hook and isinstance(outcome, AwaitingCall)):
                await self._repeated(claim, self.claims.keep_ended)
                raise
            # What it requested stays `unreviewed`, so that its model need not be asked again.
            self._fail(error)
        await self._repeated(claim, self.claims.end)
        if isinstance(outcome, SuspendedCall):
            self._tell(claim, "suspended")
        elif not isinstance(outcome, AwaitingCall) or claim.call.status.is_terminal:
            self._tell(claim, "ended")
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
        task = asyncio.current_task()
        try:
            return await run.run_after(start)
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:
            # One that Python throws in, as the loop is gone, goes on; any other is a callback's. It
            # may not leave the task: whoever awaits it would be closed, and not go on.
            if isinstance(error, GeneratorExit) and not _is_running(task):
                raise
            self._fail(error)
            return self._not_run(run, error)

    @staticmethod
    def _not_run(run: Run, error: BaseException) -> Outcome:
        """Return the outcome of a run that an error of somebody else came between."""
        why = f": {type(error).__name__} came before it."
        return run.outcome or run.of.not_executed(why)

    def _tell(self, claim: OpenClaim, kind: CallEventKind) -> None:
        if self.settings.on_event is not None:
            claim.tree.plan.notify(self._on_event, kind, claim.call)

    def _tell_all(self, events: Iterable[CallEvent]) -> None:
        if self.settings.on_event is not None:
            for event in events:
                event.send(self._on_event)

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


def pauses() -> Iterator[float]:
    """Yield how long to wait before each next attempt, in seconds: longer each time, up to 0.5."""
    pause = 0.01
    while True:
        yield pause
        pause = min(2 * pause, 0.5)


def _is_running(task: object) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False


def _was_stopped(outcome: Outcome) -> bool:
    """Whether a call has no answer of its own, because it was stopped or never started."""
    return isinstance(outcome, ToolResult) and outcome.status in ("indeterminate", "cancelled")


def _timed(step: Callable[[OpenClaim], object], claim: OpenClaim) -> float:
    """Do a step of a claim, in a thread; return since when the lease that it began holds at least.

    That is read here, as it may take longer until a thread is free than a lease is long.
    """
    asked = monotonic()
    step(claim)
    return asked
