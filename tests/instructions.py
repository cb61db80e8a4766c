"""Measures of cost that are the same on every machine and under every load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["calls", "instructions"]


def instructions(work: Callable[[], object]) -> int:
    """Count the instructions of Python's virtual machine that a piece of work takes.

    Garbage is not collected meanwhile: what others hang on its collections would be counted.
    """
    taken = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal taken
        frame.f_trace_opcodes = True
        taken += event == "opcode"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    try:
        for _ in range(2):  # what is made on first use is made in the first of them
            taken = 0
            sys.settrace(trace)
            try:
                work()
            finally:
                sys.settrace(before)
    finally:
        if collects:
            gc.enable()
    assert taken > 0
    return taken


@contextmanager
def calls(most: float = float("inf")) -> Iterator[Callable[[], int]]:
    """Count the functions that are called, and end what calls more of them than it may.

    It is coarser than `instructions`, and so quick that a long piece of work can be counted.
    """
    taken = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal taken
        taken += event in ("call", "c_call")
        if taken > most:
            raise AssertionError(f"More than {most:,} functions were called.")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield lambda: taken
    finally:
        sys.setprofile(before)
    assert taken <= most  # also where the work has caught what ended it
