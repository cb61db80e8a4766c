"""The scripted model, as Pydantic AI takes one."""

from __future__ import annotations

from pydantic_ai import ModelMessage, ModelResponse, RequestUsage, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from said import SAID


def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer by what was said so far."""
    calls = SAID[sum(message.kind == "response" for message in messages)]
    names = {"answer": info.output_tools[0].name}
    parts = [ToolCallPart(names.get(name, name), text, id) for id, name, text in calls]
    return ModelResponse(parts, usage=RequestUsage(input_tokens=200, output_tokens=40))


MODEL = FunctionModel(says)
