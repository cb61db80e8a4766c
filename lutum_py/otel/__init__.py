"""Spans for tool calls, by OpenTelemetry's conventions for generative AI; the extra `otel`.

Your code runs the tools, so your code says where a span begins and ends, in a `with` statement.
Nothing happens without the package `opentelemetry-api`, or where no SDK is configured.

A span is called `execute_tool {name}`, is of kind `INTERNAL`, and has these attributes:

| attribute | what it holds |
|---|---|
| `gen_ai.operation.name` | `execute_tool` |
| `gen_ai.tool.name` | the wire name of the tool |
| `gen_ai.tool.type` | `function` |
| `gen_ai.tool.description` | the description of the tool |
| `gen_ai.tool.call.id` | the id of the call: the provider's, or a path such as `c1/2` |
| `gen_ai.tool.call.arguments` | what the tool gets, as JSON text; only with `content=True` |
| `gen_ai.tool.call.result` | what a successful tool gave, as JSON text; only with `content=True` |
| `error.type` | why it failed: the code of the result, or the class of the exception |
| `lutum.tool.path` | where a nested tool is in its toolset, as in `data.get_user` |
| `lutum.tool.outcome` | the status of the result, `suspended` or `requested`; none while open |
| `lutum.suspension.id` | the ticket's id, on the span that suspends and on that which goes on |

Spans nest by path: what a call requests is under its span, as do its later steps. That span is
saved in the plan, so that they stand there also if they are run in another process.

What was decided about calls becomes events named `lutum.tool.decision` on the current span.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from traceback import format_exception
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar, cast

from .. import (
    AnyToolCall,
    AwaitingCall,
    CallStatus,
    Decision,
    HandledCall,
    RecoverableToolCallIssue,
    RejectedCall,
    SuspendedCall,
    ToolResult,
    __version__,
)
from .._text.escaping import words_of
from .._text.immutable import SetOnce, settle
from .._text.json import compact_json, cut, is_whole, shorten
from ..context import ToolRequestedCalls, ToolSuspended
from ..errors import Cancelled, InvalidValueError, MisuseError, OutcomeUnknown, ToolError
from ..execution import outcomes_of
from ..typing import CallEvent, DecisionRecord

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

__all__ = ["CallSpan", "Decided", "ToolTracer"]

R = TypeVar("R")

Decided: TypeAlias = DecisionRecord | RecoverableToolCallIssue | Decision | CallEvent
"""What is told about a call that is not run, or not yet: see `ToolTracer.record_decisions`."""

_NAME_LIMIT: Final = 128
"""Characters of a name, or of an id."""

_TEXT_LIMIT: Final = 1024
_OUTCOMES: Final = {
    CallStatus.SUCCEEDED: "success",
    CallStatus.FAILED: "error",
    CallStatus.CANCELLED: "cancelled",
    CallStatus.SUSPENDED: "suspended",
}


class ToolTracer(SetOnce):
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

    __slots__ = ("content", "content_limit", "tracer")
    _way: ClassVar[str] = "it records what it was made to record. Make another `ToolTracer`."

    def __init__(
        self,
        *,
        content: bool = False,
        content_limit: int = 8192,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        if not is_whole(content_limit):
            raise MisuseError.of_field("ToolTracer", "content_limit", "an int", content_limit)
        if content_limit < 0:
            raise InvalidValueError(
                f"ToolTracer: `content_limit` is {content_limit}, and no text has fewer than 0 "
                "characters. Give how many are kept of each, or leave content out with "
                "`content=False`."
            )
        self.content: bool = content
        self.content_limit: int = content_limit
        tracer: Tracer | None = None
        with suppress(ImportError):
            from opentelemetry import trace

            tracer = trace.get_tracer("lutum_py", __version__, tracer_provider)
        self.tracer: Tracer | None = tracer

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
            context: The parent's context; None for the current one, or for what a call requested,
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
            MisuseError: It is something else, also if no span is recorded.
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
            attributes, reason = _decision_attributes(each)
            if self.content and reason is not None:
                attributes["lutum.decision.reason"] = _bounded(reason, self.content_limit)
            span.add_event("lutum.tool.decision", attributes)


class CallSpan:
    """The span of one call, for a `with` statement; called with an outcome, it records it.

    Attributes:
        call: The call.
        span: The span of OpenTelemetry, to add your own attributes to; None before the `with`
            statement, and without the package.
    """

    __slots__ = ("_call", "_context", "_links", "_open", "_outcome", "_span", "_tracer")
    call: AnyToolCall
    span: Span | None

    def __init__(
        self,
        tracer: ToolTracer,
        call: AnyToolCall,
        context: Context | None,
        links: Sequence[Link] | None,
    ) -> None:
        self._call = call
        self._span: Span | None = None
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
            outcome: A `ToolResult`, `SuspendedCall`, `AwaitingCall`, `HandledCall` or
                `RejectedCall`.
        """
        self._outcome = outcome
        # At once, since a plan may take it in before the span ends.
        if self.span is not None and isinstance(outcome, AwaitingCall):
            _trace_of(self.span, outcome)
        return outcome

    def __enter__(self) -> Self:
        tracer = self._tracer.tracer
        if tracer is not None:
            context, links = _place_of(self.call, self._context, self._links)
            span = self._span = self._open.enter_context(
                tracer.start_as_current_span(
                    f"execute_tool {_bounded(self.call.name, _NAME_LIMIT)}",
                    context=context,
                    attributes=_call_attributes(self.call),
                    links=links,
                    # OpenTelemetry would put the text of an exception into the span, content or
                    # not.
                    record_exception=False,
                    set_status_on_exception=False,
                )
            )
            if self._tracer.content and span.is_recording():
                # What the tool gets, which may be other than what the model sent.
                shown = self.call.shown_arguments
                text = "an input without a JSON form" if shown is None else compact_json(shown)
                self._content(span, "gen_ai.tool.call.arguments", text)
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
            known = {
                (each if isinstance(each, ToolResult) else each.call).id: each
                for each in outcomes_of(error)
            }
            outcome = known.get(self.call.id)
        if isinstance(outcome, HandledCall | RejectedCall):
            outcome = outcome.result
        if isinstance(outcome, SuspendedCall):
            self._suspended(span, outcome.ticket.id)
        elif isinstance(error, ToolSuspended):
            self._suspended(span, error.ticket.id)
        elif isinstance(outcome, AwaitingCall) or isinstance(error, ToolRequestedCalls):
            self._outcome_word(span, "requested", "")
        elif isinstance(outcome, ToolResult):
            self._result(span, outcome)
        elif error is not None:
            self._raised(span, error)
        elif (word := _OUTCOMES.get(self.call.status)) is not None:
            self._outcome_word(span, word, "tool_error" if word == "error" else word)

    def _suspended(self, span: Span, ticket: str) -> None:
        span.set_attribute("lutum.tool.outcome", "suspended")
        span.set_attribute("lutum.suspension.id", _bounded(ticket, _NAME_LIMIT))

    def _result(self, span: Span, result: ToolResult) -> None:
        status = result.status
        error_type = result.code or ("tool_error" if status == "error" else status)
        text = result.model_text if self._tracer.content and result.is_error else ""
        self._outcome_word(span, status, error_type, text)
        if self._tracer.content and result.is_success:
            self._content(span, "gen_ai.tool.call.result", result.result)

    def _raised(self, span: Span, error: BaseException) -> None:
        # A tool that was cut off may have done anything, and perhaps goes on in its thread.
        if isinstance(error, OutcomeUnknown):
            word = "indeterminate"
        elif isinstance(error, CancelledError):
            word = "indeterminate" if self.call.was_started else "cancelled"
        else:
            word = "cancelled" if isinstance(error, Cancelled) else "error"
        kind = _class_name(type(error))
        self._outcome_word(
            span, word, error.code if isinstance(error, ToolError) else kind, words_of(error)
        )
        if self._tracer.content:
            limit = self._tracer.content_limit
            attributes = {
                "exception.type": kind,
                "exception.message": _bounded(words_of(error), limit),
                "exception.stacktrace": _bounded("".join(format_exception(error)), limit),
            }
            span.add_event("exception", attributes)

    def _outcome_word(self, span: Span, word: str, error_type: str, text: str = "") -> None:
        span.set_attribute("lutum.tool.outcome", word)
        if word in ("success", "suspended", "requested"):
            return
        from opentelemetry.trace import StatusCode

        span.set_attribute("error.type", _bounded(error_type, _NAME_LIMIT))
        shown = _bounded(text, self._tracer.content_limit) if self._tracer.content else None
        span.set_status(StatusCode.ERROR, shown)

    def _content(self, span: Span, name: str, text: str) -> None:
        span.set_attribute(name, _bounded(text, self._tracer.content_limit))


