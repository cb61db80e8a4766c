"""What the tests of the API generateContent begin with."""

from __future__ import annotations

from typing import Any

from lutum_py import ToolDef, ToolMetadata, ToolResult

ECHO = ToolDef.from_json_schema(name="echo", description="Say it", input_schema={"type": "object"})
CALL = {"functionCall": {"name": "echo", "args": {"b_c": None, "a": 1}}, "thoughtSignature": "c2k="}
USER = {"role": "user", "parts": [{"text": "Go"}]}


def response(*parts: Any, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}
    return {
        "responseId": "r1",
        "modelVersion": "gemini",
        "candidates": [{**candidate, **more}],
    }


def result(call: ToolMetadata, value: str = '"done"', **more: Any) -> ToolResult:
    return ToolResult(id=call.id, name=call.name, arguments=call.arguments, result=value, **more)


def call_of(call_id: str = "c1", arguments: str = "{}", name: str = "echo") -> ToolMetadata:
    return ToolMetadata(id=call_id, name=name, arguments=arguments)
