"""A turn of one model on its way to another."""

from __future__ import annotations

from typing import Any

from lutum_py import AssistantTurn, Message, TurnRequest
from lutum_py.turns import TranscriptItem

from .plain import done


def answers(turn: AssistantTurn) -> list[TranscriptItem]:
    """A conversation that goes on behind a turn."""
    results = [done(call) for call in turn.tool_calls]
    return [Message("user", "Go"), turn, *results, Message("user", "On")]


def sent(dialect: Any, turn: AssistantTurn, model: Any) -> Any:
    """The body of a request to a model, of a conversation with a turn."""
    return dialect.encode_request(TurnRequest(items=answers(turn)), model=model)
