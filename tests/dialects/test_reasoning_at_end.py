"""Reasoning that a limit on tokens ended: the APIs refuse a turn that ends with it."""

from __future__ import annotations

from typing import Any

from lutum_py import Message, TurnRequest
from lutum_py.dialects import anthropic_messages, bedrock_converse, openai_responses
from tests.cases import over

from .format_rules import refused

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "c2ln"}
REASONED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}


def cut_off(*content: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(content), "stop_reason": "max_tokens"}


def cut_off_there(*content: dict[str, Any]) -> dict[str, Any]:
    return {"output": {"message": {"content": list(content)}}, "stopReason": "max_tokens"}


def cut_off_items(*output: dict[str, Any]) -> dict[str, Any]:
    return {"output": list(output), "incomplete_details": {"reason": "max_output_tokens"}}


@over(
    "dialect, response, said",
    [
        (anthropic_messages, cut_off(THOUGHT), []),
        (anthropic_messages, cut_off(HIDDEN, THOUGHT), []),
        (
            anthropic_messages,
            cut_off(THOUGHT, {"type": "text", "text": "Well."}, THOUGHT),
            [THOUGHT, {"type": "text", "text": "Well."}],
        ),
        (bedrock_converse, cut_off_there(REASONED), []),
        (
            bedrock_converse,
            cut_off_there(REASONED, {"text": "Well."}, REASONED),
            [REASONED, {"text": "Well."}],
        ),
        (openai_responses, cut_off_items(ITEM), []),
    ],
)
def test_reasoning_that_led_to_nothing_is_not_sent_back(
    dialect: Any, response: dict[str, Any], said: list[dict[str, Any]]
) -> None:
    """The conversation goes on without it, and the loss is told; what was said before it stays."""
    turn = dialect.decode(response)
    items = [Message("user", "Go"), turn, Message("user", "And?")]
    body = dialect.encode_request(TurnRequest(items=items))
    assert dialect.check(body) == refused(dialect.NAME, body) == []
    spoken = body.get("messages", body.get("input"))
    assert [each["content"] for each in spoken if each["role"] != "user"] == (
        [said] if said else []
    )
    (loss,) = body.losses
    assert "its reasoning led to nothing" in str(loss)


USER = {"role": "user", "content": [{"type": "text", "text": "Go"}]}
SAID = {"type": "text", "text": "Well."}


BOTH = ["messages[1].content[0]", "messages[1].content[1]"]


def of(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


@over(
    "messages, positions, repaired",
    [
        ([USER, of(THOUGHT), USER], ["messages[1].content[0]"], [USER, USER]),
        (
            [USER, of(SAID, THOUGHT), {"role": "system", "content": "Hurry."}, USER],
            ["messages[1].content[1]"],
            [USER, of(SAID), {"role": "system", "content": "Hurry."}, USER],
        ),
        ([USER, of(THOUGHT), of(SAID)], [], [USER, of(THOUGHT), of(SAID)]),
        ([USER, of(THOUGHT, {"type": "text", "text": " "})], BOTH, [USER]),
        ([USER, of(THOUGHT, 7)], BOTH, [USER]),
        (
            [USER, of(SAID), of(HIDDEN), of(THOUGHT)],
            ["messages[2].content[0]", "messages[3].content[0]"],
            [USER, of(SAID)],
        ),
    ],
)
def test_a_turn_that_ends_with_its_reasoning_is_repaired(
    messages: list[Any], positions: list[str], repaired: list[Any]
) -> None:
    """Messages of the assistant that follow each other are one turn, whose end counts."""
    violations = anthropic_messages.check(messages)
    assert [each.position for each in violations] == positions
    assert {each.rule for each in violations} <= {
        *("reasoning_at_end", "empty_text", "unknown_block")
    }
    repaired, _ = anthropic_messages.repair(messages)
    assert repaired == repaired
    assert anthropic_messages.check(repaired) == []
