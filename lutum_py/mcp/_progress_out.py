"""Send what a tool reports of its progress to the client that waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, Final

from mcp.server import ServerRequestContext

from .._context.progress import ProgressStatus, ToolEvent, figures_in, progress_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

_ENDED: Final = (ProgressStatus.FAILED, ProgressStatus.CANCELLED)
_MOST_WAITING: Final = 256
"""So many reports wait for a slow client; of more the oldest are dropped."""


class ProgressOut:
    """Be the sink of a call: take reports in any thread, and send them in order.

    The protocol wants each figure above the last. A report without one, or with a lower one, goes
    out with the next number there is.
    """

    def __init__(self, request: ServerRequestContext[Any, Any]) -> None:
        self._session = request.session
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Mapping[str, Any]] = deque(maxlen=_MOST_WAITING)
        self._woken = asyncio.Event()
        self._is_over = False
        self._last = -inf

    def __call__(self, event: ToolEvent) -> None:
        """Take one event; what is no report of progress stays here, and so does a failure.

        That a call failed is told by its answer, which says no more than it is meant to.
        """
        report = None if self._is_over else progress_in(event)
        if report is None or report.get("status") in _ENDED:
            return
        self._waiting.append(report)
        self._loop.call_soon_threadsafe(self._woken.set)

    @asynccontextmanager
    async def sending(self) -> AsyncGenerator[None]:
        """Send what comes while the call is run, and the rest of it at the end."""
        task = asyncio.create_task(self._send())
        try:
            yield
            self._is_over = True
            self._woken.set()
            with suppress(Exception):  # a report that cannot be sent is no reason to lose a result
                await task
        finally:
            self._is_over = True
            task.cancel()

    async def _send(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                report = self._waiting.popleft()
                done, total = figures_in(report)
                if done is None or done <= self._last:
                    # The protocol wants each figure to be above the last one; a report without a
                    # figure of its own gets the next number there is.
                    done = 0.0 if self._last == -inf else nextafter(self._last, inf)
                self._last = done
                await self._session.report_progress(done, total, report.get("message"))
            if self._is_over:
                return
