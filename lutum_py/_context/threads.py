"""Run a function in a thread of its own, which nobody has to wait for.

The usual pools join their threads when the program or the event loop ends, so one tool that hangs
would hang both. A daemon thread is left behind instead.

What the function raised is handed over as a value. A future would take it for its own failure:
asyncio's refuses a `StopIteration` and waits forever, and turns some others into a cancellation.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from .cancellation import finish_threadsafe

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
    here: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    thread.add_done_callback(partial(finish_threadsafe, here))
    await here
