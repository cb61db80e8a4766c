"""Pieces of Chat Completions traffic, for tests to put together."""

from __future__ import annotations

from typing import Any

from lutum_py import ToolDef, ToolMetadata, ToolResult

ECHO = ToolDef.from_json_schema(
    name="echo",
    description="Say it again.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer", "maximum": 3}},
        "required": ["text"],
    },
)


def response(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return {"id": "r1", "model": "m", "choices": [choice], **fields}


def function(call_id: str | None, name: str = "echo", arguments: Any = "{}") -> dict[str, Any]:
    same = {} if call_id is None else {"id": call_id}
    return {**same, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [function(each) for each in ids]}


def tool(call_id: str | None, content: Any = "1", **fields: Any) -> dict[str, Any]:
    same = {} if call_id is None else {"tool_call_id": call_id}
    return {"role": "tool", **same, "content": content, **fields}


def result(call: ToolMetadata, text: str = '"done"', **fields: Any) -> ToolResult:
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=text, **fields)
