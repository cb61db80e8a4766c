"""Pieces of Responses traffic, for tests to put together."""

from __future__ import annotations

from typing import Any

from lutum_py import ToolDef, ToolMetadata, ToolResult

ECHO = ToolDef.from_json_schema(
    name="echo",
    description="Say it again.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
)
USER = {"role": "user", "content": "x"}


def response(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m", "status": "completed", "output": list(output), **fields}


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": list(parts)}


def text(said: str) -> dict[str, Any]:
    return {"type": "output_text", "text": said, "annotations": []}


def reasoning(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **fields}


def call(call_id: str | None, arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    same = {} if call_id is None else {"call_id": call_id}
    return {"type": "function_call", **same, "name": "echo", "arguments": arguments, **fields}


def output(call_id: str | None, said: Any = "1", kind: str = "function_call") -> dict[str, Any]:
    same = {} if call_id is None else {"call_id": call_id}
    return {"type": f"{kind}_output", **same, "output": said}


def result(metadata: ToolMetadata, said: str = '"done"', **fields: Any) -> ToolResult:
    return ToolResult(
        id=metadata.id, name=metadata.name, arguments=metadata.arguments, result=said, **fields
    )
