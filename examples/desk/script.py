"""The scripted server: what a model says at each point of the conversation, whoever asks again."""

from __future__ import annotations

from said import SAID

from lutum_py import AssistantTurn, Usage
from lutum_py.testing import ScriptedModel


def costed(turn: AssistantTurn) -> AssistantTurn:
    """Let a turn say what it cost, as a provider's does."""
    usage = Usage(input_tokens=200, output_tokens=40)
    return AssistantTurn(items=turn.items, finish_reason=turn.finish_reason, usage=usage)


TURNS = [costed(ScriptedModel.tool_calls(*calls)) for calls in SAID]


# By turn, so that a request that is made again, here or in another process, gets the same.
MODEL = ScriptedModel(TURNS, by_turn=True)
