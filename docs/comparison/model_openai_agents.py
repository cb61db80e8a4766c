"""The scripted model, as OpenAI Agents takes one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from said import SAID


class Scripted(Model):
    """It answers by what was said so far."""

    async def get_response(
        self, system_instructions: str | None, input: Any, *_: Any, **__: Any
    ) -> ModelResponse:
        """Say what comes next; the answer is a text here."""
        items = [item for item in input if isinstance(item, dict)]
        said = {item["call_id"] for item in items if item.get("type") == "function_call"}
        calls = next(calls for calls in SAID if calls[0][0] not in said)
        output = [_answer(call[2]) if call[1] == "answer" else _call(*call) for call in calls]
        usage = Usage(requests=1, input_tokens=200, output_tokens=40, total_tokens=240)
        return ModelResponse(output=output, usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not used here."""
        raise NotImplementedError


def _call(id: str, name: str, text: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id=id, name=name, arguments=text)


def _answer(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m1", type="message", role="assistant", status="completed", content=[part]
    )


MODEL = Scripted()
