"""The law of a server that fails: an error only where it is known that the tool was not run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.types import CallToolRequestParams

from lutum_py import ToolResult
from lutum_py.capabilities import ToolCapabilities
from lutum_py.execution import execute
from lutum_py.mcp import http_transport, remote_tools

from .servers import Answer, Request, Served, by_stdio, call_of, connected, described

MODERN: Final = "2026-07-28"
REFUSED: Final = (401, 403, 404, 405, 406, 413, 415, 429)
RESULT: Final = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}


class Fault(NamedTuple):
    """What comes back for `tools/call`, after the work was done.

    Attributes:
        status: The status of HTTP.
        body: The body, of the id of the request; a text is sent as it is.
        type: The content type; None for none.
        headers: Further lines of the head.
        is_cut: Whether the connection is closed before the end of the body.
    """

    status: int = 200
    body: Callable[[Any], Any] | str = ""
    type: str | None = "application/json"
    headers: str = ""
    is_cut: bool = False


def error(code: Any, message: Any = "it failed") -> Callable[[Any], Any]:
    return lambda id: {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def result(value: Any) -> Callable[[Any], Any]:
    return lambda id: {"jsonrpc": "2.0", "id": id, "result": value}


def event(body: Callable[[Any], Any]) -> Callable[[Any], str]:
    return lambda id: f"event: message\ndata: {json.dumps(body(id))}\n\n"


HTML: Final = "<html><body>Bad gateway</body></html>"
SSE: Final = "text/event-stream"
IN_DOUBT: Final[dict[str, Fault]] = {
    **{
        f"status {status}": Fault(status, HTML, "text/html")
        for status in (400, 402, 408, 409, 410, 421, 422, 423, 425, 431, 451, 499)
    },
    **{
        f"status {status}": Fault(status, HTML, "text/html")
        for status in (500, 501, 502, 503, 504, 507, 508, 511, 520, 521, 522, 523, 524, 529, 599)
    },
    "500 with JSON that is no answer": Fault(500, '{"error": "oops"}'),
    "500 with an error of the protocol": Fault(500, error(-32603)),
    "409 with an error of the server": Fault(409, error(-32050)),
    "500 with a result": Fault(500, result(RESULT)),
    "503 without a body": Fault(503, "", None),
    "202": Fault(202),
    "204": Fault(204, "", None),
    "201 without a type": Fault(201, "", None),
    "302 to elsewhere": Fault(302, "", None, "Location: http://127.0.0.1:9/login\r\n"),
    "303 to a page": Fault(303, "", None, "Location: /done\r\n"),
    "307 to elsewhere": Fault(307, "", None, "Location: http://127.0.0.1:9/mcp\r\n"),
    "a page": Fault(200, HTML, "text/html"),
    "plain text": Fault(200, "OK", "text/plain"),
    "no type": Fault(200, "OK", None),
    "nothing": Fault(200, ""),
    "JSON that is cut": Fault(200, '{"jsonrpc": "2.0", "id": 1, "resu'),
    "a page called JSON": Fault(200, HTML),
    "a batch": Fault(200, lambda id: [result(RESULT)(id)]),
    "null": Fault(200, "null"),
    "a number": Fault(200, "7"),
    "an object of its own": Fault(200, '{"ok": true}'),
    "no version": Fault(200, lambda id: {"id": id, "result": RESULT}),
    "result null": Fault(200, result(None)),
    "result text": Fault(200, result("done")),
    "result list": Fault(200, result([RESULT])),
    "result without content": Fault(200, result({"content": None, "resultType": "complete"})),
    "result of another kind": Fault(200, result({"resultType": "task", "taskId": "x"})),
    "content of another kind": Fault(200, result({**RESULT, "content": [{"type": "hologram"}]})),
    **{
        f"error {code}": Fault(200, error(code))
        for code in (-32603, -32700, -32600, -32000, -32001, -32050, -32099, -1, 0, 1, 500)
    },
    "error of a text": Fault(200, error("E_PAID")),
    "error null": Fault(200, lambda id: {"jsonrpc": "2.0", "id": id, "error": None}),
    "event: error -32603": Fault(200, event(error(-32603)), SSE),
    "event: result null": Fault(200, event(result(None)), SSE),
    "event: a batch": Fault(200, event(lambda id: [result(RESULT)(id)]), SSE),
    "event: no JSON": Fault(200, "event: message\ndata: {oops\n\n", SSE),
    "event: none": Fault(200, "", SSE),
    "event: cut": Fault(200, 'event: message\ndata: {"json', SSE),
}
NOT_RUN: Final[dict[str, Fault]] = {
    "error -32601": Fault(200, error(-32601, "no such method")),
    "error -32602": Fault(200, error(-32602, "no such parameter")),
    "400 with error -32602": Fault(400, error(-32602)),
    "event: error -32602": Fault(200, event(error(-32602)), SSE),
}
BY_STATUS: Final[dict[str, Fault]] = {
    **{f"status {status}": Fault(status, HTML, "text/html") for status in REFUSED},
    "403 with an error of the server": Fault(403, error(-32050)),
    "429 with an error of the protocol": Fault(429, error(-32603)),
    "401 with JSON": Fault(401, '{"error": "invalid_token"}'),
    "405 without a body": Fault(405, "", None),
}


class Gateway:
    """A server on the loopback that does the work of each call, and then answers with a fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.done = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().lower().split("\r\n")
                size = next((int(e[15:]) for e in lines if e.startswith("content-length:")), 0)
                body = await reader.readexactly(size)
                answer = self.answer(json.loads(body)) if body else Fault(405, "", None)
                writer.write(self.written(answer, json.loads(body).get("id") if body else None))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, message: Any) -> Fault:
        method = message.get("method")
        if "id" not in message:
            return Fault(202, "", None)
        if method == "initialize":
            info = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "gateway", "version": "1"},
            }
            return Fault(200, result(info), headers="Mcp-Session-Id: s1\r\n")
        if method == "tools/list":
            tools = [{"name": "t", "inputSchema": {"type": "object"}}]
            listing = {"tools": tools, "resultType": "complete", "ttlMs": 0}
            return Fault(200, result({**listing, "cacheScope": "private"}))
        assert method == "tools/call", method
        self.done += 1
        return self.fault

    @staticmethod
    def written(fault: Fault, id: Any) -> bytes:
        body: Any = fault.body if isinstance(fault.body, str) else fault.body(id)
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = f"Content-Type: {fault.type}\r\n" if fault.type else ""
        length = "" if fault.status == 204 else f"Content-Length: {len(text)}\r\n"
        head = f"HTTP/1.1 {fault.status} X\r\n{kind}{fault.headers}{length}\r\n"
        return head.encode() + text


