"""One run of one call: start it, wait until it ends or has to, and say its outcome.

All that can be wrong with how a run is requested is found when a `Run` is made, and nothing has
changed then. Started, a run has three ways to be stopped: its token, its deadline, and the end of
the task that waits for it. The first to come is the cause, by which a tool that stops is judged.

An async function can be cancelled. A sync one in a thread cannot, but if it takes a context it may
heed the token, so it gets the same grace. One that does neither is left behind at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum, auto
from functools import partial
from inspect import isawaitable, iscoroutine
from math import inf
from threading import TIMEOUT_MAX, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .. import AnyToolCall, AwaitingCall, SuspendedCall, ToolContext, ToolResult, ToolRoundPlan
from .._call.deciding import HookGenerator
from .._call.history import end_of, result_in, state_in, steps_of_kind
from .._call.outcomes import outcome_of
from .._call.running import fail, may_start, start
from .._context.cancellation import Ended, finish, run_in_thread, wait_for_thread
from .._round.ending import check_shown
from .._round.events import Ancestry, row_of, tell_asked, tell_row
from .._round.inner import settle_within, show_to
from .._round.record import record
from .._schema.capabilities import meet
from .._text.escaping import is_interrupt, must_go_on, names_for_message
from .._text.json import shorten
from ..context import CancellationToken
from ..errors import Cancelled, LifecycleError, MisuseError, TimedOut, ToolError, ToolInputError
from ..typing import CallEventKind, CallRowState
from ._outcome import (
    ExecutionCancelled,
    ExecutionErrors,
    OnError,
    Outcome,
    after_doubt,
    as_error,
    cut_off,
    end_unstarted,
    failed,
    finished,
    is_in_doubt,
    lost,
    only_reads,
    raise_with,
    sole,
    tell,
    telling,
    tells,
    trace_of,
)
from ._settings import Around, Settings, check_flag

if TYPE_CHECKING:
    from concurrent.futures import Future

_Task: TypeAlias = "asyncio.Task[Any]"
_Wait: TypeAlias = Callable[[_Task, float], Awaitable[object]]

_LEFT_BEHIND: set[_Task] = set()
"""Tasks of tools that ignore their cancellation, or have not heeded it yet."""


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
    is_left = False
    is_opened = False
    is_said = False
    timer: asyncio.TimerHandle | None = None
    trace: str | None = None
    thread: Future[Ended[Any]] | None = None

    def __init__(
        self,
        call: AnyToolCall,
        context: ToolContext | None,
        settings: Settings,
        *,
        note: Callable[..., object] | None = None,
    ) -> None:
        if not isinstance(call, AnyToolCall):
            raise MisuseError(
                f"What is run is a call, not {shorten(call)}. Take it from `plan.pending`, or "
                "decode one with `AppTools.parse_tool_call(metadata)`."
            )
        handlers = settings.handlers
        invocation = may_start(
            call._record, None, None if handlers is None else handlers._invocation_of(call)
        )
        own = call.selector.timeout
        self.call = call
        self.invocation = invocation
        self.settings = settings
        self.timeout = settings.default_timeout if own is None else own
        self.on_error: OnError = (note or _raise) if settings.raise_errors else _ignore
        self.on_broken: Callable[[Exception, Outcome], object] = note or _raise_with
        self.on_started: Callable[[], object] | None = None
        self.cause = _Cause.ITSELF
        self.number: int | None = None
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
        return self.number is not None

    def _begin(self) -> Outcome | None:
        """Start the call; give what it ended with if its text does not fit any more."""
        try:
            _, self.number = start(self.call._record, None, self.invocation)
            if self.context is not None:
                self.context._put(_number=self.number)
        except ToolInputError:
            if not self.call._record.stage.is_end:
                raise
            refused: Any = outcome_of(self.call._record)
            result: ToolResult = refused.result
            return result
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
            raise error if self.outcome is None else telling(error, [self.outcome])
        # It is sync code, so that a `CancelledError` other than `raised` is its own.
        broken = as_error(error, "What `around=` opens")
        if raised is not None:
            raised.add_note(f"What `around=` opened raised, too: {broken!r}")
        elif self.outcome is None:  # it did not open
            raise broken
        else:
            self.on_broken(broken, self.outcome)

    async def _run(self) -> Outcome:
        if self.is_stopped:
            return self._told(self._not_executed())
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
            token._add_waiter(woken)
        try:
            try:
                await woken
            finally:
                task.remove_done_callback(wake)
                if timer is not None:
                    timer.cancel()
                if token is not None:
                    token._remove_waiter(woken)
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
            raise stop from ExecutionCancelled([self._told(outcome)])
        return self._told(self._outcome(task))

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
            return self._told(self._stopped() if is_cancelled else self._raised(error))
        self._end_alone()
        return self._told(self._finished(output))

    def stop_alone(self, task: _Task) -> None:
        """Ask such a run to end, since the task that waits for it does."""
        self.cause, self.on_error = _Cause.OWNER, _ignore
        if self.timer is not None:  # its deadline is not to disturb how it ends now
            self.timer.cancel()
        task.cancel()

    def abandon_alone(self, task: _Task) -> Outcome:
        """Give up such a run, which does not end; return its outcome, which nobody was told of."""
        self.is_left = True
        return self._outcome(task)

    def _expire(self, task: _Task, leave: Callable[[], None]) -> None:
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
        self.thread = thread = run_in_thread(self._function, self.call.name)
        try:
            await wait_for_thread(thread)
        except asyncio.CancelledError:
            # No way to stop a thread: it goes on, as a daemon, and what it gives is dropped.
            if not thread.done():
                self.is_left = True
                raise
        # What it raised will hold this frame, and is not to be held by it.
        self.thread = None
        try:
            output = thread.result().result()
        finally:
            del thread
        return await output if isawaitable(output) else output

    def _function(self) -> Any:
        return self.invocation.start(self.call, self.call._record.input_for_tool(), self.hidden)

    async def _stop(self, task: _Task, reason: str, wait: _Wait) -> None:
        """Ask the run to end, and give it the grace to do so."""
        self.cancel(reason)
        # First the token alone, which a function in a thread may look at; then the task, which for
        # such a function only means that nobody waits any more.
        if self.thread is not None and self.invocation.context is not None:
            await wait(task, self.settings.grace)
        task.cancel()
        await wait(task, self.settings.grace)

    def _outcome(self, task: _Task) -> Outcome:
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
            return finished(*self._mine, output, self.on_error)
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - of a validator of the output type
            return self._fatal(error)

    def _stopped(self) -> Outcome:
        if self.cause is _Cause.DEADLINE:
            return self._cut_off("was cancelled")
        if self.cause is _Cause.OWNER:
            return cut_off(
                *self._mine, "the run was cut off before the tool finished.", "cancelled"
            )
        if self.is_stopped:
            return self._cut_off("cut off")
        why = "the tool was cancelled, though nobody asked it to stop."
        return cut_off(*self._mine, why, "cancelled")

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
        if was_stopped and not (tells(meant) or only_reads(self.call)):
            self.on_error(error)
            self.on_error = _ignore
            # Words that nobody wrote for the model are for the log alone.
            what = f"said {str(meant)!r}" if self.is_said else f"raised {type(meant).__name__}"
            return self._cut_off(what)
        return failed(*self._mine, error, self.on_error)

    def _told(self, outcome: Outcome) -> Outcome:
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
        raise telling(error, [outcome])

    def lost(self, error: BaseException) -> Outcome:
        """Say what a run that was started comes to if something else ended it."""
        return lost(*self._mine, f"{type(error).__name__} ended it.")

    @property
    def _mine(self) -> tuple[AnyToolCall, int]:
        """The call, and the number of its run."""
        assert self.number is not None
        return self.call, self.number

    def _goes_on(self) -> Outcome:
        return self._cut_off("cannot be stopped" if self.cause is _Cause.DEADLINE else "goes on")

    def _cut_off(self, what: str) -> Outcome:
        if self.cause is _Cause.DEADLINE:
            return self._timed_out(what)
        why = f"the tool was asked to stop and {what}"
        if self.cause is not _Cause.OWNER and (reason := self._stop_reason()):
            why += f": {reason}"
        return cut_off(*self._mine, why, "cancelled")

    def _timed_out(self, what: str, *, is_known: bool = False) -> Outcome:
        """The deadline passed; `is_known` where the function itself said that it stopped."""
        late = f"did not finish within {self.timeout:g} seconds"
        error = TimedOut(f"{late} and {what}.", not is_known)
        self.on_error(error)
        if is_known:
            return fail(self.call._record, str(error), error.code, self.number)
        return cut_off(*self._mine, f"the tool {error.reason}", error.code)

    def _not_executed(self) -> Outcome:
        why = f", because {self._stop_reason() or 'it was cancelled.'}"
        while True:
            may_start(self.call._record, None, self.invocation)
            if (result := end_unstarted(self.call, why)) is not None:
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
            return self._told(self._run_sync())
        with self._surrounded(around) as came_to:
            came_to.append(self._told(self._run_sync()))
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
        return self.invocation.run_sync(self.call, self.call._record.input_for_tool(), self.hidden)


class _Fatal(NamedTuple):
    """What a function raised that is not an `Exception`."""

    error: BaseException


async def _wait(task: _Task, seconds: float) -> None:
    await asyncio.wait((task,), timeout=seconds)


async def to_its_end(task: asyncio.Future[Any], seconds: float = inf) -> None:
    """Wait for a task that ends soon, also if cancellation is asked for once more."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not task.done() and (left := end - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,), timeout=left)


