"""`SortedCalls`: the calls of a round, sorted by what is to be done about each.

What works on a plan (deciding, resuming, showing results, saving, displaying) takes this record;
the plan itself adds to it what a user may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._call.call import AnyToolCall
from .._call.decision_log import DecisionRecord
from .._call.outcomes import (
    HandledCall,
    RecoverableToolCallIssue,
    RejectedCall,
    SuspendedCall,
)
from .._call.selector import AnySelector
from .._context.suspension import Decision
from .._transcript.metadata import ToolMetadata
from .round_state import RoundState

__all__ = ["SortedCalls"]

_NONE_RESUMED: Mapping[tuple[str, str], Decision] = {}


class SortedCalls:
    """Keep the calls of a round by what is to be done about them; `ToolRoundPlan` tells of each."""

    __slots__ = (
        "_state",
        "decisions",
        "handled",
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
        self.toolset = toolset
        self.pending = pending
        self.recoverable_tool_call_issues = issues
        self.handled: tuple[HandledCall[Any, Any], ...] = ()
        self.rejected: tuple[RejectedCall, ...] = ()
        self.suspended: tuple[SuspendedCall, ...] = ()
        self.decisions: tuple[DecisionRecord, ...] = ()
        self.resumed: Mapping[tuple[str, str], Decision] = _NONE_RESUMED

    def selector_of(self, metadata: ToolMetadata) -> AnySelector:
        """Find the tool that a call is of."""
        selector: AnySelector = self.toolset[metadata.name]
        return selector
