"""Servers of the SDK for tests, and clients of it: in process, by stdio and over the loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from lutum_py import AnyToolCall, ToolMetadata
from lutum_py.errors import LutumError
from lutum_py.mcp import RefusedToolWarning, RemoteTools, decline_inline, remote_tools

REPOSITORY: Final = Path(__file__).resolve().parents[2]
OBJECT: Final[dict[str, Any]] = {"type": "object", "properties": {}}

Request = ServerRequestContext[Any, Any]
Answer = CallToolResult | InputRequiredResult
Does = Callable[[Request, CallToolRequestParams], Awaitable[Answer]]


def described(name: str = "t", **fields: Any) -> Tool:
    """A tool as a server lists it."""
    return Tool(**{"name": name, "input_schema": OBJECT, **fields})


def said(text: str = "done", **fields: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], **fields)


def form(schema: Any, message: str = "?") -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


class Served:
    """A server that lists what it is given and answers as it is told, and keeps what came.

    Attributes:
        tools: What it lists; a test may change it.
        received: The parameters of each `tools/call`.
        listings: How often it was asked for its tools.
    """

    def __init__(self, tools: Sequence[Tool], does: Does | Answer | None = None) -> None:
        self.tools = list(tools)
        self.received: list[CallToolRequestParams] = []
        self.listings = 0
        self.does = does
        self.server: Server[Any] = Server(
            "served", on_list_tools=self._list, on_call_tool=self.call
        )

    async def _list(self, request: Request, params: PaginatedRequestParams | None) -> Any:
        self.listings += 1
        return ListToolsResult(tools=self.tools)

    async def call(self, request: Request, params: CallToolRequestParams) -> Answer:
        self.received.append(params)
        if callable(self.does):
            return await self.does(request, params)
        return self.does or said()


@asynccontextmanager
async def over_http(server: Server[Any] | MCPServer) -> AsyncIterator[str]:
    """Serve on the loopback, and give the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app()
    running = uvicorn.Server(
        uvicorn.Config(
            app, log_level="critical", timeout_graceful_shutdown=1, lifespan="on", ws="none"
        )
    )
    task = asyncio.create_task(running.serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        await task
        listening.close()


KINDS: Final = ("direct", "legacy", "http", "http legacy")
"""Ways to a server of this process, by the protocol of 2026 and by the one before."""


@asynccontextmanager
async def connected(
    server: Server[Any] | MCPServer | Served, kind: str = "direct", **options: Any
) -> AsyncIterator[Client]:
    """Open a client of a server in this process."""
    real = server.server if isinstance(server, Served) else server
    options = {"elicitation_callback": decline_inline, **options}
    mode = "legacy" if "legacy" in kind else "auto"
    if "http" not in kind:
        async with Client(real, mode=mode, **options) as client:
            yield client
        return
    async with over_http(real) as url, Client(url, mode=mode, **options) as client:
        yield client


def by_stdio(*arguments: str, mode: str = "auto", **options: Any) -> Client:
    """Make a client that starts a server of these tests as a process of its own."""
    command = StdioServerParameters(
        command=sys.executable, args=list(arguments), cwd=str(REPOSITORY)
    )
    return Client(command, mode=mode, **{"elicitation_callback": decline_inline, **options})


def call_of(remote: RemoteTools, name: str = "t", id: str = "c1", **arguments: Any) -> AnyToolCall:
    metadata = ToolMetadata(id=id, name=name, arguments=json.dumps(arguments))
    return remote.toolset.parse_tool_call(metadata)


async def taken(server: Served, **options: Any) -> RemoteTools:
    """List a server in process; for tests that look only at what is made of it."""
    async with connected(server) as client:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RefusedToolWarning)
                return await remote_tools(client, "Remote", **options)
        except LutumError as error:  # a client puts what passes it into a group
            raised = error
    raise raised
