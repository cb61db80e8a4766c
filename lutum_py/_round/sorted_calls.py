"""`SortedCalls`: the calls of a round, sorted by what is to be done about each.

What works on a plan (deciding, resuming, showing results, saving, displaying) takes this record;
the plan itself adds to it what a user may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.lifecycle import NOT_BEGUN
from .._call.outcomes import HandledCall, RecoverableToolCallIssue, RejectedCall, SuspendedCall
from .._call.selector import AnySelector
from .._context.suspension import Decision
from .._hooks.places import HookPlaces
from .._text.once import ONCE
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .edits import EditRecord
from .round_state import RoundState

__all__ = ["Recorded", "SortedCalls", "by_id", "moving"]

_NONE_RESUMED: Mapping[tuple[str, str], Decision] = {}
_NONE_ENDED: Mapping[str, AnyToolCall] = {}
_NONE_ASKED: frozenset[tuple[str, str]] = frozenset()


class SortedCalls:
    """Keep the calls of a round by what is to be done about them; `ToolRoundPlan` tells of each."""

    # Of the private ones: the calls of finished results, by id; which after-hooks were asked, by
    # call id and the hook's key; the hook sets that decided; whether any hooks did; the calls by
    # id, once one of them has moved; whether the plan was saved while some after-hook of theirs
    # had still to be asked.
    __slots__ = (
        "_asked_after",
        "_ended",
        "_hook_sets",
        "_is_decided",
        "_owes_after",
        "_recorded",
        "_state",
        "decisions",
        "edits",
        "finished",
        "handled",
        "in_doubt",
        "pending",
        "recoverable_tool_call_issues",
        "rejected",
        "resumed",
        "suspended",
        "toolset",
    )

    def __init__(
        self,
        state: RoundState,
        toolset: Any,
        pending: tuple[AnyToolCall, ...],
        issues: tuple[RecoverableToolCallIssue, ...],
    ) -> None:
        self._state = state
        self.toolset: Any = toolset
        self.pending: tuple[AnyToolCall, ...] = pending
        self.recoverable_tool_call_issues: tuple[RecoverableToolCallIssue, ...] = issues
        self.handled: tuple[HandledCall[Any, Any], ...] = ()
        self.rejected: tuple[RejectedCall, ...] = ()
        self.suspended: tuple[SuspendedCall, ...] = ()
        self.decisions: tuple[DecisionRecord, ...] = ()
        self.resumed: Mapping[tuple[str, str], Decision] = _NONE_RESUMED
        self.edits: tuple[EditRecord, ...] = ()
        self.finished: tuple[ToolResult, ...] = ()
        self.in_doubt: tuple[AnyToolCall, ...] = ()
        self._ended: Mapping[str, AnyToolCall] = _NONE_ENDED
        self._asked_after: frozenset[tuple[str, str]] = _NONE_ASKED
        self._hook_sets: tuple[HookPlaces[Any], ...] = ()
        self._is_decided = False
        self._recorded: Recorded | None = None
        self._owes_after = False

    def __getattr__(self, name: str) -> Any:
        # Of a slot that a move has emptied; or of none of ours, which is said by the last line.
        if name in _SLOTS and self._recorded is not None:
            return self._recorded.sort(self)[name]
        return object.__getattribute__(self, name)

    def begun(self) -> dict[str, str]:
        """Give the tools of the calls that were begun or answered, by call id."""
        started = self._state._started
        open_calls = [
            call for call in self.pending if call.status not in NOT_BEGUN or call.id in started
        ]
        waiting = [each.call for each in self.suspended if each.was_started]
        calls = (*open_calls, *self.in_doubt, *waiting, *self._ended.values())
        return {call.id: call.name for call in calls}

    def copy(self) -> SortedCalls:
        """Return a record of its own, open to assignment, with the same calls."""
        made = object.__new__(SortedCalls)
        for name in SortedCalls.__slots__:
            setattr(made, name, getattr(self, name))
        made._recorded = None
        return made

    def change(self, **values: Any) -> None:
        """Set attributes that no move of a call changes, also of a plan, which refuses it."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def note_hooks(self, hooks: object) -> None:
        """Remember a hook set that decided: its after-hooks are to be asked before the end."""
        if isinstance(hooks, HookPlaces) and hooks not in self._hook_sets:
            _set_hook_sets(self, (*self._hook_sets, hooks))

    @property
    def is_settled(self) -> bool:
        """Whether every call has its result: nothing is pending, in doubt or suspended."""
        return not (self.pending or self.in_doubt or self.suspended)

    def selector_of(self, metadata: ToolMetadata) -> AnySelector:
        """Find the tool that a call is of."""
        selector: AnySelector = self.toolset[metadata.name]
        return selector


