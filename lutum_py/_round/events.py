"""The calls of a plan as plain rows: what the model requested, and what became of it.

A row is a fold of a call's history: where it stands, who decided that last, why, and its outcome.
Displays are made of rows, also those of a saved text, which has histories and no calls.

All of it is to be looked at, so what is secret in arguments is masked, and what could not be read
is there by its size alone where something secret may be in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from inspect import iscoroutine
from time import time
from typing import Any, Literal, NamedTuple, TypeAlias

from .._call.base_call import CallRecord
from .._call.call_state import DecodedCall
from .._call.history import CallRound, CallRowState, CallStep, History, Step, iso_time
from .._context.suspension import Decision
from .._text.escaping import escape_unprintable, is_interrupt
from .._text.json import size_of
from .._toolsets.members import members_of
from .._transcript.assistant import AssistantTurn, ServerToolItem
from .._transcript.result import ToolResult
from ..errors import MisuseError
from .sorted_calls import RoundState


@dataclass(frozen=True, slots=True)
class Ancestor:
    """Name a call that another is within, since it requested it; or a provider's program.

    Attributes:
        id: The id of the call, or of the item that the provider runs.
        tool: The wire name of its tool.
        arguments: Its final arguments as plain data, secrets masked. Those of a provider's program
            are what the model gave it, as in `{"code": ...}`, and None if nobody has them: it was
            started in an earlier turn, and the round was loaded without its conversation.
    """

    id: str
    tool: str
    arguments: Any = field(hash=False)


class Ancestry(NamedTuple):
    """The calls around a call, if others requested it.

    Attributes:
        calls: The calls of the plan, the outermost first.
        caller: The id of the provider's program that made the outermost one, if one did.
        turn: The turn.
        round: What its calls share, such as the transcript that it was opened behind.
    """

    calls: tuple[DecodedCall, ...]
    caller: str | None
    turn: AssistantTurn
    round: CallRound

    @classmethod
    def of(cls, state: RoundState, call_id: str) -> Ancestry:
        """Find what a call of a plan is within."""
        outer = state.outer_of(call_id)
        caller = state.call_round.callers.get(outer[0].id if outer else call_id)
        return cls(outer, caller, state.turn, state.call_round)

    def named(self) -> tuple[Ancestor, ...]:
        """Name it all, the outermost first."""
        program = () if self.caller is None else (self._program(self.caller),)
        named = (Ancestor(each.id, each.name, each.shown) for each in self.calls)
        return (*program, *named)

    def _program(self, caller: str) -> Ancestor:
        # A program that calls one tool after the other goes on through several turns.
        for turn in (self.turn, *reversed(self.round.transcript or ())):
            for item in turn.items if isinstance(turn, AssistantTurn) else ():
                made = item.made_calls(caller) if isinstance(item, ServerToolItem) else None
                if made is not None:
                    return Ancestor(caller, *made)
        return Ancestor(caller, "program", None)


# A row is made for each event, and few listeners look at its steps. To mask the arguments of each
# step would cost more than all else in the row, so that waits until somebody asks.
class _History(NamedTuple):
    """The steps of a call as they were when a row was made, shown when somebody asks.

    Attributes:
        steps: The steps.
        call: The call.
        outer: What it is within.
    """

    steps: History
    call: CallRecord
    outer: Ancestry | None = None

    def shown(self) -> tuple[CallStep, ...]:
        return tuple(self.call.shown_step(step) for step in self.steps)


def duration_of(steps: History) -> float | None:
    """Add up how long a tool ran since the last try was made: from each start to its end.

    Returns:
        Seconds; None if nothing ran, it still runs or was left, or a time is missing.
    """
    # `started (3 s) suspended … answered started (2 s) ended` is 5 s: the time that a person took
    # to answer is none of the tool's. It is a difference of times as they are shown and saved, in
    # whole microseconds, so that a plan that is loaded says the same.
    total: timedelta | None = None
    started: Step | None = None
    is_known = True
    for step in steps:
        if step.kind == "retried":
            total, started, is_known = None, None, True
        elif step.kind == "started":
            started = step
        elif step.kind == "abandoned":
            is_known = False
        elif started is not None and step.kind in ("suspended", "requested", "ended"):
            first, last = (datetime.fromtimestamp(at, UTC) for at in (started.at, step.at))
            total = (total or timedelta()) + (last - first)
            started = None
    return None if total is None or not is_known or started is not None else total.total_seconds()


@dataclass(frozen=True, slots=True)
class CallRow:
    """Show of one call what was proposed, who decided what about it, and its outcome.

    Attributes:
        id: The id of the call.
        tool: The wire name of the tool.
        proposed: The arguments as the model wrote them, with secrets masked; their size alone
            if the places of secrets cannot be told, as in what does not fit.
        arguments: The final arguments as plain data, secrets masked; None if there are none,
            because the call could not be read.
        state: The list of the plan that has the call; a call that runs is `pending`.
        by: Who decided last: the name of a hook, a gate or a person; None if nobody did.
        reason: Why, in their words; for a call that waits, what is asked.
        result: Its result, if the plan has it.
        steps: What happened to it, in order.
    """

    id: str
    tool: str
    proposed: str
    arguments: Any = field(hash=False)
    state: CallRowState
    by: str | None = None
    reason: str | None = None
    result: ToolResult | None = None
    _history: _History | None = field(default=None, compare=False, repr=False)

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """What happened to the call, in order; no part of equality, nor of `model_dump`."""
        return () if self._history is None else self._history.shown()

    @property
    def duration(self) -> float | None:
        """How long the tool ran in the last try, in seconds; None if it did not, or still runs."""
        return None if self._history is None else duration_of(self._history.steps)

    @property
    def ancestors(self) -> tuple[Ancestor, ...]:
        """The calls that it is within, the outermost first: see `plan.ancestors`.

        As `steps`, no part of equality, nor of `model_dump`.
        """
        outer = None if self._history is None else self._history.outer
        return () if outer is None else outer.named()

    def model_dump(self) -> dict[str, Any]:
        """Return the row as plain data; of a result, its status and what the model reads of it."""
        dumped = {name: getattr(self, name) for name in self.__slots__ if name != "_history"}
        if self.result is not None:
            dumped["result"] = {"status": self.result.status, "text": self.result.model_text}
        return dumped


def rows_of(state: RoundState) -> tuple[CallRow, ...]:
    """Return a row for each call of a round, in the order of the turn."""
    seen = [(call, call.history) for call in state.all_calls()]
    return tuple(row_at(state, call, history) for call, history in seen)


def row_at(state: RoundState, call: CallRecord, history: History | None = None) -> CallRow:
    """Return the row of one call of a plan, by its history as it is or was."""
    proposed = ""
    if not isinstance(call, DecodedCall):
        # If the places of secrets cannot be told, as in what does not fit, its size alone is shown.
        selector, text = members_of(state.toolset).by_name.get(call.name), call.metadata.arguments
        proposed = size_of(text) if selector is None else selector.spec.shown_text(text, fits=False)
    return row_of(call, history=history, outer=Ancestry.of(state, call.id), proposed=proposed)


def row_of(
    call: CallRecord,
    *,
    history: History | None = None,
    outer: Ancestry | None = None,
    proposed: str = "",
) -> CallRow:
    """Return the row of a call.

    Args:
        call: The call.
        history: Its history as it was at some moment; by default as it is.
        outer: What it is within.
        proposed: Its arguments as the model wrote them, as they may be shown, if the call could not
            be read or its tool is not here.
    """
    history, arguments = call.history if history is None else history, None
    if isinstance(call, DecodedCall):
        proposed = call.spec.shown_text(call.metadata.arguments)
        arguments = call.shown
    state, issue = history.state, history.issue
    by, reason = _why_in(history, state)
    if state == "unusable" and issue is not None:
        reason = issue.text
    result = call.known_result(history)
    seen = _History(history, call, outer)
    return CallRow(call.id, call.name, proposed, arguments, state, by, reason, result, seen)


def _why_in(history: History, state: CallRowState) -> tuple[str | None, str | None]:
    """Say who decided last, and why; of a call that waits, who asks, and what."""
    if state == "suspended":
        wait = history.wait
        assert wait is not None
        return wait.by, wait.detail.message or wait.detail.action
    end = history.end
    if end is not None and state in ("handled", "rejected"):
        if end.phase == "decision" and state == "handled":  # its result is the answer
            return end.by, next(history.of_kind("decided")).detail.reason
        return end.by, end.reason
    decision = next((each.decision for each in history.answers), None)
    return (None, None) if decision is None else (decision.decider, decision.reason)


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

    def send(self, on_event: OnEvent) -> None:
        """Hand the event to a listener; what it raises is logged, unless it is an interrupt."""
        try:
            answer = on_event(self)
            # Nobody would await it here, and Python would warn of that long afterwards, at another
            # place.
            if iscoroutine(answer):
                answer.close()
                raise TypeError(
                    "a listener is not an async function: hand events to an `AsyncSink`"
                )
        except BaseException as error:
            if is_interrupt(error):
                raise
            _logger.exception(
                "A listener of call events raised at %s of call %s.",
                self.event_type,
                escape_unprintable(self.message_id),
            )


OnEvent: TypeAlias = Callable[[CallEvent], object]
"""A function that receives each change, such as a sink."""


def check_listener(on_event: object) -> None:
    """Refuse what cannot receive events, before anything happens that it would receive.

    Raises:
        MisuseError: It is no function.
    """
    MisuseError.check("A round", "on_event", "a function of an event", on_event, Callable)


def tell_decided(state: RoundState, on_event: OnEvent, ids: Container[str]) -> None:
    """Report what was decided about several calls, in the order of the turn."""
    for call in state.all_calls():
        if call.id in ids:
            row = row_at(state, call)
            tell_row(on_event, "suspended" if row.state == "suspended" else "decided", row)


def notify(state: RoundState, on_event: OnEvent, kind: CallEventKind, call: CallRecord) -> None:
    """Report how a call stands; see `ToolRoundPlan.notify`."""
    asked = next(call.history.of_kind("requested"), None)
    if kind == "started" and asked is not None:
        kind = "continued"
    tell_row(on_event, kind, row_at(state, call))
    if kind == "requested" and asked is not None:
        for each in asked.detail.calls:
            notify(state, on_event, "proposed", each)


def tell_resumed(state: RoundState, decision: Decision, became: object, on_event: OnEvent) -> None:
    """Report a decision that was taken in, if it was not taken in before."""
    call = None if became is None else state.find_decoded(decision.call_id)
    if call is not None:
        tell_row(on_event, "resumed" if decision.edit is None else "edited", row_at(state, call))


def tell_row(on_event: OnEvent, kind: CallEventKind, row: CallRow) -> None:
    """Report a call whose row is known; the event is of the moment of its last step."""
    steps = () if row._history is None else row._history.steps
    at = iso_time(steps[-1].at if steps else time())
    CallEvent(kind, row, at).send(on_event)
