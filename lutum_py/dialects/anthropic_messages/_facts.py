"""What is known of the Messages API.

(Anthropic API reference: "Messages"; guide to strict tool use, as of 2026.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..._text.json import is_mapping, is_sequence
from .._blocks.rendering import NOTHING, PROPERTY_KEYS, BlockForm, Read
from .._facts import Facts
from .._schema.strict import ANTHROPIC
from .._wire.reading import objects_in, text_or_none

NAME: Final = "anthropic_messages"

PROGRAM: Final = "code_execution_20260120"
"""The tool that runs programs, where a request names none: each version of it is a caller."""

_BLOCKS: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking")


def _is_own_item(item: Mapping[str, object]) -> bool:
    return any(block.get("type") in _BLOCKS for block in objects_in(item.get("content")))


def _is_own_body(body: Mapping[str, object]) -> bool:
    tools, system = objects_in(body.get("tools")), body.get("system")
    return (
        isinstance(system, str)
        or any("type" in block for block in objects_in(system))
        or "anthropic_version" in body
        or any("input_schema" in tool for tool in tools)
    )


FACTS: Final = Facts(
    name=NAME,
    key="messages",
    tool_names=re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    tool_names_in_words="letters, digits, `_` and `-`, at most 128 characters",
    names_at=("tools[].name", "tool_choice.name"),
    truncated=frozenset({"max_tokens", "model_context_window_exceeded"}),
    refused=frozenset({"refusal"}),
    call_ids=re.compile(r"[a-zA-Z0-9_-]+"),
    call_ids_in_words="letters, digits, `_` and `-`",
    made_ids="toolu_",
    repeats_own_ids=True,
    empty_is_missing=True,
    strictness=ANTHROPIC,
    callers={"model": "direct", "program": PROGRAM},
    calls_strictly=False,
    property_keys=PROPERTY_KEYS,
    schemas_at=("tools[].input_schema",),
    is_own_item=_is_own_item,
    is_own_body=_is_own_body,
)


def _read(block: Any) -> Read | None:
    # A block of an unknown type is `NOTHING`, which stays as it is; one without a type is None,
    # which is a breach.
    kind = block.get("type")
    if kind == "text":
        return block.get("text") or "", None, None
    if kind == "tool_use":
        return None, block, None
    if kind == "tool_result":
        return None, None, block
    return NOTHING if isinstance(kind, str) else None


_OF_ONE_MODEL: Final = ("thinking", "redacted_thinking", "connector_text", "tool_use")


def _declined(content: Sequence[Any]) -> Collection[int]:
    # [text a, thinking a, call a, fallback, text b, call b]: the API takes back what is after the
    # last `fallback`, and before it texts and what the server ran to its end. (Guide "Refusals and
    # fallback", on continuing the conversation.)
    kinds = [block.get("type") if block.__class__ is dict else None for block in content]
    if "fallback" not in kinds:
        return ()
    ended = {block.get("tool_use_id") for block in objects_in(content)}
    last = len(kinds) - kinds[::-1].index("fallback")
    return [
        place
        for place, kind in enumerate(kinds[:last])
        if kind in _OF_ONE_MODEL
        or (kind in ("server_tool_use", "mcp_tool_use") and content[place].get("id") not in ended)
    ]


_SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")


# "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it":
# anthropics/claude-code#95406 and many others, 2026. A call may wait for its result over a user
# message that answers the calls beside it: a program waits so, and what else runs then.
def _unpaired(messages: Sequence[Any]) -> Mapping[tuple[int, int], tuple[str, str]]:
    found: dict[tuple[int, int], tuple[str, str]] = {}
    # By id, where the call is, and whether the program has a call in the same turn.
    waiting: dict[Any, tuple[int, int]] = {}
    known: set[Any] = set()
    calling: set[int] = set()
    spoke = asked = -1
    for index, message in enumerate(messages):
        role = message.get("role") if is_mapping(message) else None
        content = None if role is None else message.get("content")
        if role == "user":
            asked = index
        elif role == "assistant" and isinstance(content, str):
            spoke = index
        for place, block in enumerate(content if is_sequence(content) else ()):
            kind = block.get("type") if is_mapping(block) else None
            if role == "assistant" and kind != "tool_result":
                spoke = index
            if kind == "tool_use":
                calling.add(index)
            elif kind in _SERVER_CALLS:
                key = text_or_none(block.get("id"))
                known.add(key)
                waiting[key] = (index, place)
            elif kind != "tool_result" and str(kind).endswith("_tool_result"):
                key = text_or_none(block.get("tool_use_id"))
                if key not in known:
                    why = "it is the result of nothing that the provider ran before it"
                    found[index, place] = ("orphan_server_result", why)
                waiting.pop(key, None)
    for index, place in waiting.values():
        if index < asked and not (index in calling and spoke in calling):
            why = "the provider ran it, and its result is not there"
            found[index, place] = ("server_call_without_result", why)
    return found


BLOCKS: Final = BlockForm(
    facts=FACTS,
    text=lambda text: {"type": "text", "text": text},
    call=lambda fields: {"type": "tool_use", **fields},
    result=lambda same, text: {"type": "tool_result", **same, "content": text, "is_error": True},
    read=_read,
    is_reasoning=lambda block: block["type"] in ("thinking", "redacted_thinking"),
    declined=_declined,
    unpaired=_unpaired,
    block_looks="an object with a `type`",
    call_id="id",
    answers="tool_use_id",
    caller="caller",
)
