"""The tools and the in-memory SDK that the tests of spans share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from lutum_py import AnyToolCall, Skip, ToolMetadata, Toolset, tool, tool_fn, toolset
from lutum_py.otel import ToolTracer

SECRET = "my-secret"


@tool_fn
def run(text: str, work: Annotated[Callable[[str], Any], Skip()]) -> str:
    """Run what the test wants."""
    return str(work(text))


@tool_fn(timeout=0.02)
async def wait(stubborn: bool = False, started: Annotated[Any, Skip()] = None) -> str:
    """Wait for ever, or until it is told not to."""
    if started is not None:
        started.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not stubborn:
            raise
        await asyncio.Event().wait()
    return ""


class Inner(Toolset):
    run = tool(run)
    wait = tool(wait)


class Outer(Toolset):
    inner = toolset(Inner, prefix="in_")
    run = tool(run)


class Recorded:
    """An SDK that keeps its spans, and a tracer on it."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = ToolTracer(tracer_provider=self.provider, **options)
        self.user = self.provider.get_tracer("user")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def only(self) -> ReadableSpan:
        (span,) = self.spans
        return span

    def seen(self) -> dict[str, Any]:
        """The attributes of the only span."""
        return dict(self.only().attributes or {})

    def outcome(self) -> tuple[Any, Any, StatusCode]:
        """What the only span says of how the call ended."""
        seen = self.seen()
        return (
            seen.get("lutum.tool.outcome"),
            seen.get("error.type"),
            self.only().status.status_code,
        )

    def everything(self) -> str:
        """All that would leave the process, as text."""
        return "".join(span.to_json() for span in self.spans)


def recording() -> Iterator[Recorded]:
    """For a fixture: spans without content."""
    made = Recorded()
    yield made
    made.provider.shutdown()


def recording_content() -> Iterator[Recorded]:
    """The same with content on."""
    made = Recorded(content=True, content_limit=4000)
    yield made
    made.provider.shutdown()


def call_of(
    arguments: Any = None, name: str = "run", of: type[Toolset] = Outer, id: str = "c1"
) -> AnyToolCall:
    text = json.dumps({"text": SECRET} if arguments is None else arguments)
    return of.parse_tool_call(ToolMetadata(id=id, name=name, arguments=text))


def raising(error: BaseException) -> Callable[[str], Any]:
    def work(text: str) -> Any:
        raise error

    return work
