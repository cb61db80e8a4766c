"""What a hostile server does to the wire itself: as the page on security says of the SDK."""

from __future__ import annotations

from typing import Final

import pytest

from lutum_py import ToolResult
from lutum_py.execution import execute
from lutum_py.mcp import remote_tools

from .servers import Served, by_stdio, call_of, connected, described, said

RAW: Final = r"""
import json, sys

def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

NAMES = ("deep", "junk", "nan", "ok")
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
INFO["serverInfo"] = {"name": "raw", "version": "1"}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, method = message["id"], message["method"]
    answers = {"initialize": INFO, "tools/list": {"tools": TOOLS}}
    begin = '{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":' % id
    if method == "tools/call":
        name = message["params"]["name"]
        if name == "deep":
            say(begin + "[" * 100000 + "]" * 100000 + "}}}")
        elif name == "nan":
            say(begin + "NaN}}}")
        elif name == "junk":
            say("this is no JSON \x1b[2K")
        else:
            for text in ("first", "second"):  # an answer that comes twice
                content = [{"type": "text", "text": text}]
                say(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": content}}))
    elif method in answers:
        say(json.dumps({"jsonrpc": "2.0", "id": id, "result": answers[method]}))
    else:
        say(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}))
"""


async def test_what_the_sdk_cannot_read_is_ended_by_the_deadline() -> None:
    """An answer that is dropped leaves its call in doubt, and the connection as it was."""
    async with by_stdio("-c", RAW) as client:
        remote = await remote_tools(client, "Remote", verify=False)
        endings: list[tuple[str, str, str | None]] = [
            ("deep", "indeterminate", "timed_out"),
            ("junk", "indeterminate", "timed_out"),
            ("nan", "error", "invalid_output"),
            ("ok", "success", None),
        ]
        for name, status, code in endings:
            result = await execute(call_of(remote, name), default_timeout=1)
            assert isinstance(result, ToolResult)
            assert (result.status, result.code) == (status, code)
            assert result.model_text == "first" or code is not None


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("http", "success", None),
        ("http legacy", "indeterminate", "connection_lost"),
        ("direct", "success", None),
    ],
)
async def test_a_result_of_two_megabytes(kind: str, status: str, code: str | None) -> None:
    """On the older protocol over HTTP the SDK refuses an event of more than a mebibyte."""
    async with connected(Served([described()], said("x" * 2_000_000)), kind) as client:
        result = await call_of(await remote_tools(client, "Remote")).call()
    assert (result.status, result.code) == (status, code)
