"""A provider on this machine: it answers from a list, and refuses what a provider would refuse."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Final

Judge = Callable[[dict[str, Any]], list[str]]

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
PAGE: Final = "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One HTTP response.

    Attributes:
        text: Its body.
        raw: The same as bytes, where it is no text.
        missing: How many bytes more are promised than sent, so that the connection breaks.
        endless: What is sent after it over and over, until the client closes the connection.
    """

    text: str
    status: int = 200
    content_type: str = JSON
    missing: int = 0
    endless: str = ""
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One HTTP request."""

    path: str
    body: dict[str, Any]


@dataclass(slots=True)
class Loopback:
    """What the server gives and has got.

    Attributes:
        judge: Says what is wrong with a request body; then it is answered with status 400.
        replies: What is answered, in order.
        received: Every request that came, also those that were refused.
        refusals: What was wrong with them.
        left: Set when a client closed the connection of an endless reply.
    """

    url: str
    judge: Judge
    replies: deque[Reply] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    left: Event = field(default_factory=Event)

    def clear(self) -> None:
        """Forget what came and what was to be answered."""
        self.replies.clear()
        self.received.clear()
        self.refusals.clear()
        self.left.clear()

    def answer(self, path: str, text: bytes) -> Reply:
        body = json.loads(text)
        self.received.append(Received(path=path, body=body))
        problems = self.judge(body)
        self.refusals += problems
        if problems:
            said = {"type": "invalid_request_error", "message": "; ".join(problems)}
            return Reply(text=json.dumps({"type": "error", "error": said}), status=400)
        return self.replies.popleft()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    loopback: Loopback

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        reply = self.loopback.answer(self.path, self.rfile.read(length))
        raw = reply.raw or reply.text.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        if not reply.endless:
            self.send_header("Content-Length", str(len(raw) + reply.missing))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)
        self.close_connection = True
        try:
            while reply.endless:
                self.wfile.write(reply.endless.encode())
        except ConnectionError:
            self.loopback.left.set()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a client that went away, which some tests do on purpose."""


@contextmanager
def serving(judge: Judge) -> Iterator[Loopback]:
    """Serve on a free port of this machine until the block ends."""

    class Handler(_Handler):
        """Answers for this server."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        Handler.loopback = Loopback(f"http://127.0.0.1:{server.server_port}", judge)
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Handler.loopback
        finally:
            server.shutdown()
            thread.join(20)


def sse(events: list[dict[str, Any]], *, named: bool = False, done: bool = False) -> str:
    """Write events as a stream; `named` gives each its type as its name, as Anthropic does."""
    lines: list[str] = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")
