"""Chat Completions: the rules of a conversation, and how a broken one is repaired."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lutum_py.dialects import openai_chat as dialect
from tests.cases import over

from .chat_wire import calls, function, tool


def rules(request: Any) -> list[str]:
    return [violation.rule for violation in dialect.check(request)]


def called(arguments: Any) -> dict[str, Any]:
    inner = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": inner}]}


def custom(text: Any) -> dict[str, Any]:
    inner = {"name": "f", "input": text}
    return {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": inner}]}


@over(
    "messages, found",
    [
        ([calls("a", "b"), tool("a"), tool("b"), {"role": "user", "content": "x"}], []),
        ([calls("a"), tool("a"), calls("a"), tool("a")], []),
        ([tool("a")], ["orphan_result"]),
        ([calls("a")], ["call_without_result"]),
        ([calls("a"), tool("a"), tool("a")], ["duplicate_result"]),
        ([calls("a", "b"), tool("b"), tool("a")], ["results_out_of_order"] * 2),
        ([tool("a"), calls("a")], ["misplaced_result"]),
        ([tool("a"), tool("a"), calls("a")], ["misplaced_result", "duplicate_result"]),
        (
            [calls("a"), {"role": "user", "content": "x"}, tool("a")],
            ["misplaced_result"],
        ),
        ([calls("a"), tool("b")], ["call_without_result", "orphan_result"]),
        ([calls("a", "a"), tool("a"), tool("a")], ["duplicate_call_id"]),
        ([calls("a", "a", "a_2"), tool("a")], ["call_without_result"] * 2 + ["duplicate_call_id"]),
        ([calls("a"), tool("a", None)], ["result_without_content"]),
        ([calls("a"), tool("a", name="echo")], []),
        ([calls("a"), tool("a", name="other")], ["result_of_other_tool"]),
        ([{"role": "assistant", "content": "x", "tool_calls": []}], ["empty_tool_calls"]),
        ([{"role": "assistant", "content": None}], ["empty_turn"]),
        ([{"role": "robot", "content": "x"}, 7], ["unknown_role"] * 2),
        ([calls("a"), {"role": "robot"}, tool("a")], ["unknown_role"]),
        ([{"role": "assistant", "tool_calls": [7]}], ["invalid_tool_calls", "empty_turn"]),
        (
            [{"role": "assistant", "tool_calls": [{"function": 7}, function("a")]}, tool("a")],
            ["invalid_tool_calls"],
        ),
        ([{"role": "assistant", "tool_calls": function("a")}, tool("a")], ["invalid_tool_calls"]),
        ([{"role": "assistant", "content": "x", "tool_calls": 7}], ["invalid_tool_calls"]),
        ([{"role": "assistant", "tool_calls": [function(None)]}, tool(None)], []),
        (
            [
                {"role": "assistant", "tool_calls": [{**function("a"), "id": 7}]},
                {**tool("a"), "tool_call_id": 7},
            ],
            ["invalid_call_id"] * 2,
        ),
        ([{"role": "assistant", "content": "x", "function_call": {}}], ["invalid_tool_calls"]),
        ([called({"a": 1})], ["arguments_not_text", "call_without_result"]),
        ([called(None)], ["arguments_not_text", "call_without_result"]),
        ([custom(None)], ["arguments_not_text", "call_without_result"]),
        ([{"role": "user"}], ["message_without_content"]),
        ([{"role": "system", "content": None}], ["message_without_content"]),
        ([{"role": "user", "content": 7}], ["invalid_content"]),
        ([{"role": "user", "content": []}], ["invalid_content"]),
        ([{"role": "user", "content": {"type": "text", "text": "x"}}], ["invalid_content"]),
        ([{"role": "user", "content": ["x", {"type": "text", "text": "y"}]}], ["invalid_content"]),
        ([{"role": "assistant", "content": [], "tool_calls": [function("a")]}, tool("a")], []),
        ([{"role": ["user"], "content": "x"}, {"role": "user", "content": "x"}], ["unknown_role"]),
        (
            [
                {"role": "assistant", "function_call": {"name": "f", "arguments": ""}},
                {"role": "function", "name": "f", "content": "1"},
            ],
            [],
        ),
    ],
)
def test_each_breach_is_found_and_repaired(messages: list[Any], found: list[str]) -> None:
    """Each breach is reported under its rule with position and remedy, and a repair removes it."""
    body = {"model": "m", "messages": messages}
    before = json.dumps(body)
    violations = dialect.check(body)
    assert sorted(violation.rule for violation in violations) == sorted(found)
    assert all(each.position.startswith("messages[") for each in violations)
    assert all(each.problem in str(each) and each.remedy in str(each) for each in violations)
    repaired, changes = dialect.repair(body)
    made = [change.rule for change in changes if change.rule != "empty_conversation"]
    assert made == [each.rule for each in violations]
    assert (repaired["model"], rules(repaired)) == ("m", [])
    assert dialect.repair(messages) == (repaired["messages"], changes)
    assert json.dumps(body) == before


def test_an_unanswered_call_is_never_mended_to_a_success() -> None:
    """The result that a repair adds says that its outcome is unknown."""
    repaired, (change,) = dialect.repair([calls("a"), {"role": "user", "content": "x"}])
    assert repaired[1] == tool("a", repaired[1]["content"])
    assert repaired[1]["content"] == (
        "Outcome unknown: the conversation holds no result for this call. "
        "It may or may not have run."
    )
    assert "its outcome is unknown" in str(change)


def test_results_go_back_to_their_own_calls() -> None:
    """A repair keeps each result with its call, also where ids were shared or moved."""
    repaired, _ = dialect.repair(
        [tool("b", "2"), calls("a", "b"), {"role": "user", "content": "x"}, tool("a", "1")]
    )
    assert repaired == [
        calls("a", "b"),
        tool("a", "1"),
        tool("b", "2"),
        {"role": "user", "content": "x"},
    ]
    repaired, _ = dialect.repair([calls("a", "a"), tool("a", "1"), tool("a", "2")])
    assert repaired == [calls("a", "a_2"), tool("a", "1"), tool("a_2", "2")]


message_lists = st.lists(
    st.sampled_from(
        [
            {"role": "user", "content": "x"},
            calls("a"),
            calls("a", "b"),
            calls("b", "b"),
            tool("a"),
            tool("b"),
            tool("c"),
            {"role": "assistant", "content": "y"},
        ]
    ),
    max_size=8,
)


@given(message_lists)
def test_a_repair_is_always_clean_and_keeps_what_was_clean(messages: list[Any]) -> None:
    """Whatever was sent, its repair has no violation; what had none is not changed."""
    repaired, changes = dialect.repair(messages)
    assert rules(repaired) == []
    assert bool(changes) == bool(rules(messages))
    if not changes:
        assert repaired == messages
    asked = [message for message in messages if message["role"] == "user"]
    if asked:
        assert [message for message in repaired if message["role"] == "user"] == asked


def _call(call_id: str, name: str = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def _turn(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def test_a_result_of_the_older_form_answers_the_call_of_its_name() -> None:
    """What a tool said is kept where it goes by a name, and its call by an id."""
    said = [{"role": "function", "name": name, "content": name.upper()} for name in ("g", "f", "h")]
    messages = [{"role": "user", "content": "Hi"}, _turn(_call("c1"), _call("c2", "g")), *said]
    repaired, changes = dialect.repair(messages)
    assert repaired[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "F"},
        {"role": "tool", "tool_call_id": "c2", "content": "G"},
    ]
    rules = [change.rule for change in changes]
    assert sorted(rules) == [
        "orphan_result",
        "result_of_older_form",
        "result_of_older_form",
        "results_out_of_order",
        "results_out_of_order",
    ]
    assert dialect.check(repaired) == []


def test_results_of_calls_with_one_id_in_turns_side_by_side_are_both_kept() -> None:
    """A round that was split over two messages keeps each of its results, in their order."""
    results = [{"role": "tool", "tool_call_id": "c1", "content": text} for text in ("one", "two")]
    repaired, _ = dialect.repair(
        [{"role": "user", "content": "Hi"}, *[_turn(_call("c1"))] * 2, *results]
    )
    assert [message["content"] for message in repaired if message["role"] == "tool"] == [
        "one",
        "two",
    ]
    assert [message["role"] for message in repaired] == [
        *("user", "assistant", "tool", "assistant", "tool"),
    ]
    assert dialect.check(repaired) == []
