"""The life of one call, as a table.

Everything that decides which status may follow which stands here, and nothing else does: the code
that moves calls asks `leads_to` of a status, and the documentation draws its diagram from the same
table. The one rule outside the table is that a move to the present status is a no-op and always
legal, for a finished call too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from ..errors import LifecycleError

__all__ = ["NOT_BEGUN", "TRANSITIONS", "CallStatus", "refused"]


class CallStatus(StrEnum):
    """Say how far a tool call has come.

    >>> CallStatus.SUSPENDED == "suspended", CallStatus.FAILED.is_terminal
    (True, True)
    """

    NEW = "new"
    """Decoded, and nothing done with it yet."""
    RUNNING = "running"
    """The tool is at work."""
    SUSPENDED = "suspended"
    """Waiting for a decision from outside."""
    RESUMING = "resuming"
    """Decided, and on its way back to the tool."""
    SUCCEEDED = "succeeded"
    """Finished with an output."""
    FAILED = "failed"
    """Finished with an error."""
    CANCELLED = "cancelled"
    """Given up before it finished."""

    leads_to: tuple[CallStatus, ...]
    """The statuses that may follow, itself included: its row of the table."""

    @property
    def is_terminal(self) -> bool:
        """Whether no other status can follow."""
        return len(self.leads_to) == 1


TRANSITIONS: Final[Mapping[CallStatus, frozenset[CallStatus]]] = MappingProxyType(
    {
        CallStatus.NEW: frozenset(
            {
                CallStatus.NEW,
                CallStatus.RUNNING,
                CallStatus.SUSPENDED,
                CallStatus.RESUMING,
                CallStatus.SUCCEEDED,
                CallStatus.FAILED,
                CallStatus.CANCELLED,
            }
        ),
        CallStatus.RUNNING: frozenset(
            {
                CallStatus.SUSPENDED,
                CallStatus.SUCCEEDED,
                CallStatus.FAILED,
                CallStatus.CANCELLED,
            }
        ),
        CallStatus.SUSPENDED: frozenset({CallStatus.RESUMING, CallStatus.CANCELLED}),
        CallStatus.RESUMING: frozenset(
            {
                CallStatus.RUNNING,
                CallStatus.SUSPENDED,
                CallStatus.SUCCEEDED,
                CallStatus.FAILED,
                CallStatus.CANCELLED,
            }
        ),
        CallStatus.SUCCEEDED: frozenset(),
        CallStatus.FAILED: frozenset(),
        CallStatus.CANCELLED: frozenset(),
    }
)
"""Which statuses may follow each status; a finished one leads nowhere."""

NOT_BEGUN: Final = (CallStatus.NEW, CallStatus.RESUMING)
"""From these a call may be run: it neither was begun nor answered, nor does it wait."""

_AGAIN: Final = "`call.again()` makes a new call of the same metadata and input, in status 'new'"


# Looking a status up in the table hashes its text, in Python; a tuple on the status itself is
# searched by identity, in a fifth of the time.
for _status, _row in TRANSITIONS.items():
    _status.leads_to = (*_row, _status)


def refused(current: CallStatus, target: CallStatus, *, call_id: str, tool: str) -> LifecycleError:
    """Make the error for a move that the table does not hold: it says what to do instead.

    Args:
        current: The status that the call has.
        target: The status that it was to have.
        call_id: The id of the call.
        tool: The wire name of the tool.

    >>> print(refused(CallStatus.SUSPENDED, CallStatus.RUNNING, call_id="c1", tool="search"))
    Call 'c1' of tool 'search' is suspended and cannot become running. Reachable from here: \
resuming, cancelled. Move it to resuming first.
    """
    return LifecycleError(
        f"Call {call_id!r} of tool {tool!r} is {current} and cannot become {target}. "
        f"{_remedy(current, target)}"
    )


def _remedy(current: CallStatus, target: CallStatus) -> str:
    if current.is_terminal:
        return f"That status is final: nothing is reachable from it. {_AGAIN}."
    reachable = [step for step in CallStatus if step in TRANSITIONS[current]]
    between = next((step for step in reachable if target in TRANSITIONS[step]), None)
    way = f"{_AGAIN}." if between is None else f"Move it to {between} first."
    return f"Reachable from here: {', '.join(reachable)}. {way}"
