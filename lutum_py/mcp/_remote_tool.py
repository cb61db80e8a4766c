"""One tool of a server: how it is run, and what a server asks before it can go on.

On the protocol of 2026 a question is a result: the server forgets the call, and gets back what it
asked for together with a state that only it understands. So a question may wait in a saved plan for
as long as the server honours its state.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, TypedDict

import anyio
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    AudioContent,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    ListRootsRequest,
    ListRootsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import TypeAdapter, ValidationError

from .. import Attachment, Labels, Reply, ResumeMode, SuspendTicket, ToolContext
from .._text.json import compact_json, is_mapping, is_sequence, parse_json, sendable
from ..capabilities import ToolCapabilities
from ..errors import MisuseError, ProviderError, ToolDefinitionError
from ..schemas import SchemaChecker, schema_checker
from ..typing import JsonSchema, MediaType, ReplyStatus
from ._connection import (
    REFUSED,
    Connection,
    Limits,
    NotSent,
    legible,
    legible_schema,
    one_line,
    shape_of,
    statuses_noted,
    wire_name,
)

_ACTION: Final = "mcp_input"
"""What a ticket of a server's question asks for."""

_NO: Final = ("decline", "cancel")
_FIELD: Final = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"type": "string"}},
    ]
}
_SAMPLE: Final = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "content": {"type": ["object", "array"]},
        "model": {"type": "string"},
    },
    "required": ["role", "content", "model"],
}
_ROOTS: Final = {
    "type": "object",
    "properties": {
        "roots": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"uri": {"type": "string", "pattern": "^file://"}},
                "required": ["uri"],
            },
        }
    },
    "required": ["roots"],
}
_SAMPLED: Final[TypeAdapter[CreateMessageResult | CreateMessageResultWithTools]] = TypeAdapter(
    CreateMessageResult | CreateMessageResultWithTools
)


class UnfitQuestion(Exception):
    """A server asked what nobody can be shown; `code` is that of the result."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class UnfitAnswer(Exception):
    """A decision answers something else than what the server asked."""


async def decline_inline(
    context: ClientRequestContext, params: ElicitRequestParams
) -> ElicitResult:
    """Say no to what a server of an older protocol asks in the middle of a call.

    Pass it as `elicitation_callback=` of an `mcp.Client`: without a callback a client does not say
    that it can be asked, and servers of the protocol of 2026 do not ask it either. Those get their
    answers from your decisions, never from here.
    """
    del context, params
    return ElicitResult(action="decline")


def ticket_for(asked: InputRequiredResult, limits: Limits) -> SuspendTicket:
    """Make the ticket of what a server asks.

    Raises:
        UnfitQuestion: It is too long, or has a form that no answer can be checked against.
    """
    requests = asked.input_requests or {}
    parameters: JsonSchema = {"requests": _data_of(requests, asked.request_state, limits)}
    if asked.request_state is not None:
        parameters["request_state"] = asked.request_state
    schema = _schema_of(requests)
    if schema is not None:
        try:
            schema_checker("the answer to the server", schema)
        except (ToolDefinitionError, RecursionError) as error:
            raise UnfitQuestion(
                "mcp_error", f"The server asked with an unusable form: {one_line(str(error))}"
            ) from None
    said = [_said(request, limits.description) for request in requests.values()]
    return SuspendTicket(
        action=_ACTION,
        message="\n".join(said) or "The server wants to be called again.",
        parameters=parameters,
        response_schema=schema,
        resume_mode=ResumeMode.PASS_DECISION_TO_TOOL,
    )


def _data_of(requests: Mapping[str, InputRequest], state: str | None, limits: Limits) -> JsonSchema:
    data = {
        key: request.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, request in requests.items()
    }
    # Before anything is made of it: all of it goes into the ticket, and with that into each saved
    # plan.
    size = len(compact_json(data))
    if size > limits.schema or len(state or "") > limits.result:
        raise UnfitQuestion(
            "result_too_large",
            f"The server's question has {size:,} characters and a state of {len(state or ''):,}, "
            f"where {limits.schema:,} and {limits.result:,} are allowed.",
        )
    return data


def _said(request: InputRequest, limit: int) -> str:
    if isinstance(request, ElicitRequest):
        params = request.params
        said = legible(params.message, limit)
        if isinstance(params, ElicitRequestURLParams):
            # Whole: many words before it would else hide where the person is sent.
            said += f"\n{legible(params.url, len(params.url))}"
        return said
    if isinstance(request, ListRootsRequest):
        return "The server asks which folders it may work in."
    return "The server asks for an answer of a model."


def _schema_of(requests: Mapping[str, InputRequest]) -> JsonSchema | None:
    """Say what a decision's result has to be; None if the server asks nothing."""
    # One question is asked as itself, {"city": ...}, since people answer it by hand; several stand
    # under the keys that the server gave, {"where": {...}, "sure": {...}}.
    each = {key: _answer_schema(request) for key, request in requests.items()}
    if not each:
        return None
    if len(each) == 1:
        return next(iter(each.values()))
    return {
        "type": "object",
        "properties": each,
        "required": list(each),
        "additionalProperties": False,
    }


