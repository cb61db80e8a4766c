"""What providers might send: good responses and streams, broken in one to three places."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random
from typing import Any, Final

from lutum_py import AssistantTurn, CommittedRound, Message, ToolResult
from lutum_py.dialects import sse
from lutum_py.turns import TranscriptItem
from tests.models import said

from .every_dialect import OF_LIBRARY, wire_of
from .recordings import answered, exchanges

SAMPLES: Final = (
    said.Said(text="Let me see: 5 · 7 😀"),
    said.Said(text="So", calls=(("c1", "add", {"a": 1, "b": [None, {"c": "é😀"}]}),)),
    said.Said(calls=(("c1", "add", {"a": 1}), ("c2", "get_user", {}), ("c3", "x", {"t": "y"}))),
)
WORDS: Final = (
    *("assistant", "user", "tool", "system", "message", "text"),
    *(word for name in OF_LIBRARY for word in wire_of(name).WORDS),
)


def deep(levels: int) -> Any:
    """Nest lists and objects in each other."""
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"d": value}
    return value


def odd(random: Random) -> Any:
    """Make a value that a field might hold by mistake."""
    return random.choice(
        (
            lambda: None,
            lambda: True,
            lambda: random.choice((0, 7, -1, 1.5, 10**30)),
            lambda: random.choice((math.nan, math.inf, -math.inf)),
            lambda: 10**5000,
            lambda: random.choice(("", " ", "x", "no such.name!", "{}", "[1]", '{"a":1}', "null")),
            lambda: random.choice(WORDS),
            lambda: random.choice(("\ud83d", "\ude00", "a\ud83d", "\ude00b", "\ud83d\ude00")),
            lambda: random.choice(('{"a":"\\ud83d"}', '{"a":"\ud83d"}', '{"\\udc00":' + "[" * 9)),
            lambda: random.choice(("9" * 5000, '{"a":' + "9" * 5000 + "}")),
            lambda: random.choice(([], [7], [None], [[]], [{}], ["x", "y"])),
            lambda: random.choice(({}, {"x": 7}, {"\ud83d": 1}, {"type": "text"}, {"text": 7})),
            lambda: deep(random.choice((7, 190, 210, 900))),
        )
    )()


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through all places of a JSON value."""
    yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ways(inner, (*way, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from ways(inner, (*way, index))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def mutated(value: Any, random: Random) -> Any:
    """Copy a JSON value, and break it in one to three places."""
    try:
        value = copy.deepcopy(value)
    except RecursionError:
        return value
    for _ in range(random.randint(1, 3)):
        try:
            found = list(islice(ways(value), 1, 4000))
            if not found:
                return odd(random)
            *before, step = random.choice(found)
            holder = at(value, tuple(before))
            match random.randrange(5):
                case 0:
                    del holder[step]
                case 1:
                    holder[step] = copy.deepcopy(at(value, random.choice(found)))
                case 2 if isinstance(holder, list):
                    holder.insert(step, copy.deepcopy(holder[step]))
                case 2 if isinstance(holder[step], str):
                    text = holder[step]
                    cut = random.randint(0, len(text))
                    holder[step] = text[:cut] + random.choice(("\ud83d", "\ude00")) + text[cut:]
                case _:
                    holder[step] = odd(random)
        except RecursionError:
            break  # broken enough
    return value


@cache
def responses(dialect: str) -> tuple[Any, ...]:
    """Give good responses: made ones, and the recorded ones where they are."""
    return (
        *map(wire_of(dialect).response, SAMPLES),
        *(r for r, is_stream in _recorded(dialect) if not is_stream),
    )


@cache
def streams(dialect: str) -> tuple[list[Any], ...]:
    """Give the events of good streams."""
    recorded = (
        list(sse.events([text]))
        for text, is_stream in _recorded(dialect)
        if is_stream and "event: error" not in text
    )
    return (
        *map(wire_of(dialect).events, SAMPLES),
        *(each for each in recorded if 0 < len(each) < 200),
    )


@cache
def _recorded(dialect: str) -> tuple[tuple[Any, bool], ...]:
    return tuple((one.response, one.stream) for one in exchanges(dialect) if answered(one))


def committed(turn: AssistantTurn) -> list[TranscriptItem] | None:
    """Begin a conversation, and go on after a turn; None for one that no round takes."""
    calls = turn.tool_calls
    if len({call.id for call in calls}) != len(calls):
        return None
    results = [
        ToolResult(id=call.id, name=call.name, arguments=call.arguments, result='{"ok":true}')
        for call in calls
    ]
    return [Message("user", "Go"), *CommittedRound(turn, results), Message("user", "And now?")]


def mutated_stream(events: list[Any], random: Random) -> list[Any]:
    """Copy a stream, and break it: what its events say, their order, or how they are cut."""
    events = list(events)
    for _ in range(random.randint(1, 3)):
        if not events:
            break
        index = random.randrange(len(events))
        match random.randrange(6):
            case 0:
                del events[index]
            case 1:
                events.insert(index, events[random.randrange(len(events))])
            case 2:
                other = random.randrange(len(events))
                events[index], events[other] = events[other], events[index]
            case _:
                events[index] = mutated(events[index], random)
    return events
