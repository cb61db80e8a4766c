"""The outcome of a run: every ending of a tool has one meaning, written down here.

The rule behind them: a result claims no more than is known. What never started, or said that it
stopped, is `cancelled`; what failed is an `error`; what was started and cut off is `indeterminate`,
for it may have had its effects. But if the tool declares that it changes nothing, nothing is in
doubt: what was cut off is an `error` or `cancelled` then. That rule is in `cut_off` alone.

A call that failed is told about, too: by one record in the log, one event for the sink of its
context.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import suppress
from traceback import format_exception
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

from .. import AnyToolCall, ToolContext, ToolResult, Toolset
from .._call.call_state import decoded_calls
from .._call.history import Move, move, was_begun
from .._call.outcomes import suspend
from .._call.running import end_with, fail, finish, give_up
from .._round.ending import ended_within
from .._round.inner import asking_call
from .._text.escaping import LINES, escape_unprintable, is_interrupt, words_of
from .._text.json import cut
from .._transcript.result import failure, unknown_outcome
from ..context import ProgressStatus, ToolRequestedCalls, ToolSuspended
from ..errors import (
    Cancelled,
    HookError,
    LifecycleError,
    LutumError,
    OutcomeUnknown,
    TimedOut,
    ToolError,
    ToolOutputError,
)
from ..typing import NotEnded

E = TypeVar("E", bound=BaseException)

Outcome: TypeAlias = ToolResult | NotEnded
"""A result, or a call that suspended itself while it was run, or that requests others."""

OnError: TypeAlias = Callable[[Exception], object]
"""A function that is shown each exception before it becomes a result; it may raise it instead."""

_LIMIT = 2000
"""Characters that the model reads of an exception that nobody wrote for it."""

_MEMBERS = 8
"""Members of an exception group that the model is told about."""

_LOGGER: Final = logging.getLogger("lutum.execution")
_LOGGER.addHandler(logging.NullHandler())  # a program that set no logging up is not written to
_LONGEST_TEXT: Final = 2000
_LONGEST_MESSAGE: Final = 400


class ExecutionCancelled(LutumError):
    """Hold the outcomes of calls that were cut off; `outcomes_of` finds them.

    It is the cause of the `CancelledError`, or of what else came out, such as a
    `KeyboardInterrupt`. It does not derive from `CancelledError`: before Python 3.13
    `asyncio.timeout` and `asyncio.TaskGroup` know no subclass of that.

    Attributes:
        outcomes: One for each call that was given, in order.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__(
            "The run of these calls was cut off. `outcomes_of(error)` gives their outcomes."
        )
        self.outcomes: tuple[Outcome, ...] = tuple(outcomes)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.outcomes,))


class ExecutionErrors(ExceptionGroup[Exception], LutumError):
    """What several calls raised under `raise_errors`, or `around` did; all of them have ended.

    The exceptions are in the order of the calls.

    Attributes:
        outcomes: One for each call that was given, in order: what it comes to without
            `raise_errors`, and `cancelled` if `around` raised before it was started.
    """

    outcomes: tuple[Outcome, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[Exception], outcomes: Sequence[Outcome]) -> ExecutionErrors:
        """Put exceptions together with the outcomes of all calls."""
        count = f"{len(errors)} of {len(outcomes)} calls failed"
        made = cls(f"{count}; `outcomes` holds what all of them came to", errors)
        made.outcomes = tuple(outcomes)
        return made

    def derive(self, excs: Any, /) -> Any:
        """Make the group that `except*` shows of this one."""
        made = ExecutionErrors(self.message, excs)
        made.outcomes = self.outcomes
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.exceptions), {"outcomes": self.outcomes})


