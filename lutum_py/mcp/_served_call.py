"""One `tools/call`: a round of one call, from its arguments to the answer.

Nothing is kept between requests. A call that waits for a decision goes out as its own plan, which
the SDK seals, and comes back with the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
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
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)
from pydantic import ValidationError

from .._call.call import AnyToolCall, Hooks
from .._call.drivers import drive
from .._call.outcomes import SuspendedCall
from .._context.context import ToolContext
from .._context.progress import Sink
from .._declare.offer import OfferedTools
from .._hooks.places import HookPlaces
from .._round.ending import ended_within
from .._round.inner import settle_within, show_to
from .._round.plan import ToolRoundPlan, as_plan, unasked
from .._round.plan_json import dump_plan, hand_over, load_plan
from .._text.escaping import LINES, escape_unprintable
from .._text.json import compact_json
from .._text.own_code import must_go_on
from .._toolset import Toolset
from .._transcript.assistant import AssistantTurn, ToolMetadata
from .._transcript.message import Attachment
from .._transcript.result import ToolResult, failure
from ..errors import PlanError, ResumeError, ToolError
from ..execution._outcome import Outcome, as_error, is_in_doubt, sole
from ..execution._run import Run, leave_behind
from ..execution._settings import Settings
from ._for_client import (
    ProgressOut,
    can_be_asked,
    decision_of,
    form_for,
    is_modern,
    question_of,
    structure_of,
)

Request: TypeAlias = ServerRequestContext[Any, Any]
"""The SDK's context of a request."""

ContextForRequest: TypeAlias = Callable[[AnyToolCall, Request, Sink], ToolContext]
"""Makes the context of a call; the sink sends progress to the client."""

SkippedFor: TypeAlias = Mapping[str, Any] | Callable[[Request], Mapping[str, Any]]
"""Values of hidden parameters, or what gives them for a request."""

LOGGER: Final = logging.getLogger("lutum.mcp")
LOGGER.addHandler(logging.NullHandler())
_DECISION: Final = "decision"
"""The name of our only question in what a client is asked."""


def _let_pass(call: AnyToolCall) -> AnyToolCall:
    return call


class _Unfit(Exception):
    """The client's answer does not fit what was asked; the text goes to the client."""


def _not_run(plan: ToolRoundPlan[Any], waiting: SuspendedCall) -> str:
    """Say how far the call of a client got whose question has no answer."""
    # If a payment was made within a program, a client that reads only "was not run" sends the
    # program again, and pays again.
    again = " again" if waiting.was_started else ""
    said = f"The tool was not run{again}."
    (call,) = plan._calls
    if call.id == waiting.call.id:
        return said + ended_within(call, {})
    return f"{said} Tool {call.name!r} was started, and did not go on.{ended_within(call, {})}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Serving:
    """Know how to answer calls; see `create_server` for what the attributes mean."""

    toolset: type[Toolset]
    offered: OfferedTools
    hooks: Hooks | None
    context: ContextForRequest | None
    skipped: SkippedFor | None
    settings: Settings
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
                    return self._failed(params.name, error, "ran, and what followed failed")
                raise
            finally:
                if plan._state._closed_by is None:
                    plan.discard()
        except MCPError:
            raise
        except _Unfit as error:
            return _refusal(str(error))
        except BaseException as error:  # hooks and contexts may raise anything
            if must_go_on(error):
                raise
            return self._failed(params.name, error)

    async def _opened(self, params: CallToolRequestParams) -> ToolRoundPlan[Any]:
        if params.request_state is not None:
            return await self._resumed(params)
        # Back to text, so that the arguments are decoded, coerced and refused as those of a model
        # are.
        arguments = compact_json(params.arguments or {})
        call = ToolMetadata(id=f"mcp_{uuid4().hex}", name=params.name, arguments=arguments)
        outcome: Any = self.toolset.read_turn(AssistantTurn(tool_calls=[call]), self.offered)
        opened = outcome.round
        try:
            if self.hooks is None:
                # Not `opened.plan()`: what is declared beside the tools may be async.
                return await drive(unasked(opened._shown()))
            return await opened.apply_hooks(self.hooks)  # type: ignore[no-any-return]
        except BaseException:
            opened.discard()
            raise

    async def _resumed(self, params: CallToolRequestParams) -> ToolRoundPlan[Any]:
        """Load the plan that the client was given, and take in its answer."""
        try:
            text = params.request_state or ""
            plan = as_plan(load_plan(self.toolset, text, None, None, is_keyed=True))
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

    async def decided(self, plan: ToolRoundPlan[Any], answer: ElicitResult) -> ToolRoundPlan[Any]:
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
        is_set = isinstance(self.hooks, HookPlaces)
        hooks: Any = self.hooks if is_set else _let_pass
        return plan if self.hooks is None else await plan.apply_hooks(hooks)

    def _failed(self, name: str, error: BaseException, what: str = "failed") -> CallToolResult:
        return _refusal(self._told_of(name, error, what))

    def _told_of(self, name: str, raised: BaseException, what: str = "failed") -> str:
        """Log what nobody wrote for the client, and say only that there was something."""
        error = as_error(raised, "A function of the server")
        LOGGER.error("tool %s %s", escape_unprintable(name), what, exc_info=error)
        told = f": {escape_unprintable(str(error), LINES)}" if self.show_errors else "."
        return f"Tool {escape_unprintable(name)!r} {what}{told}"


