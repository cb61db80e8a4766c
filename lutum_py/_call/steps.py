"""Steps that may have to wait, run by async code and by sync code alike.

The steps are a generator that hands out whatever is to be awaited, with the name of the hook that
gave it. Two small drivers run it, so that both kinds of code do the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Generator
from typing import Any, TypeAlias, TypeVar

from ..errors import MisuseError

R = TypeVar("R")

# `answer = yield "guard", guard(call)` hands a coroutine out, and is given its value. An async and
# a sync version of each function would have to be kept alike by hand.
Waits: TypeAlias = tuple[str, Awaitable[Any]]
"""The name of a hook, and what it gave to be awaited."""

Steps: TypeAlias = Generator[Waits, Any, R]


async def drive(steps: Steps[R], first: Waits | None = None) -> R:
    """Run steps to their end, awaiting what has to be awaited.

    Args:
        steps: The steps.
        first: What they have handed out already, if they were begun.
    """
    try:
        # A whole round goes through hooks without a single await, as a rule. So a caller may run
        # the steps up to the first that waits, and only then come here with it.
        _, awaitable = first or next(steps)
        while True:
            try:
                value = await awaitable
            except BaseException as error:  # noqa: BLE001 - it goes where it would have been raised
                _, awaitable = steps.throw(error)
            else:
                _, awaitable = steps.send(value)
    except StopIteration as end:
        result: R = end.value
        return result


def drive_sync(
    steps: Steps[R], twin: str = "the async twin of this method", first: Waits | None = None
) -> R:
    """Run steps of which none has to be awaited to their end.

    Args:
        steps: The steps.
        twin: What to use if one has to be, for the message.
        first: What they have handed out already, if they were begun.

    Raises:
        MisuseError: A hook is async; the text names it.
    """
    try:
        name, awaitable = first or next(steps)
    except StopIteration as end:
        result: R = end.value
        return result
    # Left open, it would make Python warn that it was never awaited, beside the error below.
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    steps.close()
    raise MisuseError(
        f"Hook `{name}` is async, so it cannot be asked from sync code. Use {twin}, or make the "
        "hook a plain function."
    )
