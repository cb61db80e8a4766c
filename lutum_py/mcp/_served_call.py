"""A call that a client sends: how it is answered, asked about and reported; and hints of tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, Final, TypeAlias
from uuid import uuid4

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp.types.version import LATEST_MODERN_VERSION, is_version_at_least
from pydantic import ValidationError

from .. import (
    AnyToolCall,
    AssistantTurn,
    Attachment,
    Decision,
    HookSet,
    ResumeMode,
    SuspendedCall,
    ToolContext,
    ToolDef,
    ToolMetadata,
    ToolResult,
    ToolRoundPlan,
    Toolset,
)
from .._text.escaping import LINES, escape_unprintable, must_go_on
from .._text.json import compact_json, copy_json, is_array, is_object
from ..capabilities import Confirmation, EffectKind, Reversibility, ToolCapabilities, ToolEffect
from ..context import ProgressStatus, Sink, ToolEvent
from ..errors import HookError, PlanError, ResumeError, ToolError
from ..execution import ExecutionErrors, Outcome, RunOptions, execute_all
from ..schemas import merged_part, schema_faults
from ..sinks import AsyncSink, figures_in
from ..typing import CallRow, Hooks, JsonSchema, OfferedTools

_NO_HINTS: Final = ToolAnnotations()
_LOCAL: Final = frozenset(
    {
        EffectKind.READ_FILE,
        EffectKind.INTROSPECT_RUNTIME,
        EffectKind.PERSIST_MEMORY,
        EffectKind.WRITE_FILE,
        EffectKind.DELETE_FILE,
    }
)
_ADDITIVE: Final = frozenset({EffectKind.PERSIST_MEMORY, EffectKind.GENERATE_MEDIA})


def capabilities_of(hints: ToolAnnotations | None, trusted: bool) -> ToolCapabilities:
    """Say what a tool does to the world; a server that is not trusted can only raise its risk.

    No hint says to what a tool does it, so it may be anything.
    """
    hints = hints or _NO_HINTS
    # A hint is what the server says about itself: that it does harm is believed of anybody, and
    # that it does none only of a server that the user trusts.
    if trusted and hints.read_only_hint:
        is_closed = hints.open_world_hint is False
        effect = ToolEffect("introspect_runtime" if is_closed else "network_request", area="*")
    elif trusted and hints.destructive_hint is False:
        effect = ToolEffect("persist_memory", confirmation=Confirmation.ON_RISK, area="*")
    else:
        is_final = hints.destructive_hint is True
        effect = ToolEffect(
            "delegate_work", reversibility=Reversibility.IRREVERSIBLE if is_final else None
        )
    return ToolCapabilities(effects=[effect])


def is_idempotent(hints: ToolAnnotations | None, trusted: bool) -> bool:
    """Say whether a second call does no harm, as far as somebody vouches for it."""
    hints = hints or _NO_HINTS
    return trusted and bool(hints.read_only_hint or hints.idempotent_hint)


def hints_of(capabilities: ToolCapabilities, is_idempotent: bool) -> ToolAnnotations | None:
    """Say what a tool does to the world, as far as its author declared it."""
    effects = capabilities.effects
    if not effects:
        # Also of one that is idempotent here, as a program is: it is run again under its key, but
        # each request of a client is another call, and what it does would be done twice.
        return None
    mutating = [each for each in effects if each.mutating]
    # Three answers: True, what it does cannot be taken back; False, it only adds; None, the author
    # did not say, and the client assumes the worst.
    destructive: bool | None = None
    if any(each.reversibility is Reversibility.IRREVERSIBLE for each in mutating):
        destructive = True
    elif all(each.kind in _ADDITIVE for each in mutating):
        destructive = False
    return ToolAnnotations(
        read_only_hint=not mutating,
        destructive_hint=destructive,
        idempotent_hint=True if is_idempotent else None,
        open_world_hint=any(each.kind not in _LOCAL for each in effects),
    )


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


def _type_of(schema: JsonSchema) -> object:
    return merged_part(schema, schema).get("type")


def structure_of(definition: ToolDef, output: object, *, modern: bool) -> bool:
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


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one of an object of plain fields, as forms are."""
    fields = schema.get("properties", {})
    is_plain = schema.get("type") == "object" and not schema.keys() & {"$ref", "anyOf", "oneOf"}
    return is_plain and is_object(fields) and all(map(_is_field, fields.values()))


