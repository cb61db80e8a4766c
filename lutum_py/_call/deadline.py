"""Run the function of a call within the deadline that its tool declares."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..errors import TimedOut

if TYPE_CHECKING:
    from .._schema.invocation import Invocation


async def in_time(
    call: Any,
    invocation: Invocation,
    input: Any,
    skipped: dict[str, Any],
    seconds: float,
) -> Any:
    """Run the function, and cut it off where the time is up.

    Raises:
        TimedOut: It was cut off. What the function raises comes out unchanged, also a
            `TimeoutError` of its own.
    """
    # `asyncio.timeout` raises the same `TimeoutError` that the function may raise by itself. Which
    # of the two came out is told by identity: only what passed the inner `except` is its own.
    own: TimeoutError | None = None
    try:
        async with asyncio.timeout(seconds):
            try:
                return await invocation.run(call, input, skipped)
            except TimeoutError as error:
                own = error
                raise
    except TimeoutError as error:
        if error is own:
            raise
        raise TimedOut(
            f"did not finish within {seconds:g} seconds and was cut off.", is_in_doubt=True
        ) from None
    finally:
        del own  # its traceback holds this frame
