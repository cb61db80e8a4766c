"""A turn is the same whole and streamed, and a stream costs by its length."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from lutum_py import AssistantTurn, Message, NeedsTools, Toolset, tool, tool_fn
from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)
from lutum_py.streaming import CallCompleted, CallStarted
from tests.instructions import calls

Call: TypeAlias = tuple[str, str, str]
Said: TypeAlias = tuple[Any, dict[str, Any], list[dict[str, Any]]]


def chat(said: list[Call], *, cut: bool = False) -> Said:
    reason = "length" if cut else "tool_calls"
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": text}}
        for id, name, text in said
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    whole = {"choices": [{"index": 0, "finish_reason": reason, "message": message}]}
    deltas = [{"tool_calls": [{"index": at, **each}]} for at, each in enumerate(made)]
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return openai_chat, whole, events


def responses(said: list[Call], *, cut: bool = False) -> Said:
    status = "incomplete" if cut else "completed"
    output = [
        {"type": "function_call", "id": f"fc{at}", "call_id": id, "name": name, "arguments": text}
        for at, (id, name, text) in enumerate(said)
    ]
    whole: dict[str, Any] = {"id": "r", "status": status, "output": output}
    if cut:
        whole["incomplete_details"] = {"reason": "max_output_tokens"}
    started = {**whole, "output": [], "status": "in_progress"}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    for at, item in enumerate(output):
        kind = "response.function_call_arguments.delta"
        added = {**item, "arguments": ""}
        events += [
            {"type": "response.output_item.added", "output_index": at, "item": added},
            {"type": kind, "output_index": at, "delta": item["arguments"]},
            {"type": "response.output_item.done", "output_index": at, "item": item},
        ]
    events.append({"type": f"response.{status}", "response": whole})
    return openai_responses, whole, events


def anthropic(said: list[Call], *, cut: bool = False) -> Said:
    reason = "max_tokens" if cut else "tool_use"
    blocks = [
        {"type": "tool_use", "id": id, "name": name, "input": {} if cut else json.loads(text)}
        for id, name, text in said
    ]
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {"role": "assistant", "content": blocks, "stop_reason": reason, "usage": usage}
    started = {**whole, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": started}]
    for at, (block, (_, _, text)) in enumerate(zip(blocks, said, strict=True)):
        delta = {"type": "input_json_delta", "partial_json": text}
        events += [
            {"type": "content_block_start", "index": at, "content_block": {**block, "input": {}}},
            {"type": "content_block_delta", "index": at, "delta": delta},
            {"type": "content_block_stop", "index": at},
        ]
    ended = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    return anthropic_messages, whole, [*events, ended, {"type": "message_stop"}]


def gemini(said: list[Call], *, cut: bool = False) -> Said:
    reason = "MAX_TOKENS" if cut else "STOP"
    parts = [
        {"functionCall": {"id": id, "name": name, "args": json.loads(text)}}
        for id, name, text in said
    ]
    content = {"role": "model", "parts": parts}
    whole = {"candidates": [{"content": content, "finishReason": reason, "index": 0}]}
    contents = [{"role": "model", "parts": [part]} for part in parts]
    events = [{"candidates": [{"content": each, "index": 0}]} for each in contents]
    empty = {"role": "model", "parts": []}
    events.append({"candidates": [{"content": empty, "finishReason": reason, "index": 0}]})
    return gemini_generate_content, whole, events


def bedrock(said: list[Call], *, cut: bool = False) -> Said:
    reason = "max_tokens" if cut else "tool_use"
    calls = [
        {"toolUseId": id, "name": name, "input": {} if cut else json.loads(text)}
        for id, name, text in said
    ]
    message = {"role": "assistant", "content": [{"toolUse": call} for call in calls]}
    events: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for at, (call, (_, _, text)) in enumerate(zip(calls, said, strict=True)):
        started = {key: value for key, value in call.items() if key != "input"}
        place = {"contentBlockIndex": at}
        events += [
            {"contentBlockStart": {**place, "start": {"toolUse": started}}},
            {"contentBlockDelta": {**place, "delta": {"toolUse": {"input": text}}}},
            {"contentBlockStop": place},
        ]
    events.append({"messageStop": {"stopReason": reason}})
    return bedrock_converse, {"output": {"message": message}, "stopReason": reason}, events


WIRES = [chat, responses, anthropic, gemini, bedrock]


def streamed(dialect: Any, events: list[dict[str, Any]]) -> AssistantTurn:
    decoder = dialect.StreamDecoder()
    for event in events:
        decoder.feed(event)
    decoder.close()
    turn: AssistantTurn = decoder.finish()
    return turn


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "said",
    [
        [("c1", "f", "{}")],
        [("c1", "", "{}")],
        [("c1", "", "{}"), ("c2", "f", "{}")],
        [("c1", "f", "{}"), ("c1", "g", '{"a":1}')],
        [("c1", "f", "{}"), ("c1", "f", "{}"), ("c1", "f", "{}")],
        [("c1", "f", "{}"), ("c1", "", '{"a":1}')],
        [("", "f", "{}"), ("", "f", "{}")],
    ],
)
def test_a_turn_is_the_same_whole_and_streamed(wire: Callable[..., Said], said: list[Call]) -> None:
    """Calls without a name, and several of one id, come to the same turn on both ways."""
    dialect, whole, events = wire(said)
    one, other = dialect.decode(whole), streamed(dialect, events)
    assert one.tool_calls == other.tool_calls
    assert [(call.name, call.arguments) for call in one.tool_calls] == [each[1:] for each in said]


def nameless(value: Any, how: str) -> Any:
    """Leave out each name that is blank, or say null."""
    if isinstance(value, dict):
        made = {key: nameless(item, how) for key, item in value.items()}
        if made.get("name") == "":
            made = {**made, "name": None} if how == "null" else made
            made = {k: v for k, v in made.items() if k != "name"} if how == "missing" else made
        return made
    return [nameless(item, how) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["null", "missing", "blank"])
def test_a_call_without_a_name_costs_that_call(wire: Callable[..., Said], how: str) -> None:
    """Such a call is an issue of the round, the calls beside it run, and all goes back."""
    text = '{"a":"x"}'
    dialect, whole, events = nameless_of(wire, [("c1", "", text), ("c2", "f", text)], how)
    for turn in (dialect.decode(whole), streamed(dialect, events)):
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        (issue,), (good,) = outcome.round.recoverable_tool_call_issues, outcome.round.tool_calls
        assert (issue.metadata.id, good.id) == ("c1", "c2")
        said = dialect.messages([Message("user", "Go"), *outcome.round.resolve([good.call_sync()])])
        assert dialect.check(said) == []
        assert dialect.decode(turn.payload) == turn


def nameless_of(wire: Callable[..., Said], said: list[Call], how: str) -> Said:
    dialect, whole, events = wire(said)
    return dialect, nameless(whole, how), nameless(events, how)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("ids", "distinct"),
    [
        (["a", "a"], ["a", "a_2"]),
        (["a", "b", "a", "a"], ["a", "b", "a_2", "a_3"]),
        (["a_2", "a", "a", "a_2"], ["a_2", "a", "a_3", "a_2_2"]),
    ],
)
def test_calls_of_one_id_are_told_apart(
    wire: Callable[..., Said], ids: list[str], distinct: list[str]
) -> None:
    """Each call of a turn has an id of its own, which its result and what goes back have too."""
    said = [(id, "f", json.dumps({"a": str(at)})) for at, id in enumerate(ids)]
    dialect, whole, events = wire(said)
    for turn in (dialect.decode(whole), streamed(dialect, events)):
        assert [call.id for call in turn.tool_calls] == distinct
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        results = [call.call_sync() for call in outcome.round.tool_calls]
        assert [result.output for result in results] == [str(at) for at in range(len(ids))]
        sent = dialect.messages([Message("user", "Go"), *outcome.round.resolve(results)])
        assert dialect.check(sent) == []
        assert dialect.decode(turn.payload) == turn
    told = all_told(dialect, events)
    started = [each.id for each in told if isinstance(each, CallStarted)]
    ended = [each.metadata.id for each in told if isinstance(each, CallCompleted)]
    assert started == ended == distinct


def all_told(dialect: Any, events: list[dict[str, Any]]) -> list[Any]:
    decoder = dialect.StreamDecoder()
    told = [each for event in events for each in decoder.feed(event)]
    return [*told, *decoder.close()]


@tool_fn
def f(a: str) -> str:
    """Take a text."""
    return a


class Tools(Toolset):
    f = tool(f)


@pytest.mark.parametrize("wire", [chat, responses, anthropic])
@pytest.mark.parametrize("text", ['{"a": "unfin', '{"a": "x"', '{"a', "{"])
def test_arguments_that_a_limit_cut_off_are_told_as_that(
    wire: Callable[..., Said], text: str
) -> None:
    """Whole or streamed, the model hears of the limit, and not that its JSON is invalid."""
    dialect, whole, events = wire([("c1", "f", text)], cut=True)
    for turn in (dialect.decode(whole), streamed(dialect, events)):
        assert turn.cut_off == "arguments"
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        (issue,) = outcome.round.recoverable_tool_call_issues
        assert "cut off by the limit on tokens" in issue.text
        assert issue.fields == ()
        outcome.round.discard()


@pytest.mark.parametrize("wire", [chat, responses, gemini])
def test_whole_arguments_may_be_cut_off_all_the_same(wire: Callable[..., Said]) -> None:
    """Of a turn that a limit ended, the last call is not run, although its text is whole JSON."""
    dialect, whole, events = wire([("c1", "f", '{"a":"x"}'), ("c2", "f", '{"a":"y"}')], cut=True)
    for turn in (dialect.decode(whole), streamed(dialect, events)):
        assert turn.cut_off == "answer"
        outcome = Tools.read_turn(turn)
        assert isinstance(outcome, NeedsTools)
        (first,) = outcome.round.tool_calls
        read: Any = first.input
        assert read.a == "x"
        (issue,) = outcome.round.recoverable_tool_call_issues
        assert "cut off by the limit on tokens" in issue.text
        outcome.round.discard()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("named", [True, False])
def test_a_stream_costs_by_its_length(wire: Callable[..., Said], named: bool) -> None:
    """Four times as many calls take four times as long, whatever the host says of their ids."""

    def taken(count: int) -> int:
        said = [(f"c{at}" if named else "", "f", "{}") for at in range(count)]
        dialect, _, events = wire(said)
        with calls() as counted:
            streamed(dialect, events)
        return counted()

    taken(10)
    assert taken(800) <= 4.4 * taken(200)


def test_citations_of_a_stream_cost_by_their_number() -> None:
    """Each citation of a text is added to those before it, which are not copied."""
    cited = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "x"}}
    started = {"type": "message_start", "message": {"role": "assistant", "content": []}}
    block: dict[str, Any] = {"type": "text", "text": "", "citations": []}
    events: list[dict[str, Any]] = [
        started,
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    events += [{"type": "content_block_delta", "index": 0, "delta": cited}] * 3
    events += [{"type": "content_block_stop", "index": 0}]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    turn = streamed(anthropic_messages, events)
    payload: Any = turn.payload
    assert len(payload["content"][0]["citations"]) == 3
    assert block["citations"] == []