settle(CallSpan, "it is that of one call. Call `tracer.span(call)` for another.", "call", "span")


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


def _call_attributes(call: AnyToolCall) -> dict[str, str]:
    """Return the attributes that the span of a call starts with."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": _bounded(call.name, _NAME_LIMIT),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": _bounded(call.id, _NAME_LIMIT),
    }
    if description := call.selector.definition.description:
        attributes["gen_ai.tool.description"] = _bounded(description, _TEXT_LIMIT)
    if len(call.selector.path) > 1:
        attributes["lutum.tool.path"] = _bounded(".".join(call.selector.path), _NAME_LIMIT)
    if call.suspension_id is not None:
        attributes["lutum.suspension.id"] = _bounded(call.suspension_id, _NAME_LIMIT)
    return attributes


def _decision_attributes(decided: Decided) -> tuple[dict[str, str], str | None]:
    """Say who decided what about which call, and apart from it why."""
    told: tuple[str | None, ...]
    if isinstance(decided, DecisionRecord):
        told = decided.call_id, decided.tool, decided.decision, decided.phase, decided.hook
        reason = decided.reason
    elif isinstance(decided, CallEvent):
        row, reason = decided.row, decided.row.reason
        told = row.id, row.tool, row.state, decided.kind, row.by
    elif isinstance(decided, RecoverableToolCallIssue):
        call, reason = decided.metadata, decided.text
        told = call.id, call.name, decided.reason, "decode", None
    else:
        told = decided.call_id, None, decided.action, "resume", decided.decider
        reason = decided.reason
    named = zip(_DECISION, told, strict=True)
    return {name: _bounded(text, _NAME_LIMIT) for name, text in named if text is not None}, reason


_DECISION: Final = (
    *("gen_ai.tool.call.id", "gen_ai.tool.name"),
    *("lutum.decision", "lutum.decision.phase", "lutum.decision.by"),
)
"""The attributes of a decision; one that is not known is left out."""


def _class_name(kind: type[Any]) -> str:
    """Name a class as OpenTelemetry does: with its module, but for the built-in ones."""
    plain = kind.__module__ == "builtins"
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def _bounded(text: str, limit: int) -> str:
    """Cut a text, and make it one that exporters can encode."""
    return cut(text, limit).encode("utf-8", "backslashreplace").decode("utf-8")


_FIELD: Final = "traceparent"


def _place_of(
    call: AnyToolCall, context: Context | None, links: Sequence[Link] | None
) -> tuple[Context | None, Sequence[Link] | None]:
    """Return the context that the span of a call is opened in, and what it is linked to.

    Args:
        call: The call.
        context: The context that the program named, which counts before all others.
        links: The links that it named. If the span gets another parent than the current span,
            and is in another trace, a link to that is added.
    """
    trace = call.trace
    if context is not None or trace is None:
        return context, links
    from opentelemetry.context import get_current
    from opentelemetry.trace import Link, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({_FIELD: trace}, get_current())
    parent, current = (get_current_span(each).get_span_context() for each in (context, None))
    if current.is_valid and current.trace_id != parent.trace_id:
        links = (*(links or ()), Link(current))
    return context, links


def _trace_of(span: Span, asking: AwaitingCall) -> None:
    """Let a plan keep under which span stands what a call requests."""
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    # As the text of the W3C, "00-<trace>-<span>-01", and not as an object: it is in the saved
    # plan, and another process goes on from it.
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    if _FIELD in carrier:  # else no SDK is configured
        asking.set_trace(carrier[_FIELD])
