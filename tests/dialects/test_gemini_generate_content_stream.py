"""The API generateContent: what its streams come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import Usage
from lutum_py.dialects import gemini_generate_content as dialect
from lutum_py.errors import DialectError
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from tests.cases import over

from .gemini_wire import CALL, response
from .mutations import deep


def chunk(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


def fed(*events: Any) -> tuple[list[Any], dialect.StreamDecoder]:
    decoder = dialect.StreamDecoder()
    return [event for each in events for event in decoder.feed(each)], decoder


def test_a_stream_becomes_the_turn_of_its_response() -> None:
    """Chunks are reported as they come, and the turn is that of the whole response."""
    events, decoder = fed(
        {"responseId": "r1", "modelVersion": "gemini", **chunk({"text": "H", "thought": True})},
        chunk({"text": "m", "thought": True}, {"text": "He"}),
        json.dumps({**chunk({"text": "llo"}), "usageMetadata": {"promptTokenCount": 1}}),
        chunk({"text": "", "thoughtSignature": "eA=="}),
        chunk(CALL, {"executableCode": {"code": "1"}}),
        {"candidates": [{"index": 1, **chunk({"text": "other"})["candidates"][0]}]},
        {"candidates": [{"finishReason": "STOP", "groundingMetadata": {"a": 1}}]},
        {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}, "unknown": 1},
    )
    call = dialect.decode(response(CALL)).tool_calls[0]
    assert events == [
        ReasoningDelta("H"),
        ReasoningDelta("m"),
        TextDelta("He"),
        TextDelta("llo"),
        UsageReported(Usage(input_tokens=1)),
        CallStarted(0, call.id, "echo"),
        ArgumentsDelta(0, call.arguments, {"b_c": None, "a": 1}),
        CallCompleted(0, call),
        UsageReported(Usage(input_tokens=1, output_tokens=2)),
    ]
    turn = decoder.finish()
    whole = response(
        {"text": "Hm", "thought": True},
        {"text": "Hello"},
        {"text": "", "thoughtSignature": "eA=="},
        CALL,
        {"executableCode": {"code": "1"}},
        groundingMetadata={"a": 1},
    )
    whole["candidates"] += chunk({"text": "other"}, index=1)["candidates"]
    whole |= {
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
        "unknown": 1,
    }
    assert turn == dialect.decode(whole)
    assert decoder.close() == []


def test_a_stream_of_a_blocked_prompt_is_whole() -> None:
    """A stream that only says that the prompt was blocked gives the refusal."""
    _, decoder = fed({"promptFeedback": {"blockReason": "SAFETY"}})
    turn = decoder.finish()
    assert turn.finish_reason == "SAFETY"
    _, again = fed({"promptFeedback": {"blockReason": "SAFETY"}})
    assert again.close() == [TurnFinished(turn)]


@over(
    "events, where, problem",
    [
        ([], "before the first event", "breaks off"),
        ([chunk({"text": "a"})], "after event 0", "breaks off"),
        ([{"promptFeedback": {}}], "", "has no candidates"),
        ([{"error": {"message": "Overloaded"}}], "event 0.error", "Overloaded"),
        (["["], "event 0", "not JSON"),
    ],
)
def test_a_broken_stream_is_an_error(events: list[Any], where: str, problem: str) -> None:
    """A stream that breaks says what is wrong and where, and gives no turn."""
    with pytest.raises(DialectError, match=problem) as caught:
        fed(*events)[1].finish()
    assert caught.value.where == where


def test_a_broken_stream_holds_what_was_read() -> None:
    """The turn on the error has the text and the calls that came, and no payload."""
    _, decoder = fed({"responseId": "r1", "modelVersion": "gemini", **chunk({"text": "Hi"}, CALL)})
    with pytest.raises(DialectError) as caught:
        decoder.finish()
    turn: Any = caught.value.turn
    assert (turn.text, turn.model, turn.request_id) == ("Hi", "gemini", "r1")
    assert turn.tool_calls == dialect.decode(response(CALL)).tool_calls
    assert turn.payload is None


@pytest.mark.parametrize("first", [0, 1])
def test_only_the_first_candidate_that_speaks_is_told(first: int) -> None:
    """Text of another candidate than the first is kept in the payload, and told by no event."""

    def said(index: int, text: str) -> dict[str, Any]:
        candidate = {"content": {"parts": [{"text": text}]}, "index": index, "finishReason": "STOP"}
        return {"candidates": [candidate]}

    told, decoder = fed(said(first, "a"), said(1 - first, "b"), said(first, "c"))
    assert told == [TextDelta("a"), TextDelta("c")]
    turn = decoder.finish()
    assert turn.text == "ac"
    assert turn == dialect.decode(turn.payload)


def test_what_stands_beside_the_parts_of_a_candidate_is_kept() -> None:
    """Grounding beside a text stands in the payload, by the name that the API has for it."""
    event = chunk({"text": "H"})
    event["candidates"][0]["grounding_metadata"] = {"web_search_queries": ["h"]}
    _, decoder = fed(event, chunk({"text": "i"}, finishReason="STOP"))
    turn = decoder.finish()
    kept = turn.payload["candidates"][0]
    assert kept["groundingMetadata"] == {"webSearchQueries": ["h"]}
    assert turn.text == "Hi"


def test_of_an_event_that_cannot_be_read_nothing_is_kept() -> None:
    """Text beside what is nested too deeply is told by no event, and stands in no turn."""
    decoder = dialect.StreamDecoder()
    decoder.feed(chunk({"text": "H"}))
    with pytest.raises(DialectError, check=lambda error: error.where == "event 1") as caught:
        decoder.feed({**chunk({"text": "i"}), "usageMetadata": {"odd": deep(50_000)}})
    turn: Any = caught.value.turn
    assert turn.text == "H"
