"""What else happens while one step is under way: at each line of the library, in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from linecache import getline
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import lutum_py

__all__ = ["at_line", "every_line"]

_LIBRARY = str(Path(lutum_py.__file__).parent)


def _is_with(frame: FrameType) -> bool:
    """Whether a `with` is entered or left: Python itself lets no interrupt in between."""
    return getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with ")


class _Counted:
    """Do something once so many lines of the library have started."""

    def __init__(self, number: int, meanwhile: Callable[[], object]) -> None:
        self.left = number
        self.meanwhile = meanwhile
        self.came = False

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_LIBRARY):
            return None
        if event == "line" and not self.came and not _is_with(frame):
            self.left -= 1
            if self.left < 0:
                self.came = True
                self.meanwhile()
        return self.trace


class _Elsewhere:
    """Do something here, or in a thread of its own."""

    def __init__(self, do: Callable[[], object]) -> None:
        self.do = do
        self.raised: BaseException | None = None
        self.thread: Thread | None = None

    def begin(self) -> None:
        self.thread = Thread(target=self._run)
        self.thread.start()
        self.thread.join(0.01)  # it is not done by then where it waits for a lock

    def _run(self) -> None:
        try:
            self.do()
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self.raised = error

    def end(self) -> None:
        if self.thread is not None:
            self.thread.join()
        if self.raised is not None:
            raise self.raised


@contextmanager
def at_line(number: int, meanwhile: Callable[[], object]) -> Iterator[_Counted]:
    """Do something else, or raise, when a line of the library begins within the `with`.

    Args:
        number: Which line, counted from 0.
        meanwhile: What is done then.
    """
    counted, before = _Counted(number, meanwhile), sys.gettrace()
    sys.settrace(counted.trace)
    try:
        yield counted
    finally:
        sys.settrace(before)


def every_line(
    prepare: Callable[[], Any],
    step: Callable[[Any], object],
    meanwhile: Callable[[Any], object],
    *,
    in_thread: bool = False,
    drop: Callable[[Any], object] = bool,
) -> Iterator[tuple[int, Any, BaseException | None]]:
    """Do a step again and again, each time with something else at the next line of the library.

    Args:
        prepare: Makes what the step is done with, anew for each time.
        step: The step.
        meanwhile: What else is done, or raised, with the same.
        drop: Gives up what was prepared for the last time, which nothing else comes in between of.
        in_thread: Do that in another thread, which waits where the step holds a lock.

    Yields:
        The number of the line, what was prepared, and what the step raised.
    """
    for number in range(10_000):
        made = prepare()
        raised: BaseException | None = None
        other = _Elsewhere(partial(meanwhile, made))
        with at_line(number, other.begin if in_thread else other.do) as counted:
            try:
                step(made)
            except BaseException as error:  # noqa: BLE001 - handed on
                raised = error
        other.end()
        if not counted.came:
            assert number, "the step has no line of the library"
            drop(made)
            return
        yield number, made, raised
