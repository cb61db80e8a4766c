"""The Messages API: what its streams come to."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import ToolMetadata, Usage
from lutum_py.dialects import anthropic_messages as dialect
from lutum_py.errors import DialectError
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from lutum_py.turns import ReasoningItem, TextItem
from tests.cases import over

from .anthropic_wire import CALL, response

START = {"type": "message_start", "message": {**response(), "usage": {"input_tokens": 3}}}
STOP = {"type": "message_stop"}


def begin(index: int | None, block: Any) -> dict[str, Any]:
    event = {"type": "content_block_start", "content_block": block}
    return event if index is None else {**event, "index": index}


def delta(index: int | None, kind: str, **fields: Any) -> dict[str, Any]:
    event = {"type": "content_block_delta", "delta": {"type": kind, **fields}}
    return event if index is None else {**event, "index": index}


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def fed(*events: Any) -> tuple[list[Any], dialect.StreamDecoder]:
    decoder = dialect.StreamDecoder()
    return [event for each in events for event in decoder.feed(each)], decoder


def test_a_stream_becomes_the_turn_of_its_message() -> None:
    """Events are reported as they come, and the turn is that of the whole message."""
    events, decoder = fed(
        START,
        {"type": "ping"},
        begin(0, {"type": "thinking", "thinking": "H", "signature": ""}),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "thinking_delta", thinking=""),
        delta(0, "signature_delta", signature="sig"),
        end(0),
        begin(1, {"type": "text", "text": "He"}),
        delta(1, "text_delta", text="llo"),
        delta(1, "text_delta", text=""),
        delta(1, "citations_delta", citation={"type": "char_location"}),
        delta(1, "citations_delta", citation={"type": "page_location"}),
        delta(1, "new_delta", newness=1),
        end(1),
        begin(2, {"type": "tool_use", "id": "t1", "name": "echo", "input": {}}),
        delta(2, "input_json_delta", partial_json=""),
        delta(2, "input_json_delta", partial_json='{"a": '),
        delta(2, "input_json_delta", partial_json="1}"),
        end(2),
        end(2),
        begin(3, {"type": "server_tool_use", "id": "s1", "name": "search", "input": {}}),
        delta(3, "input_json_delta", partial_json='{"q":2}'),
        end(3),
        begin(4, {"type": "tool_use", "id": "t2", "name": "echo", "input": {}}),
        {"type": "new_event", "x": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 7, "input_tokens": None},
            "context_management": {"applied_edits": []},
        },
        {"type": "message_delta"},
        STOP,
    )
    made = ToolMetadata(id="t1", name="echo", arguments='{"a":1}')
    assert events == [
        UsageReported(Usage(input_tokens=3)),
        ReasoningDelta("H"),
        ReasoningDelta("m"),
        TextDelta("He"),
        TextDelta("llo"),
        CallStarted(0, "t1", "echo"),
        ArgumentsDelta(0, '{"a": ', {}),
        ArgumentsDelta(0, "1}", {"a": 1}),
        CallCompleted(0, made),
        CallStarted(1, "t2", "echo"),
        UsageReported(Usage(input_tokens=3, output_tokens=7)),
        UsageReported(Usage(input_tokens=3, output_tokens=7)),
    ]
    last = decoder.close()
    assert [type(event).__name__ for event in last] == [
        "ArgumentsDelta",
        "CallCompleted",
        "TurnFinished",
    ]
    turn = decoder.finish()
    assert turn == dialect.decode(
        response(
            {"type": "thinking", "thinking": "Hm", "signature": "sig"},
            {
                "type": "text",
                "text": "Hello",
                "citations": [{"type": "char_location"}, {"type": "page_location"}],
                "newness": 1,
            },
            {"type": "tool_use", "id": "t1", "name": "echo", "input": {"a": 1}},
            {"type": "server_tool_use", "id": "s1", "name": "search", "input": {"q": 2}},
            {"type": "tool_use", "id": "t2", "name": "echo", "input": {}},
            stop_reason="tool_use",
            usage={"input_tokens": 3, "output_tokens": 7},
            context_management={"applied_edits": []},
            unknown_events=[{"type": "new_event", "x": 1}],
        )
    )


def test_a_null_takes_nothing_back() -> None:
    """A host may send the end twice, and say null where it says nothing new."""
    last = {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": None}
    again = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 7}}
    for ends, usage in (
        ([last], Usage(input_tokens=3)),
        ([last, again], Usage(input_tokens=3, output_tokens=7)),
    ):
        turn = fed(START, *ends, {**again, "delta": None, "usage": None}, STOP)[1].finish()
        assert (turn.finish_reason, turn.refusal, turn.usage) == ("refusal", "", usage)


def test_a_sloppy_stream_is_read_as_far_as_it_is_clear() -> None:
    """Without indexes a delta belongs to the last block; without usage there is none."""
    start = {"type": "message_start", "message": {"content": None}}
    events, decoder = fed(
        start,
        begin(None, {"type": "tool_use", "name": "echo"}),
        delta(None, "input_json_delta"),
        begin(None, {"type": "thinking", "thinking": ""}),
        begin(None, {"type": "text", "text": ""}),
        delta(None, "text_delta", text="Hi"),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_delta", "usage": {"output_tokens": 1}},
        {"type": "message_delta", "usage": "many"},
        STOP,
    )
    turn = decoder.finish()
    assert (turn.text, turn.usage, turn.request_id) == ("Hi", Usage(), None)
    assert events[0] == CallStarted(0, turn.tool_calls[0].id, "echo")
    assert turn.tool_calls[0].arguments == "{}"


def test_blocks_of_one_number_stay_beside_each_other() -> None:
    """What was told of a block stays in the turn if another one begins under its number."""
    look, find = ({"type": "tool_use", "id": id, "name": "look"} for id in ("t1", "t2"))
    events, decoder = fed(
        START,
        begin(0, {"type": "text", "text": "I "}),
        delta(0, "text_delta", text="look"),
        end(0),
        begin(0, look),
        delta(0, "input_json_delta", partial_json='{"at":1}'),
        begin(0, look),  # sent twice
        end(0),
        begin(0, find),
        delta(0, "input_json_delta", partial_json='{"at":2}'),
        end(0),
        begin(0, {"type": "text", "text": "."}),
        STOP,
    )
    turn = decoder.finish()
    told = [event.metadata for event in events if isinstance(event, CallCompleted)]
    assert told == list(turn.tool_calls)
    assert [(call.id, call.arguments) for call in told] == [("t1", '{"at":1}'), ("t2", '{"at":2}')]
    assert [type(item).__name__ for item in turn.items] == [
        *("TextItem", "ToolCallItem", "ToolCallItem", "TextItem")
    ]
    assert turn.text == "".join(event.text for event in events if isinstance(event, TextDelta))


def test_a_call_that_goes_on_after_its_end_is_not_complete_before_it_ends_again() -> None:
    """A host may stop a block too early: what breaks off then has no call with half its text."""
    events = [
        START,
        begin(0, {"type": "tool_use", "id": "t1", "name": "echo", "input": {}}),
        end(0),
        delta(0, "input_json_delta", partial_json='{"a":1}'),
    ]
    _, decoder = fed(*events)
    with pytest.raises(DialectError) as caught:
        decoder.close()
    turn: Any = caught.value.turn
    assert turn.tool_calls == ()
    _, decoder = fed(*events, end(0), STOP)
    assert [call.arguments for call in decoder.finish().tool_calls] == ['{"a":1}']


def test_arguments_that_are_no_json_complete_as_they_came() -> None:
    """A call whose text is broken in the end is complete with that text; it goes back wrapped."""
    events, decoder = fed(
        START,
        begin(0, {"type": "tool_use", "id": "t1", "name": "echo", "input": {}}),
        delta(0, "input_json_delta", partial_json='{"a": '),
        end(0),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        STOP,
    )
    turn = decoder.finish()
    assert [each for each in events if isinstance(each, CallCompleted)] == [
        CallCompleted(0, turn.tool_calls[0])
    ]
    assert turn.tool_calls[0].arguments == '{"a": '
    assert turn.is_truncated
    rendered = dialect.messages([turn])[0]["content"][0]
    assert rendered["input"] == {"INVALID_JSON": '{"a": '}
    nothing = dialect.decode(response({"type": "tool_use", "id": "t", "name": "echo"}))
    assert dialect.messages([nothing])[0]["content"][0]["input"] == {}


@over(
    "events, where, problem",
    [
        ([], "before the first event", "before a message began"),
        ([START], "after event 0", "breaks off"),
        ([begin(0, {"type": "text", "text": ""})], "event 0", "has not started"),
        ([START, delta(0, "text_delta", text="a")], "event 1", "block 0 has not started"),
        (["{"], "event 0", "not JSON"),
        (
            [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
            "event 0.error",
            "Overloaded",
        ),
        ([{"type": "error"}], "event 0", "reports an error"),
    ],
)
def test_a_broken_stream_is_an_error(events: list[Any], where: str, problem: str) -> None:
    """A stream that breaks says what is wrong and where, and gives no turn."""
    with pytest.raises(DialectError, match=problem) as caught:
        fed(*events)[1].finish()
    assert caught.value.where == where


def test_a_broken_stream_holds_what_was_read() -> None:
    """The turn on the error has text, reasoning and whole calls; half a call is not in it."""
    _, decoder = fed(
        START,
        begin(0, {"type": "text", "text": "Hi"}),
        begin(1, {"type": "thinking", "thinking": "Hm"}),
        begin(2, CALL),
        end(2),
        begin(3, {**CALL, "id": "t2"}),
        begin(4, {**CALL, "id": "t3"}),
        delta(4, "input_json_delta", partial_json="{"),
        end(4),
        begin(5, {"type": "text", "text": ""}),
    )
    with pytest.raises(DialectError) as caught:
        decoder.finish()
    turn: Any = caught.value.turn
    assert turn.items[:2] == (TextItem("Hi"), ReasoningItem("Hm"))
    assert [call.id for call in turn.tool_calls] == ["t1"]
    assert (turn.model, turn.request_id, turn.payload) == ("claude", "m1", None)
