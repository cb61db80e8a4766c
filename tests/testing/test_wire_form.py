"""The laws of reading what the model said out of a list of messages, in each provider's form."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from lutum_py.dialects import DIALECTS
from lutum_py.dialects._wire_form import Said, wire_form_of
from lutum_py.testing import ScriptedClient

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


THINKING = {"type": "thinking", "thinking": "Hm", "signature": "s"}
USED = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
REASONED = {"type": "reasoning", "id": "rs1", "summary": []}
RESPONSES: list[tuple[str, dict[str, Any]]] = [
    (
        "openai_chat",
        {"choices": [{"message": {"role": "assistant", "content": "Hi"}}], "usage": USED},
    ),
    ("openai_responses", {"output": [REASONED], "status": "completed"}),
    (
        "openai_responses",
        {
            "output": [],
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
        },
    ),
    ("anthropic_messages", {"role": "assistant", "content": [THINKING], "stop_reason": "end_turn"}),
    (
        "gemini_generate_content",
        {
            "candidates": [
                {
                    "content": {"parts": [{"executableCode": {"code": "1"}}]},
                    "finishReason": "STOP",
                }
            ]
        },
    ),
    (
        "bedrock_converse",
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [{"reasoningContent": {"reasoningText": {"text": "Hm"}}}],
                }
            },
            "stopReason": "end_turn",
        },
    ),
]


@pytest.mark.parametrize(("name", "response"), RESPONSES)
def test_a_response_of_ones_own_streams_as_it_reads_whole(
    name: str, response: dict[str, Any]
) -> None:
    """A response in a script, with what no turn has, gives the same turn as a stream."""
    dialect: Any = import_module(DIALECTS[name])
    decoder = dialect.StreamDecoder()
    client = ScriptedClient([response], name, check=False)
    for event in client.create(stream=True):
        decoder.feed(event)
    streamed, whole = decoder.finish(), dialect.decode(response)
    assert [type(item) for item in streamed.items] == [type(item) for item in whole.items]
    assert (streamed.text, streamed.is_truncated) == (whole.text, whole.is_truncated)
