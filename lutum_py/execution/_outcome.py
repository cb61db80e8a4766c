"""The outcome of a run: every ending of a tool has one meaning, written down here.

What a result may claim is in `CallRun`. A call that failed is told about, too: by one record in the
log, one event for the sink of its context.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from .. import AnyToolCall, ToolContext, ToolResult, Toolset
from .._text.escaping import LINES, escape_unprintable, is_interrupt, members_of, sole, words_of
from .._text.json import cut
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
from ..typing import CallRun, NotEnded

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

    @classmethod
    def added_to(cls, error: E, outcomes: Sequence[Outcome]) -> E:
        """Return an exception in which `outcomes_of` finds the outcomes of calls."""
        # The exception itself goes on, for others may know it by its type or identity. The outcomes
        # hang on its chain of causes, where `outcomes_of` finds them.
        account = cls(outcomes)
        account.__cause__ = error.__cause__
        error.__cause__ = account
        return error

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


def raise_with(error: BaseException, outcomes: Sequence[Outcome], who: str) -> NoReturn:
    """Raise an interrupt, or a failure as an error, with the outcomes of calls."""
    made = error if is_interrupt(error) else HookError.as_error(error, who)
    raise ExecutionCancelled.added_to(made, outcomes)


def finished(run: CallRun, output: Any, on_error: OnError) -> ToolResult:
    """Answer a call whose function returned."""
    try:
        return run.finish(output)
    except LifecycleError:
        raise
    except BaseException as raised:  # a validator of the output type may raise anything
        if is_interrupt(raised):
            raise
        error = HookError.as_error(raised, f"The output of tool `{run.call.name}`")
        on_error(error)
        text = str(error) if isinstance(error, ToolOutputError) else _describe(error)
        # The model may else call it again, for an effect that it had.
        return run.fail(f"The tool ran, but its output cannot be shown. {text}", "invalid_output")


def failed(run: CallRun, error: Exception, on_error: OnError) -> Outcome:
    """Answer a call whose function raised: it may have suspended itself, or said why it failed."""
    meant = sole(error)
    try:
        if isinstance(meant, ToolSuspended):
            return run.suspend(meant.ticket)
        if isinstance(meant, ToolRequestedCalls):
            return run.request_calls(meant, Toolset)
    except LifecycleError:
        raise
    except Exception as refused:  # noqa: BLE001 - what it asks with may raise anything
        error = meant = refused  # as if `ctx.suspend` or `ctx.request_calls` had raised it
    on_error(error)
    unknown = unknown_in(meant)
    if unknown is not None:
        return run.indeterminate(words_of(unknown.reason), unknown.code)
    if isinstance(meant, Cancelled):
        return run.cancel(meant.reason)
    if isinstance(meant, TimedOut) and meant.is_in_doubt:
        return run.cut_off(meant.reason, meant.code)
    if isinstance(meant, ToolError):
        return run.fail(str(meant), meant.code)
    return run.fail(f"Execution failed: {_describe(meant)}", "execution_failed")


def unknown_in(error: Exception) -> OutcomeUnknown | None:
    """Find an `OutcomeUnknown` in an exception: if a part of a group is in doubt, the whole is."""
    if isinstance(error, OutcomeUnknown):
        return error
    return next(filter(None, map(unknown_in, members_of(error))), None)


# A tool that was asked to stop raises `ConnectionError`: was the payment made before the line
# broke? Only the types that are meant as an answer are taken for one.
def tells(error: Exception) -> bool:
    """Whether what a function raised on being stopped says what became of it.

    What else it raises then, such as the error that a client makes of a lost connection, says no
    more than that it was cut off.
    """
    says = isinstance(error, ToolSuspended | ToolRequestedCalls | TimedOut | Cancelled)
    return says or unknown_in(error) is not None


def after_doubt(run: CallRun, doubtful: AnyToolCall) -> ToolResult | None:
    """Answer a call that was not started, since another may still work on what it accesses."""
    why = (
        f", because call {doubtful.id!r} of tool `{doubtful.name}` came before it, accesses the "
        "same, and has an unknown outcome: perhaps it still works. Find out what it did, and call "
        "again."
    )
    return run.end_unstarted(why, "after_doubt", "not started")


def _describe(error: Exception) -> str:
    name = type(error).__name__
    text = words_of(error)
    if members := members_of(error):
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
