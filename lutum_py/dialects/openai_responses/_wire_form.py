"""What a model says in the form of Responses, for the testing kit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from ... import AssistantTurn, Usage
from ..._text.json import JsonObject
from .._wire_form import Said, WireForm, cost_of, end_of, halves, objects, said_call


def _response(turn: AssistantTurn, number: int) -> JsonObject:
    output: list[JsonObject] = []
    if turn.text:
        part: JsonObject = {"type": "output_text", "text": turn.text, "annotations": []}
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
    status: JsonObject = {"status": "completed"}
    if (reason := end_of(turn, "content_filter", "max_output_tokens", None)) is not None:
        status = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return {
        "id": f"r{number}",
        "object": "response",
        "model": "scripted",
        "output": output,
        **status,
        **cost_of(turn, "usage", _usage),
    }


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _events(response: Mapping[str, object]) -> Iterator[JsonObject]:
    numbers = count()

    def event(kind: str, **fields: object) -> JsonObject:
        return {"type": f"response.{kind}", "sequence_number": next(numbers), **fields}

    started: JsonObject = {**response, "status": "in_progress", "output": []}
    yield event("created", response=started)
    for index, item in enumerate(objects(response.get("output"))):
        at = {"output_index": index, "item_id": item.get("id")}
        empty = {**item, "status": "in_progress"}
        if item.get("type") == "message":
            yield event("output_item.added", output_index=index, item={**empty, "content": []})
            for number, part in enumerate(objects(item.get("content"))):
                within = {**at, "content_index": number}
                kind, key, beside = "output_text", "text", {"logprobs": list[Any]()}
                if part.get("type") == "refusal":
                    kind, key, beside = "refusal", "refusal", {}
                text = str(part.get(key, ""))
                yield event("content_part.added", **within, part={**part, key: ""})
                for half in halves(text):
                    yield event(f"{kind}.delta", **within, delta=half, **beside)
                yield event(f"{kind}.done", **within, **{key: text}, **beside)
                yield event("content_part.done", **within, part=part)
        elif item.get("type") == "function_call":
            arguments = str(item.get("arguments", ""))
            yield event("output_item.added", output_index=index, item={**empty, "arguments": ""})
            for half in halves(arguments):
                yield event("function_call_arguments.delta", **at, delta=half)
            yield event("function_call_arguments.done", **at, arguments=arguments)
        else:
            yield event("output_item.added", output_index=index, item=item)
        yield event("output_item.done", output_index=index, item=item)
    status = response.get("status")
    end = status if status in ("incomplete", "failed") else "completed"
    yield event(end, response=dict(response))


def _said(messages: Iterable[object]) -> Iterator[Said]:
    for item in objects(list(messages)):
        if item.get("type") == "function_call":
            yield said_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        elif item.get("role") == "assistant":
            content = item.get("content")
            if isinstance(content, str):
                yield Said(content)
            for part in objects(content):
                yield Said(str(part.get("text", "")))


WIRE_FORM: Final = WireForm(
    _response, _said, lambda body: body["output"], _events, {"/responses": None}
)