def _is_field(schema: object) -> bool:
    if not is_object(schema) or "$ref" in schema:
        return False
    if schema.get("type") == "array":
        items: object = schema.get("items")
        if not is_object(items):
            return False
        titled: object = items.get("anyOf")  # values that have titles, as the protocol has them
        if is_array(titled):
            return all(is_object(each) and isinstance(each.get("const"), str) for each in titled)
        return items.get("type") == "string" and is_array(items.get("enum"))
    return schema.get("type") in _FIELDS


def can_be_asked(request: Request) -> bool:
    """Whether the client says that it shows forms; one that says nothing more shows them."""
    known = request.session.client_capabilities
    asks = None if known is None else known.elicitation
    return asks is not None and (asks.form is not None or asks.url is None)


def _says_no(waiting: SuspendedCall, content: Mapping[str, object]) -> bool:
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

    def __init__(self, request: Request, before: ProgressOut | None = None) -> None:
        """Be that of one call.

        Args:
            request: The request.
            before: That of the call before it, where the request has several.
        """
        self._session = request.session
        self._waiting = AsyncSink[Mapping[str, Any]](_MOST_WAITING)
        self.last: float = -inf if before is None else before.last

    def __call__(self, event: ToolEvent) -> None:
        """Take one event; what is not a report of progress stays here, and so does a failure.

        That a call failed is told by its answer, which says no more than it is meant to.
        """
        report = event.progress
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
            if done is None or done <= self.last:
                done = 0.0 if self.last == -inf else nextafter(self.last, inf)
            self.last = done
            await self._session.report_progress(done, total, report.get("message"))


Request: TypeAlias = ServerRequestContext[Any, Any]
"""The SDK's context of a request."""

ContextForRequest: TypeAlias = Callable[[AnyToolCall, Request, Sink], ToolContext]
"""Makes the context of a call; the sink sends progress to the client."""

SkippedFor: TypeAlias = Mapping[str, Any] | Callable[[Request], Mapping[str, Any]]
"""Values of hidden parameters, or what gives them for a request."""

LOGGER: Final = logging.getLogger("lutum.mcp")
LOGGER.addHandler(logging.NullHandler())
_LEFT_BEHIND: Final = set["asyncio.Task[Outcome]"]()
"""Tasks of calls whose client went away."""

_KEY: Final = b"the SDK seals the state of requests"
"""A tool may leave bytes in a plan, which takes a key; that of the SDK's seal is the secret one."""

_DECISION: Final = "decision"
"""The name of our only question in what a client is asked."""


def _let_pass(call: AnyToolCall) -> AnyToolCall:
    return call


class _Unfit(Exception):
    """The client's answer does not fit what was asked; the text goes to the client."""


def _not_run(plan: ToolRoundPlan[Toolset], waiting: SuspendedCall) -> str:
    """Say how far the call of a client got whose question has no answer."""
    # If a payment was made within a program, a client that reads only "was not run" sends the
    # program again, and pays again.
    again = " again" if waiting.was_started else ""
    said = f"The tool was not run{again}."
    outer, *rows = plan.calls
    within = "; ".join(_how(row) for row in rows if len(row.ancestors) == 1)
    if outer.id != waiting.call.id:
        said += f" Tool {outer.tool!r} was started, and did not go on."
    return f"{said} Within it, {within}." if within else said


