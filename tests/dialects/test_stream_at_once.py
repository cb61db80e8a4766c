"""What most events of a stream are is read at a glance: never otherwise than with care."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from random import Random
from types import ModuleType
from typing import Any

from lutum_py.errors import DialectError
from tests.cases import over

from .mutations import mutated_stream, streams
from .wire_laws import DIALECTS


def told(decoder: Any, events: Iterable[Any]) -> list[Any]:
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
@over("as_text", [False, True])
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


def used_again(events: list[Any]) -> Iterator[Any]:
    """Give events one by one, each of which is emptied once it was read."""
    for event in deepcopy(events):
        yield event
        waiting = [event]
        for value in waiting:
            if value.__class__ in (dict, list):
                waiting += value.values() if value.__class__ is dict else value
                value.clear()


@DIALECTS
def test_an_event_may_be_used_again(dialect: ModuleType) -> None:
    """Whatever becomes of the dict of an event after it was fed, the turn stays as it is."""
    for events in streams(dialect.NAME):
        wanted = told(dialect.StreamDecoder(), events)
        assert repr(told(dialect.StreamDecoder(), used_again(events))) == repr(wanted)
