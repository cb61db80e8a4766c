"""A request to stop, which a tool may look at, wait for, or pass on.

A token is set once and for all. A waiter adds a wake-up call to the token's table and removes it
again, so nothing polls and nothing is left over. The table and the outcome are changed only by
single dict operations, which are atomic: `cancel` needs no lock and may come from another thread,
another event loop or a signal handler. The order makes that safe. `cancel` settles the outcome
first and empties the table after; a waiter enters the table first and looks at the outcome after;
so one of the two always sees the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

from .._text.waiting import finish, finish_threadsafe
from ..errors import Cancelled

if TYPE_CHECKING:
    import asyncio


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
        self.add_waiter(woken)
        try:
            await woken
        finally:
            self.remove_waiter(woken)

    def add_waiter(self, woken: asyncio.Future[None]) -> None:
        """Set a future to None once somebody asks to stop, from whichever thread.

        Args:
            woken: A future of the running loop; `remove_waiter` takes it out again.
        """
        self._waiters[woken] = partial(finish_threadsafe, woken)
        if self._outcome:
            finish(woken)

    def remove_waiter(self, woken: asyncio.Future[None]) -> None:
        """Take out a future that `add_waiter` put in."""
        self._waiters.pop(woken, None)

    def __repr__(self) -> str:
        if not self._outcome:
            return "<CancellationToken: not cancelled>"
        return f"<CancellationToken: cancelled, reason={self.reason!r}>"
