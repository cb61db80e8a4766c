"""Streams of compatible hosts: which piece belongs to which call, whatever a host numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lutum_py import AssistantTurn
from lutum_py.dialects import openai_chat
from lutum_py.errors import DialectError
from lutum_py.streaming import ArgumentsDelta, CallCompleted, CallStarted
from tests.cases import over

from .test_call_reports import every_call_is_told_once, fed


def chat(*pieces: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a stream, each with one piece of a call."""
    deltas = [{"tool_calls": [piece]} for piece in pieces]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]


def piece(
    index: int | None, call_id: str | None, name: str | None, text: str | None
) -> dict[str, Any]:
    fields = {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}
    return {key: value for key, value in fields.items() if value is not None}


def said(turn: AssistantTurn) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in turn.tool_calls]


FORECAST, NOW = ("forecast", '{"city":"Oslo"}'), ("now", '{"zone":"CET"}')


@over(
    "pieces, calls",
    [
        # A new id with each piece.
        (
            [
                piece(0, "a1", "forecast", ""),
                piece(0, "a2", None, '{"city":'),
                piece(0, "a3", "", '"Oslo"}'),
            ],
            [FORECAST],
        ),
        # The same without an index, and with the name in each.
        ([piece(None, "a1", "forecast", '{"city":'), piece(None, "a2", "", '"Oslo"}')], [FORECAST]),
        (
            [piece(0, "a1", "forecast", '{"city":'), piece(0, "a2", "forecast", '"Oslo"}')],
            [FORECAST],
        ),
        # An empty name and id with each piece, and shells of calls.
        (
            [
                piece(0, "a", "forecast", ""),
                piece(0, "", "", '{"city":"Oslo"}'),
                piece(0, "", "", ""),
                piece(1, "", "", ""),
            ],
            [FORECAST],
        ),
        # Another name under the index and the id of a call.
        ([piece(0, "a", *FORECAST), piece(0, "a", *NOW)], [FORECAST, NOW]),
        ([piece(0, "a", "forecast", ""), piece(0, "a", *NOW)], [("forecast", ""), NOW]),
        ([piece(0, "a", *FORECAST), piece(0, None, *NOW)], [FORECAST, NOW]),
        ([piece(None, "a", *FORECAST), piece(None, "a", *NOW)], [FORECAST, NOW]),
        (
            [
                piece(0, "a", *FORECAST),
                piece(0, "a", "now", ""),
                piece(0, "a", None, '{"zone":"CET"}'),
            ],
            [FORECAST, NOW],
        ),
        # The same tool once more, under one id, with arguments of its own.
        (
            [piece(0, "a", "now", '{"zone":"EET"}'), piece(1, "a", *NOW)],
            [("now", '{"zone":"EET"}'), NOW],
        ),
        # An index that grows with each piece, of calls with ids and without.
        (
            [
                piece(0, "a", "forecast", '{"city":'),
                piece(1, "a", None, '"Os'),
                piece(2, "a", "forecast", 'lo"}'),
                piece(3, "b", *NOW),
            ],
            [FORECAST, NOW],
        ),
        (
            [
                piece(0, "a", "forecast", ""),
                piece(1, None, None, '{"city":'),
                piece(2, None, None, '"Oslo"}'),
                piece(3, "b", "now", ""),
                piece(4, None, None, '{"zone":"CET"}'),
            ],
            [FORECAST, NOW],
        ),
        # The index of another call, where the id says whose it is.
        (
            [
                piece(0, "a", "forecast", '{"city":'),
                piece(1, "b", "now", '{"zone":'),
                piece(1, "a", None, '"Oslo"}'),
                piece(0, "b", None, '"CET"}'),
            ],
            [FORECAST, NOW],
        ),
        # Fragments before their beginning, of one call and of the second.
        (
            [
                piece(0, None, None, '{"city":'),
                piece(1, None, None, '{"zone":'),
                piece(1, "b", "now", '"CET"}'),
                piece(0, "a", "forecast", '"Oslo"}'),
            ],
            [FORECAST, NOW],
        ),
        (
            [piece(None, None, None, '{"city":"Oslo"}'), piece(None, "a", "forecast", "")],
            [FORECAST],
        ),
    ],
)
def test_a_piece_belongs_to_the_call_of_its_id_and_name(
    pieces: list[dict[str, Any]], calls: list[tuple[str, str]]
) -> None:
    """Id and name say which call a piece belongs to, the index is a hint, nothing is lost."""
    told, turn = fed(openai_chat, chat(*pieces))
    assert said(turn) == calls
    started = {each.index: (each.id, each.name) for each in told if isinstance(each, CallStarted)}
    assert [started[at] for at in sorted(started)] == [(c.id, c.name) for c in turn.tool_calls]


def test_arguments_that_come_before_the_name_are_told_after_the_start() -> None:
    """A watcher learns of a call before its arguments, in whatever order the pieces come."""
    early = piece(0, None, None, '{"city":'), piece(0, "a", "forecast", '"Oslo"}')
    told, turn = fed(openai_chat, chat(*early))
    every_call_is_told_once(told, turn)
    pieces = [each for each in told if isinstance(each, ArgumentsDelta)]
    assert [(each.text, each.partial) for each in pieces] == [(FORECAST[1], {"city": "Oslo"})]