def _answer_schema(request: InputRequest) -> JsonSchema:
    if not isinstance(request, ElicitRequest):
        return _ROOTS if isinstance(request, ListRootsRequest) else _SAMPLE
    if isinstance(request.params, ElicitRequestURLParams):
        return {"enum": ["accept", *_NO]}
    # As the protocol has it, a form is flat: what a server writes otherwise cannot be sent back.
    form = {"type": "object", "additionalProperties": _FIELD}
    asked = legible_schema(request.params.requested_schema)
    # A form without fields asks for a yes alone, which an approval is without a result.
    no = [*_NO] if asked.get("properties") else [*_NO, None]
    return {"anyOf": [{"allOf": [form, asked]}, {"enum": no}]}


def answers_in(context: ToolContext) -> tuple[InputResponses | None, str | None]:
    """Read what is to be sent: the answers that were decided on, and the server's state.

    Raises:
        UnfitAnswer: The decision answers something else than what was asked.
    """
    ticket, decision = context.ticket, context.resume
    if ticket is None or decision is None or ticket.action != _ACTION:
        return None, None
    state: str | None = ticket.parameters.get("request_state")
    requests: Mapping[str, Any] = ticket.parameters.get("requests", {})
    if not requests:
        return None, state
    # With one question the result of the decision is its answer, as {"city": "Oslo"}; with several
    # it is an object of answers, as {"where": {"city": "Oslo"}, "sure": "accept"}.
    given: Any = decision.result
    if len(requests) == 1:
        given = {next(iter(requests)): given}
    try:
        return {key: _answer(request, given[key]) for key, request in requests.items()}, state
    except (ValidationError, KeyError, TypeError) as error:
        raise UnfitAnswer(
            f"Decision {decision.decision_id!r} does not answer what the server asked: "
            f"{one_line(str(error))}."
        ) from None


def _answer(request: Mapping[str, Any], given: Any) -> InputResponse:
    if request["method"] == "roots/list":
        return ListRootsResult.model_validate(given)
    if request["method"] == "sampling/createMessage":
        return _SAMPLED.validate_python(given)
    if given in _NO or request["params"].get("mode") == "url":
        return ElicitResult(action=given)
    return ElicitResult(action="accept", content=given or {})


_MIME: Final = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_ANY_FILE: Final = "application/octet-stream"


def failed(code: str, text: str, status: ReplyStatus = "error") -> Reply[object]:
    """Answer with an error that has no output, in the form of the errors of any call."""
    return Reply({"error": {"code": code, "message": text}}, text, status=status, code=code)


