"""Find the final answer that a conversation ends with."""

from __future__ import annotations

from typing import Any

from .._declare.answer import Answer
from .._transcript.assistant import AssistantTurn
from .._transcript.committed import seal
from .._transcript.result import ToolResult
from .._transcript.transcript import Transcript
from .read_answer import answer_calls, missing_answer
from .read_turn import Finished, TextResult, cut_off_in

__all__ = ["read_finished"]


def read_finished(transcript: Transcript, answer: Answer[Any] | None) -> Finished[Any] | None:
    """Read the last turn as when it came; see `Session.finished`."""
    place = len(transcript)
    while place and isinstance(transcript[place - 1], ToolResult):
        place -= 1
    turn = transcript[place - 1] if place else None
    if not isinstance(turn, AssistantTurn):
        return None
    results = tuple(each for each in transcript[place:] if isinstance(each, ToolResult))
    if not results:
        value, missing = (..., None) if answer is None else missing_answer(turn, answer, False)
        return Finished(TextResult(turn, value)) if missing is None else None
    if answer is None:
        return None
    found = answer_calls(turn, answer, cut_off_in(turn) if turn.is_truncated else None, False)
    if found.result is None or found.result not in results:
        return None
    return Finished(TextResult(turn, found.value, seal(turn, results)))
