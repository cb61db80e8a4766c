"""The laws of reading what the model said out of a list of messages, in each provider's form."""

from __future__ import annotations

from typing import Any

import pytest

from lutum_py.dialects import DIALECTS
from lutum_py.dialects._wire_form import Said, wire_form_of

CALL = Said('{"a":1}', "f", "c1")
FUNCTION = {"name": "f", "arguments": '{"a":1}'}

ODD_CALL = [{"role": "assistant", "tool_calls": [{"function": 3}]}]

SAID: list[tuple[str, list[Any], list[Said]]] = [
    ("openai_chat", [{"role": "assistant", "content": "Hi"}], [Said("Hi")]),
    (
        "openai_chat",
        [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}],
        [Said("Hi")],
    ),
    (
        "openai_chat",
        [{"role": "assistant", "tool_calls": [{"id": "c1", "function": FUNCTION}]}],
        [CALL],
    ),
    (
        "openai_chat",
        [{"role": "assistant", "tool_calls": [{"function": 3}]}],
        [Said("null", "None")],
    ),
    ("openai_responses", [{"role": "assistant", "content": "Hi"}], [Said("Hi")]),
    (
        "openai_responses",
        [{"role": "assistant", "content": [{"text": "Hi"}]}, {"role": "user", "content": "No"}],
        [Said("Hi")],
    ),
    ("openai_responses", [{"type": "function_call", "call_id": "c1", **FUNCTION}], [CALL]),
    ("anthropic_messages", [{"role": "assistant", "content": "Hi"}], [Said("Hi")]),
    (
        "anthropic_messages",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm"},
                    {"type": "text", "text": "Hi"},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                ],
            }
        ],
        [Said("Hi"), CALL],
    ),
    (
        "gemini_generate_content",
        [
            {
                "role": "model",
                "parts": [
                    {"text": "Hi"},
                    {"inlineData": {}},
                    {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}},
                ],
            }
        ],
        [Said("Hi"), CALL],
    ),
    (
        "bedrock_converse",
        [
            {
                "role": "assistant",
                "content": [
                    {"text": "Hi"},
                    {"reasoningContent": {}},
                    {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}},
                ],
            }
        ],
        [Said("Hi"), CALL],
    ),
]


def test_texts_and_calls_are_found() -> None:
    """Texts and calls of the model are listed in order, whatever form they have."""
    for name, messages, expected in SAID:
        assert [*wire_form_of(name).said_in(messages)] == expected, (name, messages)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_model_did_not_say_is_passed_over(name: str) -> None:
    """Messages of others and what is no message at all are not the model's words."""
    strange = [{"role": "user", "content": "Hi", "parts": []}, 7, None, "text", {}]
    assert [*wire_form_of(name).said_in(strange)] == []
