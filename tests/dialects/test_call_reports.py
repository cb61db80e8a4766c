"""Every stream: each call is started and completed once, and events of no known kind stand
apart.
"""

from __future__ import annotations

from itertools import product
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given

from lutum_py import AssistantTurn
from lutum_py.dialects import anthropic_messages, openai_responses
from lutum_py.streaming import ArgumentsDelta, CallCompleted, CallStarted, StreamEvent
from tests.cases import over

from .every_dialect import DIALECTS, streams
from .plain import compact
from .recordings import RECORDED_DIALECTS, Recording, recordings, report
from .test_hostile_requests import VALUES

Events = list[dict[str, Any]]


def fed(dialect: ModuleType, events: Events) -> tuple[list[StreamEvent], AssistantTurn]:
    decoder = dialect.StreamDecoder()
    said = [event for each in events for event in decoder.feed(each)]
    return [*said, *decoder.close()], decoder.finish()


def every_call_is_told_once(events: list[StreamEvent], turn: AssistantTurn) -> None:
    """Each call of the turn: one start, then its arguments, then one end, which is the call."""
    ends = {event.index: event.metadata for event in events if isinstance(event, CallCompleted)}
    completed = [event for event in events if isinstance(event, CallCompleted)]
    started = [event for event in events if isinstance(event, CallStarted)]
    assert [ends[index] for index in sorted(ends)] == list(turn.tool_calls)
    assert len(completed) == len(started) == len(turn.tool_calls)
    assert {event.index: (event.id, event.name) for event in started} == {
        index: (call.id, call.name) for index, call in ends.items()
    }
    for index, call in ends.items():
        told = [event for event in events if getattr(event, "index", None) == index]
        assert isinstance(told[0], CallStarted)
        assert isinstance(told[-1], CallCompleted)
        text = "".join(each.text for each in told if isinstance(each, ArgumentsDelta))
        assert "".join(text.split()) == "".join(call.arguments.split())


@DIALECTS
def test_each_call_is_begun_and_completed_once(dialect: ModuleType) -> None:
    """A stream tells each call of its turn once, with all of its arguments, in every dialect."""
    events, turn = fed(dialect, streams()[dialect.NAME])
    assert [(call.id, call.name) for call in turn.tool_calls] == [("a", "f"), ("b", "g")]
    every_call_is_told_once(events, turn)


@over(
    "left_out, twice",
    product(["added", "done", "both", "output", "all but added"], [False, True]),
)
def test_events_that_a_host_leaves_out_are_made_up_for(left_out: str, twice: bool) -> None:
    """Whichever events of an item a host of Responses leaves out, or sends twice, each call is
    told once, and is in the turn.
    """
    gone = {
        "added": ("added",),
        "done": ("done",),
        "both": ("added", "done"),
        "output": (),
        "all but added": ("done",),
    }[left_out]
    events = [
        event
        for event in streams()["openai_responses"]
        if not event["type"].endswith(tuple(f"output_item.{step}" for step in gone))
        for _ in range(2 if twice and "output_item" in event["type"] else 1)
    ]
    if left_out in ("output", "all but added"):
        events[-1]["response"]["output"] = []
    told, turn = fed(openai_responses, events)
    assert [(call.id, call.arguments) for call in turn.tool_calls] == [("a", '{"x":1}'), ("b", "")]
    every_call_is_told_once(told, turn)


def test_what_was_said_is_kept_where_a_host_never_says_it_whole() -> None:
    """Text, a refusal and a call's argument text that came only in pieces are in the turn."""
    added = {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""}
    events: Events = [
        {"type": "response.output_text.delta", "output_index": 0, "delta": "He"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "llo"},
        {"type": "response.refusal.delta", "output_index": 1, "delta": "No."},
        {"type": "response.reasoning_text.delta", "output_index": 2, "delta": "Hm"},
        {"type": "response.output_item.added", "output_index": 3, "item": added},
        {"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{}"},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]
    told, turn = fed(openai_responses, events)
    assert (turn.text, turn.refusal, turn.tool_calls[0].arguments) == ("Hello", "No.", "{}")
    every_call_is_told_once(told, turn)


def test_calls_that_stand_in_the_first_event_are_told() -> None:
    """A host of Messages that sends a whole call with the start of the message tells it too."""
    call = {"type": "tool_use", "id": "z", "name": "f", "input": {"a": 1}}
    start, *rest = streams()["anthropic_messages"]
    start["message"]["content"] = [call]
    told, turn = fed(anthropic_messages, [start, *rest])
    assert [each.id for each in turn.tool_calls] == ["z", "a", "b"]
    started = [event.id for event in told if isinstance(event, CallStarted)]
    assert sorted(started) == ["a", "b", "z"]


UNKNOWN: list[dict[str, Any]] = [
    {"type": "brand.new", "id": "no", "model": "no"},
    {"x": 1},
    {"event": None},
]


@DIALECTS
def test_unknown_events_stand_apart(dialect: ModuleType) -> None:
    """An event of a kind that nobody knows is kept beside the turn, and changes nothing of it."""
    events = streams()[dialect.NAME]
    told, turn = fed(dialect, events)
    assert "unknown_events" not in turn.payload
    for unknown, place in product(UNKNOWN, (0, 1, len(events) - 1)):
        more, disturbed = fed(dialect, [*events[:place], unknown, *events[place:]])
        case = (unknown, place)
        assert disturbed.payload == {**turn.payload, "unknown_events": [unknown]}, case
        assert more[:-1] == told[:-1], case
        assert disturbed.items == turn.items, case
        assert dialect.messages([disturbed]) == dialect.messages([turn]), case
        assert dialect.decode(disturbed.payload) == disturbed, case


def is_json_object(value: Any) -> bool:
    try:
        compact(value)
    except ValueError:
        return False
    return isinstance(value, dict)


@DIALECTS
@given(data=VALUES.filter(is_json_object))
def test_unknown_data_is_kept_as_it_came(dialect: ModuleType, data: dict[str, Any]) -> None:
    """Whatever an unknown event holds, it is in the payload as it came."""
    event = {"type": "brand.new", "data": data}
    _, turn = fed(dialect, [event, *streams()[dialect.NAME]])
    assert repr(turn.payload["unknown_events"]) == repr([event])


@pytest.mark.parametrize("dialect", RECORDED_DIALECTS, indirect=True)
def test_every_recorded_stream_tells_its_calls_once(dialect: ModuleType) -> None:
    """In each recorded stream every call is started once and completed once, and nothing of it is
    of an unknown kind.
    """
    from lutum_py.dialects import sse

    def is_whole(one: Recording) -> bool:
        text = one.response if isinstance(one.response, str) else ""
        return one.status == 200 and one.stream and bool(text) and '"error"' not in text[:40]

    found = recordings(dialect.NAME, lambda one: is_whole(one) and not one.error_event)
    good = 0
    for one in found:
        told, turn = fed(dialect, list(sse.events([one.response])))
        every_call_is_told_once(told, turn)
        assert "unknown_events" not in turn.payload
        good += 1
    report(dialect.NAME, "streams that tell each call once", good, len(found))
