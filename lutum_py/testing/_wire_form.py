"""Turns as each provider sends them, and what the model said as it stands in a list of messages.

The responses are written by hand here and not rendered by the dialects, whose work is judged by
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from .._text.json import compact_json, is_array, is_object
from .._transcript.assistant import AssistantTurn

__all__ = ["WIRE_FORMS", "Said", "WireForm"]


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that the model said: a text, or a call.

    Attributes:
        text: The text, or the argument text of a call.
        name: The wire name of the tool; None for a text.
        id: The id of the call; None where it has none.
    """

    text: str
    name: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class WireForm:
    """How one provider writes a conversation.

    Attributes:
        key: The field of a request body that holds the messages.
        response: Makes the JSON of a response that says what a turn says; a number tells it from
            other responses. Calls without an id get one where the format demands it.
        said_in: Lists what the model said in a list of messages.
        messages_of: Lists the messages that a response itself holds.
    """

    key: str
    response: Callable[[AssistantTurn, int], dict[str, Any]]
    said_in: Callable[[Iterable[Any]], Iterator[Said]]
    messages_of: Callable[[Mapping[str, Any]], list[Any]]


def _chat_response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.tool_calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": turn.finish_reason}
    return {
        "id": f"r{number}",
        "object": "chat.completion",
        "model": "scripted",
        "choices": [choice],
    }


def _chat_said(messages: Iterable[Any]) -> Iterator[Said]:
    for message in _of_role(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, str):
            yield Said(content)
        for part in _objects(content):
            yield Said(str(part.get("text", "")))
        for call in _objects(message.get("tool_calls")):
            function = _object(call.get("function"))
            yield _call(call.get("id"), function.get("name"), function.get("arguments"))


def _responses_response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if turn.text:
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        message = {
            "type": "message",
            "id": f"m{number}",
            "role": "assistant",
            "status": "completed",
        }
        output.append({**message, "content": [part]})
    output += [
        {
            "type": "function_call",
            "id": f"f{number}_{at}",
            "call_id": call.id or f"given_{number}_{at}",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for at, call in enumerate(turn.tool_calls)
    ]
    status: dict[str, Any] = {"status": "completed"}
    if turn.is_truncated:
        status = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {
        "id": f"r{number}",
        "object": "response",
        "model": "scripted",
        "output": output,
        **status,
    }


def _responses_said(messages: Iterable[Any]) -> Iterator[Said]:
    for item in _objects(list(messages)):
        if item.get("type") == "function_call":
            yield _call(item.get("call_id"), item.get("name"), item.get("arguments"))
        elif item.get("role") == "assistant":
            content = item.get("content")
            if isinstance(content, str):
                yield Said(content)
            for part in _objects(content):
                yield Said(str(part.get("text", "")))


def _anthropic_response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    content += [
        {
            "type": "tool_use",
            "id": call.id or f"given_{number}_{at}",
            "name": call.name,
            "input": _as_object(call.arguments),
        }
        for at, call in enumerate(turn.tool_calls)
    ]
    reason = "tool_use" if turn.tool_calls else "end_turn"
    return {
        "id": f"r{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": "max_tokens" if turn.is_truncated else reason,
    }


def _anthropic_said(messages: Iterable[Any]) -> Iterator[Said]:
    for message in _of_role(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, str):
            yield Said(content)
        for block in _objects(content):
            if block.get("type") == "tool_use":
                yield _call(block.get("id"), block.get("name"), block.get("input"))
            elif block.get("type") == "text":
                yield Said(str(block.get("text", "")))


def _gemini_response(turn: AssistantTurn, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for call in turn.tool_calls:
        named = {"name": call.name, "args": _as_object(call.arguments)}
        # The API itself leaves ids out.
        parts.append({"functionCall": {"id": call.id, **named} if call.id else named})
    content = {"role": "model", "parts": parts}
    reason = "MAX_TOKENS" if turn.is_truncated else "STOP"
    return {
        "responseId": f"r{number}",
        "modelVersion": "scripted",
        "candidates": [{"index": 0, "content": content, "finishReason": reason}],
    }


def _gemini_said(messages: Iterable[Any]) -> Iterator[Said]:
    for content in _of_role(messages, "model"):
        for part in _objects(content.get("parts")):
            call = part.get("functionCall")
            if is_object(call):
                yield _call(call.get("id"), call.get("name"), call.get("args"))
            elif isinstance(part.get("text"), str):
                yield Said(part["text"])


def _as_object(arguments: str) -> Any:
    """Read argument text where the wire knows objects only: what cannot be read is left out."""
    try:
        data = from_json(arguments, allow_partial=True)
    except (TypeError, ValueError):
        return {}
    return data if is_object(data) else {}


def _call(id: Any, name: Any, arguments: Any) -> Said:
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    return Said(text, str(name), id if isinstance(id, str) and id else None)


def _of_role(messages: Iterable[Any], role: str) -> Iterator[dict[str, Any]]:
    return (each for each in _objects(list(messages)) if each.get("role") == role)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if is_object(each)] if is_array(value) else []


def _object(value: Any) -> dict[str, Any]:
    return value if is_object(value) else {}


WIRE_FORMS: Final[Mapping[str, WireForm]] = {
    "openai_chat": WireForm(
        "messages", _chat_response, _chat_said, lambda body: [body["choices"][0]["message"]]
    ),
    "openai_responses": WireForm(
        "input", _responses_response, _responses_said, lambda body: body["output"]
    ),
    "anthropic_messages": WireForm(
        "messages", _anthropic_response, _anthropic_said, lambda body: [body]
    ),
    "gemini_generate_content": WireForm(
        "contents",
        _gemini_response,
        _gemini_said,
        lambda body: [body["candidates"][0]["content"]],
    ),
}
