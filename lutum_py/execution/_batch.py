"""Calls that are run together: checked before any of them is started, and none of them lost.

Whatever ends a batch early (an exception of `around`, a cancelled task) ends one run of it, never
the account of the others: errors are noted by place, and each call has an outcome in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from .._call.call import AnyToolCall
from .._call.lifecycle import CallStatus
from .._context.context import ToolContext
from .._text.json import shorten
from ..errors import (
    LifecycleError,
    LutumError,
    MisuseError,
)
from ._outcome import (
    ExecutionErrors,
    Outcome,
    cancelled,
    lost,
    outcomes_of,
)
from ._run import Run
from ._settings import Settings

__all__ = ["Batch", "ContextFor"]

_UNTOUCHED = (CallStatus.NEW, CallStatus.RESUMING)

ContextFor: TypeAlias = Callable[[AnyToolCall], ToolContext]
"""Makes the context of a call."""


class Batch:
    """Hold the runs of several calls, and what kept or broke them."""

    def __init__(
        self,
        calls: Iterable[AnyToolCall],
        context: ContextFor | None,
        settings: Settings,
    ) -> None:
        if not isinstance(calls, Iterable):
            raise MisuseError(
                f"Calls are run from a list, not from {shorten(calls)}. Pass `plan.pending`."
            )
        listed = list(calls)
        self.errors: dict[int, Exception] = {}
        self.interrupt: BaseException | None = None
        self.done: dict[int, Outcome] = {}
        self.limit = settings.limit or max(len(listed), 1)
        seen: set[int] = set()
        for call in listed:
            if id(call) in seen:
                raise LifecycleError(
                    f"Call {call.id!r} of tool `{call.name}` is given twice, and a call runs once. "
                    "`call.again()` makes a new call of the same metadata and input."
                )
            seen.add(id(call))
        self.runs = [
            Run(
                call,
                None if context is None else context(call),
                settings,
                note=_noting(self.errors, place),
            )
            for place, call in enumerate(listed)
        ]

    def run_sync(self, place: int) -> None:
        """Run one call; what keeps its context from opening is noted."""
        try:
            self.done[place] = self.runs[place].run_sync()
        except LutumError:
            raise
        except Exception as error:  # noqa: BLE001 - a context may raise anything
            self.done[place] = self._not_run(place, error)

    def account(self, error: BaseException) -> list[Outcome]:
        """Say what the calls came to when something ended the run of them all."""
        return [
            self.done[place] if place in self.done else self._not_run(place, error)
            for place in range(len(self.runs))
        ]

    def outcomes(self, tasks: Sequence[asyncio.Future[Outcome]]) -> list[Outcome]:
        """Say what the calls came to whose tasks are done, in whichever way."""
        return [self._outcome(place, task) for place, task in enumerate(tasks)]

    def _outcome(self, place: int, task: asyncio.Future[Outcome]) -> Outcome:
        try:
            error = task.exception()
        except asyncio.CancelledError as stop:
            for outcome in outcomes_of(stop):
                return outcome
            why = "not executed, because the run was cancelled before it started."
            return cancelled(self.runs[place].call, why)
        return task.result() if error is None else self._not_run(place, error)

    def _not_run(self, place: int, error: BaseException) -> Outcome:
        if isinstance(error, Exception):
            self.errors[place] = error
        call = self.runs[place].call
        name = type(error).__name__
        if call.status in _UNTOUCHED:  # of a copy: it may still be run
            return cancelled(call._again(), f"not executed: {name} came before it.")
        return lost(call, f"{name} ended it.")

    def ended(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Give the outcomes, or raise what was noted."""
        if self.errors:
            raise ExecutionErrors.of([self.errors[at] for at in sorted(self.errors)], outcomes)
        return outcomes


def _noting(errors: dict[int, Exception], place: int) -> Callable[..., None]:
    """Make what notes an exception; it knows the notes only, so that a batch is no cycle."""

    def note(error: Exception, *_: object) -> None:
        errors[place] = error

    return note
