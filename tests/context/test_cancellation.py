"""The laws of cancellation."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.context import CancellationToken
from lutum_py.errors import Cancelled
from tests.every_line import every_line

SECONDS = 10.0


def held_by(token: CancellationToken) -> int:
    """How many waiters and children a token holds on to, as a collection of garbage sees it."""
    kept = sum(len(each) for each in gc.get_referents(token) if isinstance(each, dict))
    return kept - token.is_cancelled  # beside them, a cancelled one holds its reason


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until the condition holds."""
    while not condition():  # noqa: ASYNC110 (the condition is no event of this loop)
        await asyncio.sleep(0)


@given(st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=4))
def test_the_first_request_counts(reasons: list[str | None]) -> None:
    """A token is cancelled once, for the first reason, and stays so."""
    token = CancellationToken()
    assert (token.is_cancelled, token.reason) == (False, None)
    token.raise_if_cancelled()
    for reason in reasons:
        token.cancel(reason)
        assert (token.is_cancelled, token.reason) == (True, reasons[0])


def test_raising_carries_the_reason() -> None:
    """The exception of a cancelled token says why, or that it was asked to."""
    token, silent = CancellationToken(), CancellationToken()
    token.cancel("the user left")
    silent.cancel()
    with pytest.raises(Cancelled, match=r"^Cancelled: the user left$"):
        token.raise_if_cancelled()
    with pytest.raises(Cancelled, match=r"^Cancelled: the call was asked to stop$"):
        silent.raise_if_cancelled()


def test_a_token_shows_its_outcome() -> None:
    """The representation says whether, and why."""
    token = CancellationToken()
    assert repr(token) == "<CancellationToken: not cancelled>"
    token.cancel("late")
    assert repr(token) == "<CancellationToken: cancelled, reason='late'>"


@given(st.lists(st.integers(min_value=0, max_value=9), max_size=9), st.integers(0, 9))
def test_a_request_reaches_all_below_and_nobody_else(parents: list[int], at: int) -> None:
    """Cancelling a token cancels exactly it and its descendants, with the same reason."""
    tokens = [CancellationToken()]
    above: list[set[int]] = [{0}]
    for parent in parents:
        above.append(above[parent % len(tokens)] | {len(tokens)})
        tokens.append(tokens[parent % len(tokens)].child())
    chosen = at % len(tokens)
    tokens[chosen].cancel("stop")
    for token, ancestors in zip(tokens, above, strict=True):
        assert token.is_cancelled is (chosen in ancestors)
        assert token.reason == ("stop" if chosen in ancestors else None)


def test_a_child_of_a_cancelled_token_is_born_cancelled() -> None:
    """A child made too late is cancelled as well, and leaves nothing behind."""
    parent = CancellationToken()
    parent.cancel("over")
    child = parent.child()
    assert (child.is_cancelled, child.reason) == (True, "over")
    assert held_by(parent) == 0


def test_a_parent_keeps_no_dead_children() -> None:
    """A child that nobody holds is forgotten by its parent."""
    parent = CancellationToken()
    kept, dropped = parent.child(), weakref.ref(parent.child())
    gc.collect()
    assert dropped() is None
    assert held_by(parent) == 1
    parent.cancel()
    assert kept.is_cancelled


def test_a_child_keeps_the_road_to_it_open() -> None:
    """A grandchild is reached although nobody holds the token in between."""
    root = CancellationToken()
    grandchild = root.child().child()
    gc.collect()
    root.cancel("all")
    assert grandchild.reason == "all"


def test_a_child_may_die_while_it_is_being_cancelled() -> None:
    """A child that goes away at whichever moment of the request is passed by."""

    class Family:
        def __init__(self) -> None:
            self.parent = CancellationToken()
            self.survivors = [self.parent.child()]
            self.dying = [self.parent.child()]
            self.survivors.append(self.parent.child())

    reached = 0
    for line, family, raised in every_line(
        Family, lambda family: family.parent.cancel("late"), lambda family: family.dying.clear()
    ):
        told = [token.reason for token in family.survivors]
        assert (raised, told, held_by(family.parent)) == (None, ["late"] * 2, 0), line
        reached += 1
    assert reached > 10


def test_a_finalizer_may_cancel_what_is_collected_with_it() -> None:
    """A request by a finalizer is heard, and passes by children that are garbage already."""
    told: list[str | None] = []

    class Owner:
        def __init__(self) -> None:
            self.parent = CancellationToken()
            self.child = self.parent.child()
            self.itself = self

        def __del__(self) -> None:
            self.parent.cancel("collected")
            told.append(self.parent.reason)

    Owner()
    gc.collect()
    assert told == ["collected"]


def test_waiting_in_a_loop_ends_with_the_request() -> None:
    """Every coroutine that waits goes on once the token is cancelled, and leaves no trace."""

    async def main() -> int:
        token = CancellationToken()
        waiting = [asyncio.create_task(token.cancelled()) for _ in range(3)]
        await until(lambda: held_by(token) == 3)
        token.cancel()
        await asyncio.wait_for(asyncio.gather(*waiting), SECONDS)
        await token.cancelled()
        return held_by(token)

    assert asyncio.run(main()) == 0


