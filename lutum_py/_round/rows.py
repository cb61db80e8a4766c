"""The calls of a plan as plain rows: what the model asked for, and what became of it.

A row is a fold of a call's line: where it stands, who decided that last, why, and what it came to.
Displays are made of rows, also those of a saved text, which has lines and no calls.

All of it is to be looked at, so what is secret in arguments is masked, and what could not be read
stands there by its size alone where something secret may be in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .._call.call import AnyToolCall
from .._call.line import CallStep, Kept, Step, answers_in, end_of, moment, said_of, wait_of
from .._call.outcomes import rejected_call
from .._text.json import size_of
from .._text.on_demand import ONCE
from .._transcript.assistant import AssistantTurn, ServerToolItem, callers_of
from .._transcript.metadata import ToolMetadata
from .._transcript.result import ToolResult
from .sorted_calls import CallRowState, SortedCalls, issue_in, outer_of, result_in, state_in


@dataclass(frozen=True, slots=True)
class Within:
    """Name a call that another stands within, since it asked for it; or a provider's program.

    Attributes:
        id: The id of the call, or of the item that the provider runs.
        tool: The wire name of its tool.
        arguments: Its final arguments as plain data, secrets masked. Those of a provider's program
            are what the model gave it, as in `{"code": ...}`, and None where nobody has them: it
            was begun in an earlier turn, and the round was loaded without its conversation.
    """

    id: str
    tool: str
    arguments: Any = field(hash=False)


class Outer(NamedTuple):
    """What a call stands within.

    Attributes:
        calls: The calls of the plan, the outermost first.
        id: The id of the call of the turn that it is, or stands within.
        turn: The turn.
        kept: What its calls share, the transcript that it stands behind with it.
    """

    calls: tuple[AnyToolCall, ...]
    id: str
    turn: AssistantTurn
    kept: Kept

    @classmethod
    def of(cls, calls: SortedCalls, call_id: str) -> Outer:
        """Find what a call of a plan stands within."""
        outer = outer_of(calls, call_id)
        state = calls._state
        return cls(outer, outer[0].id if outer else call_id, state.turn, state._kept)

    def named(self) -> tuple[Within, ...]:
        """Name it all, the outermost first."""
        caller = callers_of(self.turn).get(self.id)
        program = () if caller is None else (self._program(caller),)
        named = (
            Within(each.id, each.name, each.spec.shown(each._written())) for each in self.calls
        )
        return (*program, *named)

    def _program(self, caller: str) -> Within:
        # A program that calls one tool after the other goes on through several turns.
        for turn in (self.turn, *reversed(self.kept.transcript or ())):
            for item in turn.items if isinstance(turn, AssistantTurn) else ():
                made = item.made_calls(caller) if isinstance(item, ServerToolItem) else None
                if made is not None:
                    return Within(caller, *made)
        return Within(caller, "program", None)


# A row is made for each event, and few listeners look at its steps. To mask the arguments of each
# step would cost more than all else in the row, so that waits until somebody asks.
class _Line(NamedTuple):
    """The steps of a call as they were when a row was made, shown when somebody asks.

    Attributes:
        steps: The steps.
        call: The call; None where it could not be read.
        metadata: What the model sent.
        outer: What it stands within.
    """

    steps: tuple[Step, ...]
    call: AnyToolCall | None
    metadata: ToolMetadata
    outer: Outer | None = None

    def shown(self) -> tuple[CallStep, ...]:
        if self.call is not None:
            return tuple(self.call._shown_step(step) for step in self.steps)
        id, tool = self.metadata.id, self.metadata.name
        return tuple(
            CallStep(
                *(id, tool, step.kind, moment(step.at), step.by, step.phase, step.said),
                *(step.reason, None, step.digest, None),
            )
            for step in self.steps
        )


def duration_of(steps: tuple[Step, ...]) -> float | None:
    """Add up how long a tool ran since the last try was made: from each beginning to its end.

    Returns:
        Seconds; None where nothing ran, it runs, was left, or lacks a time.
    """
    # `begun (3 s) suspended … answered begun (2 s) ended` is 5 s: the time that a person took to
    # answer is none of the tool's.
    total: float | None = None
    begun: Step | None = None
    is_known = True
    for step in steps:
        if step.kind == "again":
            total, begun, is_known = None, None, True
        elif step.kind == "begun":
            begun = step
        elif step.kind == "left":
            is_known = False
        elif begun is not None and step.kind in ("suspended", "asks", "ended"):
            if begun.at is None or step.at is None:
                is_known = False
            else:
                total = (total or 0.0) + step.at - begun.at
            begun = None
    return total if is_known and begun is None else None


@dataclass(frozen=True, slots=True)
class CallRow:
    """Say of one call what was asked, who decided what about it, and what it came to.

    Attributes:
        id: The id of the call.
        tool: The wire name of the tool.
        proposed: The arguments as the model wrote them, with secrets masked; their size alone
            where the places of secrets cannot be told, as in what does not fit.
        arguments: The final arguments as plain data, secrets masked; None where there are none,
            because the call could not be read.
        state: Where the plan has the call; one that runs is `pending`.
        by: Who decided last: the name of a hook, a gate or a person; None where nobody did.
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
    _line: _Line | None = field(default=None, compare=False, repr=False)

    @property
    def steps(self) -> tuple[CallStep, ...]:
        """What happened to the call, in order; no part of equality, nor of `model_dump`."""
        return () if self._line is None else self._line.shown()

    @property
    def duration(self) -> float | None:
        """How long the tool ran in the last try, in seconds; None where it did not, or goes on."""
        return None if self._line is None else duration_of(self._line.steps)

    @property
    def within(self) -> tuple[Within, ...]:
        """What it stands within, the outermost first: see `plan.within`.

        As `steps`, no part of equality, nor of `model_dump`.
        """
        outer = None if self._line is None else self._line.outer
        return () if outer is None else outer.named()

    def model_dump(self) -> dict[str, Any]:
        """Give the row as plain data; of a result, its status and what the model reads of it."""
        dumped = {name: getattr(self, name) for name in self.__slots__ if name != "_line"}
        if self.result is not None:
            dumped["result"] = {"status": self.result.status, "text": self.result.model_text}
        return dumped


