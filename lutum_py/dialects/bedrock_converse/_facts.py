"""What is known of Converse.

(Amazon Bedrock API reference: "Converse", with its types; guide "Get validated JSON results from
models", as of 2026. Names, ids and lengths are those of the service model in botocore 1.44.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..._text.json import is_mapping, is_object, is_sequence, shorten
from .._blocks.form import NOTHING, PROPERTY_KEYS, BlockForm, Read
from .._facts import Facts
from .._repair.repairing import Repairing, text_of
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
    names_at=("toolConfig.tools[].toolSpec.name", "toolConfig.toolChoice.tool.name"),
    truncated=frozenset(
        {
            *("max_tokens", "model_context_window_exceeded"),
            *("malformed_tool_use", "malformed_model_output"),
        }
    ),
    refused=frozenset({"guardrail_intervened", "content_filtered"}),
    call_ids=re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
    call_ids_in_words="letters, digits, `_`, `.`, `:` and `-`, at most 64 characters",
    made_ids="tooluse_",
    repeats_own_ids=True,
    empty_is_missing=True,
    # Grammars are compiled as Anthropic's are, of whose models most are that take them.
    strictness=replace(ANTHROPIC, provider="Bedrock"),
    property_keys=PROPERTY_KEYS,
    schemas_at=("toolConfig.tools[].toolSpec.inputSchema.json",),
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)


def _read(block: Any) -> Read | None:
    if len(block) != 1:
        return None
    if "text" in block:
        return block["text"] or "", None, None
    (fields,) = block.values()
    if not is_object(fields):
        return None
    if fields.get("type") is not None:  # which is run by the provider itself
        return NOTHING
    return None, block.get("toolUse"), block.get("toolResult")


def _fix(block: dict[str, Any], position: str, repairing: Repairing) -> None:
    text = block.get("text", "")
    if not isinstance(text, str):
        problem = f"expected text, got {shorten(text)}"
        repairing.note(f"{position}.text", "not_text", problem, "Send text", "made text of it")
        block["text"] = text_of(text)
    _, _, result = _read(block) or NOTHING
    content = None if result is None else result.get("content")
    if result is None or (is_sequence(content) and all(map(is_object, content))):
        return
    repairing.note(
        f"{position}.toolResult.content",
        "result_content_not_blocks",
        f"expected a list of blocks, got {shorten(content)}",
        'Send a list, as in [{"text": ...}]',
        "put it into a list of blocks",
    )
    listed = content if is_sequence(content) else () if content is None else (content,)
    result["content"] = [each if is_object(each) else {"text": text_of(each)} for each in listed]


def _failed(same: dict[str, Any], text: str) -> dict[str, Any]:
    return {"toolResult": {**same, "content": [{"text": text}], "status": "error"}}


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"text": text},
    call=lambda fields: {"toolUse": fields},
    result=_failed,
    read=_read,
    is_reasoning=lambda block: "reasoningContent" in block,
    block_looks='an object with one key, as in {"text": ...}',
    call_id="toolUseId",
    answers="toolUseId",
    inside="toolUse.",
    fix=_fix,
    takes_text=False,
    needs_ids=True,
    takes_turns=True,
)
