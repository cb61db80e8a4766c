"""Chat Completions: a stream, and what hosts get wrong in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py import AssistantTurn, ToolMetadata, TurnRequest, Usage
from lutum_py.dialects import openai_chat as dialect
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
from lutum_py.turns import ReasoningItem, RefusalItem, TextItem
from tests.cases import over

from .chat_wire import function, response


def chunk(delta: Any = None, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    index = fields.pop("index", 0)
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return {"id": "r1", "model": "m", "choices": [choice], **fields}


def run(*events: Any) -> tuple[list[Any], AssistantTurn]:
    decoder = dialect.StreamDecoder()
    found = [event for each in events for event in decoder.feed(each)]
    return found + decoder.close(), decoder.finish()


def test_a_stream_gives_what_a_whole_response_gives() -> None:
    """The pieces of a stream make the very turn that the response in one piece makes."""
    events, turn = run(
        chunk({"role": "assistant", "content": ""}, obfuscation="x", service_tier="default"),
        chunk({"reasoning": "H"}),
        chunk({"reasoning": "m.", "channel": "analysis"}),
        chunk({"content": "We"}),
        chunk({"content": "ll."}),
        chunk({"content": "", "refusal": "No."}),
        chunk({"tool_calls": [{"index": 0, **function("c1", arguments="")}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"text"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ':"a"}'}}]}),
        chunk({}, "tool_calls"),
        {"id": "r1", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        "[DONE]",
        chunk({"content": "late"}),
    )
    call = ToolMetadata(id="c1", name="echo", arguments='{"text":"a"}')
    usage = Usage(input_tokens=1, output_tokens=2)
    assert events == [
        ReasoningDelta("H"),
        ReasoningDelta("m."),
        TextDelta("We"),
        TextDelta("ll."),
        RefusalDelta("No."),
        CallStarted(0, "c1", "echo"),
        ArgumentsDelta(0, '{"text"', {}),
        ArgumentsDelta(0, ':"a"}', {"text": "a"}),
        UsageReported(usage),
        CallCompleted(0, call),
        TurnFinished(turn),
    ]
    said = {
        "content": "Well.",
        "reasoning": "Hm.",
        "refusal": "No.",
        "tool_calls": [function("c1", arguments='{"text":"a"}')],
    }
    whole = response(
        said,
        object="chat.completion",
        service_tier="default",
        usage={"prompt_tokens": 1, "completion_tokens": 2},
    )
    whole["choices"][0]["finish_reason"] = "tool_calls"
    assert turn == dialect.decode(whole)


def test_events_may_be_the_raw_text_of_their_data() -> None:
    """An event may be fed as text or bytes; blank text is passed over."""
    text = json.dumps(chunk({"content": "Hi"}, "stop"))
    for event in (text, text.encode()):
        assert run("", event, b"[DONE]")[1].text == "Hi"


CALL_F = {"type": "function", "function": {"name": "f", "arguments": '{"a":{}}'}}
CALL_G = {"type": "function", "function": {"name": "g", "arguments": "{}"}}


@over(
    "pieces",
    [
        # Without numbers: the id says which call it is, or that a new one begins.
        [function("c1", arguments="{"), {"function": {"arguments": "}"}}, function("c2")],
        # All under one number.
        [{"index": 0, **function("c1")}, {"index": 0, **function("c2")}],
        # The id and the name with every piece.
        [
            {"index": 0, **function("c1", arguments="{")},
            {"index": 0, **function("c1", arguments="}")},
            {"index": 1, **function("c2")},
        ],
        # In turns.
        [
            {"index": 0, **function("c1", arguments="{")},
            {"index": 1, **function("c2", arguments="{")},
            {"index": 0, "function": {"arguments": "}"}},
            {"index": 1, "function": {"arguments": "}"}},
        ],
        # The name in pieces, and an id that comes late.
        [
            {"index": 0, "id": "c1", "function": {"name": "ec"}},
            {"index": 0, "function": {"name": "ho", "arguments": {}}},
            {"index": 1, "type": "function", "function": {"name": "echo", "arguments": "{"}},
            {"index": 1, "id": "c2", "function": {"arguments": "}"}},
        ],
    ],
)
def test_calls_are_told_apart_however_a_host_numbers_them(pieces: list[dict[str, Any]]) -> None:
    """Two calls come out as two, with all their text, whatever a host does with numbers and ids."""
    _, turn = run(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, "stop"))
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        ("c1", "echo", "{}"),
        ("c2", "echo", "{}"),
    ]


@over(
    "pieces",
    [
        # All in one piece, under one number or none.
        [[CALL_F, CALL_G]],
        [[CALL_F], [CALL_G]],
        [[{"index": 0, **CALL_F}, {"index": 0, **CALL_G}]],
        [[{"index": 0, **CALL_F}], [{"index": 0, **CALL_G}]],
        # The name with every piece.
        [
            [{"index": 0, "function": {"name": "f", "arguments": '{"a":'}}],
            [{"index": 0, "function": {"name": "f", "arguments": "{}}"}}],
            [{"index": 0, "function": {"name": "f", "arguments": ""}}],
            [{"index": 0, **CALL_G}],
        ],
        # The same tool once more.
        [[CALL_F], [{"function": {"name": "f", "arguments": '{"b":{}}'}}], [CALL_G]],
    ],
)
def test_calls_without_ids_are_told_apart_by_what_they_call(
    pieces: list[list[dict[str, Any]]],
) -> None:
    """A piece that names another tool, or has arguments where they are whole, is another call."""
    _, turn = run(*(chunk({"tool_calls": each}) for each in pieces), chunk({}, "stop"))
    said = [(call.name, call.arguments) for call in turn.tool_calls]
    assert (said[0], said[-1]) == (("f", '{"a":{}}'), ("g", "{}"))
    assert said[1:-1] in ([], [("f", '{"b":{}}')])
    assert len({call.id for call in turn.tool_calls}) == len(said)


def test_one_call_without_an_id_stays_one() -> None:
    """Pieces of a name, of free text, and the whole once more, do not start a call."""
    named = [{"function": {"name": "ec"}}, {"function": {"name": "ho", "arguments": "{}"}}]
    free = [{"type": "custom", "custom": {"name": "sh", "input": "{}"}}] * 2
    again = [CALL_F, CALL_F]
    said = []
    for pieces in (named, free, again):
        _, turn = run(*(chunk({"tool_calls": [each]}) for each in pieces), chunk({}, "stop"))
        said.append([(call.name, call.arguments) for call in turn.tool_calls])
    assert said == [[("echo", "{}")], [("sh", "{}{}")], [("f", '{"a":{}}')]]


def test_thinking_that_a_proxy_streams_in_blocks_is_one_block() -> None:
    """LiteLLM sends each piece as a block, and the signature in the last: Anthropic takes the whole
    back, and not its pieces. It goes to no other model.
    """

    def block(thinking: str, signature: str | None = None) -> dict[str, Any]:
        fields = {"type": "thinking", "thinking": thinking, "signature": signature}
        return chunk({"reasoning_content": thinking, "thinking_blocks": [fields]})

    hidden = {"type": "redacted_thinking", "data": "x"}
    for last in ("", "me", "Let me"):
        pieces = [block("Let "), *([] if last == "me" else [block("me")]), block(last, "c2ln")]
        more = chunk({"thinking_blocks": [hidden]}), block("So")
        _, turn = run(*pieces, *more, chunk({"content": "Hi"}, "stop"))
        (said,) = dialect.messages([turn])
        assert said["thinking_blocks"] == [
            {"type": "thinking", "thinking": "Let me", "signature": "c2ln"},
            hidden,
            {"type": "thinking", "thinking": "So"},
        ]
        body = dialect.encode_request(TurnRequest(items=[turn]), model="other")
        assert "thinking_blocks" not in body["messages"][0]
    _, odd = run(chunk({"content": "Hi", "thinking_blocks": 7}, "stop"))
    assert odd.text == "Hi"


@over(
    "part, kind, text",
    [
        ({"type": "text", "text": "Hi"}, TextDelta, "Hi"),
        ("Hi", TextDelta, "Hi"),
        ({"type": "refusal", "refusal": "No."}, RefusalDelta, "No."),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, ReasoningDelta, "Hm"),
        (
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
            *(ReasoningDelta, "Hm"),
        ),
        ({"type": "reference", "text": "1"}, None, ""),
    ],
)
def test_a_part_is_told_as_what_it_is_in_the_turn(part: Any, kind: Any, text: str) -> None:
    """The events say what the whole says, and so does what a stream that broke had said."""
    decoder = dialect.StreamDecoder()
    events = decoder.feed(chunk({"content": [part]}))
    assert events == ([] if kind is None else [kind(text)])
    _, turn = run(chunk({"content": [part]}), chunk({}, "stop"))
    assert turn.items == dialect.decode(response({"content": [part]})).items
    assert len(turn.items) == len(events)
    with pytest.raises(DialectError) as caught:
        decoder.close()
    assert isinstance(caught.value.turn, AssistantTurn)
    assert caught.value.turn.items == turn.items


def test_a_host_that_streams_nothing_sends_the_whole_at_once() -> None:
    """A message in the place of deltas is read; one that says all again at the end is not."""
    whole: dict[str, Any] = response({"content": "Hi", "tool_calls": [function("c1")]})
    events, turn = run(whole)
    assert turn.text == "Hi"
    assert [call.id for call in turn.tool_calls] == ["c1"]
    assert TextDelta("Hi") in events
    end = chunk({}, "stop")
    end["choices"][0].update(delta=None, message={"role": "assistant", "content": "Hi"})
    assert run(chunk({"content": "Hi"}), end)[1].text == "Hi"


def test_an_error_object_in_a_stream_is_an_error() -> None:
    """Some hosts send the error itself, and then end the stream as if it were whole."""
    decoder = dialect.StreamDecoder()
    decoder.feed(chunk({"content": "Hel"}))
    with pytest.raises(DialectError, match="reports an error: 'out of memory'") as caught:
        decoder.feed({"object": "error", "message": "out of memory", "code": 500})
    assert isinstance(caught.value.turn, AssistantTurn)
    assert caught.value.turn.text == "Hel"


def test_streamed_calls_without_ids_have_the_ids_of_the_whole_response() -> None:
    """An id of ours is the same whether the call came in pieces or at once."""
    events, turn = run(chunk({"tool_calls": [function(None)]}), chunk({"tool_calls": []}, "stop"))
    whole = dialect.decode(response({"tool_calls": [function(None)]}))
    assert turn.tool_calls == whole.tool_calls
    assert events[0] == CallStarted(0, whole.tool_calls[0].id, "echo")


def test_other_forms_of_calls_are_streamed_too() -> None:
    """Custom calls and the old single function call are put together as well."""
    custom = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": "l"}}
    _, turn = run(
        chunk({"tool_calls": [custom]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"input": "s", "format": "x"}}]}),
        chunk({"tool_calls": [{"index": 0, "extra_content": {"sign": "x"}}]}),
        chunk({"function_call": {"name": ""}}),
        chunk({"function_call": {"name": "old", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}, "function_call"),
    )
    assert [(c.name, c.arguments) for c in turn.tool_calls] == [("sh", "ls"), ("old", "{}")]
    message = dialect.messages([turn])[0]
    assert message["tool_calls"] == [
        {
            "id": "c1",
            "type": "custom",
            "custom": {"format": "x", "name": "sh", "input": "ls"},
            "extra_content": {"sign": "x"},
        }
    ]
    assert message["function_call"] == {"name": "old", "arguments": "{}"}


def test_what_a_host_adds_is_put_together() -> None:
    """Reasoning details, parts, annotations, audio and log probabilities survive the pieces."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}
    more = {"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}
    detail = {"type": "reasoning.text", "index": 0}
    events, turn = run(
        chunk({"content": [thought]}),
        chunk({"content": [more, {"type": "text", "text": "A"}]}),
        chunk({"content": "B"}),
        chunk({"content": [{"type": "reference", "ids": [1]}]}),
        chunk({"reasoning_details": [{**detail, "text": "x"}, {"data": "e"}]}),
        chunk({"reasoning_details": [{**detail, "text": "y", "signature": None}]}),
        chunk({"reasoning_details": [{**detail, "text": "z", "signature": "s", "format": None}]}),
        chunk({"annotations": [1]}),
        chunk({"annotations": [2]}),
        chunk(None, "stop", provider="P"),
    )
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == [
        "H",
        "m",
        "x",
        "y",
        "z",
    ]
    assert (turn.text, turn.payload["provider"]) == ("AB", "P")
    message = dialect.messages([turn])[0]
    assert message["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "AB"},
        {"type": "reference", "ids": [1]},
    ]
    assert message["annotations"] == [1, 2]
    assert message["reasoning_details"] == [
        {**detail, "text": "x"},
        {"data": "e"},
        {**detail, "text": "yz", "signature": "s"},
    ]


def test_reasoning_that_comes_under_two_names_is_told_once() -> None:
    """Where a host sends text and details of the same reasoning, one of them is reported."""
    events, turn = run(
        chunk({"reasoning": "Hm.", "reasoning_details": [{"type": "t", "text": "Hm."}]}),
        chunk({"reasoning_content": ""}, "stop"),
    )
    assert events[0] == ReasoningDelta("Hm.")
    assert (turn.reasoning, len(events)) == ("Hm.", 2)


def test_an_audio_answer_is_put_together() -> None:
    """The transcript of an audio answer is its text, and its data is joined."""
    events, turn = run(
        chunk({"audio": {"id": "a1", "transcript": "H", "data": "AA"}}),
        chunk({"audio": {"transcript": "i", "data": "BB", "expires_at": None}}),
        chunk({}, "stop"),
    )
    assert events[:2] == [TextDelta("H"), TextDelta("i")]
    assert turn.text == "Hi"
    assert turn.payload["choices"][0]["message"]["audio"]["data"] == "AABB"
    late, _ = run(chunk({"content": "x"}), chunk({"audio": {"transcript": "i"}}, "stop"))
    assert late[0] == TextDelta("x")
    assert not isinstance(late[1], TextDelta)


def test_log_probabilities_are_joined() -> None:
    """The log probabilities of all chunks stand in the payload, in order."""
    first, second = chunk({"content": "a"}), chunk({"content": "b"}, "stop")
    first["choices"][0]["logprobs"] = {"content": [{"token": "a"}], "refusal": None}
    second["choices"][0]["logprobs"] = {"content": [{"token": "b"}]}
    second["choices"][0]["native_finish_reason"] = "STOP"
    choice = run(first, second)[1].payload["choices"][0]
    assert choice["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}
    assert choice["native_finish_reason"] == "STOP"


def test_the_first_choice_is_the_turn() -> None:
    """Of several choices the first is the turn; the others are kept in the payload."""
    events, turn = run(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "length", index=1))
    assert events[0] == TextDelta("a")
    assert (len(events), turn.text, turn.finish_reason) == (2, "a", "stop")
    assert turn.payload["choices"][1]["message"]["content"] == "b"


@over(
    "ends",
    [
        [chunk({}, "stop")],
        ["[DONE]"],
        [{"choices": [], "usage": {"prompt_tokens": 1}}],
        [chunk({}, "length"), {"choices": [], "x_groq": {"usage": {"prompt_tokens": 1}}}],
    ],
)
def test_a_stream_may_end_in_several_ways(ends: list[Any]) -> None:
    """A finish reason, `[DONE]`, or the usage that follows the last choice ends a stream."""
    assert run(chunk({"content": "Hi"}), *ends)[1].text == "Hi"


def test_usage_in_a_field_of_the_host_is_reported() -> None:
    """Usage that a host has in a field of its own is reported when it comes, and kept."""
    end = {"choices": [], "x_groq": {"usage": {"prompt_tokens": 1}}}
    events, turn = run(chunk({"content": "Hi"}), chunk({}, "stop"), end)
    assert UsageReported(Usage(input_tokens=1)) in events
    assert turn.usage == Usage(input_tokens=1)


def test_usage_before_the_first_choice_ends_nothing() -> None:
    """What comes before anything was said, such as filter results, is not the end."""
    decoder = dialect.StreamDecoder()
    decoder.feed({"choices": [], "usage": {"prompt_tokens": 1}, "prompt_filter_results": []})
    decoder.feed(chunk({"content": "Hi"}))
    with pytest.raises(DialectError, check=lambda error: error.where == "after event 1"):
        decoder.finish()


def test_a_stream_that_breaks_off_is_an_error_with_the_turn_so_far() -> None:
    """What was read before the break is on the error, without calls that were not complete."""
    decoder = dialect.StreamDecoder()
    decoder.feed(chunk({"content": "We", "reasoning": "Hm.", "refusal": "No."}))
    decoder.feed(chunk({"tool_calls": [function("c1", arguments="{")]}))
    with pytest.raises(DialectError) as caught:
        decoder.finish()
    turn = caught.value.turn
    assert isinstance(turn, AssistantTurn)
    assert turn.items == (ReasoningItem("Hm."), TextItem("We"), RefusalItem("No."))
    assert (turn.request_id, turn.payload, caught.value.where) == ("r1", None, "after event 1")
    assert str(caught.value).startswith("openai_chat after event 1: the stream breaks off")
    for again in (decoder.finish, decoder.close, lambda: decoder.feed(chunk({}, "stop"))):
        with pytest.raises(DialectError) as repeated:
            again()
        assert repeated.value is caught.value


@over(
    "events, where, problem",
    [
        ([], "before the first event", "without a choice"),
        ([chunk({"content": "x"}), {"error": {"message": "Busy."}}], "event 1.error", "Busy."),
        ([{"choices": [{"error": {"message": "Busy."}}]}], "event 0.choices[0].error", "Busy."),
        (["<html>"], "event 0", "not JSON"),
        (['{"choices": ['], "event 0", "not JSON"),
        ([[]], "event 0", "expected an object"),
        ([chunk({"refusal": 7})], "event 0.choices[0].delta.refusal", "expected a string"),
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
    assert where in caught.value.where
    assert isinstance(caught.value.turn, AssistantTurn)


def test_an_event_of_an_unknown_kind_stands_apart() -> None:
    """What a host adds to a chunk stays in the payload; an event of another kind stands apart."""
    more = {**chunk({"content": "Hi"}, "stop"), "extra": 1}
    _, turn = run({"object": "ping", "id": "no"}, more)
    assert (turn.text, turn.payload["extra"], turn.request_id) == ("Hi", 1, more.get("id"))
    assert turn.payload["unknown_events"] == [{"object": "ping", "id": "no"}]


@given(st.text(max_size=4_000), st.integers(1, 400))
def test_a_partial_view_ends_as_the_arguments(text: str, size: int) -> None:
    """However long the arguments are, the view is made from what came, and the text is exact."""
    raw = json.dumps({"text": text, "more": [text] * 3})
    decoder = dialect.StreamDecoder()
    decoder.feed(chunk({"tool_calls": [function("c1", arguments="")]}))
    views: list[Any] = []
    for begin in range(0, len(raw), size):
        piece = {"index": None, "function": {"arguments": raw[begin : begin + size]}}
        (delta,) = decoder.feed(chunk({"tool_calls": [piece]}))
        assert isinstance(delta, ArgumentsDelta)
        views.append(delta.partial)
    decoder.feed(chunk({}, "stop"))
    assert decoder.finish().tool_calls[0].arguments == raw
    assert all(text.startswith(view.get("text", "")) for view in views)


def test_the_view_of_long_arguments_is_made_now_and_then() -> None:
    """Past some length the view lags behind the text, so that long arguments cost no square."""
    decoder = dialect.StreamDecoder()
    decoder.feed(chunk({"tool_calls": [function("c1", arguments='{"a": "')]}))
    views = {len(arguments_after(decoder, "x")) for _ in range(6_000)}
    assert len(views) < 4_200
    assert max(views) > 5_000


def arguments_after(decoder: Any, text: str) -> str:
    (delta,) = decoder.feed(chunk({"tool_calls": [{"function": {"arguments": text}}]}))
    partial: dict[str, str] = delta.partial
    return partial["a"]
