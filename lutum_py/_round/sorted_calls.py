"""`SortedCalls`: the calls of a round, sorted by what is to be done about each.

What works on a plan (deciding, resuming, showing results, saving, displaying) takes this record;
the plan itself adds to it what a user may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, TypeVar

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

__all__ = ["Recorded", "SortedCalls", "in_order"]

_RECORDED_IN: Final = frozenset({"pending", "in_doubt", "finished", "_ended"})
"""What tells how calls are sorted, and changes when a result is recorded."""

_NONE_RESUMED: Mapping[tuple[str, str], Decision] = {}
_NONE_ENDED: Mapping[str, AnyToolCall] = {}
_NONE_ASKED: frozenset[tuple[str, str]] = frozenset()


class SortedCalls:
    """Keep the calls of a round by what is to be done about them; `ToolRoundPlan` tells of each."""

    # Of the private ones: the calls of finished results, by id; which after-hooks were asked, by
    # call id and the hook's key; the hook sets that decided; whether any hooks did; what was
    # recorded lately; whether the plan was saved while some after-hook of theirs had still to be
    # asked.
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
        # Of a slot that recording has emptied.
        recorded = self._recorded if name in _RECORDED_IN else None
        if recorded is not None:
            return recorded.sort(self)[name]
        # Another thread has filled it meanwhile, or it is none of ours, which this says.
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
        """Set attributes, also of a plan, which refuses the plain way."""
        if self._recorded is not None and not _RECORDED_IN.isdisjoint(values):
            self._recorded.sort(self, is_last=True)
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


# A round may have thousands of calls, and each result that comes in would have them all sorted
# anew. So the results stand here until somebody asks how the calls are sorted: their slots in the
# plan are empty until then. The lock is for threads that run calls of one plan.
class Recorded:
    """Hold the results that were recorded since the calls of a plan were sorted otherwise.

    Args:
        calls: The calls of the plan as they are sorted.
    """

    __slots__ = ("_answered", "_before", "_is_sorted", "_lock", "_open", "_results")

    def __init__(self, calls: SortedCalls) -> None:
        self._before = (calls.pending, calls.in_doubt, calls.finished, calls._ended)
        self._open = {call.id: call for call in (*calls.pending, *calls.in_doubt)}
        self._answered = {result.id for result in calls.finished}
        self._results: dict[str, tuple[ToolResult, AnyToolCall | None]] = {}
        self._is_sorted = True
        self._lock = Lock()

    def open_call(self, id: str) -> AnyToolCall | None:
        """Give a call that is pending or in doubt."""
        return None if id in self._results else self._open.get(id)

    def is_answered(self, id: str) -> bool:
        """Tell whether the plan has a result of a call."""
        return id in self._results or id in self._answered

    def enter(self, calls: SortedCalls, result: ToolResult, call: AnyToolCall | None) -> None:
        """Keep a result, which answers an open call or one that could not be used."""
        with ONCE:
            kept = calls._recorded or self  # another thread may have been quicker
            with kept._lock:
                kept._results[result.id] = (result, call)
                if kept._is_sorted:
                    kept._is_sorted = False
                    object.__setattr__(calls, "_recorded", kept)
                    for slot in _SLOTS.values():
                        slot.__delete__(calls)

    def sort(self, calls: SortedCalls, *, is_last: bool = False) -> dict[str, Any]:
        """Fill the slots that recording has emptied, and give what stands in them.

        Args:
            calls: The calls of the plan.
            is_last: Let the plan go on without this.
        """
        with self._lock:
            pending, in_doubt, finished, ended = self._before
            recorded = self._results
            calls_here = {id: call for id, (_, call) in recorded.items() if call is not None}
            made = {
                "pending": tuple(call for call in pending if call.id not in recorded),
                "in_doubt": tuple(call for call in in_doubt if call.id not in recorded),
                "finished": in_order(calls, (*finished, *(each for each, _ in recorded.values()))),
                "_ended": {**ended, **calls_here},
            }
            if calls._recorded is self:  # and no other thread has changed the plan
                self._is_sorted = True
                for name, slot in _SLOTS.items():
                    slot.__set__(calls, made[name])
                if is_last:
                    object.__setattr__(calls, "_recorded", None)
            return made


_SLOTS: Final[dict[str, Any]] = {name: vars(SortedCalls)[name] for name in _RECORDED_IN}

_Identified = TypeVar("_Identified", AnyToolCall, ToolResult)


def in_order(calls: SortedCalls, each: tuple[_Identified, ...]) -> tuple[_Identified, ...]:
    """Put calls or results in the order of the turn."""
    place = {asked.id: index for index, asked in enumerate(calls._state.turn.tool_calls)}
    return tuple(sorted(each, key=lambda one: place[one.id]))
