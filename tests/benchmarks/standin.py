"""A stand-in for a provider: a server on the loopback.

It is a process of its own, so that the processor's time of whoever asks has none of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["Answers", "standing_in", "written"]

Answers = dict[str, list[list[bytes]]]
"""What is streamed to a path that has the key in it, one answer after the other: its writes."""


def written(event: str) -> bytes:
    """Write an event as providers do: those of a type are named after it."""
    kind = json.loads(event).get("type")
    name = f"event: {kind}\n" if isinstance(kind, str) else ""
    return f"{name}data: {event}\n\n".encode()


@contextmanager
def standing_in(answers: Answers) -> Iterator[str]:
    """Run the server; gives its address."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    server = spawn.Process(target=_run, args=(answers, theirs), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        server.terminate()
        server.join()


def _run(answers: Answers, ready: Connection) -> None:
    asyncio.run(_serve({path: cycle(each) for path, each in answers.items()}, ready))


async def _serve(answers: dict[str, Any], ready: Connection) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = 0
                for line in head.decode("latin-1").split("\r\n"):
                    if line.lower().startswith("content-length:"):
                        length = int(line.partition(":")[2])
                await reader.readexactly(length)
                path = head.split(b" ", 2)[1].decode()
                writes = next(answers[next(key for key in answers if key in path)])
                size = sum(map(len, writes))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"content-length: %d\r\n\r\n" % size
                )
                for each in writes:
                    writer.write(each)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=2000)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()