def outcomes_of(error: BaseException) -> tuple[Outcome, ...]:
    """Find the outcomes of calls in the exception by which their run ended.

    Args:
        error: The `CancelledError` of the task, the `TimeoutError` that `asyncio.timeout` made of
            it, the `KeyboardInterrupt` that `asyncio.run` made of it, what a tool raised that is
            not an `Exception`, a `KeyboardInterrupt` that came between the calls, an
            `ExecutionErrors`, or whatever was raised `from` one of these.

    Returns:
        One outcome for each call that was given, in order. What finished is kept, what was cut off
        is `indeterminate`, what was not started is `cancelled`. Empty if no run was cut off, or if
        the error was only raised while one of these was handled: it may be of another run.

    Example:
        >>> outcomes_of(TimeoutError())
        ()
    """
    # Causes alone: an error that is raised within `except` has the one that is handled there as its
    # context, and a second run there would get the outcomes of the first.
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        if isinstance(each, ExecutionCancelled | ExecutionErrors):
            return each.outcomes
        seen.add(id(each))
        each = each.__cause__ or _cancelled_by(each)
    return ()


def _cancelled_by(error: BaseException) -> BaseException | None:
    """Return the cancellation that `asyncio.run` made an interrupt of: it names no cause."""
    context = error.__context__
    is_of_loop = isinstance(error, KeyboardInterrupt) and isinstance(context, CancelledError)
    return context if is_of_loop else None


def telling(error: E, outcomes: Sequence[Outcome]) -> E:
    """Let `outcomes_of` find in an exception the outcomes of calls."""
    # The exception itself goes on, for others may know it by its type or identity. The outcomes
    # hang on its chain of causes, where `outcomes_of` finds them.
    account = ExecutionCancelled(outcomes)
    account.__cause__ = error.__cause__
    error.__cause__ = account
    return error


def as_error(error: BaseException, who: str) -> Exception:
    """Return what a function of the program raised, which is no interrupt, as an error.

    Args:
        error: What it raised.
        who: Which function that was, to begin a sentence.
    """
    if isinstance(error, Exception):
        return error
    # Passed on, it would look as if somebody had cancelled the task.
    return HookError(
        f"{who} let an `asyncio.CancelledError` out, as of a task that it awaited, though nobody "
        "cancelled the run. Catch it there."
    )


def raise_with(error: BaseException, outcomes: Sequence[Outcome], who: str) -> NoReturn:
    """Raise an interrupt, or a failure as an error, with the outcomes of calls."""
    raise telling(error if is_interrupt(error) else as_error(error, who), outcomes)


# Each outcome names its run: one of a run that is over is refused, and in the history as `late`.
def finished(call: AnyToolCall, run: int, output: Any, on_error: OnError) -> ToolResult:
    """Answer a call whose function returned."""
    try:
        return finish(call._record, output, run)
    except LifecycleError:
        raise
    except BaseException as raised:  # a validator of the output type may raise anything
        if is_interrupt(raised):
            raise
        error = as_error(raised, f"The output of tool `{call.name}`")
        on_error(error)
        text = str(error) if isinstance(error, ToolOutputError) else _describe(error)
        return fail(call._record, text, "invalid_output", run)


def failed(call: AnyToolCall, run: int, error: Exception, on_error: OnError) -> Outcome:
    """Answer a call whose function raised: it may have suspended itself, or said why it failed."""
    meant = sole(error)
    try:
        if isinstance(meant, ToolSuspended):
            return suspend(call._record, meant.ticket, run)
        if isinstance(meant, ToolRequestedCalls):
            return asking_call(call._record, meant, Toolset, run)
    except LifecycleError:
        raise
    except Exception as refused:  # noqa: BLE001 - what it asks with may raise anything
        error = meant = refused  # as if `ctx.suspend` or `ctx.request_calls` had raised it
    on_error(error)
    unknown = unknown_in(meant)
    if unknown is not None:
        return give_up(call._record, words_of(unknown.reason), unknown.code, run)
    if isinstance(meant, Cancelled):
        return cancelled(call, run, meant.reason)
    if isinstance(meant, TimedOut) and meant.is_in_doubt:
        return cut_off(call, run, meant.reason, meant.code)
    if isinstance(meant, ToolError):
        return fail(call._record, str(meant), meant.code, run)
    return fail(call._record, f"Execution failed: {_describe(meant)}", "execution_failed", run)


