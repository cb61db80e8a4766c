"""What most events of a stream are is read at a glance: never otherwise than with care."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any

import pytest
from pydantic_core import from_json

from lutum_py import ArgumentsDelta
from lutum_py._text.partial_json import PartialJson
from lutum_py._transcript.stream_events import arguments_delta
from lutum_py.errors import DialectError

from .mutations import mutated_stream, streams
from .wire_laws import DIALECTS


def told(decoder: Any, events: list[Any]) -> list[Any]:
    """All that a stream tells, and its turn or error."""
    found: list[Any] = []
    try:
        for event in events:
            found += decoder.feed(event)
        found += decoder.close()
        found.append(json.dumps(decoder.finish().payload, sort_keys=True))
    except DialectError as error:
        found += [str(error), error.turn]
    return found


def with_care(dialect: ModuleType) -> Any:
    class WithCare(dialect.StreamDecoder):  # type: ignore[misc, name-defined]
        def _quick(self, fields: dict[str, Any]) -> None:
            return None

    return WithCare()


@DIALECTS
@pytest.mark.parametrize("as_text", [False, True])
def test_a_glance_tells_what_care_tells(dialect: ModuleType, as_text: bool) -> None:
    """A stream, whole or broken anywhere, gives the same events, turn and error without glances."""
    good = streams(dialect.NAME)
    for seed in range(300):
        random = Random(seed)
        events = random.choice(good)
        if seed % 4:
            events = mutated_stream(events, random)
        try:
            fed = [
                json.dumps(each) if as_text and isinstance(each, dict) else each for each in events
            ]
        except (RecursionError, ValueError):  # no JSON
            continue
        at_once = told(dialect.StreamDecoder(), fed)
        assert repr(at_once) == repr(told(with_care(dialect), fed)), seed


def test_arguments_so_far_are_read_when_they_are_asked_for() -> None:
    """An event says the same of the arguments so far whenever it is asked, and however."""
    pieces = ['{"a": [1', ", 2", '], "b": "x', "\ud83d", "\ude00", '"} and', " more"]
    seen = [{"a": [1]}, {"a": [1, 2]}, {"a": [1, 2], "b": "x"}]
    seen += [{"a": [1, 2], "b": "x\ufffd"}, *[{"a": [1, 2], "b": "x😀"}] * 3]
    for order in (range(7), range(6, -1, -1), (3, 6, 0, 5)):
        json = PartialJson()
        events = [arguments_delta(0, piece, json) for piece in pieces]
        for index in order:
            assert events[index].partial == seen[index]
        assert events[1] == ArgumentsDelta(0, ", 2", {"a": [1, 2]})


@pytest.mark.parametrize(
    "look",
    [copy.copy, repr, replace, lambda event: pickle.loads(pickle.dumps(event))],
    ids=["copied", "shown", "replaced", "pickled"],
)
def test_an_event_that_was_not_asked_is_whole(look: Any) -> None:
    """Whatever is done with an event first, its arguments might have stood there from the start."""
    late = arguments_delta(2, '{"a": 1', PartialJson())
    assert look(late) == look(ArgumentsDelta(2, '{"a": 1', {"a": 1}))
    with pytest.raises(AttributeError, match="'ArgumentsDelta' object has no attribute 'parsed'"):
        _ = late.parsed


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the arguments that are read, as they are."""
    lengths: list[int] = []

    def counting(text: str, **options: Any) -> Any:
        lengths.append(len(text))
        return from_json(text, **options)

    monkeypatch.setattr("lutum_py._text.partial_json.from_json", counting)
    return lengths


def test_long_arguments_are_read_a_few_times(read: list[int]) -> None:
    """Whoever looks at each event has long arguments read as often as they grow by an eighth."""
    json = PartialJson()
    events = [arguments_delta(0, piece, json) for piece in ['{"a": "', *["x" * 50] * 20_000, '"}']]
    assert read == []
    shown = [len(event.partial["a"]) for event in events]
    assert shown == sorted(shown)
    assert len(read) < 200
    assert sum(read) < 10 * 1_000_000


def test_arguments_that_are_no_json_are_read_in_bounds(read: list[int]) -> None:
    """Broken arguments are what could be read of them before, in time that their length bounds."""
    json = PartialJson()
    events = [arguments_delta(0, piece, json) for piece in ['{"a": 1', "}x", *["y"] * 100_000]]
    assert [event.partial for event in reversed(events)] == [{"a": 1}] * len(events)
    assert sum(read) < 12_000_000