# The slot itself: a plan, which is such a record, refuses the plain way.
_set_hook_sets: Any = vars(SortedCalls)["_hook_sets"].__set__


# A round may have thousands of calls, and each move of one would have them all sorted anew. So they
# stand here by id until somebody asks how they are sorted: their slots in the plan are empty until
# then. The calls of one plan may be run in many threads, so all of it is done with `ONCE` held.
class Recorded:
    """Hold the calls of a plan by id, where results are recorded or decisions taken in.

    Args:
        calls: The calls of the plan as they are sorted.

    Attributes:
        open: Calls that are pending or in doubt.
        doubted: Which of these are in doubt.
        waiting: Calls that wait for a decision, in the order in which they began to.
        finished: The results that the plan has.
        ended: The calls of these.
        resumed: The decisions that were taken in, by call id and decision id.
        edits: What people changed in the arguments of calls.
        is_sorted: Whether the plan has them sorted as they are here.
    """

    __slots__ = (
        "doubted",
        "edits",
        "ended",
        "finished",
        "is_sorted",
        "open",
        "resumed",
        "waiting",
    )

    def __init__(self, calls: SortedCalls) -> None:
        self.open = {call.id: call for call in (*calls.pending, *calls.in_doubt)}
        self.doubted = {call.id for call in calls.in_doubt}
        self.waiting = {each.call.id: each for each in calls.suspended}
        self.finished = {result.id: result for result in calls.finished}
        self.ended = dict(calls._ended)
        self.resumed = dict(calls.resumed)
        self.edits = {edit.call_id: edit for edit in calls.edits}
        self.is_sorted = True

    def sort(self, calls: SortedCalls) -> dict[str, Any]:
        """Fill the slots that moves have emptied, and give what stands in them.

        Args:
            calls: The calls of the plan.
        """
        with ONCE:
            ids = [asked.id for asked in calls._state.turn.tool_calls]
            open_ids = [id for id in ids if id in self.open and id not in self.finished]
            made = {
                "pending": tuple([self.open[id] for id in open_ids if id not in self.doubted]),
                "in_doubt": tuple([self.open[id] for id in open_ids if id in self.doubted]),
                "suspended": tuple(self.waiting.values()),
                "finished": tuple([self.finished[id] for id in ids if id in self.finished]),
                "_ended": dict(self.ended),
                "resumed": dict(self.resumed),
                "edits": tuple(self.edits.values()),
            }
            self.is_sorted = True
            for name, slot in _SLOTS.items():
                slot.__set__(calls, made[name])
            return made


def by_id(calls: SortedCalls) -> Recorded:
    """Give the calls of a plan by their ids, to look at."""
    return calls._recorded or Recorded(calls)


def moving(calls: SortedCalls) -> Recorded:
    """Give the calls of a plan by their ids, to be changed at once, with `ONCE` held."""
    recorded = calls._recorded
    if recorded is None:
        recorded = Recorded(calls)
        object.__setattr__(calls, "_recorded", recorded)
    if recorded.is_sorted:
        # An interrupt may come anywhere: the slots are right until the last of them is empty.
        for slot in _SLOTS.values():
            with suppress(AttributeError):
                slot.__delete__(calls)
        recorded.is_sorted = False
    return recorded


_SLOTS: Final[dict[str, Any]] = {
    name: vars(SortedCalls)[name]
    for name in ("pending", "in_doubt", "suspended", "finished", "_ended", "resumed", "edits")
}
"""What tells how calls are sorted, and changes when one of them moves."""