@over(
    "pieces",
    [
        ['{"a":1}', '{"a":1}'],
        ['{"a":', "1}", '{"a": 1}'],
        ["{}", '{"a":1}'],
        ['{"a":', '{"a":1}'],
        ['{"', '{"a"', '{"a":', '{"a":1}', '{"a":1}'],
        ['{"a":1}{"a":1}'],
    ],
)
def test_doubled_arguments_are_one(pieces: list[str]) -> None:
    """Arguments that a host sends twice, or of which each piece has the one before, are one."""
    more = [piece(0, None, None, text) for text in pieces]
    told, turn = fed(openai_chat, chat(piece(0, "a", "f", ""), *more))
    (call,) = turn.tool_calls
    assert json.loads(call.arguments) == {"a": 1}
    assert [each.metadata for each in told if isinstance(each, CallCompleted)] == [call]
    assert turn == openai_chat.decode(turn.payload)


def test_a_later_object_may_say_more() -> None:
    """Of snapshots the last counts, if it has all of those before it."""
    shots = ['{"q":"Os","at":[1]}', '{"q":"Oslo","at":[1,2],"n":null}']
    more = [piece(0, None, None, text) for text in shots]
    _, turn = fed(openai_chat, chat(piece(0, "a", "f", ""), *more))
    assert said(turn) == [("f", shots[-1])]


@over("pieces", [['{"a":1}', '{"a":2}'], ['{"a":1}', '{"b":1}'], ['{"a":[1]}{"a":[]}']])
def test_two_arguments_of_one_call_are_a_broken_stream(pieces: list[str]) -> None:
    """Two different objects for one call are an error that the developer reads."""
    more = [piece(0, None, None, text) for text in pieces]
    with pytest.raises(DialectError, match="of a call of 'pay' are two objects") as caught:
        fed(openai_chat, chat(piece(0, "a", "pay", ""), *more))
    assert caught.value.where == f"after event {len(pieces) + 1}"


@over(
    "text",
    [
        '{"a":"}{"}',
        '{"a": {"b": 1}} {',
        "{'a': 1}{'a': 1}",
        '{"a":1}{"a":1} and',
        '{"{":1}',
    ],
)
def test_other_arguments_are_as_the_model_wrote_them(text: str) -> None:
    """What is no doubling goes to the model as it wrote it, in pieces of any size."""
    for size in (1, 2, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        more = [piece(0, None, None, each) for each in pieces]
        _, turn = fed(openai_chat, chat(piece(0, "a", "f", ""), *more))
        assert said(turn) == [("f", text)], size


def test_free_text_is_never_taken_for_doubled() -> None:
    """The input of a custom call is what the model wrote, even two equal objects."""
    free = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "{}"}}
    other = {**free, "id": "b"}
    _, turn = fed(openai_chat, chat(free, free, other, {"index": 0, "custom": {"input": "{}"}}))
    assert said(turn) == [("sh", "{}{}"), ("sh", "{}{}")]


def test_each_encrypted_detail_is_kept() -> None:
    """Reasoning details with other ids or other data are others, whatever their index."""
    hidden = {"type": "reasoning.encrypted", "index": 0, "format": "x"}
    sent = [{**hidden, "id": f"rs_{at}", "data": f"d{at}"} for at in range(3)]
    sent += [{**hidden, "id": "rs_2", "data": "d3"}, {**hidden, "data": "d4"}]
    text = {"type": "reasoning.text", "index": 0, "text": "Let", "id": None}
    more = [text, {**text, "text": " me"}, {**text, "text": "", "signature": "s"}]
    deltas = [{"reasoning_details": [each]} for each in (*sent, *more)]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    _, turn = fed(openai_chat, [*chunks, end])
    (message,) = openai_chat.messages([turn])
    thought = {"type": "reasoning.text", "index": 0, "text": "Let me", "signature": "s"}
    assert message["reasoning_details"] == [*sent, thought]
    assert turn.reasoning == "Let me"


def test_arguments_that_begin_in_a_piece_with_a_name_are_of_another_call() -> None:
    """A second call of one tool may come in pieces, without an id or an index."""
    more = piece(None, None, "now", '{"zone":'), piece(None, None, None, '"CET"}')
    _, turn = fed(openai_chat, chat(piece(None, None, "now", '{"zone":"EET"}'), *more))
    assert said(turn) == [("now", '{"zone":"EET"}'), NOW]


def test_two_objects_of_a_whole_response_are_the_models() -> None:
    """Where nothing was streamed, arguments that are two objects are what the model wrote."""
    function = {"name": "f", "arguments": '{"a":1}{"b":2}'}
    message = {"tool_calls": [{"id": "a", "function": function}]}
    turn = openai_chat.decode({"choices": [{"message": message}]})
    assert said(turn) == [("f", '{"a":1}{"b":2}')]


def test_a_shell_beside_free_text_adds_nothing() -> None:
    """Pieces without a name, under an index of their own, are no more of a free text."""
    free = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    again = {"index": 0, "id": "a", "custom": {"name": "sh", "input": " -l"}}
    _, turn = fed(openai_chat, chat(free, again, piece(1, None, None, "x"), piece(2, "", "", "")))
    assert said(turn) == [("sh", "ls -l"), ("", "x")]
