"""`lutum mcp serve`: a toolset as an MCP server, for one process or for this machine."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import redirect_stdout, suppress
from typing import Any, Final

from .._toolset import Toolset
from ..errors import DeveloperError, MisuseError
from ._screen import Failure, complain, system_reason, text

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def serve_toolset(
    toolset: type[Toolset], *, hooks: Any, stdio: bool, port: int | None, host: str
) -> None:
    """Serve until the client leaves, or the process is stopped.

    Raises:
        Failure: Both or no transport is named, the host is another machine's, the port is taken,
            or the toolset cannot be served.
        MissingExtraError: The SDK is not installed.
    """
    # Both, or neither.
    if stdio is (port is not None):
        raise Failure("Name one transport: `--stdio`, or `--http PORT`.")
    if host not in _LOOPBACK:
        raise Failure(
            f"`--host {host}` would let others in, and this command knows no authorisation. Serve "
            f"{', '.join(_LOOPBACK)}, or run the server of `lutum_py.mcp.create_server` yourself."
        )
    from ..mcp import create_server

    try:
        server = create_server(toolset, hooks=hooks)
    except MisuseError as error:
        # Hidden parameters and handlers are objects of a program.
        raise Failure(
            f"{error} What this command cannot take, a server of "
            "`lutum_py.mcp.create_server(...)` that you run yourself can."
        ) from error
    except DeveloperError as error:
        raise Failure(str(error)) from error
    # The socket is opened here and not by uvicorn, which would end the process with a log line of
    # its own where the port is taken, and does not say which port 0 became.
    serving = (
        _serve_stdio(server) if port is None else _serve_http(server, _listening(host, port), host)
    )
    with suppress(KeyboardInterrupt):  # how it is meant to end
        asyncio.run(serving)


async def _serve_stdio(server: Any) -> None:
    from mcp import stdio_server

    async with stdio_server() as (incoming, outgoing):
        # The SDK keeps the wire to itself while it serves. What waits in a buffer would be written
        # there once it gives it back.
        with redirect_stdout(sys.stderr):
            await server.run(incoming, outgoing, server.create_initialization_options())


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise Failure(
            f"Nothing can listen on port {port} of {host}: {system_reason(error)}."
        ) from error


async def _serve_http(server: Any, listening: socket.socket, host: str) -> None:
    import uvicorn

    app = server.streamable_http_app(host=host)
    shown = f"[{host}]" if ":" in host else host
    complain(text(f"Serving http://{shown}:{listening.getsockname()[1]}/mcp"))
    with listening:
        await uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none")).serve([listening])
