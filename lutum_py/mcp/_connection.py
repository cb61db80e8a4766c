"""What is taken of a server: how much, what its tools are called here, what is left of its texts.

A server writes text that the model reads. What nobody sees on a screen (controls, marks of
direction, tag characters) can carry words that a reviewer never read, so it is taken out.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, TypeVar

import httpx2
from mcp import Client, ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CONNECTION_CLOSED, CallToolRequest, PaginatedRequestParams, Tool
from pydantic import BaseModel, TypeAdapter

from .._text.escaping import LINES, escape_unprintable, is_unseen
from .._text.json import canonical_json, cut, digest_of, is_array, is_object, sendable, shorten
from ..errors import InvalidValueError, MisuseError, ProviderError
from ..schemas import with_subschemas, without_remarks
from ..typing import JsonSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bound what is taken of a server that may send anything.

    They hold for what the SDK has read already; what it reads is bounded by the SDK, or not at all.

    Attributes:
        tools: Tools, after `only=`; more are a `ProviderError`.
        description: Characters of a description, a title, or a question; the rest is cut off.
        schema: Characters of the schemas of one tool, or of a question; a tool with more is
            refused.
        result: Characters of one result; the model gets an error in place of a longer one.

    Raises:
        InvalidValueError: A limit is not a positive number.

    Example:
        >>> Limits(tools=20).description
        8192
    """

    tools: int = 1000
    description: int = 8192
    schema: int = 100_000
    result: int = 10_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidValueError(
                    f"Limits({field.name}={shorten(value)}): give a whole number above 0."
                )


NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the protocol lets tools be called."""

_LONGEST: Final = 64
_DIGITS: Final = 8
_SAID_IN_A_LINE: Final = 500
_JOINERS: Final = "\u200c\u200d"
"""Persian and Indic scripts need these, and emoji."""
_SELECTORS: Final = "\ufe0e\ufe0f"
"""They choose whether a symbol is a letter or a picture."""


def wire_name(name: str) -> str:
    """Make the wire name of a server's tool: every provider takes it.

    A dot becomes an underscore; of a name of more than 64 characters the end becomes a digest.

    Args:
        name: What the server calls the tool.

    Example:
        >>> wire_name("repo.list_issues")
        'repo_list_issues'
        >>> len(wire_name("a" * 128))
        64
    """
    made = name.replace(".", "_")
    if len(made) <= _LONGEST:
        return made
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{made[: _LONGEST - _DIGITS - 1]}_{digest}"


def legible(text: str, limit: int) -> str:
    """Take out what nobody sees, and end the text at a limit."""
    if not text.isascii() or not text.isprintable():
        text = _seen(sendable(text))
    return cut(text.strip(), limit)


def _seen(text: str) -> str:
    # With two spaces on both sides, so that each character has two before and two after it.
    said = f"  {text}  "
    around = zip(said, said[1:], said[2:], said[3:], said[4:], strict=False)
    return "".join(near[2] for near in around if _is_seen(near[2]) or _joins(*near))


def hides(data: object) -> bool:
    """Whether some text in plain JSON data, names included, holds what nobody sees."""
    if isinstance(data, str):
        return not (data.isascii() and data.isprintable()) and not all(map(_is_seen, data))
    if is_object(data):
        return any(map(hides, data)) or any(map(hides, data.values()))
    return is_array(data) and any(map(hides, data))


def _is_seen(char: str) -> bool:
    unseen = unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") or is_unseen(char)
    return char in LINES or not unseen


def _joins(earlier: str, before: str, char: str, after: str, later: str) -> bool:
    """Whether a character that nobody sees is alone, if a script or an emoji needs it.

    One that could be left out, or a run of them, may spell what nobody reads.
    """
    # "\u2764\ufe0f" is a red heart, and a run of selectors after it is a hidden text: each may
    # follow a symbol once, and something seen has to come next. Of "\u2764\ufe0f\u200d\U0001f525",
    # a heart on fire, that is the second symbol, which the joiner joins to the first.
    if char in _SELECTORS:
        return _is_symbol(before) and (_is_seen(after) or (after == "\u200d" and _is_symbol(later)))
    if before in _SELECTORS:
        return char == "\u200d" and _is_symbol(earlier) and _is_symbol(after)
    return char in _JOINERS and _is_joined(before) and _is_joined(after)


def _is_symbol(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char) in ("Sm", "So")


def _is_joined(char: str) -> bool:
    """Whether a character is of a script or kind that joins: no letter of English is."""
    return not char.isascii() and _is_seen(char) and unicodedata.category(char)[0] in "LMS"


def one_line(text: str) -> str:
    """Show a server's text in a message: on one line, without anything that does not print."""
    return escape_unprintable(cut(" ".join(sendable(text).split()), _SAID_IN_A_LINE))


def legible_schema(schema: object) -> Any:
    """Take out of a schema's titles and descriptions what nobody sees."""
    if not is_object(schema):
        return schema
    kept: JsonSchema = {
        key: legible(part, len(part)) if key in _SAID and isinstance(part, str) else part
        for key, part in schema.items()
    }
    return with_subschemas(kept, legible_schema)


def without_words(schema: object) -> Any:
    """Copy a schema without its titles and descriptions: with what is more than words."""
    if not is_object(schema):
        return schema
    kept = {
        key: part for key, part in schema.items() if key not in _SAID or not isinstance(part, str)
    }
    return with_subschemas(kept, without_words)


_SAID: Final = ("title", "description", "$comment")


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


def _data_of(tool: Tool) -> JsonSchema:
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
