"""The laws of the strategies: each kind of call is what it says, comes often, and shrinks well."""

from __future__ import annotations

import collections
import json
from itertools import islice
from typing import Annotated, Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from pydantic import BeforeValidator

from lutum_py import (
    AssistantTurn,
    NeedsTools,
    ToolAvailability,
    ToolMetadata,
    Toolset,
    tool,
    tool_fn,
)
from lutum_py.errors import (
    DuplicateToolCallIdError,
    InvalidValueError,
    MisuseError,
    UnknownToolError,
)
from lutum_py.testing import strategies
from lutum_py.testing._calls import SchemaValues, spoilings

from .samples import SCHEMA_TOOL, Every, FromSchema, Small

SOME = settings(
    max_examples=80,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
FIRST = settings(SOME, phases=[Phase.generate])
COERCED = {"container_as_string", "null_for_optional"}
TOOLS = [*Every, *FromSchema]


def read(toolset: Any, call: ToolMetadata, available: Any = None) -> tuple[int, list[str]]:
    """How many calls can be run, and why the others cannot."""
    outcome = toolset.read_turn(AssistantTurn(tool_calls=[call]), available)
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    found = outcome.round
    return len(found.tool_calls), [one.reason for one in found.recoverable_tool_call_issues]


KINDS: dict[str, list[str]] = {
    "valid": [],
    "coerced": [],
    "near_miss": ["invalid_arguments"],
    "truncated": ["invalid_arguments"],
    "unknown_tool": ["unknown_tool"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("toolset", [Every, Small, FromSchema], ids=lambda each: each.__name__)
def test_each_kind_is_what_it_says(toolset: Any, kind: Any) -> None:
    """Valid and coerced calls decode; near misses, cut and unknown ones are issues, never calls."""

    @SOME
    @given(strategies.calls(toolset, kind))
    def check(call: ToolMetadata) -> None:
        assert read(toolset, call) == (1 - len(KINDS[kind]), KINDS[kind])
        assert call.id == "c1"

    check()


@SOME
@given(strategies.calls(Small, "not_available"))
def test_a_tool_that_is_off_is_called_too(call: ToolMetadata) -> None:
    """A tool that is not on offer is called with arguments that fit it."""
    assert call.name == "wipe"
    assert read(Small, call) == (0, ["not_available"])
    assert read(Small, call, ["wipe"]) == (1, [])


@pytest.mark.parametrize("selector", TOOLS, ids=lambda selector: selector.name)
def test_one_wrong_thing_is_enough(selector: Any) -> None:
    """Each way to spoil arguments breaks them, or is coerced, by its making and not by a filter."""
    schema = selector.definition.input_schema

    @SOME
    @given(SchemaValues(schema).values(schema))
    def check(data: Any) -> None:
        if not selector.accepts(json.dumps(data)):
            return
        for spoiling in islice(spoilings(schema, data), 100):
            spoilt = spoiling.apply(data)
            assert selector.accepts(json.dumps(spoilt)) is (spoiling.kind in COERCED), spoiling
            assert spoilt != data

    check()


def test_every_kind_of_near_miss_comes() -> None:
    """Each way in which a call can be nearly right is found for some tool."""
    seen: collections.Counter[str] = collections.Counter()

    @settings(SOME, phases=[Phase.generate])
    @given(strategies.valid_arguments(Every, "ranges"), strategies.valid_arguments(Every, "mixed"))
    def count(ranges: Any, mixed: Any) -> None:
        for name, data in (("ranges", ranges), ("mixed", mixed), ("formats", FORMATTED)):
            seen.update(one.kind for one in spoilings(Every[name].definition.input_schema, data))

    count()
    assert set(seen) == {
        *COERCED,
        "missing_field",
        "extra_field",
        "wrong_type",
        "wrong_choice",
        "wrong_format",
        "out_of_range",
        "null",
    }


FORMATTED = {"day": "2024-02-29"}


def kinds_of(turn: AssistantTurn) -> set[str]:
    """What is special about a turn."""
    ids = [call.id for call in turn.tool_calls]
    found = {f"{len(ids)} calls"}
    if "" in ids:
        found.add("empty id")
    if turn.text.strip():
        found.add("text")
    if turn.is_truncated:
        found.add("cut off")
    try:
        outcome = Small.read_turn(turn)
    except DuplicateToolCallIdError:
        return {*found, "doubled id"}
    assert isinstance(outcome, NeedsTools)
    outcome.round.discard()
    found |= {issue.reason for issue in outcome.round.recoverable_tool_call_issues}
    return found | ({"fits"} if outcome.round.tool_calls else set())


def test_turns_cover_all_there_is() -> None:
    """Among 300 turns each kind of call and each oddity of a turn comes several times."""
    seen: collections.Counter[str] = collections.Counter()

    @settings(SOME, max_examples=300, phases=[Phase.generate], derandomize=True)
    @given(strategies.turns(Small))
    def count(turn: AssistantTurn) -> None:
        seen.update(kinds_of(turn))

    count()
    assert set(seen) == {
        "1 calls",
        "2 calls",
        "3 calls",
        "blocked",
        "cut off",
        "doubled id",
        "empty id",
        "fits",
        "invalid_arguments",
        "not_available",
        "text",
        "unknown_tool",
    }
    assert min(seen.values()) >= 8, seen


def test_scripts_are_turns_with_calls_and_an_answer() -> None:
    """A script has so many turns as is allowed, ids that are numbered through, and an end."""
    lengths: set[int] = set()

    @SOME
    @given(strategies.scripts(Small, "valid", max_turns=2, max_calls=2, odd_ids=False))
    def check(script: tuple[AssistantTurn, ...]) -> None:
        *turns, last = script
        lengths.add(len(turns))
        assert (last.text, last.tool_calls) == ("Done.", ())
        calls = [call for turn in turns for call in turn.tool_calls]
        assert [call.id for call in calls] == [f"c{at}" for at in range(1, len(calls) + 1)]
        assert all(0 < len(turn.tool_calls) <= 2 for turn in turns)

    check()
    assert lengths == {1, 2}


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.turns(Small, "unknown_tool"))
def test_a_call_has_an_id_or_a_name(turn: AssistantTurn) -> None:
    """With neither, no stream of Chat Completions could tell it from the call before it."""
    assert all(call.id or call.name for call in turn.tool_calls)


def test_plain_names_only_where_that_is_asked() -> None:
    """Without odd names, an unknown tool has a name that a provider could take back."""

    @SOME
    @given(strategies.calls(Small, "unknown_tool", odd_names=False))
    def check(call: ToolMetadata) -> None:
        assert call.name.replace("_", "").replace("-", "").isalnum() or set(call.name) <= {*"_-"}
        assert 0 < len(call.name) <= 64
        assert call.name.isascii()
        assert call.name not in Small

    check()
    odd = find(strategies.calls(Small, "unknown_tool"), lambda call: not call.name.isascii())
    assert odd.name not in Small


def test_it_shrinks_to_the_simplest() -> None:
    """With nothing asked for, the least turn is one valid call with least arguments."""
    assert find(strategies.calls(Small, "valid"), lambda _: True) == ToolMetadata(
        id="c1", name="forecast", arguments='{"city":""}'
    )
    turn = find(strategies.turns(Small, "valid"), lambda turn: len(turn.tool_calls) == 2)
    assert turn == AssistantTurn(
        tool_calls=[
            ToolMetadata(id=id, name="forecast", arguments='{"city":""}') for id in ("c1", "c2")
        ],
        finish_reason="tool_calls",
    )
    assert len(find(strategies.scripts(Small), lambda _: True)) == 2


def test_own_arguments_are_used() -> None:
    """A strategy that is given for a tool takes the place of that of its schema."""
    own = {Small.forecast: st.just({"city": "Oslo"})}
    call = find(strategies.calls(Small, "valid", arguments=own), lambda _: True)
    assert call.arguments == '{"city":"Oslo"}'
    assert find(strategies.valid_arguments(FromSchema, "find-files"), lambda _: True)["where"]


def test_what_cannot_be_made_is_said() -> None:
    """A kind that a toolset cannot be sent, and a tool that it has not, are refused by name."""
    with pytest.raises(InvalidValueError):
        strategies.calls(Every, "not_available")
    with pytest.raises(InvalidValueError):
        strategies.turns(Small, "wrong")  # type: ignore[arg-type]
    with pytest.raises(UnknownToolError):
        strategies.valid_arguments(Small, "nowhere")
    with pytest.raises(UnknownToolError):
        strategies.scripts(Small, arguments={"nowhere": st.nothing()})


@pytest.mark.parametrize("wrong", [None, [], Small.forecast])
def test_what_is_no_toolset_is_refused(wrong: Any) -> None:
    """Every strategy says that it is made of a toolset, and how one is declared."""
    for make in (strategies.calls, strategies.turns, strategies.scripts):
        with pytest.raises(MisuseError):
            make(wrong)
    with pytest.raises(MisuseError):
        strategies.valid_arguments(wrong, "forecast")


def test_own_arguments_that_are_none_are_refused_by_name() -> None:
    """What is no strategy, and what is no mapping of tools to strategies, is refused."""
    with pytest.raises(MisuseError):
        strategies.calls(Small, arguments={Small.forecast: 3})  # type: ignore[dict-item]
    with pytest.raises(MisuseError):
        strategies.scripts(Small, arguments=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_turns", "max_calls"])
def test_a_limit_that_lets_nothing_through_is_refused_by_name(name: str) -> None:
    """A limit is a whole number from 1 on; anything else is refused in the library's words."""
    options: dict[str, Any] = {name: 0}
    with pytest.raises(InvalidValueError, match=f"`{name}` is 0, so nothing would be tried"):
        strategies.scripts(Small, **options)
    for wrong in ("3", 1.5, True, None):
        options = {name: wrong}
        with pytest.raises(MisuseError, match=f"`{name}` takes a whole number from 1 on, not"):
            strategies.scripts(Small, **options)


def test_a_toolset_without_tools_is_sent_unknown_ones_only() -> None:
    """Where nothing is on offer, every call is one of a tool that is not there, or is off."""
    empty = Toolset.from_definitions("Empty", [])
    assert read(empty, find(strategies.calls(empty), lambda _: True)) == (0, ["unknown_tool"])
    none = ToolAvailability.only([])
    hidden = find(strategies.calls(Small, "not_available", available=none), lambda _: True)
    assert hidden.name in ("forecast", "wipe")
    with pytest.raises(InvalidValueError):
        strategies.calls(empty, "valid")


def test_schemas_alone_are_enough() -> None:
    """A tool that is known by its JSON schema only gets calls of every kind."""
    for kind in get_args(strategies.CallKind)[:-1]:
        call = find(strategies.calls(FromSchema, kind), lambda _: True, settings=FIRST)
        assert (call.name == SCHEMA_TOOL.name) is (kind != "unknown_tool")


SPOILT: list[tuple[Any, Any, str, list[Any]]] = [
    ({"enum": [None]}, None, "wrong_choice", []),
    ({"enum": [1, 2]}, 1, "wrong_choice", [9]),
    ({"enum": ["a", "a_"]}, "a", "wrong_choice", ["a__"]),
    ({"anyOf": [{"const": "a"}, {"const": 3}]}, "a", "wrong_choice", ["a_"]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "abc", "out_of_range", ["x", "xxxx"]),
    ({"type": "string", "pattern": "^a$"}, "a", "out_of_range", ["\n"]),
    ({"type": "number", "minimum": 1, "maximum": 2}, 1, "out_of_range", [0.5, 2.5]),
    ({"type": "integer", "multipleOf": 4}, 8, "out_of_range", [9]),
    ({"type": "integer", "multipleOf": 1}, 8, "out_of_range", []),
    ({"type": "number", "multipleOf": 0.5}, 1.5, "out_of_range", [1.75]),
    ({"type": "number", "multipleOf": 0.5}, 1e300, "out_of_range", []),
    ({"type": "array", "minItems": 2, "maxItems": 2}, [1, 2], "out_of_range", [[1], [1, 2, 2]]),
    ({"type": "array", "maxItems": 2}, [], "out_of_range", []),
    ({"type": "boolean"}, True, "out_of_range", []),
    ({"type": "string", "format": "date"}, "2024-02-29", "wrong_format", ["("]),
    ({"type": ["integer", "string"]}, 1, "wrong_type", [[7], {"a": 1}]),
    ({}, 1, "wrong_type", []),
    ({"type": "object"}, {}, "container_as_string", ["{}"]),
    ({"type": ["object", "string"]}, {}, "container_as_string", []),
]


def test_values_are_spoilt_just_beyond_what_is_right() -> None:
    """What takes the place of a value is the next one that its schema refuses."""
    for schema, value, kind, expected in SPOILT:
        whole = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        ways = [one for one in spoilings(whole, {"x": value}) if one.kind == kind]
        spoilt = [one.apply({"x": value})["x"] for one in ways]
        assert spoilt == expected, (schema, value, kind)
    assert {one.path for one in ways} <= {"x"}


def _no_text(given: Any) -> Any:
    if isinstance(given, str):
        raise ValueError("a text")
    return given


@tool_fn
def lenient(number: Annotated[int, BeforeValidator(lambda given: 7)]) -> int:
    """Take whatever comes."""
    return number


@tool_fn
def stern(items: Annotated[list[int], BeforeValidator(_no_text)], more: int = 0) -> int:
    """Take no list in a text."""
    return len(items)


class Odd(Toolset):
    lenient = tool(lenient)
    stern = tool(stern)


def test_a_tool_that_takes_anything_or_mends_nothing_is_respected() -> None:
    """What a validator takes after all is no near miss, and what it refuses was not coerced."""
    seen: list[bool] = []

    @settings(SOME, phases=[Phase.generate])
    @given(strategies.calls(Odd, "near_miss"), strategies.calls(Odd, "coerced"))
    def check(near: ToolMetadata, coerced: ToolMetadata) -> None:
        assert not Odd[near.name].accepts(near.arguments)
        assert Odd[coerced.name].accepts(coerced.arguments)
        seen.append(near.name == "lenient")

    check()
    assert 0 < sum(seen) < len(seen)
