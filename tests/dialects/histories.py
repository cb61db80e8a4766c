"""Requests in a form in which two that say the same are equal, written by hand for each dialect.

What the model says stays as it is but for null fields, which mean nothing on any of the wires. What
others say becomes pieces, one after the other: whether a text stands alone or as the only part of a
list, and where one message ends and the next of the same side begins, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .plain import in_camel_case, is_array, is_object

FREE = ("arguments", "args", "input", "response", "parameters")


def bare(value: Any) -> Any:
    """Leave out null fields, but those that a model or program wrote."""
    if is_object(value):
        return {
            key: item if key in FREE and is_object(item) else bare(item)
            for key, item in value.items()
            if item is not None
        }
    return [bare(item) for item in value] if is_array(value) else value


def pieces(dialect: str, request: dict[str, Any]) -> list[Any]:
    """Give what is said in a request, one piece after the other."""
    return list(_OF[dialect](request))


def _content(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [bare(part) for part in content]


def _chat(request: dict[str, Any]) -> Iterator[Any]:
    for message in request["messages"]:
        role = message["role"]
        if role == "assistant":
            yield role, bare(message)
        elif role == "tool":
            yield role, message["tool_call_id"], _content(message["content"])
        else:
            yield from ((role, part) for part in _content(message["content"]))


def _responses(request: dict[str, Any]) -> Iterator[Any]:
    if request.get("instructions"):
        yield "system", {"type": "text", "text": request["instructions"]}
    given = request["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("role") in ("user", "system", "developer") and "content" in item:
            for part in _content(item["content"]):
                kind = "text" if part["type"] == "input_text" else part["type"]
                detail = {"detail": "auto"} if kind == "input_image" else {}
                yield item["role"], detail | part | {"type": kind}
        elif isinstance(item.get("output"), str | list) and "call_id" in item:
            yield item["type"], item["call_id"], _content(item["output"])
        else:
            yield bare(item)


def _anthropic(request: dict[str, Any]) -> Iterator[Any]:
    yield from (("system", block) for block in _content(request.get("system") or []))
    for message in request["messages"]:
        role = message["role"]
        content = message["content"]
        if role == "assistant" and isinstance(content, str):
            yield role, content
        elif role == "assistant":
            yield from ((role, block) for block in bare(content))
        else:
            for block in _content(content):
                if block["type"] == "tool_result":
                    said = _content(block.get("content") or [])
                    is_error = block.get("is_error", False)
                    yield "tool_result", block["tool_use_id"], said, is_error
                else:
                    yield role, block


def _gemini(request: dict[str, Any]) -> Iterator[Any]:
    told: dict[str, Any] = request.get("systemInstruction") or {}
    yield from (("system", part) for part in told.get("parts", ()))
    for content in in_camel_case(request["contents"]):
        for part in content["parts"]:
            if "functionResponse" in part:
                yield part
            else:
                yield content["role"], part


_OF = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _anthropic,
    "gemini_generate_content": _gemini,
}

_GONE = object()
_STEP = re.compile(r"\w+|\[\d+\]")


def at(request: Any, where: str) -> tuple[Any, Any]:
    """Go to the place of a loss; give what holds it, and where it holds it."""
    steps = [int(step[1:-1]) if step[0] == "[" else step for step in _STEP.findall(where)]
    for step in steps[:-1]:
        request = request[step]
    return request, steps[-1]


def without(request: Any, where: str) -> None:
    """Take out of a request what stands at the place of a loss."""
    holder, key = at(request, where)
    # A list keeps its length, so that the places of other losses stay what they are.
    holder[key] = _GONE


def compacted(value: Any) -> Any:
    """Leave out what was taken out."""
    if is_object(value):
        return {key: compacted(item) for key, item in value.items() if item is not _GONE}
    if is_array(value):
        return [compacted(item) for item in value if item is not _GONE]
    return value
