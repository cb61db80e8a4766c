"""The life of one call, as a table: which step may follow in which stage, and where it leads.

A call is what the model sent and a history of steps (see `history`). Where it stands is the stage
that its last step led to; nothing else keeps that. Everything that decides whether a step may be
written is here, and the documentation draws its diagram from the same table.

    new --suspended--> suspended --decided--> resuming --started--> running --ended--> succeeded

What the table lacks is refused and changes nothing. Three rules do not fit into it and are in
`_fill` and `history.stage_after`: after an end only after-hooks can review, a call that waits can
end only as cancelled, and one that requested others ends after these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from ..errors import LifecycleError


class CallStatus(StrEnum):
    """Say how far a tool call has come.

    >>> CallStatus.SUSPENDED == "suspended", CallStatus.FAILED.is_terminal
    (True, True)
    """

    NEW = "new"
    """Decoded, and nothing done with it yet."""
    RUNNING = "running"
    """The tool is at work, or was, and nobody knows what it did."""
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

    @property
    def is_terminal(self) -> bool:
        """Whether no other status can follow."""
        return self in _ENDS

    @property
    def leads_to(self) -> tuple[CallStatus, ...]:
        """The statuses that may follow, itself included."""
        return (*(each for each in CallStatus if each in TRANSITIONS[self]), self)


_ENDS: Final = (CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.CANCELLED)

StepKind: TypeAlias = Literal[
    "proposed",
    "reviewed",
    "changed",
    "suspended",
    "decided",
    "started",
    "abandoned",
    "ended",
    "recorded",
    "moved",
    "retried",
    "requested",
    "late",
]

StageName: TypeAlias = Literal[
    "new",
    "unreviewed",
    "resuming",
    "returning",
    "running",
    "in_doubt",
    "suspended",
    "awaiting",
    "succeeded",
    "failed",
    "cancelled",
    "elsewhere",
]

WITHIN: Final = "inner"
"""A key of the table that is not a step: each call that this call requested has a result."""

_MOVED: Final[dict[str, str]] = {"moved": "elsewhere", "late": "same"}
_OPEN: Final[dict[str, str]] = {
    "reviewed": "same",
    "changed": "same",
    "suspended": "suspended",
    "started": "running",
    "ended": "ended",
    **_MOVED,
}
_ENDED: Final[dict[str, str]] = {"reviewed": "same", "recorded": "same", "late": "same"}

TABLE: Final[Mapping[StageName, Mapping[str, str]]] = MappingProxyType(
    {
        "new": _OPEN,
        # What a call requested does not start before hooks reviewed it.
        "unreviewed": {"reviewed": "new", "changed": "same", "ended": "ended", **_MOVED},
        "resuming": _OPEN,
        # What has started and comes back is not reviewed again.
        "returning": {"started": "running", "ended": "ended", **_MOVED},
        "running": {
            "suspended": "suspended",
            "requested": "awaiting",
            "abandoned": "in_doubt",
            "ended": "ended",
            "retried": "new",
            **_MOVED,
        },
        # It may have asked for a decision where it ran, before it was lost sight of.
        "in_doubt": {"suspended": "suspended", "ended": "ended", "retried": "new", **_MOVED},
        "suspended": {"decided": "resuming", "ended": "ended", "recorded": "same", **_MOVED},
        "awaiting": {WITHIN: "returning", "ended": "ended", **_MOVED},
        "succeeded": {**_ENDED, "retried": "new"},
        "failed": {**_ENDED, "retried": "new"},
        "cancelled": _ENDED,
        # It goes on where it went.
        "elsewhere": {"late": "same"},
    }
)
"""For each stage the kinds of steps that may follow, and the stage that each leads to: `same` is
the present one, and which end `ended` means is the verdict of the step."""


# Users see seven statuses, the table has twelve stages: a call that was loaded while it ran,
# that waits for others, or that goes on elsewhere may do less than its status says.
_STATUS_OF: Final[Mapping[StageName, CallStatus]] = {
    "unreviewed": CallStatus.NEW,
    "returning": CallStatus.RESUMING,
    "in_doubt": CallStatus.RUNNING,
    "awaiting": CallStatus.SUSPENDED,
    "elsewhere": CallStatus.RUNNING,  # a call that went elsewhere shows the status it left with
}


class Stage:
    """The stage of a call: a row of the table.

    Attributes:
        name: The name of the row.
        status: What users see of the stage.
        leads: The stage that each step leads to which may follow. An `ended` is found by its
            verdict, and what after-hooks say of a result by `after`: see `history.key_of`.
        is_end: Whether the call has its result.
        may_ask: Whether hooks may review the call.
        may_start: Whether the call may be started.
        may_end: Whether it may get its result.
        is_open: Whether it has no result and goes on here.
        is_pending: Whether it is started here, or was.
        stage: Itself. A call that requested others has in its place an `Ask`, whose stage changes.
    """

    __slots__ = (
        "is_end",
        "is_open",
        "is_pending",
        "leads",
        "may_ask",
        "may_end",
        "may_start",
        "name",
        "stage",
        "status",
    )

    def __init__(self, name: StageName) -> None:
        self.name: StageName = name
        self.status = _STATUS_OF.get(name) or CallStatus(name)
        self.is_end = self.status in _ENDS
        self.may_ask = "reviewed" in TABLE[name] and not self.is_end
        self.may_start = "started" in TABLE[name]
        self.may_end = "ended" in TABLE[name]
        self.is_open = "moved" in TABLE[name]
        self.is_pending = self.may_start or name == "running"
        self.leads: dict[str, Stage] = {}
        self.stage = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _stage_named, (self.name,)


STAGES: Final[Mapping[str, Stage]] = MappingProxyType({name: Stage(name) for name in TABLE})

END_OF: Final[Mapping[str, Stage]] = MappingProxyType(
    {
        "success": STAGES["succeeded"],
        "error": STAGES["failed"],
        "indeterminate": STAGES["failed"],
        "rejected": STAGES["cancelled"],
        "cancelled": STAGES["cancelled"],
    }
)
"""The end that each status of a result stands for."""

ASKING: Final = STAGES["awaiting"]
RETURNING: Final = STAGES["returning"]
"""The stages of a call that requested others, before each of these has its result and then."""


def _stage_named(name: Any) -> Stage:
    return STAGES[name]


def _fill(stage: Stage) -> None:
    # One look-up finds the next stage, not its name: it is done for each step of each call.
    # `STAGES["new"].leads["success"] is STAGES["succeeded"]`.
    for kind, target in TABLE[stage.name].items():
        if target != "ended":
            is_after = kind == "reviewed" and stage.is_end
            stage.leads["after" if is_after else kind] = (
                stage if target == "same" else _stage_named(target)
            )
        elif stage.name == "suspended":  # it was not run, so it can only be given up
            stage.leads |= {key: end for key, end in END_OF.items() if end.name == "cancelled"}
        elif stage.may_end and stage.name != "awaiting":  # see `history.stage_after`
            stage.leads |= END_OF


for _stage in STAGES.values():
    _fill(_stage)


DECIDE: Final = "Take the decision in with `plan.resume(decision)`."


def again(status: CallStatus) -> str:
    """Say that a call can be tried again, if it can."""
    if status is CallStatus.CANCELLED:
        return ""
    return " `call.retry()` lets it be tried again."


def _followers(status: CallStatus) -> Iterator[CallStatus]:
    for kind, target in TABLE[status.value].items():
        if target == "ended":
            # A call that waits was not run, so it can only be given up.
            yield from (CallStatus.CANCELLED,) if status is CallStatus.SUSPENDED else _ENDS
        elif kind not in ("retried", "moved") and target != "same":  # final within a try, and here
            yield STAGES[target].status


TRANSITIONS: Final[Mapping[CallStatus, frozenset[CallStatus]]] = MappingProxyType(
    {status: frozenset(_followers(status)) - {status} for status in CallStatus}
)
"""The table by statuses, as users see them: which may follow each, by any step."""


def refused(
    current: CallStatus, target: CallStatus, again: str = "", *, call_id: str, tool: str
) -> LifecycleError:
    """Make the error for a move that the table does not hold: it says what to do instead.

    Args:
        current: The status that the call has.
        target: The status that it was to have.
        again: How to try a call again that has ended, if that can be done.
        call_id: The id of the call.
        tool: The wire name of the tool.

    >>> print(refused(CallStatus.SUSPENDED, CallStatus.RUNNING, call_id="c1", tool="search"))
    Call 'c1' of tool 'search' is suspended and cannot become running. Reachable from here: \
resuming, cancelled. Take the decision in with `plan.resume(decision)`.
    """
    return LifecycleError(
        f"Call {call_id!r} of tool {tool!r} is {current} and cannot become {target}. "
        f"{_remedy(current, again)}"
    )


def _remedy(current: CallStatus, again: str) -> str:
    if current.is_terminal:
        return f"That status is final: nothing is reachable from it.{again}"
    ways = [each for each in CallStatus if each in TRANSITIONS[current]]
    return f"Reachable from here: {', '.join(ways)}. {DECIDE}"
