"""Breaking off what a thread waits for in a database, so that a cancelled task need not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from time import monotonic, sleep
from typing import TypeVar

R = TypeVar("R")

_stop: ContextVar[Event | None] = ContextVar("lutum_store_stop", default=None)

GRACE_SECONDS = 0.5
"""How long a step may go on after its task was cancelled: nearly all end by themselves in it."""

LEAVE_SECONDS = 0.2
"""How long a step that was broken off is waited for."""

LOOK_SECONDS = 0.1
"""How often a step that waits looks whether it should be broken off."""


@contextmanager
def interruptible(stop: Event) -> Generator[None]:
    """Let an event break off the steps of this thread, from when it is set.

    A step that waits for an answer, a lock or a free connection then ends within 0.1 seconds with
    a `StoreError`, a later one at its start. The `StoreError` is a `LostCommit` if nobody knows
    whether the step took effect.

    Args:
        stop: Set it from any thread.
    """
    before = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(before)


def is_interrupted() -> bool:
    """Return whether the steps of this thread should be broken off."""
    stop = _stop.get()
    return stop is not None and stop.is_set()


def wait_until(is_done: Callable[[float], bool], seconds: float) -> bool:
    """Wait for something, but no longer than that, and not after an interrupt.

    Args:
        is_done: Waits for it for as many seconds as it is given; returns whether it is there.
        seconds: How long to wait in all.

    Returns:
        Whether it is there.
    """
    end = monotonic() + seconds
    while not is_interrupted():
        left = end - monotonic()
        if is_done(max(0.0, min(LOOK_SECONDS, left))):
            return True
        if left <= 0:
            break
    return False


def pause(seconds: float) -> None:
    """Sleep, but not after an interrupt."""

    def is_over(part: float) -> bool:
        sleep(part)
        return False

    wait_until(is_over, seconds)


async def in_thread(function: Callable[..., R], *arguments: object) -> R:
    """Do what waits for a database in a thread.

    If the task is cancelled, the step may end by itself for `GRACE_SECONDS`; then it is broken off.
    So the cancellation comes out within a second, even if the network swallows every byte. A
    transaction that was not at its end takes no effect; one that was may have taken effect.

    Args:
        function: Works with the database, and with nothing else that waits.
        arguments: What it is called with.

    Returns:
        What it returns.
    """
    stop = Event()

    def work() -> R:
        with interruptible(stop):
            return function(*arguments)

    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        # Looked at in any case, or asyncio would report it: the cancellation comes out.
        doing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            await asyncio.wait((doing,), timeout=GRACE_SECONDS)
        finally:  # also if the task is cancelled once more
            stop.set()
        # One that still connects is left behind: what it does next is broken off at its start.
        await asyncio.wait((doing,), timeout=LEAVE_SECONDS)
        raise
