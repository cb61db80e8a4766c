"""The laws of a scripted model that is sent a view of a transcript."""

from __future__ import annotations

import pytest

from lutum_py import (
    AssistantTurn,
    CommittedRound,
    Message,
    ToolMetadata,
    ToolResult,
    Transcript,
    TurnRequest,
)
from lutum_py.errors import DialectError
from lutum_py.testing import ScriptedModel
from lutum_py.turns import CompactedPrefix
from lutum_py.typing import TranscriptView
from lutum_py.window import View


def conversation(rounds: int) -> Transcript:
    """An instruction, a question, and rounds of a turn and a result: items 2 and 3, and so on."""
    transcript = Transcript()
    transcript.push(Message("system", "Be brief."))
    transcript.push(Message("user", "q0"))
    for number in range(rounds):
        call = ToolMetadata(id=f"c{number}", name="add", arguments="{}")
        result = ToolResult(id=call.id, name=call.name, arguments=call.arguments, result="1")
        transcript.append_round(CommittedRound(AssistantTurn(tool_calls=[call]), [result]))
    return transcript


def test_a_model_refuses_a_view_that_a_provider_would_refuse() -> None:
    """A view whose front splits a round, or puts a message before its results, is an HTTP 400."""
    transcript = conversation(2)
    model = ScriptedModel([ScriptedModel.text("yes")] * 3)
    split = CompactedPrefix((transcript[3],), (3,), (3,), 4)
    for items in (
        TranscriptView(transcript, 6, (), split),
        TranscriptView(transcript, 6, ((5, Message("user", "no")),)),
    ):
        with pytest.raises(DialectError, check=lambda error: error.where == "items"):
            model.respond_sync(TurnRequest(items=items))
    model.respond_sync(TurnRequest(items=View().of(transcript)))


def test_a_model_refuses_two_calls_with_one_id() -> None:
    """Two calls of one turn with the same id are refused as a provider refuses them."""
    call = ToolMetadata(id="c0", name="add", arguments="{}")
    result = ToolResult(id="c0", name="add", arguments="{}", result="1")
    items = (Message("user", "q0"), AssistantTurn(tool_calls=[call, call]), result, result)
    with pytest.raises(DialectError, check=lambda error: error.where == "items"):
        ScriptedModel([ScriptedModel.text("yes")]).respond_sync(TurnRequest(items=items))
