"""A limit for what a test waits for: where nothing comes, the test fails, and says where it was."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["in_time", "seconds_for"]

USUAL = 300
"""Seconds for a test, many times what the longest takes on a busy machine."""


def seconds_for(item: pytest.Item) -> float:
    """How long a test may take: more where it is slow, or tries many examples."""
    times = 6 if item.get_closest_marker("slow") else 1
    return USUAL * times * max(1.0, settings().max_examples / 100)


@contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Fail what takes longer, with the lines at which all threads are then."""
    # Only the main thread hears of signals, and Windows has no such one.
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(_signal: int, frame: Any) -> None:
        faulthandler.dump_traceback(sys.__stderr__ or 2)
        pytest.fail(f"It took more than {seconds:g} seconds, and was at {frame}.")

    handler = signal.signal(signal.SIGALRM, late)
    # Again and again: what is closed on the way out, as an event loop, may wait as well.
    before = signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds / 10, 0.1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)
