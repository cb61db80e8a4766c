"""What changes about a call, reported to a listener: each change once, when it has happened.

Nobody depends on it: what a listener raises is logged, and the round goes on. A plan does not keep
events; `plan.calls` shows how things stand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass
from inspect import iscoroutine
from time import time
from typing import Any, Literal, TypeAlias

from .._call.call import AnyToolCall
from .._call.history import iso_time, steps_of_kind
from .._context.suspension import Decision
from .._text.escaping import escape_unprintable, escape_unprintable_json
from .._text.json import compact_json, cut
from .._text.own_code import is_interrupt
from ..errors import MisuseError
from .rows import CallRow, row_at
from .sorted_calls import SortedCalls

CallEventKind: TypeAlias = Literal[
    "decided",
    "suspended",
    "resumed",
    "edited",
    "started",
    "ended",
    "requested",
    "proposed",
    "continued",
]

_logger = logging.getLogger("lutum.call_event")
_LONGEST = 400
_WORDS = {("resumed", "rejected"): "cancelled", ("resumed", "handled"): "decided"}
"""What a log calls a decision after which the call does not go on, by kind and state."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """Report that something changed about a call, and how it stands now.

    Attributes:
        kind: `decided` when hooks have reviewed it, also of a call that cannot be used, or
            `suspended` if it waits for a decision now; `resumed` when a decision was taken in, or
            `edited` if that changed arguments; `started`; `ended`. Of calls within others:
            `requested` when the tool leaves for calls that it requested, `proposed` for each of
            these, and `continued` in place of `started` when it comes back.
        row: The call as it stands now.
        at: When, in ISO 8601 and UTC.
    """

    kind: CallEventKind
    row: CallRow
    at: str

    @property
    def event_type(self) -> str:
        """The kind, as sinks name the kinds of what they take."""
        return f"call_{self.kind}"

    @property
    def message_id(self) -> str:
        """The id of the call."""
        return self.row.id

    def model_dump(self) -> dict[str, Any]:
        """Return the event as plain data."""
        return {"kind": self.kind, "at": self.at, **self.row.model_dump()}


OnEvent: TypeAlias = Callable[[CallEvent], object]
"""A function that receives each change, such as a sink."""


def check_listener(on_event: object) -> None:
    """Refuse what cannot receive events, before anything happens that it would receive.

    Raises:
        MisuseError: It is no function.
    """
    MisuseError.check("A round", "on_event", "a function of an event", on_event, Callable)


def tell_decided(calls: SortedCalls, on_event: OnEvent, ids: Container[str]) -> None:
    """Report what was decided about several calls, in the order of the turn."""
    for call in calls._all():
        if call.id in ids:
            row = row_at(calls, call)
            tell_row(on_event, "suspended" if row.state == "suspended" else "decided", row)


def tell_asked(calls: SortedCalls, on_event: OnEvent, by: AnyToolCall) -> None:
    """Report each call that one requested just now."""
    for each in next(steps_of_kind(by._history, "requested")).detail.calls:
        tell_row(on_event, "proposed", row_at(calls, each))


def tell_resumed(calls: SortedCalls, decision: Decision, became: object, on_event: OnEvent) -> None:
    """Report a decision that was taken in, if it was not taken in before."""
    call = None if became is None else calls._call(decision.call_id)
    if call is not None:
        tell_row(on_event, "resumed" if decision.edit is None else "edited", row_at(calls, call))


def tell_row(on_event: OnEvent, kind: CallEventKind, row: CallRow) -> None:
    """Report a call whose row is known; the event is of the moment of its last step."""
    steps = () if row._history is None else row._history.steps
    at = iso_time(steps[-1].at if steps else time())
    tell_event(on_event, CallEvent(kind, row, at))


def tell_event(on_event: OnEvent, event: CallEvent) -> None:
    """Report what happened; what a listener raises is logged, unless it is an interrupt."""
    try:
        answer = on_event(event)
        # Nobody would await it here, and Python would warn of that long afterwards, at another
        # place.
        if iscoroutine(answer):
            answer.close()
            raise TypeError("a listener is not an async function: hand events to an `AsyncSink`")
    except BaseException as error:
        if is_interrupt(error):
            raise
        _logger.exception(
            "A listener of call events raised at %s of call %s.",
            event.event_type,
            escape_unprintable(event.message_id),
        )


def log_events(logger: logging.Logger | str = "lutum.calls", level: int = logging.INFO) -> OnEvent:
    """Make a listener that writes one line an event, with the final arguments.

    A line begins with the kind of the event. If a decision does not let a call go on, it begins
    with `cancelled`, or with `decided` if the decision's result is taken for the tool's.

    Each record carries `event_type`, `tool_call_id` and `event`, the event as plain data.

    Args:
        logger: A logger or its name.
        level: The level of the records.

    Example:
        >>> on_event = log_events("app.calls")
    """
    target = logging.getLogger(logger) if isinstance(logger, str) else logger

    def log(event: CallEvent) -> None:
        if not target.isEnabledFor(level):
            return
        row = event.row
        shown = row.proposed if row.arguments is None else compact_json(row.arguments)
        word = _WORDS.get((event.kind, row.state), event.kind)
        status = None if row.result is None else row.result.status
        came_to = "" if status in (None, word) else f" -> {status}"
        # Whoever approved a call neither started nor ended it.
        by = ", approved by" if event.kind in ("started", "continued", "ended") else " by"
        because = f"{by} {row.by}" if row.by else ""
        because += f": {row.reason}" if row.reason else ""
        target.log(
            level,
            "%s %s %s (%s)%s%s",
            word,
            escape_unprintable(row.tool),
            escape_unprintable_json(cut(shown, _LONGEST)),
            escape_unprintable(row.id),
            came_to,
            escape_unprintable(cut(because, _LONGEST)),
            extra={
                "event_type": event.event_type,
                "tool_call_id": escape_unprintable(row.id),
                "event": event.model_dump(),
            },
        )

    return log