def unknown_in(error: Exception) -> OutcomeUnknown | None:
    """Find an `OutcomeUnknown` in an exception: if a part of a group is in doubt, the whole is."""
    if isinstance(error, OutcomeUnknown):
        return error
    return next(filter(None, map(unknown_in, _group(error))), None)


# A tool that was asked to stop raises `ConnectionError`: was the payment made before the line
# broke? Only the types that are meant as an answer are taken for one.
def tells(error: Exception) -> bool:
    """Whether what a function raised on being stopped says what became of it.

    What else it raises then, such as the error that a client makes of a lost connection, says no
    more than that it was cut off.
    """
    says = isinstance(error, ToolSuspended | ToolRequestedCalls | TimedOut | Cancelled)
    return says or unknown_in(error) is not None


def cancelled(call: AnyToolCall, run: int, reason: str) -> ToolResult:
    """Answer a call that says itself that it stopped, or that only reads."""
    return end_with(call._record, _cancellation(call, reason, Cancelled.code), run)


def _cancellation(call: AnyToolCall, reason: str, code: str) -> ToolResult:
    return failure(call.metadata, "cancelled", f"Cancelled: {reason}", code)


def not_executed(
    call: AnyToolCall, why: str, code: str = Cancelled.code, what: str = "not executed"
) -> ToolResult:
    """Make the result of a call that a run does not start, without ending it.

    It may still be run, or somebody runs it. If it was started by an earlier run, such as before
    the calls that it requested, it is not said to be not executed: the model may pay again then.

    Args:
        call: The call.
        why: Why not, from the comma or colon on.
        code: The code of the result.
        what: What is said of a call that was never started.
    """
    if not was_begun(call._record.history):
        return _cancellation(call, f"{what}{why}", code)
    why = f"the tool was started before, and did not go on{why}"
    within = ended_within(call._record, {})
    if only_reads(call):
        return _cancellation(call, f"{why}{within}", code)
    return unknown_outcome(call.metadata, f"{_doubt(why)}{within}", code)


def is_in_doubt(outcome: Outcome) -> bool:
    """Whether nobody knows what a call did, or still does."""
    return isinstance(outcome, ToolResult) and outcome.status == "indeterminate"


def was_stopped(outcome: Outcome) -> bool:
    """Whether a call has no answer of its own, because it was stopped or never started."""
    return isinstance(outcome, ToolResult) and outcome.status in ("indeterminate", "cancelled")


def end_unstarted(
    call: AnyToolCall, why: str, code: str = Cancelled.code, what: str = "not executed"
) -> ToolResult | None:
    """Answer a call that is not started here, as `not_executed` has it.

    Returns:
        The result; None if the call cannot be started: somebody has started or ended it, or asks.
    """
    while True:
        since = len(call._record.entries)
        if not call._record.stage.may_start:
            return None
        result = not_executed(call, why, code, what)
        ended: Move = move("ended", verdict=result.status, detail=result)
        if call._record.append_all((ended,), since) is not None:
            return result


def after_doubt(call: AnyToolCall, doubtful: AnyToolCall) -> ToolResult | None:
    """Answer a call that was not started, since another may still work on what it accesses."""
    why = (
        f", because call {doubtful.id!r} of tool `{doubtful.name}` came before it, accesses the "
        "same, and has an unknown outcome: perhaps it still works. Find out what it did, and call "
        "again."
    )
    return end_unstarted(call, why, "after_doubt", "not started")


def only_reads(call: AnyToolCall) -> bool:
    """Whether neither the tool of a call nor the tools that it requested change anything."""
    every = (call._record, *decoded_calls(call._record.requested_calls()))
    return all(each.spec.definition.only_reads for each in every)


