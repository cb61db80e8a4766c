"""What is known of Converse.

(Amazon Bedrock API reference: "Converse", with its types; guide "Get validated JSON results from
models", as of 2026. Names, ids and lengths are those of the service model in botocore 1.44.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..._text.json import is_mapping
from .._facts import Facts
from .._schema.strict import ANTHROPIC
from .._wire.reading import objects_in

NAME: Final = "bedrock_converse"

_BLOCKS: Final = frozenset({"text", "toolUse", "toolResult", "reasoningContent", "cachePoint"})
_FIELDS: Final = ("inferenceConfig", "guardrailConfig", "additionalModelRequestFields")


def _is_own_item(item: Mapping[str, Any]) -> bool:
    return any(
        "type" not in block and not _BLOCKS.isdisjoint(block)
        for block in objects_in(item.get("content"))
    )


def _is_own_body(body: Mapping[str, Any]) -> bool:
    config = body.get("toolConfig")
    return (
        any(key in body for key in _FIELDS)
        or (is_mapping(config) and "tools" in config)
        or any("type" not in block for block in objects_in(body.get("system")))
    )


FACTS: Final = Facts(
    name=NAME,
    key="messages",
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    tool_names_in_words="letters, digits, `_` and `-`, at most 64 characters",
    names_at=("toolConfig.tools[].toolSpec.name", "toolConfig.toolChoice.tool.name"),
    truncated=frozenset({"max_tokens", "model_context_window_exceeded"}),
    call_ids=re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
    call_ids_in_words="letters, digits, `_`, `.`, `:` and `-`, at most 64 characters",
    made_ids="tooluse_",
    repeats_own_ids=True,
    empty_is_missing=True,
    # Grammars are compiled as Anthropic's are, of whose models most are that take them.
    strictness=replace(ANTHROPIC, provider="Bedrock"),
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)