def reply_of(
    result: CallToolResult, output: SchemaChecker | None, limits: Limits, *, trusted: bool = False
) -> Reply[object]:
    """Make a reply of a server's result.

    Args:
        result: What the server sent.
        output: Checks the structured part; None if the server declares no schema for it.
        limits: How much it may be.
        trusted: Whether the server is believed where it calls its result trusted.
    """
    # A structure that is null and one that is missing are two things, and the field alone is None
    # in both cases.
    has_structure = "structured_content" in result.model_fields_set
    structure = result.structured_content if has_structure else None
    try:
        # As the call will do it, so that nothing is found to be unfit only there.
        written = compact_json(structure) if has_structure else ""
    except (TypeError, ValueError, RecursionError):
        return failed("invalid_output", "The tool ran, and its output is not JSON data.")
    size = len(written) + sum(_size_of(block) for block in result.content)
    if size > limits.result:
        return failed(
            "result_too_large",
            f"The tool ran, and its result has {size:,} characters, where {limits.result:,} are "
            "allowed. Ask for less at a time.",
        )
    read = _Read(result.content, structure if has_structure else _NOTHING, written)
    text = "\n".join(read.lines)
    value = structure if has_structure else text
    labels = Labels.of_meta(result.meta, believed=trusted)
    if result.is_error:
        said = text if text.strip() else _reason_in(structure, written)
        return Reply(value, said, read.attachments, "error", "tool_error", labels)
    if output is not None:
        fault = _fault(output, structure, has_structure)
        if fault is not None:
            said = f"The tool ran, and {fault}.\n{text or written}"
            return Reply(value, said, read.attachments, "error", "invalid_output", labels)
    return Reply(value, text if text and has_structure else None, read.attachments, labels=labels)


_NOTHING: Final = object()


def _reason_in(structure: object, written: str) -> str:
    """Return what the structure of an error says, where no text says more."""
    said = sendable(structure) if isinstance(structure, str) else written if structure else ""
    return said if said.strip() else "The tool failed, and the server does not say why."


def _fault(output: SchemaChecker, structure: object, has_structure: bool) -> str | None:
    if not has_structure:
        return "the structured output that it declares is missing"
    error = next(output.iter_errors(structure), None)
    if error is None:
        return None
    return f"its output does not fit its schema: `{error.json_path}`: {one_line(error.message)}"


def _size_of(block: ContentBlock) -> int:
    if isinstance(block, TextContent):
        return len(block.text)
    if isinstance(block, ImageContent | AudioContent):
        return len(block.data)
    if isinstance(block, ResourceLink):
        return len(block.uri) + len(block.name) + len(block.description or "")
    held = block.resource
    return len(held.text if isinstance(held, TextResourceContents) else held.blob) + len(held.uri)


class _Read:
    """Sort content blocks into lines for the model and files.

    Attributes:
        lines: What the model reads; a block that repeats the output stands as the output.
        attachments: Files, as `data:` URLs.
    """

    def __init__(self, content: list[ContentBlock], structure: object, written: str) -> None:
        self.attachments: list[Attachment] = []
        self.lines: list[str] = []
        # Servers send a structure and the same again as text, for older clients: {"sum": 3} and
        # "{\n  \"sum\": 3\n}". The model would read it twice, so such a block stands for the
        # output, and alone needs no line at all.
        is_said = False
        for block in content:
            if isinstance(block, TextContent) and _repeats(block.text, structure):
                # Once is enough, and without the spaces of a text that is laid out.
                self.lines += [] if is_said else [written]
                is_said = True
            else:
                self.lines += self._lines_of(block)
        if is_said and len(self.lines) == 1:
            self.lines = []

    def _lines_of(self, block: ContentBlock) -> Iterator[str]:
        if isinstance(block, TextContent):
            yield sendable(block.text)
        elif isinstance(block, ImageContent | AudioContent):
            yield from self._attach(block.data, block.mime_type, block.type)
        elif isinstance(block, ResourceLink):
            about = f": {one_line(block.description)}" if block.description else ""
            yield f"[link] {one_line(block.name)} <{one_line(block.uri)}>{about}"
        elif isinstance(block.resource, TextResourceContents):
            yield f"[{one_line(block.resource.uri)}]\n{sendable(block.resource.text)}"
        else:
            held = block.resource
            mime = held.mime_type or _ANY_FILE
            yield from self._attach(held.blob, mime, None, one_line(held.uri))

    def _attach(
        self, data: str, mime: str, kind: MediaType | None, caption: str | None = None
    ) -> Iterator[str]:
        """Take a file; give a line about it where its kind or its data cannot be read."""
        try:
            if not _MIME.fullmatch(mime):
                raise ValueError
            read = b64decode(data, validate=True)
        except (Base64Error, ValueError):
            of = f" {caption}" if caption else ""
            yield f"[{kind or 'file'}{of} of type {one_line(mime)}, which cannot be read]"
            return
        made = Attachment.from_bytes(read, mime, media_type=kind, caption=caption)
        self.attachments.append(made)


