"""Spans for tool calls, by OpenTelemetry's conventions for generative AI; the extra `otel`.

Your code runs the tools, so your code says where a span begins and ends, in a `with` statement.
Nothing happens without the package `opentelemetry-api`, or where no SDK is configured.

A span is called `execute_tool {name}`, is of kind `INTERNAL`, and has these attributes:

| attribute | what it holds |
|---|---|
| `gen_ai.operation.name` | `execute_tool` |
| `gen_ai.tool.name` | the wire name of the tool |
| `gen_ai.tool.type` | `function` |
| `gen_ai.tool.description` | what the model is told about the tool |
| `gen_ai.tool.call.id` | the id of the call: the provider's, or a path such as `c1/2` |
| `gen_ai.tool.call.arguments` | what the tool gets, as JSON text; only with `content=True` |
| `gen_ai.tool.call.result` | what a successful tool gave, as JSON text; only with `content=True` |
| `error.type` | why it failed: the code of the result, or the class of the exception |
| `lutum.tool.path` | where a nested tool is in its toolset, as in `data.get_user` |
| `lutum.tool.outcome` | the status of the result, `suspended` or `asks`; none while it is open |
| `lutum.suspension.id` | the ticket's id, on the span that suspends and on that which goes on |

Spans nest by path: what a call asks for is under its span, as do its later steps. That span is
saved in the plan, so that they stand there also where they are run in another process.

What was decided about calls becomes events named `lutum.tool.decision` on the current span.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from traceback import format_exception
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

from .. import __version__
from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._call.outcomes import AskingCall, HandledCall, RejectedCall, SuspendedCall
from .._context.context import ToolSuspended
from .._context.inner import ToolAsks
from .._text.escaping import words_of
from .._text.json import shorten
from .._transcript.result import ToolResult
from ..errors import Cancelled, InvalidValueError, MisuseError, OutcomeUnknown, ToolError
from ..execution import outcomes_of
from ._attributes import (
    NAME_LIMIT,
    Decided,
    arguments_of,
    bounded,
    call_attributes,
    class_name,
    decision_attributes,
    place_of,
    trace_of,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

__all__ = ["CallSpan", "Decided", "ToolTracer"]

R = TypeVar("R")

_OUTCOMES: Final = {
    CallStatus.SUCCEEDED: "success",
    CallStatus.FAILED: "error",
    CallStatus.CANCELLED: "cancelled",
    CallStatus.SUSPENDED: "suspended",
}


class ToolTracer:
    """Open a span for each call that your code runs.

    Args:
        content: Whether arguments, results, reasons and the texts of exceptions are recorded: they
            may hold what is confidential.
        content_limit: Characters that are kept of each of them.
        tracer_provider: Whose tracer is used; None for the one that is configured globally.

    Raises:
        MisuseError: `content_limit` is not a whole number.
        InvalidValueError: `content_limit` is negative.

    Example:
        >>> from lutum_py import ToolMetadata, Toolset, tool, tool_fn
        >>> @tool_fn
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> class Sums(Toolset):
        ...     plus = tool(add)
        >>> tracer = ToolTracer()
        >>> call = Sums.parse_tool_call(
        ...     ToolMetadata(id="c1", name="add", arguments='{"a":1,"b":2}')
        ... )
        >>> with tracer.span(call) as record:
        ...     result = record(call.call_sync())
        >>> result.result
        '3'
    """

    def __init__(
        self,
        *,
        content: bool = False,
        content_limit: int = 8192,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        if not isinstance(content_limit, int) or isinstance(content_limit, bool):
            raise MisuseError.of_field("ToolTracer", "content_limit", "an int", content_limit)
        if content_limit < 0:
            raise InvalidValueError(
                f"ToolTracer: `content_limit` is {content_limit}, and no text has fewer than 0 "
                "characters. Give how many are kept of each, or leave content out with "
                "`content=False`."
            )
        self.content = content
        self.content_limit = content_limit
        self.tracer: Tracer | None = None
        try:
            from opentelemetry import trace
        except ImportError:
            return
        self.tracer = trace.get_tracer("lutum_py", __version__, tracer_provider)

    def span(
        self,
        call: AnyToolCall,
        *,
        context: Context | None = None,
        links: Sequence[Link] | None = None,
    ) -> CallSpan:
        """Make the span of one call; it begins and ends with the `with` statement.

        Sync and async code use it alike. What `with` gives is a function: hand it the outcome of
        the call, and it gives that back.

        Args:
            call: The call that is run inside.
            context: The parent's context; None for the current one, or for what a call asked for,
                and for its own later steps, that of its first span. A thread that you start
                yourself does not know the current span of the thread that started it.
            links: Spans of other traces that this one belongs to.

        Raises:
            MisuseError: It is not a call.
        """
        if not isinstance(call, AnyToolCall):
            raise MisuseError(
                f"A span is that of one call, as in `tracer.span(plan.pending[0])`, not of "
                f"{shorten(call)}."
            )
        return CallSpan(self, call, context, links)

    def record_decisions(self, decided: Iterable[Decided] | Decided) -> None:
        """Add an event to the current span for each decision about a call.

        Args:
            decided: Such as `plan.decisions`, `plan.recoverable_tool_call_issues`, the `Decision`
                on a call that was suspended, or a `CallEvent`: `on_event=tracer.record_decisions`.

        Raises:
            MisuseError: It is something else, also where no span is recorded.
        """
        # First of all, so that a mistake shows also where tracing is off.
        decisions = _decisions_of(decided)
        if self.tracer is None:
            return
        from opentelemetry.trace import get_current_span

        span = get_current_span()
        if not span.is_recording():
            return
        for each in decisions:
            attributes, reason = decision_attributes(each)
            if self.content and reason is not None:
                attributes["lutum.decision.reason"] = bounded(reason, self.content_limit)
            span.add_event("lutum.tool.decision", attributes)


class CallSpan:
    """The span of one call, for a `with` statement; called with an outcome, it records it.

    Attributes:
        call: The call.
        span: The span of OpenTelemetry, to add your own attributes to; None before the `with`
            statement, and without the package.
    """

    __slots__ = ("_context", "_links", "_open", "_outcome", "_tracer", "call", "span")

    def __init__(
        self,
        tracer: ToolTracer,
        call: AnyToolCall,
        context: Context | None,
        links: Sequence[Link] | None,
    ) -> None:
        self.call: AnyToolCall = call
        self.span: Span | None = None
        self._tracer = tracer
        self._context = context
        self._links = links
        # A span is made current for the time of the block, by a context manager of the SDK; the
        # stack is empty where no SDK is there, so that leaving is the same in both cases.
        self._open = ExitStack()
        self._outcome: object = None

    def __call__(self, outcome: R) -> R:
        """Note the outcome of the call, and give it back; the last one counts.

        Args:
            outcome: A `ToolResult`, `SuspendedCall`, `AskingCall`, `HandledCall` or `RejectedCall`.
        """
        self._outcome = outcome
        # At once, since a plan may take it in before the span ends.
        if self.span is not None and isinstance(outcome, AskingCall):
            trace_of(self.span, outcome)
        return outcome

    def __enter__(self) -> Self:
        tracer = self._tracer.tracer
        if tracer is not None:
            context, links = place_of(self.call, self._context, self._links)
            self.span = self._open.enter_context(
                tracer.start_as_current_span(
                    f"execute_tool {bounded(self.call.name, NAME_LIMIT)}",
                    context=context,
                    attributes=call_attributes(self.call),
                    links=links,
                    # OpenTelemetry would put the text of an exception into the span, content or
                    # not.
                    record_exception=False,
                    set_status_on_exception=False,
                )
            )
            if self._tracer.content and self.span.is_recording():
                self._content("gen_ai.tool.call.arguments", arguments_of(self.call))
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object, /) -> None:
        try:
            if self.span is not None and self.span.is_recording():
                self._end(self.span, error)
        finally:
            self._open.close()

    def _end(self, span: Span, error: BaseException | None) -> None:
        # Three sources, the surest first: what was handed in, what an exception tells about the
        # call, and the status of the call itself.
        outcome = self._outcome
        if error is not None and outcome is None:
            # `execute` tells the outcome of the call also where it ends by an exception.
            known = [
                each
                for each in outcomes_of(error)
                if (each if isinstance(each, ToolResult) else each.call).id == self.call.id
            ]
            outcome = known[0] if known else None
        if isinstance(outcome, HandledCall | RejectedCall):
            outcome = outcome.result
        if isinstance(outcome, SuspendedCall):
            self._suspended(span, outcome.ticket.id)
        elif isinstance(error, ToolSuspended):
            self._suspended(span, error.ticket.id)
        elif isinstance(outcome, AskingCall) or isinstance(error, ToolAsks):
            self._outcome_word(span, "asks", "")
        elif isinstance(outcome, ToolResult):
            self._result(span, outcome)
        elif error is not None:
            self._raised(span, error)
        elif (word := _OUTCOMES.get(self.call.status)) is not None:
            self._outcome_word(span, word, "tool_error" if word == "error" else word)

    def _suspended(self, span: Span, ticket: str) -> None:
        span.set_attribute("lutum.tool.outcome", "suspended")
        span.set_attribute("lutum.suspension.id", bounded(ticket, NAME_LIMIT))

    def _result(self, span: Span, result: ToolResult) -> None:
        status = result.status
        error_type = result.code or ("tool_error" if status == "error" else status)
        text = result.model_text if self._tracer.content and result.is_error else ""
        self._outcome_word(span, status, error_type, text)
        if self._tracer.content and result.is_success:
            self._content("gen_ai.tool.call.result", result.result)

    def _raised(self, span: Span, error: BaseException) -> None:
        # A tool that was cut off may have done anything, and perhaps goes on in its thread.
        if isinstance(error, OutcomeUnknown):
            word = "indeterminate"
        elif isinstance(error, CancelledError):
            word = "indeterminate" if self.call.status is CallStatus.RUNNING else "cancelled"
        else:
            word = "cancelled" if isinstance(error, Cancelled) else "error"
        kind = class_name(type(error))
        self._outcome_word(
            span, word, error.code if isinstance(error, ToolError) else kind, words_of(error)
        )
        if self._tracer.content:
            limit = self._tracer.content_limit
            attributes = {
                "exception.type": kind,
                "exception.message": bounded(words_of(error), limit),
                "exception.stacktrace": bounded("".join(format_exception(error)), limit),
            }
            span.add_event("exception", attributes)

    def _outcome_word(self, span: Span, word: str, error_type: str, text: str = "") -> None:
        span.set_attribute("lutum.tool.outcome", word)
        if word in ("success", "suspended", "asks"):
            return
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", bounded(error_type, NAME_LIMIT))
        shown = bounded(text, self._tracer.content_limit) if self._tracer.content else None
        span.set_status(StatusCode.ERROR, shown)

    def _content(self, name: str, text: str) -> None:
        assert self.span is not None
        self.span.set_attribute(name, bounded(text, self._tracer.content_limit))


def _decisions_of(decided: object) -> list[Decided]:
    """Take decisions, or a single one.

    Raises:
        MisuseError: It is something else.
    """
    if isinstance(decided, Decided):
        return [decided]
    if not isinstance(decided, Iterable):
        raise _no_decisions(shorten(decided))
    decisions: list[Decided] = []
    for each in cast("Iterable[object]", decided):
        if not isinstance(each, Decided):
            raise _no_decisions(f"something that holds {shorten(each)}")
        decisions.append(each)
    return decisions


def _no_decisions(given: str) -> MisuseError:
    return MisuseError(f"record_decisions takes a list, such as plan.decisions, not {given}.")
