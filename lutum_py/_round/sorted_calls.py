"""`SortedCalls`: the calls of a round, sorted by what is to be done about each.

What works on a plan (deciding, resuming, showing results, saving, displaying) takes this record;
the plan itself adds to it what a user may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.lifecycle import CallStatus
from .._call.outcomes import HandledCall, RecoverableToolCallIssue, RejectedCall, SuspendedCall
from .._call.selector import AnySelector
from .._context.suspension import Decision
from .._hooks.places import HookPlaces
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .edits import EditRecord
from .round_state import RoundState

if TYPE_CHECKING:
    from .record import Ledger

__all__ = ["CHANGED_BY_RECORDS", "SortedCalls"]

CHANGED_BY_RECORDS: Final = frozenset({"pending", "in_doubt", "finished", "_ended"})
"""What tells how calls are sorted, and changes when a result is recorded."""

_NONE_RESUMED: Mapping[tuple[str, str], Decision] = {}
_NONE_ENDED: Mapping[str, AnyToolCall] = {}
_NONE_ASKED: frozenset[tuple[str, str]] = frozenset()
_UNTOUCHED = (CallStatus.NEW, CallStatus.RESUMING)


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
        "_ledger",
        "_owes_after",
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
        self._ledger: Ledger | None = None
        self._owes_after = False

    def __getattr__(self, name: str) -> Any:
        # Of a slot that recording has emptied.
        if name in CHANGED_BY_RECORDS and self._ledger is not None:
            self._ledger.sort(self)
            return object.__getattribute__(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def begun(self) -> dict[str, str]:
        """Give the tools of the calls that were begun or answered, by call id."""
        started = self._state._started
        open_calls = [
            call for call in self.pending if call.status not in _UNTOUCHED or call.id in started
        ]
        waiting = [each.call for each in self.suspended if each.was_started]
        calls = (*open_calls, *self.in_doubt, *waiting, *self._ended.values())
        return {call.id: call.name for call in calls}

    def copy(self) -> SortedCalls:
        """Return a record of its own, open to assignment, with the same calls."""
        made = object.__new__(SortedCalls)
        for name in SortedCalls.__slots__:
            setattr(made, name, getattr(self, name))
        made._ledger = None
        return made

    def change(self, **values: Any) -> None:
        """Set attributes, also of a plan, which refuses the plain way."""
        if self._ledger is not None and not CHANGED_BY_RECORDS.isdisjoint(values):
            self._ledger.sort(self)
            object.__setattr__(self, "_ledger", None)
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
