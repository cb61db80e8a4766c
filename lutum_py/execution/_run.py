"""One run of one call: start it, wait until it ends or has to, and say its outcome.

All that can be wrong with how a run is requested is found when a `Run` is made, and nothing has
changed then. Started, a run has three ways to be stopped: its token, its deadline, and the end of
the task that waits for it. The first to come is the cause, by which a tool that stops is judged.

An async function can be cancelled. A sync one in a thread cannot, but if it takes a context it may
heed the token, so it gets the same grace. One that does neither is left behind at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum, auto
from functools import partial
from inspect import isawaitable, iscoroutine
from threading import TIMEOUT_MAX, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .. import (
    AnyToolCall,
    AwaitingCall,
    HookSet,
    SuspendedCall,
    ToolContext,
    ToolResult,
    ToolRoundPlan,
)
from .._text.escaping import is_interrupt, must_go_on, names_for_message, sole
from .._text.json import shorten
from .._text.waiting import (
    Ended,
    finish,
    leave_behind,
    run_in_thread,
    to_its_end,
    wait_for_thread,
)
from ..context import CancellationToken
from ..errors import Cancelled, HookError, LifecycleError, MisuseError, TimedOut, ToolError
from ..typing import CallEventKind, CallRun, Hooks, Invocation
from ._outcome import (
    ExecutionCancelled,
    ExecutionErrors,
    OnError,
    Outcome,
    after_doubt,
    failed,
    finished,
    raise_with,
    tell,
    tells,
    trace_of,
)
from ._settings import Around, RunSettings

if TYPE_CHECKING:
    from concurrent.futures import Future

_Wait: TypeAlias = "Callable[[asyncio.Task[Any], float], Awaitable[object]]"


# Three may ask a tool to stop, and what it raises then means another thing for each: after the
# deadline a `Cancelled` is a time-out that is known to have done nothing, after the token it is
# what was requested.
class _Cause(Enum):
    """Why a run ends."""

    ITSELF = auto()
    TOKEN = auto()
    DEADLINE = auto()
    OWNER = auto()


class Run:
    """One call on its way.

    Args:
        call: The call.
        context: What its function may get as a `ToolContext`.
        settings: How it is run.
        note: Is shown each exception that would be raised otherwise: under `raise_errors` what the
            tool raised, and in any case what `around` raised once there was an outcome.

    Attributes:
        outcome: The outcome of this run, as soon as it is known, whatever happens after that.
        is_opened: Whether `run_after` got past the opening of `around`.

    Raises:
        MisuseError: A hidden parameter is missing, or the tool has no function.
        LifecycleError: The call was started or has ended already, or waits for a decision.
    """

    # Of the class, because most runs keep these defaults, and a run is made for each call.
    outcome: Outcome | None = None
    is_left: bool = False
    is_opened: bool = False
    is_said: bool = False
    timer: asyncio.TimerHandle | None = None
    trace: str | None = None
    _thread: Future[Ended[Any]] | None = None

    def __init__(
        self,
        call: AnyToolCall,
        context: ToolContext | None,
        settings: RunSettings,
        *,
        note: Callable[..., object] | None = None,
    ) -> None:
        if not isinstance(call, AnyToolCall):
            raise MisuseError(
                f"What is run is a call, not {shorten(call)}. Take it from `plan.pending`, or "
                "decode one with `AppTools.parse_tool_call(metadata)`."
            )
        handlers = settings.handlers
        self.of: CallRun = CallRun(call, None if handlers is None else handlers.invocation_of(call))
        invocation = self.of.invocation
        self.invocation: Invocation = self.of.invocation
        own = call.selector.timeout
        self.call = call
        self.settings = settings
        self.timeout: float | None = settings.default_timeout if own is None else own
        self.on_error: OnError = (note or _raise) if settings.raise_errors else _ignore
        self.on_broken: Callable[[Exception, Outcome], object] = note or _raise_with
        self.on_started: Callable[[], object] | None = None
        self.cause: _Cause = _Cause.ITSELF
        self.hidden: dict[str, Any] = {}
        # Checked when the run is made, for all calls of a batch before the first is started: a
        # missing `db=` is found while nothing has happened yet.
        known = invocation.hidden
        if known:
            skipped = settings.skipped or {}
            self.hidden = {name: value for name, value in skipped.items() if name in known}
            missing = sorted(invocation.required - self.hidden.keys())
            if missing:
                listed = ", ".join(f'"{name}": ...' for name in missing)
                raise MisuseError(
                    f"Tool `{call.name}` (call {call.id!r}) needs {names_for_message(missing)}, "
                    "which the model does not see. Pass it where you run the call: "
                    f"`skipped={{{listed}}}`."
                )
        # If nobody else can reach a token, or look at the context, neither is made.
        self.context = context
        self.token: CancellationToken | None = None
        if context is not None:
            made: object = context
            if not isinstance(made, ToolContext):
                raise MisuseError(
                    f"The context of call {call.id!r} is {shorten(made)}. Let the function "
                    "`context=` return a `ToolContext`, as of `ToolContext.for_call(call)`; it is "
                    "not async."
                )
            # A child: the deadline of this call stops its tool, and no other.
            self.token = context.cancellation.child()
        if invocation.context is not None:
            given = ToolContext.for_call(call) if context is None else context
            self.token = self.token or given.cancellation
            self.context = given.with_cancellation(self.token)
            self.hidden[invocation.context] = self.context

    @property
    def is_alone(self) -> bool:
        """Whether to cancel the task that waits for it stops it: it has no token and no thread."""
        return self.token is None and self.invocation.is_async and self.settings.around is None

    @property
    def is_stopped(self) -> bool:
        """Whether its token stops it before it is started."""
        return self.token is not None and self.token.is_cancelled

    @property
    def is_unstarted(self) -> bool:
        """Whether its tool was not started, and it has no outcome either: it may still be run."""
        return self.outcome is None and not self.is_started

    @property
    def is_started(self) -> bool:
        """Whether its tool was started."""
        return self.of.number is not None

    def _begin(self) -> Outcome | None:
        """Start the call; give what it ended with if its text does not fit any more."""
        if (unfit := self.of.start(self.context)) is not None:
            return unfit
        if self.on_started is not None:
            try:
                self.on_started()
            except BaseException as error:  # noqa: BLE001 - such as Ctrl-C while it is told
                self._fatal(error)
        return None

    # Running from async code.

    def run(self) -> Coroutine[Any, Any, Outcome]:
        """Run the call to an outcome.

        Raises:
            CancelledError: The task was cancelled; its cause is an `ExecutionCancelled`.
        """
        around = self.settings.around
        # A span for a call that never begins would say that it ran.
        if around is None or self.is_stopped:
            return self._run()
        return self._run_within(around)

    async def _run_within(self, around: Around) -> Outcome:
        with self._surrounded(around) as came_to:
            came_to.append(await self._run())
        return came_to[0]

    async def run_after(self, start: Callable[[], Awaitable[object]]) -> Outcome:
        """Run the call once something is done within what `around` opens.

        Args:
            start: What is done first, such as to record that the call begins. If it raises, or
                `around` before it, the call is not started.
        """
        around = self.settings.around
        made = list[Outcome]()
        with nullcontext(made) if around is None else self._surrounded(around) as came_to:
            self.is_opened = True
            await start()
            came_to.append(await self._run())
        return came_to[0]

    @contextmanager
    def _surrounded(self, around: Around) -> Generator[list[Outcome]]:
        """Open what the run happens inside; whatever that does, an outcome is kept."""
        came_to: list[Outcome] = []
        raised: BaseException | None = None
        try:
            with around(self.call) as ended:
                try:
                    if not callable(ended):  # told before anything runs
                        raise MisuseError(
                            "What `around=` opens gives a function that is called with the "
                            f"outcome, not {shorten(ended)}. Write `yield lambda outcome: None` "
                            "if it needs none."
                        )
                    yield came_to
                except BaseException as error:
                    raised = error
                    raise
                ended(came_to[0])
        except BaseException as error:  # noqa: BLE001 - a context may raise anything
            self._broken(error, raised)
        if raised is not None:  # it is not for a context to swallow how a run ended
            raise raised

    def _broken(self, error: BaseException, raised: BaseException | None) -> None:
        """Raise or note what `around` raised itself, without losing the outcome.

        Args:
            error: What came out of it.
            raised: What came out of the run within it.
        """
        if error is raised:
            return
        if is_interrupt(error):
            raise (
                error
                if self.outcome is None
                else ExecutionCancelled.added_to(error, [self.outcome])
            )
        # It is sync code, so that a `CancelledError` other than `raised` is its own.
        broken = HookError.as_error(error, "What `around=` opens")
        if raised is not None:
            raised.add_note(f"What `around=` opened raised, too: {broken!r}")
        elif self.outcome is None:  # it did not open
            raise broken
        else:
            self.on_broken(broken, self.outcome)

    async def _run(self) -> Outcome:
        if self.is_stopped:
            return self.told(self._not_executed())
        if (unfit := self._begin()) is not None:
            return unfit
        task = asyncio.create_task(self._work(), name=f"tool {self.call.name}")
        # One future for all that may come first: the end, the deadline, the token.
        loop = task.get_loop()
        # Rather than `asyncio.wait` on three tasks: a call without deadline and token then costs
        # one future, and nothing has to be cancelled after it.
        woken: asyncio.Future[None] = loop.create_future()
        wake = partial(finish, woken)
        task.add_done_callback(wake)
        timer = None if self.timeout is None else loop.call_later(self.timeout, wake)
        token = self.token
        if token is not None:
            token.add_waiter(woken)
        try:
            try:
                await woken
            finally:
                task.remove_done_callback(wake)
                if timer is not None:
                    timer.cancel()
                if token is not None:
                    token.remove_waiter(woken)
            if not task.done():
                self.cause = _Cause.TOKEN if self.is_stopped else _Cause.DEADLINE
                await self._stop(task, "the deadline has passed", _wait)
        except asyncio.CancelledError as stop:
            # The same exception goes on: others may know it by its message or class.
            await self._stop(task, "the task that ran the call was cancelled", to_its_end)
            self.cause, self.on_error = _Cause.OWNER, _ignore
            try:
                outcome = self._outcome(task)
            except LifecycleError as error:  # the run was over, such as that its round was aborted
                outcome = self.lost(error)
            raise stop from ExecutionCancelled([self.told(outcome)])
        return self.told(self._outcome(task))

    async def run_alone(self, leave: Callable[[], None] | None) -> Outcome:
        """Run the call in the present task, which is there for nothing else, if `is_alone`.

        Args:
            leave: Called if the deadline has passed and the tool does not end; None without a
                deadline.
        """
        # With a task of its own the run costs a second task and a future. This way will do if
        # nothing but the deadline can stop it, and that can cancel the task from a timer.
        if (unfit := self._begin()) is not None:
            return unfit
        if self.timeout is not None and leave is not None:
            task: Any = asyncio.current_task()
            self.timer = task.get_loop().call_later(self.timeout, self._expire, task, leave)
        try:
            output = await self._function()
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - the tool may raise anything
            self._end_alone()
            is_cancelled = isinstance(error, asyncio.CancelledError)
            return self.told(self._stopped() if is_cancelled else self._raised(error))
        self._end_alone()
        return self.told(self._finished(output))

    def stop_alone(self, task: asyncio.Task[Any]) -> None:
        """Ask such a run to end, since the task that waits for it does."""
        self.cause, self.on_error = _Cause.OWNER, _ignore
        if self.timer is not None:  # its deadline is not to disturb how it ends now
            self.timer.cancel()
        task.cancel()

    def abandon_alone(self, task: asyncio.Task[Any]) -> Outcome:
        """Give up such a run, which does not end; return its outcome, which nobody was told of."""
        self.is_left = True
        return self._outcome(task)

    def _expire(self, task: asyncio.Task[Any], leave: Callable[[], None]) -> None:
        self.cause = _Cause.DEADLINE
        task.cancel()
        self.timer = task.get_loop().call_later(self.settings.grace, leave)

    def _end_alone(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.is_left:  # its outcome was said without it
            # Whoever waits has been told already that the tool goes on: a second outcome would be
            # recorded for one call.
            raise asyncio.CancelledError from None

    def cancel(self, reason: str) -> None:
        """Ask the run to stop, or not to start."""
        if self.token is None:
            self.token = CancellationToken()
        self.token.cancel(reason)

    async def _work(self) -> Any:
        """Run the function; what it raises that is not an `Exception` is handed on as a value.

        Left to asyncio, an interrupt would tear down the loop, and with it the outcomes of others.
        """
        try:
            return await (self._function() if self.invocation.is_async else self._in_thread())
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - raised again where the run is judged
            return _Fatal(error)

    async def _in_thread(self) -> Any:
        self._thread = thread = run_in_thread(self._function, self.call.name)
        try:
            await wait_for_thread(thread)
        except asyncio.CancelledError:
            # No way to stop a thread: it goes on, as a daemon, and what it gives is dropped.
            if not thread.done():
                self.is_left = True
                raise
        # What it raised will hold this frame, and is not to be held by it.
        self._thread = None
        try:
            output = thread.result().result()
        finally:
            del thread
        return await output if isawaitable(output) else output

    def _function(self) -> Any:
        return self.of.invoke(self.hidden)

    async def _stop(self, task: asyncio.Task[Any], reason: str, wait: _Wait) -> None:
        """Ask the run to end, and give it the grace to do so."""
        self.cancel(reason)
        # First the token alone, which a function in a thread may look at; then the task, which for
        # such a function only means that nobody waits any more.
        if self._thread is not None and self.invocation.context is not None:
            await wait(task, self.settings.grace)
        task.cancel()
        await wait(task, self.settings.grace)

    def _outcome(self, task: asyncio.Task[Any]) -> Outcome:
        """Say the outcome of a run that is over, or that could not be stopped."""
        if not task.done():
            leave_behind(task)
            return self._goes_on()
        if task.cancelled():
            return self._goes_on() if self.is_left else self._stopped()
        error = task.exception()
        if error is not None:
            return self._raised(error)
        output = task.result()
        if isinstance(output, _Fatal):
            return self._fatal(output.error)
        return self._finished(output)

    def _finished(self, output: Any) -> Outcome:
        try:
            return finished(self.of, output, self.on_error)
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - of a validator of the output type
            return self._fatal(error)

    def _stopped(self) -> Outcome:
        if self.cause is _Cause.DEADLINE:
            return self._cut_off("was cancelled")
        if self.cause is _Cause.OWNER:
            return self.of.cut_off("the run was cut off before the tool finished.", "cancelled")
        if self.is_stopped:
            return self._cut_off("cut off")
        why = "the tool was cancelled, though nobody asked it to stop."
        return self.of.cut_off(why, "cancelled")

    def _raised(self, error: BaseException) -> Outcome:
        if not isinstance(error, Exception):
            return self._fatal(error)
        try:
            return self._judged(error)
        except Exception:
            raise
        except BaseException as other:  # noqa: BLE001 - of its `__str__`
            return self._fatal(other)

    def _judged(self, error: Exception) -> Outcome:
        meant = sole(error)
        self.is_said = isinstance(meant, ToolError)
        self.trace = trace_of(meant)
        if self.cause is _Cause.DEADLINE and isinstance(meant, Cancelled):
            return self._timed_out("stopped when it was asked to", is_known=True)
        # An exception after a request to stop says little: a client that lost its connection raises
        # the same whether the payment went through or not.
        was_stopped = self.cause is not _Cause.ITSELF or self.is_stopped
        if was_stopped and not (tells(meant) or self.of.only_reads):
            self.on_error(error)
            self.on_error = _ignore
            # Words that nobody wrote for the model are for the log alone.
            what = f"said {str(meant)!r}" if self.is_said else f"raised {type(meant).__name__}"
            return self._cut_off(what)
        return failed(self.of, error, self.on_error)

    def told(self, outcome: Outcome) -> Outcome:
        """Keep the outcome, and let the log and the sink know of a call that failed."""
        self.outcome = outcome
        if isinstance(outcome, ToolResult) and outcome.is_error:
            context = self.context or ToolContext.for_call(self.call)
            try:
                tell(outcome, context, self.is_said, self.trace)
            except BaseException as error:  # noqa: BLE001 - a filter of the log may raise anything
                raise_with(error, [outcome], "A handler of the log")
        return outcome

    def _fatal(self, error: BaseException) -> Outcome:
        """Let an interrupt out with the outcome of the call, unless the run is over anyway."""
        self.outcome = outcome = self.lost(error)
        if self.cause is _Cause.OWNER:
            return outcome
        raise ExecutionCancelled.added_to(error, [outcome])

    def lost(self, error: BaseException) -> Outcome:
        """Say what a run that was started comes to if something else ended it."""
        return self.of.lost(f"{type(error).__name__} ended it.")

    def _goes_on(self) -> Outcome:
        return self._cut_off("cannot be stopped" if self.cause is _Cause.DEADLINE else "goes on")

    def _cut_off(self, what: str) -> Outcome:
        if self.cause is _Cause.DEADLINE:
            return self._timed_out(what)
        why = f"the tool was asked to stop and {what}"
        if self.cause is not _Cause.OWNER and (reason := self._stop_reason()):
            why += f": {reason}"
        return self.of.cut_off(why, "cancelled")

    def _timed_out(self, what: str, *, is_known: bool = False) -> Outcome:
        """The deadline passed; `is_known` where the function itself said that it stopped."""
        late = f"did not finish within {self.timeout:g} seconds"
        error = TimedOut(f"{late} and {what}.", not is_known)
        self.on_error(error)
        if is_known:
            return self.of.fail(str(error), error.code)
        return self.of.cut_off(f"the tool {error.reason}", error.code)

    def _not_executed(self) -> Outcome:
        why = f", because {self._stop_reason() or 'it was cancelled.'}"
        while True:
            self.of.check_start()
            if (result := self.of.end_unstarted(why)) is not None:
                return result

    def _stop_reason(self) -> str | None:
        return None if self.token is None else self.token.reason

    # Running from sync code.

    def refuse_async(self, twin: str = "execute(call)") -> None:
        """Refuse to run an async function from sync code.

        Args:
            twin: What is awaited instead.

        Raises:
            MisuseError: The function is async.
        """
        if self.invocation.is_async:
            raise MisuseError(
                f"Tool `{self.call.name}` (call {self.call.id!r}) is async: use `await "
                f"{twin}`, or `asyncio.run({twin})` outside of a loop."
            )

    def run_sync(self) -> Outcome:
        """Run the call to an outcome: right here, or in a thread if it has a deadline."""
        around = self.settings.around
        if around is None or self.is_stopped:
            return self.told(self._run_sync())
        with self._surrounded(around) as came_to:
            came_to.append(self.told(self._run_sync()))
        return came_to[0]

    def _run_sync(self) -> Outcome:
        if self.is_stopped:
            return self._not_executed()
        if (unfit := self._begin()) is not None:
            return unfit
        if self.timeout is not None:
            return self._run_in_time(self.timeout)
        try:
            output = self._function_sync()
        except BaseException as error:  # noqa: BLE001 - the tool may raise anything
            return self._raised(error)
        return self._finished(output)

    def _run_in_time(self, timeout: float) -> Outcome:
        try:
            thread = run_in_thread(self._function_sync, self.call.name)
            if not _is_done(thread, timeout):
                self.cause = _Cause.DEADLINE
                self.cancel("the deadline has passed")
                if self.invocation.context is not None:
                    _is_done(thread, self.settings.grace)
        except BaseException as error:  # noqa: BLE001 - of this thread, while the tool runs
            self.cancel("the program was interrupted")
            return self._fatal(error)
        if not thread.done():
            return self._goes_on()
        ended = thread.result()
        if ended.error is not None:
            return self._raised(ended.error)
        return self._finished(ended.result())

    def _function_sync(self) -> Any:
        return self.of.invoke_sync(self.hidden)


class _Fatal(NamedTuple):
    """What a function raised that is not an `Exception`."""

    error: BaseException


async def _wait(task: asyncio.Task[Any], seconds: float) -> None:
    await asyncio.wait((task,), timeout=seconds)


def _is_done(thread: Future[Ended[Any]], seconds: float) -> bool:
    """Wait for a thread; whether it has ended."""
    with suppress(TimeoutError):
        thread.result(min(seconds, TIMEOUT_MAX))
    return thread.done()


def _ignore(error: Exception) -> None:
    """Make nothing of an exception but the result that stands for it."""


def _raise(error: Exception) -> None:
    raise error


def _raise_with(error: Exception, outcome: Outcome) -> None:
    """Raise what `around` raised, together with the outcome of the run."""
    raise ExecutionErrors.of([error], [outcome]) from error


class PlanRun:
    """Hold a plan while its calls are run.

    Args:
        plan: The plan.
        settings: How they are run, and who decides, and who receives events.
        in_order: Whether calls that access the same keep the order of the turn.

    Attributes:
        ready: The calls to be run: pending, not started, and waiting for none that cannot be run.
        waits: For each of them the places of those that it waits for; None if none does.
        in_doubt: If the order is kept, the calls whose outcome is unknown.
        refused: What `on_start` raised, by the place of the call.

    Raises:
        MisuseError: It is not a plan, or `in_order` neither True nor False.
        RoundClosedError: The round has ended.
    """

    def __init__(self, plan: ToolRoundPlan[Any], settings: RunSettings, *, in_order: bool) -> None:
        if not isinstance(plan, ToolRoundPlan):
            raise MisuseError(
                f"What is run here is a plan, not {shorten(plan)}. Pass what `round.plan()` or "
                "`await round.apply_hooks(hooks)` gave; single calls are for `execute`."
            )
        MisuseError.check_flag("in_order", in_order)
        plan.check_open()
        self.plan = plan
        self.settings = settings
        self.refused: dict[int, BaseException] = {}
        self.waits: list[list[int]] | None = None
        self.in_doubt: list[AnyToolCall] = []
        self._lock = Lock()
        self._in_order = in_order
        self.ready: list[AnyToolCall] = []
        self._is_started = False

    async def settle(self) -> bool:
        """Let hooks decide about what calls have requested; whether there is anything to run then.

        If no call has requested any, there is something only once, since all that can be run is run
        together.
        """
        hooks = self.settings.hooks
        if self._is_over():
            return False
        if hooks is not None:
            await self.plan.settle_nested(hooks, on_event=self.settings.on_event)
            for call, outcome in self._ended():
                self._take_shown(call, await self.plan.review_outcome(outcome, hooks))
        return self._find_ready()

    def settle_sync(self) -> bool:
        """Do as `settle` does, with sync hooks only."""
        hooks = self.settings.hooks
        if self._is_over():
            return False
        if hooks is not None:
            self.plan.settle_nested_sync(hooks, on_event=self.settings.on_event)
            for call, outcome in self._ended():
                self._take_shown(call, self.plan.review_outcome_sync(outcome, hooks))
        return self._find_ready()

    def _is_over(self) -> bool:
        is_started, self._is_started = self._is_started, True
        return is_started and not self.plan.has_nested_calls

    def _ended(self) -> Iterator[tuple[AnyToolCall | None, ToolResult]]:
        """Yield what came of calls before, or while an after-hook raised, or was cut off.

        With its call, if its outcome is still to be recorded.
        """
        plan = self.plan
        for result in (*plan.finished, *(each.result for each in plan.handled)):
            yield None, result
        for call in plan.pending:
            if call.requested_by is not None and (end := call.result) is not None:
                yield call, end

    def _take_shown(self, call: AnyToolCall | None, outcome: Outcome) -> None:
        if call is not None and call.status.is_terminal:  # else it was tried again meanwhile
            self.take(call, outcome, None)

    def _find_ready(self) -> bool:
        plan = self.plan
        free = {call.id: call for call in plan.pending if call.may_start}
        if self._in_order:
            order = plan.order()
            places: dict[str, int] = {}
            for id, waits in order.items():
                if id in free and all(each in places for each in waits):
                    places[id] = len(places)
            self.waits = [[places[each] for each in order[id]] for id in places]
            free = {id: free[id] for id in places}
        self.ready = [*free.values()]
        for call in self.ready if plan.has_nested_calls else ():
            # Before it is run, and its result lost.
            plan.check_after_hooks(call.id, self.settings.hooks)
        return bool(self.ready)

    def hooks_after(self, outcome: Outcome) -> Hooks | None:
        """Return the hooks that see an outcome before the plan is given it, if any do."""
        is_set = isinstance(self.settings.hooks, HookSet)
        return self.settings.hooks if is_set and isinstance(outcome, ToolResult) else None

    def after_doubt(self, run: CallRun) -> Outcome | None:
        """Answer a call that would come after one which perhaps still works on the same.

        Returns:
            Its result; None if it may start, as it always may if no order is kept.
        """
        call = run.call
        for doubtful in self.in_doubt:
            # A program whose inner call is in doubt may go on: it accesses the same because that
            # call is part of it.
            is_within = any(each.id == call.id for each in self.plan.ancestors(doubtful.id))
            if call.may_start and not is_within and doubtful.conflicts_with(call):
                outcome = after_doubt(run, doubtful)
                if outcome is not None:
                    self.take(call, outcome, None)
                return outcome
        return None

    async def start(self, place: int, call: AnyToolCall) -> bool:
        """Do what is to be done before a call is started; whether it may be."""
        if self.settings.on_start is not None:
            try:
                answer = self.settings.on_start(call)
                if isawaitable(answer):
                    await answer
            except BaseException as error:
                if must_go_on(error):
                    raise
                self.refused[place] = error  # raised again when the others have ended
                return False
        self.plan.check_open()  # a plan that was saved meanwhile runs where it is loaded
        return True

    def start_sync(self, place: int, call: AnyToolCall) -> bool:
        """Do as `start` does in sync code, in one thread at a time."""
        with self._lock:
            try:
                answer = None if self.settings.on_start is None else self.settings.on_start(call)
                if iscoroutine(answer):
                    answer.close()
                    raise MisuseError(
                        "`on_start` is async, so it cannot be done from sync code. Use `await "
                        "run(plan)`, or make it a plain function."
                    )
            except BaseException as error:
                if is_interrupt(error):
                    raise
                self.refused[place] = error  # raised again when the others have ended
                return False
            self.plan.check_open()
        return True

    def take(self, call: AnyToolCall, outcome: Outcome, run: int | None) -> None:
        """Let the plan know the outcome of a call, if it was started and its run is the last.

        Args:
            call: The call.
            outcome: What it came to.
            run: The number of its run; None if it was not started.
        """
        with self._lock:
            # Not started, so there is nothing to record: it stays pending, here or where the plan
            # is loaded. Of a call that was tried again, its history has the outcome.
            if call.may_start or not self.plan.record(outcome, run=run):
                return
            if self.waits is not None and outcome.is_indeterminate:
                self.in_doubt.append(call)
            self._tell_ended(call, outcome)

    def take_cut_off(self, call: AnyToolCall, outcome: Outcome | None, run: int | None) -> None:
        """Do as `take` does if the run is over, so that no after-hook can run any more."""
        if outcome is not None:
            with suppress(MisuseError):
                self.take(call, outcome, run)

    def started(self, call: AnyToolCall) -> None:
        """Tell that a call was started, if somebody wants to know."""
        self._tell("started", call)

    def _tell_ended(self, call: AnyToolCall, outcome: Outcome) -> None:
        if isinstance(outcome, SuspendedCall):
            self._tell("suspended", call)
        elif isinstance(outcome, AwaitingCall) and not call.status.is_terminal:
            self._tell("requested", call)
        else:
            self._tell("ended", call)

    def _tell(self, kind: CallEventKind, call: AnyToolCall) -> None:
        if self.settings.on_event is not None:
            self.plan.notify(self.settings.on_event, kind, call)
