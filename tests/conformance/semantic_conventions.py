"""OpenTelemetry's semantic conventions: what the spans of `lutum_py.otel` are called, and say.

The names come from the package `opentelemetry-semantic-conventions`. Which of them the span of a
tool has, and must have, is said by the conventions' page on spans and stands here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.semconv.attributes import error_attributes, exception_attributes
from opentelemetry.trace import SpanKind, StatusCode

from lutum_py import SuspendTicket, ToolMetadata, Toolset, tool, tool_fn
from lutum_py.context import ToolSuspended
from lutum_py.errors import NotFound, ToolError
from lutum_py.otel import ToolTracer

from .verdict import Group, Verdict

KNOWN: Final = {
    value
    for module in (gen_ai_attributes, mcp_attributes, error_attributes, exception_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}
"""Every name of an attribute that the conventions have."""
EXECUTE_TOOL: Final = gen_ai_attributes.GenAiOperationNameValues.EXECUTE_TOOL.value
RECOMMENDED: Final = (
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    "gen_ai.tool.call.id",
    "gen_ai.tool.description",
)
OPT_IN: Final = ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")
OWN: Final = "lutum."


@tool_fn
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool_fn
def fail(a: int) -> int:
    """Fail as a tool says it."""
    raise NotFound("no")


@tool_fn
def crash(a: int) -> int:
    """Fail as nobody says it."""
    raise LookupError(a)


@tool_fn
def ask(a: int) -> int:
    """Ask a person first."""
    raise ToolSuspended(SuspendTicket(message="Sure?"))


class Tools(Toolset):
    """One tool for each end that a call may have."""

    add = tool(add)
    fail = tool(fail)
    crash = tool(crash)
    ask = tool(ask)


def spans() -> list[ReadableSpan]:
    """Run each tool once in a span that records all it may."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = ToolTracer(content=True, tracer_provider=provider)
    for name, arguments in (("add", '{"a":1,"b":2}'), *((each, '{"a":1}') for each in ENDS)):
        call = Tools.parse_tool_call(ToolMetadata(id=f"c_{name}", name=name, arguments=arguments))
        with suppress(ToolError, LookupError, ToolSuspended), tracer.span(call) as record:
            record(call.call_sync())
    return list(exporter.get_finished_spans())


ENDS: Final = ("fail", "crash", "ask")


def faults(span: ReadableSpan) -> Iterator[str]:
    """Say what of a span is otherwise than the conventions have it."""
    said = dict(span.attributes or {})
    name = said.get("gen_ai.tool.name")
    if span.name != f"execute_tool {name}":
        yield f"its name is {span.name!r}"
    if span.kind is not SpanKind.INTERNAL:
        yield f"its kind is {span.kind.name}"
    if said.get("gen_ai.operation.name") != EXECUTE_TOOL:
        yield "gen_ai.operation.name is not execute_tool"
    for key in (*RECOMMENDED, "gen_ai.tool.call.arguments"):
        if key not in said:
            yield f"{key} is missing"
    for key, value in said.items():
        if key not in KNOWN and not key.startswith(OWN):
            yield f"{key} is no attribute of the conventions"
        elif not isinstance(value, str):
            yield f"{key} is a {type(value).__name__}, and a text is wanted"
    for key in OPT_IN:
        try:
            json.loads(str(said.get(key, "null")))
        except ValueError:
            yield f"{key} is no JSON"
    is_error = span.status.status_code is StatusCode.ERROR
    if is_error != ("error.type" in said):
        yield "error.type and the status of the span say different things"
    for event in span.events:
        unknown = {each for each in event.attributes or {} if each not in KNOWN}
        yield from (f"event {event.name}: {each} is unknown" for each in sorted(unknown))


def run() -> Verdict:
    """Hold the spans against the conventions."""
    found = {span.name: list(faults(span)) for span in spans()}
    return Verdict(
        title="OpenTelemetry semantic conventions",
        versions={
            name: version(name)
            for name in ("opentelemetry-semantic-conventions", "opentelemetry-sdk")
        },
        about=ABOUT,
        tables=[
            [
                ("span", "attributes", "faults"),
                *(
                    (span.name, len(span.attributes or {}), len(found[span.name]))
                    for span in spans()
                ),
            ]
        ],
        groups=[Group("", [f"{name}: {fault}" for name, each in found.items() for fault in each])],
    )


ABOUT: Final = """\
A tool that succeeds, two that fail and one that suspends run in a span of a `ToolTracer` with
`content=True`. Checked are the name and kind of each span, the required and recommended attributes
of `execute_tool`, that every attribute outside of `lutum.` is one of the conventions and of their
type, and that `error.type` stands exactly where the status is an error. The library has no spans
of `chat` or of MCP."""
