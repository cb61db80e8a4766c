"""The Messages API: what its responses come to."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from lutum_py import (
    ToolMetadata,
    Usage,
)
from lutum_py.dialects import (
    anthropic_messages,
)
from lutum_py.dialects import anthropic_messages as dialect
from lutum_py.errors import DialectError
from lutum_py.turns import ReasoningItem, RefusalItem, ServerToolItem, TextItem
from tests.cases import over

from .anthropic_wire import CALL, response
from .mutations import committed, deep
from .plain import streamed
from .wire_laws import goes_on


def test_a_response_becomes_a_turn() -> None:
    """Each block becomes an item in order; what is not known is kept as the server's own."""
    ran = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": None}}
    turn = dialect.decode(
        response(
            {"type": "thinking", "thinking": "Hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xx"},
            ran,
            {"type": "text", "text": "Hello"},
            {"type": "text", "text": ""},
            CALL,
            stop_reason="tool_use",
            usage={
                "input_tokens": 10,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2,
                "output_tokens": 7,
                "output_tokens_details": {"thinking_tokens": 3},
            },
        )
    )
    assert turn.items[:4] == (
        ReasoningItem("Hm"),
        ReasoningItem(""),
        ServerToolItem("server_tool_use", ran),
        TextItem("Hello"),
    )
    assert turn.tool_calls == (ToolMetadata(id="t1", name="echo", arguments='{"b":null,"a":[1]}'),)
    assert turn.usage == Usage(
        input_tokens=17,
        output_tokens=7,
        cached_tokens=5,
        reasoning_tokens=3,
        cache_write_tokens=2,
    )
    assert (turn.model, turn.request_id, turn.dialect) == ("claude", "m1", dialect.NAME)
    assert turn.finish_reason == "tool_use"


def test_what_is_not_said_is_not_made_up() -> None:
    """A response without usage, ids or reason has none, and its call an id of ours."""
    turn = dialect.decode({"content": [{"type": "tool_use", "name": "echo"}]})
    assert turn.usage is None
    assert turn.request_id is None
    assert turn.finish_reason is None
    assert turn.tool_calls[0].arguments == "{}"
    assert turn.tool_calls[0].id.startswith("lutum_")
    empty = dialect.decode(response(usage={}))
    assert empty.usage == Usage()
    assert empty.items == ()


def test_a_refusal_is_told_from_an_answer() -> None:
    """A turn that ends in refusal has the provider's explanation, or an empty one."""
    explained = dialect.decode(
        response(stop_reason="refusal", stop_details={"type": "refusal", "explanation": "No."})
    )
    assert explained.items == (RefusalItem("No."),)
    assert dialect.decode(response(stop_reason="refusal")).refusal == ""


def test_the_payload_is_a_copy_without_nulls() -> None:
    """The payload shares nothing with the response, and has neither nulls nor the SDK's fields."""
    sent = response(
        {"type": "text", "text": "Hi", "citations": None, "parsed_output": {"a": 1}},
        CALL,
        container={"id": "x", "expires_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)},
        stop_sequence=None,
    )
    turn = dialect.decode(sent)
    sent["content"][1]["input"]["a"].append(2)
    assert turn.payload["content"] == [
        {"type": "text", "text": "Hi"},
        {**CALL, "input": {"b": None, "a": [1]}},
    ]
    assert turn.payload["container"] == {"id": "x", "expires_at": "2026-01-02T03:04:05Z"}
    assert "stop_sequence" not in turn.payload
    CALL["input"]["a"].remove(2)  # type: ignore[index]
    assert dialect.decode({"content": [], "container": {"id": "x"}}).items == ()


@over(
    "broken, where, problem",
    [
        ("<html>", "", "expected the JSON object"),
        ({"type": "error", "error": {"message": "Overloaded"}}, "error", "Overloaded"),
        ({"error": "overloaded"}, "error", "overloaded"),
        ({}, "", "'content' is missing"),
        ({"content": 5}, "content", "expected an array"),
        ({"content": [{"text": "a"}]}, "content[0]", "'type' is missing"),
        ({"content": [{"type": "text", "text": 3}]}, "content[0].text", "expected a string"),
    ],
)
def test_a_broken_response_is_an_error(broken: Any, where: str, problem: str) -> None:
    """What is no response says what is wrong with it, and where."""
    with pytest.raises(DialectError, match=problem) as caught:
        dialect.decode(broken)
    assert caught.value.where == where


@over("value", [math.nan, 10**5000, deep(900)])
def test_a_block_of_arguments_that_are_no_json_is_an_error(value: Any) -> None:
    """An argument object that holds what is no JSON is refused, whole and in a stream."""
    block = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": value}}
    with pytest.raises(DialectError):
        anthropic_messages.decode({"content": [block]})
    events = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    with pytest.raises(DialectError):
        streamed(anthropic_messages, events)


def test_a_model_gives_no_blocks_of_results() -> None:
    """Results among what a model says are refused: nothing stands before them that they answer."""
    block = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    with pytest.raises(DialectError, check=lambda error: error.where == "content[0]"):
        anthropic_messages.decode({"content": [block]})


def test_an_id_that_anthropic_refuses_goes_out_as_another() -> None:
    """A call id with characters that the API does not take goes out under one that it does."""
    block = {"type": "tool_use", "id": "a b", "name": "f", "input": {}}
    turn = anthropic_messages.decode({"content": [block]})
    items = committed(turn)
    assert items is not None
    _, sent, answer = anthropic_messages.messages(items)
    assert sent["content"][0]["id"] == answer["content"][0]["tool_use_id"] != "a b"
    goes_on(turn)
