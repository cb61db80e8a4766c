"""Responses streams of compatible hosts: which event is about which item, and what stays of it."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py import AssistantTurn
from lutum_py.dialects import openai_responses
from lutum_py.errors import DialectError
from lutum_py.streaming import CallCompleted
from tests.cases import over

from .responses_wire import call, message, reasoning, response, text
from .test_call_reports import every_call_is_told_once, fed
from .test_openai_responses_stream import added, delta, done, ended

FIRST = call("c1", '{"a":1}', id="fc_1")
SECOND = {**call("c2", '{"b":2}', id="fc_2"), "name": "other"}
SAID = {**message(text("Well.")), "id": "msg_1"}


def pieces(item: dict[str, Any], at: int, size: int = 3) -> list[dict[str, Any]]:
    """The events of a call, each piece with the id of its item."""
    written = item["arguments"]
    texts = [written[start : start + size] for start in range(0, len(written), size)]
    kind = "function_call_arguments"
    return [
        added({**item, "arguments": ""}, at),
        *(delta(kind, each, at, item_id=item["id"]) for each in texts),
        done(item, at),
    ]


def said(turn: AssistantTurn) -> list[tuple[str, str, str]]:
    return [(each.id, each.name, each.arguments) for each in turn.tool_calls]


CALLS = [("c1", "echo", '{"a":1}'), ("c2", "other", '{"b":2}')]


def in_turns(one: list[Any], other: list[Any]) -> list[Any]:
    return [each for pair in zip(one, other, strict=True) for each in pair]


@over("numbers", [None, 0, 7, "swapped", "growing"])
@over("order", ["after each other", "in turns"])
@over("last", ["whole", "empty"])
def test_pieces_belong_to_the_item_of_their_id(numbers: Any, order: str, last: str) -> None:
    """Without an `output_index`, or with a wrong one, a piece is of the item that it names."""
    one, other = pieces(FIRST, 0), pieces(SECOND, 1)
    sent = one + other if order == "after each other" else in_turns(one, other)
    events: list[dict[str, Any]] = []
    for place, event in enumerate(sent):
        at = event["output_index"]
        if numbers == "swapped":
            number = 1 - at if event["type"].endswith("delta") else at
        else:
            number = place if numbers == "growing" else numbers
        rest = {key: value for key, value in event.items() if key != "output_index"}
        events.append(rest if number is None else {**rest, "output_index": number})
    whole = response(FIRST, SECOND) if last == "whole" else response()
    told, turn = fed(openai_responses, [*events, ended(whole)])
    assert said(turn) == CALLS
    every_call_is_told_once(told, turn)


def test_an_id_of_its_own_for_each_event_is_no_other_item() -> None:
    """Where a host makes an id for each event, the number says whose a piece is."""
    events = [
        {**event, "item_id": f"x{place}"} if "item_id" in event else event
        for place, event in enumerate([*pieces(FIRST, 0), *pieces(SECOND, 1)])
    ]
    for place, event in enumerate(events):
        if "item" in event:
            event["item"] = {**event["item"], "id": f"y{place}"}
    told, turn = fed(openai_responses, [*events, ended(response())])
    assert said(turn) == CALLS
    every_call_is_told_once(told, turn)


def test_text_under_the_number_of_an_item_that_is_done_is_of_the_next() -> None:
    """A host that numbers all items 0 loses no text."""
    events = [
        *(delta("output_text", "We", item_id="m1"), delta("output_text", "ll.", item_id="m1")),
        done({**SAID, "id": "m1"}, 0),
        *pieces(FIRST, 0),
        delta("output_text", "So.", item_id="m2"),
    ]
    _, turn = fed(openai_responses, [*events, ended(response())])
    assert (turn.text, said(turn)) == ("Well.So.", CALLS[:1])


HIDDEN = reasoning(encrypted_content="x")


@over(
    "kept",
    [[], [0], [1], [2], [0, 2], [1, 2], [0, 1, 2]],
)
@over("renamed", [False, True])
def test_a_completed_item_stays_in_the_turn(kept: list[int], renamed: bool) -> None:
    """What was done is in the turn, at its place, whatever the last event leaves out or renames."""
    items = [HIDDEN, SAID, FIRST]
    events = [done(HIDDEN, 0), done(SAID, 1), *pieces(FIRST, 2)]
    last = [items[place] for place in kept]
    if renamed:
        last = [{**item, "id": f"other_{item['id']}"} for item in last]
    told, turn = fed(openai_responses, [*events, ended(response(*last))])
    plain = [{k: v for k, v in item.items() if k != "id"} for item in turn.payload["output"]]
    assert plain == [{k: v for k, v in item.items() if k != "id"} for item in items]
    assert [each.metadata for each in told if isinstance(each, CallCompleted)] == [*turn.tool_calls]
    assert openai_responses.decode(turn.payload) == turn


def test_an_item_that_only_the_end_has_keeps_its_place() -> None:
    """Items that came first at the end stand where the end has them."""
    events = [done(SAID, 0), done(FIRST, 1)]
    _, turn = fed(openai_responses, [*events, ended(response(HIDDEN, SAID, SECOND))])
    assert turn.payload["output"] == [HIDDEN, SAID, FIRST, SECOND]


@over("left_out", [None, "", "missing"])
@over("where", ["done", "end", "both"])
def test_streamed_arguments_survive_an_item_without(left_out: Any, where: str) -> None:
    """A finished item without arguments has those that came in pieces."""
    bare = {**FIRST, "arguments": left_out}
    if left_out == "missing":
        del bare["arguments"]
    events = pieces(FIRST, 0)
    if where != "end":
        events[-1] = done(bare, 0)
    told, turn = fed(
        openai_responses, [*events, ended(response(FIRST if where == "done" else bare))]
    )
    assert said(turn) == CALLS[:1]
    every_call_is_told_once(told, turn)


def test_streamed_text_survives_a_message_without() -> None:
    """A finished message without content says what came in pieces."""
    bare = {**SAID, "content": []}
    events = [added(bare, 0), delta("output_text", "Hi", item_id="msg_1"), done(bare, 0)]
    for last in ([bare], []):
        _, turn = fed(openai_responses, [*events, ended(response(*last))])
        assert turn.text == "Hi"


def test_doubled_arguments_of_an_item_are_one() -> None:
    """Arguments that a host sends twice are one; two that differ are a broken stream."""
    start = added({**FIRST, "arguments": ""}, 0)
    kind = "function_call_arguments"
    twice = [start, delta(kind, '{"a":1}'), delta(kind, '{"a":1}')]
    _, turn = fed(openai_responses, [*twice, ended(response())])
    assert said(turn) == CALLS[:1]
    _, turn = fed(
        openai_responses, [*twice, done({**FIRST, "arguments": '{"a":1}{"a":1}'}, 0), END]
    )
    assert said(turn) == CALLS[:1]
    for last in (done({**FIRST, "arguments": ""}, 0), END):
        with pytest.raises(DialectError, match="of a call of 'echo' are two objects"):
            fed(openai_responses, [start, delta(kind, '{"a":1}'), delta(kind, '{"a":2}'), last])


KIND = "function_call_arguments"
CUSTOM = {"type": "custom_tool_call", "id": "ct1", "call_id": "c7", "name": "sql", "input": ""}


def ends(item: dict[str, Any], key: str, text: str) -> list[list[dict[str, Any]]]:
    """Each way in which a host states at the end all that was written of a call."""
    whole = {**item, key: text}
    kind = f"response.{KIND}.done" if key == "arguments" else "response.custom_tool_call_input.done"
    done_whole = {"type": kind, "output_index": 0, "item_id": item["id"], key: text}
    return [
        [done_whole, END],
        [done(whole, 0), END],
        [ended(response(whole))],
        [done_whole, done(whole, 0), ended(response(whole))],
    ]


@over(
    "streamed, finished, kept",
    [
        (['{"a":', "1}"], '{"a": 1}', '{"a": 1}'),
        (['{"a":1}'], '{"a":1}{"a":1}', '{"a":1}'),
        (['{"a":1}', '{"a":1}'], '{"a":1}', '{"a":1}'),
        (['{"a":', '{"a":1}'], '{"a":1}', '{"a":1}'),
        (['{"a":1'], '{"a":1}', '{"a":1}'),
        (['{"a":1}'], '{"a":1,"b":2}', '{"a":1,"b":2}'),
        (['{"a":1,"b":2}'], '{"a":1}', '{"a":1,"b":2}'),
        (['{"a":1}'], "{}", '{"a":1}'),
        (["{a: 1"], "{a: 1", "{a: 1"),
    ],
)
def test_arguments_that_agree_with_the_finished_item_are_one(
    streamed: list[str], finished: str, kept: str
) -> None:
    """Where the pieces and the finished item are equal, or one contains the other, it is one."""
    begun = [added({**FIRST, "arguments": ""}, 0), *(delta(KIND, text) for text in streamed)]
    for end in ends(FIRST, "arguments", finished):
        told, turn = fed(openai_responses, [*begun, *end])
        assert [call.arguments for call in turn.tool_calls] == [kept]
        completed = [each.metadata for each in told if isinstance(each, CallCompleted)]
        assert completed == [*turn.tool_calls]


def test_arguments_that_end_as_an_object_are_those() -> None:
    """A host that gives the object itself at the end is read."""
    events = [added({**FIRST, "arguments": ""}, 0), delta(KIND, '{"a":')]
    whole = {**FIRST, "arguments": {"a": 1}}
    assert said(fed(openai_responses, [*events, done(whole, 0), END])[1]) == CALLS[:1]


@over(
    "streamed, finished",
    [
        (['{"a":1}'], '{"a":2}'),
        (['{"path":"/a"}'], '{"path":"/b","only":true}'),
        (['{"a":', "1"], '{"a":2}'),
        (["{a: 1"], "{b: 1"),
        (['{"a":1}', '{"a":2}'], '{"a":2}'),
    ],
)
def test_arguments_that_differ_from_the_finished_item_break_the_stream(
    streamed: list[str], finished: str
) -> None:
    """The developer is shown a broken stream; no call runs with one of two different arguments."""
    begun = [added({**FIRST, "arguments": ""}, 0), *(delta(KIND, text) for text in streamed)]
    for end in ends(FIRST, "arguments", finished):
        with pytest.raises(DialectError, match="of a call of 'echo' are"):
            fed(openai_responses, [*begun, *end])


@over("streamed, finished, kept", [
    (["SELECT", " 1"], "SELECT 1", "SELECT 1"),
    (["SELECT", "SELECT 1"], "SELECT 1", "SELECT 1"),
    (["SELECT"], "SELECT 1", "SELECT 1"),
    (["SELECT 1"], "DROP TABLE a", None),
])  # fmt: skip
def test_free_text_agrees_with_the_finished_item_too(
    streamed: list[str], finished: str, kept: str | None
) -> None:
    """A custom call whose pieces are another text than the finished one is a broken stream."""
    pieces = [delta("custom_tool_call_input", text) for text in streamed]
    for end in ends(CUSTOM, "input", finished):
        events = [added(CUSTOM, 0), *pieces, *end]
        if kept is None:
            with pytest.raises(DialectError, match="of a call of 'sql' are"):
                fed(openai_responses, events)
        else:
            assert [call.arguments for call in fed(openai_responses, events)[1].tool_calls] == [
                kept
            ]


END = ended(response())


@over("status", ["queued", "in_progress"])
def test_a_response_in_the_background_is_no_turn(status: str) -> None:
    """What the provider still writes is not taken for an answer."""
    with pytest.raises(DialectError, match=f"the response is {status}, in the background"):
        openai_responses.decode(response(status=status))
    # A host that repeats at the end what it said at the start means its event.
    for kind in ("completed", "incomplete"):
        _, turn = fed(openai_responses, [ended(response(SAID, status=status), kind)])
        assert (turn.text, turn.finish_reason) == ("Well.", kind)


@over("name", ["clean", "look"])
def test_a_second_call_of_an_id_keeps_its_own_arguments(name: str) -> None:
    """An item that is done takes no other call in, though both have one id; each has its words."""
    items = [
        {
            "type": "function_call",
            "id": f"f{at}",
            "call_id": "c1",
            "name": called,
            "arguments": text,
        }
        for at, (called, text) in enumerate([("clean", '{"a":1}'), (name, "")])
    ]
    decoder = openai_responses.StreamDecoder()
    for at, item in enumerate(items):
        where = {"output_index": at}
        begun = {**item, "arguments": ""}
        decoder.feed({"type": "response.output_item.added", "item": begun, **where})
        piece = {"item_id": item["id"], "delta": item["arguments"], **where}
        decoder.feed({"type": "response.function_call_arguments.delta", **piece})
        decoder.feed({"type": "response.output_item.done", "item": item, **where})
    whole = {"status": "completed", "output": items}
    decoder.feed({"type": "response.completed", "response": whole})
    turn = decoder.finish()
    assert [call.arguments for call in turn.tool_calls] == ['{"a":1}', ""]
    assert len({call.id for call in turn.tool_calls}) == 2
