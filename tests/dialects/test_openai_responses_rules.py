"""Responses: the rules of an input, and how a broken one is repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutum_py.dialects import openai_responses as dialect
from tests.cases import over

from .responses_wire import USER, call, message, output, reasoning, text

CUSTOM = {"type": "custom_tool_call", "call_id": "a", "name": "sh", "input": "ls"}
SEARCH = {"type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {}}


@over(
    "items, found",
    [
        ([USER, call("a"), call("b"), output("a"), output("b"), USER], []),
        ([call("a"), output("a"), call("a"), output("a")], ["duplicate_call_id"]),
        ([call("a"), USER, output("a")], []),
        ([CUSTOM, output("a", kind="custom_tool_call")], []),
        ([SEARCH, output("a")], []),
        ([{**SEARCH, "execution": "server"}, USER], []),
        ([{"type": "tool_search_output", "execution": "server", "call_id": None}], []),
        ([{"type": "item_reference", "id": "x"}] * 2 + [output("a")], []),
        ([output("a")], ["orphan_result"]),
        ([call("a")], ["call_without_result"]),
        ([call(None)], ["call_without_result"]),
        ([call("a"), output("a"), output("a")], ["duplicate_result"]),
        ([call("a"), call("b"), output("b"), output("a")], ["results_out_of_order"] * 2),
        ([output("a"), call("a")], ["misplaced_result"]),
        ([call("a"), output("b")], ["call_without_result", "orphan_result"]),
        ([call("a"), call("a"), output("a"), output("a")], ["duplicate_call_id"]),
        (
            [call("a"), call("a"), call("a_2"), output("a")],
            ["call_without_result", "call_without_result", "duplicate_call_id"],
        ),
        ([call("a"), output("a", kind="custom_tool_call")], ["result_of_other_type"]),
        ([reasoning(), USER], ["reasoning_without_item"]),
        ([reasoning(), reasoning(id="rs_2"), call("a"), output("a")], []),
        ([call("a"), output("a"), reasoning()], ["reasoning_without_item"]),
        ([reasoning(), output("a"), call("a")], ["misplaced_result"]),
        ([message(text("x"))] * 2, ["duplicate_item_id"]),
        ([call("a", id="fc"), call("b", id="fc"), output("a"), output("b")], ["duplicate_item_id"]),
        (["text", {"type": 7}, USER], ["not_an_item"] * 2),
        ([{"id": "msg_1"}, output("a")], []),
        ([{"role": "robot", "content": "x"}, {}], ["unknown_role"] * 2),
        ([{"role": "user"}], ["message_without_content"]),
        ([{"role": "user", "content": 7}], ["invalid_content"]),
        ([call("a"), {**output("a"), "output": None}], ["result_without_content"]),
        ([call("a"), {**output("a"), "output": {"t": 1}}], ["invalid_content"]),
        ([{**call("a"), "arguments": {"t": 1}}, output("a")], ["arguments_not_text"]),
        ([{**CUSTOM, "input": None}], ["arguments_not_text", "call_without_result"]),
        ([{**call("a"), "call_id": 7}, {**output("a"), "call_id": 7}], ["invalid_call_id"] * 2),
        (
            [{**CUSTOM, "call_id": None}, {**output("a"), "call_id": None}],
            ["result_of_other_type"],
        ),
    ],
)
def test_each_breach_is_found_and_repaired(items: list[Any], found: list[str]) -> None:
    """Each breach is reported under its rule with position and remedy, and a repair removes it."""
    body = {"model": "m", "input": items}
    before = json.dumps(body)
    violations = dialect.check(body)
    assert sorted(violation.rule for violation in violations) == sorted(found)
    assert all(each.position.startswith("input[") for each in violations)
    assert all(each.problem in str(each) and each.remedy in str(each) for each in violations)
    repaired, changes = dialect.repair(body)
    made = [change.rule for change in changes if change.rule != "empty_conversation"]
    assert made == [each.rule for each in violations]
    assert (repaired["model"], dialect.check(repaired)) == ("m", [])
    assert dialect.repair(items) == (repaired["input"], changes)
    assert json.dumps(body) == before


@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_a_conversation_that_the_provider_keeps_may_hold_the_call(key: str) -> None:
    """An output may answer a call of the response that this one follows, but only once."""
    body = {key: "x", "input": [output("a"), output("b")]}
    assert dialect.check(body) == []
    twice = {key: "x", "input": [output("a"), output("a")]}
    assert [violation.rule for violation in dialect.check(twice)] == ["duplicate_result"]
    assert dialect.repair(twice)[0] == {key: "x", "input": [output("a")]}


def test_an_unanswered_call_is_never_mended_to_a_success() -> None:
    """The output that a repair adds says that its outcome is unknown, in the round's place."""
    repaired, changes = dialect.repair([USER, call("a"), CUSTOM | {"call_id": "b"}, USER])
    assert [item.get("type", "user") for item in repaired] == [
        "user",
        "function_call",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
        "user",
    ]
    assert all(item["output"].startswith("Outcome unknown") for item in repaired[3:5])
    assert all("its outcome is unknown" in str(change) for change in changes)


@over(
    "items, repaired",
    [
        (
            [call("a"), call("b"), output("b", "2"), USER],
            [call("a"), call("b"), None, output("b", "2"), USER],
        ),
        (
            [call("a"), call("b"), USER, output("a", "1")],
            [call("a"), call("b"), USER, output("a", "1"), None],
        ),
        (
            [call("a"), USER, call("b"), output("b", "2")],
            [call("a"), None, USER, call("b"), output("b", "2")],
        ),
        (
            [output("a", "1"), call("a"), call("b"), USER],
            [call("a"), call("b"), output("a", "1"), None, USER],
        ),
    ],
)
def test_a_result_is_put_where_its_call_stands(items: list[Any], repaired: list[Any]) -> None:
    """A result that is added or moved stands in the order of the calls; the others stay."""
    made, _ = dialect.repair(items)
    assert len(made) == len(repaired)
    for item, right in zip(made, repaired, strict=True):
        assert item == right or (right is None and item["output"].startswith("Outcome unknown"))


def test_text_alone_is_an_input_too() -> None:
    """An input that is only text breaks no rule, and a repair leaves it as it is."""
    assert dialect.check({"input": "Hi"}) == []
    assert dialect.repair({"input": "Hi"}) == ({"input": "Hi"}, [])


item_lists = st.lists(
    st.sampled_from(
        [
            USER,
            call("a"),
            call("b"),
            CUSTOM,
            output("a"),
            output("b"),
            output("c"),
            reasoning(),
            reasoning(id="rs_2"),
            message(text("y")),
            {"role": "assistant", "content": "z"},
        ]
    ),
    max_size=9,
)


@given(item_lists)
def test_a_repair_is_always_clean_and_keeps_what_was_clean(items: list[Any]) -> None:
    """Whatever was sent, its repair has no violation; what had none is not changed."""
    repaired, changes = dialect.repair(items)
    assert dialect.check(repaired) == []
    assert bool(changes) == bool(dialect.check(items))
    if not changes:
        assert repaired == items
    if USER in items:
        assert repaired.count(USER) == items.count(USER)
