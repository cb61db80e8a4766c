"""A request to stop, which a tool may look at, wait for, or pass on.

A token is set once and for all. A waiter adds a wake-up call to the token's table and removes it
again, so nothing polls and nothing is left over. The table and the outcome are changed only by
single dict operations, which are atomic: `cancel` needs no lock and may come from another thread,
another event loop or a signal handler. The order makes that safe. `cancel` settles the outcome
first and empties the table after; a waiter enters the table first and looks at the outcome after;
so one of the two always sees the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ref

from ..errors import Cancelled

# `asyncio` is loaded by who awaits something: a program that only declares tools needs no loop.
if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future


class CancellationToken:
    """Tell running tools that they are asked to stop.

    >>> token = CancellationToken()
    >>> child = token.child()
    >>> token.cancel("the user left")
    >>> child.is_cancelled, child.reason
    (True, 'the user left')
    """

    __slots__ = ("__weakref__", "_outcome", "_parent", "_waiters")

    def __init__(self) -> None:
        """Make a token that nobody has cancelled."""
        self._outcome: dict[str, str | None] = {}
        self._waiters: dict[object, Callable[[], object]] = {}
        self._parent: CancellationToken | None = None

    @property
    def reason(self) -> str | None:
        """Why it was cancelled; None if nobody said, or it was not."""
        return self._outcome.get("reason")

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked to stop."""
        return bool(self._outcome)

    def raise_if_cancelled(self) -> None:
        """Stop here if somebody asked to.

        Raises:
            Cancelled: The token is cancelled; the text holds the reason.
        """
        if self._outcome:
            raise Cancelled(self.reason or "the call was asked to stop")

    def cancel(self, reason: str | None = None) -> None:
        """Ask to stop, from any thread; the first request counts, a later one changes nothing.

        Args:
            reason: Why, for the tool and for the model.
        """
        # `setdefault` is one operation, so of two threads that cancel at once one reason counts.
        self._outcome.setdefault("reason", reason)
        while True:
            # One by one: a collection of garbage in between may take children out of the table.
            try:
                _, wake = self._waiters.popitem()
            except KeyError:
                return
            wake()

    def child(self) -> CancellationToken:
        """Make a token that is cancelled with this one, and can be cancelled alone.

        >>> parent = CancellationToken()
        >>> parent.child().cancel("only this one")
        >>> parent.is_cancelled
        False
        """
        child = CancellationToken()
        # The child keeps its parent alive and not the other way round: a long-lived parent does
        # not collect the children of calls that are over.
        child._parent = self
        waiters = self._waiters
        link = ref(child, lambda link: waiters.pop(link, None))

        def pass_on() -> None:
            if (reached := link()) is not None:
                reached.cancel(self.reason)

        waiters[link] = pass_on
        if self._outcome:
            self.cancel()
        return child

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until somebody asks to stop.

        Args:
            timeout: The longest time to wait, in seconds; None forever.

        Returns:
            Whether the token is cancelled.

        >>> CancellationToken().wait(timeout=0)
        False
        """
        from threading import TIMEOUT_MAX, Lock

        # A lock that is held from the start is let go by `cancel`. An Event would do as well, but
        # for a signal handler that interrupts this very wait.
        woken = Lock()
        woken.acquire()
        self._waiters[woken] = woken.release
        try:
            if not self._outcome:
                # A lock takes no longer time than this, 292 years.
                longest = -1 if timeout is None else min(max(0, timeout), TIMEOUT_MAX)
                woken.acquire(timeout=longest)
        finally:
            self._waiters.pop(woken, None)
        return bool(self._outcome)

    async def cancelled(self) -> None:
        """Wait until somebody asks to stop, in any event loop.

        >>> import asyncio
        >>> token = CancellationToken()
        >>> token.cancel()
        >>> asyncio.run(token.cancelled())
        """
        if self._outcome:
            return
        from asyncio import get_running_loop

        woken = get_running_loop().create_future()
        self._add_waiter(woken)
        try:
            await woken
        finally:
            self._remove_waiter(woken)

    def _add_waiter(self, woken: asyncio.Future[None]) -> None:
        """End a future once somebody asks to stop, until `_remove_waiter` takes it out again."""
        self._waiters[woken] = partial(finish_threadsafe, woken)
        if self._outcome:
            finish(woken)

    def _remove_waiter(self, woken: asyncio.Future[None]) -> None:
        self._waiters.pop(woken, None)

    def __repr__(self) -> str:
        if not self._outcome:
            return "<CancellationToken: not cancelled>"
        return f"<CancellationToken: cancelled, reason={self.reason!r}>"


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


async def wait_for_thread(thread: Future[R]) -> None:
    """Wait for a thread without holding what it gives, and whatever becomes of this loop.

    `asyncio.wrap_future` would tie both into a cycle.
    """
    from asyncio import get_running_loop

    here: asyncio.Future[None] = get_running_loop().create_future()
    thread.add_done_callback(partial(finish_threadsafe, here))
    await here
