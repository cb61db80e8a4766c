"""Turns of a model, written as each provider writes them: whole, and as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Payload = dict[str, Any]

MODEL: Final = "model-1"
SIGNATURE: Final = "c2lnbmVkLys+Pw=="


@dataclass(frozen=True, slots=True)
class Said:
    """One turn.

    Attributes:
        text: What the model writes.
        calls: Triples of call id, wire name and arguments; arguments as text are sent as they are,
            where the wire has a text for them.
        refusal: The words with which the model refuses; providers have each their way to say so.
        cut_off: Whether the limit on tokens ended it.
    """

    text: str = ""
    calls: tuple[tuple[str, str, Payload | str], ...] = ()
    refusal: str = ""
    cut_off: bool = False


def written(arguments: Payload | str) -> str:
    """Give arguments as text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


# OpenAI Chat Completions


def chat_response(said: Said) -> Payload:
    message: Payload = {"role": "assistant", "content": said.text or None}
    message["refusal"] = said.refusal or None
    if said.calls:
        message["tool_calls"] = [
            {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": written(args)},
            }
            for id, name, args in said.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_end(said)}
    return {**_chat("chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def chat_events(said: Said) -> list[Payload]:
    def chunk(delta: Payload, finish_reason: str | None = None) -> Payload:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**_chat("chat.completion.chunk"), "choices": [choice], "usage": None}

    def call(index: int, arguments: str, **fields: Any) -> Payload:
        name = fields.pop("name", None)
        function = {"arguments": arguments, **({} if name is None else {"name": name})}
        return chunk({"tool_calls": [{"index": index, **fields, "function": function}]})

    events = [chunk({"role": "assistant", "content": None if said.calls else ""})]
    events += [chunk({"content": part}) for part in halves(said.text) if part]
    events += [chunk({"refusal": part}) for part in halves(said.refusal) if part]
    for index, (id, name, args) in enumerate(said.calls):
        events.append(call(index, "", id=id, type="function", name=name))
        events += [call(index, part) for part in halves(written(args))]
    usage = {**_chat("chat.completion.chunk"), "choices": [], "usage": _CHAT_USAGE}
    return [*events, chunk({}, _chat_end(said)), usage]


def _chat(kind: str) -> Payload:
    return {"id": "chatcmpl-1", "object": kind, "created": 1770674959, "model": MODEL}


def _chat_end(said: Said) -> str:
    if said.cut_off:
        return "length"
    return "tool_calls" if said.calls else "stop"


_CHAT_USAGE: Final = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}

# OpenAI Responses


def responses_response(said: Said) -> Payload:
    if said.cut_off:
        details = {"incomplete_details": {"reason": "max_output_tokens"}}
        return {**_response("incomplete", list(_output(said))), **details}
    return _response("completed", list(_output(said)))


def responses_events(said: Said) -> list[Payload]:
    events: list[Payload] = [
        {"type": "response.created", "response": _response("in_progress", [])},
    ]
    for index, item in enumerate(_output(said)):
        events += _item_events(index, item)
    end = responses_response(said)
    events.append({"type": f"response.{end['status']}", "response": end})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _output(said: Said) -> Iterator[Payload]:
    thought = {"type": "summary_text", "text": "I think."}
    if said.calls:
        id = f"rs_{said.calls[0][0]}"
        yield {"id": id, "type": "reasoning", "summary": [thought], "encrypted_content": SIGNATURE}
    status = "incomplete" if said.cut_off else "completed"
    part: Payload = {"type": "output_text", "text": said.text, "annotations": []}
    if said.refusal:
        part = {"type": "refusal", "refusal": said.refusal}
    if said.text or said.refusal:
        fields = {"id": "msg_1", "role": "assistant", "status": status}
        yield {"type": "message", **fields, "content": [part]}
    for call_id, name, args in said.calls:
        fields = {"id": f"fc_{call_id}", "call_id": call_id, "name": name, "status": status}
        yield {"type": "function_call", **fields, "arguments": written(args)}


