"""What a provider may send beside the format: a turn that goes on, or an error with its place."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from pydantic_core import from_json

from lutum_py import AssistantTurn, Message, NeedsTools, ToolMetadata, ToolResult, TurnRequest
from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.errors import DialectError, InvalidValueError
from lutum_py.turns import TranscriptItem
from tests.cases import over
from tests.models.said import Said
from tests.round_tools import Shop

from .every_dialect import wire_of
from .mutations import committed, deep
from .plain import compact
from .wire_laws import DIALECTS, goes_on


def responding(dialect: ModuleType, **fields: Any) -> dict[str, Any]:
    whole = wire_of(dialect.NAME).response
    return {**whole(Said(text="Hi")), **fields}


UNFIT: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "at x.y[0]: nan is nothing that JSON can carry"),
    "inf": (-math.inf, "at x.y[0]: -inf is nothing that JSON can carry"),
    "long": (10**4300, "at x.y[0]: a value of type int is nothing that JSON can carry"),
    "object": (object, "at x.y[0]: <class 'object'> is nothing that JSON can carry"),
    "set": ({1}, "at x.y[0]: {1} is nothing that JSON can carry"),
    "decimal": (Decimal(1), "at x.y[0]: Decimal('1') is nothing that JSON can carry"),
    "key": ({object: 1}, "it cannot be kept as JSON"),
    "deep": (deep(200), "it is nested more deeply than 200 levels"),
    "deeper": (deep(900), "it is nested more deeply than 200 levels"),
}


@DIALECTS
def test_what_json_cannot_carry_is_an_error(dialect: ModuleType) -> None:
    """A payload that could be neither stored nor sent back is refused, with the place."""
    for name, (odd, said) in UNFIT.items():
        with pytest.raises(DialectError) as caught:
            dialect.decode(responding(dialect, x={"y": [odd]}))
        assert said in str(caught.value), name


@DIALECTS
def test_an_event_that_json_cannot_carry_breaks_the_stream(dialect: ModuleType) -> None:
    """What of an event would be kept and could never be saved is an error with its place."""
    decoder = dialect.StreamDecoder()
    with pytest.raises(DialectError, check=lambda error: error.where == "event 0.odd[0]"):
        decoder.feed({"type": "of_tomorrow", "odd": [b"x"]})


@DIALECTS
def test_a_time_is_kept_as_the_wire_has_it(dialect: ModuleType) -> None:
    """A time of which an SDK made an object is a text in the payload, and can be saved."""
    turn = dialect.decode(responding(dialect, x=datetime(2026, 1, 2, tzinfo=UTC)))
    assert turn.payload["x"] == "2026-01-02T00:00:00Z"
    goes_on(turn)


@DIALECTS
def test_what_looks_odd_and_is_json_is_taken(dialect: ModuleType) -> None:
    """Words that stand for no number, long digits in a text and many brackets are no fault."""
    odd = {"NaN": "Infinity", "digits": "7" * 5000, "many": [[]] * 300, "deep": deep(150)}
    turn = dialect.decode(responding(dialect, x=odd))
    assert turn.payload["x"] == odd
    goes_on(turn)


FED: list[tuple[Any, str]] = [
    (object(), r"got <object.*from an SDK object, `response.to_dict"),
    ('data: {"choices": []}', r"not JSON .*sse.events\(chunks\)` gives"),
    (
        b"event: message_start\ndata: {}\n\n",
        r"not JSON .*sse.events\(chunks\)` gives",
    ),
    ("<html>", r"not JSON \(.*\): '<html>'\.$"),
]


@DIALECTS
def test_what_is_no_event_says_what_to_feed(dialect: ModuleType) -> None:
    """An object of an SDK and the text of a response are refused with the way to its events."""
    for event, remedy in FED:
        with pytest.raises(DialectError) as caught:
            dialect.StreamDecoder().feed(event)
        assert re.search(remedy, str(caught.value)), event


@DIALECTS
def test_an_event_may_be_a_mapping_of_any_kind(dialect: ModuleType) -> None:
    """Events that are mappings and no dicts are read as dicts are."""
    events = wire_of(dialect.NAME).events
    plain, others = dialect.StreamDecoder(), dialect.StreamDecoder()
    for event in events(Said(text="Hi")):
        assert others.feed(MappingProxyType(event)) == plain.feed(event)
    assert others.finish() == plain.finish()


@over("value", [math.nan, 10**5000, deep(900)])
def test_arguments_that_are_no_json_are_an_error(value: Any) -> None:
    """An argument object that holds what is no JSON is refused, whole and in a stream."""
    block = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": value}}
    with pytest.raises(DialectError):
        anthropic_messages.decode({"content": [block]})
    part = {"functionCall": {"name": "add", "args": {"a": value}}}
    chunk = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    with pytest.raises(DialectError):
        gemini_generate_content.decode(chunk)
    with pytest.raises(DialectError) as caught:
        streamed(gemini_generate_content, [chunk])
    # How deep Python reads at once differs; what it reads is refused with the turn, at the latest.
    assert caught.value.where.startswith("event 0") or isinstance(value, list)
    events = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    with pytest.raises(DialectError):
        streamed(anthropic_messages, events)


def streamed(dialect: Any, events: list[Any]) -> AssistantTurn:
    decoder = dialect.StreamDecoder()
    for event in events:
        decoder.feed(event)
    decoder.close()
    turn: AssistantTurn = decoder.finish()
    return turn


@DIALECTS
def test_a_number_that_python_cannot_read_is_the_models_to_mend(dialect: ModuleType) -> None:
    """An argument of more digits than Python reads is an issue that the model is told of."""
    text = '{"a":1,"b":' + "9" * 5000 + "}"
    turn = dialect.decode(wire_of(dialect.NAME).calling(text))
    outcome = Shop.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert issue.reason == "invalid_arguments"
    outcome.round.discard()
    goes_on(turn)


def test_a_search_for_tools_that_the_program_runs_is_a_call() -> None:
    """A search for tools with `execution: client` is a call of `tool_search`, to be answered."""
    item = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "s1",
        "arguments": {"queries": ["rates"]},
    }
    turn = openai_responses.decode({"output": [item], "status": "completed"})
    (call,) = turn.tool_calls
    assert (call.id, call.name, call.arguments) == ("s1", "tool_search", '{"queries":["rates"]}')
    items = committed(turn)
    assert items is not None
    _, sent, answer, _ = openai_responses.messages(items)
    assert sent == item
    assert answer["type"] == "function_call_output"
    goes_on(turn)


@over("kind", ["function_call_output", "custom_tool_call_output", "tool_search_output"])
def test_a_model_answers_no_call(kind: str) -> None:
    """An item that only a program sends is no part of a response; the provider's own search is."""
    with pytest.raises(DialectError, match=rf"at output\[0\]: a {kind} is the program's answer"):
        openai_responses.decode({"output": [{"type": kind, "call_id": "c", "output": "x"}]})
    item = {"type": "tool_search_output", "execution": "server", "tools": []}
    assert openai_responses.decode({"output": [item]}).payload["output"] == [item]


