"""A response of the Messages API becomes a turn.

Blocks of a type that is unknown here are taken for something that the provider ran itself, and are
kept and sent back as they came: Anthropic adds server-side tools faster than clients learn them.
(Anthropic API reference: "Messages", response.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject, is_mapping, is_sequence
from ...turns import AssistantItem, ReasoningItem, ServerToolItem, TextItem, ToolCallItem
from .._blocks import NOTHING, PROPERTY_KEYS, BlockForm, Read
from .._facts import Facts
from .._reading import (
    UNKNOWN_EVENTS,
    DecodedResponse,
    Place,
    WireCall,
    caller_of,
    count_at,
    objects_in,
    read_call,
    replace_texts,
    text_or_none,
    total,
    without_nulls,
)
from .._schema.strict import ANTHROPIC

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


# The input of a call is the model's own data, nulls included.
_FREE = frozenset({"input", UNKNOWN_EVENTS})
_OF_THE_SDK = frozenset({"parsed_output", "_request_id"})


UNTIDY: Final = (b"null", b'"parsed_output"', b'"_request_id"')
"""One of these is in the JSON of each payload that `tidy` would change."""


tidy: Final = partial(without_nulls, free=_FREE, of_sdk=_OF_THE_SDK)
"""Copies a response without null fields and without what only the SDK puts there."""


def turn_of(response: Place) -> AssistantTurn:
    """Read a tidy response.

    Raises:
        DialectError: It is an error, has no content, or a field is missing or odd.
    """
    response.raise_error()
    response_id = response.text_at("id") or None
    details = response.value.get("stop_details")
    read = DecodedResponse(
        list(_items(response, response_id)),
        response.text_at("stop_reason"),
        response_id,
        usage_of(response),
        calls_in(response.value),
        details.get("explanation") if is_mapping(details) else None,
    )
    return read.turn(FACTS, response)


def calls_in(payload: JsonObject) -> Iterator[WireCall]:
    """Yield the calls of a response, in order."""
    return BLOCKS.calls_in(payload["content"])


def say(payload: JsonObject, text: str) -> None:
    """Let a response say another text."""
    said, call_in = payload["content"], BLOCKS.call_in
    content: list[object] = [] if isinstance(said, str) else said
    payload["content"] = content
    replace_texts(content, text, _is_text, BLOCKS.text, lambda block: call_in(block) is not None)


def _is_text(block: Any) -> bool:
    return bool(block["type"] == "text")


def usage_of(response: Place) -> Usage | None:
    """Read what the turn cost; tokens of the cache are counted apart on this wire."""
    usage = response.get("usage")
    if usage is None:
        return None
    fields = usage.value
    # `input_tokens` is only what no cache had: 12 beside 8,000 read and 500 written is a request of
    # 8,512, which is what other providers report and what a limit is about.
    cached = count_at(fields, "cache_read_input_tokens")
    written = count_at(fields, "cache_creation_input_tokens")
    return Usage(
        input_tokens=total(count_at(fields, "input_tokens"), written, cached),
        output_tokens=count_at(fields, "output_tokens"),
        cached_tokens=cached,
        reasoning_tokens=count_at(fields, "output_tokens_details", "thinking_tokens"),
        cache_write_tokens=written,
    )


def _items(response: Place, response_id: str | None) -> Iterator[AssistantItem]:
    index = 0
    content = response.need("content")
    if isinstance(content.value, str):  # as programs may write it
        yield TextItem(content.value)
        return
    blocks = content.items()
    if declined := BLOCKS.declined(content.value):
        blocks = [block for place, block in enumerate(blocks) if place not in declined]
    for block in blocks:
        kind = block.need_text("type")
        if kind == "text":
            text = block.need_text("text")
            if text:
                yield TextItem(text)
        elif kind == "thinking":
            yield ReasoningItem(block.need_text("thinking"))
        elif kind == "redacted_thinking":
            # Encrypted: there is nothing to show, but views and other models must know that
            # reasoning is here. It goes back from the payload.
            yield ReasoningItem("")
        elif kind == "tool_use":
            call = read_call(block, "input", block.text_at("id"), response_id, index)
            yield ToolCallItem(call, caller_of(block.object()))
            index += 1
        elif kind == "tool_result":
            raise block.error("a tool_result is the program's answer, which no model sends")
        else:
            yield ServerToolItem(kind, block.object())
