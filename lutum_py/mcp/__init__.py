"""MCP both ways, over the official SDK; the extra `mcp`.

`remote_tools` makes a toolset of what a server offers, and `create_server` a server of a toolset.
Transports, authorisation, sessions, negotiation, paging and caching are the SDK's: you open its
`mcp.Client`, and you run the `Server` by one of its transports.

| a tool of a server | the result |
|---|---|
| answers | a success: its structured content as `output`, its text for the model |
| answers with `isError` | an error with the code `tool_error`, whole |
| answers what does not fit its own schema | an error, `invalid_output`: the tool ran |
| answers with more than `Limits.result` | an error, `result_too_large`: the tool ran |
| is refused before it is run: -32601, -32602, HTTP 401 (`http_transport`) | an error, `mcp_error` |
| fails in any other way: -32603, HTTP 502, a page of HTML | `indeterminate`, `mcp_error` |
| is answered with what is no result of the protocol | `indeterminate`, `invalid_output` |
| is gone, or not what it was when it was listed | an error, `tool_changed`: it was not called |
| is cut off by a token or a deadline | `indeterminate`: `cancelled`, `timed_out` |
| is left without an answer, as the connection is lost | `indeterminate`, `connection_lost` |
| is not sent, as the connection was lost before | an error, `connection_lost` |
| asks for an answer first (protocol of 2026) | a `SuspendedCall`, with a ticket `mcp_input` |

A server, or a gateway in front of it, may fail after the tool has done its work. So a failure is an
error only if it is known that the tool was not run. If a second call does no harm, what is
`indeterminate` here is `cancelled` or an error. Nothing is ever sent again by itself.
"""

from __future__ import annotations

from ..errors import MissingExtraError

try:
    from ._connection import Change, Connection, Limits, http_transport, wire_name
    from ._remote import RefusedTool, RefusedToolWarning, RemoteTools, remote_tools
    from ._remote_tool import RemoteOptions, decline_inline
    from ._serve import create_server
    from ._served_call import ContextForRequest, Request, SkippedFor
except ImportError as _error:
    if (_error.name or "").partition(".")[0] not in ("httpx2", "mcp", "mcp_types"):
        raise
    raise MissingExtraError(
        "lutum_py.mcp needs the official SDK, the package `mcp` from 2.3 on: python -m pip install "
        "'lutum-py[mcp]'"
    ) from _error

__all__ = [
    "Change",
    "Connection",
    "ContextForRequest",
    "Limits",
    "RefusedTool",
    "RefusedToolWarning",
    "RemoteOptions",
    "RemoteTools",
    "Request",
    "SkippedFor",
    "create_server",
    "decline_inline",
    "http_transport",
    "remote_tools",
    "wire_name",
]
