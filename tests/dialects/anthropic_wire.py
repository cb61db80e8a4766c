"""What the tests of the Messages API begin with."""

from __future__ import annotations

from typing import Any

from lutum_py import AssistantTurn, ToolDef, ToolMetadata, ToolResult

ECHO = ToolDef.from_json_schema(name="echo", description="Say it", input_schema={"type": "object"})
CALL = {"type": "tool_use", "id": "t1", "name": "echo", "input": {"b": None, "a": [1]}}
USER = {"role": "user", "content": "Go"}


def response(*content: Any, **more: Any) -> dict[str, Any]:
    return {"id": "m1", "model": "claude", "content": list(content), **more}


def result(call: ToolMetadata, value: str = '"done"', **more: Any) -> ToolResult:
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=value, **more)


def turn_of(*calls: ToolMetadata, **more: Any) -> AssistantTurn:
    return AssistantTurn(tool_calls=calls, **more)


def call_of(call_id: str = "c1", arguments: str = "{}") -> ToolMetadata:
    return ToolMetadata(id=call_id, name="echo", arguments=arguments)
