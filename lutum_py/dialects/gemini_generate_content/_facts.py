"""What is known of `generateContent`: Gemini API reference, "Caching", on `Tool`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .._facts import Facts
from .._schema.compiler import gemini_schema
from .._wire.reading import objects_in

NAME: Final = "gemini_generate_content"


def _is_own_item(item: Mapping[str, object]) -> bool:
    return "parts" in item


def _is_own_body(body: Mapping[str, object]) -> bool:
    tools = objects_in(body.get("tools"))
    fields = ("systemInstruction", "generationConfig")
    return any(key in body for key in fields) or any("functionDeclarations" in t for t in tools)


FACTS: Final = Facts(
    name=NAME,
    key="contents",
    message_word="content",
    result_word="response",
    tool_names=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    tool_names_in_words=(
        "letters, digits, `_`, `.`, `:` and `-`, a letter or `_` first, at most 64 characters"
    ),
    names_at=(
        "tools[].functionDeclarations[].name",
        "toolConfig.functionCallingConfig.allowedFunctionNames[]",
    ),
    truncated=frozenset(
        {"MAX_TOKENS", "CONTINUATION", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"}
    ),
    refused=frozenset(
        {
            *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "MODEL_ARMOR"),
            *("LANGUAGE", "ESCALATION", "PUP_LIMITED_DISABLED"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        }
    ),
    rewrite=gemini_schema,
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)
