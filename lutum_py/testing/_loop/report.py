"""Show how a loop failed: what the model said, what went wrong, what was left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..._declare.offer import Available
from ..._round.round import NeedsTools
from ..._text.json import compact_json, cut
from ..._toolset import Toolset
from ..._transcript.assistant import AssistantTurn
from ..._transcript.display import line_of
from ..._transcript.message import Message
from ..._transcript.result import ToolResult
from ...errors import DuplicateToolCallIdError

FaultKind: TypeAlias = Literal[
    "never_asked",
    "raised",
    "endless",
    "invalid_request",
    "invalid_transcript",
    "lost_call",
    "answered_twice",
    "altered",
    "invented",
    "swallowed_duplicate",
]
"""What a loop can do wrong."""


@dataclass(frozen=True, slots=True)
class LoopFault:
    """One thing that a loop did wrong.

    Attributes:
        kind: A stable word for it, as in `lost_call`.
        text: What happened and what to do about it.
    """

    kind: FaultKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class LoopFailure(AssertionError):
    """A loop did something wrong; the text shows the shortest script that makes it do so.

    Attributes:
        faults: What it did wrong.
        script: The turns of the model, to reproduce it with.
    """

    __module__ = "lutum_py.testing"  # where it is imported from, which pytest shows

    def __init__(
        self, message: str, *, faults: Iterable[LoopFault], script: Sequence[AssistantTurn]
    ) -> None:
        super().__init__(message)
        self.faults: tuple[LoopFault, ...] = tuple(faults)
        self.script: tuple[AssistantTurn, ...] = tuple(script)


_WIDTH = 160
_SHOWN = 20


def report(
    toolset: type[Toolset],
    available: Available,
    script: Sequence[AssistantTurn],
    faults: Sequence[LoopFault],
    left: Sequence[object],
    *,
    always: bool,
) -> str:
    """Write the message of a failure.

    Args:
        toolset: The tools of the loop.
        available: Which of them it offers.
        script: The turns that the model gave.
        faults: What went wrong.
        left: The conversation afterwards.
        always: Whether the loop failed again when it was run with the same script.
    """
    sometimes = "" if always else " (not each time: run again with the same turns, it did not fail)"
    said = [line for turn in script for line in _turn_lines(toolset, available, turn)]
    lines = [
        f"The loop went wrong{sometimes}:",
        *(f"- {fault}" for fault in faults),
        "The model said:",
        "    ScriptedModel(",
        "        [",
        *(f"            {line}" for line in said),
        "        ]",
        "    )",
        "The conversation afterwards:",
        *(f"    {at}. {line}" for at, line in enumerate(_left_lines(left), 1)),
    ]
    return "\n".join(lines)


def _turn_lines(toolset: type[Toolset], available: Available, turn: AssistantTurn) -> Iterator[str]:
    """Write a turn as the code that makes it, with what the toolset makes of each call."""
    if not turn.tool_calls:
        yield f"ScriptedModel.text({turn.text!r}),"
        return
    remarks = _remarks(toolset, available, turn)
    yield "ScriptedModel.tool_calls("
    for call, remark in zip(turn.tool_calls, remarks, strict=True):
        yield f"    ({call.id!r}, {call.name!r}, {call.arguments!r}),  # {remark}"
    if turn.text:
        yield f"    text={turn.text!r},"
    if turn.finish_reason != "tool_calls":
        yield f"    finish_reason={turn.finish_reason!r},"
    yield "),"


def _remarks(toolset: type[Toolset], available: Available, turn: AssistantTurn) -> list[str]:
    try:
        outcome = toolset.read_turn(turn, available)
    except DuplicateToolCallIdError as error:
        return [
            "another call has this id" if call.id == error.call_id else ""
            for call in turn.tool_calls
        ]
    assert isinstance(outcome, NeedsTools)  # it has calls
    issues = outcome.round.recoverable_tool_call_issues
    outcome.round.discard()
    reasons = {issue.metadata.id: issue.reason for issue in issues}
    return [reasons.get(call.id, "fits") for call in turn.tool_calls]


def _left_lines(left: Iterable[object]) -> Iterator[str]:
    items = list(left)
    for item in items[:_SHOWN]:
        if isinstance(item, Message | AssistantTurn | ToolResult):
            line = line_of(item)
        else:
            line = _plain(item)
        yield cut(" ".join(line.split()), _WIDTH)
    if len(items) > _SHOWN:
        yield f"and {len(items) - _SHOWN} more"


def _plain(item: object) -> str:
    try:
        return compact_json(item)
    except (TypeError, ValueError):
        return repr(item)
