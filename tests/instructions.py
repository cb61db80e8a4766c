"""A measure of cost that is the same on every machine and under every load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["instructions"]


def instructions(work: Callable[[], object]) -> int:
    """Count the instructions of Python's virtual machine that a piece of work takes."""
    taken = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal taken
        frame.f_trace_opcodes = True
        taken += event == "opcode"
        return trace

    before = sys.gettrace()
    for _ in range(2):  # what is made on first use is made in the first of them
        taken = 0
        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(before)
    assert taken > 0
    return taken
