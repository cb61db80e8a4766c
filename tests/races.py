"""What forces a move between the check and the write of another, for the tests of races.

There is one place where a history is written, `dict.setdefault`. A dict that runs another move
there, once, gives every order that two threads can have, without a thread and without luck. A round
is closed in a few steps more; the same is done between each two of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from lutum_py.errors import LutumError
from tests.private import CallRecord, RoundState, ToolRoundPlan, plan_json
from tests.private import plan as plan_module

__all__ = ["NOW", "SEAMS", "Race", "Racing", "watched"]

NOW: list[Any] = []
"""The race that is on."""


class Race:
    """Two moves, of which the second comes when the first one reaches a place."""

    def __init__(self) -> None:
        NOW[:] = [self]
        self.between: Callable[[], object] | None = None
        self.seam, self.times, self.reached = "", 0, 0

    def reach(self, seam: str) -> None:
        """Let the other move come, at the right place."""
        if seam == self.seam:
            self.reached += 1
            if self.reached == self.times and (other := self.between) is not None:
                self.between = None
                with suppress(LutumError, IndexError):
                    other()


class Racing(dict[int, Any]):
    """A history that lets another move come between the check and the write of the next one."""

    def setdefault(self, number: int, entry: Any = None) -> Any:
        NOW[0].reach("write")
        return super().setdefault(number, entry)


_PLACES: Final[tuple[tuple[Any, str, str], ...]] = (
    (CallRecord, "check_may_start", "may start"),
    (RoundState, "check_open", "is open"),
    (RoundState, "close", "closed"),
    (ToolRoundPlan, "_given_up", "given up"),
    (plan_module, "results_of", "results"),
    (plan_module, "joined_round", "joined"),
    (plan_json, "dump_plan", "text"),
)
SEAMS: Final = ("write", "tool", *(seam for *_, seam in _PLACES))
"""The places in the middle of a move: where it is written, and behind each of its other steps."""


@contextmanager
def watched() -> Iterator[None]:
    """Let the race know each time that a move passes one of these places."""
    kept = [(of, name, getattr(of, name)) for of, name, _ in _PLACES]

    def passing(function: Any, seam: str) -> Any:
        def passed(*given: Any, **named: Any) -> Any:
            made = function(*given, **named)
            NOW[0].reach(seam)
            return made

        return passed

    for of, name, seam in _PLACES:
        setattr(of, name, passing(getattr(of, name), seam))
    try:
        yield
    finally:
        for of, name, function in kept:
            setattr(of, name, function)
