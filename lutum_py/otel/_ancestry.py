"""Where the span of a call stands that another call asked for, or that comes back to its tool.

The first span of a call that asks stands for all its steps: it is what the calls within, and the
steps behind it, are children of. The plan keeps it as W3C writes it (`traceparent`), so that it is
found again wherever the plan is, also where the span itself ended long ago in another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .._call.call import AnyToolCall
from .._call.outcomes import AskingCall

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span

_FIELD: Final = "traceparent"


def place_of(
    call: AnyToolCall, context: Context | None, links: Sequence[Link] | None
) -> tuple[Context | None, Sequence[Link] | None]:
    """Give the context that the span of a call is opened in, and what it is linked to.

    Args:
        call: The call.
        context: The context that the program named, which counts before all others.
        links: The links that it named. Where the span gets another parent than the current span,
            and stands in another trace, a link to that is added.
    """
    traces = call._kept.traces
    if context is not None or not traces:
        return context, links
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
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    if _FIELD in carrier:  # else no SDK is configured
        asking._traced(carrier[_FIELD])