@asynccontextmanager
async def listening(gateway: Gateway) -> AsyncIterator[str]:
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def outcome(fault: Fault, mode: str, *, is_seen: bool, **options: Any) -> ToolResult:
    """What a call comes to whose server did the work and answered so."""
    gateway = Gateway(fault)
    async with listening(gateway) as url:
        server: Any = http_transport(url) if is_seen else url
        async with Client(server, mode=mode) as client:
            remote = await remote_tools(client, "Remote", verify=False, **options)
            made = await execute(call_of(remote), default_timeout=20)
    assert gateway.done == 1
    assert isinstance(made, ToolResult)
    return made


both = pytest.mark.parametrize("mode", ["legacy", MODERN])


@both
@pytest.mark.parametrize("name", IN_DOUBT)
async def test_a_failure_after_the_work_is_in_doubt(name: str, mode: str) -> None:
    """What may come after the work is `indeterminate`, with and without the statuses."""
    for is_seen in (True, False):
        made = await outcome(IN_DOUBT[name], mode, is_seen=is_seen)
        assert (made.status, is_seen) == ("indeterminate", is_seen)
        assert made.code in ("mcp_error", "invalid_output", "connection_lost", "timed_out")
        assert made.model_text.startswith(f"[{made.code}] Outcome unknown: ")
        assert made.model_text.endswith("The tool may have had its effects.")
        assert "refused" not in made.model_text


@both
@pytest.mark.parametrize("name", NOT_RUN)
async def test_a_failure_before_the_work_is_an_error(name: str, mode: str) -> None:
    """An unknown method and invalid parameters are known to be refused before any work."""
    made = await outcome(NOT_RUN[name], mode, is_seen=False)
    assert (made.status, made.code) == ("error", "mcp_error")
    assert made.model_text.startswith("[mcp_error] The server refused the call (-3260")


@both
@pytest.mark.parametrize("name", BY_STATUS)
async def test_a_status_that_refuses_is_an_error_where_it_is_seen(name: str, mode: str) -> None:
    """401, 429 and the like are errors with `http_transport`, and claim nothing without it."""
    fault = BY_STATUS[name]
    made = await outcome(fault, mode, is_seen=True)
    assert (made.status, made.code) == ("error", "mcp_error")
    assert f"(HTTP {fault.status}), so the tool was not run" in made.model_text
    unseen = await outcome(fault, mode, is_seen=False)
    # Without a session the SDK gives 404 the code of an unknown method.
    is_known = fault.status == 404 and mode == MODERN
    assert unseen.status == ("error" if is_known else "indeterminate")


@both
async def test_the_status_of_a_fault_is_shown(mode: str) -> None:
    """The model and the log read what is known, on one line."""
    made = await outcome(IN_DOUBT["status 504"], mode, is_seen=True)
    assert made.model_text == (
        "[mcp_error] Outcome unknown: the server answered with error -32603 and HTTP 504 (Server "
        "returned an error response). The tool may have had its effects."
    )