def cut_off(call: AnyToolCall, run: int, why: str, code: str) -> ToolResult:
    """Answer a call that was started, and of which nobody knows what it did or still does.

    A plain error would invite another call, under another key, and what this one did would be done
    twice. So it is one only if the tool declares effects of which none changes anything.
    """
    # `indeterminate` says to the model: do not simply try again. A tool that only reads can be
    # tried again without harm, and an `error` says that.
    if not only_reads(call):
        return give_up(call._record, _doubt(why), code, run)
    if code == Cancelled.code:
        return cancelled(call, run, why)
    return fail(call._record, f"{TimedOut.prefix}{why}", code, run)


def lost(call: AnyToolCall, run: int, why: str) -> ToolResult:
    """Do as `cut_off` does for a run that may be over by now, with an answer that is lost."""
    if call._record.is_in_run(run):
        with suppress(LifecycleError):  # it ended just now
            return cut_off(call, run, why, Cancelled.code)
    return unknown_outcome(call.metadata, _doubt(why), "cancelled")


def _doubt(why: str) -> str:
    return f"{why.rstrip('.')}. It may have had its effects."


def _group(error: Exception) -> Sequence[Exception]:
    """Return the members of an exception group; none for any other exception."""
    if not isinstance(error, ExceptionGroup):
        return ()
    return cast("ExceptionGroup[Exception]", error).exceptions


def sole(error: Exception) -> Exception:
    """Take a group of one, as task groups make it, for the one."""
    while len(members := _group(error)) == 1:
        error = members[0]
    return error


def _describe(error: Exception) -> str:
    name = type(error).__name__
    text = words_of(error)
    if members := _group(error):
        text += ": " + "; ".join(map(_describe, members[:_MEMBERS]))
    return f"{name}: {cut(text, _LIMIT)}" if text else name


def trace_of(error: Exception) -> str | None:
    """Write down where an exception came from; None if a tool meant it, or nobody listens."""
    is_meant = isinstance(error, ToolError | ToolSuspended | ToolRequestedCalls)
    if is_meant or not _LOGGER.isEnabledFor(logging.WARNING):
        return None
    return escape_unprintable("".join(format_exception(error)).rstrip(), LINES)


def tell(result: ToolResult, context: ToolContext, is_said: bool, trace: str | None) -> None:
    """Log that a call ended otherwise than in success, and let the sink of its context know.

    The record is a warning, or at INFO if the call was cancelled or the tool itself said why it
    failed. It has the attributes `tool_name`, `tool_call_id`, `status` and `code`.

    Args:
        result: How the call ended.
        context: What its function got, or would have got.
        is_said: Whether the tool raised a `ToolError`.
        trace: The traceback of what it raised otherwise.
    """
    is_cancelled = result.status == "cancelled"
    level = logging.INFO if is_said or is_cancelled else logging.WARNING
    if _LOGGER.isEnabledFor(level):
        name = escape_unprintable(result.name)
        text = escape_unprintable(cut(result.model_text, _LONGEST_TEXT))
        extra = {
            "tool_name": name,
            "tool_call_id": escape_unprintable(result.id),
            "status": result.status,
            "code": result.code,
        }
        words, arguments = "%s: %s (call %r): %s", (result.status, name, result.id, text)
        # `Logger.warning(exc_info=...)` would keep the exception, with all frames of the tool and
        # their arguments, as long as a handler keeps the record. So the record is made by hand,
        # with text.
        file, line, function, _ = _LOGGER.findCaller()
        record = _LOGGER.makeRecord(
            _LOGGER.name, level, file, line, words, arguments, None, function, extra
        )
        # Not as `exc_info`: formatters write that as it comes, and it would hold the tool's frames.
        record.exc_text = trace
        _LOGGER.handle(record)
    if not context.has_failed:
        status = ProgressStatus.CANCELLED if is_cancelled else ProgressStatus.FAILED
        ended = context.with_cancellation(context.cancellation)  # the run itself is over by now
        ended.report_progress(status, cut(result.model_text, _LONGEST_MESSAGE))
