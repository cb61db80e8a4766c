"""What a stream adds to is not copied with each event, so that a long one costs by its length."""

from __future__ import annotations

from typing import Any

from lutum_py.dialects import (
    anthropic_messages,
    bedrock_converse,
    gemini_generate_content,
    openai_chat,
)
from tests.cases import over


def chat(delta: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}], **fields}


def thought(text: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"text": text, "thought": True}]}}]}


def bedrock(delta: dict[str, Any]) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}}


STARTED = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}
DETAIL = {"type": "reasoning.text", "index": 0, "text": "x"}


@over(
    "decoder, start, event, grows",
    [
        (openai_chat, [], chat({"annotations": [1]}), lambda it: it._first._message["annotations"]),
        (
            openai_chat,
            [],
            chat({"thinking_blocks": [{}]}),
            lambda it: it._first._message["thinking_blocks"],
        ),
        (openai_chat, [], chat({"audio": {"data": "x"}}), lambda it: it._first._audio["data"]),
        (
            openai_chat,
            [],
            chat({"reasoning_details": [DETAIL]}),
            lambda it: it._first._details[0]["text"],
        ),
        (openai_chat, [], chat({}, usage={"x": 1}), lambda it: it._fields["usage"]),
        (
            anthropic_messages,
            [STARTED],
            {"type": "message_delta", "usage": {"output_tokens": 1}},
            lambda it: it._message["usage"],
        ),
        (
            bedrock_converse,
            [{"messageStart": {"role": "assistant"}}],
            bedrock({"citation": {"title": "x"}}),
            lambda it: it._blocks[0].fields["citations"],
        ),
        (
            bedrock_converse,
            [{"messageStart": {"role": "assistant"}}],
            bedrock({"toolResult": [{"text": "x"}]}),
            lambda it: it._blocks[0].fields["content"],
        ),
        (
            gemini_generate_content,
            [thought("x")],
            thought("y"),
            lambda it: it._first["content"]["parts"][0]["text"],
        ),
    ],
)
def test_what_grows_is_not_copied(decoder: Any, start: list[Any], event: Any, grows: Any) -> None:
    """Each event adds to what is there, and makes nothing of it anew."""
    reader = decoder.StreamDecoder()
    for each in (*start, event):
        reader.feed(each)
    known = grows(reader)
    size = len(known)
    for _ in range(3):
        reader.feed(event)
    assert grows(reader) is known
    assert not isinstance(known, str)
    assert isinstance(known, dict) or len(known) == size + 3