async def test_what_only_reads_is_never_in_doubt() -> None:
    """Where a second call does no harm, a fault is an error."""
    reads = {"t": ToolCapabilities(effects=["read_file"])}
    for name in ("status 502", "result null", "error -32603", "202"):
        made = await outcome(IN_DOUBT[name], "legacy", is_seen=True, capabilities=reads)
        assert made.status == "error"
        assert made.model_text.endswith("The tool may be called again.")


async def test_the_statuses_of_an_own_client_are_seen() -> None:
    """A client that a user brings keeps its hooks, its headers and its authorisation."""
    seen: list[int] = []

    async def look(response: httpx2.Response) -> None:
        seen.append(response.status_code)

    class Signs(httpx2.Auth):
        async def async_auth_flow(self, request: httpx2.Request) -> Any:
            response = yield request
            if response.status_code == 401:  # it asks for a token, and tries once more
                yield httpx2.Request("POST", request.url, json={"id": 1, "method": "tools/list"})
                yield request

    gateway = Gateway(BY_STATUS["status 401"])
    async with (
        listening(gateway) as url,
        httpx2.AsyncClient(event_hooks={"response": [look]}, auth=Signs()) as http,
        Client(http_transport(url, http_client=http), mode=MODERN) as client,
    ):
        remote = await remote_tools(client, "Remote", verify=False)
        made = await call_of(remote).call()
        assert (made.status, made.code) == ("error", "mcp_error")
        assert seen[-3:] == [401, 200, 401]
        gateway.fault = IN_DOUBT["status 502"]
        made = await call_of(remote).call()
        assert made.status == "indeterminate"


async def test_a_refused_listing_leaves_nothing_in_doubt() -> None:
    """A fault of the look-up before a call is told as that: the call was not sent."""
    server = Served([described()])
    async with connected(server) as client:
        remote = await remote_tools(client, "Remote", verify=True)
        session: Any = client.session

        async def fails(*_: Any, **__: Any) -> Any:
            raise MCPError(-32603, "Server returned an error response")

        session.list_tools = fails
        made = await call_of(remote).call()
    assert (made.status, made.code) == ("error", "mcp_error")
    assert made.model_text.startswith("[mcp_error] Not called: the server answered with error")
    assert server.received == []


@pytest.mark.parametrize("code", [-32000, -32603, -32050])
async def test_a_server_in_the_process_may_fail_at_once(code: int) -> None:
    """Without a turn of the event loop between them the work may have been done as well."""

    async def fails(request: Request, params: CallToolRequestParams) -> Answer:
        raise MCPError(code, "Connection closed")

    for kind in ("direct", "legacy"):
        async with connected(Served([described()], fails), kind) as client:
            made = await call_of(await remote_tools(client, "Remote", verify=False)).call()
        assert made.status == "indeterminate", kind


STDIO: Final = r"""
import json, os, sys

def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

TOOLS = [{"name": n, "inputSchema": {"type": "object"}} for n in ("before", "half", "error", "ok")]
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
INFO["serverInfo"] = {"name": "raw", "version": "1"}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, method = message["id"], message["method"]
    if method == "tools/call":
        name = message["params"]["name"]
        open(sys.argv[1], "a").write(name + "\n")
        if name == "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "resu' % id)
            sys.stdout.flush()
        if name in ("before", "half"):
            os._exit(1)
        if name == "error":
            error = {"code": -32603, "message": "out of memory"}
            say(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}))
        else:
            result = {"content": [{"type": "text", "text": "done"}]}
            say(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
            os._exit(0)
    else:
        result = INFO if method == "initialize" else {"tools": TOOLS}
        say(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
"""


@pytest.mark.parametrize("name", ["before", "half", "error"])
async def test_a_process_that_dies_in_a_call_leaves_it_in_doubt(name: str, tmp_path: Path) -> None:
    """The work may be done before the answer is; of a call that was not sent nothing is unknown."""
    done = tmp_path / "done"
    async with by_stdio("-c", STDIO, str(done), mode="legacy") as client:
        remote = await remote_tools(client, "Remote", verify=False)
        made = await execute(call_of(remote, name), default_timeout=20)
        assert isinstance(made, ToolResult)
        assert made.status == "indeterminate"
        if name != "error":  # the process is gone, and the SDK knows
            made = await call_of(remote, "ok").call()
            assert (made.status, made.code) == ("error", "connection_lost")
            assert made.model_text.startswith("[connection_lost] Not called: ")
    assert done.read_text().split() == [name]


async def test_a_process_that_dies_between_calls_leaves_none_in_doubt(tmp_path: Path) -> None:
    """What was answered stays, and the next call is not sent."""
    done = tmp_path / "done"
    async with by_stdio("-c", STDIO, str(done), mode="legacy") as client:
        remote = await remote_tools(client, "Remote", verify=False)
        assert (await call_of(remote, "ok").call()).model_text == "done"
        await asyncio.sleep(0.5)
        made = await call_of(remote, "ok").call()
        assert (made.status, made.code) == ("error", "connection_lost")
    assert done.read_text().split() == ["ok"]
