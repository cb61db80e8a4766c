"""`http_transport`: HTTP to a server, with the statuses of its answers.

The SDK gives every answer that is not of the protocol the same code: of a refused token (401) as of
a gateway that gave up waiting (504). Only the status shows which of the two came, and only the
first proves that no tool ran.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

REFUSED: Final = frozenset({401, 403, 404, 405, 406, 413, 415, 429})
"""Statuses by which a server refuses a request before it does anything."""

# The SDK sends each message in the context of whoever sends it, so a response finds its call here.
_STATUSES: Final[ContextVar[list[int] | None]] = ContextVar("statuses", default=None)


@asynccontextmanager
async def http_transport(
    url: str, *, http_client: httpx2.AsyncClient | None = None, **options: Any
) -> AsyncGenerator[Any]:
    """Reach a server over HTTP and see the status of each answer: `Client(http_transport(url))`.

    With the SDK's own transport, a call that is refused by its status (such as 401 or 429) is
    `indeterminate`. With this one it is an error, and the model may call again.

    Args:
        url: The address of the server.
        http_client: The client to send with, for headers and authorisation; you close it.
        options: What `streamable_http_client` of the SDK takes besides.
    """
    async with AsyncExitStack() as stack:
        http = http_client
        if http is None:  # with the time-outs of the SDK
            timeout = httpx2.Timeout(30, read=300)
            http = await stack.enter_async_context(httpx2.AsyncClient(timeout=timeout))
        hooks = http.event_hooks
        http.event_hooks = {**hooks, "response": [*hooks.get("response", ()), _note]}
        transport = streamable_http_client(url, http_client=http, **options)
        yield await stack.enter_async_context(transport)


async def _note(response: httpx2.Response) -> None:
    """Note the status of an answer to a message; the requests of an authorisation are none."""
    request, statuses = response.request, _STATUSES.get()
    is_message = "text/event-stream" in request.headers.get("accept", "")
    if statuses is not None and request.method == "POST" and is_message:
        statuses.append(response.status_code)


@contextmanager
def statuses_noted() -> Generator[list[int]]:
    """Note the statuses of the answers to what is sent inside; none without `http_transport`."""
    statuses: list[int] = []
    token = _STATUSES.set(statuses)
    try:
        yield statuses
    finally:
        _STATUSES.reset(token)
