"""What the laws that hold for all dialects begin with: the dialects, and what each provider sends.

Beside the dialects of the library stands the one of the page "Write a dialect"; see `conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from lutum_py import AssistantTurn
from lutum_py.testing import ScriptedClient

OF_LIBRARY = [
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini_generate_content",
]
OF_PAGE = "plain_chat"
NAMES = [*OF_LIBRARY, OF_PAGE]
KEYS = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "anthropic_messages": "messages",
    "gemini_generate_content": "contents",
    OF_PAGE: "messages",
}
"""The field of a request that holds the conversation."""
TRUNCATED = {
    "openai_chat": ["length"],
    "openai_responses": ["max_output_tokens"],
    "anthropic_messages": ["max_tokens", "model_context_window_exceeded"],
    "gemini_generate_content": ["MAX_TOKENS"],
    OF_PAGE: ["limit"],
}
"""The finish reasons that say that a limit on tokens ended the turn."""
TAKEN_NAMES = {
    "openai_chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai_responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic_messages": r"[a-zA-Z0-9_-]{1,128}",
    "gemini_generate_content": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    OF_PAGE: r"[a-zA-Z0-9_-]{1,64}",
}
"""The names of tools that each provider takes."""
DIALECTS = pytest.mark.parametrize("dialect", NAMES, indirect=True)


def key_of(dialect: ModuleType) -> str:
    """The field of a request that holds the conversation."""
    return KEYS[dialect.NAME]


def response_of(name: str, turn: AssistantTurn, number: int = 1) -> dict[str, Any]:
    """Give a turn as the provider writes it in its response of this number."""
    client = ScriptedClient([turn] * number, name, check=False)
    return [client.create() for _ in range(number)][-1]


def as_response(dialect: ModuleType, said: list[Any]) -> dict[str, Any]:
    """Put a rendered turn into a response, as if the provider had said it."""
    if dialect.NAME == "openai_chat":
        return {"choices": [{"message": said[0], "finish_reason": "stop"}]}
    if dialect.NAME == "openai_responses":
        output = [item | {"type": item.get("type", "message")} for item in said]
        for item in output:
            if isinstance(item.get("content"), str):
                item["content"] = [{"type": "output_text", "text": item["content"]}]
        return {"output": output, "status": "completed"}
    if dialect.NAME == "anthropic_messages":
        return {"content": said[0]["content"]}
    if dialect.NAME == "gemini_generate_content":
        return {"candidates": [{"content": said[0], "finishReason": "STOP"}]}
    return {"message": said[0], "end": "stop"}


def bodies(name: str) -> dict[str, dict[str, Any]]:
    """A body of each dialect in which a tool is declared, asked for, called and answered."""
    function = {"name": name, "arguments": "{}"}
    declared = {"name": name, "parameters": {}}
    allowed = [{"type": "function", "function": {"name": name}}]
    return {
        "openai_chat": {
            "messages": [
                {"role": "user", "content": "Go"},
                {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]},
                {"role": "tool", "tool_call_id": "a", "name": name, "content": "1"},
                {"role": "assistant", "function_call": function},
                {"role": "function", "name": name, "content": "1"},
            ],
            "functions": [declared],
            "function_call": {"name": name},
            "tools": [{"function": declared}, {"type": "custom", "custom": {"name": name}}],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": allowed}},
        },
        "openai_responses": {
            "input": [
                {"type": "function_call", "call_id": "a", **function},
                {"type": "function_call_output", "call_id": "a", "output": "1"},
                {"type": "custom_tool_call", "call_id": "b", "name": name, "input": ""},
                {"type": "custom_tool_call_output", "call_id": "b", "output": "1"},
            ],
            "tools": [{"type": "function", **declared}, {"type": "web_search"}],
            "tool_choice": {"type": "function", "name": name},
        },
        "anthropic_messages": {
            "messages": [
                {"role": "user", "content": "Go"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "a", "name": name, "input": {}}],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}],
                },
            ],
            "tools": [{"name": name, "input_schema": {}}],
            "tool_choice": {"type": "tool", "name": name},
        },
        "gemini_generate_content": {
            "contents": [
                {"role": "user", "parts": [{"text": "Go"}]},
                {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
                {"parts": [{"functionResponse": {"name": name, "response": {}}}]},
            ],
            "tools": [
                {"functionDeclarations": [{"name": name}]},
                {"function_declarations": {"name": name}},
            ],
            "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": [name]}},
        },
        "plain_chat": {
            "messages": [
                {"role": "user", "content": "Go"},
                {
                    "role": "assistant",
                    "content": "",
                    "calls": [{"id": "a", "name": name, "arguments": "{}"}],
                },
                {"role": "tool", "id": "a", "content": "1"},
            ],
            "tools": [{"name": name, "about": "", "input": {}}],
            "call": {"name": name},
        },
    }


def many_calls(
    dialect: ModuleType, count: int, call_id: Callable[[int], str], *, is_answered: bool
) -> list[Any]:
    """A turn with many calls, and their results if any; the ids are made by number."""
    asked, called, result, *_ = bodies("f")[dialect.NAME][key_of(dialect)]
    ids = [call_id(number) for number in range(count)]
    if dialect.NAME == "plain_chat":
        (call,) = called["calls"]
        calls = [{**called, "calls": [{**call, "id": each} for each in ids]}]
        results = [{**result, "id": each} for each in ids]
    elif dialect.NAME == "openai_chat":
        (call,) = called["tool_calls"]
        calls = [{**called, "tool_calls": [{**call, "id": each} for each in ids]}]
        results = [{**result, "tool_call_id": each} for each in ids]
    elif dialect.NAME == "openai_responses":
        calls = [{**asked, "call_id": each} for each in ids]
        results = [{**called, "call_id": each} for each in ids]
        asked = {"role": "user", "content": "Go"}
    elif dialect.NAME == "anthropic_messages":
        (call,), (answer,) = called["content"], result["content"]
        calls = [{**called, "content": [{**call, "id": each} for each in ids]}]
        results = [{**result, "content": [{**answer, "tool_use_id": each} for each in ids]}]
    else:
        calls = [{**called, "parts": called["parts"] * count}]
        results = [{**result, "parts": result["parts"] * count}]
    return [asked, *calls, *(results if is_answered else ())]


def streams() -> dict[str, list[dict[str, Any]]]:
    """A stream of each dialect that says something and makes two calls."""
    items = [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": ""},
    ]
    whole = {"id": "r", "status": "completed", "output": items}
    calls = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":1}'}},
        {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    deltas = [{"content": "Hi"}, *({"tool_calls": [call]} for call in calls)]
    block = {"type": "content_block_start"}
    use = {"type": "tool_use", "input": {}}
    parts = [
        {"text": "Hi"},
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}},
        {"functionCall": {"id": "b", "name": "g"}},
    ]
    candidates = [{"content": {"role": "model", "parts": [part]}} for part in parts]
    return {
        "openai_responses": [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"},
            *(
                {"type": f"response.output_item.{step}", "output_index": at, "item": item}
                for at, item in enumerate(items)
                for step in ("added", "done")
            ),
            {"type": "response.completed", "response": whole},
        ],
        "openai_chat": [
            *({"id": "r", "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
            {"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ],
        "anthropic_messages": [
            {"type": "message_start", "message": {"id": "m", "content": []}},
            {**block, "index": 0, "content_block": {"type": "text", "text": "Hi"}},
            {**block, "index": 1, "content_block": {**use, "id": "a", "name": "f"}},
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": '{"x":1}'},
            },
            {"type": "content_block_stop", "index": 1},
            {**block, "index": 2, "content_block": {**use, "id": "b", "name": "g"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ],
        "gemini_generate_content": [
            *({"candidates": [candidate]} for candidate in candidates),
            {"candidates": [{"finishReason": "STOP"}]},
        ],
        "plain_chat": [
            {"content": "Hi"},
            {"call": {"id": "a", "name": "f"}},
            {"arguments": '{"x":'},
            {"arguments": "1}"},
            {"call": {"id": "b", "name": "g"}},
            {"end": "stop"},
        ],
    }