def _repeats(text: str, structure: object) -> bool:
    if structure is _NOTHING:
        return False
    if text == structure:
        return True
    try:
        return bool(parse_json(text) == structure)
    except (ValueError, RecursionError):
        return False


_ANSWERED: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
# A server may fail after the tool has done its work, so an error proves nothing by itself. These
# two say that nothing was run. The others of JSON-RPC do not: -32603, -32700 and -32600 are what
# the SDK makes of every answer that it cannot read, as of a gateway that gave up waiting.
_NOT_RUN: Final = (METHOD_NOT_FOUND, INVALID_PARAMS)


class RemoteOptions(TypedDict, total=False):
    """Say which tools of a server are taken, and how far the server is believed.

    Attributes:
        only: The names, as the server has them, of the tools to take; None for all, as by default.
        rename: Makes the tool's own name of the server's, `wire_name` by default; None takes that
            as it is.
        trusted: Whether the server's hints about what its tools do are believed. Else, and by
            default, each tool is `delegate_work`, which is to be confirmed.
        verify: Whether each tool is looked up again before each call, and not called where it
            changed; by default where the server is not trusted.
        capabilities: What tools do to the world, as you declare it, by the server's names.
        timeout: Seconds that a call may take.
        limits: How much the server may bring along.
    """

    only: Iterable[str] | None
    rename: Callable[[str], str] | None
    trusted: bool
    verify: bool | None
    capabilities: Mapping[str, ToolCapabilities] | None
    timeout: float | None
    limits: Limits | None


@dataclass(slots=True, kw_only=True)
class Rules:
    """The server that is asked, and what the user said about it: see `RemoteOptions`.

    Raises:
        MisuseError: An option has another kind.
    """

    connection: Connection
    name: str
    only: Iterable[str] | None = None
    rename: Callable[[str], str] | None = wire_name
    trusted: bool = False
    verify: bool | None = None
    capabilities: Mapping[str, ToolCapabilities] | None = None
    timeout: float | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        only = self.only
        if isinstance(only, str):
            raise MisuseError(
                f"only={only!r}: give the names of tools in a list, as in [{only!r}]."
            )
        if isinstance(only, Iterable):
            self.only = only = tuple(only)
        declared = self.capabilities
        for option, is_fit, expected in (
            ("only", only is None or _all_of(only, str), "a list of names or None"),
            (
                "rename",
                self.rename is None or callable(self.rename),
                "a function of a name or None",
            ),
            ("trusted", isinstance(self.trusted, bool), "True or False"),
            ("verify", isinstance(self.verify, bool | None), "True, False or None"),
            (
                *("capabilities", declared is None or _is_declared(declared)),
                "a dict of names and `ToolCapabilities`, or None",
            ),
            ("limits", isinstance(self.limits, Limits | None), "Limits or None"),
        ):
            if not is_fit:
                value = getattr(self, option)
                raise MisuseError.of_field("remote_tools", option, expected, value)
        self.capabilities = dict(declared or {})

    @property
    def bounds(self) -> Limits:
        """How much the server may bring along."""
        return self.limits or Limits()

    @property
    def verifies(self) -> bool:
        """Whether each tool is looked up again before each call."""
        return not self.trusted if self.verify is None else self.verify


