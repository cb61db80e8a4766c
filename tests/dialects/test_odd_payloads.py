"""What a provider may send beside the format: a turn that goes on, or an error with its place."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from pydantic_core import from_json

from lutum_py import AssistantTurn, Message, NeedsTools, ToolMetadata, ToolResult, TurnRequest
from lutum_py.errors import DialectError, InvalidValueError
from lutum_py.turns import TranscriptItem
from tests.models.said import Said
from tests.round_tools import Shop

from .every_dialect import wire_of
from .mutations import deep
from .plain import compact
from .wire_laws import DIALECTS, goes_on


def responding(dialect: ModuleType, **fields: Any) -> dict[str, Any]:
    whole = wire_of(dialect.NAME).response
    return {**whole(Said(text="Hi")), **fields}


UNFIT: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "at x.y[0]: nan is nothing that JSON can carry"),
    "inf": (-math.inf, "at x.y[0]: -inf is nothing that JSON can carry"),
    "long": (10**4300, "at x.y[0]: a value of type int is nothing that JSON can carry"),
    "object": (object, "at x.y[0]: <class 'object'> is nothing that JSON can carry"),
    "set": ({1}, "at x.y[0]: {1} is nothing that JSON can carry"),
    "decimal": (Decimal(1), "at x.y[0]: Decimal('1') is nothing that JSON can carry"),
    "key": ({object: 1}, "it cannot be kept as JSON"),
    "deep": (deep(200), "it is nested more deeply than 200 levels"),
    "deeper": (deep(900), "it is nested more deeply than 200 levels"),
}


@DIALECTS
def test_what_json_cannot_carry_is_an_error(dialect: ModuleType) -> None:
    """A payload that could be neither stored nor sent back is refused, with the place."""
    for name, (odd, said) in UNFIT.items():
        with pytest.raises(DialectError) as caught:
            dialect.decode(responding(dialect, x={"y": [odd]}))
        assert said in str(caught.value), name


@DIALECTS
def test_an_event_that_json_cannot_carry_breaks_the_stream(dialect: ModuleType) -> None:
    """What of an event would be kept and could never be saved is an error with its place."""
    decoder = dialect.StreamDecoder()
    with pytest.raises(DialectError, check=lambda error: error.where == "event 0.odd[0]"):
        decoder.feed({"type": "of_tomorrow", "odd": [b"x"]})


@DIALECTS
def test_a_time_is_kept_as_the_wire_has_it(dialect: ModuleType) -> None:
    """A time of which an SDK made an object is a text in the payload, and can be saved."""
    turn = dialect.decode(responding(dialect, x=datetime(2026, 1, 2, tzinfo=UTC)))
    assert turn.payload["x"] == "2026-01-02T00:00:00Z"
    goes_on(turn)


@DIALECTS
def test_what_looks_odd_and_is_json_is_taken(dialect: ModuleType) -> None:
    """Words that stand for no number, long digits in a text and many brackets are no fault."""
    odd = {"NaN": "Infinity", "digits": "7" * 5000, "many": [[]] * 300, "deep": deep(150)}
    turn = dialect.decode(responding(dialect, x=odd))
    assert turn.payload["x"] == odd
    goes_on(turn)


FED: list[tuple[Any, str]] = [
    (object(), r"got <object.*from an SDK object, `response.to_dict"),
    ('data: {"choices": []}', r"not JSON .*sse.events\(chunks\)` gives"),
    (
        b"event: message_start\ndata: {}\n\n",
        r"not JSON .*sse.events\(chunks\)` gives",
    ),
    ("<html>", r"not JSON \(.*\): '<html>'\.$"),
]


@DIALECTS
def test_what_is_no_event_says_what_to_feed(dialect: ModuleType) -> None:
    """An object of an SDK and the text of a response are refused with the way to its events."""
    for event, remedy in FED:
        with pytest.raises(DialectError) as caught:
            dialect.StreamDecoder().feed(event)
        assert re.search(remedy, str(caught.value)), event


@DIALECTS
def test_an_event_may_be_a_mapping_of_any_kind(dialect: ModuleType) -> None:
    """Events that are mappings and no dicts are read as dicts are."""
    events = wire_of(dialect.NAME).events
    plain, others = dialect.StreamDecoder(), dialect.StreamDecoder()
    for event in events(Said(text="Hi")):
        assert others.feed(MappingProxyType(event)) == plain.feed(event)
    assert others.finish() == plain.finish()


@DIALECTS
def test_a_number_that_python_cannot_read_is_the_models_to_fix(dialect: ModuleType) -> None:
    """An argument of more digits than Python reads is an issue that the model is told of."""
    text = '{"a":1,"b":' + "9" * 5000 + "}"
    turn = dialect.decode(wire_of(dialect.NAME).calling(text))
    outcome = Shop.read_turn(turn)
    assert isinstance(outcome, NeedsTools)
    (issue,) = outcome.round.recoverable_tool_call_issues
    assert issue.reason == "invalid_arguments"
    outcome.round.discard()
    goes_on(turn)


@DIALECTS
def test_what_is_nested_too_deeply_goes_out_as_text(dialect: ModuleType) -> None:
    """Arguments and results of hundreds of levels are no data that a client can write: where the
    wire wants data, their text stands in it.
    """
    text = compact(deep(400))
    call = ToolMetadata(id="c1", name="f", arguments='{"a":' + text + "}")
    result = ToolResult(id="c1", name="f", arguments=call.arguments, result=text)
    items: list[TranscriptItem] = [Message("user", "x"), AssistantTurn(tool_calls=[call]), result]
    body = dialect.encode_request(TurnRequest(items=items))
    from_json(compact(body))
    assert dialect.check(body) == []
    for levels in (990, 100_000):
        with pytest.raises(InvalidValueError):
            ToolResult(id="c1", name="f", arguments="", result="[" * levels + "]" * levels)
