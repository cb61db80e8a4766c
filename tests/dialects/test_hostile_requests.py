"""Requests that are not what they should be: found, repaired as far as can be, never a crash."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import over
from tests.instructions import calls

from .broken_requests import broken_request
from .every_dialect import DIALECTS, bodies, key_of, many_calls

SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def rules(dialect: ModuleType, request: Any) -> list[str]:
    return [violation.rule for violation in dialect.check(request)]


NO_CONVERSATIONS: list[tuple[Any, str]] = [
    (None, "missing_conversation"),
    ([], "empty_conversation"),
    (7, "not_a_list"),
    (True, "not_a_list"),
    (" ", "not_a_list"),
]


@DIALECTS
def test_a_body_without_a_conversation_is_told(dialect: ModuleType) -> None:
    """A body whose conversation is absent, empty or no list says so at its key, and a repair puts
    something there that the provider takes.
    """
    key = key_of(dialect)
    for value, rule in NO_CONVERSATIONS:
        # Text is an input in Responses.
        is_input = value == " " and dialect.NAME == "openai_responses"
        conversation = 7.5 if is_input else value
        body = {"model": "m", key: conversation}
        found = [(each.position, each.rule) for each in dialect.check(body)]
        assert found == [(key, rule)], conversation
        repaired, changes = dialect.repair(body)
        made = [(change.position, change.rule, change.is_repaired) for change in changes]
        assert made == [(key, rule, True)], conversation
        assert (dialect.check(repaired), repaired["model"]) == ([], "m"), conversation
        if conversation is None:
            assert rules(dialect, {}) == rules(dialect, {"model": "m"}) == [rule]
        if conversation == []:
            assert rules(dialect, []) == [rule]
            assert dialect.repair([]) == (repaired[key], changes)


@DIALECTS
def test_what_is_no_request_is_told_and_left(dialect: ModuleType) -> None:
    """What is neither a body nor a list is a violation, and the repair says that it cannot fix."""
    for request in (None, "text", 7, b"{}", object, {1, 2}):
        found = [(each.position, each.rule) for each in dialect.check(request)]
        assert found == [("request", "not_a_request")], request
        repaired, changes = dialect.repair(request)
        assert repaired is request
        made = [(change.rule, change.is_repaired) for change in changes]
        assert made == [("not_a_request", False)], request


@DIALECTS
def test_text_in_place_of_the_list_is_what_the_user_says(dialect: ModuleType) -> None:
    """A text where the list belongs becomes a message of the user, or is taken as it is."""
    key = key_of(dialect)
    repaired, _ = dialect.repair({key: "Hello"})
    assert "Hello" in json.dumps(repaired)
    assert dialect.check(repaired) == []
    one = dialect.repair({key: None})[0][key][0]
    assert dialect.repair({key: one})[0][key] in (one, [one])


INPUTS: tuple[Any, ...] = (None, [], "Hello")


@over("key", ["previous_response_id", "conversation", "prompt"])
def test_what_the_provider_keeps_needs_no_input(key: str) -> None:
    """Where the conversation stands elsewhere, a request of Responses may bring nothing new."""
    from lutum_py.dialects import openai_responses

    for input_ in INPUTS:
        body = {key: "x", "input": input_}
        assert openai_responses.check(body) == [], input_
        assert openai_responses.repair(body) == (body, []), input_
        body = {**body, "tools": [{"type": "function", "name": "no such!"}]}
        repaired, changes = openai_responses.repair(body)
        assert [change.rule for change in changes] == ["invalid_tool_name"], input_
        assert repaired["input"] == input_
    assert rules(openai_responses, {key: "x", "input": 7}) == ["not_a_list"]


@DIALECTS
def test_a_conversation_of_which_nothing_is_left_gets_a_beginning(dialect: ModuleType) -> None:
    """Where all was removed, a repair says so and puts a message of the user there."""
    repaired, changes = dialect.repair([7])
    assert dialect.check(repaired) == []
    assert "empty_conversation" in [change.rule for change in changes]
    assert "beginning" in json.dumps(repaired)


@DIALECTS
def test_data_without_bottom_is_told_and_left(dialect: ModuleType) -> None:
    """What is nested too deeply to be read is a violation of the whole, and not a crash."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    part = {"type": "text", "text": "x", "deep": deep}
    body = {key_of(dialect): [{"role": "user", "content": [part], "parts": [part]}]}
    for request in (body, body[key_of(dialect)], {"tools": deep, **body}):
        assert rules(dialect, request) == ["too_deep"]
        repaired, (change,) = dialect.repair(request)
        assert repaired is request
        assert not change.is_repaired


