"""The laws of a turn with many calls that cannot be used: a model sends as many as it likes."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from typing import Any, cast

import pytest

from lutum_py import (
    AssistantTurn,
    NeedsTools,
    Session,
    ToolDef,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
    toolset,
)
from lutum_py.errors import DuplicateToolCallIdError
from lutum_py.streaming import CallCompleted, CallStarted, StreamEvent, TurnFinished
from tests.instructions import calls
from tests.session.test_turn_stream import Broken


@tool_fn
def forecast(city: str, days: int = 1) -> str:
    return city


@tool_fn
def hide(city: str) -> str:
    return city


@tool_fn
def wait(city: str) -> str:
    return city


class Inner(Toolset):
    forecast = tool(forecast)


class Weather(Toolset):
    forecast = tool(forecast)
    hidden = tool(hide, off=True)
    later = tool(wait, deferred=True)
    inner = toolset(Inner, prefix="inner_")


Sent = Callable[[int], tuple[str, str]]
GOOD = json.dumps({"city": "Oslo"})
KINDS: dict[str, Sent] = {
    "unknown": lambda at: (f"delete_{at}", "{}"),
    "near": lambda at: (f"forcast{at}", "{}"),
    "always the same": lambda at: ("forcast", "{}"),
    "like a stand-in": lambda at: (f"forecast_{at:012x}", "{}"),
    "of a nested toolset": lambda at: (f"inner_{at}", "{}"),
    "off": lambda at: ("hidden", GOOD),
    "deferred": lambda at: ("later", GOOD),
    "long": lambda at: (f"{at}" + "x" * 5000, "{}"),
    "wrong arguments": lambda at: ("forecast", json.dumps({"city": "Oslo", f"dais{at}": 1})),
    "missing arguments": lambda at: ("forecast", "{}"),
    "not JSON": lambda at: ("inner_forecast", '{"city": '),
    "usable": lambda at: ("forecast", GOOD),
}


def turn_of(sent: Sent, count: int) -> AssistantTurn:
    made = (sent(at) for at in range(count))
    return AssistantTurn(
        tool_calls=[
            ToolMetadata(id=f"c{at}", name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(made)
        ]
    )


def many_tools(count: int, begin: str) -> type[Toolset]:
    names = [f"{begin}{at}" for at in range(count)]
    defined = [ToolDef.from_json_schema(name=name, input_schema={}) for name in names]
    members = {name: tool(each) for name, each in zip(names, defined, strict=True)}
    made: Any = types.new_class("Many", (Toolset,), exec_body=lambda body: body.update(members))
    return cast("type[Toolset]", made)


def read(tools: type[Toolset], turn: AssistantTurn) -> int:
    """Count the functions that are called to read a turn, and to look at its issues."""
    outcome: Any = tools.read_turn(turn)  # what is made once is made here
    outcome.round.discard()
    with calls(20_000_000) as taken:
        outcome = tools.read_turn(turn)
        plan = outcome.round.plan()
        for issue in outcome.round.recoverable_tool_call_issues:
            assert len(issue.result.model_text) < 2000
    plan.discard()
    return taken()


@pytest.mark.parametrize("kind", KINDS)
def test_reading_a_turn_is_linear_in_its_calls(kind: str) -> None:
    """Four times as many calls take four times as long to read, whatever is wrong with them."""
    few, many = (read(Weather, turn_of(KINDS[kind], count)) for count in (50, 200))
    assert many < 4.5 * few


def test_wrong_arguments_cost_the_sum_of_calls_and_fields() -> None:
    """Many calls with wrong names, of a tool with many fields, do not cost the product of both."""

    def of(count: int) -> int:
        fields = {f"field_of_the_day_{at}": {"type": "integer"} for at in range(count)}
        schema = {"type": "object", "properties": fields, "additionalProperties": False}
        defined = ToolDef.from_json_schema(name="wide", input_schema=schema)
        wrong = json.dumps({f"feild_{at}": 1 for at in range(3)})
        turn = turn_of(lambda _: ("wide", wrong.replace("feild", f"feild{_}")), count)
        return read(Toolset.from_definitions("Wide", [defined]), turn)

    few, many = of(120), of(480)
    assert many < 6 * few


@pytest.mark.parametrize("kind", ["unknown", "near", "like a stand-in"])
def test_reading_a_turn_is_linear_in_its_tools(kind: str) -> None:
    """Many unknown calls of many tools cost the sum of the two, and not the product."""

    def of(count: int) -> int:
        tools = many_tools(count, "forecast_of_the_day_")
        sent: Sent = {
            "unknown": lambda at: (f"{at}", "{}"),
            "near": lambda at: (f"forecast_of_the_day{at}", "{}"),
            "like a stand-in": lambda at: (f"forecast_of_the_day_1_{at:012x}", "{}"),
        }[kind]
        return read(tools, turn_of(sent, count))

    few, many = of(150), of(600)
    assert many < 6 * few


def test_a_stream_of_unknown_calls_is_linear() -> None:
    """A streamed turn costs what a whole one does."""

    def of(count: int) -> int:
        turn = turn_of(KINDS["like a stand-in"], count)
        events: list[StreamEvent] = []
        for at, call in enumerate(turn.tool_calls):
            events += [CallStarted(at, call.id, call.name), CallCompleted(at, call)]
        events.append(TurnFinished(turn))

        def once() -> None:
            session = Session()
            session.push_user("?")
            stream = session.text_turn(Broken(*events)).tools(Weather).stream_sync()
            assert len([*stream]) == len(events)
            outcome: Any = stream.outcome
            assert isinstance(outcome, NeedsTools)
            outcome.round.discard()

        once()
        with calls(20_000_000) as taken:
            once()
        return taken()

    assert of(200) < 4.5 * of(50)


def test_duplicate_ids_are_found_in_one_pass() -> None:
    """That two of many calls have one id is found without comparing each with each."""

    def of(count: int) -> int:
        turn = turn_of(KINDS["unknown"], count)
        turn = AssistantTurn(tool_calls=[*turn.tool_calls, turn.tool_calls[-1]])
        with calls() as taken, pytest.raises(DuplicateToolCallIdError):
            Weather.read_turn(turn)
        return taken()

    assert of(400) < 4.5 * of(100)


def test_each_of_many_unknown_calls_reads_as_it_would_alone() -> None:
    """Among many the model is told of each unknown tool what it is told of one."""
    sent = KINDS["near"]
    outcome: Any = Weather.read_turn(turn_of(sent, 300))
    for at in (0, 150, 299):
        alone: Any = Weather.read_turn(turn_of(lambda _, at=at: sent(at), 1))  # type: ignore[misc]
        (issue,) = alone.round.recoverable_tool_call_issues
        found = outcome.round.recoverable_tool_call_issues[at]
        assert (found.text, found.suggestion) == (issue.text, "forecast")
        alone.round.discard()
    outcome.round.discard()


def test_suggestions_end_where_they_would_take_too_long() -> None:
    """Where a model sends more names than can be compared, the rest get the list of tools alone."""
    tools = many_tools(300, "forecast_" * 6)
    outcome: Any = tools.read_turn(turn_of(lambda at: (f"{'forecast_' * 6}x{at}", "{}"), 40))
    found = outcome.round.recoverable_tool_call_issues
    outcome.round.discard()
    assert found[0].suggestion is not None
    assert found[-1].suggestion is None
    assert (
        f"There is no tool `{'forecast_' * 6}x39`, so nothing was run. Tools on" in found[-1].text
    )
