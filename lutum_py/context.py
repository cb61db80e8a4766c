"""What a `ToolContext` holds for a running tool: state, a token to cancel it, what it reports.

Example:
    >>> from lutum_py import ToolContext
    >>> from lutum_py.context import State, StateKey
    >>> language = StateKey("language", default="en")
    >>> ctx = ToolContext("c1", "greet", state=State().set(language, "no"))
    >>> ctx.state(language)
    'no'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._context.cancellation import CancellationToken as CancellationToken
from ._context.context import RunIdentity as RunIdentity
from ._context.context import ToolSuspended as ToolSuspended
from ._context.inner import CallsRequested as CallsRequested
from ._context.inner import InnerState as InnerState
from ._context.inner import ToolRequestedCalls as ToolRequestedCalls
from ._context.progress import TOOL_CALL_PROGRESS_ACTIVITY_TYPE as TOOL_CALL_PROGRESS_ACTIVITY_TYPE
from ._context.progress import ActivityDelta as ActivityDelta
from ._context.progress import ActivitySnapshot as ActivitySnapshot
from ._context.progress import ObserverText as ObserverText
from ._context.progress import ProgressStatus as ProgressStatus
from ._context.progress import Sink as Sink
from ._context.progress import ToolCallProgressState as ToolCallProgressState
from ._context.progress import ToolEvent as ToolEvent
from ._context.state import State as State
from ._context.state import StateKey as StateKey
from ._text.on_demand import exported

if not TYPE_CHECKING:
    __all__ = list(exported(globals()))
