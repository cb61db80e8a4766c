"""The parts of which the decoder of a stream is made, each alone."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
from pydantic_core import from_json

from lutum_py import AssistantTurn, ToolMetadata
from lutum_py._text.json import PartialJson
from lutum_py.dialects._stream import CallReports, Pairs
from lutum_py.streaming import (
    ArgumentsDelta,
    CallCompleted,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
)
from tests.cases import over


def test_a_call_whose_id_comes_late_is_still_one_call() -> None:
    """A call that began under an id of ours, before the host named its own, completes once."""
    reports = CallReports()
    assert len(reports.of([CallStarted(0, "ours", "f")])) == 1
    (end,) = reports.missing([ToolMetadata(id="theirs", name="f", arguments="")])
    assert isinstance(end, CallCompleted)
    assert end.index == 0


def test_a_call_that_begins_twice_is_told_once() -> None:
    """A second word of a call that has started, as hosts send it, is passed over."""
    reports = CallReports()
    started = CallStarted(0, "c1", "f")
    assert reports.of([started, started]) == [started]
    assert reports.of([started]) == []


def test_an_event_of_no_call_continued_as_it_is() -> None:
    """What is of no call is neither kept nor told twice."""
    finished = TurnFinished(AssistantTurn(text="Hi"))
    assert CallReports().of([finished, TextDelta("a"), TextDelta("a")]) == [
        finished,
        TextDelta("a"),
        TextDelta("a"),
    ]


def test_halves_wait_apart() -> None:
    """Each kind of delta, and each call, has its own half that waits; a call's comes out before
    the call is complete, and all others at the end.
    """
    call = CallCompleted(0, ToolMetadata(id="c1", name="add", arguments="{}"))
    pairs = Pairs()
    events: list[StreamEvent] = [
        TextDelta("\ud83d"),
        ReasoningDelta("\ud83d"),
        ArgumentsDelta(0, "\ud83d", {}),
        ArgumentsDelta(1, "x\ud83d", {}),
    ]
    assert pairs.of(events) == [ArgumentsDelta(1, "x", {})]
    assert pairs.of([TextDelta("\ude00"), call]) == [
        TextDelta("\U0001f600"),
        ArgumentsDelta(0, "\ufffd", {}),
        call,
    ]
    assert pairs.of([RefusalDelta("no"), call]) == [RefusalDelta("no"), call]
    assert pairs.rest() == [ReasoningDelta("\ufffd"), ArgumentsDelta(1, "\ufffd", {})]
    assert pairs.rest() == []


def test_arguments_so_far_are_read_when_they_are_asked_for() -> None:
    """An event says the same of the arguments so far whenever it is asked, and however."""
    pieces = ['{"a": [1', ", 2", '], "b": "x', "\ud83d", "\ude00", '"} and', " more"]
    seen = [{"a": [1]}, {"a": [1, 2]}, {"a": [1, 2], "b": "x"}]
    seen += [{"a": [1, 2], "b": "x\ufffd"}, *[{"a": [1, 2], "b": "x😀"}] * 3]
    for order in (range(7), range(6, -1, -1), (3, 6, 0, 5)):
        json = PartialJson()
        events = [ArgumentsDelta.of(0, piece, json) for piece in pieces]
        for index in order:
            assert events[index].partial == seen[index]
        assert events[1] == ArgumentsDelta(0, ", 2", {"a": [1, 2]})


@over(
    "text",
    [
        '{"n": 0.25, "m": [1, -2.5e-3, 1E+2], "s": "at 3.", "t": "1e\\" 2.", "deep": {"x": 1.0}}',
        '[10.5, {"a": "x\\\\", "b": 7e2}]',
    ],
)
def test_what_was_shown_of_a_value_stays(text: str) -> None:
    """What was shown of arguments stays until more is known: no later look has less of them."""

    def has_all(later: Any, earlier: Any) -> bool:
        if isinstance(earlier, dict):
            return all(key in later and has_all(later[key], earlier[key]) for key in earlier)
        if isinstance(earlier, list):
            return len(later) >= len(earlier) and all(map(has_all, later, earlier))
        return not isinstance(earlier, str) or later.startswith(earlier)

    json, shown = PartialJson(), None
    for letter in text:
        seen = json.view(json.add(letter))
        assert shown is None or has_all(seen, shown), (seen, shown)
        shown = seen or None
    assert shown == from_json(text)


@over("look", [copy.copy, repr, replace, lambda event: pickle.loads(pickle.dumps(event))])
def test_an_event_that_was_not_asked_is_whole(look: Any) -> None:
    """Whatever is done with an event first, its arguments might have stood there from the start."""
    late = ArgumentsDelta.of(2, '{"a": 1', PartialJson())
    assert look(late) == look(ArgumentsDelta(2, '{"a": 1', {"a": 1}))
    with pytest.raises(AttributeError, match="'ArgumentsDelta' object has no attribute 'parsed'"):
        _ = late.parsed  # type: ignore[attr-defined]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the arguments that are read, as they are."""
    lengths: list[int] = []

    def counting(text: str, **options: Any) -> Any:
        lengths.append(len(text))
        return from_json(text, **options)

    monkeypatch.setattr("lutum_py._text.json.from_json", counting)
    return lengths


def test_long_arguments_are_read_a_few_times(read: list[int]) -> None:
    """Whoever looks at each event has long arguments read as often as they grow by an eighth."""
    json = PartialJson()
    events = [
        ArgumentsDelta.of(0, piece, json) for piece in ['{"a": "', *["x" * 50] * 20_000, '"}']
    ]
    assert read == []
    shown = [len(event.partial["a"]) for event in events]
    assert shown == sorted(shown)
    assert len(read) < 200
    assert sum(read) < 10 * 1_000_000


def test_arguments_that_are_no_json_are_read_in_bounds(read: list[int]) -> None:
    """Broken arguments are what could be read of them before, in time that their length bounds."""
    json = PartialJson()
    events = [ArgumentsDelta.of(0, piece, json) for piece in ['{"a": 1', "}x", *["y"] * 100_000]]
    assert [event.partial for event in reversed(events)] == [{"a": 1}] * len(events)
    assert sum(read) < 12_000_000
