"""An inbox in the browser for what waits in a store: `python examples/inbox/app.py FOLDER`.

Everything is kept in FOLDER; where it is empty, some customers of a small office write first, and a
scripted model answers them. A worker in the same process goes on with what was decided, and prints
what it does. Both listen and talk on this machine alone. Needs `starlette` and `uvicorn`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

try:
    import uvicorn
    from web import Inbox
except ModuleNotFoundError as error:
    sys.exit(f"app.py needs the package {error.name!r}: python -m pip install starlette uvicorn")

from journal import Journal
from office import Books, Office, advance, begin, hooks

from lutum_py.errors import LutumError, StaleError
from lutum_py.sinks import escape_unprintable, log_events
from lutum_py.store import Store, open_store
from lutum_py.typing import CallEvent

HOST: Final = "127.0.0.1"
EVERY: Final = 2.0
"""Seconds after which the worker looks again by itself: decisions come from other programs, too."""


def key_in(path: Path) -> bytes:
    """Read the key of store and forms, or make it up; a real inbox has it from a vault."""
    with suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "w") as file:
            file.write(secrets.token_hex(32))
    return path.read_bytes()


class Worker:
    """Go on with the conversations of a store, whenever something was decided."""

    def __init__(self, store: Store, journal: Journal, books: Books) -> None:
        self.store = store
        self.journal = journal
        self.books = books
        self.over: set[str] = set()
        self._log = log_events("inbox")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()

    def decided(self, _: str) -> None:
        """Look now, from whichever thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    @asynccontextmanager
    async def beside(self, _: Any) -> AsyncIterator[None]:
        """Work as long as the pages are served."""
        self._loop = asyncio.get_running_loop()
        working = asyncio.create_task(self.work())
        try:
            yield
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working

    async def work(self) -> None:
        """Look, and wait to be woken."""
        while True:
            self._wake.clear()
            for id in self.store.ids():
                if id not in self.over:
                    await self.go_on(id)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), EVERY)

    async def go_on(self, id: str) -> None:
        """Go on with one conversation; what fails there does not hold up the others."""

        def told(event: CallEvent) -> None:
            self._log(event)
            if event.kind == "ended" and event.row.result is not None:
                self.journal.ran(id, event.row.id, event.row.result.model_text[:200])

        try:
            answer = await advance(self.store, id, self.books, told)
        except StaleError:
            return  # another worker was faster
        except LutumError as error:
            logging.getLogger("inbox").error(
                "%s: %s", escape_unprintable(id), escape_unprintable(str(error))
            )
            return
        if answer is not None:
            self.over.add(id)
            print(escape_unprintable(f"{id}: {answer}"), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve the inbox until somebody stops it."""
    parser = argparse.ArgumentParser(description="An inbox in the browser for a store.")
    parser.add_argument("folder", type=Path, help="where everything is kept")
    parser.add_argument("--port", type=int, default=8765, help="0 for any that is free")
    parser.add_argument("--no-worker", action="store_true", help="decide only, and run nothing")
    options = parser.parse_args(argv)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    key = key_in(folder / "key")
    with open_store(folder / "desk.db", key=key) as store, socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, options.port))
        except OSError as error:
            sys.exit(f"Port {options.port} cannot be had ({error.strerror}); try `--port 0`.")
        port = listening.getsockname()[1]
        begin(store)
        journal, books = Journal(folder / "inbox.db"), Books(folder / "office.db")
        worker = Worker(store, journal, books)
        inbox = Inbox(store, Office, hooks, journal, key, worker.decided)
        lifespan = None if options.no_worker else worker.beside
        app = inbox.app((f"{HOST}:{port}", f"localhost:{port}"), lifespan)
        print(f"http://{HOST}:{port}/", flush=True)
        config = uvicorn.Config(app, log_level="warning", proxy_headers=False, ws="none")
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
