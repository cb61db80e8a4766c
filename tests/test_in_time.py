"""The law of the limit of tests: none waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.cases import over
from tests.in_time import in_time


async def never() -> None:
    await asyncio.Event().wait()


def busy() -> None:
    while True:
        pass


@over("waits", [threading.Event().wait, lambda: asyncio.run(never()), busy])
def test_what_waits_for_ever_fails(waits: Callable[[], object]) -> None:
    """Whatever it waits for, a thread or an event loop, and what comes after it goes on."""
    with pytest.raises(pytest.fail.Exception, match=r"more than 0\.05 seconds"), in_time(0.05):
        waits()


def test_elsewhere_than_in_the_main_thread_there_is_no_limit() -> None:
    """Nobody could be told, so nothing is set."""
    seen: list[bool] = []

    def work() -> None:
        with in_time(0.001):
            seen.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen
