"""The connection that a user opened: by whom it may be used, and what the server lists.

What it lists has digests, by which a change is told from none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from mcp import Client, ClientSession, MCPError
from mcp.server import MCPServer, Server
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CONNECTION_CLOSED, CallToolRequest, PaginatedRequestParams, Tool
from pydantic import BaseModel, TypeAdapter

from .._schema.definition import without_remarks
from .._text.json import canonical_json, digest_of, shorten
from ..errors import MisuseError, ProviderError
from ._words import one_line

Change: TypeAlias = Literal["added", "removed", "schema", "text"]
"""What became of a tool: `schema` is anything but words, `text` is words alone."""


def shape_of(tool: Tool) -> str:
    """Return a digest of all that decides what a call means: not of words for models and people.

    Raises:
        ValueError: A schema is not JSON data.
    """
    data = _data_of(tool)
    for key in ("inputSchema", "outputSchema"):
        if key in data:
            data[key] = without_remarks(data[key])
    # Titles stand at two places: of the tool, and among its hints.
    # A server may reword its descriptions every day, and the pinned tool is still the same; a new
    # field, or a hint such as `readOnlyHint`, is another tool. The model reads the words, so they
    # count for `digest` and not here.
    hints = data.pop("annotations", {})
    for key in ("title", "description", "icons"):
        data.pop(key, None)
        hints.pop(key, None)
    return digest_of([data, hints])


def _data_of(tool: Tool) -> dict[str, Any]:
    # What a server puts into `_meta` is for programs that know it, and may differ at each listing.
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})


def digest_of_all(tools: Iterable[Tool]) -> str:
    """Return one digest of tools, words included, whatever their order.

    Raises:
        ValueError: A schema is not JSON data.
    """
    return digest_of(sorted(canonical_json(_data_of(tool)) for tool in tools))


def changes(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> dict[str, Change]:
    """Say what became of each tool that is not what it was."""
    found: dict[str, Change] = {}
    for name in sorted({*before, *now}):
        if name not in before:
            found[name] = "added"
        elif name not in now:
            found[name] = "removed"
        elif shape_of(before[name]) != shape_of(now[name]):
            found[name] = "schema"
        elif _data_of(before[name]) != _data_of(now[name]):
            found[name] = "text"
    return found


class NotSent(Exception):
    """A call was not sent, since the connection was closed already."""


Answered = TypeVar("Answered", bound=BaseModel)

_MOST_PAGES: Final = 1000
"""A listing of more pages is taken for one without an end."""


class Connection:
    """Ask the server of an open client or session.

    Raises:
        MisuseError: It is not a client or session, or is not open.
    """

    __slots__ = ("_client", "_loop")

    def __init__(self, client: Client | ClientSession) -> None:
        given: object = client
        if not isinstance(given, Client | ClientSession):
            raise MisuseError(
                f"The tools of a server come over an open `mcp.Client`, not {shorten(given)}. "
                "Write `async with Client(...) as client:`."
            )
        self._client = client
        self._loop = asyncio.get_running_loop()
        if self.session.protocol_version is None:
            raise MisuseError(
                "The session has not spoken to its server yet. Write `await session.initialize()` "
                "first, or use an `mcp.Client`."
            )

    @property
    def session(self) -> ClientSession:
        """The session of the SDK.

        Raises:
            MisuseError: The client is closed, or this is another event loop than its own.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise MisuseError(
                "A tool of an MCP server runs in the event loop in which its client was opened, "
                "and this is another one. Run the loop of the model there."
            )
        if isinstance(self._client, ClientSession):
            return self._client
        try:
            return self._client.session
        except RuntimeError:
            raise MisuseError(
                "The `mcp.Client` is not open. Stay inside of `async with Client(...) as client:` "
                "while its tools are used."
            ) from None

    async def send(
        self,
        request: CallToolRequest,
        answered: TypeAdapter[Answered],
        progressed: ProgressFnT,
    ) -> Answered:
        """Send a call, once.

        Raises:
            NotSent: The connection was closed before.
            MCPError: The server answered with an error, or not at all.
            ValueError: What it answered is no result.
        """
        # The SDK ends a call of a closed connection as it ends one whose connection is lost on the
        # way, but at once: an answer takes at least one turn of the event loop. A server in this
        # process may answer at once, too.
        may_be_sent = isinstance(self._client, Client) and isinstance(
            self._client.server, Server | MCPServer
        )

        def turned() -> None:
            nonlocal may_be_sent
            may_be_sent = True

        turn = self._loop.call_soon(turned)
        try:
            return await self.session.send_request(request, answered, progress_callback=progressed)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and not may_be_sent:
                raise NotSent(error.message) from None
            raise
        finally:
            turn.cancel()

    async def listed(self, *, fresh: bool) -> AsyncIterator[Tool]:
        """Return the tools that the server lists, page by page.

        Args:
            fresh: Whether the server itself is asked, and not what the SDK keeps of its answer.

        Raises:
            MCPError: The server refused, or is gone.
            ProviderError: What it sent is not a listing, or has no end.
        """
        cursor: str | None = None
        # A `for` and not a `while`: a broken or hostile server may give a cursor forever, and each
        # page costs memory here.
        for _ in range(_MOST_PAGES):
            session = self.session
            try:
                # A client keeps listings for as long as the server allows; a bare session keeps
                # none.
                if isinstance(self._client, Client):
                    mode: Any = "refresh" if fresh else "use"
                    page = await self._client.list_tools(cursor=cursor, cache_mode=mode)
                else:
                    page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            except ValueError as error:  # how the SDK tells about what it cannot read
                raise ProviderError(
                    f"The server's list of tools breaks the protocol: {one_line(str(error))}. "
                    "Tell the author of the server."
                ) from error
            for tool in page.tools:
                yield tool
            cursor = page.next_cursor
            if cursor is None:
                return
        raise ProviderError(
            f"The server's list of tools has more than {_MOST_PAGES:,} pages, so that it may have "
            "no end. Tell the author of the server."
        )

    async def find(self, name: str) -> Tool | None:
        """Return what the server itself lists under a name now; None if it lists nothing.

        Raises:
            MCPError: The server refused, or is gone.
            ProviderError: What it sent is not a listing, or has no end.
        """
        async for tool in self.listed(fresh=True):
            if tool.name == name:
                return tool
        return None