class _Answering:
    """Bring one plan to its end, or to a question.

    Attributes:
        has_run: Whether a tool was run to its end.
    """

    def __init__(self, serving: Serving, request: Request, plan: ToolRoundPlan[Any]) -> None:
        self._serving = serving
        self._request = request
        self._plan = plan
        self._raised: list[Exception] = []
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
            await drive(settle_within(plan, self._hooks))
            pending = plan.pending
            for call in pending:
                self._raised.clear()
                outcome = await self._run(call)
                if call.id in plan._state._round.inner:
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
        hooks: Any = self._serving.hooks
        if isinstance(self._serving.hooks, HookPlaces):  # others have none
            await plan.apply_after_hooks(hooks)
        # Looked at before the plan ends, which caps results: no after-hook has put in another one.
        is_as_raised = plan.finished[:1] == (self._outcome,)
        (result,) = plan.resolve().results
        error = self._unmeant(result) if is_as_raised else None
        if error is not None:
            return self._serving._failed(result.name, error)
        return self._answer_of(result)

    async def _shown(self, call: AnyToolCall, outcome: Outcome) -> Outcome:
        """Show after-hooks what a call within came to; give what the awaiting call gets."""
        shown: Outcome = await drive(show_to(call, outcome, self._hooks))
        error = self._unmeant(outcome) if shown is outcome else None
        if error is None or not isinstance(shown, ToolResult):
            return shown
        # A tool passes on what it reads of others, a program as `str(error)`: what the client is
        # not to be told, the awaiting call is not told either.
        text = self._serving._told_of(call.name, error)
        return failure(call.metadata, "error", text, shown.code)

    async def _ask(self, waiting: SuspendedCall) -> CallToolResult | InputRequiredResult | None:
        """Ask the client; give an answer to its request, or None if it has decided."""
        form = form_for(waiting, self._question(waiting))
        if form is None or not can_be_asked(self._request):
            return self._unasked(waiting)
        if is_modern(self._request.protocol_version):
            # The whole plan goes to the client, sealed by the SDK, and comes back with the answer:
            # this process may be gone by then, and another one of the same keys goes on.
            dump = partial(dump_plan, self._plan, None, None, is_keyed=True)
            state = hand_over(self._plan, "dumped", dump)
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
        settings = replace(serving.settings, skipped=given_here)
        run = Run(call, context, settings, note=self._note)
        async with out.sending():
            task = asyncio.create_task(_gated(run.run(), serving.gate))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                context.cancellation.cancel("the client cancelled the request.")
                # The tool is asked to stop, and has its grace to do so. Nobody reads what comes of
                # it, but a task that nobody holds might be collected as garbage before its end.
                leave_behind(task)
                raise
            finally:
                self.has_run |= isinstance(run.outcome, ToolResult)

    def _note(self, error: Exception, *_: object) -> None:
        self._raised.append(error)

    def _unmeant(self, outcome: Outcome) -> Exception | None:
        """Return what a tool raised that nobody wrote for the client."""
        error = sole(self._raised[-1]) if self._raised else None
        # That nobody knows what it did is said in words of a tool or of this library, and to a
        # client which took it for a plain failure, the tool would look free to be called again.
        return None if isinstance(error, ToolError) or is_in_doubt(outcome) else error

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


async def _gated(run: Awaitable[Outcome], gate: AbstractAsyncContextManager[None]) -> Outcome:
    async with gate:
        return await run


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
