"""One call of a tool of a server: sent once, and told as far as it is known what became of it.

What was sent and not answered may have had its effects; what was not sent had none. Which of the
two it is decides whether a result is an error or says that nobody knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    InputResponses,
)
from pydantic import TypeAdapter

from .._call.reply import Reply
from .._context.context import ToolContext
from .._schema.capabilities import ToolCapabilities
from .._schema.schema_check import SchemaChecker
from ..errors import ProviderError
from ._connection import Connection, NotSent, shape_of
from ._http import REFUSED, statuses_noted
from ._questions import UnfitAnswer, UnfitQuestion, answers_in, ticket_for
from ._results import failed, reply_of
from ._words import Limits, legible, one_line

_ANSWERED: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(
    CallToolResult | InputRequiredResult
)
# A server may fail after the tool has done its work, so an error proves nothing by itself. These
# two say that nothing was run. The others of JSON-RPC do not: -32603, -32700 and -32600 are what
# the SDK makes of every answer that it cannot read, as of a gateway that gave up waiting.
_NOT_RUN: Final = (METHOD_NOT_FOUND, INVALID_PARAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The server that is asked, and what the user said about it."""

    connection: Connection
    name: str
    only: tuple[str, ...] | None
    rename: Callable[[str], str] | None
    trusted: bool
    verify: bool
    capabilities: Mapping[str, ToolCapabilities]
    timeout: float | None
    limits: Limits


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

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> Reply[Any]:
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
                if self.rules.verify:
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
                ticket = ticket_for(answered, self.rules.limits)
            except UnfitQuestion as error:
                return failed(error.code, f"{error} The tool waits for an answer in vain.")
            context.suspend(ticket)
        return reply_of(answered, self.output, self.rules.limits, trusted=self.rules.trusted)

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
        arguments: dict[str, Any],
        answers: InputResponses | None,
        state: str | None,
        context: ToolContext,
    ) -> CallToolResult | InputRequiredResult:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            context.report_progress(
                "running",
                None if message is None else legible(message, self.rules.limits.description),
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

    def _refused(self, error: MCPError, is_sent: bool, statuses: list[int]) -> Reply[Any]:
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

    def _lost(self, why: str, is_sent: bool) -> Reply[Any]:
        return self._in_doubt(
            "connection_lost", f"the connection to the server is lost ({why})", is_sent
        )

    def _in_doubt(self, code: str, why: str, is_sent: bool) -> Reply[Any]:
        """Tell about a call that has no answer: it may have been done, if it was sent."""
        # Three answers by what is known: not sent, so nothing happened; sent and only reading, so a
        # second call does no harm; sent, so nobody knows.
        if not is_sent:
            return failed(code, f"Not called: {why}.")
        if self.only_reads:
            return failed(code, f"No answer: {why}. The tool may be called again.")
        text = f"Outcome unknown: {why}. The tool may have had its effects."
        return failed(code, text, "indeterminate")

    def _stopped(self, reason: str | None, is_sent: bool) -> Reply[Any]:
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
