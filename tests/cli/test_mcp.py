"""The laws of `lutum mcp`: what is served is a toolset, and what is shown of a server is safe."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ElicitResult

from .conftest import REPOSITORY, Lutum

DESK: Final = '''
from lutum_py import Suspend, SuspendTicket, ToolInput, Toolset, tool, tool_fn
from lutum_py.capabilities import ToolCapabilities

@tool_fn
def add(a: int, b: int) -> int:
    """Add.

    Both.
    """
    print("printed by a tool")
    return a + b

@tool_fn
def nothing() -> str:
    return ""

class Desk(Toolset):
    add = tool(add)
    nothing = tool(nothing)

class Undone(ToolInput[int]):
    """Nobody does it."""

class Gap(Toolset):
    undone = tool(Undone)

hooks, others = Desk.HookSet(), Gap.HookSet()

@hooks.gate(Desk.add)
def ask(metadata, input):
    return Suspend(SuspendTicket(message="Add?"))
'''
HOSTILE: Final = """
import asyncio
from mcp import stdio_server
from mcp.server import Server
from mcp.types import ListToolsResult, Tool
SCHEMA = {"type": "object", "properties": {"a": {}}}

async def listed(request, params):
    return ListToolsResult(tools=[
        Tool(name="ok.tool", description="Fine\\x1b[2K.", input_schema=SCHEMA),
        Tool(name="bad\\x1b[2K name", input_schema=SCHEMA),
    ])

async def main():
    server = Server("Evil\\x1b[2K", version="1", on_list_tools=listed)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

asyncio.run(main())
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(DESK, encoding="utf-8")
    (tmp_path / "hostile.py").write_text(HOSTILE, encoding="utf-8")
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lutum_py", "mcp", *arguments]


async def test_a_toolset_is_served_on_standard_streams(
    desk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What tools print stays off the wire, to the end, and the hooks that are named decide."""
    asked: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    program, *rest = command("serve", "desk.py:Desk", "--stdio", "--hooks", "desk.py:hooks")
    server = StdioServerParameters(
        command=program, args=rest, cwd=desk, env={"PYTHONPATH": str(REPOSITORY)}
    )
    with (desk / "errors.txt").open("w+", encoding="utf-8") as errors:
        transport = stdio_client(server, errlog=errors)
        async with Client(transport, elicitation_callback=person) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
        errors.seek(0)
        assert "printed by a tool" in errors.read()
    assert (result.structured_content, asked) == (3, ["Add?"])
    assert "Failed to parse" not in caplog.text


def test_standard_streams_are_the_wire(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command answers on standard output what comes on standard input, until that ends."""
    monkeypatch.chdir(desk)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    in_read, in_write = os.pipe()
    with open(in_read) as incoming:  # noqa: PTH123
        with open(in_write, "w") as client:  # noqa: PTH123
            client.write(json.dumps(hello) + "\n")
        ran = lutum("mcp", "serve", "desk.py:Desk", "--stdio", stdin=incoming)
    (answer,) = ran.out.splitlines()
    assert ran.code == 0
    assert json.loads(answer)["result"]["serverInfo"]["name"] == "Desk"


async def test_an_address_is_served_until_it_is_stopped(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that is said is the one that answers."""
    monkeypatch.chdir(desk)
    running: list[uvicorn.Server] = []
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Recorded(uvicorn.Server):
        async def startup(self, *args: Any, **kwargs: Any) -> None:
            await super().startup(*args, **kwargs)
            running.append(self)
            loop.call_soon_threadsafe(started.set)

    monkeypatch.setattr(uvicorn, "Server", Recorded)
    serving = asyncio.create_task(
        asyncio.to_thread(lutum, "mcp", "serve", "desk.py:Desk", "--http", "0")
    )
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait([waiting, serving], return_when=asyncio.FIRST_COMPLETED)
    assert waiting.done(), serving.result()
    port = running[0].servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    async with Client(url) as client:
        assert (await client.call_tool("nothing", {})).is_error is False
    running[0].should_exit = True
    ran = await serving
    assert (ran.code, ran.err) == (0, f"Serving {url}\n")


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve over HTTP, and give the address that the command says."""
    process = subprocess.Popen(
        command("serve", "desk.py:Desk", "--http", "0", *options),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(REPOSITORY)},
    )
    with process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().removeprefix("Serving ").strip(), process
        finally:
            process.kill()


async def test_a_toolset_is_served_on_this_machine(desk: Path) -> None:
    """Over HTTP it is the same server, until it is stopped by a signal; what tools print is
    printed to standard error there as well.
    """
    with served(desk) as (url, process):
        async with Client(url) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == 3
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=20)
    assert (process.returncode, printed) == (0, "")
    assert "printed by a tool" in errors


