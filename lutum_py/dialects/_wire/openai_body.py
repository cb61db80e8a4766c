"""What the request bodies of OpenAI's two formats have in common."""

from __future__ import annotations

from typing import Any

from ..._transcript.request import TurnRequest
from .extras import add_extras

__all__ = ["body_of"]


def body_of(
    request: TurnRequest,
    said: dict[str, Any],
    *,
    tools: list[dict[str, Any]],
    tool_choice: Any,
    limit: str,
) -> dict[str, Any]:
    """Join what was said with the tools, the generation parameters and the extras.

    Args:
        request: What is asked of the model.
        said: The field with the conversation.
        tools: The tools on offer, rendered.
        tool_choice: What is asked of the model, rendered.
        limit: The dialect's name of the upper bound on the answer.

    Returns:
        The body. Without tools there is neither a tool choice nor a word on parallel calls, which
        the API refuses there.
    """
    body = said
    if tools:
        body["tools"] = tools
        body["tool_choice"] = tool_choice
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        body[limit] = request.max_output_tokens
    if request.cache is not None:
        if request.cache.key is not None:
            body["prompt_cache_key"] = request.cache.key
        if request.cache.retention is not None:
            body["prompt_cache_retention"] = request.cache.retention
    # `text` (Responses) holds the format of an answer and other things.
    add_extras(body, request.extra, joined=("text",))
    return body
