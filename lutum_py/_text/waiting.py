"""Wait for threads, tasks and futures, so that none of them is lost and none is held."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar

# `asyncio` is loaded by who awaits something: a program that only declares tools needs no loop.
if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future


def finish(woken: asyncio.Future[None], _: object = None) -> None:
    """End a future that somebody awaits, if nobody else has."""
    if not woken.done():
        woken.set_result(None)


def finish_threadsafe(woken: asyncio.Future[None], _: object = None) -> None:
    """Do the same from any thread."""
    # The loop may have been closed with its waiter inside: nobody is left to wake.
    with suppress(RuntimeError):
        woken.get_loop().call_soon_threadsafe(finish, woken)


R = TypeVar("R")


class Ended(Generic[R]):
    """How a function ended.

    Attributes:
        error: What it raised, or None.
    """

    __slots__ = ("_output", "error")

    def __init__(self, function: Callable[[], R]) -> None:
        self.error: BaseException | None = None
        try:
            self._output = function()
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            self.error = error
        finally:
            # The traceback of the error holds this frame, which is not to hold the error.
            del self

    def result(self) -> R:
        """Return what the function returned, or raise what it raised."""
        if self.error is None:
            return self._output
        try:
            raise self.error
        finally:
            del self


def run_in_thread(function: Callable[[], R], name: str) -> Future[Ended[R]]:
    """Start a function with the context variables of the caller.

    Returns:
        A future that never fails: see `Ended`.
    """
    import threading
    from concurrent.futures import Future

    future: Future[Ended[R]] = Future()
    future.set_running_or_notify_cancel()
    arguments = (future, copy_context(), function)
    threading.Thread(target=_work, args=arguments, name=f"tool {name}", daemon=True).start()
    return future


def _work(future: Future[Ended[R]], context: Context, function: Callable[[], R]) -> None:
    future.set_result(context.run(Ended, function))
    # The frames of an error lead back to this one, which is not to lead to the error.
    del future


async def wait_for_thread(thread: Future[Any]) -> None:
    """Wait for a thread without holding what it gives, and whatever becomes of this loop.

    `asyncio.wrap_future` would tie both into a cycle.
    """
    from asyncio import get_running_loop

    here: asyncio.Future[None] = get_running_loop().create_future()
    thread.add_done_callback(partial(finish_threadsafe, here))
    await here


async def to_its_end(task: asyncio.Future[Any], seconds: float = inf) -> None:
    """Wait for a task that ends soon, also if cancellation is asked for once more."""
    import asyncio

    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not task.done() and (left := end - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,), timeout=left)


_LEFT_BEHIND: set[asyncio.Task[Any]] = set()
"""Tasks of tools that ignore their cancellation, or have not heeded it yet."""


def leave_behind(task: asyncio.Task[Any]) -> None:
    """Let a task go on that nobody waits for; the loop alone would not keep it alive."""
    _LEFT_BEHIND.add(task)
    task.add_done_callback(_look_away)


def _look_away(task: asyncio.Task[Any]) -> None:
    """Take note of a late exception, so that asyncio does not report it as forgotten."""
    _LEFT_BEHIND.discard(task)
    if not task.cancelled():
        task.exception()