def _is_done(thread: Future[Ended[Any]], seconds: float) -> bool:
    """Wait for a thread; whether it has ended."""
    with suppress(TimeoutError):
        thread.result(min(seconds, TIMEOUT_MAX))
    return thread.done()


def leave_behind(task: _Task) -> None:
    """Let a task go on that nobody waits for; the loop alone would not keep it alive."""
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_look_away)


def _look_away(task: _Task) -> None:
    """Take note of a late exception, so that asyncio does not report it as forgotten."""
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()


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

    def __init__(self, plan: ToolRoundPlan[Any], settings: Settings, *, in_order: bool) -> None:
        if not isinstance(plan, ToolRoundPlan):
            raise MisuseError(
                f"What is run here is a plan, not {shorten(plan)}. Pass what `round.plan()` or "
                "`await round.apply_hooks(hooks)` gave; single calls are for `execute`."
            )
        check_flag("in_order", in_order)
        plan._state.check_open()
        self.plan = plan
        self.settings = settings
        self.refused: dict[int, BaseException] = {}
        self.waits: list[list[int]] | None = None
        self.in_doubt: list[AnyToolCall] = []
        self._lock = Lock()
        self._in_order = in_order
        self.ready: list[AnyToolCall] = []
        self._is_started = False

    def settle(self) -> HookGenerator[bool]:
        """Let hooks decide about what calls have requested; whether there is anything to run then.

        If no call has requested any, there is something only once, since all that can be run is run
        together.
        """
        inner, hooks = self.plan._state.call_round.inner, self.settings.hooks
        is_started, self._is_started = self._is_started, True
        if is_started and not inner:
            return False
        if hooks is not None:
            yield from settle_within(self.plan._state, hooks, self.settings.on_event)
            yield from self._show_again()
        if self._in_order:
            from .._round.sorted_calls import Order

            order = Order.of(self.plan._state).free()
            self.ready, self.waits = [each.call for each in order.calls], order.waits
        else:
            self.ready = [call for call in self.plan.pending if call._record.stage.may_start]
        for call in self.ready if inner else ():
            check_shown(self.plan._state, call.id, hooks)  # before it is run, and its result lost
        return bool(self.ready)

    def _show_again(self) -> HookGenerator[None]:
        """Show what came of calls before, or while an after-hook raised, or was cut off."""
        state = self.plan._state
        for each in state.decoded:
            if state_in(each.history) in ("handled", "finished"):
                yield from self.shown(each.call, result_in(each.history))
        for each in state.lists.pending:
            end = end_of(each.history) if each.id in state.call_round.inner else None
            if end is not None and isinstance(end.detail, ToolResult):
                outcome = yield from self.shown(each.call, end.detail)
                self.take(each.call, outcome, each.last[1])

    def shown(self, call: AnyToolCall, outcome: Any) -> HookGenerator[Outcome]:
        """Show what a call came to to the after-hooks, before the plan is given it."""
        shown: Outcome = outcome
        # That a call was refused at its start is no result of its tool.
        if self.settings.hooks is not None and state_in(call._record.history) != "rejected":
            shown = yield from show_to(call._record, outcome, self.settings.hooks)
        return shown

    def after_doubt(self, call: AnyToolCall) -> Outcome | None:
        """Answer a call that would come after one which perhaps still works on the same.

        Returns:
            Its result; None if it may start, as it always may if no order is kept.
        """
        for doubtful in self.in_doubt:
            # A program whose inner call is in doubt may go on: it accesses the same because that
            # call is part of it.
            is_free = call._record in self.plan._state.outer_of(
                doubtful.id
            )  # it is within this one
            if (
                call._record.stage.may_start
                and not is_free
                and meet(doubtful.accesses, call.accesses)
            ):
                outcome = after_doubt(call, doubtful)
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
        self.plan._state.check_open()  # a plan that was saved meanwhile runs where it is loaded
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
            self.plan._state.check_open()
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
            if call._record.stage.may_start:
                return
            self.plan._state.check_open()
            if not record(self.plan._state, outcome, run):
                return
            if self.waits is not None and is_in_doubt(outcome):
                self.in_doubt.append(call)
            self._tell_ended(call, outcome)

    def take_cut_off(self, call: AnyToolCall, outcome: Outcome | None, run: int | None) -> None:
        """Do as `take` does if the run is over, so that no after-hook can run any more."""
        try:
            check_shown(self.plan._state, call.id)
        except MisuseError:
            return
        if outcome is not None:
            self.take(call, outcome, run)

    # The rows are made of the call at hand: a round may have thousands.

    def started(self, call: AnyToolCall) -> None:
        """Tell that a call was started, if somebody wants to know."""
        asked = any(steps_of_kind(call._record.history, "requested"))
        self._tell("continued" if asked else "started", call, "pending")

    def _tell_ended(self, call: AnyToolCall, outcome: Outcome) -> None:
        if isinstance(outcome, SuspendedCall):
            self._tell("suspended", call)
        elif isinstance(outcome, AwaitingCall) and not call._record.stage.is_end:
            self._tell("requested", call)
            if self.settings.on_event is not None:
                tell_asked(self.plan._state, self.settings.on_event, call._record)
        else:
            self._tell("ended", call)

    def _tell(
        self, kind: CallEventKind, call: AnyToolCall, state: CallRowState | None = None
    ) -> None:
        if self.settings.on_event is not None:
            row = row_of(call._record, state, outer=Ancestry.of(self.plan._state, call.id))
            tell_row(self.settings.on_event, kind, row)
