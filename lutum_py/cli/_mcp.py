"""`lutum mcp`: serve a toolset, or show what a server offers and what would be made of it here."""

from __future__ import annotations

import asyncio
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from .. import Toolset
from .._text.escaping import words_of
from .._text.json import cut
from ..capabilities import risk_of
from ..errors import DeveloperError, LutumError, MissingExtraError, MisuseError
from ._screen import Failure, answer, complain, counted, system_reason, text

if TYPE_CHECKING:
    from mcp import Client

    from ..mcp import RemoteTools


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
    with listening, redirect_stdout(sys.stderr):  # what tools print, as on standard streams
        await uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none")).serve([listening])


def inspect_server(
    server: Sequence[str], trusted: bool, only: list[str] | None, seconds: float, as_json: bool
) -> int:
    """Print what a server offers, and give the exit code.

    Raises:
        Failure: The server was not reached, or what it sent is not a listing.
        MissingExtraError: The SDK is not installed.
    """
    try:
        report = asyncio.run(_report(server, trusted, only, seconds))
    except MissingExtraError:
        raise
    except TimeoutError as error:
        raise Failure(f"The server did not answer within {seconds:g} seconds.") from error
    except (Exception, asyncio.CancelledError) as error:  # a transport may raise anything
        raise _unreached(server, error) from error
    answer(as_json, report, *_lines(report))
    return 1 if report["refused"] else 0


def _unreached(server: Sequence[str], error: BaseException) -> Failure:
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    if len(inner) == 1:  # task groups wrap even a single error
        return _unreached(server, inner[0])
    said = cut(words_of(error), 600) or "no message"
    if isinstance(error, LutumError):
        return Failure(said)
    return Failure(
        f"The server `{' '.join(server)}` cannot be listed: {type(error).__name__}: {said}. Give "
        "its http address, or the command that runs it."
    )


async def _report(
    server: Sequence[str], trusted: bool, only: list[str] | None, seconds: float
) -> dict[str, Any]:
    from ..mcp import RefusedToolWarning, remote_tools

    async with asyncio.timeout(seconds), _client(server) as client:
        with warnings.catch_warnings():  # the page lists them
            warnings.simplefilter("ignore", RefusedToolWarning)
            remote = await remote_tools(client, "Server", trusted=trusted, only=only)
        return _as_data(client, remote)


def _client(server: Sequence[str]) -> Client:
    from mcp import Client, StdioServerParameters

    first, *arguments = server
    if first.startswith(("http://", "https://")) and not arguments:
        return Client(first)
    return Client(StdioServerParameters(command=first, args=arguments))


def _as_data(client: Client, remote: RemoteTools) -> dict[str, Any]:
    info = client.server_info
    return {
        "server": info.name if info else None,
        "version": info.version if info else None,
        "protocol": client.protocol_version,
        "digest": remote.digest,
        "tools": [
            {
                "name": selector.name,
                "server_name": remote.listed[selector.name].name,
                "title": selector.definition.title,
                "description": selector.definition.description,
                "risk": risk_of(selector.definition.capabilities).value,
                "effects": [each.kind.value for each in selector.definition.capabilities.effects],
                "idempotent": selector.definition.idempotent,
                "input_schema": selector.definition.input_schema,
            }
            for selector in remote.toolset
        ],
        "refused": [{"name": each.name, "reason": each.reason} for each in remote.refused],
    }


def _lines(report: dict[str, Any]) -> list[Text]:
    name = " ".join(filter(None, [report["server"], report["version"]])) or "A server"
    lines = [text(f"{name} (protocol {report['protocol']})", "bold")]
    for tool in report["tools"]:
        other = tool["server_name"]
        own = f" (there `{other}`)" if other != tool["name"] else ""
        said = tool["description"].strip().partition("\n")[0]
        lines += [
            text(""),
            text(f"{tool['name']}{own}", "bold cyan"),
            text(f"  risk:   {tool['risk']} ({', '.join(tool['effects'])})"),
            text(f"  fields: {', '.join(tool['input_schema'].get('properties', {})) or 'none'}"),
            *([text(f"  {cut(said, 200)}")] if said else []),
        ]
    for refused in report["refused"]:
        lines += [
            text(""),
            text(f"{refused['name']}: refused", "bold red"),
            text(f"  {refused['reason']}"),
        ]
    tools = counted(len(report["tools"]), "tool")
    total = f"{tools}, {len(report['refused'])} refused. Digest of the tools: {report['digest']}"
    return [*lines, text(""), text(total)]
