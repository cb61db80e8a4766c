"""What request bodies have in common: the extras of all, and more of OpenAI's two formats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..._text.json import is_mapping, is_sequence
from ..._transcript.request import TurnRequest


def openai_body(
    request: TurnRequest,
    body: dict[str, Any],
    *,
    tools: list[dict[str, Any]],
    tool_choice: Any,
    answer: dict[str, Any],
    limit: str,
) -> dict[str, Any]:
    """Join what was said with the tools, the generation parameters and the extras.

    Args:
        request: What is asked of the model.
        body: The body so far, with the conversation.
        tools: The tools on offer, rendered.
        tool_choice: What is asked of the model, rendered.
        answer: The fields for a final answer, if any.
        limit: The dialect's name of the upper bound on the answer.

    Returns:
        The body. Without tools there is neither a tool choice nor a word on parallel calls, which
        the API refuses there.
    """
    body |= answer
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


def add_extras(
    body: dict[str, Any], extra: Mapping[str, Any], *, joined: Collection[str] = ()
) -> None:
    """Add the extras of a request, last and as they are.

    Args:
        body: The body so far. Tools among the extras come after those that are in it.
        extra: The fields.
        joined: The fields that hold several things, of which the request may have said one: what
            the user says is added to that.
    """
    for key, value in extra.items():
        if key == "tools" and is_sequence(value):
            body[key] = [*body.get(key, ()), *value]
        elif key in joined and is_mapping(value):
            body[key] = {**body.get(key, {}), **value}
        else:
            body[key] = value