def _item_events(index: int, item: Payload) -> Iterator[Payload]:
    where = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        for part in halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **where, "delta": part}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **where, **done}
    elif item["type"] == "message":
        begun = {**item, "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        place = {**where, "content_index": 0}
        (part,) = item["content"]
        kind = "refusal" if part["type"] == "refusal" else "text"
        more: Payload = {} if kind == "refusal" else {"logprobs": []}
        begun = {**part, kind: ""}
        yield {"type": "response.content_part.added", **place, "part": begun}
        event = f"response.{part['type']}"
        for piece in halves(part[kind]):
            yield {"type": f"{event}.delta", **place, "delta": piece, **more}
        yield {"type": f"{event}.done", **place, kind: part[kind], **more}
        yield {"type": "response.content_part.done", **place, "part": part}
    else:
        begun = {**item, "summary": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _response(status: str, output: list[Payload]) -> Payload:
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 25,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1778535251,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status == "in_progress" else usage,
    }


# Anthropic Messages


def anthropic_response(said: Said) -> Payload:
    usage = {"input_tokens": 20, "output_tokens": 5}
    end = "tool_use" if said.calls else "refusal" if said.refusal else "end_turn"
    return _message(list(_blocks(said)), "max_tokens" if said.cut_off else end, usage)


def anthropic_events(said: Said) -> list[Payload]:
    begun = _message([], None, {"input_tokens": 20, "output_tokens": 1})
    events: list[Payload] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    arguments = {id: written(args) for id, _, args in said.calls}
    for index, block in enumerate(_blocks(said)):
        start, deltas = _opened(block, arguments)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": anthropic_response(said)["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
    return [*events, {"type": "message_stop"}]


def _blocks(said: Said) -> Iterator[Payload]:
    if said.calls:
        yield {"type": "thinking", "thinking": "I think.", "signature": SIGNATURE}
    if said.text:
        yield {"type": "text", "text": said.text}
    for id, name, args in said.calls:
        # What does not come to its end is no object.
        whole = {} if isinstance(args, str) else args
        yield {"type": "tool_use", "id": id, "name": name, "input": whole}


def _opened(block: Payload, arguments: dict[str, str]) -> tuple[Payload, list[Payload]]:
    if block["type"] == "thinking":
        said = {"type": "thinking_delta", "thinking": block["thinking"]}
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [said, signed]
    if block["type"] == "text":
        parts = [{"type": "text_delta", "text": part} for part in halves(block["text"])]
        return {"type": "text", "text": ""}, parts
    pieces = ["", *halves(arguments[block["id"]])]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in pieces]


def _message(content: list[Payload], stop_reason: str | None, usage: Payload) -> Payload:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    return {
        **said,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


# Gemini generateContent


def gemini_response(said: Said) -> Payload:
    if said.refusal:
        return _blocked(said)
    return _generated(list(_parts(said)), "MAX_TOKENS" if said.cut_off else "STOP")


def gemini_events(said: Said) -> list[Payload]:
    if said.refusal:
        return [_blocked(said)]
    chunks: list[Payload] = []
    for part in _parts(said):
        texts = halves(part["text"]) if "text" in part else ()
        chunks += [_generated([{**part, "text": text}]) for text in texts]
        chunks += [] if texts else [_generated([part])]
    return [*chunks, _generated([{"text": ""}], "MAX_TOKENS" if said.cut_off else "STOP")]


def _blocked(said: Said) -> Payload:
    """Give the answer to a prompt that the provider does not take."""
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": said.refusal}
    return {"promptFeedback": feedback, "modelVersion": MODEL, "responseId": "r-1"}


def _parts(said: Said) -> Iterator[Payload]:
    if said.text:
        yield {"text": said.text}
    # A call that does not come to its end is not sent at all.
    calls = [(name, args) for _, name, args in said.calls if not isinstance(args, str)]
    for number, (name, args) in enumerate(calls):
        # The Gemini API gives calls no id, and signs the first of several.
        signed = {} if number else {"thoughtSignature": SIGNATURE}
        yield {"functionCall": {"name": name, "args": args}, **signed}


def _generated(parts: list[Payload], finish_reason: str | None = None) -> Payload:
    candidate: Payload = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish_reason is not None:
        candidate["finishReason"] = finish_reason
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": MODEL,
        "responseId": "r-1",
    }
