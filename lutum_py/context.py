"""What a `ToolContext` holds for a running tool: state, a token to cancel it, whose run it is.

Example:
    >>> from lutum_py import ToolContext
    >>> from lutum_py.context import State, StateKey
    >>> language = StateKey("language", default="en")
    >>> ctx = ToolContext("c1", "greet", state=State().set(language, "no"))
    >>> ctx.state(language)
    'no'
"""

from __future__ import annotations

from ._context.cancellation import CancellationToken
from ._context.context import RunIdentity, ToolSuspended
from ._context.inner import CallsAsked, Inner, InnerState, ToolAsks
from ._context.progress import (
    TOOL_CALL_PROGRESS_ACTIVITY_TYPE,
    ProgressStatus,
    ToolCallProgressState,
)
from ._context.state import State, StateKey

__all__ = [
    "TOOL_CALL_PROGRESS_ACTIVITY_TYPE",
    "CallsAsked",
    "CancellationToken",
    "Inner",
    "InnerState",
    "ProgressStatus",
    "RunIdentity",
    "State",
    "StateKey",
    "ToolAsks",
    "ToolCallProgressState",
    "ToolSuspended",
]