def test_a_request_from_another_thread_wakes_the_loop() -> None:
    """A request may come from a thread that has no loop."""

    async def main() -> str | None:
        token = CancellationToken()
        waiting = asyncio.create_task(token.cancelled())
        await until(lambda: held_by(token) == 1)
        threading.Thread(target=token.cancel, args=("from outside",)).start()
        await asyncio.wait_for(waiting, SECONDS)
        return token.reason

    assert asyncio.run(main()) == "from outside"


def test_one_token_serves_several_loops() -> None:
    """Coroutines of different loops wait for the same token."""
    token = CancellationToken()
    threads = [
        threading.Thread(target=lambda: asyncio.run(token.cancelled()), daemon=True)
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    asyncio.run(asyncio.wait_for(until(lambda: held_by(token) == 3), SECONDS))
    token.cancel()
    for thread in threads:
        thread.join(SECONDS)
    assert [thread.is_alive() for thread in threads] == [False, False, False]
    assert held_by(token) == 0


def test_a_waiter_that_gives_up_is_forgotten() -> None:
    """A cancelled task leaves no wake-up call behind, before the request or in the same moment."""

    async def main() -> None:
        complaints: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        token = CancellationToken()
        early = asyncio.create_task(token.cancelled())
        late = asyncio.create_task(token.cancelled())
        await until(lambda: held_by(token) == 2)
        early.cancel()
        await asyncio.wait([early])
        assert held_by(token) == 1
        token.cancel()
        late.cancel()
        await asyncio.wait([late])
        await asyncio.sleep(0)
        assert (early.cancelled(), late.cancelled()) == (True, True)
        assert (held_by(token), complaints) == (0, [])

    asyncio.run(main())


def test_a_request_between_look_and_wait_is_not_missed() -> None:
    """A request that comes while a coroutine is about to wait ends the wait at once."""
    token = CancellationToken()

    class Meddling(asyncio.SelectorEventLoop):
        def create_future(self) -> asyncio.Future[Any]:
            token.cancel("in between")
            return super().create_future()

    loop = Meddling()
    try:
        loop.run_until_complete(token.cancelled())
    finally:
        loop.close()
    assert (token.reason, held_by(token)) == ("in between", 0)


def test_a_loop_that_is_closed_does_not_stop_the_request() -> None:
    """A waiter whose loop is gone is passed by; the others are woken."""
    token = CancellationToken()
    child = token.child()

    async def wait_by_hand() -> Coroutine[Any, Any, None]:
        waiting = token.cancelled()
        waiting.send(None)
        return waiting

    waiting = asyncio.run(wait_by_hand())
    assert held_by(token) == 2
    token.cancel()
    waiting.close()
    assert (token.is_cancelled, child.is_cancelled) == (True, True)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300])
def test_a_thread_may_wait_for_longer_than_a_lock_counts(timeout: float) -> None:
    """No number of seconds is too many."""
    token = CancellationToken()
    threading.Timer(0.01, token.cancel).start()
    assert token.wait(timeout) is True


@given(st.sampled_from([0, -1, 0.001]))
def test_a_thread_waits_no_longer_than_it_says(timeout: float) -> None:
    """A wait that ends by time says so, and leaves no trace."""
    token = CancellationToken()
    assert token.wait(timeout) is False
    assert held_by(token) == 0


def test_a_thread_that_waits_is_woken() -> None:
    """A wait without limit ends with the request; one that comes after it ends at once."""
    token = CancellationToken()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(token.wait()), daemon=True)
    thread.start()
    asyncio.run(asyncio.wait_for(until(lambda: held_by(token) == 1), SECONDS))
    token.cancel()
    thread.join(SECONDS)
    assert (seen, token.wait(), held_by(token)) == ([True], True, 0)


def test_a_signal_handler_may_cancel() -> None:
    """A handler that interrupts the wait of its own thread ends it."""
    token = CancellationToken()
    main = threading.get_ident()

    async def send() -> None:
        await until(lambda: held_by(token) == 1)
        signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: token.cancel("alarm"))
    try:
        threading.Thread(target=lambda: asyncio.run(send()), daemon=True).start()
        assert token.wait(SECONDS) is True
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert token.reason == "alarm"


def test_many_threads_agree_on_one_reason() -> None:
    """However many ask at once, each sees the same reason after."""
    token = CancellationToken()
    barrier = threading.Barrier(8)
    seen: list[str | None] = []

    def ask(reason: str) -> None:
        barrier.wait(SECONDS)
        token.cancel(reason)
        seen.append(token.reason)

    threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == [token.reason] * 8


def test_importing_loads_nothing_heavy() -> None:
    """The modules around a running tool bring neither asyncio nor rich nor logging."""
    code = (
        "import sys\n"
        "import pydantic_core\n"
        "floor = set(sys.modules)\n"
        "from lutum_py import CallStatus, ToolContext\n"
        "from lutum_py.capabilities import ToolCapabilities\n"
        "from lutum_py.context import CancellationToken, State\n"
        "loaded = sys.modules.keys() - floor\n"
        "print([name for name in ('asyncio', 'rich', 'logging') if name in loaded])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
