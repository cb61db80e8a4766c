"""What spans and events say about a call, each text bounded and encodable, and a span's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.outcomes import AskingCall, RecoverableToolCallIssue
from .._context.suspension import Decision
from .._round.events import CallEvent
from .._text.json import cut

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span


Decided: TypeAlias = DecisionRecord | RecoverableToolCallIssue | Decision | CallEvent
"""What is told about a call that is not run, or not yet: see `ToolTracer.record_decisions`."""

NAME_LIMIT: Final = 128
"""Characters of a name, or of an id."""

_TEXT_LIMIT: Final = 1024


def call_attributes(call: AnyToolCall) -> dict[str, str]:
    """Return the attributes that the span of a call begins with."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": bounded(call.name, NAME_LIMIT),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": bounded(call.id, NAME_LIMIT),
    }
    if description := call.selector.definition.description:
        attributes["gen_ai.tool.description"] = bounded(description, _TEXT_LIMIT)
    if len(call.selector.path) > 1:
        attributes["lutum.tool.path"] = bounded(".".join(call.selector.path), NAME_LIMIT)
    if call.suspension_id is not None:
        attributes["lutum.suspension.id"] = bounded(call.suspension_id, NAME_LIMIT)
    return attributes


def decision_attributes(decided: Decided) -> tuple[dict[str, str], str | None]:
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
        told = decided.call_id, None, decided.action, "resume", decided.decision_id
        reason = decided.reason
    named = zip(_DECISION, told, strict=True)
    return {name: bounded(text, NAME_LIMIT) for name, text in named if text is not None}, reason


_DECISION: Final = (
    *("gen_ai.tool.call.id", "gen_ai.tool.name"),
    *("lutum.decision", "lutum.decision.phase", "lutum.decision.by"),
)
"""The attributes of a decision; one that is not known is left out."""


def arguments_of(call: AnyToolCall) -> str:
    """Encode what the tool gets, which may be other than what the model sent."""
    return call.spec.shown_json(call.input)


def class_name(kind: type[Any]) -> str:
    """Name a class as OpenTelemetry does: with its module, but for the built-in ones."""
    plain = kind.__module__ == "builtins"
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def bounded(text: str, limit: int) -> str:
    """Cut a text, and make it one that exporters can encode."""
    return cut(text, limit).encode("utf-8", "backslashreplace").decode("utf-8")


_FIELD: Final = "traceparent"


def place_of(
    call: AnyToolCall, context: Context | None, links: Sequence[Link] | None
) -> tuple[Context | None, Sequence[Link] | None]:
    """Return the context that the span of a call is opened in, and what it is linked to.

    Args:
        call: The call.
        context: The context that the program named, which counts before all others.
        links: The links that it named. Where the span gets another parent than the current span,
            and is in another trace, a link to that is added.
    """
    traces = call._kept.traces
    if context is not None or not traces:
        return context, links
    # A call that goes on is found by its own id, and what a call asked for by the id of that call:
    # `traces` is {"c1": "00-4bf9...-01"}, one entry for each call that asked, whatever the depth.
    trace = traces.get(call.id) or traces.get(call._line[0].by or "")
    if trace is None:
        return context, links
    from opentelemetry.context import get_current
    from opentelemetry.trace import Link, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({_FIELD: trace}, get_current())
    parent, current = (get_current_span(each).get_span_context() for each in (context, None))
    if current.is_valid and current.trace_id != parent.trace_id:
        links = (*(links or ()), Link(current))
    return context, links


def trace_of(span: Span, asking: AskingCall) -> None:
    """Let a plan keep under which span stands what a call asks for."""
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    # As the text of the W3C, "00-<trace>-<span>-01", and not as an object: it is in the saved
    # plan, and another process goes on from it.
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    if _FIELD in carrier:  # else no SDK is configured
        asking._traced(carrier[_FIELD])
