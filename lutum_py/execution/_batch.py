"""Calls that are run together: checked before any of them is started, and none of them lost.

Each starts as soon as the limit allows and what it waits for has ended: see `Schedule`.

Whatever ends a batch early (an exception of `around`, a cancelled task) ends one run of it, never
the account of the others: errors are noted by place, and each call has an outcome in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from threading import Condition
from typing import Any, Self

from .. import AnyToolCall
from .._call.deciding import drive, drive_sync
from .._context.cancellation import run_in_thread
from .._text.escaping import must_go_on
from .._text.json import shorten
from ..errors import LifecycleError, LutumError, MisuseError
from ._outcome import (
    ExecutionCancelled,
    ExecutionErrors,
    Outcome,
    as_error,
    end_unstarted,
    not_executed,
    raise_with,
    telling,
)
from ._run import PlanRun, Run
from ._settings import Settings


# Not `asyncio.gather`, which lets go of the siblings of a task that failed, nor a `TaskGroup`,
# which cancels them: a call that was started has to be followed to its end, since its outcome goes
# into the transcript.
class Batch:
    """Hold the runs of several calls, and what kept or broke them."""

    def __init__(
        self, calls: Iterable[AnyToolCall], settings: Settings, plan: PlanRun | None = None
    ) -> None:
        if not isinstance(calls, Iterable):
            raise MisuseError(
                f"Calls are run from a list, not from {shorten(calls)}. Pass `plan.pending`."
            )
        # Three tables by place: `errors` for what is raised in the end, `done` for runs that were
        # left behind or ran in sync code, `_came_to` for outcomes that a cancelled task would lose.
        listed = list(calls)
        self.plan = plan
        self.errors: dict[int, Exception] = {}
        self.interrupt: BaseException | None = None
        self.done: dict[int, Outcome] = {}
        self._came_to: dict[int, Outcome] = {}
        self.limit = settings.limit or max(len(listed), 1)
        self.grace = settings.grace
        waits = None if plan is None else plan.waits
        # If all begin at once, there is nothing to schedule.
        is_free = waits is None and self.limit >= len(listed)
        self.schedule = None if is_free else Schedule(len(listed), self.limit, waits)
        self._tasks: dict[int, asyncio.Task[Outcome]] = {}
        self._running: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None  # set when the runs were asked to end
        self._over: asyncio.Future[None]
        notes = settings.raise_errors or settings.around is not None
        seen: set[int] = set()
        for call in listed:
            if id(call) in seen:
                raise LifecycleError(
                    f"Call {call.id!r} of tool `{call.name}` is given twice, and a call runs once. "
                    "Give it once; `call.retry()` lets it be tried again later."
                )
            seen.add(id(call))
        self.runs = [
            Run(
                call,
                None if settings.context is None else settings.context(call),
                settings,
                # Bound to the errors alone: bound to the batch, the two would refer to each other.
                note=partial(_note, self.errors, place) if notes else None,
            )
            for place, call in enumerate(listed)
        ]
        if plan is not None and settings.on_event is not None:
            for run in self.runs:
                run.on_started = partial(plan.started, run.call)

    async def run_all(self) -> list[Outcome]:
        """Run the calls at once, and give the outcome of each, in their order.

        Raises:
            ExecutionErrors: `around` raised, or, under `raise_errors`, some tools did.
            LutumError: A call cannot be run, or its plan does not take its outcome.
            CancelledError: The task was cancelled.
        """
        # One future for the whole batch, set by the last run that ends. To wait for each task would
        # wake this one once for each call.
        self._over = asyncio.get_running_loop().create_future()
        self._begin_due(range(len(self.runs)) if self.schedule is None else self.schedule)
        if self._running:
            try:
                await self._over
            except asyncio.CancelledError as stop:
                self._stop()
                await self._all_ended()
                self._fault()
                raise stop from ExecutionCancelled(self._outcomes())
            finally:
                if self._timer is not None:
                    self._timer.cancel()
        outcomes, fault = self._outcomes(), self._fault()
        if self.interrupt is not None:
            raise telling(self.interrupt, outcomes)
        # It comes out only now, when each sibling has its outcome.
        if fault is not None:
            raise telling(fault, outcomes)
        return self._unless_broken(outcomes)

    def _fault(self) -> LutumError | GeneratorExit | None:
        """Return the first fault of the run itself, such as a plan that was closed meanwhile.

        A `GeneratorExit` of a callback is one: a task that is thrown away gets it, too, so that it
        passes through `_one`.

        All tasks are asked for their errors: asyncio prints an error that nobody asked for.
        """
        fault = None
        for task in self._tasks.values():
            error = task.exception() if task.done() and not task.cancelled() else None
            if fault is None and isinstance(error, LutumError | GeneratorExit):
                fault = error
        return fault

    def _begin_due(self, places: Iterable[int]) -> None:
        """Start the calls at these places."""
        loop, tasks, running = asyncio.get_running_loop(), self._tasks, self._running
        for place in places:
            if self._timer is not None:
                return
            running.add(place)
            tasks[place] = task = loop.create_task(self._one(place))
            task.add_done_callback(partial(self._ended, place))

    async def _one(self, place: int) -> Outcome:
        plan = self.plan
        try:
            outcome = await (self._run(place) if plan is None else self._run_of(plan, place))
        except (Exception, GeneratorExit):
            raise
        except BaseException as error:
            is_of_task = isinstance(error, asyncio.CancelledError)
            if is_of_task and must_go_on(error):
                raise
            # Raised again when all have ended. A hook may let out what it awaited, which somebody
            # else cancelled: that ends no other run.
            made = as_error(error, "An after-hook") if is_of_task else error
            self.interrupt = self.interrupt or made
            if not is_of_task:
                self._stop()
            return self._not_run(place, error)
        # Kept here as well: a tool that cancels its task as it returns takes its result away.
        self._came_to[place] = outcome
        return outcome

    def _stop(self) -> None:
        """Ask all runs to end; one without a task of its own is left behind if it does not."""
        loop = asyncio.get_running_loop()
        for place, task in self._tasks.items():
            if task is asyncio.current_task() or task.done():
                continue
            # A run without a token or a context needs no second task to be watched from: one task
            # less for each call of a large batch.
            if self._is_alone(place):
                self.runs[place].stop_alone(task)
            else:
                task.cancel()
        # One timer for all of the runs that have no task of their own beside this one.
        if self._timer is None:
            self._timer = loop.call_later(self.grace, self._leave_all)

    def _leave_all(self) -> None:
        for place in [*self._tasks]:
            if self._is_alone(place):
                self._leave(place)

    def _leave(self, place: int) -> None:
        """Say the outcome of a run that was asked to end and does not."""
        task = self._tasks[place]
        if not task.done() and place not in self.done:
            run = self.runs[place]
            try:
                outcome = run.abandon_alone(task)
            except LifecycleError as error:  # the run was over, such as that its round was aborted
                self.interrupt = self.interrupt or error
                outcome = run.lost(error)
            self.done[place] = outcome
            with self._kept():
                run._told(outcome)
            with self._kept():
                if self.plan is not None:
                    self.plan.take_cut_off(run.call, outcome, run.number)
            self._ended(place, task)

    @contextmanager
    def _kept(self) -> Generator[None]:
        """Keep what is raised where a timer calls, so that nobody would get it."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - raised again when all have ended
            self.interrupt = self.interrupt or error

    def _is_alone(self, place: int) -> bool:
        may_start = self.plan is None or self.plan.settings.on_start is None
        return may_start and self.runs[place].is_alone

    def _ended(self, place: int, _: asyncio.Task[Outcome]) -> None:
        running, schedule = self._running, self.schedule
        if schedule is not None and place in running:  # else it was left behind, and has ended so
            schedule.ended(place, is_answered=self.runs[place].call._record.stage.is_end)
            self._begin_due(schedule)
        running.discard(place)
        if not running and not self._over.done():
            self._over.set_result(None)

    async def _all_ended(self) -> None:
        """Wait for tasks that end soon, also if cancellation is asked for again."""
        while self._running:
            self._over = asyncio.get_running_loop().create_future()
            with suppress(asyncio.CancelledError):
                await self._over

    def _run(self, place: int) -> Coroutine[Any, Any, Outcome]:
        run = self.runs[place]
        if not self._is_alone(place):
            return run.run()
        return run.run_alone(None if run.timeout is None else partial(self._leave, place))

    async def _run_of(self, plan: PlanRun, place: int) -> Outcome:
        """Run one call, and let the plan know of it before and after."""
        run = self.runs[place]
        if plan.in_doubt and (answer := plan.after_doubt(run.call)) is not None:
            return answer
        if not (run.is_stopped or await plan.start(place, run.call)):
            return self._not_run(place, plan.refused[place])
        try:
            outcome = await self._run(place)
        except BaseException:
            plan.take_cut_off(run.call, run.outcome, run.number)
            raise
        if plan.settings.hooks is not None:
            try:
                outcome = await drive(plan.shown(run.call, outcome))
            except BaseException:  # the plan has it, and knows which hooks have not seen it
                plan.take_cut_off(run.call, outcome, run.number)
                raise
        self._came_to[place] = outcome
        plan.take(run.call, outcome, run.number)
        return outcome

    # From sync code.

    def run_all_sync(self) -> list[Outcome]:
        """Run the calls one after the other, or in threads, and give the outcome of each.

        Raises:
            MisuseError: A function is async; nothing was run.
            ExecutionErrors: As for `run_all`.
            LutumError: As for `run_all`.
        """
        for run in self.runs:
            run.refuse_async("execute_all(calls)" if self.plan is None else "run(plan)")
        # Threads take places from one list, as workers do from a queue. A thread that finds none
        # waits until a call has ended: that may let another one begin.
        schedule = self.schedule or Schedule(len(self.runs), self.limit)
        changed = Condition()

        def taken() -> int | None:
            with changed:
                while (place := next(schedule, None)) is None and schedule.running:
                    changed.wait()
            return place

        def work() -> None:
            while (place := taken()) is not None:
                try:
                    copy_context().run(self._one_sync, place)
                except BaseException:
                    stop()
                    raise
                finally:
                    with changed:
                        schedule.ended(
                            place, is_answered=self.runs[place].call._record.stage.is_end
                        )
                        changed.notify_all()

        def stop() -> None:
            with changed:
                schedule.stop()
                changed.notify_all()
            for run in self.runs:
                run.cancel("the program was interrupted")

        try:
            if self.limit == 1:
                for place in schedule:
                    self._one_sync(place)
                    schedule.ended(place, is_answered=self.runs[place].call._record.stage.is_end)
            else:
                count = min(self.limit, len(self.runs))
                for thread in [run_in_thread(work, "worker") for _ in range(count)]:
                    thread.result().result()
        except BaseException as error:  # noqa: BLE001 - raised again
            stop()
            raise_with(error, self._account(error), "An after-hook")
        return self._unless_broken([self.done[place] for place in sorted(self.done)])

    def _one_sync(self, place: int) -> None:
        """Run one call; what keeps its context from opening is noted."""
        run, plan = self.runs[place], self.plan
        if plan is not None and (answer := plan.after_doubt(run.call)) is not None:
            self.done[place] = answer
            return
        if plan is not None and not (run.is_stopped or plan.start_sync(place, run.call)):
            self.done[place] = self._not_run(place, plan.refused[place])
            return
        try:
            self.done[place] = run.run_sync()
        except LutumError:
            raise
        except Exception as error:  # noqa: BLE001 - a context may raise anything
            self.done[place] = self._noted(place, error)
        except BaseException:
            if plan is not None:
                plan.take_cut_off(run.call, run.outcome, run.number)
            raise
        if plan is not None:
            try:
                self.done[place] = drive_sync(plan.shown(run.call, self.done[place]))
            except BaseException:
                plan.take_cut_off(run.call, self.done[place], run.number)
                raise
            plan.take(run.call, self.done[place], run.number)

    def _account(self, error: BaseException) -> list[Outcome]:
        """Say the outcomes of the calls when something ended the run of them all."""
        return [self._known(place) or self._noted(place, error) for place in range(len(self.runs))]

    # The outcome.

    def _outcomes(self) -> list[Outcome]:
        """Say the outcomes of the calls whose tasks are done, in whichever way."""
        return [self._outcome(place) for place in range(len(self.runs))]

    def _outcome(self, place: int) -> Outcome:
        task = self._tasks.get(place)
        if place not in self.done and task is not None and not task.cancelled():
            error = task.exception()
            return task.result() if error is None else self._noted(place, error)
        return self._known(place) or self._not_started(place)

    def _known(self, place: int) -> Outcome | None:
        """Return the outcome of a call, as far as hooks have changed it."""
        return self.done.get(place) or self._came_to.get(place) or self.runs[place].outcome

    def _not_started(self, place: int) -> Outcome:
        call = self.runs[place].call
        why = ", because the run was cancelled first."
        ended = end_unstarted(call, why) if self.plan is None else None
        return ended or not_executed(call, why)

    def _noted(self, place: int, error: BaseException) -> Outcome:
        """Keep what came in the way of a run, to be raised in the end."""
        if isinstance(error, Exception):
            self.errors.setdefault(place, error)
        return self._not_run(place, error)

    def _not_run(self, place: int, error: BaseException) -> Outcome:
        known = self._known(place)
        if known is not None:
            return known
        run = self.runs[place]
        if not run.is_started:  # it may still be run, or somebody else runs it
            return not_executed(run.call, f": {type(error).__name__} came before it.")
        return run.lost(error)

    def _unless_broken(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Return the outcomes, or raise what was noted."""
        if self.plan is not None and self.plan.refused:
            first, *others = (error for _, error in sorted(self.plan.refused.items()))
            for other in others:
                first.add_note(f"`on_start` raised for another call, too: {other!r}")
            raise telling(first, outcomes)
        if self.errors:
            raise ExecutionErrors.of([self.errors[at] for at in sorted(self.errors)], outcomes)
        return outcomes


def _note(
    errors: dict[int, Exception], place: int, error: Exception, _: Outcome | None = None
) -> None:
    errors[place] = error


class Schedule:
    """Choose which call starts next: first the one with the longest chain of others after it.

    Args:
        count: How many calls there are.
        limit: How many may run at once.
        waits: For each call the places of earlier ones that it waits for; None if none waits.

    Attributes:
        running: How many run now.
    """

    __slots__ = ("_behind", "_chain", "_left", "_limit", "_ready", "running")

    def __init__(
        self, count: int, limit: int, waits: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.running = 0
        self._limit = limit
        self._left = [0] * count if waits is None else [len(each) for each in waits]
        self._behind: list[list[int]] = [] if waits is None else [[] for _ in waits]
        # For `waits` of `[[], [], [1], [2]]` the chains are `[0, -2, -1, 0]`: place 1 has two
        # others after it and begins before place 0. Counted down, so that the smallest of the heap
        # is the longest.
        self._chain = [0] * count
        if waits is not None:
            for place in reversed(range(count)):
                for before in waits[place]:
                    self._behind[before].append(place)
                    self._chain[before] = min(self._chain[before], self._chain[place] - 1)
        self._ready: list[tuple[int, int]] = []
        for place, left in enumerate(self._left):
            if not left:
                heappush(self._ready, (self._chain[place], place))

    def __iter__(self) -> Self:
        """Go through the calls that start now; more may, once one of them has ended."""
        return self

    def __next__(self) -> int:
        if not self._ready or self.running >= self._limit:
            raise StopIteration
        self.running += 1
        return heappop(self._ready)[1]

    def ended(self, place: int, *, is_answered: bool) -> None:
        """Take note that a call has ended; one without a result lets nothing behind it start."""
        self.running -= 1
        for each in self._behind[place] if self._behind and is_answered else ():
            self._left[each] -= 1
            if not self._left[each]:
                heappush(self._ready, (self._chain[each], each))

    def stop(self) -> None:
        """Let nothing start any more."""
        self._ready.clear()