WORDS = (
    "role content parts type id call_id name arguments input tool_calls function tool_call_id "
    "functionCall functionResponse args response output text messages contents tools "
    "tool_use_id function_call custom tool_choice functionDeclarations toolConfig"
)
KEY = st.text(max_size=3) | st.sampled_from(WORDS.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "model", "tool", "function", "system", "a", "f"])
    | st.sampled_from(["tool_use", "tool_result", "function_call", "function_call_output"])
    | st.sampled_from(["text", "message", "reasoning", "custom", "item_reference"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=5),
    max_leaves=20,
)


def clean(dialect: ModuleType, request: Any) -> None:
    """Hold that a request is checked, and repaired to a clean one that can be sent."""
    before = repr(request)
    violations = dialect.check(request)
    repaired, changes = dialect.repair(request)
    assert repr(request) == before
    assert bool(violations) == bool(changes), before
    assert all(each.position and each.rule and each.what for each in changes), before
    assert all(map(str, violations)), before
    if all(change.is_repaired for change in changes):
        assert [violation.rule for violation in dialect.check(repaired)] == [], before
        assert dialect.repair(repaired)[1] == [], before
        repr(repaired).encode()
    if not violations:
        assert repr(repaired) == before


@DIALECTS
def test_breaches_that_meet_are_mended_together(dialect: ModuleType) -> None:
    """Whatever breaches a conversation of one wire brings together, its repair is clean."""
    for seed in range(500):
        clean(dialect, broken_request(dialect.NAME, Random(seed)))


@DIALECTS
def test_half_a_pair_in_a_request_is_told_and_replaced(dialect: ModuleType) -> None:
    """Half of a surrogate pair in any text or key of a body is a violation with its place, and a
    repair puts U+FFFD there.
    """
    body = dialect.repair({key_of(dialect): []})[0]
    body["metadata"] = {"a": ["x", "\ud83d"], "\ude00": 1, "whole": "\U0001f600"}
    violations = dialect.check(body)
    assert [(each.position, each.rule) for each in violations] == [
        ("metadata.\ufffd", "half_surrogate_pair"),
        ("metadata.a[1]", "half_surrogate_pair"),
    ]
    repaired, changes = dialect.repair(body)
    assert repaired["metadata"] == {"a": ["x", "\ufffd"], "\ufffd": 1, "whole": "\U0001f600"}
    assert all(change.is_repaired for change in changes)
    said = dialect.repair([{"role": "user", "content": "\ud83d", "parts": [{"text": "\ud83d"}]}])
    assert json.dumps(said[0], ensure_ascii=False).encode()
    assert {change.position.partition("[")[0] for change in said[1]} == {key_of(dialect)}


@DIALECTS
@SLOW
@given(request=VALUES)
def test_anything_is_checked_and_repaired(dialect: ModuleType, request: Any) -> None:
    """Whatever JSON a request is, it is checked without a crash, and its repair is clean."""
    clean(dialect, request)
    clean(dialect, {key_of(dialect): request})
    clean(dialect, [request])


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*way, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*way, index))


def put(value: Any, way: tuple[Any, ...], odd: Any) -> Any:
    if not way:
        return odd
    copied = copy.copy(value)
    copied[way[0]] = put(value[way[0]], way[1:], odd)
    return copied


ODD: tuple[Any, ...] = (
    *(None, True, 7, math.nan, "", "x"),
    *([], [7], {}, {"x": 7}, [[]], [{}], {7}),
)


@DIALECTS
def test_a_wrong_type_at_any_place_is_repaired(dialect: ModuleType) -> None:
    """A body with anything odd at any one of its places is checked, and repaired to a clean one."""
    body = bodies("f")[dialect.NAME]
    for odd in ODD:
        for way in places(body):
            clean(dialect, put(body, way, copy.deepcopy(odd)))


IDS: dict[str, Callable[[int], str]] = {"own": str, "one": lambda _: "a", "none": lambda _: ""}


@DIALECTS
def test_a_huge_request_is_repaired_in_time(dialect: ModuleType) -> None:
    """Eight times as many calls take about eight times the work."""
    for kind, is_answered in product(IDS, (False, True)):
        taken: list[int] = []
        for count in (250, 2000):
            items = many_calls(dialect, count, IDS[kind], is_answered=is_answered)
            with calls() as called:
                repaired, _ = dialect.repair(items)
            taken.append(called())
            assert json.dumps(repaired).count('"f"') >= count, (kind, is_answered)
        assert taken[1] < 12 * taken[0], (kind, is_answered)