REFUSED: Final[list[tuple[list[str], str]]] = [
    (["desk.py:Desk"], "Name one transport"),
    (["desk.py:Desk", "--stdio", "--http", "0"], "Name one transport"),
    (
        ["desk.py:Desk", "--hooks", "desk.py:hooks", "--http", "0", "--host", "0.0.0.0"],
        "knows no",
    ),
    (["desk.py:Desk", "--http", "99999"], "65535"),
    (["desk.py:Desk", "--stdio", "--hooks", "desk.py:nobody"], "has no `nobody`"),
    (["desk.py:Gap", "--stdio"], "These tools of Gap have no function"),
    (["desk.py:Gap", "--stdio"], "`lutum_py.mcp.create_server(...)` that you run yourself"),
    (["desk.py:Desk", "--stdio", "--hooks", "desk.py:others"], "Gap"),
    (["desk.py:add", "--stdio"], "is not a toolset"),
]


def test_what_cannot_be_served_so_is_refused(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both or no transport, another host, a wrong name or toolset: exit 2, and why."""
    monkeypatch.chdir(desk)
    for arguments, said in REFUSED:
        shown = lutum("mcp", "serve", *arguments)
        assert shown.code == 2, arguments
        assert said in shown.err, (arguments, shown.err)


def test_a_port_that_is_taken_is_named(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can listen, the port is named."""
    monkeypatch.chdir(desk)
    with served(desk) as (url, _):
        port = url.removesuffix("/mcp").rpartition(":")[2]
        shown = lutum("mcp", "serve", "desk.py:Desk", "--http", port)
    assert (shown.code, f"port {port} of 127.0.0.1" in shown.err) == (2, True)


def test_a_server_is_shown_with_its_risks_and_its_digest(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools, risks, fields and the digest to pin; over a command and over HTTP the same."""
    monkeypatch.chdir(desk)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    shown = lutum("mcp", "inspect", *command("serve", "desk.py:Desk", "--stdio"))
    assert shown.code == 0
    assert shown.out.startswith(
        "Desk (protocol 2026-07-28)\n\nadd\n"
        "  risk:   require_confirmation (delegate_work)\n  fields: a, b\n  Add.\n\nnothing\n"
        "  risk:   require_confirmation (delegate_work)\n  fields: none\n\n"
        "2 tools, 0 refused. Digest of the tools: sha256:"
    )
    with served(desk) as (url, _):
        other = lutum("mcp", "inspect", url)
    assert (other.code, other.out) == (0, shown.out)


def test_what_a_server_says_cannot_reach_the_terminal(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused tool makes exit 1, and nothing that the server wrote steers the terminal."""
    monkeypatch.chdir(desk)
    hostile = [sys.executable, "hostile.py"]
    shown = lutum("mcp", "inspect", *hostile)
    assert shown.code == 1
    assert "\x1b" not in shown.out
    assert "ok_tool (there `ok.tool`)" in shown.out
    assert "bad\\x1b[2K name: refused" in shown.out
    report = json.loads(lutum("mcp", "inspect", "--json", "--trusted", *hostile).out)
    assert (report["server"], report["version"]) == ("Evil\x1b[2K", "1")
    assert [each["name"] for each in report["tools"]] == ["ok_tool"]
    assert report["refused"][0]["name"] == "bad\\x1b[2K name"
    only = lutum("mcp", "inspect", "--only", "ok.tool", *hostile)
    assert (only.code, "1 tool, 0 refused" in only.out) == (0, True)


def test_a_server_that_is_not_there_is_a_failure(
    desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such command, no answer, nobody at the address, no client's fault: exit 2, and why."""
    monkeypatch.chdir(desk)
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    for arguments, said in (
        (["/no/such/command"], "cannot be listed: FileNotFoundError"),
        ([sys.executable, "-c", ""], "cannot be listed: MCPError: Connection closed"),
        (["http://127.0.0.1:9/mcp"], "cannot be listed: ConnectError"),
        (["--timeout", "0.2", *slow], "did not answer within 0.2 seconds"),
        (["--only", "ok.tool", "--timeout", "30", sys.executable, "many.py"], "no end"),
    ):
        if "many.py" in arguments:
            many = HOSTILE.replace("ListToolsResult(", 'ListToolsResult(next_cursor="x", ')
            (desk / "many.py").write_text(many, encoding="utf-8")
        shown = lutum("mcp", "inspect", *arguments)
        assert shown.code == 2
        assert said in shown.err


@pytest.mark.parametrize("arguments", [["inspect", "x"], ["serve", "desk.py:Desk", "--stdio"]])
def test_without_the_sdk_the_extra_is_named(
    arguments: list[str], desk: Path, lutum: Lutum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands say what to install."""
    monkeypatch.chdir(desk)
    for name in [each for each in sys.modules if each.startswith("lutum_py.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.types", None)
    shown = lutum("mcp", *arguments)
    assert (shown.code, "lutum-py[mcp]" in shown.err) == (2, True)