def _how(row: CallRow) -> str:
    """Say how a call ended that another requested, or that nobody knows."""
    was_started = any(step.kind in ("started", "requested") for step in row.steps)
    how: str = "indeterminate" if row.result is None else row.result.status
    if not was_started and (row.result is None or how == "cancelled"):
        how = "not executed"
    return f"{row.id} of tool {row.tool}: {how}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Serving:
    """Know how to answer calls; see `create_server` for what the attributes mean."""

    toolset: type[Toolset]
    offered: OfferedTools
    hooks: Hooks | None
    context: ContextForRequest | None
    skipped: SkippedFor | None
    options: RunOptions
    gate: AbstractAsyncContextManager[None]
    show_errors: bool

    async def answer(
        self, request: Request, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Answer one `tools/call`.

        Raises:
            MCPError: What the client sent back as the state of a call is none of this call.
        """
        try:
            plan = await self._opened(params)
            answering = _Answering(self, request, plan)
            try:
                return await answering.answer()
            except BaseException as error:
                # A client that reads of a plain failure calls again.
                if answering.has_run and not must_go_on(error):
                    return self.failed(params.name, error, "ran, and what followed failed")
                raise
            finally:
                if plan.closed_by is None:
                    plan.discard()
        except MCPError:
            raise
        except _Unfit as error:
            return _refusal(str(error))
        except BaseException as error:  # hooks and contexts may raise anything
            if must_go_on(error):
                raise
            return self.failed(params.name, error)

    async def _opened(self, params: CallToolRequestParams) -> ToolRoundPlan[Toolset]:
        if params.request_state is not None:
            return await self._resumed(params)
        # Back to text, so that the arguments are decoded, coerced and refused as those of a model
        # are.
        arguments = compact_json(params.arguments or {})
        call = ToolMetadata(id=f"mcp_{uuid4().hex}", name=params.name, arguments=arguments)
        outcome: Any = self.toolset.read_turn(AssistantTurn(tool_calls=[call]), self.offered)
        opened = outcome.round
        try:
            # Without hooks not `opened.plan()`: what is declared beside the tools may be async.
            hooks = _let_pass if self.hooks is None else self.hooks
            return await opened.apply_hooks(hooks)  # type: ignore[no-any-return]
        except BaseException:
            opened.discard()
            raise

    async def _resumed(self, params: CallToolRequestParams) -> ToolRoundPlan[Toolset]:
        """Load the plan that the client was given, and take in its answer."""
        try:
            plan = self.toolset.load_plan(params.request_state or "", key=_KEY)
        except PlanError as error:
            LOGGER.warning("the state of a call of %s is refused: %s", params.name, error)
            # The words of the SDK for a state that it refuses itself.
            raise MCPError(
                INVALID_PARAMS,
                "Invalid or expired requestState",
                {"reason": "invalid_request_state"},
            ) from None
        # The state is sealed and says what waits; the answer comes from the client and says
        # anything. So only the answer is looked at closely.
        answer = (params.input_responses or {}).get(_DECISION)
        if not isinstance(answer, ElicitResult):
            plan.discard()
            raise MCPError(INVALID_PARAMS, f"inputResponses has no answer to {_DECISION!r}")
        try:
            return await self.decided(plan, answer)
        except BaseException:
            plan.discard()
            raise

    async def decided(
        self, plan: ToolRoundPlan[Toolset], answer: ElicitResult
    ) -> ToolRoundPlan[Toolset]:
        """Take in a client's answer; what was approved still has to pass, and tell, the hook set.

        Raises:
            _Unfit: The answer does not fit.
            HookError: A hook raised.
        """
        waiting = plan.suspended[0]
        try:
            plan.resume(decision_of(waiting, answer))
        except ResumeError as error:
            raise _Unfit(f"{error} {_not_run(plan, waiting)}") from error
        # Others would be asked about it once more; what is declared beside the tool asks still.
        is_set = isinstance(self.hooks, HookSet)
        hooks: Any = self.hooks if is_set else _let_pass
        return plan if self.hooks is None else await plan.apply_hooks(hooks)

    def failed(self, name: str, error: BaseException, what: str = "failed") -> CallToolResult:
        """Answer a call that failed, in words for the client."""
        return _refusal(self.told_of(name, error, what))

    def told_of(self, name: str, raised: BaseException, what: str = "failed") -> str:
        """Log what nobody wrote for the client, and say only that there was something."""
        error = HookError.as_error(raised, "A function of the server")
        LOGGER.error("tool %s %s", escape_unprintable(name), what, exc_info=error)
        told = f": {escape_unprintable(str(error), LINES)}" if self.show_errors else "."
        return f"Tool {escape_unprintable(name)!r} {what}{told}"


class _Answering:
    """Bring one plan to its end, or to a question.

    Attributes:
        has_run: Whether a tool was run to its end.
    """

    def __init__(self, serving: Serving, request: Request, plan: ToolRoundPlan[Toolset]) -> None:
        self._serving = serving
        self._request = request
        self._plan = plan
        self._raised: Exception | None = None
        self._outcome: Outcome | None = None
        self.has_run = False
        self._progress: ProgressOut | None = None
        self._hooks: Hooks = _let_pass if serving.hooks is None else serving.hooks

    async def answer(self) -> CallToolResult | InputRequiredResult:
        # A plan is brought on by three steps, over and over: decide what was requested within, run
        # what is pending, ask about what waits. Each may make work for the others, and the first
        # that can do nothing more ends it.
        while True:
            plan = self._plan
            if plan.unreviewed:
                await plan.apply_hooks(self._hooks)
            await self._show(())  # what people decided within
            pending = plan.pending
            for call in pending:
                outcome = await self._run(call)
                if call.requested_by is not None:
                    outcome = await self._shown(call, outcome)
                plan.record(outcome)
                self._outcome = outcome
            if pending:  # what these requested is next
                continue
            if not plan.suspended:
                break
            asked = await self._ask(plan.suspended[0])
            if asked is not None:
                return asked
        await self._show(())
        # Looked at before the plan ends, which caps results: no after-hook has put in another one.
        is_as_raised = plan.finished[:1] == (self._outcome,)
        (result,) = plan.resolve().results
        error = self._unmeant(result) if is_as_raised else None
        if error is not None:
            return self._serving.failed(result.name, error)
        return self._answer_of(result)

    async def _shown(self, call: AnyToolCall, outcome: Outcome) -> Outcome:
        """Show after-hooks what a call within came to; give what the awaiting call gets."""
        (shown,) = await self._show((outcome,))
        error = self._unmeant(outcome) if shown is outcome else None
        if error is None or not isinstance(shown, ToolResult):
            return shown
        # A tool passes on what it reads of others, a program as `str(error)`: what the client is
        # not to be told, the awaiting call is not told either.
        text = self._serving.told_of(call.name, error)
        return ToolResult.failed(call.metadata, text, code=shown.code)

    async def _show(self, outcomes: tuple[Outcome, ...]) -> Sequence[Outcome]:
        """Let after-hooks see results; only a hook set has any."""
        hooks: Any = self._hooks
        if not isinstance(self._hooks, HookSet):
            return outcomes
        return await self._plan.apply_after_hooks(hooks, outcomes)

    async def _ask(self, waiting: SuspendedCall) -> CallToolResult | InputRequiredResult | None:
        """Ask the client; give an answer to its request, or None if it has decided."""
        form = form_for(waiting, self._question(waiting))
        if form is None or not can_be_asked(self._request):
            return self._unasked(waiting)
        if is_modern(self._request.protocol_version):
            # The whole plan goes to the client, sealed by the SDK, and comes back with the answer:
            # this process may be gone by then, and another one of the same keys goes on.
            state = self._plan.dump_json(key=_KEY)
            return InputRequiredResult(input_requests={_DECISION: form}, request_state=state)
        try:
            answer = await self._request.session.elicit_form(
                form.params.message,
                form.params.requested_schema,  # type: ignore[union-attr]
                related_request_id=self._request.request_id,
            )
        except (MCPError, ValidationError):
            return self._unasked(waiting)
        self._plan = await self._serving.decided(self._plan, answer)
        return None

    def _question(self, waiting: SuspendedCall) -> str:
        """Put into words what is asked; of a call that another requested, within which calls."""
        within, question = self._plan.ancestors(waiting.call.id), question_of(waiting)
        if not within:
            return question
        tools = " > ".join((*(each.tool for each in within), waiting.call.name))
        return f"{tools} (call {waiting.call.id}): {question}"

    def _unasked(self, waiting: SuspendedCall) -> CallToolResult:
        return _refusal(
            f"Tool {waiting.call.name!r} needs an answer first, which this client cannot give: "
            f"{self._question(waiting)} {_not_run(self._plan, waiting)}"
        )

    async def _run(self, call: AnyToolCall) -> Outcome:
        """Run a call to its end, also if the client stops to wait for it.

        A cancelled request asks the tool to stop, by its token, and leaves it the time to do so.
        """
        serving, request = self._serving, self._request
        out = self._progress = ProgressOut(request, self._progress)
        given = (
            ToolContext.for_call(call, sink=out)
            if serving.context is None
            else serving.context(call, request, out)
        )
        context = given.with_cancellation(given.cancellation.child())
        skipped = serving.skipped
        given_here = skipped(request) if callable(skipped) else skipped
        options: RunOptions = {**serving.options, "skipped": given_here}
        async with out.sending():
            task = asyncio.create_task(self._gated(call, context, options))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                context.cancellation.cancel("the client cancelled the request.")
                # The tool is asked to stop, and has its grace to do so. Nobody reads the outcome,
                # but a task that nobody holds might be collected as garbage before its end.
                _LEFT_BEHIND.add(task)
                task.add_done_callback(_LEFT_BEHIND.discard)
                raise

    async def _gated(self, call: AnyToolCall, context: ToolContext, options: RunOptions) -> Outcome:
        self._raised = None
        async with self._serving.gate:
            try:
                (outcome,) = await execute_all((call,), context=lambda _: context, **options)
            except ExecutionErrors as errors:
                (self._raised,), (outcome,) = errors.exceptions, errors.outcomes
        self.has_run |= isinstance(outcome, ToolResult)
        return outcome

    def _unmeant(self, outcome: Outcome) -> Exception | None:
        """Return what a tool raised that nobody wrote for the client."""
        error = _sole(self._raised)
        # That nobody knows what it did is said in words of a tool or of this library, and to a
        # client which took it for a plain failure, the tool would look free to be called again.
        return None if isinstance(error, ToolError) or outcome.is_indeterminate else error

    def _answer_of(self, result: ToolResult) -> CallToolResult:
        text = result.rejection_reason or result.model_text
        files = [_content_of(each) for each in result.attachments]
        said: list[ContentBlock] = [TextContent(text=text)] if text or not files else []
        answer = CallToolResult(content=[*said, *files], is_error=result.is_error)
        modern = is_modern(self._request.protocol_version)
        definition = self._serving.toolset[result.name].definition if result.is_success else None
        if definition is not None and structure_of(definition, result.output, modern=modern):
            answer.structured_content = result.output
        return answer


def _sole(error: Any) -> Exception | None:
    """Take groups of one apart, as task groups raise them."""
    inside: Any = getattr(error, "exceptions", ())
    made: Exception | None = error
    return _sole(inside[0]) if len(inside) == 1 else made


def _refusal(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _content_of(attachment: Attachment) -> ContentBlock:
    """Put a file into the form of the protocol; one that is elsewhere stays there."""
    mime, url = attachment.mime_type, attachment.url
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        name = attachment.caption or url.rpartition("/")[2] or url
        return ResourceLink(name=name, uri=url, mime_type=mime, size=attachment.size)
    if attachment.media_type == "image":
        return ImageContent(data=data, mime_type=mime)
    if attachment.media_type == "audio":
        return AudioContent(data=data, mime_type=mime)
    uri = f"attachment:{attachment.caption or attachment.media_type}"
    return EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=mime, blob=data))
