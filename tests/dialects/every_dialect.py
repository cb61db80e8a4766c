"""What the tests that hold for all dialects begin with."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from lutum_py.dialects import (
    anthropic_messages,
    gemini_generate_content,
    openai_chat,
    openai_responses,
)

MODULES = [openai_chat, openai_responses, anthropic_messages, gemini_generate_content]
DIALECTS = pytest.mark.parametrize("dialect", MODULES, ids=lambda module: module.NAME)
KEYS = {
    openai_chat.NAME: "messages",
    openai_responses.NAME: "input",
    anthropic_messages.NAME: "messages",
    gemini_generate_content.NAME: "contents",
}


def as_response(dialect: ModuleType, said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    if dialect is openai_chat:
        return {"choices": [{"message": said[0], "finish_reason": "stop"}]}
    if dialect is openai_responses:
        output = [item | {"type": item.get("type", "message")} for item in said]
        for item in output:
            if isinstance(item.get("content"), str):
                item["content"] = [{"type": "output_text", "text": item["content"]}]
        return {"output": output, "status": "completed"}
    if dialect is anthropic_messages:
        return {"content": said[0]["content"]}
    return {"candidates": [{"content": said[0], "finishReason": "STOP"}]}
