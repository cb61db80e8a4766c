"""The Messages API: what its rules find, and how they are repaired."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lutum_py.dialects import anthropic_messages as dialect
from tests.cases import over

from .anthropic_wire import USER
from .plain import OUTCOME_UNKNOWN


def said_results(*ids: str, text: str = "") -> dict[str, Any]:
    blocks: list[Any] = [
        {"type": "tool_result", "tool_use_id": each, "content": each} for each in ids
    ]
    return {
        "role": "user",
        "content": blocks + ([{"type": "text", "text": text}] if text else []),
    }


def called(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in ids],
    }


SYSTEM = {"role": "system", "content": "From now on"}
NOBODY = {"type": "tool_result", "content": "x"}


CALL: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result"}
SEVEN = {"tool_use_id": 7}
ODD_BLOCKS = ["empty_message", "unknown_block", "misplaced_call"]


def called_with(value: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{**CALL, "input": value, **fields}]}


@over(
    "messages, rules, shape",
    [
        ([USER, called("a", "b")], ["call_without_result"] * 2, "u:t a:ab u:ab"),
        ([USER, called("a"), USER], ["call_without_result"], "u:t a:a u:at"),
        ([USER, called("a"), SYSTEM, USER], ["call_without_result"], "u:t a:a s:t u:at"),
        ([USER, called("a"), SYSTEM], ["call_without_result"], "u:t a:a u:a s:t"),
        ([USER, said_results("a")], ["orphan_result"], "u:t"),
        (
            [USER, called("a"), said_results("a", "a")],
            ["duplicate_result"],
            "u:t a:a u:a",
        ),
        (
            [USER, called("a", "b"), said_results("b", "a")],
            ["results_out_of_order"] * 2,
            "u:t a:ab u:ab",
        ),
        (
            [USER, called("a"), USER, said_results("a")],
            ["result_after_content"],
            "u:t a:a u:at",
        ),
        (
            [USER, called("a"), USER, called("b"), said_results("a", "b")],
            ["misplaced_result"],
            "u:t a:a u:at a:b u:b",
        ),
        (
            [USER, said_results("a"), called("a")],
            ["misplaced_result"],
            "u:t a:a u:a",
        ),
        (
            [
                USER,
                {
                    "role": "assistant",
                    "content": [*called("a")["content"], NOBODY | {"tool_use_id": "a"}],
                },
            ],
            ["misplaced_result"],
            "u:t a:a u:a",
        ),
        (
            [USER, called("a", "b"), said_results("a"), said_results("b") | {"role": "system"}],
            ["misplaced_result"],
            "u:t a:ab u:ab",
        ),
        ([called("a"), said_results("a")], ["first_role"], "u:t a:a u:a"),
        ([SYSTEM, called("a"), said_results("a")], ["first_role"], "s:t u:t a:a u:a"),
        ([SYSTEM, called()], ["empty_message"], "s:t"),
        ([USER, {"role": "tool"}, 3], ["unknown_role"] * 2, "u:t"),
        ([USER, {"role": "user", "content": " "}], ["empty_message"], "u:t"),
        (
            [{"role": "user", "content": [3, {"type": "text", "text": ""}, {"type": "text"}]}],
            ["empty_message", "unknown_block", "empty_text", "empty_text"],
            "u:t",
        ),
        ([USER, {"role": ["user"], "content": "x"}], ["unknown_role"], "u:t"),
        ([{"role": "user", "content": {"type": "text", "text": "x"}}], ["invalid_content"], "u:t"),
        ([USER, {"role": "user", "content": 7}], ["invalid_content", "empty_message"], "u:t"),
        ([USER, {"role": "user", "content": [{"text": "x"}, CALL]}], ODD_BLOCKS, "u:t"),
        ([USER, called_with("x"), said_results("a")], ["input_not_an_object"], "u:t a:a u:a"),
        ([USER, called_with(None), said_results("a")], ["input_not_an_object"], "u:t a:a u:a"),
        (
            [USER, called_with({}, id=7), {"role": "user", "content": [{**RESULT, **SEVEN}]}],
            ["invalid_call_id"],
            "u:t a:7 u:7",
        ),
        (
            [USER, called("a", "a"), said_results("a", "a")],
            ["duplicate_call_id"],
            "u:t a:aa_2 u:aa_2",
        ),
        (
            [USER, called("a", "a", "a_2"), said_results("a", "a", "a_2")],
            ["duplicate_call_id"],
            "u:t a:aa_3a_2 u:aa_3a_2",
        ),
        ([USER, called("a"), said_results("a", text="And?")], [], "u:t a:a u:at"),
        ([USER, called("a"), said_results("a"), USER], [], "u:t a:a u:a u:t"),
        ([USER, called("a"), called("b"), said_results("a", "b")], [], "u:t a:a a:b u:ab"),
        (
            [USER, called("a"), SYSTEM, said_results("a"), SYSTEM],
            [],
            "u:t a:a s:t u:a s:t",
        ),
    ],
)
def test_each_breach_is_found_and_repaired(
    messages: list[Any], rules: list[str], shape: str
) -> None:
    """Each rule has a violation with position and remedy, and a repair that ends it."""
    before = copy.deepcopy(messages)
    violations = dialect.check(messages)
    assert [violation.rule for violation in violations] == rules
    assert all(violation.position and violation.remedy for violation in violations)
    repaired, changes = dialect.repair(messages)
    assert [change.rule for change in changes if change.rule != "empty_conversation"] == rules
    assert shape_of(repaired) == shape
    assert dialect.check(repaired) == []
    assert messages == before
    body = {"model": "claude", "messages": messages}
    assert dialect.repair(body)[0] == {"model": "claude", "messages": repaired}


def shape_of(messages: list[Any]) -> str:
    shown = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text"}] if isinstance(content, str) else content
        names = [block.get("id", block.get("tool_use_id", "t")) for block in blocks]
        shown.append(f"{message['role'][0]}:{''.join(names)}")
    return " ".join(shown)


def test_an_odd_id_is_replaced_in_call_and_result() -> None:
    """Characters that the API refuses in an id are replaced on both sides alike."""
    messages = [USER, called("f:0"), said_results("f:0")]
    repaired, changes = dialect.repair(messages)
    assert [change.rule for change in changes] == ["invalid_call_id"]
    assert repaired[1]["content"][0]["id"] == repaired[2]["content"][0]["tool_use_id"] != "f:0"


def test_calls_without_ids_meet_their_results_by_order() -> None:
    """Where a host sends no ids, results are counted, and a missing one is added without an id."""
    call = {"type": "tool_use", "name": "f", "input": {}}
    messages = [USER, {"role": "assistant", "content": [call, call]}, said_results()]
    messages[2] = {"role": "user", "content": [NOBODY]}
    repaired, changes = dialect.repair(messages)
    assert [change.rule for change in changes] == ["call_without_result"]
    assert repaired[2]["content"][0] == NOBODY
    assert repaired[2]["content"][1]["is_error"] is True
    assert "tool_use_id" not in repaired[2]["content"][1]


def test_an_unanswered_call_is_never_called_a_success() -> None:
    """What a repair adds for a call says that its outcome is unknown, and is marked as an error."""
    repaired, _ = dialect.repair([USER, called("a")])
    assert repaired[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": OUTCOME_UNKNOWN,
            "is_error": True,
        }
    ]


BLOCKS = st.one_of(
    st.sampled_from([{"type": "text", "text": "a"}, {"type": "text", "text": ""}]),
    st.sampled_from("ab").map(lambda i: {"type": "tool_use", "id": i, "name": "f", "input": {}}),
    st.sampled_from("abc").map(lambda i: {"type": "tool_result", "tool_use_id": i}),
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]),
            "content": st.lists(BLOCKS, max_size=4) | st.sampled_from(["", "text"]),
        }
    ),
    max_size=7,
)


@given(MESSAGES)
def test_a_repair_leaves_nothing_to_repair(messages: list[Any]) -> None:
    """Whatever is wrong, a repaired conversation is clean, and a clean one is left as it is."""
    repaired, changes = dialect.repair(messages)
    assert dialect.check(repaired) == []
    assert bool(changes) == (repaired != messages) == bool(dialect.check(messages))
    json.dumps(repaired)