def test_a_model_gives_no_results() -> None:
    """Results among what a model says are refused: nothing stands before them that they answer."""
    block = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    with pytest.raises(DialectError, check=lambda error: error.where == "content[0]"):
        anthropic_messages.decode({"content": [block]})
    part = {"functionResponse": {"name": "f", "response": {}}}
    with pytest.raises(
        DialectError, check=lambda error: error.where == "candidates[0].content.parts[0]"
    ):
        gemini_generate_content.decode({"candidates": [{"content": {"parts": [part]}}]})


def test_reasoning_that_led_to_nothing_does_not_go_back() -> None:
    """Reasoning at the end of a response that was cut off is left out, and is a loss."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    turn = openai_responses.decode({"output": [thought], "status": "incomplete"})
    request = TurnRequest(items=[Message("user", "x"), turn, Message("user", "y")])
    body = openai_responses.encode_request(request)
    assert [item["content"] for item in body["input"]] == ["x", "y"]
    (loss,) = body.losses
    assert "led to nothing" in str(loss)


def test_an_id_of_an_item_goes_out_once() -> None:
    """Hosts number items anew in each response: the second item of an id goes without it."""
    part = {"type": "output_text", "text": "Hi"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    turn = openai_responses.decode({"output": [said], "status": "completed"})
    first, second = openai_responses.messages([turn, turn])
    assert first == said
    assert second == {key: value for key, value in said.items() if key != "id"}
    assert openai_responses.check([first, second]) == []


def test_a_message_goes_back_as_the_assistants() -> None:
    """An odd role, a missing content and texts for parts go back in a form that is taken."""
    (message,) = openai_responses.messages(
        [openai_responses.decode({"output": [{"type": "message", "role": "x"}]})]
    )
    assert message == {"type": "message", "role": "assistant", "content": []}
    said = {"role": "x", "content": ["a", {"type": "text", "text": "b"}], "audio": "odd"}
    (message,) = openai_chat.messages([openai_chat.decode({"choices": [{"message": said}]})])
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert message == {"role": "assistant", "content": parts}


def test_arguments_go_back_in_the_form_of_the_wire() -> None:
    """Arguments of another type than the wire's are decoded, and go back as the API takes them."""
    calls: list[Any] = [
        {"id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "b", "type": "custom", "custom": {"name": "f"}},
        {"id": "c", "function": {"name": "f"}},
    ]
    old = {"name": "f", "arguments": {"x": 1}}
    message = {"tool_calls": calls, "function_call": old}
    turn = openai_chat.decode({"choices": [{"message": message}]})
    assert [call.arguments for call in turn.tool_calls] == ['{"x":1}', "", "", '{"x":1}']
    (sent,) = openai_chat.messages([turn])
    assert [call["function"]["arguments"] for call in sent["tool_calls"][::2]] == ['{"x":1}', "{}"]
    assert sent["tool_calls"][1]["custom"]["input"] == ""
    assert sent["function_call"]["arguments"] == '{"x":1}'
    for args, goes in (('{"x":1}', {"x": 1}), ("odd", {"INVALID_JSON": "odd"}), ([1], None)):
        part = {"functionCall": {"name": "f", "args": args}}
        turn = gemini_generate_content.decode({"candidates": [{"content": {"parts": [part]}}]})
        (content,) = gemini_generate_content.messages([turn])
        assert content["parts"][0]["functionCall"]["args"] == (goes or {"INVALID_JSON": [1]})


def test_an_id_that_anthropic_refuses_goes_out_as_another() -> None:
    """A call id with characters that the API does not take goes out under one that it does."""
    block = {"type": "tool_use", "id": "a b", "name": "f", "input": {}}
    turn = anthropic_messages.decode({"content": [block]})
    items = committed(turn)
    assert items is not None
    _, sent, answer = anthropic_messages.messages(items)
    assert sent["content"][0]["id"] == answer["content"][0]["tool_use_id"] != "a b"
    goes_on(turn)


def test_odd_parts_of_a_streamed_message_are_errors_with_their_place() -> None:
    """Numbers and objects where text belongs are told at the event that brought them."""

    def feed(*deltas: Any) -> None:
        decoder = openai_chat.StreamDecoder()
        for delta in deltas:
            decoder.feed({"choices": [{"delta": delta}]})
        decoder.finish()

    for delta, where in (
        ({"content": 7}, "content"),
        ({"content": [{"type": "text", "text": 7}]}, "content[0].text"),
        ({"content": [7]}, "content[0]"),
        ({"tool_calls": [{"id": [], "function": {"name": "f"}}]}, "tool_calls[0].id"),
    ):
        with pytest.raises(DialectError) as caught:
            feed({"content": None}, delta)
        assert caught.value.where == f"event 1.choices[0].delta.{where}"


def test_a_count_that_cannot_be_is_none() -> None:
    """A number of tokens beyond any that there is counts as unknown."""
    usage = {"prompt_tokens": 10**30, "completion_tokens": 3.0}
    turn = openai_chat.decode({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (None, 3)


@DIALECTS
def test_what_is_nested_too_deeply_goes_out_as_text(dialect: ModuleType) -> None:
    """Arguments and results of hundreds of levels are no data that a client can write: where the
    wire wants data, their text stands in it.
    """
    text = compact(deep(400))
    call = ToolMetadata(id="c1", name="f", arguments='{"a":' + text + "}")
    result = ToolResult(id="c1", name="f", arguments=call.arguments, result=text)
    items: list[TranscriptItem] = [Message("user", "x"), AssistantTurn(tool_calls=[call]), result]
    body = dialect.encode_request(TurnRequest(items=items))
    from_json(compact(body))
    assert dialect.check(body) == []
    for levels in (990, 100_000):
        with pytest.raises(InvalidValueError):
            ToolResult(id="c1", name="f", arguments="", result="[" * levels + "]" * levels)
