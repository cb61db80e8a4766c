"""What a function of the program raised where it was merely called: a failure, or an interrupt.

A listener, a context or an encoder that raises must take no result away. What it raises is its own
failure, also where that is an `asyncio.CancelledError`: sync code is not where a task learns of its
cancellation. An interrupt, such as Ctrl-C or `sys.exit`, goes on once the result is kept.
"""

from __future__ import annotations

import sys


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception must go on: it is neither an error nor a cancellation."""
    # Whoever raises it has loaded asyncio, which takes too long to load here.
    asyncio = sys.modules.get("asyncio")
    is_cancellation = asyncio is not None and isinstance(error, asyncio.CancelledError)
    return not (is_cancellation or isinstance(error, Exception))


def must_go_on(error: BaseException) -> bool:
    """Whether an exception in async code ends the program, or the task that runs this code.

    A function may await what somebody else cancelled: such a cancellation is its own failure.
    """
    if is_interrupt(error):
        return True
    if isinstance(error, Exception):
        return False
    from asyncio import current_task

    task = current_task()
    return task is not None and task.cancelling() > 0
