"""Responses: a stream, and what hosts get wrong in it."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import AssistantTurn, Usage
from lutum_py.dialects import openai_responses as dialect
from lutum_py.errors import DialectError
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TurnFinished,
    UsageReported,
)
from lutum_py.turns import ReasoningItem, TextItem
from tests.cases import over

from .responses_wire import call, message, reasoning, response, text


def delta(kind: str, said: str, at: int | None = 0, **fields: Any) -> dict[str, Any]:
    index = {} if at is None else {"output_index": at}
    return {"type": f"response.{kind}.delta", **index, "delta": said, **fields}


def added(item: dict[str, Any], at: int) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def done(item: dict[str, Any], at: int) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def ended(whole: dict[str, Any], kind: str = "completed") -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": whole}


def test_a_stream_gives_what_a_whole_response_gives() -> None:
    """Its events tell the turn as it comes in, and its turn is that of the whole response."""
    items = [
        reasoning(summary=[{"text": "One."}, {"text": "Two."}]),
        message(text("Well."), {"type": "refusal", "refusal": "No."}),
        call("c1", '{"text":"a"}', id="fc_1"),
        {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"},
    ]
    whole = response(*items, usage={"input_tokens": 1, "output_tokens": 2})
    decoder = dialect.StreamDecoder()
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0}
    events = [
        event
        for each in (
            {"type": "response.created", "response": {"id": "r1", "output": []}},
            added(reasoning(), 0),
            {**part, "summary_index": 0},
            delta("reasoning_summary_text", "One."),
            {**part, "summary_index": 1},
            delta("reasoning_summary_text", "Two."),
            done(items[0], 0),
            {"type": "response.some_new_event", "output_index": 1},
            delta("output_text", "Well.", 1),
            delta("output_text", "", 1),
            delta("refusal", "No.", 1),
            done(items[1], 1),
            added(call("c1", ""), 2),
            delta("function_call_arguments", '{"text"', 2),
            delta("function_call_arguments", "", 2),
            delta("function_call_arguments", ':"a"}', None),
            done(items[2], 2),
            added({**items[3], "input": ""}, 3),
            delta("custom_tool_call_input", "ls", 3),
            done(items[3], 3),
            ended(whole),
            delta("output_text", "late", 1),
        )
        for event in decoder.feed(each)
    ]
    turn = decoder.finish()
    first, second = turn.tool_calls
    assert events == [
        ReasoningDelta("One."),
        ReasoningDelta("\n\n"),
        ReasoningDelta("Two."),
        TextDelta("Well."),
        RefusalDelta("No."),
        CallStarted(0, "c1", "echo"),
        ArgumentsDelta(0, '{"text"', {}),
        ArgumentsDelta(0, ':"a"}', {"text": "a"}),
        CallCompleted(0, first),
        CallStarted(1, "c2", "sh"),
        ArgumentsDelta(1, "ls", {}),
        CallCompleted(1, second),
        UsageReported(Usage(input_tokens=1, output_tokens=2)),
        TurnFinished(turn),
    ]
    new = {"type": "response.some_new_event", "output_index": 1}
    assert turn == dialect.decode({**whole, "unknown_events": [new]})
    assert decoder.close() == []


def test_a_call_that_comes_at_once_is_told_in_full() -> None:
    """A host that sends no pieces still gives a start, the arguments and the completed call."""
    decoder = dialect.StreamDecoder()
    events = decoder.feed(done(call("c1", '{"a":1}'), 0)) + decoder.feed(done(call("c2", ""), 1))
    assert [type(event) for event in events] == [
        CallStarted,
        ArgumentsDelta,
        CallCompleted,
        CallStarted,
        CallCompleted,
    ]


@over(
    "kind, key, item",
    [
        ("function_call_arguments", "arguments", call("c1", "")),
        (
            *("custom_tool_call_input", "input"),
            {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": ""},
        ),
    ],
)
def test_a_call_that_is_written_at_once_has_its_text(
    kind: str, key: str, item: dict[str, Any]
) -> None:
    """Where no pieces came, the event that says all of it is read, and nowhere else."""
    written = {"type": f"response.{kind}.done", "output_index": 0, key: '{"a":1}'}
    started, end = added(item, 0), ended(response())
    cases: list[tuple[list[Any], str]] = [
        ([started, written], '{"a":1}'),
        ([started, delta(kind, '{"a"'), delta(kind, ":1}"), written], '{"a":1}'),
        ([started, {**written, key: {"a": 1}}], ""),
        ([written, started], ""),
    ]
    for events, said in cases:
        decoder = dialect.StreamDecoder()
        told = [each for event in (*events, end) for each in decoder.feed(event)]
        (made,) = decoder.finish().tool_calls
        assert made.arguments == said
        pieces = [each.text for each in told if isinstance(each, ArgumentsDelta)]
        assert "".join(pieces) == said


def test_items_without_numbers_follow_each_other() -> None:
    """A host that numbers nothing, and says nothing again at the end, loses no item."""

    def unnumbered(event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key != "output_index"}

    first, second = call("c1", "{}"), call("c2", '{"a":1}')
    events = [
        *(added(call("c1", ""), 0), delta("function_call_arguments", "{}"), done(first, 0)),
        *(added(call("c2", ""), 0), delta("function_call_arguments", '{"a":1}'), done(second, 0)),
        done(message(text("Well.")), 0),
        delta("output_text", "So."),
    ]
    decoder = dialect.StreamDecoder()
    told = [each for event in events for each in decoder.feed(unnumbered(event))]
    decoder.feed(ended(response()))
    turn = decoder.finish()
    assert [made.id for made in turn.tool_calls] == ["c1", "c2"]
    assert turn.text == "Well.So."
    assert [each.index for each in told if isinstance(each, ArgumentsDelta)] == [0, 1]


def test_a_last_event_without_items_has_those_that_came_before() -> None:
    """A host that does not say at the end what it said item by item is understood."""
    decoder = dialect.StreamDecoder()
    decoder.feed(done(call("c1"), 1))
    decoder.feed(done(message(text("Hi")), 0))
    decoder.feed({"event": "of no type"})
    decoder.feed(ended({"id": "r1", "model": "m", "status": "incomplete"}, "incomplete"))
    turn = decoder.finish()
    sent = response(message(text("Hi")), call("c1"), status="incomplete")
    assert turn == dialect.decode({**sent, "unknown_events": [{"event": "of no type"}]})


def test_a_stream_that_breaks_off_is_an_error_with_the_turn_so_far() -> None:
    """What was read before the break is on the error, without calls that were not complete."""
    decoder = dialect.StreamDecoder()
    decoder.feed({"type": "response.created", "response": {"id": "r1", "model": "m"}})
    decoder.feed(done(call("c0"), 0))
    decoder.feed(delta("reasoning_text", "Hm.", 1))
    decoder.feed(delta("output_text", "We", 2))
    decoder.feed(delta("output_text", "ll", 2))
    decoder.feed(added(call("c1", ""), 3))
    decoder.feed(delta("function_call_arguments", "{", 3))
    with pytest.raises(DialectError, check=lambda error: error.where == "after event 6") as caught:
        decoder.finish()
    turn = caught.value.turn
    assert isinstance(turn, AssistantTurn)
    assert [metadata.id for metadata in turn.tool_calls] == ["c0"]
    assert turn.items[1:] == (ReasoningItem("Hm."), TextItem("Well"))
    assert (turn.request_id, turn.model, turn.payload) == ("r1", "m", None)


@over(
    "events, where, problem",
    [
        ([], "before the first event", "breaks off"),
        ([{"type": "error", "message": "Busy."}], "event 0", "Busy."),
        ([{"type": "error", "error": {"message": "Busy."}}], "event 0.error", "Busy."),
        ([{"error": {"message": "Busy."}}], "event 0.error", "Busy."),
        (
            [ended({"error": {"message": "Busy."}}, "failed")],
            "event 0.response.error",
            "Busy.",
        ),
        ([ended({"status": "failed"}, "failed")], "event 0.response", "failed"),
        ([ended({"status": "failed"})], "", "does not say why"),
        ([{"type": "response.completed"}], "event 0", "'response' is missing"),
        ([delta("function_call_arguments", "{")], "event 0", "has not started"),
        (["<html>"], "event 0", "not JSON"),
    ],
)
def test_a_broken_stream_says_where(events: list[Any], where: str, problem: str) -> None:
    """An error event or a broken one is an error that says which event it was."""
    decoder = dialect.StreamDecoder()

    def play() -> None:
        for event in events:
            decoder.feed(event)
        decoder.finish()

    with pytest.raises(DialectError, match=problem) as caught:
        play()
    assert caught.value.where == where
    assert isinstance(caught.value.turn, AssistantTurn)
