"""What a client is sent, in the form of the protocol: tools, questions, and reports of progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from math import inf, nextafter
from typing import Any, Final

from mcp.server import ServerRequestContext
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, Tool
from mcp.types.version import LATEST_MODERN_VERSION, is_version_at_least

from .._call.outcomes import SuspendedCall
from .._context.async_sink import AsyncSink
from .._context.progress import ProgressStatus, ToolEvent, figures_in, progress_in
from .._context.suspension import Decision, ResumeMode
from .._schema.definition import ToolDef
from .._schema.schema_check import schema_faults
from .._schema.schema_reader import JsonSchema, merged_part
from .._text.json import copy_json, is_array, is_object
from .._text.own_code import must_go_on
from ._risk import hints_of


def is_modern(version: str) -> bool:
    """Whether a connection speaks the protocol of 2026, in which outputs may be anything."""
    return is_version_at_least(version, LATEST_MODERN_VERSION)


def offered_tool(definition: ToolDef, *, modern: bool) -> Tool:
    """Describe a tool for connections of one era."""
    schema = definition.output_schema
    return Tool(
        name=definition.name,
        title=definition.title,
        description=definition.description or None,
        input_schema=_rooted(definition.input_schema),
        output_schema=None if schema is None else _output(definition.name, schema, modern),
        annotations=hints_of(definition.capabilities, definition.idempotent),
    )


def _output(tool: str, schema: JsonSchema, modern: bool) -> JsonSchema | None:
    """Return the schema that each success of a tool fits; None if the era has no such form.

    The SDK leaves a null out of an answer, so that an output that may be null is never promised.
    """
    kind = _type_of(schema)
    if kind == "object":
        return _rooted(schema)
    if not modern or kind == "string" or not schema_faults(f"an output of {tool}", schema, None):
        return None
    copied: JsonSchema = copy_json(schema)
    return copied


def _rooted(schema: JsonSchema) -> JsonSchema:
    """Copy a schema of an object; the protocol wants its type at the root, also of a reference."""
    copied: JsonSchema = copy_json(schema)
    # {"$ref": "#/$defs/Args"} alone is an object by what it refers to, which no client looks up.
    copied["type"] = "object"
    return copied


def _type_of(schema: JsonSchema) -> Any:
    return merged_part(schema, schema).get("type")


def structure_of(definition: ToolDef, output: Any, *, modern: bool) -> bool:
    """Whether an output is told as data too: objects always, others from 2026 on, texts never."""
    if output is None or isinstance(output, dict):
        return output is not None
    schema = definition.output_schema
    is_text = isinstance(output, str) if schema is None else _type_of(schema) == "string"
    return modern and not is_text


_FIELDS: Final = ("string", "number", "integer", "boolean")
_EMPTY: Final[JsonSchema] = {"type": "object", "properties": {}}


def question_of(waiting: SuspendedCall) -> str:
    """Put into words what is to be decided."""
    ticket = waiting.ticket
    return ticket.message or f"{ticket.action}: {waiting.call.name}"


def form_for(waiting: SuspendedCall, question: str) -> ElicitRequest | None:
    """Make the form by which a client's user is asked; None if the protocol has none for it.

    Args:
        waiting: The call that waits.
        question: What the user is asked.
    """
    ticket = waiting.ticket
    schema = ticket.response_schema
    if schema is None and ticket.resume_mode is ResumeMode.USE_DECISION_AS_TOOL_RESULT:
        return None
    if schema is not None and not _is_flat(schema):
        return None
    form: JsonSchema = {**_EMPTY, **copy_json(schema or {})}
    params = ElicitRequestFormParams(message=question, requested_schema=form)
    return ElicitRequest(params=params)


def _is_flat(schema: Any) -> bool:
    """Whether a schema is one of an object of plain fields, as forms are."""
    fields = schema.get("properties", {})
    is_plain = schema.get("type") == "object" and not schema.keys() & {"$ref", "anyOf", "oneOf"}
    return is_plain and is_object(fields) and all(map(_is_field, fields.values()))


def _is_field(schema: Any) -> bool:
    if not is_object(schema) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items: Any = schema.get("items")
        if not is_object(items):
            return False
        titled: Any = items.get("anyOf")  # values that have titles, as the protocol has them
        if is_array(titled):
            return all(is_object(each) and isinstance(each.get("const"), str) for each in titled)
        return items.get("type") == "string" and is_array(items.get("enum"))
    return schema.get("type") in _FIELDS


def can_be_asked(request: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client says that it shows forms; one that says nothing more shows them."""
    known = request.session.client_capabilities
    asks = None if known is None else known.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


def _says_no(waiting: SuspendedCall, content: Mapping[str, Any]) -> bool:
    """Whether a form that was accepted says no, and no tool reads what it says."""
    if waiting.ticket.response_schema is None:  # it had no fields, so that this is all we know
        return not all(value is True for value in content.values())
    is_read = waiting.ticket.resume_mode is not ResumeMode.REPLAY_TOOL_CALL
    return not is_read and any(value is False for value in content.values())


def decision_of(waiting: SuspendedCall, answer: ElicitResult) -> Decision:
    """Make the decision that a client's answer stands for."""
    content = answer.content or {}
    if answer.action == "accept" and not _says_no(waiting, content):
        has_fields = waiting.ticket.response_schema is not None
        return waiting.approve(result=content if has_fields else None)
    if answer.action != "cancel":
        return waiting.cancel("the user declined.")
    return waiting.cancel("the user did not answer.")


_ENDED: Final = (ProgressStatus.FAILED, ProgressStatus.CANCELLED)
_MOST_WAITING: Final = 256
"""So many reports wait for a slow client; of more the oldest are dropped."""


# Tools report in any thread and as fast as they like; the client is told in the one loop of the
# server, and as fast as it reads. Between the two stands a queue that drops the oldest, since the
# newest figure says all that those before it said.
class ProgressOut:
    """Be the sink of a call: take reports in any thread, and send them in order.

    The protocol wants each figure above the last. A report without one, or with a lower one, goes
    out with the next number there is.
    """

    def __init__(
        self, request: ServerRequestContext[Any, Any], before: ProgressOut | None = None
    ) -> None:
        """Be that of one call.

        Args:
            request: The request.
            before: That of the call before it, where the request has several.
        """
        self._session = request.session
        self._waiting = AsyncSink[Mapping[str, Any]](_MOST_WAITING)
        self._last: float = -inf if before is None else before._last

    def __call__(self, event: ToolEvent) -> None:
        """Take one event; what is not a report of progress stays here, and so does a failure.

        That a call failed is told by its answer, which says no more than it is meant to.
        """
        report = progress_in(event)
        if report is not None and report.get("status") not in _ENDED:
            self._waiting(report)

    @asynccontextmanager
    async def sending(self) -> AsyncGenerator[None]:
        """Send what comes while the call is run, and the rest of it at the end."""
        task = asyncio.create_task(self._send())
        try:
            with self._waiting:
                yield
            try:
                await task
            except BaseException as error:  # a report that is not sent must lose no result
                if must_go_on(error):
                    raise
        finally:
            task.cancel()

    async def _send(self) -> None:
        async for report in self._waiting:
            done, total = figures_in(report)
            if done is None or done <= self._last:
                done = 0.0 if self._last == -inf else nextafter(self._last, inf)
            self._last = done
            await self._session.report_progress(done, total, report.get("message"))
