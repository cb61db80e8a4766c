"""Run the generators that call hooks, from async code and from sync code alike.

Whatever calls hooks is a generator that yields each awaitable which a hook returned, with the name
of the hook. Two small drivers run it, so that async and sync code do the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Generator
from typing import Any, TypeAlias, TypeVar

from ..errors import MisuseError

R = TypeVar("R")

# `answer = yield "guard", guard(call)` hands a coroutine out, and is given its value. An async and
# a sync version of each function would have to be kept alike by hand.
NamedAwaitable: TypeAlias = tuple[str, Awaitable[Any]]
"""The name of a hook, and the awaitable that it returned."""

HookGenerator: TypeAlias = Generator[NamedAwaitable, Any, R]


async def drive(generator: HookGenerator[R], first: NamedAwaitable | None = None) -> R:
    """Run a generator to its end, and await what it yields.

    Args:
        generator: The generator.
        first: What it has yielded already, if it was started.
    """
    try:
        # As a rule a whole round goes through hooks without a single await. So a caller may run
        # the generator up to the first awaitable, and only then come here with it.
        _, awaitable = first or next(generator)
        while True:
            try:
                value = await awaitable
            except BaseException as error:  # noqa: BLE001 - it goes where it would have been raised
                _, awaitable = generator.throw(error)
            else:
                _, awaitable = generator.send(value)
    except StopIteration as end:
        result: R = end.value
        return result


def drive_sync(
    generator: HookGenerator[R],
    instead: str = "the async twin of this method",
    first: NamedAwaitable | None = None,
) -> R:
    """Run a generator to its end, and refuse to await anything.

    Args:
        generator: The generator.
        instead: What to use if a hook is async, for the message.
        first: What it has yielded already, if it was started.

    Raises:
        MisuseError: A hook is async; the text names it.
    """
    try:
        name, awaitable = first or next(generator)
    except StopIteration as end:
        result: R = end.value
        return result
    # Left open, it would make Python warn that it was never awaited, beside the error below.
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    generator.close()
    raise MisuseError(
        f"Hook `{name}` is async, so sync code cannot call it. Use {instead}, or make the "
        "hook a plain function."
    )
