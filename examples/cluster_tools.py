"""The tools of `cluster.py`, in a module of their own: the workers import it to unpickle calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from lutum_py import Skip, Toolset, tool, tool_fn


@tool_fn(idempotent=True)
def count_primes(start: int, stop: int) -> int:
    """Count the primes from start, included, to stop, excluded."""
    return sum(
        number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
        for number in range(start, stop)
    )


@tool_fn
def send_letter(recipient: str, text: str, outbox: Annotated[Path, Skip()]) -> str:
    """Send a letter: another one each time.

    Args:
        recipient: Who gets it.
        text: What it says.
        outbox: The file to which a line is added for each letter.
    """
    with outbox.open("a", encoding="utf-8") as lines:
        lines.write(f"{recipient}: {text}\n")
    return f"sent to {recipient}"


class Jobs(Toolset):
    """What the model may call."""

    count_primes = tool(count_primes)
    send_letter = tool(send_letter)
