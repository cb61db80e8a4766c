"""The Messages API where a model declines to go on, and another one does, in one turn."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import Message
from lutum_py.dialects import anthropic_messages as dialect
from lutum_py.errors import DialectError, HistoryError

from .anthropic_wire import USER, response, result
from .histories import read

FALLBACK = {"type": "fallback", "from": {"model": "claude"}, "to": {"model": "claude-b"}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def thinking(said: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": "c2ln"}


def used(call_id: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": "echo", "input": {}}


def ran(call_id: str) -> list[dict[str, Any]]:
    """Something that the server ran to its end."""
    found = {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}
    return [used(call_id, "server_tool_use"), found]


DECLINED: list[dict[str, Any]] = [
    thinking("a"),
    text("a"),
    *ran("s1"),
    used("s2", "server_tool_use"),
    used("t1"),
    FALLBACK,
    text("b"),
    {"type": "redacted_thinking", "data": "x"},
    {"type": "connector_text", "connector_text": "x"},
    used("s3", "mcp_tool_use"),
    used("t2"),
    FALLBACK,
    thinking("c"),
    used("s4", "server_tool_use"),
    text("c"),
    used("t3"),
]
SENT = [text("a"), *ran("s1"), FALLBACK, text("b"), *DECLINED[-5:]]


def test_what_a_model_made_that_declined_is_no_call_and_stays_behind() -> None:
    """Only calls after the last `fallback` are calls; before it, texts go back and what was run."""
    turn = dialect.decode(response(*DECLINED))
    assert turn.text == "abc"
    assert [call.id for call in turn.tool_calls] == ["t3"]
    assert turn.payload is not None
    assert turn.payload["content"] == DECLINED
    said = dialect.messages([Message("user", "Go"), turn, *map(result, turn.tool_calls)])
    assert said[1]["content"] == SENT
    assert [block["tool_use_id"] for block in said[2]["content"]] == ["t3"]
    assert dialect.check(said) == []


def test_a_stream_has_the_model_and_the_calls_of_who_answered() -> None:
    """A stream in which a model declines gives the turn of the whole, also as far as it came."""
    events: list[Any] = [{"type": "message_start", "message": response()}]
    for index, block in enumerate(DECLINED):
        begin = {"type": "content_block_start", "index": index, "content_block": block}
        events += [begin, {"type": "content_block_stop", "index": index}]
    decoder = dialect.StreamDecoder()
    for event in [*events, {"type": "message_stop"}]:
        decoder.feed(event)
    whole = dialect.decode({**response(*DECLINED), "model": "claude-b"})
    assert decoder.finish() == whole
    broken = dialect.StreamDecoder()
    for event in events:
        broken.feed(event)
    with pytest.raises(DialectError) as caught:
        broken.finish()
    turn: Any = caught.value.turn
    assert turn.model == "claude-b"
    assert [call.id for call in turn.tool_calls] == ["t3"]


def test_a_marker_that_names_no_model_changes_none() -> None:
    """A `fallback` without the model that goes on leaves the name that the message began with."""
    decoder = dialect.StreamDecoder()
    decoder.feed({"type": "message_start", "message": response()})
    decoder.feed({"type": "content_block_start", "content_block": {"type": "fallback"}})
    decoder.feed({"type": "message_stop"})
    assert decoder.finish().model == "claude"


def test_what_was_declined_is_found_and_taken_out_of_a_history() -> None:
    """A history with it is refused; a repair takes it out, with the results of its calls."""
    results = [
        {"type": "tool_result", "tool_use_id": each, "content": "1"} for each in ("t1", "t2", "t3")
    ]
    said = [USER, {"role": "assistant", "content": DECLINED}, {"role": "user", "content": results}]
    assert {each.rule for each in dialect.check(said)} == {"declined", "orphan_result"}
    with pytest.raises(HistoryError):
        dialect.read_history(said)
    repaired, _ = dialect.repair(said)
    assert repaired[1:] == [
        {"role": "assistant", "content": SENT},
        {"role": "user", "content": results[2:]},
    ]
    items, lost = read(dialect, *repaired)
    assert (len(items), lost) == (3, [])