def rows_of(calls: SortedCalls) -> tuple[CallRow, ...]:
    """Give a row for each call of a round, in the order of the turn."""
    with ONCE:  # meanwhile another thread may move a call
        seen = [(asked, calls._line_of(asked.id)) for asked in calls._state._calls_of_all()]
    return tuple(_row(calls, *each) for each in seen)


def row_at(calls: SortedCalls, asked: ToolMetadata) -> CallRow:
    """Give the row of one call of a plan."""
    return _row(calls, asked, calls._line_of(asked.id))


def _row(calls: SortedCalls, asked: ToolMetadata, line: tuple[Step, ...]) -> CallRow:
    call, outer = calls._call(asked.id), Outer.of(calls, asked.id)
    if call is not None:
        return row_of_call(call, line=line, outer=outer)
    # Where the places of secrets cannot be told, as in what does not fit, there is its size alone.
    selector = calls.toolset._by_name.get(asked.name)
    text = asked.arguments
    proposed = size_of(text) if selector is None else selector.spec.shown_text(text, fits=False)
    return row_of_line(asked, line, proposed, outer=outer)


def row_of_call(
    call: AnyToolCall,
    state: CallRowState | None = None,
    result: ToolResult | None = None,
    *,
    line: tuple[Step, ...] | None = None,
    outer: Outer | None = None,
) -> CallRow:
    """Give the row of a call.

    Args:
        call: The call.
        state: Where the plan has it, where that plan is elsewhere.
        result: Its result, where that plan was told of it.
        line: Its line as it was at some moment; by default as it is.
        outer: What it stands within.
    """
    line = call._line if line is None else line
    proposed = call.spec.shown_text(call.metadata.arguments)
    arguments = call.spec.shown(call._written())
    made = row_of_line(
        call.metadata, line, proposed, arguments, call=call, state=state, outer=outer
    )
    if made.state == "rejected":
        end = end_of(line)
        assert end is not None
        result = rejected_call(call, end).result
    return made if result is None else replace(made, result=result)


def row_of_line(
    asked: ToolMetadata,
    line: tuple[Step, ...],
    proposed: str,
    arguments: Any = None,
    *,
    call: AnyToolCall | None = None,
    state: CallRowState | None = None,
    outer: Outer | None = None,
) -> CallRow:
    """Give the row that a line tells; see `CallRow`.

    Args:
        asked: What the model sent.
        line: The line.
        proposed: The arguments as the model wrote them, as they may be shown.
        arguments: The final ones, as they may be shown.
        call: The call, where it could be read and its tool is known.
        state: Where the plan has it, where that plan is elsewhere.
        outer: What it stands within.
    """
    state, issue = state or state_in(line), issue_in(line)
    by, reason, result = *_why_in(line, state), result_in(line)
    if state == "unusable" and issue is not None:
        reason, result = issue.text, issue.result
    kept = _Line(line, call, asked, outer)
    return CallRow(asked.id, asked.name, proposed, arguments, state, by, reason, result, kept)


def _why_in(line: tuple[Step, ...], state: CallRowState) -> tuple[str | None, str | None]:
    """Say who decided last, and why; of a call that waits, who asks, and what."""
    if state == "suspended":
        wait = wait_of(line)
        assert wait is not None
        return wait.by, wait.detail.message or wait.detail.action
    end = end_of(line)
    if end is not None and state in ("handled", "rejected"):
        if end.phase == "decision" and state == "handled":  # its result is the answer
            return end.by, next(said_of(line, "answered")).detail.reason
        return end.by, end.reason
    decision = next((each.decision for each in answers_in(line)), None)
    return (None, None) if decision is None else (decision.decider, decision.reason)