def _all_of(given: object, kind: type) -> bool:
    return is_sequence(given) and all(isinstance(each, kind) for each in given)


def _is_declared(given: object) -> bool:
    return is_mapping(given) and all(
        isinstance(name, str) and isinstance(each, ToolCapabilities) for name, each in given.items()
    )


@dataclass(frozen=True, slots=True, eq=False)
class RemoteTool:
    """Do a tool of a server: `run` is the function of the tool here.

    Attributes:
        rules: The server that is asked, and what the user said about it.
        name: What the server calls it.
        shape: The digest of what the server said about it.
        output: Checks structured outputs; None if the server declares none.
        only_reads: Whether a call that was cut off leaves nothing in doubt.
    """

    rules: Rules
    name: str
    shape: str
    output: SchemaChecker | None
    only_reads: bool

    async def run(self, arguments: JsonSchema, context: ToolContext) -> Reply[object]:
        """Send the call, or the answers to what the server asked about it.

        Raises:
            ToolSuspended: The server needs an answer first.
            MisuseError: The client is closed, or of another event loop.
            CancelledError: The task was cancelled; the server was told.
        """
        token = context.cancellation
        if token.is_cancelled:
            return self._stopped(token.reason, is_sent=False)
        try:
            answers, state = answers_in(context)
        except UnfitAnswer as error:
            return failed("mcp_error", f"{error} The server was not told.")
        # Everything below is told by this flag: before it, nothing has happened on the server.
        is_sent, statuses = False, list[int]()
        try:
            async with _stopped_by(context) as scope:
                if self.rules.verifies:
                    change = await self._change()
                    if change is not None:
                        return failed("tool_changed", change)
                is_sent = True
                with statuses_noted() as statuses:
                    answered = await self._send(arguments, answers, state, context)
        except NotSent as error:
            return self._lost(str(error), is_sent=False)
        except MCPError as error:
            return self._refused(error, is_sent, statuses)
        except ProviderError as error:
            return failed("mcp_error", f"{error} The tool was not called.")
        except ValueError as error:  # how the SDK tells about what it cannot read
            what = "what the server sent back is not a result of the protocol"
            why = f"{what} ({one_line(str(error))})"
            return self._in_doubt("invalid_output", why, is_sent)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            return self._lost(type(error).__name__, is_sent)
        if scope.cancelled_caught:
            return self._stopped(token.reason, is_sent)
        if isinstance(answered, InputRequiredResult):
            try:
                ticket = ticket_for(answered, self.rules.bounds)
            except UnfitQuestion as error:
                return failed(error.code, f"{error} The tool waits for an answer in vain.")
            context.suspend(ticket)
        return reply_of(answered, self.output, self.rules.bounds, trusted=self.rules.trusted)

    async def _change(self) -> str | None:
        """Say what has changed since the model was told about the tool."""
        now = await self.rules.connection.find(self.name)
        what = "is not there any more"
        if now is not None:
            with suppress(ValueError, RecursionError):
                if shape_of(now) == self.shape:
                    return None
            what = "is not what it was when it was listed"
        return (
            f"Tool `{self.name}` of the server {what}, so it was not called. The tools of this "
            "server have to be listed again."
        )

    async def _send(
        self,
        arguments: JsonSchema,
        answers: InputResponses | None,
        state: str | None,
        context: ToolContext,
    ) -> CallToolResult | InputRequiredResult:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            context.report_progress(
                "running",
                None if message is None else legible(message, self.rules.bounds.description),
                *_in_range(progress, total),
            )

        # Not `session.call_tool`: that drops a result which does not fit the tool's own schema.
        return await self.rules.connection.send(
            CallToolRequest(
                params=CallToolRequestParams(
                    name=self.name,
                    arguments=arguments,
                    input_responses=answers,
                    request_state=state,
                )
            ),
            _ANSWERED,
            progressed,
        )

    def _refused(self, error: MCPError, is_sent: bool, statuses: list[int]) -> Reply[object]:
        said = one_line(error.message)
        # Each status counts: after an answer that was accepted, a later refusal proves nothing.
        if statuses and REFUSED.issuperset(statuses):
            what = f"The server refused the call (HTTP {statuses[-1]}), so the tool was not run"
            return failed("mcp_error", f"{what}: {said}")
        if error.code == CONNECTION_CLOSED:
            return self._lost(said, is_sent)
        if error.code == REQUEST_TIMEOUT:
            why = f"the server did not answer in time ({said})"
            return self._in_doubt("timed_out", why, is_sent)
        if error.code == HEADER_MISMATCH:
            return failed(
                "tool_changed",
                f"The server did not run the tool, since it has another schema by now: {said}",
            )
        if error.code in _NOT_RUN and is_sent:
            return failed("mcp_error", f"The server refused the call ({error.code}): {said}")
        status = f" and HTTP {statuses[-1]}" if statuses else ""
        why = f"the server answered with error {error.code}{status} ({said})"
        return self._in_doubt("mcp_error", why, is_sent)

    def _lost(self, why: str, is_sent: bool) -> Reply[object]:
        return self._in_doubt(
            "connection_lost", f"the connection to the server is lost ({why})", is_sent
        )

    def _in_doubt(self, code: str, why: str, is_sent: bool) -> Reply[object]:
        """Tell about a call that has no answer: it may have been done, if it was sent."""
        # Three answers by what is known: not sent, so nothing happened; sent and only reading, so a
        # second call does no harm; sent, so nobody knows.
        if not is_sent:
            return failed(code, f"Not called: {why}.")
        if self.only_reads:
            return failed(code, f"No answer: {why}. The tool may be called again.")
        text = f"Outcome unknown: {why}. The tool may have had its effects."
        return failed(code, text, "indeterminate")

    def _stopped(self, reason: str | None, is_sent: bool) -> Reply[object]:
        why = reason or "the call was asked to stop"
        if is_sent and not self.only_reads:
            cut_off = f"the call was cancelled while the server ran it: {why}"
            return self._in_doubt("cancelled", cut_off, is_sent)
        return failed("cancelled", f"Cancelled: {why}", "cancelled")


