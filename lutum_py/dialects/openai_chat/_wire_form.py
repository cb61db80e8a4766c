"""What a model says in the form of Chat Completions, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject
from .._wire_form import (
    Said,
    WireForm,
    cost_of,
    end_of,
    halves,
    object_of,
    objects,
    of_role,
    said_call,
)


def _response(turn: AssistantTurn, number: int) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": turn.text or None}
    if turn.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.tool_calls
        ]
    # What has no word for its end would be taken for the object of an SDK that still grows.
    ended = turn.finish_reason or ("tool_calls" if turn.tool_calls else "stop")
    reason = end_of(turn, "content_filter", "length", ended)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {
        "id": f"r{number}",
        "object": "chat.completion",
        "model": "scripted",
        "choices": [choice],
        **cost_of(turn, "usage", _usage),
    }


def _usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _events(response: Mapping[str, object]) -> Iterator[JsonObject]:
    beside = {key: value for key, value in response.items() if key not in ("choices", "usage")}
    beside["object"] = "chat.completion.chunk"
    choices = objects(response.get("choices"))
    if not choices:  # an error, as some hosts send it in a stream too
        yield dict(response)
        return
    choice = choices[0]
    message = choice["message"]
    calls = objects(message.get("tool_calls"))
    # What is beside content and calls, such as the reasoning of some hosts, comes first.
    first = {key: value for key, value in message.items() if key != "tool_calls"}
    deltas: list[JsonObject] = [{"role": "assistant", **first, "content": ""}]
    deltas += [{"content": half} for half in halves(message.get("content") or "")]
    for index, call in enumerate(calls):
        function = object_of(call.get("function"))
        started = {**call, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **started}]})
        for half in halves(function.get("arguments") or ""):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": half}}]})
    for delta in deltas:
        yield {**beside, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = choice.get("finish_reason") or ("tool_calls" if calls else "stop")
    yield {**beside, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if response.get("usage"):
        yield {**beside, "choices": [], "usage": response["usage"]}


def _said(messages: Iterable[object]) -> Iterator[Said]:
    for message in of_role(messages, "assistant"):
        content = message.get("content")
        if isinstance(content, str):
            yield Said(content)
        for part in objects(content):
            yield Said(str(part.get("text", "")))
        for call in objects(message.get("tool_calls")):
            function = object_of(call.get("function"))
            yield said_call(call.get("id"), function.get("name"), function.get("arguments"))


WIRE_FORM: Final = WireForm(
    _response,
    _said,
    lambda body: [body["choices"][0]["message"]],
    _events,
    {"/chat/completions": None},
    "[DONE]",
)