@asynccontextmanager
async def _stopped_by(context: ToolContext) -> AsyncGenerator[anyio.CancelScope]:
    """Stop what happens inside where the call is asked to stop; the SDK tells the server."""
    # The SDK tells the server of a call that it gives up when the scope around it is cancelled, so
    # a token is turned into that. `cancelled_caught` then says that it was our doing, where a task
    # that is cancelled from outside goes on being cancelled.
    with anyio.CancelScope() as scope:

        async def watch() -> None:
            await context.cancellation.cancelled()
            scope.cancel()

        watcher = asyncio.create_task(watch())
        try:
            yield scope
        finally:
            watcher.cancel()


def _in_range(progress: float, total: float | None) -> tuple[float | None, int | None, int | None]:
    """Bring a server's figures into the form of a report: a fraction, units done, units in all."""
    # A server may send any float, as (-1.0, nan) or (7, 5). What is not a figure is left out, and
    # more than all is all.
    done = progress if isfinite(progress) and progress >= 0 else None
    whole = total if total is not None and isfinite(total) and total > 0 else None
    fraction = None if done is None or whole is None else min(done / whole, 1.0)
    return fraction, _units(done), _units(whole)


def _units(figure: float | None) -> int | None:
    return int(figure) if figure is not None and float(figure).is_integer() else None
